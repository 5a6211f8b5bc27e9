//! How long there was traffic, of URRs whose time stands still without packets (TS 29.244 5.2.2.2, Inactivity Detection
//! Time).
//!
//! Packets write nothing for it but what they write anyway, when they came. From a look at one of them others may pass
//! unseen for no longer than the detection time, so none of them comes after a gap of that length; the next one is looked
//! at, and when the last one before it came is still known then.

use super::watches::Watches;
use super::{SessionIndex, watches};

/// Time with traffic.
#[derive(Debug)]
pub(super) struct Active {
    /// Time without packets counts up to this.
    gap_ns: u64,
    /// Nothing passes by these rules: with them, time stands still at once.
    is_stopped: bool,
    /// Up to `until_ns`.
    so_far_ns: u64,
    until_ns: u64,
    /// The last packet that was looked at; where none passes unseen, the last of all.
    last_ns: Option<u64>,
    /// Until when packets may pass unseen; `None`: the next one is looked at.
    unseen_until_ns: Option<u64>,
}

impl Active {
    /// No traffic yet.
    pub(super) fn new(gap_s: u32, is_stopped: bool) -> Box<Self> {
        let gap_ns = u64::from(gap_s) * 1_000_000_000;
        Box::new(Self { gap_ns, is_stopped, so_far_ns: 0, until_ns: 0, last_ns: None, unseen_until_ns: None })
    }

    /// From now on; the count has a packet of `counted_ns`.
    pub(super) fn begin(&mut self, now_ns: u64, counted_ns: Option<u64>) {
        self.until_ns = now_ns;
        self.last_ns = counted_ns.filter(|_| !self.is_stopped);
    }

    /// Goes on where `old` stood.
    pub(super) fn carry(&mut self, old: &Self, now_ns: u64, counted_ns: Option<u64>) {
        self.so_far_ns = old.total_ns(now_ns, counted_ns);
        self.begin(now_ns, old.last_ns(counted_ns));
    }

    /// The count is to the tick: of a packet that was looked at, when it came is known better.
    fn last_ns(&self, counted_ns: Option<u64>) -> Option<u64> {
        if self.is_unseen() { self.last_ns.max(counted_ns) } else { self.last_ns }
    }

    /// All there was.
    pub(super) fn total_ns(&self, now_ns: u64, counted_ns: Option<u64>) -> u64 {
        let end_ns = self.last_ns(counted_ns).map_or(0, |last| now_ns.min(last + self.gap_ns));
        self.so_far_ns + end_ns.saturating_sub(self.until_ns)
    }

    /// A packet is looked at.
    pub(super) fn pass(&mut self, now_ns: u64, counted_ns: Option<u64>) {
        self.so_far_ns = self.total_ns(now_ns, counted_ns);
        (self.until_ns, self.last_ns) = (now_ns, Some(now_ns));
    }

    /// Whether packets may pass without a look.
    pub(super) const fn is_unseen(&self) -> bool {
        self.unseen_until_ns.is_some()
    }

    /// Packets may pass from now on, if it is seen to that this ends.
    pub(super) fn let_pass(&mut self, at: (SessionIndex, u16), watches: &mut Watches, now_ns: u64) {
        if !self.is_unseen() {
            self.unseen_until_ns = watches.begin(at, watches::period(self.gap_ns), now_ns);
        }
    }

    /// The next packet is looked at, if none was to be before; `until_ns` says which time is over, `None` whichever.
    pub(super) fn look_again(&mut self, until_ns: Option<u64>, counted_ns: Option<u64>) -> bool {
        let is_it = self.is_unseen() && (until_ns.is_none() || until_ns == self.unseen_until_ns);
        if is_it {
            (self.last_ns, self.unseen_until_ns) = (self.last_ns(counted_ns), None);
        }
        is_it
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::Count;
    use super::super::usage::{Ledger, UNASKED};
    use super::*;
    use proptest::prelude::*;
    use rules::{Direction, Usage};
    use std::num::NonZeroU32;

    const S: u64 = 1_000_000_000;
    const AT: (SessionIndex, u16) = (SessionIndex(0), 0);

    fn ledger(gap_s: u32) -> Ledger {
        Ledger::new(&Usage { inactivity_detection_s: NonZeroU32::new(gap_s), ..UNASKED })
    }

    /// An account as a worker keeps it.
    struct Kept {
        ledger: Ledger,
        count: Count,
        watches: Watches,
        looks: u64,
    }

    impl Kept {
        fn of(gap_s: u32, room: usize) -> Self {
            Self { ledger: ledger(gap_s), count: Count::ZERO, watches: Watches::new(room), looks: 0 }
        }

        fn packet(&mut self, direction: Direction, now_ns: u64) {
            while let Some(until_ns) = self.watches.over(now_ns) {
                self.ledger.look_again(&mut self.count, Some(until_ns), now_ns);
            }
            if !self.count.add(direction, 100, now_ns) {
                self.looks += 1;
                self.ledger.count(&mut self.count, (direction, (1, 100)), now_ns);
                self.ledger.let_pass(&mut self.count, (AT, &mut self.watches), now_ns);
            }
        }

        fn active_ms(&self, now_ns: u64) -> u64 {
            self.ledger.counts(&self.count, now_ns).active_ms.unwrap()
        }
    }

    /// In ten seconds of 1,000 packets each it is a few packets that somebody looks at.
    #[test]
    fn few_packets_are_looked_at_and_all_where_there_is_no_room() {
        for (gap_s, room, most) in [(1, 4, 12), (9, 4, 3), (9, 0, 10_000)] {
            let mut kept = Kept::of(gap_s, room);
            (0..10_000).for_each(|ms| kept.packet(Direction::Downlink, S + ms * 1_000_000));
            assert!(kept.looks <= most && (most < 100 || kept.looks == most), "{gap_s} s: {}", kept.looks);
            assert_eq!(kept.active_ms(11 * S) / 100, 100);
        }
    }

    /// What is told in seconds is so many whole ones.
    #[test]
    fn single_packets_count_for_all_of_the_time_behind_them() {
        for gap_s in [1, 2, 3] {
            let mut kept = Kept::of(gap_s, 4);
            for number in 0..20_u64 {
                // Between two ticks.
                let now_ns = (1_000 + number * 5_000) * 1_000_000 + 700_123;
                kept.packet(Direction::Downlink, now_ns);
                let told_ns = now_ns + u64::from(gap_s) * S + 500_000_000;
                assert_eq!(kept.active_ms(told_ns), (number + 1) * u64::from(gap_s) * 1_000);
                kept.ledger.begin_interval(&mut kept.count);
            }
        }
    }

    proptest! {
        /// Whatever comes when, and whoever asks how often.
        #[test]
        fn time_with_traffic_is_right_to_the_tick(
            gap_s in 1..12u32,
            room in 0..2usize,
            packets in prop::collection::vec((any::<bool>(), 0..14_000u64, any::<bool>()), 1..60),
        ) {
            let mut kept = Kept::of(gap_s, room);
            let (mut now_ms, mut exact_ms, mut told_ms) = (1_000, 0, 0);
            for (number, (up, after_ms, asks)) in packets.into_iter().enumerate() {
                // Some come close behind the one before.
                let after_ms = if number % 3 == 0 { after_ms / 100 } else { after_ms };
                exact_ms += if number == 0 { 0 } else { after_ms.min(u64::from(gap_s) * 1_000) };
                now_ms += after_ms;
                let direction = if up { Direction::Uplink } else { Direction::Downlink };
                kept.packet(direction, now_ms * 1_000_000);
                if asks {
                    let active_ms = kept.active_ms(now_ms * 1_000_000);
                    prop_assert!(active_ms >= told_ms, "{active_ms} after {told_ms}");
                    prop_assert!(active_ms.abs_diff(exact_ms) <= 2 * (number as u64 + 1), "{active_ms}, not {exact_ms}");
                    told_ms = active_ms;
                    kept.ledger.begin_interval(&mut kept.count);
                }
            }
            let end_ns = (now_ms + 1_000_000) * 1_000_000;
            let all_ms = exact_ms + u64::from(gap_s) * 1_000;
            prop_assert!(kept.active_ms(end_ns).abs_diff(all_ms) <= 122, "{}, not {all_ms}", kept.active_ms(end_ns));
        }
    }
}

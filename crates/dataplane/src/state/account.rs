//! What a session has used and may still use, as the packet path writes it: one QER's rate and one URR's counts, each direction
//! by itself.

use super::cost::{Cost, PARTS};
use rules::{BitRates, Direction};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// A time, as meters reckon it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    /// Both in [`PARTS`] of a nanosecond.
    now: u64,
    /// How far a packet may be put off and still pass.
    latest: u64,
}

impl Moment {
    /// Packets may be `burst_ns` ahead of their rate.
    pub(crate) const fn new(now_ns: u64, burst_ns: u64) -> Self {
        let latest = now_ns.saturating_add(burst_ns).saturating_mul(PARTS);
        Self { now: now_ns.saturating_mul(PARTS), latest }
    }
}

/// A rate limit one way: the generic cell rate algorithm (ITU-T I.371), which needs one number, the time at which the packets
/// so far would have left at the rate allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    /// In [`PARTS`] of a nanosecond.
    due: u64,
    /// Bytes that passed since nothing had for a second, for who wants to know how many did between two looks: it runs over at
    /// [`Pace::MANY`], which it then has until the next such silence.
    passed: u32,
    cost: Cost,
}

/// Nothing passed in the second before a packet that finds the packets before it done with so long ago, in [`PARTS`] of a nanosecond.
const SILENCE: u64 = 1_000_000_000 * PARTS;

impl Pace {
    /// No limit, nothing used.
    const ZERO: Self = Self { due: 0, passed: 0, cost: Cost::NONE };

    fn new(limit_kbps: u64) -> Self {
        Self { cost: Cost::at(limit_kbps), ..Self::ZERO }
    }

    /// The place of the meter apart that it stands for.
    pub(crate) fn stands_for(self) -> Option<u32> {
        if self.cost == Cost::APART { Some(self.due as u32) } else { None }
    }

    /// The limit; `None` without one.
    pub(crate) const fn limit_kbps(self) -> Option<u64> {
        self.cost.kbps()
    }

    const MANY: u32 = 1 << 31;

    /// Bytes that passed since then, of a number that an earlier [`Pace::passed`] gave, if that was in the same second.
    pub(crate) const fn passed_since(self, earlier: u32) -> u32 {
        self.passed.wrapping_sub(earlier) & !Self::MANY
    }

    /// A number for [`Pace::passed_since`].
    pub(crate) const fn passed(self) -> u32 {
        self.passed & !Self::MANY
    }

    /// Bytes that passed since nothing had for a second; `None` of too many to be counted.
    pub(crate) const fn since_silence(self) -> Option<u32> {
        if self.passed & Self::MANY == 0 { Some(self.passed) } else { None }
    }

    /// Bytes that the rate lets pass in a time.
    pub(crate) fn bytes_in(self, ns: u64) -> u64 {
        self.cost.bytes(ns.saturating_mul(PARTS))
    }

    /// Bytes that passed and that the rate would have kept back for later.
    pub(crate) fn bytes_ahead(self, now_ns: u64) -> u64 {
        self.cost.bytes(self.due.saturating_sub(now_ns.saturating_mul(PARTS)))
    }

    /// Whether so many bytes take no longer than this, with half of what it is ahead now.
    pub(crate) const fn takes_at_most(self, ns: u64, (now_ns, bytes): (u64, u32)) -> bool {
        let ahead = self.due.saturating_sub(now_ns.saturating_mul(PARTS));
        self.cost.of(bytes).saturating_add(ahead / 2) <= ns.saturating_mul(PARTS)
    }

    /// Whether so many bytes take less than this.
    pub(crate) const fn takes_less_than(self, ns: u64, bytes: u32) -> bool {
        self.cost.of(bytes) < ns.saturating_mul(PARTS)
    }

    /// What an octet costs.
    pub(crate) const fn cost(self) -> Cost {
        self.cost
    }

    /// Where it stands if it goes on where `old` did.
    fn due_after(self, old: Self, now_ns: u64) -> u64 {
        let now = now_ns.saturating_mul(PARTS);
        let Some(ahead) = old.due.checked_sub(now) else { return old.due };
        match (old.limit_kbps(), self.limit_kbps()) {
            (_, None) => now,
            (Some(before), Some(limit)) if limit > before => {
                now + (u128::from(ahead) * u128::from(before) / u128::from(limit)) as u64
            }
            _ => old.due,
        }
    }

    /// Whether a packet may pass now, `burst_ns` ahead of the rate at most.
    #[inline]
    pub(crate) fn admits(self, now_ns: u64, burst_ns: u64) -> bool {
        // Where there is no limit any more, what the last one put off is no matter.
        self.cost == Cost::NONE || self.due <= Moment::new(now_ns, burst_ns).latest
    }

    /// A packet passes.
    #[inline]
    pub(crate) fn charge(&mut self, now_ns: u64, bytes: u32) {
        self.put_off(Moment::new(now_ns, 0), bytes);
    }

    /// [`Pace::admits`] and [`Pace::charge`] in one, of a packet that nothing else holds up.
    #[inline(always)]
    pub(crate) fn take(&mut self, moment: Moment, bytes: u32) -> bool {
        let admits = self.due <= moment.latest || self.cost == Cost::NONE;
        if admits {
            self.put_off(moment, bytes);
        }
        admits
    }

    #[inline(always)]
    fn put_off(&mut self, moment: Moment, bytes: u32) {
        let before = if moment.now.saturating_sub(self.due) >= SILENCE { 0 } else { self.passed };
        self.passed = (before & !Self::MANY).wrapping_add(bytes) | before & Self::MANY;
        self.due = self.due.max(moment.now).saturating_add(self.cost.of(bytes));
    }
}

/// A rate limit each way, as a QER has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rate {
    /// By [`Direction`].
    ways: [Pace; 2],
}

impl Rate {
    /// No limit, nothing used.
    pub(crate) const ZERO: Self = Self { ways: [Pace::ZERO; 2] };

    /// Nothing used yet.
    pub(crate) fn new(limit: BitRates) -> Self {
        Self { ways: [Pace::new(limit.uplink_kbps), Pace::new(limit.downlink_kbps)] }
    }

    /// Stands for a meter apart, by its place.
    pub(crate) const fn apart(at: u32) -> Self {
        Self { ways: [Pace { due: at as u64, passed: 0, cost: Cost::APART }; 2] }
    }

    /// The place of the meter apart that it stands for.
    pub(crate) fn stands_for(&self) -> Option<u32> {
        self.ways[0].stands_for()
    }

    /// One way of it.
    #[inline]
    pub(crate) const fn way(&self, direction: Direction) -> Pace {
        self.ways[direction as usize]
    }

    /// The same, to be written to.
    #[inline]
    pub(crate) const fn way_mut(&mut self, direction: Direction) -> &mut Pace {
        &mut self.ways[direction as usize]
    }

    /// Goes on where `old` stood: a modification grants nobody a burst. What is to be waited for is shorter at a higher rate, and
    /// over where there is none: it was reckoned at the old one. What stands for a meter apart is left alone.
    pub(crate) fn carry(&mut self, old: &Self, now_ns: u64) {
        if self.stands_for().is_some() || old.stands_for().is_some() {
            return;
        }
        for (way, old) in self.ways.iter_mut().zip(old.ways) {
            (way.due, way.passed) = (way.due_after(old, now_ns), old.passed);
        }
    }
}

/// What was counted one way. Packets are folded into wider counts before they run over. Without room between it and what stands
/// behind it, where packets find both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub(crate) struct Tally {
    /// And [`Tally::STOPPED`].
    bytes: u64,
    /// Since they were folded last.
    packets: u32,
    /// Bytes until thresholds, quotas and folding must be looked at.
    left: u32,
    /// When the last packet came, in units of 2^[`Count::TICK_SHIFT`] ns.
    last: u32,
}

impl Tally {
    /// Nothing counted yet, and the first packet is to be looked at.
    const ZERO: Self = Self { bytes: 0, packets: 0, left: 0, last: 0 };

    /// In `bytes`, which never reach it: a quota is used up, and whoever is to know has been told.
    const STOPPED: u64 = 1 << 63;

    /// Packets that are folded together: between two looks come fewer, as those that pass unseen have no more than 2^32 bytes, and each
    /// has 20 at least.
    const FOLD: u32 = 1 << 31;

    /// Bytes that may be counted before somebody has to look.
    #[inline(always)]
    pub(crate) const fn left(&self) -> u32 {
        self.left
    }

    /// Whether no packet may pass, and nothing is to be told of those that would.
    #[inline]
    pub(crate) const fn is_used_up(&self) -> bool {
        self.bytes & Self::STOPPED != 0
    }

    /// So many bytes may be counted before somebody has to look.
    const fn allow(&mut self, bytes: u32) {
        self.left = bytes;
        self.bytes &= !Self::STOPPED;
    }

    /// Counts a packet; false, and nothing counted, where it must be looked at first.
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32, now_ns: u64) -> bool {
        self.add_all((1, bytes), now_ns)
    }

    /// The same of packets together.
    #[inline]
    pub(crate) fn add_all(&mut self, (packets, bytes): (u32, u32), now_ns: u64) -> bool {
        let Some(left) = self.left.checked_sub(bytes) else { return false };
        self.left = left;
        self.put((packets, bytes), now_ns);
        true
    }

    /// Counts packets that somebody looks at.
    #[inline(always)]
    fn put(&mut self, (packets, bytes): (u32, u32), now_ns: u64) {
        self.bytes += u64::from(bytes);
        self.packets += packets;
        self.last = (now_ns >> Count::TICK_SHIFT) as u32;
    }
}

/// What a URR has counted, both ways. Each may count so much by itself before somebody has to look that both together do not pass
/// unseen what they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// By [`Direction`].
    ways: [Tally; 2],
    /// Packets of each way that are in its tally no more, in [`Tally::FOLD`].
    folds: [u16; 2],
}

impl Count {
    /// Nothing counted yet, and the first packet is to be looked at.
    pub(crate) const ZERO: Self = Self { ways: [Tally::ZERO; 2], folds: [0; 2] };

    /// Of what there is by [`Direction`].
    pub(super) const fn of(ways: [Tally; 2], folds: [u16; 2]) -> Self {
        Self { ways, folds }
    }

    /// Unit of the time of the last packet: about a millisecond; it runs over after 52 days.
    pub(crate) const TICK_SHIFT: u32 = 20;

    /// By [`Direction`].
    pub(crate) const fn bytes(&self) -> [u64; 2] {
        [self.ways[0].bytes & !Tally::STOPPED, self.ways[1].bytes & !Tally::STOPPED]
    }

    /// By [`Direction`].
    pub(crate) fn packets(&self) -> [u64; 2] {
        let all = |way: usize| {
            u64::from(self.folds[way]) * u64::from(Tally::FOLD) + u64::from(self.ways[way].packets)
        };
        [all(0), all(1)]
    }

    /// Packets that are in the tallies no more.
    pub(super) const fn folds(&self) -> [u16; 2] {
        self.folds
    }

    /// Makes room in the tallies.
    pub(crate) fn fold(&mut self) {
        for (way, folds) in self.ways.iter_mut().zip(&mut self.folds) {
            if way.packets >= Tally::FOLD {
                way.packets -= Tally::FOLD;
                *folds += 1;
            }
        }
    }

    /// Counts a packet; false, and nothing counted, where it must be looked at first.
    #[cfg(test)]
    pub(crate) fn add(&mut self, direction: Direction, bytes: u32, now_ns: u64) -> bool {
        self.ways[direction as usize].add(bytes, now_ns)
    }

    /// Packets that somebody looks at.
    pub(crate) fn put(&mut self, direction: Direction, packets: (u32, u32), now_ns: u64) {
        self.ways[direction as usize].put(packets, now_ns);
    }

    /// A packet did not leave after all. Whether somebody looks earlier than necessary is no matter.
    pub(crate) fn take_back(&mut self, direction: Direction, bytes: u32) {
        if self.ways[direction as usize].is_used_up() {
            self.look_at_next();
        }
        let (way, folds) = (&mut self.ways[direction as usize], &mut self.folds[direction as usize]);
        way.bytes = way.bytes.saturating_sub(bytes.into());
        if let Some(unfolded) = folds.checked_sub(1).filter(|_| way.packets == 0) {
            (way.packets, *folds) = (Tally::FOLD, unfolded);
        }
        way.packets = way.packets.saturating_sub(1);
    }

    /// So many bytes may be counted before somebody has to look; half of them each way, as nobody knows which will come.
    pub(crate) const fn allow(&mut self, bytes: u32) {
        let half = bytes / 2;
        self.ways[0].allow(bytes - half);
        self.ways[1].allow(half);
    }

    /// No packet may pass either way, and none needs a look, until something is allowed again.
    pub(crate) const fn stop(&mut self) {
        self.look_at_next();
        self.ways[0].bytes |= Tally::STOPPED;
        self.ways[1].bytes |= Tally::STOPPED;
    }

    /// The next packet is to be looked at.
    pub(crate) const fn look_at_next(&mut self) {
        self.allow(0);
    }

    /// How long ago the last packet came, if there was any, in ticks.
    pub(crate) fn age(&self, now_ns: u64) -> Option<u32> {
        let now = (now_ns >> Self::TICK_SHIFT) as u32;
        let had = self.ways.iter().zip(self.packets()).filter(|(_, packets)| *packets > 0);
        had.map(|(way, _)| now.wrapping_sub(way.last)).min()
    }
}

/// One QER's rate and one URR's counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub(crate) rate: Rate,
    pub(crate) count: Count,
}

impl Account {
    /// Nothing limited, nothing counted.
    pub(crate) const ZERO: Self = Self { rate: Rate::ZERO, count: Count::ZERO };

    /// Of what there is by [`Direction`].
    pub(super) const fn of(
        [(up, up_tally), (down, down_tally)]: [(Pace, Tally); 2],
        folds: [u16; 2],
    ) -> Self {
        Self { rate: Rate { ways: [up, down] }, count: Count::of([up_tally, down_tally], folds) }
    }

    /// One direction of it.
    pub(super) const fn way(&self, direction: Direction) -> (Pace, Tally) {
        (self.rate.way(direction), self.count.ways[direction as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn a_rate_of_nothing_limits_nothing_in_its_direction() {
        let slow = Rate::new(BitRates { uplink_kbps: 8, downlink_kbps: 8 });
        let mut rate = Rate::new(BitRates { uplink_kbps: 0, downlink_kbps: 8 });
        let mut before = slow;
        before.way_mut(Direction::Uplink).charge(1, 1_500);
        rate.carry(&before, 1);
        for direction in [Direction::Uplink, Direction::Downlink] {
            for _ in 0..10 {
                rate.way_mut(direction).charge(1, 1_500);
            }
        }
        assert!(rate.way(Direction::Uplink).admits(1, 0) && !rate.way(Direction::Downlink).admits(1, 0));
        assert_eq!(
            (rate.way(Direction::Uplink).limit_kbps(), rate.way(Direction::Downlink).limit_kbps()),
            (None, Some(8))
        );
    }

    #[test]
    fn a_packet_is_taken_as_it_is_admitted_and_charged() {
        for kbps in [0, 1, 100, u64::MAX] {
            let mut one = Pace::new(kbps);
            let mut two = one;
            for step in 0..1_000 {
                let (now_ns, bytes) = (step * step * 1_003, 40 + step as u32);
                let admits = one.admits(now_ns, 5_000_000);
                if admits {
                    one.charge(now_ns, bytes);
                }
                let taken = two.take(Moment::new(now_ns, 5_000_000), bytes);
                assert_eq!((taken, one), (admits, two), "{kbps} kbit/s, packet {step}");
            }
        }
    }

    #[test]
    fn a_higher_rate_is_in_force_at_once() {
        const S: u64 = 1_000_000_000;
        let both = |kbps| Rate::new(BitRates { uplink_kbps: kbps, downlink_kbps: kbps });
        let mut slow = both(1);
        // 12 seconds at 1 kbit/s.
        slow.way_mut(Direction::Uplink).charge(0, 1_500);
        assert!(
            !slow.way(Direction::Uplink).admits(11 * S, 0) && slow.way(Direction::Uplink).admits(12 * S, 0)
        );
        let mut fast = both(1_000);
        fast.carry(&slow, 2 * S);
        // The 10 seconds that were left are 10 ms.
        assert!(!fast.way(Direction::Uplink).admits(2 * S + 9_000_000, 0));
        assert!(fast.way(Direction::Uplink).admits(2 * S + 10_000_000, 0));
        // A lower one makes nobody wait for what has passed.
        let mut again = both(1);
        again.carry(&fast, 2 * S);
        assert!(again.way(Direction::Uplink).admits(2 * S + 10_000_000, 0));
        // What had no limit for a time begins anew.
        let mut free = both(0);
        free.carry(&slow, 2 * S);
        let mut limited = both(1);
        limited.carry(&free, 3 * S);
        assert!(limited.way(Direction::Uplink).admits(3 * S, 0));
    }

    #[test]
    fn what_is_stopped_counts_nothing_until_a_packet_is_taken_back() {
        let mut count = Count::ZERO;
        count.allow(200);
        assert!(count.ways[0].add(100, 0) && !count.ways[0].is_used_up());
        count.stop();
        assert!(count.ways.iter().all(Tally::is_used_up) && !count.ways[0].add(20, 0));
        assert_eq!((count.bytes(), count.packets()), ([100, 0], [1, 0]));
        count.take_back(Direction::Uplink, 100);
        assert!(!count.ways.iter().any(Tally::is_used_up), "there is room in the quota again");
        assert_eq!((count.bytes(), count.packets()), ([0, 0], [0, 0]));
    }

    #[test]
    fn packets_are_folded_and_taken_back_one_by_one() {
        let mut count = Count::ZERO;
        for _ in 0..3 {
            count.put(Direction::Downlink, (Tally::FOLD - 1, 1), 0);
            count.fold();
        }
        let all = 3 * u64::from(Tally::FOLD - 1);
        assert_eq!((count.packets(), count.folds()), ([0, all], [0, 2]));
        for taken in 0..4 {
            count.ways[1].packets = 0;
            let before = count.packets()[1];
            count.take_back(Direction::Downlink, 0);
            assert_eq!(count.packets()[1], before.saturating_sub(1), "{taken}");
        }
        assert_eq!(count.folds(), [0, 0]);
    }

    proptest! {
        #[test]
        fn no_more_passes_unseen_than_may(allowed: u32, packets in vec((any::<bool>(), 20..=65_535_u32), 1..200)) {
            let mut count = Count::ZERO;
            count.allow(allowed);
            let mut unseen = 0;
            for (down, bytes) in packets {
                if count.ways[usize::from(down)].add(bytes, 0) {
                    unseen += u64::from(bytes);
                } else {
                    prop_assert!(unseen + u64::from(bytes) > u64::from(allowed / 2), "half of it may pass either way");
                }
            }
            prop_assert!(unseen <= u64::from(allowed));
            prop_assert_eq!(count.bytes().iter().sum::<u64>(), unseen);
        }
    }
}

//! What a URR has counted, and what is to be told of it. Looked at only when a count says so.

use super::account::Count;
use super::active::Active;
use super::asked::{Asked, NEVER};
use super::session::SessionIndex;
use super::watches::Watches;
use dplink::{Start, UsageCause, UsageCounts};
use rules::{Direction, UrrId, Usage};
use std::num::NonZeroU64;

/// Whatever else is told, so many bytes are not counted without a word of them: what nobody was told of is lost where the process
/// dies.
pub(crate) const UNTOLD_MAX: u64 = 1 << UNTOLD_SHIFT;
const UNTOLD_SHIFT: u32 = 24;
/// So many more, as nothing has to be told that exactly, and each look costs.
const UNTOLD_SLACK: u64 = UNTOLD_MAX / 16;

/// One URR of a session in force. What only URRs with limits have is apart: most have none.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) urr: UrrId,
    /// A threshold was crossed again too soon: it waits to be told.
    is_late: bool,
    /// What was told last, in units of [`UNTOLD_MAX`]; it runs over.
    told_units: u16,
    /// `None` where nothing is to be told before somebody asks.
    asked: Option<Box<Asked>>,
    /// Of the first packet since counts were told last.
    first_ns: Option<NonZeroU64>,
}

/// What came of a look at a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) start: bool,
    pub(crate) threshold: bool,
    pub(crate) quota: bool,
    /// Nobody has asked for that, and whatever else is due tells it, too.
    pub(crate) untold: bool,
}

impl Due {
    /// Why to tell, the most urgent last.
    pub(crate) fn causes(self, start: Option<Start>) -> impl Iterator<Item = UsageCause> {
        let all = [
            (self.start, UsageCause::StartOfTraffic(start)),
            (self.threshold, UsageCause::VolumeThreshold),
            (self.quota, UsageCause::VolumeQuota),
        ];
        all.into_iter().filter_map(|(due, cause)| due.then_some(cause))
    }
}

impl Ledger {
    /// What it is to tell or hold takes so many bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.asked.as_ref().map_or(0, |asked| asked.heap_bytes())
    }

    /// Nothing counted yet.
    pub(crate) fn new(usage: &Usage) -> Self {
        let asked = Asked::new(usage);
        Self { urr: usage.urr, is_late: false, told_units: 0, asked, first_ns: None }
    }

    /// Goes on where `old` stood.
    pub(crate) fn carry(&mut self, old: &Self, count: &Count, now_ns: u64) {
        let times = (now_ns, old.last_ns(count, now_ns));
        (self.told_units, self.first_ns) = (old.told_units, old.first_ns);
        match (&mut self.asked, &old.asked) {
            (Some(asked), Some(old)) => asked.carry(old, count, times),
            (Some(asked), None) => asked.begin(count, times),
            (None, _) => {}
        }
    }

    /// Whether it is true of what was asked for.
    fn asks(&self, is_it: impl FnOnce(&Asked) -> bool) -> bool {
        self.asked.as_deref().is_some_and(is_it)
    }

    /// Whether the quota lets no packet pass.
    pub(crate) fn is_used_up(&self, count: &Count) -> bool {
        self.asks(|asked| asked.is_used_up(count))
    }

    /// What is due with a packet that is not counted, as there is no quota for it.
    pub(crate) fn missed(&self, count: &Count) -> Due {
        Due { start: self.asks(Asked::is_start_due), quota: self.is_end_untold(count), ..Due::default() }
    }

    /// Whether the quota is used up, and nobody was told.
    fn is_end_untold(&self, count: &Count) -> bool {
        self.asks(|asked| asked.is_quota_due(count))
    }

    /// Counts packets, as packets and bytes, whose count wanted a look. What is due has to be told, and [`Ledger::told`] be called.
    pub(crate) fn count(
        &mut self,
        count: &mut Count,
        (direction, packets): (Direction, (u32, u32)),
        now_ns: u64,
    ) -> Due {
        count.fold();
        let last_ns = self.last_ns(count, now_ns);
        self.active_mut().into_iter().for_each(|active| active.pass(now_ns, last_ns));
        count.put(direction, packets, now_ns);
        self.first_ns.get_or_insert(NonZeroU64::new(now_ns).unwrap_or(NonZeroU64::MIN));
        let due = Due {
            start: self.asks(Asked::is_start_due),
            threshold: !self.is_late && self.asks(|asked| asked.is_threshold_due(count)),
            quota: self.is_end_untold(count),
            untold: self.told_units != units(count),
        };
        count.allow(self.left(count));
        due
    }

    /// Where the time without packets is measured, they may pass without a look for a while.
    pub(crate) fn let_pass(
        &mut self,
        count: &mut Count,
        (at, watches): ((SessionIndex, u16), &mut Watches),
        now_ns: u64,
    ) {
        if let Some(active) = self.active_mut() {
            active.let_pass(at, watches, now_ns);
            count.allow(self.left(count));
        }
    }

    /// The next packet is looked at, where they passed without one until then, or `None` whenever that was to be.
    pub(crate) fn look_again(&mut self, count: &mut Count, until_ns: Option<u64>, now_ns: u64) {
        let last_ns = self.last_ns(count, now_ns);
        if self.active_mut().is_some_and(|active| active.look_again(until_ns, last_ns)) {
            count.look_at_next();
        }
    }

    fn active_mut(&mut self) -> Option<&mut Active> {
        self.asked.as_mut()?.active.as_deref_mut()
    }

    /// When the last packet was counted: of one and the same, it is the same whenever it is asked.
    fn last_ns(&self, count: &Count, now_ns: u64) -> Option<u64> {
        let age = count.age(now_ns)?;
        Some((now_ns >> Count::TICK_SHIFT).saturating_sub(age.into()) << Count::TICK_SHIFT)
    }

    /// Whether a cause has to wait, because its like was told just before: tiny thresholds are crossed by every packet.
    pub(crate) fn has_to_wait(&self, cause: UsageCause, now_ns: u64) -> bool {
        matches!(cause, UsageCause::VolumeThreshold | UsageCause::DroppedDownlink)
            && self.asks(|asked| asked.has_just_told(now_ns))
    }

    /// A crossed threshold waits to be told; until then nobody looks for it. Whether it did so before.
    pub(crate) fn wait(&mut self, count: &mut Count) -> bool {
        let before = std::mem::replace(&mut self.is_late, true);
        count.allow(self.left(count));
        before
    }

    /// Whether a crossed threshold waits to be told.
    pub(crate) const fn is_late(&self) -> bool {
        self.is_late
    }

    /// The thresholds that have waited to be told; they do no longer.
    pub(crate) fn take_late(&mut self, count: &mut Count) -> impl Iterator<Item = UsageCause> + use<> {
        let is_late = std::mem::take(&mut self.is_late);
        count.look_at_next();
        let volume = is_late && self.asks(|asked| asked.is_threshold_due(count));
        let dropped = is_late && self.asks(Asked::is_dropped_due);
        let all = [(volume, UsageCause::VolumeThreshold), (dropped, UsageCause::DroppedDownlink)];
        all.into_iter().filter_map(|(due, cause)| due.then_some(cause))
    }

    /// Counts a packet to the user that was dropped, where that is of interest; whether it is to be told now.
    pub(crate) fn drop_downlink(&mut self, bytes: u32) -> bool {
        let is_due = self.asked.as_mut().is_some_and(|asked| asked.drop_downlink(bytes));
        is_due && !self.is_late
    }

    /// A cause has been told: thresholds begin anew.
    pub(crate) fn told(&mut self, count: &mut Count, cause: UsageCause, now_ns: u64) {
        self.begin_interval(count);
        if self.asked.as_mut().is_none_or(|asked| asked.told(cause, now_ns)) {
            self.reported(count);
        }
    }

    /// Whether packets have come since the counts were told.
    pub(crate) const fn has_counted(&self) -> bool {
        self.first_ns.is_some()
    }

    /// The counts have been told: the next packet is looked at, for it is the first since then (TS 29.244 8.2.46).
    pub(crate) fn begin_interval(&mut self, count: &mut Count) {
        (self.first_ns, self.told_units) = (None, units(count));
        count.look_at_next();
    }

    /// Who was told of the start, or of the quota's end, may not have heard: the next packet is looked at.
    pub(crate) fn await_start(&mut self, count: &mut Count) {
        if let Some(asked) = &mut self.asked {
            asked.await_start();
            count.look_at_next();
        }
    }

    /// There was no room to tell of what nobody has asked for. As long as nobody hears, a look at each packet would cost more than it could
    /// tell.
    pub(crate) fn put_off(&self, count: &mut Count) {
        count.allow(self.left(count).min(UNTOLD_SLACK as u32));
    }

    /// The counts are reported: thresholds begin anew.
    pub(crate) fn reported(&mut self, count: &mut Count) {
        if let Some(asked) = &mut self.asked {
            asked.begin_threshold(count);
        }
        self.is_late = false;
        count.allow(self.left(count));
    }

    /// The counts as they are told.
    pub(crate) fn counts(&self, count: &Count, now_ns: u64) -> UsageCounts {
        let [dropped_packets, dropped_bytes] = self.asked.as_ref().map_or([0; 2], |asked| asked.dropped());
        let age_ms = |first: NonZeroU64| now_ns.saturating_sub(first.get()) / 1_000_000;
        let active = self.asked.as_ref().and_then(|asked| asked.active.as_ref());
        let active_ns = active.map(|active| active.total_ns(now_ns, self.last_ns(count, now_ns)));
        UsageCounts {
            dropped_downlink_packets: dropped_packets,
            dropped_downlink_bytes: dropped_bytes,
            first_packet_age_ms: self.first_ns.map(age_ms),
            active_ms: active_ns.map(|active_ns| active_ns / 1_000_000),
            quota_grant: self.asked.as_ref().map_or(0, |asked| asked.grant()),
            ..counted(self.urr, count, now_ns)
        }
    }

    /// Bytes that may be counted before the next look: the first packet is to be looked at.
    fn left(&self, count: &Count) -> u32 {
        if self.first_ns.is_none() || self.asks(Asked::looks_at_all) {
            return 0;
        }
        let nearest = self.asked.as_ref().map_or(NEVER, |asked| asked.left(count, !self.is_late));
        let nearest = nearest.min(untold_left(count));
        // The packet that reaches a mark is to be looked at, so one octet less may pass.
        u32::try_from(nearest.saturating_sub(1)).unwrap_or(u32::MAX)
    }
}

/// What a count alone can tell of a URR.
pub(super) fn counted(urr: UrrId, count: &Count, now_ns: u64) -> UsageCounts {
    let [uplink_bytes, downlink_bytes] = count.bytes();
    let [uplink_packets, downlink_packets] = count.packets();
    let last_age = count.age(now_ns);
    UsageCounts {
        urr,
        uplink_bytes,
        downlink_bytes,
        uplink_packets,
        downlink_packets,
        dropped_downlink_packets: 0,
        dropped_downlink_bytes: 0,
        first_packet_age_ms: None,
        last_packet_age_ms: last_age.map(|ticks| (u64::from(ticks) << Count::TICK_SHIFT) / 1_000_000),
        active_ms: None,
        quota_grant: 0,
    }
}

/// What was counted, in units of [`UNTOLD_MAX`]; it runs over.
fn units(count: &Count) -> u16 {
    let [uplink, downlink] = count.bytes();
    ((uplink + downlink) >> UNTOLD_SHIFT) as u16
}

/// Bytes until the next unit, or a little more.
fn untold_left(count: &Count) -> u64 {
    let [uplink, downlink] = count.bytes();
    (UNTOLD_MAX - (uplink + downlink) % UNTOLD_MAX).max(UNTOLD_SLACK)
}

/// A URR that nobody asks about.
#[cfg(test)]
pub(super) const UNASKED: Usage = {
    let none = rules::Volume { total: None, uplink: None, downlink: None };
    let start = rules::Since { uplink: 0, downlink: 0 };
    Usage {
        urr: UrrId(1),
        threshold: none,
        threshold_since: start,
        quota: none,
        quota_since: None,
        quota_grant: 0,
        dropped_downlink: rules::DroppedDownlink { packets: None, bytes: None },
        start_of_traffic: None,
        before_qos: false,
        inactivity_detection_s: None,
        inactive: false,
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    fn unasked() -> Ledger {
        Ledger::new(&UNASKED)
    }

    /// Packets both ways.
    fn packet(number: u32) -> (Direction, u32) {
        (if number.is_multiple_of(5) { Direction::Uplink } else { Direction::Downlink }, 1_400)
    }

    #[test]
    fn what_is_told_of_unasked_is_never_far_behind_and_seldom_looked_at() {
        let mut ledger = unasked();
        let mut count = Count::ZERO;
        let (mut looks, mut told, mut all) = (0, vec![0], 0);
        for number in 0..100_000 {
            let (direction, bytes) = packet(number);
            all += u64::from(bytes);
            if !count.add(direction, bytes, 1) {
                looks += 1;
                let due = ledger.count(&mut count, (direction, (1, bytes)), 1);
                assert_eq!(due, Due { untold: due.untold, ..Due::default() });
                if due.untold {
                    told.push(all);
                    ledger.begin_interval(&mut count);
                }
            }
            assert!(all - told[told.len() - 1] <= UNTOLD_MAX + UNTOLD_SLACK, "{number}");
        }
        assert_eq!(told.len() as u64 - 1, all / UNTOLD_MAX);
        assert!(looks < 12 * told.len(), "{looks} looks, told {} times", told.len());
    }

    #[test]
    fn what_nobody_hears_of_is_seldom_looked_at() {
        let (mut ledger, mut count) = (unasked(), Count::ZERO);
        let (mut looks, mut all) = (0, 0);
        for number in 0..100_000 {
            let (direction, bytes) = packet(number);
            all += u64::from(bytes);
            if !count.add(direction, bytes, 1) {
                looks += 1;
                if ledger.count(&mut count, (direction, (1, bytes)), 1).untold {
                    ledger.put_off(&mut count);
                }
            }
        }
        assert!(looks > 16 && looks < 3 * all / UNTOLD_SLACK, "{looks} looks at {all} bytes");
        assert_eq!(count.bytes().iter().sum::<u64>(), all);
    }
}

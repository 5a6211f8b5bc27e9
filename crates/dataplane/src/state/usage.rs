//! What a URR's counts mean: thresholds to tell of, quotas to hold. Looked at only when a count says so.

use super::account::Count;
use dplink::{UsageCause, UsageCounts};
use rules::{Direction, DroppedDownlink, UrrId, Usage, Volume};

/// Packets and bytes.
type Dropped = [u64; 2];

/// Limits on total, uplink and downlink bytes, as the counts then read.
type Marks = [u64; 3];

/// Between two notices of one URR's threshold.
pub(crate) const NOTICE_GAP_NS: u64 = 100_000_000;
/// Beyond every count.
const NEVER: u64 = u64::MAX;

/// One URR of a session in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ledger {
    pub(crate) urr: UrrId,
    threshold: Volume,
    /// Where the threshold is crossed next.
    thresholds: Marks,
    quota: Volume,
    /// Where the quota is used up.
    quotas: Marks,
    grant: u32,
    start_of_traffic: bool,
    quota_told: bool,
    dropped_threshold: DroppedDownlink,
    /// Packets and bytes that were dropped on their way to the user.
    dropped: Dropped,
    /// Where this threshold is crossed next.
    dropped_mark: Dropped,
    /// When a threshold was told last.
    told_ns: Option<u64>,
    /// A threshold was crossed again too soon: it waits to be told.
    is_late: bool,
    /// Packets folded out of the count, by [`Direction`].
    packets: [u64; 2],
    first_ns: Option<u64>,
}

/// What came of a look at a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) start: bool,
    pub(crate) threshold: bool,
    pub(crate) quota: bool,
}

impl Due {
    /// Why to tell, the most urgent last.
    pub(crate) fn causes(self) -> impl Iterator<Item = UsageCause> {
        let all = [
            (self.start, UsageCause::StartOfTraffic),
            (self.threshold, UsageCause::VolumeThreshold),
            (self.quota, UsageCause::VolumeQuota),
        ];
        all.into_iter().filter_map(|(due, cause)| due.then_some(cause))
    }
}

impl Ledger {
    /// Nothing counted yet.
    pub(crate) fn new(usage: &Usage) -> Self {
        let zero = Count::default();
        let quotas = marks(usage.quota, &zero);
        Self {
            urr: usage.urr,
            threshold: usage.threshold,
            thresholds: marks(usage.threshold, &zero),
            quota: usage.quota,
            quotas,
            grant: usage.quota_grant,
            start_of_traffic: usage.start_of_traffic,
            // A quota of nothing was never used up: whoever gave it knows.
            quota_told: reached(&quotas, &zero),
            dropped_threshold: usage.dropped_downlink,
            dropped: [0; 2],
            dropped_mark: dropped_mark(usage.dropped_downlink, [0; 2]),
            told_ns: None,
            is_late: false,
            packets: [0; 2],
            first_ns: None,
        }
    }

    /// Goes on where `old` stood; a changed threshold, or another quota, counts from now.
    pub(crate) fn carry(&mut self, old: &Self, count: &Count) {
        self.told_ns = old.told_ns;
        self.dropped = old.dropped;
        let same = self.dropped_threshold == old.dropped_threshold;
        self.dropped_mark =
            if same { old.dropped_mark } else { dropped_mark(self.dropped_threshold, self.dropped) };
        self.packets = old.packets;
        self.first_ns = old.first_ns;
        let same = self.threshold == old.threshold;
        self.thresholds = if same { old.thresholds } else { marks(self.threshold, count) };
        let same = self.grant == old.grant && self.quota == old.quota;
        self.quotas = if same { old.quotas } else { marks(self.quota, count) };
        self.quota_told = if same { old.quota_told } else { reached(&self.quotas, count) };
    }

    /// Whether the quota lets no packet pass.
    pub(crate) fn is_used_up(&self, count: &Count) -> bool {
        reached(&self.quotas, count)
    }

    /// Whether the quota is used up, and nobody was told for want of room.
    pub(crate) fn is_end_untold(&self, count: &Count) -> bool {
        !self.quota_told && self.is_used_up(count)
    }

    /// Counts a packet whose count wanted a look. What is due has to be told, and [`Ledger::told`] be called.
    pub(crate) fn count(&mut self, count: &mut Count, packet: (Direction, u32), now_ns: u64) -> Due {
        let (direction, bytes) = packet;
        self.fold(count);
        count.left = bytes;
        let added = count.add(direction, bytes, now_ns);
        debug_assert!(added, "there is room for just this packet");
        let first = self.first_ns.is_none();
        self.first_ns.get_or_insert(now_ns);
        let due = Due {
            start: first && self.start_of_traffic,
            threshold: !self.is_late && reached(&self.thresholds, count),
            quota: !self.quota_told && reached(&self.quotas, count),
        };
        count.left = self.left(count);
        due
    }

    /// Whether a cause has to wait, because its like was told just before: tiny thresholds are crossed by every packet.
    pub(crate) fn has_to_wait(&self, cause: UsageCause, now_ns: u64) -> bool {
        let is_soon = self.told_ns.is_some_and(|told_ns| now_ns.saturating_sub(told_ns) < NOTICE_GAP_NS);
        matches!(cause, UsageCause::VolumeThreshold | UsageCause::DroppedDownlink) && is_soon
    }

    /// A crossed threshold waits to be told; until then nobody looks for it. Whether it did so before.
    pub(crate) fn wait(&mut self, count: &mut Count) -> bool {
        let before = std::mem::replace(&mut self.is_late, true);
        count.left = self.left(count);
        before
    }

    /// The thresholds that have waited to be told; they do no longer.
    pub(crate) fn take_late(&mut self, count: &mut Count) -> impl Iterator<Item = UsageCause> + use<> {
        let is_late = std::mem::take(&mut self.is_late);
        count.left = 0;
        let volume = is_late && reached(&self.thresholds, count);
        let dropped = is_late && self.is_dropped_due();
        let all = [(volume, UsageCause::VolumeThreshold), (dropped, UsageCause::DroppedDownlink)];
        all.into_iter().filter_map(|(due, cause)| due.then_some(cause))
    }

    /// Counts a packet to the user that was dropped, where that is of interest; whether it is to be told now.
    pub(crate) fn drop_downlink(&mut self, bytes: u32) -> bool {
        if self.dropped_threshold == DroppedDownlink::default() {
            return false;
        }
        self.dropped = [self.dropped[0] + 1, self.dropped[1] + u64::from(bytes)];
        !self.is_late && self.is_dropped_due()
    }

    fn is_dropped_due(&self) -> bool {
        self.dropped.iter().zip(&self.dropped_mark).any(|(dropped, mark)| dropped >= mark)
    }

    /// A cause has been told: thresholds begin anew.
    pub(crate) fn told(&mut self, count: &mut Count, cause: UsageCause, now_ns: u64) {
        match cause {
            UsageCause::VolumeThreshold => self.told_ns = Some(now_ns),
            UsageCause::DroppedDownlink => {
                self.told_ns = Some(now_ns);
                self.dropped_mark = dropped_mark(self.dropped_threshold, self.dropped);
                // Volumes have a threshold of their own.
                return;
            }
            _ => {}
        }
        self.quota_told |= cause == UsageCause::VolumeQuota;
        match cause {
            UsageCause::StartOfTraffic => {}
            _ => self.reported(count),
        }
    }

    /// The counts have been told: thresholds begin anew.
    pub(crate) fn reported(&mut self, count: &mut Count) {
        self.thresholds = marks(self.threshold, count);
        self.is_late = false;
        count.left = if self.first_ns.is_some() { self.left(count) } else { 0 };
    }

    /// The counts as they are told.
    pub(crate) fn counts(&self, count: &Count, now_ns: u64) -> UsageCounts {
        let packets = |direction: usize| self.packets[direction] + u64::from(count.packets[direction]);
        let now_tick = (now_ns >> Count::TICK_SHIFT) as u32;
        let age_ms = |first: u64| now_ns.saturating_sub(first) / 1_000_000;
        let last_age_ms = (u64::from(now_tick.wrapping_sub(count.last)) << Count::TICK_SHIFT) / 1_000_000;
        UsageCounts {
            urr: self.urr,
            uplink_bytes: count.bytes[0],
            downlink_bytes: count.bytes[1],
            uplink_packets: packets(0),
            downlink_packets: packets(1),
            dropped_downlink_packets: self.dropped[0],
            dropped_downlink_bytes: self.dropped[1],
            first_packet_age_ms: self.first_ns.map(age_ms),
            last_packet_age_ms: self.first_ns.map(|_| last_age_ms),
        }
    }

    fn fold(&mut self, count: &mut Count) {
        for (folded, packets) in self.packets.iter_mut().zip(&mut count.packets) {
            *folded += u64::from(std::mem::take(packets));
        }
    }

    /// Bytes that may be counted before the next look; folding alone asks for one in every 4 GiB.
    fn left(&self, count: &Count) -> u32 {
        let totals = totals(count);
        let thresholds = if self.is_late { &[NEVER; 3] } else { &self.thresholds };
        let marks = thresholds.iter().chain(&self.quotas).zip(totals.iter().cycle());
        let nearest = marks.map(|(mark, total)| mark.saturating_sub(*total)).min().unwrap_or(NEVER);
        // The packet that reaches a mark is to be looked at, so one octet less may pass.
        u32::try_from(nearest.saturating_sub(1)).unwrap_or(u32::MAX)
    }
}

const fn totals(count: &Count) -> [u64; 3] {
    [count.bytes[0] + count.bytes[1], count.bytes[0], count.bytes[1]]
}

/// Limits as counts will read when so much more has been used.
fn marks(volume: Volume, from: &Count) -> Marks {
    let [total, up, down] = totals(from);
    let mark = |limit: Option<u64>, from: u64| limit.map_or(NEVER, |limit| from.saturating_add(limit));
    [mark(volume.total, total), mark(volume.uplink, up), mark(volume.downlink, down)]
}

/// Where the threshold of what is dropped will be crossed.
fn dropped_mark(threshold: DroppedDownlink, from: Dropped) -> Dropped {
    let mark = |limit: Option<u64>, from: u64| limit.map_or(NEVER, |limit| from.saturating_add(limit));
    [mark(threshold.packets, from[0]), mark(threshold.bytes, from[1])]
}

fn reached(marks: &Marks, count: &Count) -> bool {
    totals(count).iter().zip(marks).any(|(total, mark)| total >= mark)
}

//! What a URR's counts mean: thresholds to tell of, quotas to hold. Looked at only when a count says so.

use super::account::Count;
use dplink::{Start, UsageCause, UsageCounts};
use rules::{Direction, DroppedDownlink, UrrId, Usage, Volume};
use std::num::{NonZeroU32, NonZeroU64};

/// Packets and bytes.
type Dropped = [u64; 2];

/// Limits on total, uplink and downlink bytes; [`NEVER`] for none.
type Limits = [u64; 3];
/// The same, as the counts then read.
type Marks = [u64; 3];

/// Between two notices of one URR's thresholds, in ticks: about a tenth of a second.
const NOTICE_GAP: u32 = 100_000_000 >> Count::TICK_SHIFT;
/// Beyond every count.
const NEVER: u64 = u64::MAX;

/// One URR of a session in force.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) urr: UrrId,
    /// `None` without a threshold.
    threshold: Option<Box<Bound>>,
    /// `None` without a quota.
    quota: Option<Box<Bound>>,
    grant: u32,
    /// Which start of traffic is waited for, if any.
    awaited: Option<u32>,
    start_told: bool,
    quota_told: bool,
    /// A threshold was crossed again too soon: it waits to be told.
    is_late: bool,
    /// When a threshold was told last, in the ticks of [`Count::last`].
    told: Option<NonZeroU32>,
    /// Where somebody wants to hear of what is dropped: few.
    drops: Option<Box<Drops>>,
    /// Packets folded out of the count, by [`Direction`].
    packets: [u64; 2],
    /// Of the first packet since counts were told last.
    first_ns: Option<NonZeroU64>,
}

/// Limits that count from some time on. By itself: most URRs have one kind or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound {
    limits: Limits,
    /// Where they are reached next.
    marks: Marks,
}

impl Bound {
    /// From now on; `None` where nothing is limited.
    fn new(volume: Volume) -> Option<Box<Self>> {
        let limits = [volume.total, volume.uplink, volume.downlink].map(|limit| limit.unwrap_or(NEVER));
        let is_any = volume != Volume::default();
        is_any.then(|| Box::new(Self { limits, marks: marks(limits, &Count::default()) }))
    }

    /// Counts from here.
    fn begin(&mut self, count: &Count) {
        self.marks = marks(self.limits, count);
    }

    fn is_reached(&self, count: &Count) -> bool {
        totals(count).iter().zip(&self.marks).any(|(total, mark)| total >= mark)
    }

    /// Bytes until then.
    fn left(&self, count: &Count) -> u64 {
        let left = self.marks.iter().zip(totals(count)).map(|(mark, total)| mark.saturating_sub(total));
        left.min().unwrap_or(NEVER)
    }
}

/// Goes on where `old` stood if it is `same`, which means that both have the same limits; otherwise from here.
fn carry(bound: &mut Option<Box<Bound>>, old: &Option<Box<Bound>>, count: &Count, same: bool) {
    match (bound, old) {
        (Some(bound), Some(old)) if same => bound.marks = old.marks,
        (Some(bound), _) => bound.begin(count),
        (None, _) => {}
    }
}

fn is_reached(bound: &Option<Box<Bound>>, count: &Count) -> bool {
    bound.as_ref().is_some_and(|bound| bound.is_reached(count))
}

fn limits(bound: &Option<Box<Bound>>) -> Option<Limits> {
    bound.as_ref().map(|bound| bound.limits)
}

/// What was dropped on its way to the user.
#[derive(Debug)]
struct Drops {
    threshold: DroppedDownlink,
    so_far: Dropped,
    /// Where the threshold is crossed next.
    mark: Dropped,
}

impl Drops {
    fn new(threshold: DroppedDownlink) -> Option<Box<Self>> {
        let is_asked_for = threshold != DroppedDownlink::default();
        is_asked_for
            .then(|| Box::new(Self { threshold, so_far: [0; 2], mark: dropped_mark(threshold, [0; 2]) }))
    }

    fn carry(&mut self, old: &Self) {
        self.so_far = old.so_far;
        let same = self.threshold == old.threshold;
        self.mark = if same { old.mark } else { dropped_mark(self.threshold, self.so_far) };
    }

    fn is_due(&self) -> bool {
        self.so_far.iter().zip(&self.mark).any(|(dropped, mark)| dropped >= mark)
    }
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
    /// Nothing counted yet.
    pub(crate) fn new(usage: &Usage) -> Self {
        let quota = Bound::new(usage.quota);
        Self {
            urr: usage.urr,
            threshold: Bound::new(usage.threshold),
            // A quota of nothing was never used up: whoever gave it knows.
            quota_told: is_reached(&quota, &Count::default()),
            quota,
            grant: usage.quota_grant,
            awaited: usage.start_of_traffic,
            start_told: false,
            is_late: false,
            told: None,
            drops: Drops::new(usage.dropped_downlink),
            packets: [0; 2],
            first_ns: None,
        }
    }

    /// Goes on where `old` stood; a changed threshold, or another quota, counts from now.
    pub(crate) fn carry(&mut self, old: &Self, count: &Count) {
        self.told = old.told;
        if let (Some(drops), Some(old)) = (&mut self.drops, &old.drops) {
            drops.carry(old);
        }
        self.start_told = old.start_told && old.awaited == self.awaited;
        self.packets = old.packets;
        self.first_ns = old.first_ns;
        let same = limits(&self.threshold) == limits(&old.threshold);
        carry(&mut self.threshold, &old.threshold, count, same);
        let same = self.grant == old.grant && limits(&self.quota) == limits(&old.quota);
        carry(&mut self.quota, &old.quota, count, same);
        self.quota_told = if same { old.quota_told } else { is_reached(&self.quota, count) };
    }

    /// Whether the quota lets no packet pass.
    pub(crate) fn is_used_up(&self, count: &Count) -> bool {
        is_reached(&self.quota, count)
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
        self.first_ns.get_or_insert(NonZeroU64::new(now_ns).unwrap_or(NonZeroU64::MIN));
        let due = Due {
            start: self.awaited.is_some() && !self.start_told,
            threshold: !self.is_late && is_reached(&self.threshold, count),
            quota: !self.quota_told && is_reached(&self.quota, count),
        };
        count.left = self.left(count);
        due
    }

    /// Whether a cause has to wait, because its like was told just before: tiny thresholds are crossed by every packet.
    pub(crate) fn has_to_wait(&self, cause: UsageCause, now_ns: u64) -> bool {
        let since = |told: NonZeroU32| tick(now_ns).get().wrapping_sub(told.get());
        let is_soon = self.told.is_some_and(|told| since(told) < NOTICE_GAP);
        matches!(cause, UsageCause::VolumeThreshold | UsageCause::DroppedDownlink) && is_soon
    }

    /// A crossed threshold waits to be told; until then nobody looks for it. Whether it did so before.
    pub(crate) fn wait(&mut self, count: &mut Count) -> bool {
        let before = std::mem::replace(&mut self.is_late, true);
        count.left = self.left(count);
        before
    }

    /// Whether a crossed threshold waits to be told.
    pub(crate) const fn is_late(&self) -> bool {
        self.is_late
    }

    /// The thresholds that have waited to be told; they do no longer.
    pub(crate) fn take_late(&mut self, count: &mut Count) -> impl Iterator<Item = UsageCause> + use<> {
        let is_late = std::mem::take(&mut self.is_late);
        count.left = 0;
        let volume = is_late && is_reached(&self.threshold, count);
        let dropped = is_late && self.is_dropped_due();
        let all = [(volume, UsageCause::VolumeThreshold), (dropped, UsageCause::DroppedDownlink)];
        all.into_iter().filter_map(|(due, cause)| due.then_some(cause))
    }

    /// Counts a packet to the user that was dropped, where that is of interest; whether it is to be told now.
    pub(crate) fn drop_downlink(&mut self, bytes: u32) -> bool {
        let Some(drops) = &mut self.drops else { return false };
        drops.so_far = [drops.so_far[0] + 1, drops.so_far[1] + u64::from(bytes)];
        !self.is_late && drops.is_due()
    }

    fn is_dropped_due(&self) -> bool {
        self.drops.as_ref().is_some_and(|drops| drops.is_due())
    }

    /// A cause has been told: thresholds begin anew.
    pub(crate) fn told(&mut self, count: &mut Count, cause: UsageCause, now_ns: u64) {
        self.begin_interval(count);
        match cause {
            UsageCause::VolumeThreshold => self.told = Some(tick(now_ns)),
            UsageCause::DroppedDownlink => {
                self.told = Some(tick(now_ns));
                if let Some(drops) = &mut self.drops {
                    drops.mark = dropped_mark(drops.threshold, drops.so_far);
                }
                // Volumes have a threshold of their own.
                return;
            }
            _ => {}
        }
        self.quota_told |= cause == UsageCause::VolumeQuota;
        match cause {
            UsageCause::StartOfTraffic(_) => self.start_told = true,
            _ => self.reported(count),
        }
    }

    /// The counts have been told: the next packet is looked at, for it is the first since then (TS 29.244 8.2.46).
    pub(crate) const fn begin_interval(&mut self, count: &mut Count) {
        self.first_ns = None;
        count.left = 0;
    }

    /// Who was told of the start may not have heard: the next packet is looked at.
    pub(crate) fn await_start(&mut self, count: &mut Count) {
        if self.awaited.is_some() && std::mem::take(&mut self.start_told) {
            count.left = 0;
        }
    }

    /// The counts are reported: thresholds begin anew.
    pub(crate) fn reported(&mut self, count: &mut Count) {
        if let Some(threshold) = &mut self.threshold {
            threshold.begin(count);
        }
        self.is_late = false;
        count.left = self.left(count);
    }

    /// The counts as they are told.
    pub(crate) fn counts(&self, count: &Count, now_ns: u64) -> UsageCounts {
        let [dropped_packets, dropped_bytes] = self.drops.as_ref().map_or([0; 2], |drops| drops.so_far);
        let packets = |direction: usize| self.packets[direction] + u64::from(count.packets[direction]);
        let now_tick = (now_ns >> Count::TICK_SHIFT) as u32;
        let age_ms = |first: NonZeroU64| now_ns.saturating_sub(first.get()) / 1_000_000;
        let last_age_ms = (u64::from(now_tick.wrapping_sub(count.last)) << Count::TICK_SHIFT) / 1_000_000;
        let (uplink_packets, downlink_packets) = (packets(0), packets(1));
        UsageCounts {
            urr: self.urr,
            uplink_bytes: count.bytes[0],
            downlink_bytes: count.bytes[1],
            uplink_packets,
            downlink_packets,
            dropped_downlink_packets: dropped_packets,
            dropped_downlink_bytes: dropped_bytes,
            first_packet_age_ms: self.first_ns.map(age_ms),
            last_packet_age_ms: (uplink_packets + downlink_packets > 0).then_some(last_age_ms),
        }
    }

    fn fold(&mut self, count: &mut Count) {
        for (folded, packets) in self.packets.iter_mut().zip(&mut count.packets) {
            *folded += u64::from(std::mem::take(packets));
        }
    }

    /// Bytes that may be counted before the next look: the first packet is to be looked at, and folding alone asks for one in every 4 GiB.
    fn left(&self, count: &Count) -> u32 {
        if self.first_ns.is_none() {
            return 0;
        }
        let threshold = self.threshold.as_ref().filter(|_| !self.is_late);
        let bounds = threshold.into_iter().chain(&self.quota);
        let nearest = bounds.map(|bound| bound.left(count)).min().unwrap_or(NEVER);
        // The packet that reaches a mark is to be looked at, so one octet less may pass.
        u32::try_from(nearest.saturating_sub(1)).unwrap_or(u32::MAX)
    }
}

/// Ticks run over after 52 days; then a notice may come a tenth of a second late.
fn tick(now_ns: u64) -> NonZeroU32 {
    NonZeroU32::new((now_ns >> Count::TICK_SHIFT) as u32).unwrap_or(NonZeroU32::MIN)
}

const fn totals(count: &Count) -> [u64; 3] {
    [count.bytes[0] + count.bytes[1], count.bytes[0], count.bytes[1]]
}

/// Limits as counts will read when so much more has been used.
fn marks(limits: Limits, from: &Count) -> Marks {
    let totals = totals(from);
    std::array::from_fn(|at| totals[at].saturating_add(limits[at]))
}

/// Where the threshold of what is dropped will be crossed.
fn dropped_mark(threshold: DroppedDownlink, from: Dropped) -> Dropped {
    let mark = |limit: Option<u64>, from: u64| limit.map_or(NEVER, |limit| from.saturating_add(limit));
    [mark(threshold.packets, from[0]), mark(threshold.bytes, from[1])]
}

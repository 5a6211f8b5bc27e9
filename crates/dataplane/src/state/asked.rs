//! What URRs with limits have besides their counts: thresholds to tell of, quotas to hold.

use super::account::Count;
use super::active::Active;
use dplink::UsageCause;
use rules::{DroppedDownlink, Since, Usage, Volume};
use std::num::NonZeroU32;

/// Packets and bytes.
pub(super) type Dropped = [u64; 2];

/// Limits on total, uplink and downlink bytes; [`NEVER`] for none.
type Limits = [u64; 3];
/// The same, as the counts then read.
type Marks = [u64; 3];

/// Between two notices of one URR's thresholds, in ticks: about a tenth of a second.
const NOTICE_GAP: u32 = 100_000_000 >> Count::TICK_SHIFT;
/// Beyond every count.
pub(super) const NEVER: u64 = u64::MAX;

/// What is to be told or held.
#[derive(Debug)]
pub(super) struct Asked {
    /// `None` without a threshold.
    threshold: Option<Box<Bound>>,
    /// `None` without a quota.
    quota: Option<Box<Bound>>,
    /// `None` where nobody wants to hear of what is dropped.
    drops: Option<Box<Drops>>,
    /// `None` where time goes on without packets, too.
    pub(super) active: Option<Box<Active>>,
    grant: u32,
    /// From where the quota counts was said with it.
    quota_is_placed: bool,
    /// Which start of traffic is waited for, if any.
    awaited: Option<u32>,
    start_told: bool,
    quota_told: bool,
    /// When a threshold was told last, in ticks of [`Count::TICK_SHIFT`].
    told: Option<NonZeroU32>,
}

impl Asked {
    pub(super) fn heap_bytes(&self) -> usize {
        let bounds = self.threshold.iter().chain(&self.quota).count();
        let drops = self.drops.iter().count();
        let active = self.active.iter().count() * size_of::<Active>();
        size_of::<Self>() + bounds * size_of::<Bound>() + drops * size_of::<Drops>() + active
    }

    /// `None` where a URR asks for nothing.
    pub(super) fn new(usage: &Usage) -> Option<Box<Self>> {
        let quota = Bound::new(usage.quota, usage.quota_since.unwrap_or_default());
        let asked = Self {
            threshold: Bound::new(usage.threshold, usage.threshold_since),
            quota_is_placed: usage.quota_since.is_some(),
            quota_told: false,
            quota,
            drops: Drops::new(usage.dropped_downlink),
            active: active(usage),
            grant: usage.quota_grant,
            awaited: usage.start_of_traffic,
            start_told: false,
            told: None,
        };
        let is_any = asked.threshold.is_some()
            || asked.quota.is_some()
            || asked.drops.is_some()
            || asked.active.is_some()
            || asked.awaited.is_some();
        is_any.then(|| Box::new(asked))
    }

    /// Goes on where `old` stood.
    pub(super) fn carry(&mut self, old: &Self, count: &Count, (now_ns, counted_ns): (u64, Option<u64>)) {
        self.told = old.told;
        if let (Some(drops), Some(old)) = (&mut self.drops, &old.drops) {
            drops.carry(old);
        }
        match (&mut self.active, &old.active) {
            (Some(active), Some(old)) => active.carry(old, now_ns, counted_ns),
            (Some(active), None) => active.begin(now_ns, counted_ns),
            (None, _) => {}
        }
        self.start_told = old.start_told && old.awaited == self.awaited;
        // Where it was reached, it counts from there, of which who gave the rules may not have heard yet.
        if let (Some(threshold), Some(old)) = (&mut self.threshold, &old.threshold)
            && threshold.limits == old.limits
        {
            threshold.marks = old.marks;
        }
        let is_same = self.grant == old.grant && limits(&self.quota) == limits(&old.quota);
        self.quota_told = is_same && old.quota_told;
        match (&mut self.quota, &old.quota) {
            (Some(quota), Some(old)) if is_same => quota.marks = old.marks,
            _ => self.place_quota(count),
        }
    }

    /// Nothing was asked for before.
    pub(super) fn begin(&mut self, count: &Count, (now_ns, counted_ns): (u64, Option<u64>)) {
        self.active.iter_mut().for_each(|active| active.begin(now_ns, counted_ns));
        self.place_quota(count);
    }

    /// One of which nothing else was said counts from here.
    fn place_quota(&mut self, count: &Count) {
        if let Some(quota) = self.quota.as_mut().filter(|_| !self.quota_is_placed) {
            quota.begin(count);
        }
    }

    /// Whether no packet may pass without a look: none would know how long there was none before.
    pub(super) fn looks_at_all(&self) -> bool {
        self.active.as_ref().is_some_and(|active| !active.is_unseen())
    }

    pub(super) fn is_start_due(&self) -> bool {
        self.awaited.is_some() && !self.start_told
    }

    /// Whether the quota is used up, and nobody was told.
    pub(super) fn is_quota_due(&self, count: &Count) -> bool {
        !self.quota_told && is_reached(&self.quota, count)
    }

    pub(super) fn is_threshold_due(&self, count: &Count) -> bool {
        is_reached(&self.threshold, count)
    }

    pub(super) fn is_dropped_due(&self) -> bool {
        self.drops.as_ref().is_some_and(|drops| drops.is_due())
    }

    /// Whether the quota lets no packet pass.
    pub(super) fn is_used_up(&self, count: &Count) -> bool {
        is_reached(&self.quota, count)
    }

    /// Whether somebody was told just before, so that more has to wait: tiny thresholds are crossed by every packet.
    pub(super) fn has_just_told(&self, now_ns: u64) -> bool {
        let since = |told: NonZeroU32| tick(now_ns).get().wrapping_sub(told.get());
        self.told.is_some_and(|told| since(told) < NOTICE_GAP)
    }

    /// Counts a packet to the user that was dropped; whether that is to be told.
    pub(super) fn drop_downlink(&mut self, bytes: u32) -> bool {
        let Some(drops) = &mut self.drops else { return false };
        drops.so_far = [drops.so_far[0] + 1, drops.so_far[1] + u64::from(bytes)];
        drops.is_due()
    }

    /// What was dropped on its way to the user.
    pub(super) fn dropped(&self) -> Dropped {
        self.drops.as_ref().map_or([0; 2], |drops| drops.so_far)
    }

    /// Who was told of the start, or of a packet that there was no quota for, may not have heard.
    pub(super) const fn await_start(&mut self) {
        (self.quota_told, self.start_told) = (false, false);
    }

    /// The threshold begins anew.
    pub(super) fn begin_threshold(&mut self, count: &Count) {
        if let Some(threshold) = &mut self.threshold {
            threshold.begin(count);
        }
    }

    /// The quota in force, as who gave it numbers them.
    pub(super) const fn grant(&self) -> u32 {
        self.grant
    }

    /// Bytes until the quota is used up, or the threshold crossed, where that is of interest.
    pub(super) fn left(&self, count: &Count, with_threshold: bool) -> u64 {
        let bounds = self.threshold.iter().filter(|_| with_threshold).chain(&self.quota);
        bounds.map(|bound| bound.left(count)).min().unwrap_or(NEVER)
    }

    /// A cause has been told; whether thresholds of volume begin anew with that.
    pub(super) fn told(&mut self, cause: UsageCause, now_ns: u64) -> bool {
        match cause {
            UsageCause::VolumeThreshold => self.told = Some(tick(now_ns)),
            UsageCause::DroppedDownlink => {
                self.told = Some(tick(now_ns));
                if let Some(drops) = &mut self.drops {
                    drops.mark = dropped_mark(drops.threshold, drops.so_far);
                }
                // Volumes have a threshold of their own.
                return false;
            }
            UsageCause::StartOfTraffic(_) => {
                self.start_told = true;
                return false;
            }
            UsageCause::VolumeQuota => self.quota_told = true,
            UsageCause::Query(_) | UsageCause::End => {}
        }
        true
    }
}

/// Where no packet may pass by these rules, none keeps time going.
fn active(usage: &Usage) -> Option<Box<Active>> {
    let gap_s = usage.inactivity_detection_s?;
    Some(Active::new(gap_s.get(), usage.inactive || usage.quota.total == Some(0)))
}

/// Limits that count from some time on. By itself: most URRs have one kind or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound {
    limits: Limits,
    /// Where they are reached next.
    marks: Marks,
}

impl Bound {
    /// `None` where nothing is limited.
    fn new(volume: Volume, since: Since) -> Option<Box<Self>> {
        let limits = [volume.total, volume.uplink, volume.downlink].map(|limit| limit.unwrap_or(NEVER));
        let Since { uplink, downlink } = since;
        let since = [uplink.saturating_add(downlink), uplink, downlink];
        let mark = |at: usize| match limits[at] {
            NEVER => NEVER,
            limit => limit.saturating_add_signed(since[at]),
        };
        let is_any = volume != Volume::default();
        is_any.then(|| Box::new(Self { limits, marks: std::array::from_fn(mark) }))
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

fn limits(bound: &Option<Box<Bound>>) -> Option<Limits> {
    bound.as_ref().map(|bound| bound.limits)
}

fn is_reached(bound: &Option<Box<Bound>>, count: &Count) -> bool {
    bound.as_ref().is_some_and(|bound| bound.is_reached(count))
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

/// Ticks run over after 52 days; then a notice may come a tenth of a second late.
fn tick(now_ns: u64) -> NonZeroU32 {
    NonZeroU32::new((now_ns >> Count::TICK_SHIFT) as u32).unwrap_or(NonZeroU32::MIN)
}

const fn totals(count: &Count) -> [u64; 3] {
    let [uplink, downlink] = count.bytes();
    [uplink + downlink, uplink, downlink]
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

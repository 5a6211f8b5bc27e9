//! What URRs count (TS 29.244 5.2.2), and the quotas they give.

use super::Session;
use crate::meters::Load;
use rules::{Direction, DroppedDownlink, Pdr, Since, Urr, UrrId, Volume};

/// What one URR has counted since its session was put in force: bytes of users' IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageCounts {
    /// The URR.
    pub urr: UrrId,
    /// From the user.
    pub uplink_bytes: u64,
    /// To the user.
    pub downlink_bytes: u64,
    /// From the user.
    pub uplink_packets: u64,
    /// To the user.
    pub downlink_packets: u64,
    /// To the user, dropped by a FAR or kept in vain, where the URR has a threshold for that.
    pub dropped_downlink_packets: u64,
    /// Bytes of these.
    pub dropped_downlink_bytes: u64,
}

/// A URR's counts, its quota, and from where that counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    counts: UsageCounts,
    grant: u32,
    quota: Volume,
    since: Since,
    /// Packets that were counted and have not left.
    taken_back: u64,
}

impl Session {
    pub(super) fn usage(&self, urr: &Urr) -> Usage {
        let old = self.usages.iter().find(|usage| usage.counts.urr == urr.id);
        let counts = UsageCounts { urr: urr.id, ..UsageCounts::default() };
        let mut usage = old.copied().unwrap_or(Usage { counts, ..Usage::default() });
        if urr.dropped_downlink.unwrap_or_default() == DroppedDownlink::default() {
            (usage.counts.dropped_downlink_packets, usage.counts.dropped_downlink_bytes) = (0, 0);
        }
        let quota = urr.volume_quota.unwrap_or_default();
        if (usage.grant, usage.quota) != (urr.quota_grant, quota) {
            (usage.grant, usage.quota) = (urr.quota_grant, quota);
            let now = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            let UsageCounts { uplink_bytes, downlink_bytes, .. } = usage.counts;
            let here = Since { uplink: now(uplink_bytes), downlink: now(downlink_bytes) };
            usage.since = urr.quota_since.unwrap_or(here);
        }
        usage
    }

    pub(crate) fn counts(&self) -> Vec<UsageCounts> {
        self.usages.iter().map(|usage| usage.counts).collect()
    }

    /// Of a PDR's URRs that measure, the one whose used-up quota decides: the first without a FAR of its own, which ends what
    /// others would lead on (TS 29.244 5.2.2.2.1 is of each by itself), else the first.
    pub(super) fn exhausted(&self, pdr: &Pdr) -> Option<&Urr> {
        let urrs = pdr.urrs.iter().filter_map(|id| self.rules.urrs.iter().find(|urr| urr.id == *id));
        let mut used_up = urrs.filter(|urr| !urr.inactive && self.is_exhausted(urr.id));
        used_up.clone().find(|urr| urr.quota_far.is_none()).or_else(|| used_up.next())
    }

    /// Of each URR, whether its quota is used up.
    pub(crate) fn used_up(&self) -> impl Iterator<Item = bool> {
        self.rules.urrs.iter().map(|urr| self.is_exhausted(urr.id))
    }

    /// A quota that is used up in one respect, be it in one direction only, is used up.
    fn is_exhausted(&self, urr: UrrId) -> bool {
        let Some(usage) = self.usages.iter().find(|usage| usage.counts.urr == urr) else { return false };
        let used = |bytes: u64, since: i64| i128::from(bytes) - i128::from(since);
        let uplink = used(usage.counts.uplink_bytes, usage.since.uplink);
        let downlink = used(usage.counts.downlink_bytes, usage.since.downlink);
        let reached = |quota: Option<u64>, used: i128| quota.is_some_and(|quota| used >= i128::from(quota));
        reached(usage.quota.total, uplink + downlink)
            || reached(usage.quota.uplink, uplink)
            || reached(usage.quota.downlink, downlink)
    }

    /// Counts a packet to the user that its FAR drops, or that was kept in vain.
    pub(super) fn count_dropped(&mut self, urrs: &[UrrId], load: Load) {
        let minds = |urr: &&Urr| {
            urrs.contains(&urr.id)
                && !urr.inactive
                && urr.dropped_downlink.unwrap_or_default() != DroppedDownlink::default()
        };
        for urr in self.rules.urrs.iter().filter(minds) {
            let usage = self.usages.iter_mut().find(|usage| usage.counts.urr == urr.id);
            if let Some(usage) = usage.filter(|_| load.direction == Direction::Downlink) {
                usage.counts.dropped_downlink_packets += 1;
                usage.counts.dropped_downlink_bytes += load.length;
            }
        }
    }

    /// Counts a packet in those URRs of its PDR that are chosen and measure.
    pub(super) fn count(&mut self, pdr: &Pdr, load: Load, chosen: impl Fn(&Urr) -> bool) {
        for (bytes, packets) in self.counted(&pdr.urrs, load.direction, chosen) {
            *bytes += load.length;
            *packets += 1;
        }
    }

    /// Counts what a flow has used before it was known by which PDR.
    pub(crate) fn count_used(&mut self, pdr: &Pdr, load: Load, packets: u64) {
        for (bytes, counted) in self.counted(&pdr.urrs, load.direction, |_| true) {
            *bytes += load.length;
            *counted += packets;
        }
    }

    /// Takes a packet back that has not left, from URRs that measure what does.
    pub(crate) fn take_back(&mut self, urrs: &[UrrId], load: Load) {
        for (bytes, packets) in self.counted(urrs, load.direction, |urr| !urr.before_qos) {
            *bytes -= load.length;
            *packets -= 1;
        }
        let meant = |usage: &&mut Usage| urrs.contains(&usage.counts.urr) && usage.quota != Volume::default();
        self.usages.iter_mut().filter(meant).for_each(|usage| usage.taken_back += 1);
    }

    /// How many packets were taken back of quotas.
    pub(crate) fn taken_back(&self) -> u64 {
        self.usages.iter().map(|usage| usage.taken_back).sum()
    }

    /// Counts a packet that was taken back.
    pub(crate) fn count_again(&mut self, urrs: &[UrrId], load: Load) {
        for (bytes, packets) in self.counted(urrs, load.direction, |urr| !urr.before_qos) {
            *bytes += load.length;
            *packets += 1;
        }
    }

    /// Bytes and packets of a direction, in each of these URRs that is chosen and measures.
    fn counted(
        &mut self,
        urrs: &[UrrId],
        direction: Direction,
        chosen: impl Fn(&Urr) -> bool,
    ) -> impl Iterator<Item = (&mut u64, &mut u64)> {
        let all = &self.rules.urrs;
        let measures = move |id: UrrId| all.iter().any(|urr| urr.id == id && !urr.inactive && chosen(urr));
        let meant = move |usage: &&mut Usage| urrs.contains(&usage.counts.urr) && measures(usage.counts.urr);
        self.usages.iter_mut().filter(meant).map(move |usage| match direction {
            Direction::Uplink => (&mut usage.counts.uplink_bytes, &mut usage.counts.uplink_packets),
            Direction::Downlink => (&mut usage.counts.downlink_bytes, &mut usage.counts.downlink_packets),
        })
    }
}

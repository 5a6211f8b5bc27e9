//! A pretended data plane that counts, and tells what the contract of the link says it tells.

use dplink::{Desired, Notice, UsageCause, UsageCounts};
use machine::Time;
use rules::{Seid, Since, Triggers, Urr, UrrId, Volume};
use std::collections::BTreeMap;
use std::time::Duration;

/// One URR as it is counted.
#[derive(Clone, Debug)]
pub struct Counter {
    pub rule: Urr,
    pub uplink: u64,
    pub downlink: u64,
    packets: (u64, u64),
    /// Since it was told last.
    first: Option<Time>,
    last: Option<Time>,
    /// Time with traffic, up to when it was reckoned last.
    active: (Duration, Time),
    /// Bytes each way when the threshold began to count.
    threshold_from: (i64, i64),
    /// The same of the quota.
    pub quota_from: (i64, i64),
    is_exhausted: bool,
    start_told: bool,
    /// By a PDR.
    is_named: bool,
}

#[derive(Clone, Debug)]
pub struct Plane {
    pub epoch: u64,
    pub sessions: BTreeMap<Seid, BTreeMap<UrrId, Counter>>,
    /// All that was ever counted, whatever became of it: bytes from and to the user.
    pub counted: BTreeMap<UrrId, (u64, u64)>,
    /// What is to be done once a quota is used up is to forward.
    pub quota_fars_forward: bool,
    /// How often it was asked.
    pub asked: usize,
    /// Of it, what the node was told.
    pub told: BTreeMap<UrrId, (u64, u64)>,
}

impl Default for Plane {
    fn default() -> Self {
        Self {
            epoch: 1,
            sessions: BTreeMap::new(),
            counted: BTreeMap::new(),
            quota_fars_forward: false,
            asked: 0,
            told: BTreeMap::new(),
        }
    }
}

const fn from(Since { uplink, downlink }: Since) -> (i64, i64) {
    (uplink, downlink)
}

fn reaches(limit: Volume, (uplink, downlink): (i64, i64)) -> bool {
    let reached = |limit: Option<u64>, used: i64| limit.is_some_and(|limit| used >= limit as i64);
    reached(limit.uplink, uplink)
        || reached(limit.downlink, downlink)
        || reached(limit.total, uplink + downlink)
}

impl Counter {
    fn new(rule: Urr, now: Time) -> Self {
        let zero = (0, 0);
        let (threshold_from, quota_from) =
            (from(rule.threshold_since), from(rule.quota_since.unwrap_or_default()));
        Self {
            rule,
            uplink: 0,
            downlink: 0,
            packets: zero,
            first: None,
            last: None,
            active: (Duration::ZERO, now),
            threshold_from,
            quota_from,
            is_exhausted: false,
            start_told: false,
            is_named: true,
        }
    }

    const fn since(&self, (uplink, downlink): (i64, i64)) -> (i64, i64) {
        (self.uplink.cast_signed() - uplink, self.downlink.cast_signed() - downlink)
    }

    const fn begin_threshold(&mut self) {
        self.threshold_from = (self.uplink.cast_signed(), self.downlink.cast_signed());
    }

    fn counts(&self, now: Time) -> UsageCounts {
        let age = |moment: Option<Time>| moment.map(|moment| (now - moment).as_millis() as u64);
        UsageCounts {
            urr: self.rule.id,
            uplink_bytes: self.uplink,
            downlink_bytes: self.downlink,
            uplink_packets: self.packets.0,
            downlink_packets: self.packets.1,
            first_packet_age_ms: age(self.first),
            last_packet_age_ms: age(self.last),
            active_ms: self.rule.inactivity_detection_time_s.map(|_| self.active(now).as_millis() as u64),
            quota_grant: self.rule.quota_grant,
            ..UsageCounts::default()
        }
    }

    fn active(&self, now: Time) -> Duration {
        let (so_far, from) = self.active;
        let gap = Duration::from_secs(self.rule.inactivity_detection_time_s.unwrap_or(0).into());
        let more = self.last.map_or(Duration::ZERO, |last| {
            let ends = (now - last).saturating_sub(gap);
            (now - from).saturating_sub(ends)
        });
        so_far + more
    }

    /// Nothing passes without quota, unless by a FAR for that which forwards, or without a PDR.
    fn passes(&self, fars_forward: bool) -> bool {
        let goes_on = fars_forward && self.rule.quota_far.is_some();
        self.is_named && !self.rule.inactive && (!self.is_used_up() || goes_on)
    }

    fn is_used_up(&self) -> bool {
        reaches(self.rule.volume_quota.unwrap_or_default(), self.since(self.quota_from))
    }

    /// A packet each way comes that may not pass.
    fn miss(&mut self) -> Vec<UsageCause> {
        let mut causes = vec![];
        if self.is_named && self.is_used_up() {
            causes.extend(self.start());
            causes.extend((!self.is_exhausted).then_some(UsageCause::VolumeQuota));
            self.is_exhausted = true;
        }
        causes
    }

    fn start(&mut self) -> Option<UsageCause> {
        let is_start = !self.start_told && self.rule.triggers.contains(Triggers::START_OF_TRAFFIC);
        self.start_told |= is_start;
        is_start.then_some(UsageCause::StartOfTraffic(None))
    }

    /// Counts a packet each way of so many bytes.
    fn count(&mut self, (uplink, downlink): (u64, u64), now: Time) -> Vec<UsageCause> {
        let mut causes: Vec<UsageCause> = self.start().into_iter().collect();
        (self.uplink, self.downlink) = (self.uplink + uplink, self.downlink + downlink);
        self.packets = (self.packets.0 + u64::from(uplink > 0), self.packets.1 + u64::from(downlink > 0));
        self.active = (self.active(now), now);
        (self.first, self.last) = (self.first.or(Some(now)), Some(now));
        if reaches(self.rule.volume_threshold.unwrap_or_default(), self.since(self.threshold_from)) {
            self.begin_threshold();
            causes.push(UsageCause::VolumeThreshold);
        }
        if self.is_used_up() && !self.is_exhausted {
            self.is_exhausted = true;
            causes.push(UsageCause::VolumeQuota);
        }
        causes
    }

    fn change(&mut self, rule: &Urr, now: Time) {
        let goes_on =
            self.rule.inactivity_detection_time_s.is_some() && rule.inactivity_detection_time_s.is_some();
        self.active = (if goes_on { self.active(now) } else { Duration::ZERO }, now);
        if self.rule.volume_threshold != rule.volume_threshold {
            self.threshold_from = from(rule.threshold_since);
        }
        if self.rule.quota_grant != rule.quota_grant {
            let here = (self.uplink.cast_signed(), self.downlink.cast_signed());
            self.quota_from = rule.quota_since.map_or(here, from);
            self.is_exhausted = false;
        }
        self.start_told &= self.rule.starts_awaited == rule.starts_awaited;
        self.rule = rule.clone();
    }
}

impl Plane {
    pub fn retain(&mut self, keep: impl Fn(&Seid) -> bool) {
        self.sessions.retain(|session, _| keep(session));
    }

    /// The last counts of what is gone.
    pub fn put(&mut self, desired: &Desired, now: Time) -> Vec<UsageCounts> {
        let counters = self.sessions.entry(desired.session).or_default();
        for rule in &desired.rules.urrs {
            let counter = counters.entry(rule.id).or_insert_with(|| Counter::new(rule.clone(), now));
            counter.change(rule, now);
            counter.is_named = desired.rules.pdrs.iter().any(|pdr| pdr.urrs.contains(&rule.id));
        }
        let stays = |id: &UrrId| desired.rules.urrs.iter().any(|rule| rule.id == *id);
        let gone: Vec<UrrId> = counters.keys().copied().filter(|id| !stays(id)).collect();
        gone.iter().filter_map(|id| counters.remove(id)).map(|counter| counter.counts(now)).collect()
    }

    pub fn delete(&mut self, session: Seid, now: Time) -> Vec<UsageCounts> {
        let counters = self.sessions.remove(&session).unwrap_or_default();
        counters.into_values().map(|counter| counter.counts(now)).collect()
    }

    pub fn query(
        &mut self,
        session: Seid,
        urrs: &[UrrId],
        (token, is_reported, now): (u64, bool, Time),
    ) -> Option<Notice> {
        self.asked += 1;
        let counters = self.sessions.get_mut(&session).into_iter().flatten();
        let mut counts = vec![];
        for (_, counter) in counters.filter(|(id, _)| urrs.is_empty() || urrs.contains(id)) {
            if is_reported {
                counter.begin_threshold();
            }
            counts.push(counter.counts(now));
            counter.first = None;
        }
        Some(Notice::Usage { session, cause: UsageCause::Query(token), counts })
    }

    /// What URRs of a session have counted that have since they told last.
    pub fn interim(&mut self, session: Seid, now: Time) -> Notice {
        let counters = self.sessions.get_mut(&session).into_iter().flat_map(BTreeMap::values_mut);
        let changed = counters.filter(|counter| counter.first.is_some());
        let counts = changed.map(|counter| {
            let counts = counter.counts(now);
            counter.first = None;
            (session, counts)
        });
        Notice::InterimUsage { counts: counts.collect() }
    }

    /// What all URRs of a session have counted.
    pub fn counts(&self, session: Seid, now: Time) -> Vec<UsageCounts> {
        let counters = self.sessions.get(&session).into_iter().flat_map(BTreeMap::values);
        counters.map(|counter| counter.counts(now)).collect()
    }

    pub fn count(&mut self, session: Seid, bytes: (u64, u64), now: Time) -> Vec<Notice> {
        let counters = self.sessions.get_mut(&session).into_iter().flat_map(BTreeMap::values_mut);
        let counted = &mut self.counted;
        let told = counters.flat_map(|counter| {
            let causes = if counter.passes(self.quota_fars_forward) {
                let total = counted.entry(counter.rule.id).or_default();
                *total = (total.0 + bytes.0, total.1 + bytes.1);
                counter.count(bytes, now)
            } else {
                counter.miss()
            };
            let counts = counter.counts(now);
            counter.first = counter.first.filter(|_| causes.is_empty());
            causes.into_iter().map(move |cause| Notice::Usage { session, cause, counts: vec![counts] })
        });
        told.collect()
    }
}

impl Plane {
    /// The node hears a notice.
    pub fn tells(&mut self, notice: &Notice) {
        let counts = match notice {
            Notice::Usage { counts, .. } => counts.clone(),
            Notice::Applied { removed, .. } => removed.clone(),
            Notice::Removed { usage, .. } => usage.clone(),
            Notice::InterimUsage { counts } => counts.iter().map(|(_, counts)| *counts).collect(),
            _ => return,
        };
        for counts in counts {
            let counted = self.counted.get(&counts.urr).copied().unwrap_or_default();
            self.told.insert(counts.urr, counted);
        }
    }

    /// What is found of its counts when it is killed.
    pub fn left(&self, now: Time) -> Vec<(Seid, UsageCounts)> {
        let all = self.sessions.keys().flat_map(|session| {
            self.counts(*session, now).into_iter().map(|counts| {
                let counts =
                    UsageCounts { first_packet_age_ms: counts.last_packet_age_ms, active_ms: None, ..counts };
                (*session, counts)
            })
        });
        all.filter(|(_, counts)| counts.uplink_packets + counts.downlink_packets > 0).collect()
    }

    /// It dies, and all of that is told.
    pub fn read(&self) -> Self {
        Self { counted: self.counted.clone(), told: self.counted.clone(), ..self.reborn() }
    }

    /// It dies: nobody will hear of what it has not told.
    pub fn reborn(&self) -> Self {
        Self {
            epoch: self.epoch + 1,
            quota_fars_forward: self.quota_fars_forward,
            sessions: BTreeMap::new(),
            counted: self.told.clone(),
            asked: self.asked,
            told: self.told.clone(),
        }
    }
}

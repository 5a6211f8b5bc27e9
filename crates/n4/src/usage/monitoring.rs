//! Monitoring times: what is used before and after each is told apart, and other thresholds and quotas may hold from it on
//! (TS 29.244 5.2.2.2.1). A URR may have several (7.5.2.4): what one does not say goes on as it was before it.

use super::due::{is_held, is_invalid, is_time_spent};
use super::{events, moment};
use machine::Clock;
use pfcp::UsageReportTrigger as Trigger;
use rules::{Monitoring, Urr, Volume, limits};
use session::{Monitored, UrrUsage, Used};

/// Monitoring times of a URR.
pub(super) const MOST: usize = 1 + limits::ADDITIONAL_MONITORING_TIMES;

/// A threshold, and the monitoring time from which on it holds, if from any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threshold<T> {
    pub(super) limit: Option<T>,
    from: Option<u32>,
}

impl<T: Copy> Threshold<T> {
    const fn first(limit: Option<T>) -> Self {
        Self { limit, from: None }
    }

    fn replace(&mut self, limit: Option<T>, time: u32) {
        if limit.is_some() {
            *self = Self { limit, from: Some(time) };
        }
    }

    /// From where it counts: a subsequent one from its monitoring time; where there is none, the first goes on with what is left
    /// of it (TS 29.244 5.2.2.2.1).
    pub(super) fn since(self, usage: &UrrUsage) -> Used {
        let from = self.from.and_then(|time| usage.monitored.iter().rfind(|part| part.time == time));
        from.map_or(usage.reported, |part| part.used)
    }
}

/// Thresholds and quotas in force: those of the last monitoring time that has any, else the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InForce {
    pub(super) volume_threshold: Threshold<Volume>,
    pub(super) time_threshold_s: Threshold<u32>,
    pub(super) volume_quota: Option<Volume>,
    pub(super) time_quota_s: Option<u32>,
    pub(super) event_threshold: Threshold<u32>,
    pub(super) event_quota: Option<u32>,
    /// How many volume quotas monitoring times have given.
    pub(super) volume_quotas: u32,
}

pub(super) fn in_force(usage: &UrrUsage, urr: &Urr) -> InForce {
    let mut in_force = InForce {
        volume_threshold: Threshold::first(urr.volume_threshold),
        time_threshold_s: Threshold::first(urr.time_threshold_s),
        volume_quota: urr.volume_quota,
        time_quota_s: urr.time_quota_s,
        event_threshold: Threshold::first(urr.event_threshold),
        event_quota: urr.event_quota,
        volume_quotas: 0,
    };
    let (Some(from), Some(last)) = (usage.subsequent_from, usage.passed_monitoring_time) else {
        return in_force;
    };
    let mut held: Vec<Monitoring> = urr.monitoring().collect();
    held.retain(|it| it.time.wrapping_sub(from) <= last.wrapping_sub(from));
    held.sort_by_key(|it| it.time.wrapping_sub(from));
    for it in held {
        in_force.volume_threshold.replace(it.volume_threshold, it.time);
        in_force.time_threshold_s.replace(it.time_threshold_s, it.time);
        in_force.event_threshold.replace(it.event_threshold, it.time);
        in_force.volume_quota = it.volume_quota.or(in_force.volume_quota);
        in_force.time_quota_s = it.time_quota_s.or(in_force.time_quota_s);
        in_force.event_quota = it.event_quota.or(in_force.event_quota);
        in_force.volume_quotas += u32::from(it.volume_quota.is_some());
    }
    in_force
}

/// The monitoring time that is to pass next; several at the same moment pass as one.
pub(super) fn next(usage: &UrrUsage, urr: &Urr, clock: Clock) -> Option<Monitoring> {
    let passed = usage.passed_monitoring_time;
    let is_later = |it: &Monitoring| passed.is_none_or(|passed| is_after(it.time, passed));
    let first = urr.monitoring().filter(is_later).min_by_key(|it| moment(it.time, clock))?;
    let same = urr.monitoring().filter(|it| it.time == first.time);
    same.reduce(|one, other| Monitoring {
        volume_threshold: other.volume_threshold.or(one.volume_threshold),
        time_threshold_s: other.time_threshold_s.or(one.time_threshold_s),
        volume_quota: other.volume_quota.or(one.volume_quota),
        time_quota_s: other.time_quota_s.or(one.time_quota_s),
        event_threshold: other.event_threshold.or(one.event_threshold),
        event_quota: other.event_quota.or(one.event_quota),
        ..one
    })
}

/// Of two times of day less than 68 years apart.
const fn is_after(time: u32, other: u32) -> bool {
    time.wrapping_sub(other) as i32 > 0
}

/// It has come, and what was used until then is known.
pub(super) fn pass(usage: &mut UrrUsage, urr: &Urr, it: Monitoring) {
    usage.passed_monitoring_time = Some(it.time);
    usage.subsequent_from.get_or_insert(it.time);
    // Where times are given anew and nothing is ever told, the last two parts become one.
    let full = (usage.monitored.len() >= MOST).then(|| usage.monitored.pop()).flatten();
    let first_packet_ms = full.and_then(|part| part.first_packet_ms).or(usage.first_untold_ms);
    usage.first_untold_ms = None;
    let last_packet_ms = usage.last_packet_ms;
    usage.monitored.push(Monitored { time: it.time, used: usage.known, first_packet_ms, last_packet_ms });
    if it.volume_quota.is_some() {
        usage.granted.counts = usage.known.counts;
        (usage.is_grant_unplaced, usage.went_by_far) = (false, false);
        usage.fired &= !Trigger::VOLQU;
    }
    if it.time_quota_s.is_some() {
        usage.granted.duration_ms = usage.known.duration_ms;
        usage.fired &= !Trigger::TIMQU;
    }
    if it.event_quota.is_some() {
        usage.granted.events = usage.known.events;
        usage.fired &= !Trigger::EVEQU;
    }
    // Its quotas came with those before it, and are as valid as they.
    if !is_invalid(usage) {
        free(usage, urr, (it.volume_quota.is_some(), it.time_quota_s.is_some(), it.event_quota.is_some()));
    }
}

/// Quotas of volume, of time or of events are given: packets pass again, unless others are used up.
pub(super) fn free(usage: &mut UrrUsage, urr: &Urr, (volume, time, events): (bool, bool, bool)) {
    let is_held_up = !time && is_time_spent(usage, urr) || !events && events::are_spent(usage, urr);
    if (volume && is_held(usage) || time || events) && !is_held_up {
        usage.unblock();
    }
}

/// Of monitoring times that are given now, those that have passed already say nothing.
pub(super) fn give(usage: &mut UrrUsage, urr: &Urr, clock: Clock) {
    let moment = |it: &Monitoring| moment(it.time, clock);
    let passed = urr.monitoring().filter(|it| moment(it) <= clock.now_ms).max_by_key(moment);
    usage.passed_monitoring_time = passed.map(|it| it.time);
}

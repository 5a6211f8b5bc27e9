//! Events (TS 29.244 8.2.40). What one is no clause says, as TS 23.503 table 6.3.1 leaves it to the operator. Here it is a use of the
//! service: a start of traffic of what the URR's PDRs match, from its first packet until it has been silent.

use super::account::AGE_MS;
use super::monitoring::{Threshold, in_force};
use super::ntp;
use machine::Clock;
use rules::Urr;
use session::UrrUsage;

/// Of a URR, events whose times wait to be told.
pub(super) const MOST_UNTOLD: usize = 64;

/// What their times take of a report: 4 octets each, behind a type and a length.
pub(super) const fn octets(usage: &UrrUsage) -> usize {
    8 * usage.event_times.len()
}

/// Counts are told, and when the first and the last packet came. Where no use is under way, packets begin one. That is known by the
/// counts, and not by the word of a start alone, which may be lost, or come again from another life of the data plane. A packet
/// that waits for its next hop is told of and not yet counted; one that misses a quota is not even told of as the first.
pub(super) fn hear(
    usage: &mut UrrUsage,
    urr: &Urr,
    (is_more, first, last): (bool, Option<u64>, Option<u64>),
    now: u64,
) -> bool {
    let from = usage.events_from_ms;
    // What is told as the first packet may be one of the use before, or of the time before events were measured.
    let is_of_it = |first: &u64| *first >= from && usage.last_packet_ms.is_none_or(|before| *first > before);
    let first = first.filter(is_of_it);
    let is_older = last.is_some_and(|last| last + AGE_MS < from);
    // What passes before the data plane knows that nothing may begins no use: it will be waited for anew.
    let may_begin = urr.methods.event && !usage.is_in_use && !usage.is_blocked && !is_older;
    if !may_begin || !is_more && first.is_none() {
        return false;
    }
    usage.is_in_use = true;
    usage.known.events = usage.known.events.saturating_add(1);
    if usage.event_times.len() < MOST_UNTOLD {
        usage.event_times.push(first.or(last).unwrap_or(now).min(now));
    }
    true
}

/// No packet came for so long that the next one is of another use. The data plane is to tell of it.
pub(super) const fn stop(usage: &mut UrrUsage) {
    if usage.is_in_use {
        usage.is_in_use = false;
        usage.uses_awaited = usage.uses_awaited.wrapping_add(1);
    }
}

/// Whether a threshold is reached, or so many wait that they are told now.
pub(super) fn are_due(usage: &UrrUsage, threshold: Threshold<u32>) -> bool {
    let events = usage.known.events.saturating_sub(threshold.since(usage).events);
    usage.event_times.len() >= MOST_UNTOLD || threshold.limit.is_some_and(|limit| events >= limit)
}

/// Whether as many events as the quota has have begun since it was given.
pub(super) const fn are_as_many(usage: &UrrUsage, quota: u32) -> bool {
    usage.known.events.saturating_sub(usage.granted.events) >= quota
}

/// Whether no packet passes for want of a quota in force: the use that spent it goes on until it stops. One of nothing lets none begin,
/// nor go on.
pub(super) fn are_spent(usage: &UrrUsage, urr: &Urr) -> bool {
    let is_spent = |quota: u32| are_as_many(usage, quota) && (quota == 0 || !usage.is_in_use);
    in_force(usage, urr).event_quota.is_some_and(is_spent)
}

/// The times of the next so many events. They are told with that.
pub(super) fn tell(usage: &mut UrrUsage, events: u32, clock: Clock) -> Vec<u32> {
    let known = usage.event_times.len().min(events as usize);
    usage.event_times.drain(..known).map(|at| ntp(at, clock)).collect()
}

/// Events that there was no room for wait to be told from now on, with the time of the last for which there was.
pub(super) fn make_room(usage: &mut UrrUsage, last: Option<u64>, told: usize) {
    let untold = usage.known.events.saturating_sub(usage.reported.events) as usize;
    let left = untold.saturating_sub(told);
    usage.reported.events = usage.known.events.saturating_sub(left as u32);
    usage.event_times = last.into_iter().cycle().take(left.min(MOST_UNTOLD)).collect();
}

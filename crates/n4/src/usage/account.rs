//! What the data plane told, and time that passed.

use super::SILENCE;
use super::due::is_held;
use super::events;
use super::wanted::own_grant;
use dplink::UsageCounts;
use pfcp::UsageReportTrigger as Trigger;
use rules::{Rules, Urr};
use session::{Counts, Inactivity, UrrUsage, UsageRecord};

/// How much the age of one and the same packet may differ from one time it is told to the next: the data plane's
/// clock for it is coarse.
pub(super) const AGE_MS: u64 = 500;

/// Counts of the data plane, told at `now`.
pub(crate) fn hear(record: &mut UsageRecord, rules: &Rules, told: &[UsageCounts], now: u64) {
    for counts in told {
        // PDRs without room for ours are heard by the URRs they have.
        record.inactivity.iter_mut().for_each(|inactivity| hear_of_user(inactivity, counts, now));
        let of_it = record.urrs.iter_mut().zip(&rules.urrs).filter(|(usage, _)| usage.urr == counts.urr);
        of_it.for_each(|(usage, urr)| hear_one(usage, urr, counts, now));
    }
}

/// What a life of the data plane that is over had counted of a URR in the end. It is not the last that is known, where that is more.
pub(crate) fn hear_former(record: &mut UsageRecord, rules: &Rules, told: &UsageCounts, now: u64) {
    let mut of_it = record.urrs.iter_mut().zip(&rules.urrs).filter(|(usage, _)| usage.urr == told.urr);
    if let Some((usage, urr)) = of_it.next()
        && (usage.base + engines(told)).is_more_than(usage.known.counts)
    {
        hear_one(usage, urr, told, now);
    }
}

/// What it counted in this life.
pub(crate) const fn engines(told: &UsageCounts) -> Counts {
    Counts {
        uplink_bytes: told.uplink_bytes,
        downlink_bytes: told.downlink_bytes,
        uplink_packets: told.uplink_packets,
        downlink_packets: told.downlink_packets,
    }
}

fn hear_of_user(inactivity: &mut Inactivity, told: &UsageCounts, now: u64) {
    let last = told.last_packet_age_ms.map_or(0, |age| now.saturating_sub(age));
    if last > inactivity.active_ms + AGE_MS {
        (inactivity.active_ms, inactivity.is_reported) = (last, false);
    }
    if told.urr == SILENCE {
        inactivity.heard_ms = now;
    }
}

fn hear_one(usage: &mut UrrUsage, urr: &Urr, told: &UsageCounts, now: u64) {
    let engines = engines(told);
    // The data plane counts less than before: it has lost the session in between, and counts anew.
    if !(usage.base + engines).is_at_least(usage.known.counts) {
        count_anew(usage);
    }
    let is_more = usage.base + engines != usage.known.counts;
    usage.known.counts = usage.base + engines;
    if usage.is_grant_unplaced && told.quota_grant == own_grant(usage, urr) {
        (usage.is_grant_unplaced, usage.granted.counts) = (false, usage.known.counts);
    }
    usage.heard_ms = now;
    let moment = |age: u64| now.saturating_sub(age);
    let first = told.first_packet_age_ms.map(moment);
    usage.first_packet_ms = usage.first_packet_ms.or(first);
    usage.first_untold_ms = usage.first_untold_ms.or(first);
    let last = told.last_packet_age_ms.map(moment);
    let begins = events::hear(usage, urr, (is_more, first, last), now);
    if (is_more || begins) && last > usage.last_packet_ms {
        usage.last_packet_ms = last;
        // What passed before the data plane knew of the end of a quota does not bring it back.
        usage.fired &= if is_held(usage) { !Trigger::STOPT } else { !(Trigger::QUHTI | Trigger::STOPT) };
    }
    if let Some(first) = usage.first_packet_ms.filter(|_| !usage.is_running) {
        usage.is_running = true;
        usage.known.at_ms = first.min(now);
    }
    hear_active(usage, urr, told.active_ms, now);
    elapse(usage, urr, now);
}

/// Where time without packets does not count, the data plane measures what does: only it knows of all gaps.
fn hear_active(usage: &mut UrrUsage, urr: &Urr, told: Option<u64>, now: u64) {
    let told = told.filter(|_| urr.inactivity_detection_time_s.is_some()).unwrap_or(0);
    let more = told.saturating_sub(usage.active_ms);
    usage.active_ms = told;
    if urr.inactivity_detection_time_s.is_some() {
        run(usage, urr, (more, now));
    }
}

/// The data plane has told that quotas are used up, with its counts. They may have been given since or, where it obeyed before it said so,
/// not yet; so it is their number that says which are.
pub(crate) fn hear_spent(record: &mut UsageRecord, told: &[UsageCounts]) {
    for counts in told {
        let of_it = record.urrs.iter_mut().filter(|usage| usage.urr == counts.urr);
        of_it.for_each(|usage| usage.spent_grant = Some(counts.quota_grant));
    }
}

/// Time has passed up to `now`. Where time without packets does not count, it is only known up to what the data plane told last.
pub(super) fn elapse(usage: &mut UrrUsage, urr: &Urr, now: u64) {
    if urr.inactivity_detection_time_s.is_none() {
        run(usage, urr, (now.saturating_sub(usage.known.at_ms), now));
    }
}

/// So much time is counted, if it runs at all, and is known of up to `now`.
fn run(usage: &mut UrrUsage, urr: &Urr, (passed, now): (u64, u64)) {
    if usage.is_running && !urr.inactive && !usage.is_blocked {
        usage.known.duration_ms += passed;
    }
    usage.known.at_ms = usage.known.at_ms.max(now);
}

/// The data plane counts from zero, and what is known is what it counted before.
fn count_anew(usage: &mut UrrUsage) {
    (usage.base, usage.active_ms) = (usage.known.counts, 0);
}

/// The data plane has forgotten the session: should it get it again, it counts anew.
pub(crate) fn begin_anew(record: &mut UsageRecord) {
    record.urrs.iter_mut().for_each(count_anew);
}

/// The last counts of URRs that the data plane has forgotten: should it get them again, it counts anew.
pub(crate) fn hear_last(record: &mut UsageRecord, rules: &Rules, told: &[UsageCounts], now: u64) {
    hear(record, rules, told, now);
    let forgotten = record.urrs.iter_mut().filter(|usage| told.iter().any(|told| told.urr == usage.urr));
    forgotten.for_each(count_anew);
}

/// Whether the data plane has told any counts of this life of it, or the one before.
pub(crate) fn has_counted(record: &UsageRecord) -> bool {
    record.urrs.iter().any(|usage| usage.base != usage.known.counts)
}

/// Another life of the data plane counts from zero: what is known is what its former lives counted.
pub(crate) fn new_epoch(record: &mut UsageRecord, epoch: u64) {
    if record.epoch != epoch {
        record.epoch = epoch;
        begin_anew(record);
    }
}

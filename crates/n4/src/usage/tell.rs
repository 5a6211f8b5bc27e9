//! The reports themselves (TS 29.244 7.5.8.3).

use super::account::elapse;
use super::plan::linked;
use super::{events, macs, ntp, starts};
use machine::Clock;
use pfcp::{UsageReport, UsageReportTrigger as Trigger, VolumeMeasurement, Volumes, flags};
use rules::{Methods, Rules, Urr, UrrId};
use session::{Counts, MacRecord, SessionRecord, StartRecord, UrrUsage, UsageRecord, Used};
use std::collections::BTreeSet;

/// Tells what has not been told of a URR, for these triggers: one report, or one for each side of each monitoring
/// time that has passed. It counts as told from now on.
pub(super) fn tell(
    (usage, macs, starts): (&mut UrrUsage, &mut Option<Box<MacRecord>>, &mut [StartRecord]),
    urr: &Urr,
    (triggers, query): (u32, Option<u32>),
    clock: Clock,
) -> Vec<UsageReport> {
    let (mut start, end, mut after) = (usage.reported, usage.known, None);
    let last_event = usage.event_times.last().copied();
    let mut parts = vec![];
    for it in std::mem::take(&mut usage.monitored) {
        let before = Interval { start, end: it.used, first: it.first_packet_ms, last: it.last_packet_ms };
        let before = part(usage, urr, before, (triggers | Trigger::MONIT, clock));
        // Between two monitoring times it is after the one and before the other (TS 29.244 8.2.63).
        let side = after.unwrap_or(0) | flags::USAGE_BEF;
        parts.push(UsageReport { usage_information: Some(side), ..before });
        (start, after) = (it.used, Some(flags::USAGE_AFT));
    }
    let untold = Interval { start, end, first: usage.first_untold_ms.take(), last: usage.last_packet_ms };
    let last = part(usage, urr, untold, (triggers, clock));
    parts.push(UsageReport { usage_information: after, ..last });
    let told = parts.iter().map(|part| part.event_time_stamps.len()).sum();
    events::make_room(usage, last_event, told);
    let reported = Used { events: usage.reported.events, ..end };
    (usage.reported, usage.due, usage.formerly) = (reported, 0, Methods::default());
    macs::tell(macs, urr, &mut parts);
    starts::tell(starts, usage, &mut parts);
    parts.into_iter().map(|part| UsageReport { query_urr_reference: query, ..part }).collect()
}

/// Triggers that tell of flows.
const FLOWS: u32 = Trigger::START | Trigger::STOPT;

/// What an answer tells of.
pub(crate) struct Asked<'a> {
    /// URRs that were queried, and the query's reference.
    pub(crate) queried: &'a [UrrId],
    pub(crate) reference: Option<u32>,
    /// URRs that go.
    pub(crate) removed: Vec<UrrId>,
    /// URRs that stay without a PDR.
    pub(crate) parted: Vec<UrrId>,
    /// URRs that tell of starts afterwards, be they others by the names of such that go.
    pub(crate) tell_starts: Vec<UrrId>,
}

impl Asked<'_> {
    /// What of a URR an answer has no room for, and the next report tells, unless there is none (table 7.5.5.2-1).
    fn later(&self, usage: &UrrUsage) -> u32 {
        let due = usage.due & FLOWS;
        match self.removed.contains(&usage.urr) {
            false => due,
            true if due == Trigger::START && self.tell_starts.contains(&usage.urr) => due,
            true => 0,
        }
    }
}

/// The reports of an answer to a modification: of these URRs, and of those that report along.
pub(crate) fn tell_asked(
    record: &mut UsageRecord,
    rules: &Rules,
    asked: &Asked<'_>,
    clock: Clock,
) -> Vec<UsageReport> {
    let mut reports = Vec::new();
    let ended = [&asked.removed[..], &asked.parted].concat();
    let reporting: BTreeSet<UrrId> = asked.queried.iter().chain(&ended).copied().collect();
    let mut along = linked(rules, &reporting);
    along.retain(|urr| !reporting.contains(urr));
    let UsageRecord { urrs, macs, starts, .. } = record;
    for (usage, urr) in urrs.iter_mut().zip(&rules.urrs) {
        let triggers = |list: &[UrrId], trigger| if list.contains(&urr.id) { trigger } else { 0 };
        let queried = triggers(asked.queried, Trigger::IMMER);
        let asked_for = queried | triggers(&ended, Trigger::TERMR) | triggers(&along, Trigger::LIUSA);
        if asked_for != 0 {
            elapse(usage, urr, clock.now_ms);
            let reference = asked.reference.filter(|_| queried != 0);
            let later = asked.later(usage);
            let triggers = usage.due & !later | asked_for;
            reports.extend(tell((usage, macs, starts), urr, (triggers, reference), clock));
            usage.due = later;
        }
    }
    reports
}

/// The last reports of a session that ends now.
pub(crate) fn tell_all(record: &mut SessionRecord, clock: Clock) -> Vec<UsageReport> {
    let removed = record.rules.urrs.iter().map(|urr| urr.id).collect();
    let asked = Asked { queried: &[], reference: None, removed, parted: vec![], tell_starts: vec![] };
    tell_asked(&mut record.usage, &record.rules, &asked, clock)
}

/// What one report tells of: all between two looks, and when the first and the last packet of it came.
#[derive(Clone, Copy)]
struct Interval {
    start: Used,
    end: Used,
    first: Option<u64>,
    last: Option<u64>,
}

impl Interval {
    /// The times of the first and the last packet (TS 29.244 8.2.46, 8.2.47). Between the moment the data plane told a count and
    /// that of the report packets may have come: they are of the next report, which begins with that moment.
    fn packets(&self) -> (Option<u64>, Option<u64>) {
        let (from, until) = (self.start.at_ms, self.end.at_ms.max(self.start.at_ms));
        let first = self.first.map(|first| first.clamp(from, until));
        let is_of_it = first.is_some() || self.start.counts != self.end.counts;
        let last = self.last.filter(|_| is_of_it);
        (first, last.map(|last| last.clamp(first.unwrap_or(from), until)))
    }
}

fn part(usage: &mut UrrUsage, urr: &Urr, interval: Interval, (triggers, clock): (u32, Clock)) -> UsageReport {
    let ntp = |moment_ms: u64| ntp(moment_ms, clock);
    let (Interval { start, end, .. }, (first, last)) = (interval, interval.packets());
    // Of whole seconds, so that what one report leaves of a second the next ones tell.
    let duration_s = (end.duration_ms / 1_000).saturating_sub(start.duration_ms / 1_000);
    let volume_is_told = urr.methods.volume || usage.formerly.volume;
    let duration_is_told = urr.methods.duration || usage.formerly.duration;
    let ur_seqn = usage.sequence;
    usage.sequence = ur_seqn.wrapping_add(1);
    UsageReport {
        urr_id: urr.id.0,
        ur_seqn,
        usage_report_trigger: Trigger(triggers),
        start_time: Some(ntp(start.at_ms)),
        end_time: Some(ntp(end.at_ms)),
        volume_measurement: volume_is_told.then(|| volume(end.counts - start.counts, usage.tells_packets)),
        duration_measurement: duration_is_told.then_some(duration_s as u32),
        time_of_first_packet: first.map(ntp),
        time_of_last_packet: last.map(ntp),
        event_time_stamps: events::tell(usage, end.events.saturating_sub(start.events), clock),
        ..UsageReport::default()
    }
}

fn volume(used: Counts, tells_packets: bool) -> VolumeMeasurement {
    let volumes = |uplink: u64, downlink: u64| Volumes {
        total: Some(uplink.saturating_add(downlink)),
        uplink: Some(uplink),
        downlink: Some(downlink),
    };
    let packets = volumes(used.uplink_packets, used.downlink_packets);
    VolumeMeasurement {
        octets: volumes(used.uplink_bytes, used.downlink_bytes),
        packets: if tells_packets { packets } else { Volumes::default() },
    }
}

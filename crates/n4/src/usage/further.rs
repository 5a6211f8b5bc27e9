//! Reports for which one answer has no room: they come in Session Report Requests behind it, and the answer says how many (TS 29.244
//! 5.2.2.3.1, 7.5.5.1, 7.5.7.1).

use super::plan::octets_of;
use pfcp::{RawIe, UsageReport, ie};

/// Octets of reports in one message about more than a packet carries: any control plane's buffer should hold that.
const ROOM: usize = 8_000;
/// Of an answer to who does not know that more may come: nearly what a datagram holds.
const ROOM_IN_ALL: usize = 60_000;
/// Messages of a session that wait to be told; a session that has so many is not changed.
pub(crate) const MOST_FURTHER: usize = 64;

/// Leaves as many reports as an answer has room for, and returns the others, by request. `knows` says whether the control plane
/// reads that more come.
pub(crate) fn split(reports: &mut Vec<UsageReport>, knows: bool) -> Vec<Vec<UsageReport>> {
    let here = fitting(reports, if knows { ROOM } else { ROOM_IN_ALL });
    let mut rest = reports.split_off(here);
    let mut further = vec![];
    while !rest.is_empty() {
        // One that is larger than all room goes by itself.
        let later = rest.split_off(fitting(&rest, ROOM).max(1));
        further.push(std::mem::replace(&mut rest, later));
    }
    further
}

/// The same of what an answer tells. Times of events have room in requests alone (TS 29.244 table 7.5.8.3-1, and not 7.5.5.2-1 or
/// 7.5.7.2-1), so a report with some comes behind it; where nothing does, it is in the answer all the same, for they would be lost.
pub(crate) fn split_answer(reports: &mut Vec<UsageReport>, knows: bool) -> Vec<Vec<UsageReport>> {
    let has_events = |report: &mut UsageReport| knows && !report.event_time_stamps.is_empty();
    let mut of_events: Vec<UsageReport> = reports.extract_if(.., has_events).collect();
    let mut further = split(reports, knows);
    reports.iter_mut().for_each(without_flow);
    let more = split(&mut of_events, true);
    further.extend(std::iter::once(of_events).chain(more).filter(|reports| !reports.is_empty()));
    further
}

/// A report as an answer tells it: what began a flow, and whose it is, has no room there (TS 29.244 tables 7.5.5.2-1 and
/// 7.5.7.2-1), unlike in a request (table 7.5.8.3-1).
fn without_flow(report: &mut UsageReport) {
    report.application_detection_information = None;
    (report.ue_ip_address, report.network_instance) = (None, None);
}

/// How many there is room for.
fn fitting(reports: &[UsageReport], room: usize) -> usize {
    let mut octets = 0;
    let fits = |report: &&UsageReport| {
        octets += octets_of(std::slice::from_ref(*report));
        octets <= room
    };
    reports.iter().take_while(fits).count()
}

/// What the answer says of it: Additional Usage Reports Information (TS 29.244 8.2.91), where there are any. `late` are those that
/// cannot be made yet.
pub(crate) fn information(further: &[Vec<UsageReport>], late: usize) -> Vec<RawIe> {
    let count = further.iter().map(Vec::len).sum::<usize>() + late;
    // 15 bits: a session has some hundred URRs.
    let count = u16::try_from(count).unwrap_or(u16::MAX) & 0x7FFF;
    let information =
        RawIe { ie: ie::ADDITIONAL_USAGE_REPORTS_INFORMATION, value: count.to_be_bytes().to_vec() };
    (count > 0).then_some(information).into_iter().collect()
}

//! What control planes hear of usage, when, and in which words; of quotas and monitoring times beside.

use crate::common::billing::*;
use crate::common::{Lab, Obedience, SINCE_1900_MS, SMF, US, at};
use n4::Input;
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::UrrId;
use std::time::Duration;

const PERIO: u32 = 1;
const VOLTH: u32 = 1 << 1;
const TIMTH: u32 = 1 << 2;
const START: u32 = 1 << 4;
const LIUSA: u32 = 1 << 7;

#[test]
fn a_volume_threshold_is_told_with_what_was_used() {
    let mut rule = urr(1, VOLTH);
    rule.volume_threshold = total(1_000);
    rule.measurement_information = Some(flags::MEASUREMENT_MNOP);
    let (mut lab, session) = lab(vec![rule]);
    seconds(&mut lab, 5);
    lab.traffic(session, (400, 500), false);
    assert!(lab.reports().is_empty());
    seconds(&mut lab, 2);
    lab.traffic(session, (0, 200), false);
    let [report] = &reported(&mut lab, session)[..] else { panic!("one report") };
    assert_eq!((report.urr_id, report.ur_seqn), (1, 0));
    assert_eq!(report.usage_report_trigger, Trigger(Trigger::VOLTH));
    let volume = report.volume_measurement.unwrap();
    assert_eq!(volume.octets, Volumes { total: Some(1_100), uplink: Some(400), downlink: Some(700) });
    assert_eq!(volume.packets, Volumes { total: Some(3), uplink: Some(1), downlink: Some(2) });
    let (start, now) = (now_s(&lab) - 7, now_s(&lab));
    assert_eq!((report.start_time, report.end_time), (Some(start), Some(now)));
    assert_eq!((report.time_of_first_packet, report.time_of_last_packet), (Some(now - 2), Some(now)));
    // Time runs from the first packet.
    assert_eq!(report.duration_measurement, Some(2));
}

/// TS 29.244 8.2.46, 8.2.47: of the time the report is about, not of the URR's life.
#[test]
fn each_report_tells_when_its_own_first_and_last_packets_came() {
    let mut rule = urr(1, PERIO);
    rule.measurement_period = Some(60);
    rule.monitoring_time = Some((SINCE_1900_MS / 1_000) as u32 + 150);
    let (mut lab, session) = lab(vec![rule]);
    let began = now_s(&lab);
    let mut told = vec![];
    for second in 0..=240 {
        if [10, 30, 50, 70, 80, 130, 140, 160, 170, 220].contains(&second) {
            lab.traffic(session, (1, 0), false);
        }
        // A question in between does not begin anything anew.
        if second == 75 {
            let known = lab.plane.query(session, &[], (1 << 40, false, lab.now)).unwrap();
            lab.handle(Input::DataPath(&known));
        }
        told.extend(reported(&mut lab, session).into_iter().map(|report| {
            let since = |time: Option<u32>| time.map(|time| time - began);
            let packets = (since(report.time_of_first_packet), since(report.time_of_last_packet));
            (since(report.end_time).unwrap(), octets(&report).0, packets)
        }));
        seconds(&mut lab, 1);
    }
    let packets = |first, last| (Some(first), Some(last));
    let before = [(60, 3, packets(10, 50)), (120, 2, packets(70, 80)), (150, 2, packets(130, 140))];
    let after = [(180, 2, packets(160, 170)), (240, 1, packets(220, 220))];
    assert_eq!(told, [&before[..], &after[..]].concat());
}

#[test]
fn packets_are_told_only_where_asked_for() {
    let mut rule = urr(1, VOLTH);
    rule.volume_threshold = total(1);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (1, 1), false);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!(report.volume_measurement.unwrap().packets, Volumes::default());
}

/// 10 s, 1000 bytes and 5 s at 8 Mbit/s: ten reports a second at most, and nothing lost.
#[test]
fn a_storm_of_triggers_is_ten_reports_a_second() {
    let mut rule = urr(1, PERIO | VOLTH | TIMTH);
    rule.measurement_period = Some(10);
    rule.volume_threshold = Some(Volumes { downlink: Some(1_000), ..Volumes::default() });
    rule.time_threshold = Some(5);
    let (mut lab, session) = lab(vec![rule]);
    let mut bill = Bill::default();
    for _ in 0..20_000 {
        lab.traffic(session, (0, 1_000), false);
        lab.bill(&mut bill, session, true);
        lab.pass(Duration::from_millis(1));
        lab.bill(&mut bill, session, true);
    }
    assert!((199..=202).contains(&bill.reports.len()), "{}", bill.reports.len());
    bill.add(&lab.delete(session).usage_reports);
    assert_eq!(bill.sums(), [(UrrId(1), (0, 20_000_000))].into());
}

/// More than a packet carries: told in several requests, each once the one before was taken, and each report once.
#[test]
fn what_has_no_room_in_one_request_comes_in_the_next() {
    const URRS: u32 = 250;
    let rule = |id| CreateUrr { measurement_period: Some(10), ..urr(id, PERIO) };
    let rules: Vec<CreateUrr> = (1..=URRS).map(rule).collect();
    let mut request = metered(77, vec![]);
    request.create_urrs = rules;
    for (pdr, ids) in request.create_pdrs.iter_mut().zip([[1, 2], [2, URRS]]) {
        pdr.urr_ids = ids.to_vec();
    }
    let mut lab = Lab::associated();
    let session = lab.establish(request);
    lab.traffic(session, (10, 20), false);
    seconds(&mut lab, 10);
    let before = lab.trace.len();
    let mut bill = Bill::default();
    let mut rounds = 0;
    loop {
        let reports = lab.reports();
        if reports.is_empty() {
            break;
        }
        assert_eq!(reports.len(), 1, "one at a time");
        rounds += 1;
        // The first is not heard: nothing of it is told twice.
        if rounds == 1 {
            seconds(&mut lab, 3);
            continue;
        }
        for (_, message) in reports {
            let Body::SessionReportRequest(request) = message.body else { panic!() };
            bill.add(&request.usage_reports);
            let response = SessionReportResponse::of(Cause::RequestAccepted);
            lab.tell(SMF, &Message::session(session.0, message.sequence, response));
        }
    }
    let sent = lab.trace[before..].iter().filter(|(from, ..)| *from == at(US));
    let largest = sent.map(|(_, _, octets)| octets.len()).max().unwrap();
    assert!(largest <= 1_400, "{largest}");
    let urrs: Vec<u32> = bill.order.iter().map(|report| report.urr_id).collect();
    assert_eq!(urrs, (1..=URRS).collect::<Vec<u32>>());
    let counted = lab.plane.counted.clone();
    assert!(bill.sums().iter().all(|(urr, sum)| *sum == counted.get(urr).copied().unwrap_or_default()));
    assert!((10..=60).contains(&rounds), "{rounds}");
}

#[test]
fn periodic_reports_come_without_traffic_too_and_ask_the_data_plane_first() {
    let mut rule = urr(1, PERIO);
    rule.measurement_period = Some(10);
    let (mut lab, session) = lab(vec![rule]);
    seconds(&mut lab, 9);
    assert!(lab.reports().is_empty());
    lab.traffic(session, (7, 0), false);
    seconds(&mut lab, 1);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.usage_report_trigger, octets(&report)), (Trigger(Trigger::PERIO), (7, 0)));
    seconds(&mut lab, 10);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.ur_seqn, octets(&report)), (1, (0, 0)));
}

/// TS 29.244 7.5.2.4: the period is there where PERIO is set, whichever request sets it or takes the period away.
#[test]
fn an_update_leaves_no_periodic_reports_without_a_period() {
    let (mut lab, session) = lab(vec![urr(1, VOLTH)]);
    let update = |triggers, period, carried| {
        let reporting_triggers = Some(ReportingTriggers::new(triggers));
        let update = UpdateUrr {
            urr_id: 1,
            reporting_triggers,
            measurement_period: period,
            carried,
            ..Default::default()
        };
        SessionModificationRequest { update_urrs: vec![update], ..Default::default() }
    };
    let refused = lab.modify(session, update(PERIO, None, vec![]));
    assert_eq!(
        (refused.cause, refused.offending_ie),
        (Cause::ConditionalIeMissing, Some(ie::MEASUREMENT_PERIOD))
    );
    assert_eq!(lab.modify(session, update(PERIO, Some(10), vec![])).cause, Cause::RequestAccepted);
    let none = vec![RawIe { ie: ie::MEASUREMENT_PERIOD, value: vec![] }];
    assert_eq!(lab.modify(session, update(PERIO, None, none.clone())).cause, Cause::ConditionalIeMissing);
    assert_eq!(lab.modify(session, update(VOLTH, None, none)).cause, Cause::RequestAccepted);
}

#[test]
fn a_silent_data_plane_does_not_hold_a_report_up_for_long() {
    let mut rule = urr(1, PERIO);
    rule.measurement_period = Some(10);
    let (mut lab, session) = lab(vec![rule]);
    lab.obedience = Obedience::Waits;
    seconds(&mut lab, 11);
    assert!(lab.reports().is_empty());
    seconds(&mut lab, 2);
    assert_eq!(reported(&mut lab, session).len(), 1);
}

#[test]
fn a_time_threshold_counts_from_the_first_packet_or_at_once() {
    for (information, first_s) in [(0, 13), (flags::MEASUREMENT_ISTM, 10)] {
        let mut rule = urr(1, TIMTH);
        rule.time_threshold = Some(10);
        rule.measurement_information = Some(information);
        let (mut lab, session) = lab(vec![rule]);
        seconds(&mut lab, 3);
        lab.traffic(session, (1, 0), false);
        seconds(&mut lab, first_s - 4);
        assert!(reported(&mut lab, session).is_empty());
        seconds(&mut lab, 1);
        let report = reported(&mut lab, session).remove(0);
        assert_eq!(report.usage_report_trigger, Trigger(Trigger::TIMTH));
        assert_eq!(report.duration_measurement, Some(10));
        seconds(&mut lab, 10);
        assert_eq!(reported(&mut lab, session).len(), 1);
    }
}

#[test]
fn time_without_packets_does_not_count_beyond_the_inactivity_time() {
    let mut rule = urr(1, TIMTH);
    rule.time_threshold = Some(20);
    rule.inactivity_detection_time = Some(4);
    let (mut lab, session) = lab(vec![rule]);
    // 4 s each, however long the pause.
    for _ in 0..4 {
        lab.traffic(session, (1, 0), false);
        seconds(&mut lab, 30);
    }
    assert!(reported(&mut lab, session).is_empty());
    let reports = lab.delete(session).usage_reports;
    let counted = reports[0].duration_measurement.unwrap();
    assert!((15..=17).contains(&counted), "{counted}");
}

#[test]
fn the_first_packet_is_told_of_where_asked() {
    let (mut lab, session) = lab(vec![urr(1, START)]);
    seconds(&mut lab, 3);
    lab.traffic(session, (60, 0), false);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!(report.usage_report_trigger, Trigger(Trigger::START));
    assert_eq!(report.time_of_first_packet, Some(now_s(&lab)));
    lab.traffic(session, (60, 0), false);
    assert!(reported(&mut lab, session).is_empty());
}

#[test]
fn a_linked_urr_reports_along() {
    let mut first = urr(1, VOLTH);
    first.volume_threshold = total(100);
    let mut second = urr(2, LIUSA);
    second.linked_urr_ids = vec![1];
    let (mut lab, session) = lab(vec![first, second]);
    lab.traffic(session, (50, 60), false);
    let reports = reported(&mut lab, session);
    let told: Vec<_> = reports.iter().map(|it| (it.urr_id, it.usage_report_trigger.0, octets(it))).collect();
    assert_eq!(told, [(1, Trigger::VOLTH, (50, 60)), (2, Trigger::LIUSA, (50, 60))]);
}

/// TS 29.244 8.2.19, LIUSA: whatever makes the other report, as one that is linked itself.
#[test]
fn a_linked_urr_reports_along_with_a_query_and_a_removal() {
    let along = |id| CreateUrr { linked_urr_ids: vec![1], ..urr(id, LIUSA) };
    let (mut lab, session) =
        lab(vec![urr(1, 0), along(2), CreateUrr { linked_urr_ids: vec![2], ..urr(3, LIUSA) }]);
    let told = |reports: Vec<UsageReport>| -> Vec<_> {
        reports.iter().map(|it| (it.urr_id, it.usage_report_trigger.0, octets(it))).collect()
    };
    lab.traffic(session, (50, 60), false);
    let query_urrs = vec![QueryUrr { urr_id: 1, carried: vec![] }];
    let answer = lab.modify(session, SessionModificationRequest { query_urrs, ..Default::default() });
    let along = |octets| [(2, Trigger::LIUSA, octets), (3, Trigger::LIUSA, octets)];
    let [second, third] = along((50, 60));
    assert_eq!(told(answer.usage_reports), [(1, Trigger::IMMER, (50, 60)), second, third]);
    lab.traffic(session, (7, 8), false);
    let mut update_pdrs = vec![];
    for (pdr_id, urr_ids) in [(1, vec![2, 3]), (2, vec![2, 3])] {
        update_pdrs.push(UpdatePdr { pdr_id, urr_ids, ..UpdatePdr::default() });
    }
    let remove_urrs = vec![RemoveUrr { urr_id: 1, carried: vec![] }];
    let update_urrs = vec![UpdateUrr {
        urr_id: 2,
        carried: vec![RawIe { ie: ie::LINKED_URR_ID, value: vec![] }],
        ..UpdateUrr::default()
    }];
    let request = SessionModificationRequest { remove_urrs, update_pdrs, update_urrs, ..Default::default() };
    let answer = lab.modify(session, request);
    assert_eq!(answer.cause, Cause::RequestAccepted, "{:?}", lab.notes);
    let [second, third] = along((7, 8));
    assert_eq!(told(answer.usage_reports), [(1, Trigger::TERMR, (7, 8)), second, third]);
    seconds(&mut lab, 10);
    assert!(reported(&mut lab, session).is_empty());
}

/// The data plane counts what is dropped; a threshold of nothing is none.
#[test]
fn dropped_downlink_traffic_is_told_to_whom_it_concerns() {
    const DROTH: u32 = 1 << 6;
    let mut rule = urr(1, DROTH);
    rule.dropped_dl_traffic_threshold = Some(DroppedTraffic { packets: Some(5), bytes: Some(0) });
    let (mut lab, session) = lab(vec![rule]);
    let urr = &lab.in_force[&session].rules.urrs[0];
    let threshold = rules::DroppedDownlink { packets: Some(5), bytes: None };
    assert_eq!(urr.dropped_downlink, Some(threshold));
    let counts = dplink::UsageCounts { urr: UrrId(1), dropped_downlink_packets: 5, ..Default::default() };
    let cause = dplink::UsageCause::DroppedDownlink;
    let notice = dplink::Notice::Usage { session, cause, counts: vec![counts] };
    lab.handle(n4::Input::DataPath(&notice));
    assert_eq!(reported(&mut lab, session)[0].usage_report_trigger, Trigger(Trigger::DROTH));
    let none = RawIe { ie: ie::DROPPED_DL_TRAFFIC_THRESHOLD, value: vec![] };
    let update = UpdateUrr { urr_id: 1, carried: vec![none], ..UpdateUrr::default() };
    lab.modify(session, SessionModificationRequest { update_urrs: vec![update], ..Default::default() });
    assert_eq!(lab.in_force[&session].rules.urrs[0].dropped_downlink, None);
}

/// Traffic that had no packet for a minute, or for the inactivity detection time, has stopped; it may start again.
#[test]
fn traffic_starts_and_stops_again_and_again() {
    const STOPT: u32 = 1 << 5;
    for (gap_s, detection_time) in [(60, None), (20, Some(20))] {
        let mut rule = urr(1, START | STOPT);
        rule.inactivity_detection_time = detection_time;
        let (mut lab, session) = lab(vec![rule]);
        let heard = |lab: &mut crate::common::Lab| {
            let reports = reported(lab, session);
            reports.iter().map(|report| report.usage_report_trigger.0).collect::<Vec<_>>()
        };
        seconds(&mut lab, 2 * gap_s);
        assert!(heard(&mut lab).is_empty(), "nothing can stop that never started");
        for _ in 0..3 {
            lab.traffic(session, (5, 5), false);
            seconds(&mut lab, 1);
            assert_eq!(heard(&mut lab), [Trigger::START]);
            seconds(&mut lab, gap_s - 2);
            lab.traffic(session, (5, 5), false);
            seconds(&mut lab, gap_s - 1);
            assert!(heard(&mut lab).is_empty());
            seconds(&mut lab, 2);
            assert_eq!(heard(&mut lab), [Trigger::STOPT]);
            seconds(&mut lab, 3 * gap_s);
            assert!(heard(&mut lab).is_empty());
        }
    }
}

/// Who asks for the end alone hears of each end.
#[test]
fn a_stop_is_told_without_its_start() {
    const STOPT: u32 = 1 << 5;
    let (mut lab, session) = lab(vec![urr(1, STOPT)]);
    for _ in 0..2 {
        lab.traffic(session, (5, 5), false);
        seconds(&mut lab, 62);
        let reports = reported(&mut lab, session);
        assert_eq!(reports.iter().map(|report| report.usage_report_trigger.0).collect::<Vec<_>>(), [STOPT]);
    }
}

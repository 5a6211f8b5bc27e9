//! Time without packets, which does not count beyond the inactivity detection time (TS 29.244 5.2.2.2).

use crate::charging::lab_of;
use crate::common::Lab;
use crate::common::billing::*;
use ::charging::Policy;
use pfcp::*;
use rules::Seid;
use std::time::Duration;

const PERIO: u32 = 1;
const VOLTH: u32 = 1 << 1;
const TIMTH: u32 = 1 << 2;
/// Of all that is told below: 2 s for each of six packets.
const COUNTED_S: u32 = 12;

fn ms(lab: &mut Lab, ms: u64) {
    lab.pass(Duration::from_millis(ms));
}

/// With gaps that end after 2 s.
fn rule(triggers: u32) -> CreateUrr {
    CreateUrr { inactivity_detection_time: Some(2), ..urr(1, triggers) }
}

fn of_each_trigger() -> [CreateUrr; 4] {
    [
        rule(0),
        CreateUrr { time_threshold: Some(10_000), ..rule(TIMTH) },
        CreateUrr { volume_threshold: total(150), ..rule(VOLTH) },
        CreateUrr { measurement_period: Some(10), ..rule(PERIO) },
    ]
}

/// Packets after 0.2, 4, 8, 12, 16 and 20 s of 24.
fn use_now_and_then(lab: &mut Lab, session: Seid) -> Vec<UsageReport> {
    let mut reports = vec![];
    for wait in [200, 3_800, 4_000, 4_000, 4_000, 4_000] {
        ms(lab, wait);
        lab.traffic(session, (100, 0), false);
        reports.extend(reported(lab, session));
    }
    ms(lab, 4_000);
    reports.extend(reported(lab, session));
    reports
}

fn durations(reports: &[UsageReport]) -> u32 {
    reports.iter().filter_map(|report| report.duration_measurement).sum()
}

#[test]
fn gaps_do_not_count_whatever_triggers_there_are() {
    let counted = of_each_trigger().map(|rule| {
        let (mut lab, session) = lab(vec![rule]);
        let mut reports = use_now_and_then(&mut lab, session);
        reports.extend(lab.delete(session).usage_reports);
        durations(&reports)
    });
    assert!(counted.iter().all(|counted| counted.abs_diff(COUNTED_S) <= 1), "{counted:?} s");
}

#[test]
fn gaps_are_not_charged_whatever_triggers_there_are() {
    for rule in of_each_trigger() {
        let (mut lab, session) = lab_of(Policy::default(), vec![CreateUrr { urr_id: 10, ..rule }]);
        use_now_and_then(&mut lab, session);
        lab.delete(session);
        let containers = lab.cdrs.iter().flat_map(|record| &record.containers);
        let charged_ms: u64 = containers.map(|container| container.duration_ms).sum();
        assert!(charged_ms.abs_diff(u64::from(COUNTED_S) * 1_000) <= 1_000, "{charged_ms} ms");
    }
}

/// With a threshold far off nobody is asked for each gap.
#[test]
fn a_time_threshold_is_reached_on_time_and_seldom_asked_for() {
    let (mut lab, session) = lab(vec![CreateUrr { time_threshold: Some(300), ..rule(TIMTH) }]);
    let mut told_after = None;
    for second in 0..700 {
        // Half of the time there is traffic.
        if second % 4 == 0 {
            lab.traffic(session, (100, 0), false);
        }
        seconds(&mut lab, 1);
        if let [report] = &reported(&mut lab, session)[..] {
            assert_eq!(report.duration_measurement, Some(300));
            told_after.get_or_insert(second + 1);
        }
    }
    assert!((598..=602).contains(&told_after.unwrap()), "{told_after:?}");
    assert!(lab.plane.asked < 30, "{} questions in 700 s", lab.plane.asked);
}

fn query(lab: &mut Lab, session: Seid) -> Vec<UsageReport> {
    let query_urrs = vec![QueryUrr { urr_id: 1, carried: vec![] }];
    lab.modify(session, SessionModificationRequest { query_urrs, ..Default::default() }).usage_reports
}

/// What one life of the data plane has told is not told again by the next, nor to another life of ours; and the time that other rules
/// give counts from then on.
#[test]
fn time_goes_on_in_another_life_of_the_data_plane_and_with_other_rules() {
    let (mut lab, session) = lab(vec![rule(0)]);
    lab.traffic(session, (100, 0), false);
    seconds(&mut lab, 10);
    let mut reports = query(&mut lab, session);
    lab.restart_plane();
    lab.traffic(session, (100, 0), false);
    seconds(&mut lab, 10);
    reports.extend(query(&mut lab, session));
    for gap in [Some(4), None, Some(2)] {
        let carried = RawIe { ie: ie::INACTIVITY_DETECTION_TIME, value: vec![] };
        let update = UpdateUrr {
            urr_id: 1,
            inactivity_detection_time: gap,
            carried: if gap.is_none() { vec![carried] } else { vec![] },
            ..UpdateUrr::default()
        };
        lab.modify(session, SessionModificationRequest { update_urrs: vec![update], ..Default::default() });
        lab.traffic(session, (100, 0), false);
        seconds(&mut lab, 10);
        lab.restart();
        reports.extend(query(&mut lab, session));
    }
    let told: Vec<_> = reports.iter().filter_map(|report| report.duration_measurement).collect();
    assert_eq!(told, [2, 2, 4, 10, 2]);
}

/// An IE without octets takes away what it names (TS 29.244 5.6.3), as a timer of 0 does.
#[test]
fn an_inactivity_timer_is_taken_away() {
    let silent = |change: Option<SessionModificationRequest>| {
        let mut lab = Lab::associated();
        let request = SessionEstablishmentRequest {
            user_plane_inactivity_timer: Some(30),
            ..crate::common::smf::establishment(77)
        };
        let session = lab.establish(request);
        change.into_iter().for_each(|change| {
            assert!(lab.modify(session, change).cause.is_accepted());
        });
        ms(&mut lab, 40_000);
        !lab.reports().is_empty()
    };
    let zero = SessionModificationRequest { user_plane_inactivity_timer: Some(0), ..Default::default() };
    let none = RawIe { ie: ie::USER_PLANE_INACTIVITY_TIMER, value: vec![] };
    let null = SessionModificationRequest { carried: vec![none], ..Default::default() };
    assert!(silent(None) && silent(Some(SessionModificationRequest::default())));
    assert!(!silent(Some(zero)) && !silent(Some(null)));
}

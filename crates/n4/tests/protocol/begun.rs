//! What begins with a modification: URRs in the place of others, and what was not measured before.

use crate::common::billing::*;
use crate::common::{Obedience, SMF};
use n4::Output;
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;

const VOLTH: u32 = 1 << 1;
const VOLQU: u32 = 1 << 8;

fn removing_one() -> Vec<RemoveUrr> {
    vec![RemoveUrr { urr_id: 1, carried: vec![] }]
}

/// URR 1 is created, in the place of the one that is there; whether that is removed, too.
fn replacing(rule: CreateUrr, removes: bool) -> SessionModificationRequest {
    let remove_urrs = if removes { removing_one() } else { vec![] };
    SessionModificationRequest { remove_urrs, create_urrs: vec![rule], ..Default::default() }
}

fn with_quota(quota: u64, threshold: Option<u64>) -> CreateUrr {
    let volume_threshold = threshold.and_then(total);
    CreateUrr { volume_quota: total(quota), volume_threshold, ..urr(1, VOLQU | VOLTH) }
}

/// All that the old one has counted is told with its end, whoever knew of it before, and takes nothing of the new one's quota.
#[test]
fn the_quota_of_a_urr_that_takes_the_place_of_another_is_whole() {
    for (removes, is_told, quota) in
        [(true, false, 20_000), (true, true, 20_000), (true, false, 9_000), (false, false, 20_001)]
    {
        let (mut lab, session) = lab(vec![with_quota(20_000, None)]);
        lab.traffic(session, (12_000, 0), false);
        if is_told {
            lab.interim(session, false);
        }
        lab.traffic(session, (7_000, 0), false);
        let answer = accepted(&mut lab, session, replacing(with_quota(quota, None), removes));
        let [last] = &answer.usage_reports[..] else { panic!("{answer:?}") };
        assert_eq!((last.usage_report_trigger.0, octets(last)), (Trigger::TERMR, (19_000, 0)));
        assert_eq!(left(&lab, session), quota as i64);
        lab.traffic(session, (quota - 1, 0), false);
        assert!(reported(&mut lab, session).is_empty(), "there is some left");
        lab.traffic(session, (1, 0), false);
        let end = reported(&mut lab, session).remove(0);
        assert_eq!((end.usage_report_trigger.0, octets(&end)), (Trigger::VOLQU, (quota, 0)));
    }
}

/// Nor does the old one's share in the counts come back with another life of the data plane.
#[test]
fn of_such_a_quota_so_much_is_left_to_another_life_of_the_data_plane() {
    let (mut lab, session) = lab(vec![with_quota(20_000, None)]);
    lab.traffic(session, (19_000, 0), false);
    accepted(&mut lab, session, replacing(with_quota(15_000, None), true));
    lab.traffic(session, (4_000, 0), false);
    lab.interim(session, false);
    lab.restart_plane();
    assert_eq!(left(&lab, session), 11_000);
}

#[test]
fn the_threshold_of_a_urr_that_takes_the_place_of_another_is_whole() {
    for threshold in [10_000, 20_000] {
        let (mut lab, session) = lab(vec![with_quota(90_000, Some(20_000))]);
        lab.traffic(session, (0, 12_000), false);
        lab.traffic(session, (0, 7_000), false);
        let answer = accepted(&mut lab, session, replacing(with_quota(90_000, Some(threshold)), true));
        assert_eq!(octets(&answer.usage_reports[0]), (0, 19_000));
        lab.traffic(session, (0, threshold - 1), false);
        assert!(reported(&mut lab, session).is_empty(), "it is not reached");
        lab.traffic(session, (0, 1), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (0, threshold));
    }
}

/// The quota that was used up stops the new one no more than one that was not.
#[test]
fn who_is_given_another_urr_for_one_that_is_used_up_goes_on() {
    let (mut lab, session) = lab(vec![with_quota(1_000, None)]);
    lab.traffic(session, (1_000, 0), false);
    assert_eq!(octets(&reported(&mut lab, session)[0]), (1_000, 0));
    accepted(&mut lab, session, replacing(with_quota(3_000, None), false));
    assert_eq!(left(&lab, session), 3_000);
}

/// Where the new one has no limits, nothing waits for the counts.
#[test]
fn a_change_waits_for_counts_only_where_something_begins_with_them() {
    for (rule, waits) in [(urr(1, VOLQU), false), (with_quota(500, None), true)] {
        let (mut lab, session) = lab(vec![with_quota(20_000, None)]);
        lab.obedience = Obedience::Waits;
        let request = Message::session(session.0, 900, replacing(rule, true));
        lab.tell(SMF, &request);
        let is_put = |order: &Output| matches!(order, Output::Put(_));
        assert!(matches!(&lab.orders[0], Output::QueryUsage { is_reported: true, .. }));
        assert_eq!(!lab.orders.iter().any(is_put), waits);
        lab.obey();
        lab.obey();
        let Body::SessionModificationResponse(answer) = lab.answer(900).body else { panic!("an answer") };
        assert_eq!((answer.cause, answer.usage_reports.len()), (Cause::RequestAccepted, 1));
        assert_eq!(lab.in_force, lab.desired());
    }
}

#[test]
fn a_change_whose_counts_do_not_come_fails_and_changes_nothing() {
    let (mut lab, session) = lab(vec![with_quota(20_000, None)]);
    let before = lab.in_force[&session].rules.clone();
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(session.0, 900, replacing(with_quota(500, None), true)));
    lab.orders.clear();
    seconds(&mut lab, 2);
    let Body::SessionModificationResponse(answer) = lab.answer(900).body else { panic!("an answer") };
    assert_eq!(answer.cause, Cause::SystemFailure);
    lab.obedience = Obedience::Obeys;
    lab.obey();
    assert_eq!(lab.in_force[&session].rules, before);
    lab.traffic(session, (7, 0), false);
    assert_eq!(octets(&lab.delete(session).usage_reports[0]), (7, 0));
}

fn measuring(method: u8) -> UpdateUrr {
    UpdateUrr { urr_id: 1, measurement_method: Some(method), ..UpdateUrr::default() }
}

/// TS 29.244 5.2.2.2: what passed before volume was measured is no volume of this URR.
#[test]
fn volume_counts_from_when_it_is_measured() {
    for quota in [None, total(5_000)] {
        let rule = CreateUrr { measurement_method: flags::METHOD_DURAT, ..urr(1, VOLQU) };
        let (mut lab, session) = lab(vec![rule]);
        (0..38).for_each(|_| lab.traffic(session, (500, 0), false));
        let update =
            UpdateUrr { volume_quota: quota, ..measuring(flags::METHOD_VOLUM | flags::METHOD_DURAT) };
        let request = SessionModificationRequest { update_urrs: vec![update], ..Default::default() };
        assert!(accepted(&mut lab, session, request).usage_reports.is_empty());
        if quota.is_some() {
            assert_eq!(left(&lab, session), 5_000);
        }
        lab.traffic(session, (1_000, 0), false);
        assert_eq!(octets(&lab.delete(session).usage_reports[0]), (1_000, 0));
    }
}

/// Where time without packets does not count, only the data plane knows what does: it is asked, and a threshold of volume goes on.
#[test]
fn time_counts_from_when_it_is_measured() {
    let rule = CreateUrr {
        measurement_method: flags::METHOD_VOLUM,
        inactivity_detection_time: Some(10),
        volume_threshold: total(1_000),
        ..urr(1, VOLTH)
    };
    let (mut lab, session) = lab(vec![rule]);
    for _ in 0..8 {
        lab.traffic(session, (100, 0), false);
        seconds(&mut lab, 5);
    }
    let update_urrs = vec![measuring(flags::METHOD_VOLUM | flags::METHOD_DURAT)];
    accepted(&mut lab, session, SessionModificationRequest { update_urrs, ..Default::default() });
    lab.traffic(session, (100, 0), false);
    seconds(&mut lab, 5);
    lab.traffic(session, (100, 0), false);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((octets(&report), report.duration_measurement), ((1_000, 0), Some(5)));
}

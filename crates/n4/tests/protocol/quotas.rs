//! Quotas that are taken away, that are of nothing, and that nobody can use.

use crate::common::billing::*;
use crate::common::{Lab, SMF};
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::Seid;

const VOLTH: u32 = 1 << 1;
const QUHTI: u32 = 1 << 3;
const START: u32 = 1 << 4;
const VOLQU: u32 = 1 << 8;
const TIMQU: u32 = 1 << 9;
const LIUSA: u32 = 1 << 7;

fn update(lab: &mut Lab, session: Seid, update: UpdateUrr) -> SessionModificationResponse {
    let answer =
        lab.modify(session, SessionModificationRequest { update_urrs: vec![update], ..Default::default() });
    assert_eq!(answer.cause, Cause::RequestAccepted, "{:?}", lab.notes);
    answer
}

/// URR 1, of which these IEs are removed (TS 29.244 5.6.3: without a value).
fn without(ies: &[u16]) -> UpdateUrr {
    let carried = ies.iter().map(|ie| RawIe { ie: *ie, value: vec![] }).collect();
    UpdateUrr { urr_id: 1, carried, ..UpdateUrr::default() }
}

/// What the data plane lets pass of URR 1.
fn passes(lab: &Lab, session: Seid) -> Option<u64> {
    lab.in_force[&session].rules.urrs[0].volume_quota.and_then(|quota| quota.total)
}

fn triggers(lab: &mut Lab, session: Seid) -> Vec<u32> {
    reported(lab, session).iter().map(|report| report.usage_report_trigger.0).collect()
}

/// Its end has stopped packets; without it, or with another kind in its place, they pass.
#[test]
fn a_time_quota_that_is_taken_away_holds_nobody_up() {
    let volume = UpdateUrr { volume_quota: total(500), ..without(&[ie::TIME_QUOTA]) };
    for (change, left) in [(without(&[ie::TIME_QUOTA]), None), (volume, Some(500))] {
        let mut rule = urr(1, TIMQU | VOLQU);
        rule.time_quota = Some(30);
        let (mut lab, session) = lab(vec![rule]);
        lab.traffic(session, (10, 0), false);
        seconds(&mut lab, 31);
        assert_eq!((triggers(&mut lab, session), passes(&lab, session)), (vec![Trigger::TIMQU], Some(0)));
        update(&mut lab, session, UpdateUrr { volume_quota: total(100), urr_id: 1, ..Default::default() });
        assert_eq!(passes(&lab, session), Some(0), "the time that was used up is the one in force");
        update(&mut lab, session, change);
        assert_eq!(passes(&lab, session), left.or(Some(100)));
        lab.traffic(session, (40, 0), false);
        assert_eq!(octets(&lab.delete(session).usage_reports[0]), (40, 0));
    }
}

#[test]
fn who_has_neither_quota_nor_holding_time_is_not_held_up() {
    let mut rule = urr(1, QUHTI);
    (rule.quota_holding_time, rule.volume_quota) = (Some(20), total(1_000));
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (100, 0), false);
    seconds(&mut lab, 20);
    assert_eq!((triggers(&mut lab, session), passes(&lab, session)), (vec![Trigger::QUHTI], Some(0)));
    update(&mut lab, session, without(&[ie::QUOTA_HOLDING_TIME]));
    assert_eq!(passes(&lab, session), Some(0), "a quota that was not used in its time is none");
    update(&mut lab, session, without(&[ie::VOLUME_QUOTA]));
    assert_eq!(passes(&lab, session), None);
}

/// It was never used up: its end is told when somebody misses it, and not before.
#[test]
fn a_quota_of_nothing_is_told_once_to_who_gave_it_with_the_first_packet() {
    for (time_quota, volume_quota, expected) in [
        (None, total(0), Trigger::VOLQU),
        (Some(0), None, Trigger::TIMQU),
        (Some(0), total(0), Trigger::VOLQU | Trigger::TIMQU),
    ] {
        let mut rule = urr(1, VOLQU | TIMQU);
        (rule.time_quota, rule.volume_quota) = (time_quota, volume_quota);
        let (mut lab, session) = lab(vec![rule]);
        let give = |lab: &mut Lab| {
            let given = UpdateUrr { urr_id: 1, time_quota, volume_quota, ..UpdateUrr::default() };
            update(lab, session, given);
        };
        for _ in 0..3 {
            seconds(&mut lab, 100);
            assert_eq!((triggers(&mut lab, session), passes(&lab, session)), (vec![], Some(0)));
            for told in [vec![expected], vec![]] {
                lab.traffic(session, (10, 0), false);
                assert_eq!(triggers(&mut lab, session), told);
                seconds(&mut lab, 2);
            }
            give(&mut lab);
        }
        assert_eq!(octets(&lab.delete(session).usage_reports[0]), (0, 0));
    }
}

/// TS 29.244 5.4.11: who waits for traffic to start may let none pass until then.
#[test]
fn a_start_is_told_of_though_there_is_no_quota_for_it() {
    for (time_quota, volume_quota) in [(None, total(0)), (Some(0), None)] {
        let mut rule = urr(1, START);
        (rule.time_quota, rule.volume_quota) = (time_quota, volume_quota);
        let (mut lab, session) = lab(vec![rule]);
        seconds(&mut lab, 5);
        for told in [vec![Trigger::START], vec![]] {
            lab.traffic(session, (10, 0), false);
            assert_eq!(triggers(&mut lab, session), told);
        }
    }
}

/// TS 29.244 8.2.68: from when it is said.
#[test]
fn time_runs_at_once_where_an_update_says_so() {
    let mut rule = urr(1, TIMQU);
    rule.time_quota = Some(60);
    let (mut lab, session) = lab(vec![rule]);
    seconds(&mut lab, 100);
    let at_once = UpdateUrr { measurement_information: Some(flags::MEASUREMENT_ISTM), ..without(&[]) };
    update(&mut lab, session, at_once);
    seconds(&mut lab, 59);
    assert!(triggers(&mut lab, session).is_empty());
    seconds(&mut lab, 1);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.usage_report_trigger.0, report.duration_measurement), (Trigger::TIMQU, Some(60)));
}

/// Reports tell whole seconds: what one leaves of a second others tell.
#[test]
fn reports_together_tell_all_the_time_there_was() {
    let rule = CreateUrr { measurement_information: Some(flags::MEASUREMENT_ISTM), ..urr(1, 0) };
    let (mut lab, session) = lab(vec![rule]);
    let mut told = 0;
    for _ in 0..10 {
        lab.pass(std::time::Duration::from_millis(950));
        let query_urrs = vec![QueryUrr { urr_id: 1, carried: vec![] }];
        let answer = lab.modify(session, SessionModificationRequest { query_urrs, ..Default::default() });
        told += answer.usage_reports[0].duration_measurement.unwrap();
    }
    assert_eq!(told, 9);
}

/// TS 29.244 8.2.41, TERMR: the URR is there still, and what it has counted is told as with its removal.
#[test]
fn a_urr_that_no_pdr_makes_use_of_any_more_is_reported() {
    let (mut lab, session) = lab(vec![urr(1, 0), urr(2, 0)]);
    lab.traffic(session, (50, 60), false);
    let only = |pdr_id, urr_ids| UpdatePdr { pdr_id, urr_ids, ..UpdatePdr::default() };
    let change = |lab: &mut Lab, update_pdrs| {
        let request = SessionModificationRequest { update_pdrs, ..Default::default() };
        let answer = lab.modify(session, request);
        assert_eq!(answer.cause, Cause::RequestAccepted, "{:?}", lab.notes);
        let told = |it: &UsageReport| (it.urr_id, it.usage_report_trigger.0, octets(it));
        answer.usage_reports.iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(change(&mut lab, vec![only(1, vec![2])]), [], "the other one makes use of it");
    lab.traffic(session, (1, 2), false);
    assert_eq!(change(&mut lab, vec![only(2, vec![2])]), [(1, Trigger::TERMR, (51, 62))]);
    lab.traffic(session, (5, 6), false);
    assert_eq!(change(&mut lab, vec![only(2, vec![1, 2])]), []);
    lab.traffic(session, (7, 8), false);
    let last = lab.delete(session).usage_reports;
    assert_eq!(last.iter().map(octets).collect::<Vec<_>>(), [(7, 8), (63, 76)]);
    assert!(lab.is_silent(), "{SMF} has heard all");
}

/// One report and one grant add up to what may pass, also where one message asks for both.
#[test]
fn a_quota_that_comes_with_a_query_counts_from_what_the_answer_tells() {
    let by_name = vec![QueryUrr { urr_id: 1, carried: vec![] }];
    for (query_urrs, pfcpsm_req_flags) in [(by_name, None), (vec![], Some(flags::PFCPSM_QAURR))] {
        let mut rule = urr(1, VOLQU);
        rule.volume_quota = total(1_000);
        let (mut lab, session) = lab(vec![rule]);
        lab.traffic(session, (500, 0), true);
        let update_urrs = vec![UpdateUrr { urr_id: 1, volume_quota: total(1_000), ..Default::default() }];
        let request =
            SessionModificationRequest { query_urrs, pfcpsm_req_flags, update_urrs, ..Default::default() };
        let answer = accepted(&mut lab, session, request);
        assert_eq!(octets(&answer.usage_reports[0]), (500, 0));
        assert_eq!(left(&lab, session), 1_000);
        lab.traffic(session, (900, 0), false);
        assert!(triggers(&mut lab, session).is_empty());
        lab.traffic(session, (100, 0), false);
        assert_eq!(triggers(&mut lab, session), [Trigger::VOLQU]);
    }
}

/// Also of a URR that reports along with the one that is asked about.
#[test]
fn a_quota_that_comes_with_the_query_of_another_counts_from_what_the_answer_tells() {
    let mut rule = CreateUrr { linked_urr_ids: vec![2], ..urr(1, VOLQU | LIUSA) };
    rule.volume_quota = total(1_000);
    let (mut lab, session) = lab(vec![rule, urr(2, 0)]);
    lab.traffic(session, (500, 0), true);
    let query_urrs = vec![QueryUrr { urr_id: 2, carried: vec![] }];
    let update_urrs = vec![UpdateUrr { urr_id: 1, volume_quota: total(1_000), ..Default::default() }];
    let request = SessionModificationRequest { query_urrs, update_urrs, ..Default::default() };
    assert_eq!(accepted(&mut lab, session, request).usage_reports.len(), 2);
    assert_eq!(left(&lab, session), 1_000);
}

/// As for quotas: a threshold counts from the last report, which is the answer.
#[test]
fn a_threshold_that_comes_with_a_query_counts_from_what_the_answer_tells() {
    let mut rule = urr(1, VOLTH);
    rule.volume_threshold = total(1_000);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (500, 0), true);
    let query_urrs = vec![QueryUrr { urr_id: 1, carried: vec![] }];
    let update_urrs = vec![UpdateUrr { urr_id: 1, volume_threshold: total(800), ..Default::default() }];
    let request = SessionModificationRequest { query_urrs, update_urrs, ..Default::default() };
    assert_eq!(octets(&accepted(&mut lab, session, request).usage_reports[0]), (500, 0));
    lab.traffic(session, (700, 0), false);
    assert!(triggers(&mut lab, session).is_empty());
    lab.traffic(session, (100, 0), false);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.usage_report_trigger.0, octets(&report)), (Trigger::VOLTH, (800, 0)));
}

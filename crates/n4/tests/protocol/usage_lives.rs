//! Usage through queries, ends, and restarts.

use crate::common::billing::*;
use crate::common::{Lab, Obedience, SMF};
use n4::Output;
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::Since;
use std::collections::BTreeSet;

const VOLTH: u32 = 1 << 1;
const VOLQU: u32 = 1 << 8;
const TIMQU: u32 = 1 << 9;

#[test]
fn a_query_is_answered_with_what_was_used_and_its_reference() {
    let (mut lab, session) = lab(vec![urr(1, 0), urr(2, 0)]);
    lab.traffic(session, (5, 6), false);
    let query = SessionModificationRequest {
        query_urrs: vec![QueryUrr { urr_id: 2, carried: vec![] }],
        query_urr_reference: Some(4711),
        ..SessionModificationRequest::default()
    };
    let response = lab.modify(session, query);
    let [report] = &response.usage_reports[..] else { panic!("{response:?}") };
    assert_eq!((report.urr_id, report.usage_report_trigger), (2, Trigger(Trigger::IMMER)));
    assert_eq!((octets(report), report.query_urr_reference), ((5, 6), Some(4711)));
    let all = SessionModificationRequest {
        pfcpsm_req_flags: Some(flags::PFCPSM_QAURR),
        ..SessionModificationRequest::default()
    };
    let told: Vec<_> = lab.modify(session, all).usage_reports.iter().map(octets).collect();
    assert_eq!(told, [(5, 6), (0, 0)]);
}

/// It is told of the first packet at once, wherever else nothing would be told yet. So is whoever comes in its place.
#[test]
fn time_that_has_begun_outlives_a_data_plane_that_is_killed_at_once() {
    for is_alone in [true, false] {
        let mut rule = urr(1, TIMQU);
        rule.time_quota = Some(30);
        let (mut lab, session) = lab(vec![rule]);
        for _ in 0..10 {
            lab.traffic(session, (10, 0), false);
            seconds(&mut lab, 1);
        }
        lab.kill_plane(is_alone, false);
        lab.traffic(session, (10, 0), false);
        seconds(&mut lab, 19);
        assert!(reported(&mut lab, session).is_empty());
        seconds(&mut lab, 1);
        let report = reported(&mut lab, session).remove(0);
        assert_eq!(
            (report.usage_report_trigger, report.duration_measurement),
            (Trigger(Trigger::TIMQU), Some(30))
        );
    }
}

#[test]
fn a_query_of_an_unknown_urr_is_refused() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    let query_urrs = vec![QueryUrr { urr_id: 9, carried: vec![] }];
    let response = lab.modify(session, SessionModificationRequest { query_urrs, ..Default::default() });
    let blamed = (Cause::RuleCreationModificationFailure, Some(FailedRuleId::Urr(9)));
    assert_eq!((response.cause, response.failed_rule_id), blamed);
}

#[test]
fn a_query_the_data_plane_does_not_answer_fails() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    lab.obedience = Obedience::Waits;
    let query_urrs = vec![QueryUrr { urr_id: 1, carried: vec![] }];
    let request = SessionModificationRequest { query_urrs, ..Default::default() };
    lab.tell(SMF, &Message::session(session.0, 900, request));
    seconds(&mut lab, 2);
    let Body::SessionModificationResponse(response) = lab.answer(900).body else { panic!("an answer") };
    assert_eq!(response.cause, Cause::SystemFailure);
}

#[test]
fn removed_urrs_tell_their_last_and_one_of_the_same_id_starts_anew() {
    let (mut lab, session) = lab(vec![urr(1, 0), urr(2, 0)]);
    lab.traffic(session, (100, 0), false);
    let remove = |urr_id| vec![RemoveUrr { urr_id, carried: vec![] }];
    let update = |pdr_id| UpdatePdr { pdr_id, urr_ids: vec![1], ..UpdatePdr::default() };
    let request = SessionModificationRequest {
        remove_urrs: remove(2),
        update_pdrs: vec![update(1), update(2)],
        ..SessionModificationRequest::default()
    };
    let response = lab.modify(session, request);
    let [report] = &response.usage_reports[..] else { panic!("{response:?}") };
    assert_eq!((report.urr_id, report.usage_report_trigger), (2, Trigger(Trigger::TERMR)));
    assert_eq!(octets(report), (100, 0));

    let create_urrs = vec![urr(1, 0)];
    let request = SessionModificationRequest { remove_urrs: remove(1), create_urrs, ..Default::default() };
    let first: u64 = lab.modify(session, request).usage_reports.iter().map(|report| octets(report).0).sum();
    lab.traffic(session, (11, 0), false);
    let last = lab.delete(session).usage_reports.remove(0);
    assert_eq!((first + octets(&last).0, last.ur_seqn), (111, 0));
}

/// Some control planes can say nothing but the removal: no PDR names the rule afterwards (TS 29.244 6.3.3.3).
#[test]
fn a_urr_is_removed_though_pdrs_name_it() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    lab.traffic(session, (100, 0), false);
    let remove_urrs = vec![RemoveUrr { urr_id: 1, carried: vec![] }];
    let response = lab.modify(session, SessionModificationRequest { remove_urrs, ..Default::default() });
    assert_eq!(response.cause, Cause::RequestAccepted);
    let [report] = &response.usage_reports[..] else { panic!("{response:?}") };
    assert_eq!((report.urr_id, report.usage_report_trigger), (1, Trigger(Trigger::TERMR)));
    assert_eq!(octets(report), (100, 0));
    let rules = &lab.in_force[&session].rules;
    assert!(rules.urrs.is_empty() && rules.pdrs.len() == 2);
    assert!(rules.pdrs.iter().all(|pdr| pdr.urrs.is_empty()));
}

/// A PDR that loses its FAR drops, as one that never had any, until it is given one.
#[test]
fn a_far_is_removed_though_a_pdr_names_it() {
    let (mut lab, session) = lab(vec![]);
    let far = |lab: &Lab| {
        let rules = &lab.in_force[&session].rules;
        let pdr = rules.pdrs.iter().find(|pdr| pdr.id == rules::PdrId(2)).unwrap();
        rules.fars.iter().find(|far| far.id == pdr.far).unwrap().clone()
    };
    let had = far(&lab).id.0;
    let remove_fars = vec![RemoveFar { far_id: had, carried: vec![] }];
    let response = lab.modify(session, SessionModificationRequest { remove_fars, ..Default::default() });
    assert_eq!(response.cause, Cause::RequestAccepted);
    assert_ne!(far(&lab).id.0, had);
    assert_eq!(far(&lab).apply_action, rules::ApplyAction::Drop);
}

#[test]
fn a_deleted_session_tells_all() {
    let (mut lab, session) = lab(vec![urr(1, 0), urr(2, 0)]);
    lab.traffic(session, (1, 2), true);
    let reports = lab.delete(session).usage_reports;
    assert!(
        reports.iter().all(|it| it.usage_report_trigger.contains(Trigger::TERMR) && octets(it) == (1, 2))
    );
    assert_eq!(reports.len(), 2);
}

/// Nothing but the look at it tells what the first life counted; the second counts from zero.
#[test]
fn what_a_dead_data_plane_told_by_and_by_is_reported_once() {
    let (mut lab, session) = lab(vec![urr(1, 0), urr(2, 0)]);
    lab.traffic(session, (100, 20), false);
    lab.interim(session, false);
    lab.traffic(session, (7, 3), false);
    lab.interim(session, false);
    assert!(lab.reports().is_empty(), "nobody asked for one");
    lab.traffic(session, (50, 0), false);
    lab.restart_plane();
    lab.traffic(session, (1_000, 0), false);
    lab.interim(session, false);
    lab.restart_plane();
    lab.traffic(session, (0, 4), false);
    let told: Vec<_> = lab.delete(session).usage_reports.iter().map(octets).collect();
    assert_eq!(told, [(1_107, 27); 2], "all but the 50 that were not told");
}

/// Only in memory as long as the data plane lives, which tells it again; then in the database.
#[test]
fn what_a_dead_data_plane_told_outlives_our_process_once_the_next_one_is_there() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    lab.traffic(session, (100, 20), false);
    let saved = lab.saved.clone();
    lab.interim(session, false);
    assert_eq!(lab.saved, saved, "it is not saved with each look");
    lab.restart_plane();
    lab.pass(std::time::Duration::from_secs(1));
    lab.restart();
    lab.traffic(session, (5, 0), false);
    lab.restart();
    assert_eq!(octets(&lab.delete(session).usage_reports[0]), (105, 20));
}

#[test]
fn a_report_is_repeated_until_confirmed_and_is_the_same_after_a_restart() {
    let mut rule = urr(1, VOLTH);
    rule.volume_threshold = total(100);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (100, 0), false);
    let (_, first) = lab.reports().remove(0);
    lab.traffic(session, (100, 0), false);
    seconds(&mut lab, 60);
    let repeated = lab.reports();
    assert!(repeated.len() >= 4 && repeated.iter().all(|(_, it)| it.body == first.body));
    lab.restart();
    seconds(&mut lab, 0);
    let (_, after) = lab.reports().remove(0);
    assert_eq!(after.body, first.body);
    assert_ne!(after.sequence, first.sequence);
    lab.tell(
        SMF,
        &Message::session(session.0, after.sequence, SessionReportResponse::of(Cause::RequestAccepted)),
    );
    // What came meanwhile follows.
    seconds(&mut lab, 12);
    let next = reported(&mut lab, session).remove(0);
    assert_eq!((next.ur_seqn, octets(&next)), (1, (100, 0)));
    seconds(&mut lab, 60);
    assert!(lab.reports().is_empty());
}

#[test]
fn a_report_of_a_session_the_owner_does_not_know_removes_it() {
    let mut rule = urr(1, VOLTH);
    rule.volume_threshold = total(100);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (100, 0), false);
    let (_, report) = lab.reports().remove(0);
    let response = SessionReportResponse::of(Cause::SessionContextNotFound);
    lab.tell(SMF, &Message::session(session.0, report.sequence, response));
    assert!(lab.in_force.is_empty() && lab.saved.is_empty());
}

/// The last counts of a session are in the answer to its deletion and nowhere else.
#[test]
fn an_answer_to_a_deletion_is_the_same_after_a_restart_and_then_forgotten() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    lab.traffic(session, (5, 0), false);
    let message = Message::session(session.0, 900, SessionDeletionRequest::default());
    let first = lab.ask(SMF, &message);
    assert!(matches!(&first, Body::SessionDeletionResponse(it) if it.usage_reports.len() == 1));
    lab.restart();
    assert_eq!((lab.node.sessions(), lab.desired().len()), (0, 0));
    assert_eq!(lab.ask(SMF, &message), first);
    assert_ne!(lab.establish(metered(78, vec![])), session);
    assert_eq!(lab.over.len(), 1);
    seconds(&mut lab, 31);
    assert!(lab.over.is_empty());
    assert_eq!(lab.saved.len(), 1);
}

#[test]
fn an_answer_that_told_of_usage_is_the_same_after_a_restart() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    lab.traffic(session, (5, 0), false);
    let query_urrs = vec![QueryUrr { urr_id: 1, carried: vec![] }];
    let request = SessionModificationRequest { query_urrs, ..Default::default() };
    let message = Message::session(session.0, 900, request);
    let first = lab.ask(SMF, &message);
    lab.restart();
    assert_eq!(lab.ask(SMF, &message), first);
}

/// The data plane that comes back counts from zero and knows nothing of what passed of the quota.
#[test]
fn a_data_plane_that_restarts_neither_loses_what_it_told_nor_gives_a_quota_twice() {
    let mut rule = urr(1, VOLQU);
    rule.volume_quota = total(1_000);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (700, 0), false);
    assert_eq!(octets(&lab.modify(session, all_queried()).usage_reports[0]), (700, 0));
    lab.restart_plane();
    assert_eq!(left(&lab, session), 300);
    lab.traffic(session, (0, 300), false);
    assert_eq!(octets(&reported(&mut lab, session)[0]), (0, 300));
    lab.restart();
    lab.restart_plane();
    assert_eq!(left(&lab, session), 0);
}

/// Nor does it know what of a threshold had been used: the report comes so much earlier, and the next one in full.
#[test]
fn a_threshold_goes_on_in_another_life_of_the_data_plane() {
    let mut rule = urr(1, VOLTH);
    rule.volume_threshold = total(1_000);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (700, 0), false);
    lab.modify(session, all_queried());
    lab.traffic(session, (600, 0), false);
    lab.interim(session, false);
    lab.restart_plane();
    let since = |lab: &Lab| lab.in_force[&session].rules.urrs[0].threshold_since;
    assert_eq!(since(&lab), Since { uplink: -600, downlink: 0 }, "since the last report");
    lab.traffic(session, (400, 0), false);
    assert_eq!(octets(&reported(&mut lab, session)[0]), (1_000, 0));
    lab.restart_plane();
    assert_eq!(since(&lab), Since::default());
}

/// What it had counted is known before the next one is told of sessions.
#[test]
fn a_quota_of_a_data_plane_that_was_killed_is_given_once() {
    let mut rule = urr(1, VOLQU);
    rule.volume_quota = total(1_000);
    for is_alone in [true, false] {
        let (mut lab, session) = lab(vec![rule.clone()]);
        lab.traffic(session, (700, 0), true);
        lab.kill_plane(is_alone, false);
        assert_eq!(left(&lab, session), 300);
        assert!(lab.reports().is_empty(), "nothing is due");
        lab.traffic(session, (0, 300), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (700, 300));
    }
}

/// The same life is told of once more, or what it had told itself was more: neither is another count.
#[test]
fn what_a_former_life_is_said_to_have_counted_is_no_less_than_what_it_told() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    lab.traffic(session, (700, 0), false);
    let (epoch, old) = (lab.plane.epoch, lab.plane.left(lab.now));
    lab.traffic(session, (300, 0), false);
    lab.interim(session, false);
    lab.handle(n4::Input::DataPathLost);
    for _ in 0..2 {
        lab.handle(n4::Input::DataPath(&dplink::Notice::FormerUsage { epoch, counts: old.clone() }));
    }
    lab.kill_plane(true, false);
    // Of a life before that it would be another count.
    lab.handle(n4::Input::DataPath(&dplink::Notice::FormerUsage { epoch, counts: old }));
    assert_eq!(octets(&lab.delete(session).usage_reports[0]), (1_000, 0));
}

fn all_queried() -> SessionModificationRequest {
    SessionModificationRequest {
        pfcpsm_req_flags: Some(flags::PFCPSM_QAURR),
        ..SessionModificationRequest::default()
    }
}

/// The rules in force are not put anew: packets that wait for a next hop and no flow would take no notice.
#[test]
fn a_query_changes_nothing() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    let revision = lab.in_force[&session].revision;
    lab.traffic(session, (5, 0), false);
    assert_eq!(octets(&lab.modify(session, all_queried()).usage_reports[0]), (5, 0));
    assert_eq!(lab.in_force[&session].revision, revision);
    let nothing = SessionModificationRequest::default();
    assert_eq!(lab.modify(session, nothing).cause, Cause::RequestAccepted);
    assert_eq!(lab.in_force[&session].revision, revision);
}

/// What was measured and told nobody is told once more; what was not measured is not told.
#[test]
fn another_method_loses_nothing_that_was_measured() {
    let with = |method: u8| SessionModificationRequest {
        update_urrs: vec![UpdateUrr { urr_id: 1, measurement_method: Some(method), ..UpdateUrr::default() }],
        ..SessionModificationRequest::default()
    };
    let told = |lab: &mut Lab, session| {
        let report = lab.modify(session, all_queried()).usage_reports.remove(0);
        (report.volume_measurement.and_then(|it| it.octets.total), report.duration_measurement)
    };
    let volume_alone = CreateUrr { measurement_method: flags::METHOD_VOLUM, ..urr(1, 0) };
    let (mut lab, session) = lab(vec![volume_alone]);
    lab.traffic(session, (700, 0), false);
    lab.modify(session, all_queried());
    lab.traffic(session, (500, 0), false);
    lab.interim(session, false);
    seconds(&mut lab, 5);
    lab.modify(session, with(flags::METHOD_DURAT));
    seconds(&mut lab, 3);
    assert_eq!(told(&mut lab, session), (Some(500), Some(3)));
    lab.traffic(session, (300, 0), false);
    assert_eq!(told(&mut lab, session), (None, Some(0)));
    lab.traffic(session, (200, 0), false);
    lab.interim(session, false);
    lab.modify(session, with(flags::METHOD_VOLUM));
    lab.traffic(session, (40, 0), false);
    assert_eq!(told(&mut lab, session), (Some(40), Some(0)));
    assert_eq!(told(&mut lab, session), (Some(0), None));
}

/// The times of a report are of its own packets.
#[test]
fn a_report_of_no_packet_tells_of_no_last_one() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    lab.traffic(session, (5, 0), false);
    let times = |report: &UsageReport| {
        [report.time_of_first_packet, report.time_of_last_packet].map(|it| it.is_some())
    };
    assert_eq!(times(&lab.modify(session, all_queried()).usage_reports[0]), [true; 2]);
    assert_eq!(times(&lab.modify(session, all_queried()).usage_reports[0]), [false; 2]);
}

/// The notice that the quota is used up may have been lost with the process that was to hear it.
#[test]
fn a_restart_finds_out_what_it_missed() {
    let mut rule = urr(1, VOLQU);
    rule.volume_quota = total(1_000);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (1_000, 0), true);
    lab.restart();
    seconds(&mut lab, 11);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.usage_report_trigger, octets(&report)), (Trigger(Trigger::VOLQU), (1_000, 0)));
}

#[test]
fn a_silent_user_is_told_of_once_until_heard_again() {
    let mut lab = Lab::associated();
    let mut request = metered(77, vec![urr(1, 0)]);
    request.user_plane_inactivity_timer = Some(30);
    let session = lab.establish(request);
    seconds(&mut lab, 20);
    lab.traffic(session, (1, 0), false);
    seconds(&mut lab, 29);
    assert!(lab.reports().is_empty());
    seconds(&mut lab, 1);
    let silent = |lab: &mut Lab| {
        let sequences: BTreeSet<u32> = lab.reports().iter().map(|(_, report)| report.sequence).collect();
        for sequence in &sequences {
            let response = SessionReportResponse::of(Cause::RequestAccepted);
            lab.tell(SMF, &Message::session(session.0, *sequence, response));
        }
        sequences.len()
    };
    assert_eq!(silent(&mut lab), 1);
    seconds(&mut lab, 100);
    assert_eq!(silent(&mut lab), 0);
    lab.traffic(session, (1, 0), false);
    seconds(&mut lab, 40);
    assert_eq!(silent(&mut lab), 1);
    let off = SessionModificationRequest { user_plane_inactivity_timer: Some(0), ..Default::default() };
    lab.modify(session, off);
    assert_eq!(lab.in_force[&session].rules.urrs.len(), 1);
    lab.traffic(session, (1, 0), false);
    seconds(&mut lab, 100);
    assert!(lab.reports().is_empty());
}

/// A PDR takes no more than eight URRs: they tell of the last packet then.
#[test]
fn a_user_with_eight_urrs_is_not_silent() {
    let mut lab = Lab::associated();
    let mut request = metered(77, (1..=8).map(|id| urr(id, 0)).collect());
    request.user_plane_inactivity_timer = Some(30);
    let session = lab.establish(request);
    for _ in 0..5 {
        seconds(&mut lab, 20);
        lab.traffic(session, (1, 0), true);
    }
    assert!(lab.reports().is_empty());
    seconds(&mut lab, 31);
    assert_eq!(lab.reports().len(), 1);
}

/// Whoever missed it may wait for it for ever, and whoever is gone is not asked for ever.
#[test]
fn a_user_who_is_silent_is_told_of_again_where_nobody_answers() {
    let mut lab = Lab::associated();
    let mut request = metered(77, vec![]);
    request.user_plane_inactivity_timer = Some(30);
    let session = lab.establish(request);
    let told = |lab: &mut Lab, time| {
        seconds(lab, time);
        lab.reports().iter().map(|(_, report)| report.sequence).collect::<BTreeSet<u32>>()
    };
    assert_eq!(told(&mut lab, 600).len(), 4);
    lab.traffic(session, (1, 0), false);
    let first = told(&mut lab, 40);
    assert_eq!(first.len(), 1);
    // A user who speaks meanwhile is not silent, which is known when the data plane is asked next.
    lab.traffic(session, (1, 0), false);
    let later = told(&mut lab, 600);
    assert_eq!(later.difference(&first).count(), 1 + 4);
}

/// Between the start of the process and the link to the data plane nothing is known of the last packets.
#[test]
fn a_restart_does_not_take_a_busy_user_for_a_silent_one() {
    let mut rule = urr(1, 1 << 3);
    rule.quota_holding_time = Some(10);
    let (mut lab, session) = lab(vec![rule]);
    (0..5).for_each(|_| {
        lab.traffic(session, (1, 0), true);
        seconds(&mut lab, 9);
    });
    lab.restart_alone();
    lab.traffic(session, (1, 0), true);
    seconds(&mut lab, 5);
    lab.connect();
    lab.traffic(session, (1, 0), true);
    seconds(&mut lab, 9);
    assert!(lab.reports().is_empty());
    seconds(&mut lab, 2);
    assert_eq!(reported(&mut lab, session)[0].usage_report_trigger, Trigger(Trigger::QUHTI));
}

/// A data plane that is gone holds a report up only for so long.
#[test]
fn reports_come_without_a_data_plane_too() {
    let mut rule = urr(1, 1);
    rule.measurement_period = Some(10);
    let (mut lab, session) = lab(vec![rule]);
    seconds(&mut lab, 9);
    lab.handle(n4::Input::DataPathLost);
    seconds(&mut lab, 1);
    assert!(lab.reports().is_empty());
    seconds(&mut lab, 1);
    assert_eq!(reported(&mut lab, session).len(), 1);
    seconds(&mut lab, 10);
    assert_eq!(reported(&mut lab, session).len(), 1);
}

#[test]
fn sessions_without_urrs_ask_nothing() {
    let (mut lab, _) = lab(vec![]);
    seconds(&mut lab, 1_000);
    assert!(!lab.told.iter().any(|order| matches!(order, Output::QueryUsage { .. })));
}

/// There is what was left of it.
#[test]
fn a_volume_quota_goes_on_after_a_time_quota_that_ran_out() {
    let mut rule = urr(1, TIMQU | VOLQU);
    (rule.time_quota, rule.volume_quota) = (Some(30), total(1_000));
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (100, 300), false);
    seconds(&mut lab, 40);
    assert_eq!(lab.in_force[&session].rules.urrs[0].volume_quota.unwrap().total, Some(0));
    let update = |update: UpdateUrr| SessionModificationRequest {
        update_urrs: vec![UpdateUrr { urr_id: 1, ..update }],
        ..SessionModificationRequest::default()
    };
    lab.modify(session, update(UpdateUrr { time_quota: Some(30), ..UpdateUrr::default() }));
    assert_eq!(left(&lab, session), 600);
    lab.traffic(session, (0, 500), false);
    assert_eq!(left(&lab, session), 100);
    lab.restart_plane();
    assert!((100..=600).contains(&left(&lab, session)), "another life grants no more");
    let told = lab.modify(session, all_queried());
    let [told] = told.usage_reports.iter().map(octets).collect::<Vec<_>>()[..] else { panic!("{told:?}") };
    lab.modify(session, update(UpdateUrr { volume_quota: total(700), ..UpdateUrr::default() }));
    assert_eq!(left(&lab, session), 700, "since the report of {told:?}");
}

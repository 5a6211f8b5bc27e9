//! What control planes say again though it is so already: rules that are gone are removed, rules that are there created; and what they
//! say twice at once.

use crate::common::billing::{accepted, lab, octets, urr};
use crate::common::smf::{self, establishment, path_switch};
use crate::common::{Lab, SMF};
use pfcp::*;

fn is_noted(lab: &Lab) -> bool {
    lab.notes.iter().any(|note| note.contains("is told again of the removal or creation of"))
}

/// free5GC says Remove URR in every modification that follows the first.
#[test]
fn what_is_gone_can_be_removed_with_whatever_else_is_asked() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(77));
    let request = SessionModificationRequest {
        remove_pdrs: vec![RemovePdr::new(9)],
        remove_fars: vec![RemoveFar::new(9)],
        remove_qers: vec![RemoveQer::new(9)],
        remove_urrs: vec![RemoveUrr::new(9)],
        remove_bar: Some(RemoveBar::new(9)),
        ..path_switch(5)
    };
    accepted(&mut lab, session, path_switch(5));
    let before = lab.in_force[&session].rules.clone();
    assert!(!is_noted(&lab));
    accepted(&mut lab, session, request);
    assert_eq!(lab.in_force[&session].rules, before);
    assert_eq!(lab.node.counters().restated, 5);
    assert!(is_noted(&lab));
}

/// What is gone may be removed as often as one likes, what is there once; updates are done in their order.
#[test]
fn one_request_may_say_some_things_twice() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(77));
    let remove_fars = vec![RemoveFar::new(9), RemoveFar::new(9)];
    accepted(&mut lab, session, SessionModificationRequest { remove_fars, ..Default::default() });
    let remove_pdrs = vec![RemovePdr::new(2), RemovePdr::new(2)];
    let twice = SessionModificationRequest { remove_pdrs, ..Default::default() };
    let response = lab.modify(session, twice);
    assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Pdr(2)));
    let update_fars = [5, 6].into_iter().flat_map(|teid| path_switch(teid).update_fars).collect();
    accepted(&mut lab, session, SessionModificationRequest { update_fars, ..Default::default() });
    let far = &lab.in_force[&session].rules.fars[1];
    assert_eq!(far.forwarding.unwrap().outer_header_creation.unwrap().teid().unwrap().0, 6);
}

/// OpenAirInterface makes a BAR whenever a user sleeps.
#[test]
fn a_bar_that_is_made_anew_takes_the_place_of_the_old() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(77));
    for count in [None, Some(3), Some(4)] {
        let sleep = UpdateFar {
            bar_id: Some(1),
            ..request::far_action(2, ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP))
        };
        let bar = CreateBar { suggested_buffering_packets_count: count, ..CreateBar::new(1) };
        let request = SessionModificationRequest { create_bar: Some(bar), ..request::updates(vec![sleep]) };
        accepted(&mut lab, session, request);
        let rules = &lab.in_force[&session].rules;
        let [bar] = &rules.bars[..] else { panic!("{:?}", rules.bars) };
        assert_eq!((bar.suggested_packets, rules.fars[1].bar), (count.map(u16::from), Some(bar.id)));
        accepted(&mut lab, session, path_switch(5));
    }
    assert_eq!(lab.node.counters().restated, 2);
}

/// free5GC creates its URRs in each modification: what they count and may count goes on.
#[test]
fn a_urr_that_is_created_as_it_is_counts_on() {
    let quota = Some(Volumes { total: Some(1_000), ..Volumes::default() });
    let charged = CreateUrr { volume_quota: quota, ..urr(1, 0) };
    let (mut lab, session) = lab(vec![charged.clone()]);
    lab.traffic(session, (100, 0), false);
    let grant = lab.in_force[&session].rules.urrs[0].quota_grant;
    let request = SessionModificationRequest { create_urrs: vec![charged], ..path_switch(5) };
    assert_eq!(accepted(&mut lab, session, request).usage_reports, []);
    assert_eq!(lab.in_force[&session].rules.urrs[0].quota_grant, grant, "no quota is given twice");
    lab.traffic(session, (11, 0), false);
    assert_eq!(octets(&lab.delete(session).usage_reports[0]), (111, 0));
}

/// Another URR by its name begins with nothing, and the one that goes tells its last.
#[test]
fn a_urr_that_is_created_otherwise_takes_the_place_of_the_old() {
    let (mut lab, session) = lab(vec![urr(1, 0)]);
    lab.traffic(session, (100, 0), false);
    let other =
        CreateUrr { volume_quota: Some(Volumes { total: Some(9_000), ..Volumes::default() }), ..urr(1, 0) };
    let request = SessionModificationRequest { create_urrs: vec![other], ..Default::default() };
    let response = accepted(&mut lab, session, request);
    let [report] = &response.usage_reports[..] else { panic!("{response:?}") };
    assert_eq!(
        (octets(report), report.usage_report_trigger.contains(UsageReportTrigger::TERMR)),
        ((100, 0), true)
    );
    lab.traffic(session, (11, 0), false);
    assert_eq!(octets(&lab.delete(session).usage_reports[0]), (11, 0));
}

/// FARs and QERs have nothing to lose.
#[test]
fn fars_and_qers_that_are_made_anew_take_the_place_of_the_old() {
    let mut lab = Lab::associated();
    let mut first = establishment(77);
    first.create_qers = vec![smf::qer(1)];
    first.create_pdrs[1].qer_ids = vec![1];
    let session = lab.establish(first);
    let into = ForwardingParameters {
        outer_header_creation: Some(smf::tunnel(6)),
        ..smf::forwarding(DestinationInterface::Access)
    };
    let request = SessionModificationRequest {
        create_fars: vec![smf::far(2, ApplyAction::FORW, Some(into))],
        create_qers: vec![request::qer(1, None, Some(5))],
        ..Default::default()
    };
    accepted(&mut lab, session, request);
    let rules = &lab.in_force[&session].rules;
    let far = rules.fars.iter().find(|far| far.id.0 == 2).unwrap();
    assert_eq!(far.forwarding.unwrap().outer_header_creation.unwrap().teid().unwrap().0, 6);
    assert_eq!((rules.fars.len(), rules.qers.len(), rules.pdrs[1].qers.len()), (2, 1, 1));
    assert_eq!(rules.qers[0].qfi.map(rules::Qfi::value), Some(5));
}

/// What we chose for a PDR was told with its creation, and nothing says of a second one whose endpoint it is to have.
#[test]
fn a_pdr_that_is_there_is_not_made_again() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(77));
    let before = (lab.desired(), lab.node.tunnels());
    let create_pdrs = vec![smf::uplink(1, smf::choose(None))];
    let response = lab.modify(session, SessionModificationRequest { create_pdrs, ..path_switch(5) });
    assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Pdr(1)));
    assert_eq!((lab.desired(), lab.node.tunnels()), before);
    // Nor is anything else made twice at once.
    let create_qers = vec![smf::qer(4), smf::qer(4)];
    let response = lab.modify(session, SessionModificationRequest { create_qers, ..path_switch(5) });
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Qer(4)));
    assert_eq!((lab.desired(), lab.node.tunnels()), before);
}

/// OpenAirInterface says a Create FAR or Create PDR again in the request that has it.
#[test]
fn what_a_request_creates_twice_in_the_same_words_counts_once() {
    let mut lab = Lab::associated();
    let mut first = establishment(77);
    first.create_pdrs = [1, 0, 1, 0].map(|at| first.create_pdrs[at].clone()).to_vec();
    first.create_fars.extend(first.create_fars.clone());
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, first)) else {
        panic!("an answer")
    };
    assert_eq!(response.cause, Cause::RequestAccepted);
    let [created] = &response.created_pdrs[..] else { panic!("{response:?}") };
    let session = rules::Seid(response.up_f_seid.unwrap().seid);
    let rules = lab.in_force[&session].rules.clone();
    assert_eq!((created.pdr_id, rules.pdrs.len(), rules.fars.len(), lab.node.tunnels()), (1, 2, 2, 1));

    let create_pdrs = vec![smf::uplink(9, smf::choose(None)); 3];
    let create_fars = vec![smf::far(5, ApplyAction::DROP, None); 2];
    let request = SessionModificationRequest { create_pdrs, create_fars, ..path_switch(5) };
    let response = accepted(&mut lab, session, request);
    assert_eq!((response.created_pdrs.len(), lab.node.tunnels()), (1, 2));
    let rules = lab.in_force[&session].rules.clone();
    assert_eq!((rules.pdrs.len(), rules.fars.len()), (3, 3));
}

/// Which of them holds nobody can know.
#[test]
fn what_a_request_creates_twice_in_other_words_is_refused() {
    let (drop, keep) = (ApplyAction::DROP, ApplyAction::BUFF);
    let fars = [drop, drop, keep].map(|action| smf::far(5, action, None)).to_vec();
    let pdr = |precedence| CreatePdr { precedence: Some(precedence), ..smf::uplink(9, smf::choose(None)) };
    let cases =
        [(vec![], fars, FailedRuleId::Far(5)), (vec![pdr(1), pdr(2), pdr(1)], vec![], FailedRuleId::Pdr(9))];
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(77));
    let before = (lab.desired(), lab.node.tunnels());
    for (create_pdrs, create_fars, failed) in cases {
        let request = SessionModificationRequest { create_pdrs, create_fars, ..path_switch(5) };
        let response = lab.modify(session, request);
        assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
        assert_eq!(response.failed_rule_id, Some(failed));
        assert_eq!((lab.desired(), lab.node.tunnels()), before);
    }
}

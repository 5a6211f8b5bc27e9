//! Taking leave of control planes: they are asked to release us, and nobody comes back.

use crate::common::billing::{Bill, metered, urr};
use crate::common::personas::{accepted, established};
use crate::common::smf::{establishment, path_switch, setup};
use crate::common::{Lab, OTHER, Obedience, SMF, at, config};
use n4::{Config, Limits};
use pfcp::*;
use rules::UrrId;
use std::collections::BTreeSet;
use std::time::Duration;

pub(crate) fn release(lab: &mut Lab, within_s: u64) -> Option<AssociationUpdateRequest> {
    let now = lab.time();
    let outputs = lab.node.leave(Duration::from_secs(within_s), now);
    lab.sent.clear();
    lab.carry_out_all(outputs);
    asked_to_release(lab)
}

fn asked_to_release(lab: &mut Lab) -> Option<AssociationUpdateRequest> {
    lab.sent.iter().find_map(|(_, message)| match &message.body {
        Body::AssociationUpdateRequest(request) => Some(request.clone()),
        _ => None,
    })
}

pub(crate) fn set_up(lab: &mut Lab, peer: std::net::Ipv4Addr, stamp: u32) -> Cause {
    let sequence = 0xFF00 + lab.trace.len() as u32;
    match lab.ask(peer, &Message::node(sequence, setup(peer, stamp))) {
        Body::AssociationSetupResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn release_us(lab: &mut Lab) {
    let request = AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] };
    let answer = lab.ask(SMF, &Message::node(6, request));
    assert!(matches!(answer, Body::AssociationReleaseResponse(response) if response.cause.is_accepted()));
}

/// Many control planes associate again as soon as they are released: their users would be cut off when the node stops.
/// Some control planes count their requests anew with each association, or after a restart in the same second, and say the same to
/// the octet: what that was answered before is no answer.
#[test]
fn who_comes_back_after_a_release_is_answered_anew() {
    let mut lab = Lab::associated();
    let first = lab.establish(establishment(1));
    let asked = lab.trace.iter().rev().find(|(from, ..)| *from == at(SMF)).unwrap().2.clone();
    let request = AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] };
    let release = pfcp::encode(&Message::node(6, request));
    for _ in 0..2 {
        // Its answer may get lost.
        lab.receive(at(SMF), &release);
        let answer = lab.answer(6).body;
        assert!(matches!(answer, Body::AssociationReleaseResponse(answer) if answer.cause.is_accepted()));
    }
    assert!(lab.in_force.is_empty());
    assert_eq!(set_up(&mut lab, SMF, 5), Cause::RequestAccepted);
    lab.receive(at(SMF), &asked);
    let second = lab.in_force.keys().next().copied();
    assert!(second.is_some_and(|second| second != first), "{second:?}");
}

#[test]
fn nobody_associates_while_leave_is_taken() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(1));
    release(&mut lab, 100).unwrap();
    assert_eq!(set_up(&mut lab, SMF, 1), Cause::NoResourcesAvailable);
    assert_eq!(set_up(&mut lab, OTHER, 1), Cause::NoResourcesAvailable);
    // It is as it was: there are its sessions, and no new ones.
    assert_eq!(lab.node.leaving(), ["10.40.0.9"]);
    accepted(&lab.modify(session, path_switch(9)));
    release_us(&mut lab);
    assert_eq!(set_up(&mut lab, SMF, 1), Cause::NoResourcesAvailable);
    lab.pass(Duration::from_secs(200));
    assert_eq!(set_up(&mut lab, SMF, 1), Cause::NoResourcesAvailable, "long after the time is over");
    assert!(lab.associations.is_empty() && lab.node.leaving().is_empty());
}

#[test]
fn nobody_is_asked_to_associate_while_leave_is_taken() {
    let associate = vec![at(SMF), at(OTHER)];
    let mut lab = Lab::new(Config { associate, ..config() });
    lab.associate(SMF, 1);
    lab.pass(Duration::from_secs(1));
    release(&mut lab, 30).unwrap();
    // One was asked before, and may answer yet.
    assert_eq!(lab.node.leaving(), ["10.40.0.9", "10.40.0.8:8805"]);
    lab.pass(Duration::from_secs(12));
    assert_eq!(lab.node.leaving(), ["10.40.0.9"]);
    lab.sent.clear();
    lab.pass(Duration::from_secs(100));
    let asked = |lab: &Lab| {
        let setups =
            lab.sent.iter().filter(|(_, sent)| matches!(sent.body, Body::AssociationSetupRequest(_)));
        setups.map(|(to, _)| *to).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(asked(&lab).is_empty());
    let now = lab.time();
    let outputs = lab.node.stay(now);
    lab.carry_out_all(outputs);
    lab.pass(Duration::from_secs(1));
    assert_eq!(asked(&lab), [at(OTHER), at(SMF)].into(), "who is wanted is asked again");
}

#[test]
fn who_is_named_twice_is_asked_once() {
    let mut lab = Lab::new(Config { associate: vec![at(SMF), at(OTHER), at(SMF)], ..config() });
    lab.pass(Duration::from_secs(1));
    let asked = |lab: &Lab, whom| {
        let is_asked = |(to, message): &&(_, Message)| {
            *to == at(whom) && matches!(message.body, Body::AssociationSetupRequest(_))
        };
        lab.sent.iter().filter(is_asked).count()
    };
    assert_eq!([SMF, OTHER].map(|whom| asked(&lab, whom)), [1, 1]);
}

/// It is associated for its part.
#[test]
fn who_answers_that_it_associates_is_asked_to_release_us() {
    let mut lab = Lab::new(Config { associate: vec![at(SMF)], ..config() });
    lab.pass(Duration::ZERO);
    let (_, asked) = lab.sent.pop().unwrap();
    release(&mut lab, 30);
    let Body::AssociationSetupRequest(_) = asked.body else { panic!("{asked:?}") };
    let response = AssociationSetupResponse {
        node_id: NodeId::Ipv4(SMF),
        cause: Cause::RequestAccepted,
        recovery_time_stamp: 1,
        up_function_features: None,
        cp_function_features: None,
        pools: vec![],
        smf_set_id: None,
        alternatives: vec![],
        carried: vec![],
    };
    lab.sent.clear();
    lab.tell(SMF, &Message::node(asked.sequence, response));
    let request = asked_to_release(&mut lab).expect("as all others were");
    assert_eq!(request.graceful_release_period, Some(flags::timer(Some(30))));
    assert_eq!(lab.node.leaving(), ["10.40.0.9"]);
    lab.pass(Duration::from_secs(31));
    assert!(lab.node.leaving().is_empty() && lab.associations.is_empty());
}

#[test]
fn an_order_to_leave_is_taken_back() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(1));
    release(&mut lab, 100).unwrap();
    let now = lab.time();
    let outputs = lab.node.stay(now);
    lab.carry_out_all(outputs);
    assert!(lab.node.leaving().is_empty());
    let answer = lab.ask(SMF, &Message::session(0, 900, establishment(2)));
    let Body::SessionEstablishmentResponse(response) = answer else { panic!("{answer:?}") };
    assert_eq!(response.cause, Cause::RequestAccepted);
    assert_eq!(set_up(&mut lab, OTHER, 1), Cause::RequestAccepted);
    lab.restart();
    lab.pass(Duration::from_secs(101));
    assert!(lab.in_force.contains_key(&session), "nor does a restart remember it");
    assert_eq!(lab.associations.len(), 2);
}

/// A crash is no stop: whoever crashes while it leaves goes on leaving, as long as that was to take.
#[test]
fn a_process_that_crashes_while_it_leaves_goes_on() {
    let mut lab = Lab::associated();
    release(&mut lab, 100).unwrap();
    release_us(&mut lab);
    lab.pass(Duration::from_secs(50));
    lab.restart();
    assert_eq!(set_up(&mut lab, SMF, 1), Cause::NoResourcesAvailable);
    lab.pass(Duration::from_secs(49));
    lab.restart();
    assert_eq!(set_up(&mut lab, SMF, 1), Cause::NoResourcesAvailable);
    lab.pass(Duration::from_secs(2));
    lab.restart();
    assert_eq!(set_up(&mut lab, SMF, 1), Cause::RequestAccepted, "nobody waits for it to stop any more");
}

#[test]
fn a_process_that_is_stopped_when_nobody_is_left_serves_when_it_starts_again() {
    let mut lab = Lab::associated();
    release(&mut lab, 100).unwrap();
    let stop = |lab: &mut Lab| {
        let outputs = lab.node.stopped();
        lab.carry_out_all(outputs);
        lab.restart();
    };
    stop(&mut lab);
    assert_eq!(set_up(&mut lab, OTHER, 1), Cause::NoResourcesAvailable, "somebody was left");
    release_us(&mut lab);
    stop(&mut lab);
    assert_eq!(set_up(&mut lab, OTHER, 1), Cause::RequestAccepted);
}

/// Else a node that is to be taken away would make sessions again.
#[test]
fn a_release_that_was_asked_for_outlives_a_restart() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(1));
    release(&mut lab, 100).unwrap();
    lab.pass(Duration::from_secs(40));
    lab.sent.clear();
    lab.restart();
    lab.pass(Duration::ZERO);
    let request = asked_to_release(&mut lab).expect("it may not have heard");
    assert_eq!(request.association_release_request, Some(flags::RELEASE_SARR));
    assert_eq!(request.graceful_release_period, Some(flags::timer(Some(60))));
    assert_eq!(lab.node.leaving(), ["10.40.0.9"]);
    let refused = lab.ask(SMF, &Message::session(0, 900, establishment(2)));
    let Body::SessionEstablishmentResponse(refused) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.cause, Cause::RequestRejected);
    lab.pass(Duration::from_secs(59));
    assert!(lab.in_force.contains_key(&session));
    lab.pass(Duration::from_secs(1));
    assert!(lab.in_force.is_empty() && lab.associations.is_empty());
}

#[test]
fn a_control_plane_is_asked_to_release_us_within_a_time() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, establishment(77));
    let request = release(&mut lab, 100).unwrap();
    assert_eq!(request.association_release_request, Some(flags::RELEASE_SARR));
    assert_eq!(lab.node.leaving(), ["10.40.0.9"]);
    assert_eq!(request.graceful_release_period.map(flags::timer_s), Some(Some(120)));
    // What is there may be changed, and nothing new is made.
    accepted(&lab.modify(session, path_switch(9)));
    let Body::SessionEstablishmentResponse(response) =
        lab.ask(SMF, &Message::session(0, 5, establishment(78)))
    else {
        panic!("an answer")
    };
    assert_eq!(response.cause, Cause::RequestRejected);
    release_us(&mut lab);
    assert_eq!((lab.node.sessions(), lab.associations.len()), (0, 0));
    assert!(lab.node.leaving().is_empty() && lab.node.unreleased().is_empty());
}

#[test]
fn who_does_not_release_us_in_time_is_released() {
    let mut lab = Lab::associated();
    established(&mut lab, establishment(77));
    release(&mut lab, 50).unwrap();
    lab.pass(Duration::from_secs(49));
    assert_eq!((lab.node.sessions(), lab.associations.len()), (1, 1));
    lab.pass(Duration::from_secs(2));
    assert_eq!((lab.node.sessions(), lab.associations.len(), lab.in_force.len()), (0, 0, 0));
    assert!(release(&mut lab, 50).is_none(), "there is nobody to ask");
}

/// The reports that have come, by the control plane's names of their sessions.
pub(crate) fn told(lab: &mut Lab) -> Vec<(u64, SessionReportRequest)> {
    let reports = lab.reports();
    let told = reports.into_iter().map(|(_, report)| match report.body {
        Body::SessionReportRequest(request) => (report.seid.unwrap(), report.sequence, request),
        other => panic!("{other:?}"),
    });
    let told: Vec<_> = told.collect();
    for (_, sequence, _) in &told {
        let response = SessionReportResponse::of(Cause::RequestAccepted);
        lab.tell(SMF, &Message::session(0, *sequence, response));
    }
    told.into_iter().map(|(seid, _, request)| (seid, request)).collect()
}

/// Nobody else can tell any more.
#[test]
fn what_sessions_used_is_told_when_the_time_is_up() {
    let mut lab = Lab::associated();
    let session = lab.establish(metered(77, vec![urr(1, 0)]));
    release(&mut lab, 50).unwrap();
    lab.traffic(session, (100, 200), true);
    lab.pass(Duration::from_secs(49));
    assert!(lab.in_force.contains_key(&session) && told(&mut lab).is_empty());
    lab.pass(Duration::from_secs(2));
    let [(77, report)] = &told(&mut lab)[..] else { panic!("one report") };
    assert_eq!((report.report_type, report.pfcpsrreq_flags), (ReportType(ReportType::USAR), None));
    let mut bill = Bill::default();
    bill.add(&report.usage_reports);
    assert_eq!(bill.sums()[&UrrId(1)], (100, 200));
    assert!(lab.node.leaving().is_empty() && lab.associations.is_empty());
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.saved.len(), lab.in_force.len()), (0, 0, 0, 0));
    lab.pass(Duration::from_secs(60));
    assert!(told(&mut lab).is_empty());
}

#[test]
fn what_many_sessions_used_is_told_as_there_is_room() {
    let limits = Limits { requests: 3, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { limits, ..config() });
    for cp_seid in 1..=9 {
        let whole = metered(cp_seid, vec![urr(1, 0)]);
        let create_pdrs = whole.create_pdrs[..1].to_vec();
        lab.establish(SessionEstablishmentRequest { create_pdrs, ..whole });
    }
    release(&mut lab, 10).unwrap();
    let mut all = BTreeSet::new();
    lab.pass(Duration::from_secs(10));
    assert_eq!(lab.node.leaving().len(), 1, "not while there is something to tell");
    for _ in 0..25 {
        all.extend(told(&mut lab).into_iter().map(|(session, _)| session));
        lab.pass(Duration::from_secs(1));
    }
    assert_eq!(all, (1..=9).collect());
    assert!(lab.node.leaving().is_empty() && lab.in_force.is_empty());
}

/// Neither a data plane nor a control plane that does not answer keeps us from leaving.
#[test]
fn who_does_not_answer_is_left_all_the_same() {
    let mut lab = Lab::associated();
    lab.establish(metered(77, vec![urr(1, 0)]));
    release(&mut lab, 50).unwrap();
    lab.obedience = Obedience::Waits;
    lab.pass(Duration::from_secs(50) + config().apply_timeout);
    assert_eq!(told(&mut lab).len(), 1, "what is known");
    assert!(lab.node.leaving().is_empty());

    let mut lab = Lab::associated();
    lab.establish(metered(77, vec![urr(1, 0)]));
    lab.goes_silent();
    release(&mut lab, 50).unwrap();
    lab.pass(Duration::from_secs(50));
    assert!(lab.node.leaving().is_empty() && lab.in_force.is_empty());
    assert!(told(&mut lab).is_empty());
}

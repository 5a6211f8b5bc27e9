//! Sessions: established, modified, deleted; answered when the data plane obeys, rolled back when it does not.

use crate::common::smf::{self, chosen, establishment, path_switch};
use crate::common::{Lab, N3, OTHER, Obedience, SMF, STAMP, US, at, config};
use n4::Input;
use pfcp::{
    Body, Cause, FSeid, FTeid, Message, SessionDeletionRequest, SessionEstablishmentRequest,
    SessionEstablishmentResponse, SessionModificationRequest, ie,
};
use proptest::prelude::*;
use rules::{Seid, Teid};
use std::net::IpAddr;
use std::time::Duration;

fn established(lab: &mut Lab, sequence: u32, cp_seid: u64) -> SessionEstablishmentResponse {
    match lab.ask(SMF, &Message::session(0, sequence, establishment(cp_seid))) {
        Body::SessionEstablishmentResponse(response) => response,
        other => panic!("{other:?}"),
    }
}

fn session(lab: &mut Lab, sequence: u32, cp_seid: u64) -> u64 {
    established(lab, sequence, cp_seid).up_f_seid.expect("a session").seid
}

fn cause(body: &Body) -> Cause {
    match body {
        Body::SessionEstablishmentResponse(response) => response.cause,
        Body::SessionModificationResponse(response) => response.cause,
        Body::SessionDeletionResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_lives_from_establishment_to_deletion() {
    let mut lab = Lab::associated();
    lab.tell(SMF, &Message::session(0, 1, establishment(77)));
    let answer = lab.answer(1);
    assert_eq!(answer.seid, Some(77));
    let Body::SessionEstablishmentResponse(response) = answer.body else { panic!("{answer:?}") };
    assert_eq!(response.cause, Cause::RequestAccepted);
    let up = response.up_f_seid.unwrap();
    assert_eq!((up.seid >> 32, up.address()), (u64::from(STAMP), Some(IpAddr::V4(US))));
    assert_eq!(response.created_pdrs.len(), 1);
    let teid = chosen(&response.created_pdrs, 1);
    let rules = &lab.in_force[&Seid(up.seid)].rules;
    assert_eq!(rules.pdrs[0].pdi.f_teid.unwrap(), rules::FTeid { teid: Teid(teid), address: N3.into() });

    assert_eq!(cause(&lab.ask(SMF, &Message::session(up.seid, 2, path_switch(5)))), Cause::RequestAccepted);
    let tunnel = lab.in_force[&Seid(up.seid)].rules.fars[1].forwarding.unwrap().outer_header_creation;
    assert_eq!(tunnel.unwrap().teid(), Some(Teid(5)));
    assert_eq!(lab.saved[&Seid(up.seid)].rules, lab.in_force[&Seid(up.seid)].rules);

    let deletion = Message::session(up.seid, 3, SessionDeletionRequest::default());
    assert_eq!(cause(&lab.ask(SMF, &deletion)), Cause::RequestAccepted);
    assert!(lab.in_force.is_empty() && lab.saved.is_empty());
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
}

#[test]
fn nothing_is_accepted_before_the_data_plane_obeys() {
    let mut lab = Lab::associated();
    lab.obedience = Obedience::Waits;
    let request = pfcp::encode(&Message::session(0, 1, establishment(77)));
    lab.receive(at(SMF), &request);
    lab.receive(at(SMF), &request);
    assert!(lab.is_silent() && lab.saved.is_empty());
    assert_eq!(lab.orders.len(), 1);
    lab.obey();
    let first = lab.answer(1);
    lab.receive(at(SMF), &request);
    assert_eq!(lab.answer(1), first);
    assert_eq!((lab.node.sessions(), lab.saved.len()), (1, 1));
}

#[test]
fn while_nothing_can_be_kept_sessions_end_but_do_not_begin_or_change() {
    let mut lab = Lab::associated();
    let seid = session(&mut lab, 1, 77);
    let before = lab.desired();
    lab.node.set_keeping(false);
    let response = established(&mut lab, 2, 78);
    assert_eq!((response.cause, response.up_f_seid), (Cause::SystemFailure, None));
    assert_eq!(cause(&lab.ask(SMF, &Message::session(seid, 3, path_switch(5)))), Cause::SystemFailure);
    assert_eq!((lab.node.sessions(), lab.desired()), (1, before));
    let deletion = Message::session(seid, 4, SessionDeletionRequest::default());
    assert_eq!(cause(&lab.ask(SMF, &deletion)), Cause::RequestAccepted);
    lab.node.set_keeping(true);
    assert_eq!(established(&mut lab, 5, 78).cause, Cause::RequestAccepted);
}

#[test]
fn a_refused_establishment_leaves_nothing() {
    let mut lab = Lab::associated();
    lab.obedience = Obedience::Refuses;
    let response = established(&mut lab, 1, 77);
    assert_eq!((response.cause, response.up_f_seid), (Cause::SystemFailure, None));
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
    assert!(lab.in_force.is_empty() && lab.saved.is_empty());
}

#[test]
fn a_refused_modification_leaves_the_session_as_it_was() {
    let mut lab = Lab::associated();
    let seid = session(&mut lab, 1, 77);
    let before = lab.desired();
    let tunnels = lab.node.tunnels();
    lab.obedience = Obedience::Refuses;
    let mut request = path_switch(5);
    request.create_pdrs = vec![smf::uplink(7, smf::choose(None))];
    let answer = lab.ask(SMF, &Message::session(seid, 2, request));
    assert_eq!(cause(&answer), Cause::SystemFailure);
    let after = lab.desired();
    assert_eq!(after[&Seid(seid)].rules, before[&Seid(seid)].rules);
    assert!(after[&Seid(seid)].revision > before[&Seid(seid)].revision);
    assert_eq!(lab.saved[&Seid(seid)].revision, after[&Seid(seid)].revision);
    assert_eq!(lab.node.tunnels(), tunnels);
}

#[test]
fn a_silent_data_plane_fails_the_request_in_time() {
    let mut lab = Lab::associated();
    let seid = session(&mut lab, 1, 77);
    let before = lab.desired()[&Seid(seid)].rules.clone();
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(seid, 2, path_switch(5)));
    lab.pass(config().apply_timeout - Duration::from_millis(1));
    assert!(lab.is_silent());
    lab.pass(Duration::from_millis(1));
    assert_eq!(cause(&lab.answer(2).body), Cause::SystemFailure);
    assert_eq!(lab.desired()[&Seid(seid)].rules, before);
    // It wakes up and obeys both orders, the late one and the one that takes it back.
    lab.obey();
    assert_eq!(lab.in_force, lab.desired());
    assert!(lab.is_silent());
}

/// Nobody asks for it again: Open5GS and free5GC forget the session whatever the answer says.
#[test]
fn a_deletion_does_not_fail_because_the_data_plane_is_lost_or_late() {
    for is_lost in [true, false] {
        let mut lab = Lab::associated();
        let seid = session(&mut lab, 1, 77);
        lab.obedience = Obedience::Waits;
        lab.tell(SMF, &Message::session(seid, 2, SessionDeletionRequest::default()));
        lab.tell(SMF, &Message::session(seid, 3, path_switch(5)));
        match is_lost {
            true => lab.handle(Input::DataPathLost),
            false => lab.pass(config().apply_timeout),
        }
        assert_eq!(cause(&lab.answer(2).body), Cause::RequestAccepted);
        assert_eq!(cause(&lab.answer(3).body), Cause::SessionContextNotFound);
        assert!(lab.desired().is_empty() && lab.saved.is_empty() && lab.node.tunnels() == 0);
        // The address is free at once, and the data plane lets go of the old session before it hears of the next.
        lab.tell(SMF, &Message::session(0, 4, establishment(78)));
        lab.obey();
        assert_eq!(cause(&lab.answer(4).body), Cause::RequestAccepted);
        assert_eq!(lab.in_force, lab.desired());
    }
}

#[test]
fn requests_of_one_session_are_done_one_after_the_other() {
    let mut lab = Lab::associated();
    let seid = session(&mut lab, 1, 77);
    lab.obedience = Obedience::Waits;
    for step in 0..3 {
        lab.tell(SMF, &Message::session(seid, 2 + step, path_switch(5 + step)));
    }
    lab.tell(SMF, &Message::session(seid, 5, SessionDeletionRequest::default()));
    lab.tell(SMF, &Message::session(seid, 6, path_switch(9)));
    assert_eq!(lab.orders.len(), 1);
    for step in 0..3 {
        lab.obey();
        assert_eq!(cause(&lab.answer(2 + step).body), Cause::RequestAccepted);
        let tunnel = lab.in_force[&Seid(seid)].rules.fars[1].forwarding.unwrap().outer_header_creation;
        assert_eq!(tunnel.unwrap().teid(), Some(Teid(5 + step)));
    }
    lab.obey();
    assert_eq!(cause(&lab.answer(5).body), Cause::RequestAccepted);
    assert_eq!(cause(&lab.answer(6).body), Cause::SessionContextNotFound);
    assert!(lab.is_silent() && lab.in_force.is_empty());
}

#[test]
fn a_session_keeps_no_more_requests_waiting_than_the_limit() {
    let mut lab = Lab::associated();
    let seid = session(&mut lab, 1, 77);
    lab.obedience = Obedience::Waits;
    let waiting = config().limits.waiting as u32;
    for step in 0..=waiting {
        lab.tell(SMF, &Message::session(seid, 2 + step, path_switch(5)));
    }
    assert!(lab.is_silent());
    let answer = lab.ask(SMF, &Message::session(seid, 100, path_switch(5)));
    assert_eq!(cause(&answer), Cause::PfcpEntityInCongestion);
}

#[test]
fn a_session_is_its_owners() {
    let mut lab = Lab::associated();
    let seid = session(&mut lab, 1, 77);
    let modification = Message::session(seid, 2, path_switch(5));
    assert_eq!(cause(&lab.ask(OTHER, &modification)), Cause::NoEstablishedPfcpAssociation);
    lab.associate(OTHER, 1);
    for sequence in [3, 4] {
        let body: Body = match sequence {
            3 => path_switch(5).into(),
            _ => SessionDeletionRequest::default().into(),
        };
        lab.tell(OTHER, &Message::session(seid, sequence, body));
        let answer = lab.answer(sequence);
        assert_eq!((answer.seid, cause(&answer.body)), (Some(0), Cause::SessionContextNotFound));
    }
    let stolen = Message::session(0, 5, establishment(78));
    assert_eq!(cause(&lab.ask(OTHER, &stolen)), Cause::NoEstablishedPfcpAssociation);
    assert_eq!(lab.in_force.len(), 1);
}

#[test]
fn an_unknown_session_is_not_found() {
    let mut lab = Lab::associated();
    for (sequence, seid) in [(1, 0), (2, 4711)] {
        lab.tell(SMF, &Message::session(seid, sequence, path_switch(5)));
        let answer = lab.answer(sequence);
        assert_eq!((answer.seid, cause(&answer.body)), (Some(0), Cause::SessionContextNotFound));
    }
}

#[test]
fn the_same_cp_f_seid_replaces_its_session() {
    let mut lab = Lab::associated();
    let old = session(&mut lab, 1, 77);
    let new = session(&mut lab, 2, 77);
    assert_ne!(old, new);
    assert_eq!(lab.in_force.keys().copied().collect::<Vec<_>>(), [Seid(new)]);
    assert_eq!((lab.saved.len(), lab.node.tunnels()), (1, 1));
}

#[test]
fn a_modification_can_rename_the_session() {
    let mut lab = Lab::associated();
    let seid = session(&mut lab, 1, 77);
    let renamed = SessionModificationRequest {
        cp_f_seid: Some(FSeid::new(88, SMF.into())),
        ..SessionModificationRequest::default()
    };
    lab.tell(SMF, &Message::session(seid, 2, renamed));
    assert_eq!(lab.answer(2).seid, Some(88));
    assert_eq!(lab.saved[&Seid(seid)].cp_f_seid.seid, 88);
    session(&mut lab, 3, 77);
    assert_eq!(lab.in_force.len(), 2);
}

#[test]
fn sessions_have_a_limit() {
    let mut config = config();
    config.limits.sessions = 1;
    let mut lab = Lab::new(config);
    lab.associate(SMF, 1);
    session(&mut lab, 1, 77);
    assert_eq!(established(&mut lab, 2, 78).cause, Cause::NoResourcesAvailable);
    session(&mut lab, 3, 77);
}

#[test]
fn tunnel_endpoints_have_a_limit() {
    let mut config = config();
    config.limits.tunnels = 1;
    let mut lab = Lab::new(config);
    lab.associate(SMF, 1);
    session(&mut lab, 1, 77);
    let refused = established(&mut lab, 2, 78);
    assert_eq!((refused.cause, refused.offending_ie), (Cause::NoResourcesAvailable, Some(ie::F_TEID)));
    assert_eq!(lab.node.tunnels(), 1);
}

#[test]
fn a_restarted_node_goes_on() {
    let mut lab = Lab::associated();
    let first = session(&mut lab, 1, 77);
    let before = lab.desired();
    lab.restart();
    assert_eq!(lab.desired(), before);
    assert_eq!(cause(&lab.ask(SMF, &Message::session(first, 2, path_switch(5)))), Cause::RequestAccepted);
    let second = established(&mut lab, 3, 78);
    assert_ne!(second.up_f_seid.unwrap().seid, first);
    let teids: Vec<_> = lab.in_force.values().map(|d| d.rules.pdrs[0].pdi.f_teid.unwrap().teid).collect();
    assert_ne!(teids[0], teids[1]);
    let deletion = Message::session(first, 4, SessionDeletionRequest::default());
    assert_eq!(cause(&lab.ask(SMF, &deletion)), Cause::RequestAccepted);
    assert_eq!(lab.node.tunnels(), 1);
}

#[test]
fn answers_go_back_to_whatever_port_asked() {
    let mut lab = Lab::associated();
    let from = std::net::SocketAddr::new(SMF.into(), 40_000);
    let message = Message { priority: Some(3), ..Message::session(0, 1, establishment(77)) };
    lab.receive(from, &pfcp::encode(&message));
    assert_eq!((lab.sent[0].0, lab.sent[0].1.priority), (from, Some(3)));
}

/// What happens on the way from one side to the other.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    IsLost,
    ArrivesTwice,
    ArrivesLate,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![Just(Fate::Arrives), Just(Fate::IsLost), Just(Fate::ArrivesTwice), Just(Fate::ArrivesLate)]
}

proptest! {
    /// A control plane that repeats itself until answered ends with exactly the sessions it asked for, whatever the
    /// network does.
    #[test]
    fn lost_doubled_and_late_datagrams_change_nothing(fates in proptest::collection::vec(fate(), 60)) {
        let mut lab = Lab::associated();
        let mut fates = fates.into_iter();
        let mut late = vec![];
        for cp_seid in 1..=6u64 {
            let sequence = cp_seid as u32;
            let bytes = pfcp::encode(&Message::session(0, sequence, establishment(cp_seid)));
            let mut is_answered = false;
            while !is_answered {
                match fates.next().unwrap_or(Fate::Arrives) {
                    Fate::Arrives => lab.receive(at(SMF), &bytes),
                    Fate::IsLost => continue,
                    Fate::ArrivesTwice => (0..2).for_each(|_| lab.receive(at(SMF), &bytes)),
                    Fate::ArrivesLate => late.push(bytes.clone()),
                }
                is_answered = lab.sent.iter().any(|(_, message)| message.sequence == sequence);
            }
            late.drain(..).for_each(|bytes| lab.receive(at(SMF), &bytes));
        }
        prop_assert_eq!(lab.in_force.len(), 6);
        prop_assert_eq!(lab.node.tunnels(), 6);
        prop_assert_eq!(&lab.in_force, &lab.desired());
    }
}

#[test]
fn given_endpoints_are_told_nobody() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_pdrs[0] = smf::uplink(1, smf::given(0x100));
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, request)) else {
        panic!("an answer")
    };
    assert!(response.created_pdrs.is_empty());
    let f_teid = lab.in_force.values().next().unwrap().rules.pdrs[0].pdi.f_teid;
    assert_eq!(f_teid.unwrap().teid, Teid(0x100));
    let foreign = FTeid::Explicit { teid: 1, ipv4: Some(OTHER), ipv6: None };
    let mut request = establishment(78);
    request.create_pdrs[0] = smf::uplink(1, foreign);
    assert_eq!(cause(&lab.ask(SMF, &Message::session(0, 2, request))), Cause::MandatoryIeIncorrect);
}

/// TS 29.244 5.6.2: the CP F-SEID's address need not be that of the association, and requests may come from there.
#[test]
fn the_address_of_the_cp_f_seid_may_speak_of_the_session() {
    let mut lab = Lab::associated();
    let request =
        SessionEstablishmentRequest { cp_f_seid: FSeid::new(77, OTHER.into()), ..establishment(77) };
    let session = lab.establish(request);
    let modify = |lab: &mut Lab, from| match lab.ask(from, &Message::session(session.0, 900, path_switch(5)))
    {
        Body::SessionModificationResponse(response) => response.cause,
        other => panic!("{other:?}"),
    };
    assert_eq!(modify(&mut lab, [10, 40, 0, 7].into()), Cause::NoEstablishedPfcpAssociation);
    assert_eq!(modify(&mut lab, OTHER), Cause::RequestAccepted);
    assert_eq!(modify(&mut lab, SMF), Cause::RequestAccepted);
}

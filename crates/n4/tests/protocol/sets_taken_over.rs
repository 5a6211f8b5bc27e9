//! Control planes of a set that take over from one another, and several that speak for one association.

use crate::common::personas::{accepted, established};
use crate::common::smf::{self, establishment, path_switch, setup};
use crate::common::{Lab, OTHER, SMF, at, config};
use crate::sets::{SET, associate_of_set, reported, takes_on};
use dplink::{Event, Notice};
use n4::Input;
use pfcp::*;
use rules::{PdrId, Seid};
use std::net::Ipv4Addr;
use std::time::Duration;

fn taking_over(cp_seid: u64) -> SessionModificationRequest {
    SessionModificationRequest {
        node_id: Some(NodeId::Ipv4(OTHER)),
        cp_f_seid: Some(FSeid::new(cp_seid, OTHER.into())),
        ..path_switch(9)
    }
}

fn ask_other(lab: &mut Lab, session: Seid, request: impl Into<Body>) -> Body {
    lab.ask(OTHER, &Message::session(session.0, 800, request))
}

#[test]
fn one_of_the_set_takes_a_session_over() {
    let mut lab = Lab::new(config());
    associate_of_set(&mut lab, SMF, &[]);
    associate_of_set(&mut lab, OTHER, &[]);
    let (session, _) = established(&mut lab, establishment(77));
    let Body::SessionModificationResponse(response) = ask_other(&mut lab, session, taking_over(5)) else {
        panic!("an answer")
    };
    accepted(&response);
    let record = &lab.saved[&session];
    assert_eq!((record.owner.as_str(), record.cp_f_seid.seid), ("10.40.0.8", 5));
    let (to, message, old) = reported(&mut lab, session);
    assert_eq!((to, message.seid, old), (OTHER, Some(5), None));
    // The old owner's restart is none of the session's business any more.
    lab.associate(SMF, 2);
    lab.restart();
    assert_eq!(lab.node.sessions(), 1);
    let answer = ask_other(&mut lab, session, SessionDeletionRequest::default());
    assert!(matches!(answer, Body::SessionDeletionResponse(response) if response.cause.is_accepted()));
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
}

#[test]
fn nobody_else_takes_a_session_over() {
    let mut lab = Lab::new(config());
    associate_of_set(&mut lab, SMF, &[]);
    lab.associate(OTHER, 1);
    let (session, _) = established(&mut lab, establishment(77));
    let before = lab.saved.clone();
    let Body::SessionModificationResponse(response) = ask_other(&mut lab, session, taking_over(5)) else {
        panic!("an answer")
    };
    assert_eq!(response.cause, Cause::SessionContextNotFound);
    let response = lab.modify(session, taking_over(5));
    let told = (response.cause, response.offending_ie);
    assert_eq!(told, (Cause::NoEstablishedPfcpAssociation, Some(ie::NODE_ID)));
    assert_eq!(lab.saved, before);
}

#[test]
fn one_association_may_speak_from_several_places() {
    let mut lab = Lab::new(config());
    associate_of_set(&mut lab, SMF, &[OTHER]);
    let (session, _) = established(&mut lab, establishment(77));
    let Body::SessionModificationResponse(response) = ask_other(&mut lab, session, path_switch(9)) else {
        panic!("an answer")
    };
    accepted(&response);
    let request = SessionEstablishmentRequest { ..establishment(78) };
    let answer = lab.ask(OTHER, &Message::session(0, 801, request));
    assert!(matches!(answer, Body::SessionEstablishmentResponse(response) if response.cause.is_accepted()));
    // Another's heartbeat tells nothing of the one we are associated with.
    lab.tell(OTHER, &Message::node(802, HeartbeatRequest { recovery_time_stamp: 9, carried: vec![] }));
    lab.pass(Duration::from_secs(10));
    assert_eq!(lab.node.sessions(), 2);
}

/// TS 29.244 5.6.2 and 5.22.2: each counts SEIDs for itself, and the address is part of a CP F-SEID.
#[test]
fn control_planes_of_one_association_may_give_the_same_seid() {
    let mut lab = Lab::new(config());
    associate_of_set(&mut lab, SMF, &[OTHER]);
    let first = lab.establish(establishment(1));
    let second = SessionEstablishmentRequest {
        cp_f_seid: FSeid::new(1, OTHER.into()),
        create_pdrs: vec![smf::uplink(1, smf::choose(None)), smf::downlink(2, Some([10, 60, 0, 2].into()))],
        ..establishment(1)
    };
    let answer = lab.ask(OTHER, &Message::session(0, 700, second.clone()));
    assert!(matches!(answer, Body::SessionEstablishmentResponse(response) if response.cause.is_accepted()));
    assert_eq!((lab.node.sessions(), lab.in_force.len()), (2, 2));
    // Whoever gives one again means its own.
    lab.ask(OTHER, &Message::session(0, 701, second));
    assert_eq!((lab.node.sessions(), lab.in_force.contains_key(&first)), (2, true));
    // A session may move to a free name, but not to that of another.
    let named = |address: Ipv4Addr| SessionModificationRequest {
        cp_f_seid: Some(FSeid::new(1, address.into())),
        ..Default::default()
    };
    assert_eq!(lab.modify(first, named(OTHER)).cause, Cause::MandatoryIeIncorrect);
    assert_eq!(lab.modify(first, named([10, 40, 0, 7].into())).cause, Cause::RequestAccepted);
    lab.establish(establishment(1));
    lab.restart();
    assert_eq!(lab.node.sessions(), 3);
}

#[test]
fn while_the_owner_is_silent_another_of_the_set_hears_of_its_sessions() {
    let mut lab = Lab::new(config());
    associate_of_set(&mut lab, SMF, &[]);
    associate_of_set(&mut lab, OTHER, &[]);
    let (session, _) = established(&mut lab, establishment(77));
    accepted(&lab.modify(session, path_switch(9)));
    lab.goes_silent();
    // Only the other one answers heartbeats.
    for _ in 0..60 {
        lab.pass(Duration::from_secs(1));
        for (to, message) in std::mem::take(&mut lab.sent) {
            if to == at(OTHER) {
                let response = HeartbeatResponse { recovery_time_stamp: 1, carried: vec![] };
                lab.tell(OTHER, &Message::node(message.sequence, response));
            }
        }
    }
    let (to, message, old) = reported(&mut lab, session);
    assert_eq!((to, message.seid, old), (OTHER, Some(0), Some(FSeid::new(77, SMF.into()))));
}

/// Where reports about a session went, in their order, each once.
fn asked_in_turn(lab: &mut Lab, session: Seid, seconds: u64) -> Vec<Ipv4Addr> {
    let mut all: Vec<Ipv4Addr> = vec![];
    for _ in 0..seconds {
        let event = Event::DownlinkData { session, pdr: PdrId(2), qfi: None, traffic_class: 0 };
        lab.handle(Input::DataPath(&Notice::Event(event)));
        lab.pass(Duration::from_secs(1));
        for (to, _) in lab.reports() {
            let std::net::SocketAddr::V4(to) = to else { panic!("{to}") };
            if all.last() != Some(to.ip()) {
                all.push(*to.ip());
            }
        }
    }
    all
}

/// TS 29.244 8.2.129 (PPE), and whoever does not answer is not the only one.
#[test]
fn alternatives_are_asked_in_turn_and_the_preferred_one_first() {
    const THIRD: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 7);
    const FOURTH: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 6);
    let mut lab = Lab::new(config());
    let [first, second] = [OTHER, THIRD].map(|address| CpIpAddress::new(address.into()));
    let preferred = CpIpAddress { is_preferred: true, ..CpIpAddress::new(FOURTH.into()) };
    let request = AssociationSetupRequest {
        smf_set_id: Some(SET.to_vec()),
        alternatives: vec![first, second, preferred],
        ..setup(SMF, 1)
    };
    lab.ask(SMF, &Message::node(1, request));
    let mut request = establishment(77);
    request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    let session = lab.establish(request);
    lab.goes_silent();
    lab.pass(Duration::from_secs(60));
    lab.restart();
    lab.pass(Duration::from_secs(60));
    lab.sent.clear();
    assert_eq!(asked_in_turn(&mut lab, session, 150)[..5], [FOURTH, OTHER, THIRD, FOURTH, OTHER]);
    // It tells others while it can: of a single one nobody else is known.
    let update = AssociationUpdateRequest { alternatives: vec![second], ..update(SMF) };
    lab.ask(SMF, &Message::node(2, update));
    assert_eq!(asked_in_turn(&mut lab, session, 60).last(), Some(&THIRD));
}

fn update(peer: Ipv4Addr) -> AssociationUpdateRequest {
    AssociationUpdateRequest::new(NodeId::Ipv4(peer))
}

/// A user who sleeps, of a control plane that has told of another, and a packet for it.
fn lab_of_a_sleeper() -> (Lab, Seid) {
    let mut lab = Lab::new(config());
    associate_of_set(&mut lab, SMF, &[OTHER]);
    let mut request = establishment(77);
    request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    let session = lab.establish(request);
    (lab, session)
}

/// Where its report goes, in order, in the time that it takes to ask one and another.
fn paged_in_turn(lab: &mut Lab, session: Seid) -> Vec<(Ipv4Addr, Message)> {
    let event = Event::DownlinkData { session, pdr: PdrId(2), qfi: None, traffic_class: 0 };
    lab.handle(Input::DataPath(&Notice::Event(event)));
    lab.pass(Duration::from_secs(10));
    let ipv4 = |to| if let std::net::SocketAddr::V4(to) = to { *to.ip() } else { panic!("{to}") };
    lab.reports().into_iter().map(|(to, message)| (ipv4(to), message)).collect()
}

/// TS 29.244 5.22.3: a user waits to be paged, whatever becomes of heartbeats.
#[test]
fn a_report_that_is_not_answered_goes_to_an_alternative() {
    // Who answers heartbeats, and who never has.
    for answers_heartbeats in [true, false] {
        let (mut lab, session) = lab_of_a_sleeper();
        lab.answers_heartbeats = answers_heartbeats;
        lab.pass(Duration::from_secs(6));
        let told = paged_in_turn(&mut lab, session);
        assert_eq!(told.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [SMF, SMF, SMF, OTHER]);
        let (_, message) = told.last().unwrap();
        let Body::SessionReportRequest(report) = &message.body else { panic!("{message:?}") };
        assert_eq!((message.seid, report.old_cp_f_seid), (Some(0), Some(FSeid::new(77, SMF.into()))));
        assert_eq!(report.downlink_data_report.as_ref().unwrap().pdr_ids, [2]);
        takes_on(&mut lab, session, message);
        assert_eq!(lab.saved[&session].cp_f_seid.seid, 99);
        lab.pass(Duration::from_secs(30));
        assert!(lab.reports().is_empty(), "it has been heard");
    }
}

/// What the other one does not know, the owner may.
#[test]
fn an_alternative_that_does_not_know_the_session_ends_none() {
    let (mut lab, session) = lab_of_a_sleeper();
    let (_, message) = paged_in_turn(&mut lab, session).pop().unwrap();
    let response = SessionReportResponse::of(Cause::SessionContextNotFound);
    lab.tell(OTHER, &Message::session(session.0, message.sequence, response));
    assert_eq!((lab.node.sessions(), lab.saved[&session].owner.as_str()), (1, "10.40.0.9"));
    lab.pass(lab.config.heartbeat_interval);
    assert_eq!(lab.reports().first().map(|(to, _)| *to), Some(at(SMF)));
}

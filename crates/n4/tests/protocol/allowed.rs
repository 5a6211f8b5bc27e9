//! Whom PFCP is spoken with, and who is not answered.

use crate::common::personas::{accepted, established};
use crate::common::smf::{establishment, path_switch, setup};
use crate::common::{Lab, OTHER, SMF, at, config};
use dplink::{Event, Notice};
use n4::{Config, Input};
use pfcp::*;
use rules::Seid;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// An address that is not allowed.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 9);

fn allowing(prefixes: &[&str]) -> Config {
    Config { allow: prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect(), ..config() }
}

fn heartbeat() -> HeartbeatRequest {
    HeartbeatRequest { recovery_time_stamp: 1, carried: vec![] }
}

fn is_answered(lab: &mut Lab, from: &str) -> bool {
    lab.sent.clear();
    let from: IpAddr = from.parse().unwrap();
    lab.receive(SocketAddr::new(from, 8805), &encode(&Message::node(7, heartbeat())));
    !lab.sent.is_empty()
}

#[test]
fn only_those_are_answered_who_are_allowed() {
    let mut lab = Lab::new(allowing(&["10.40.0.0/16", "2001:db8:40::/48"]));
    for from in ["10.40.0.9", "10.40.255.255", "2001:db8:40::9", "::ffff:10.40.0.9"] {
        assert!(is_answered(&mut lab, from), "{from}");
    }
    for from in ["10.41.0.9", "2001:db8:41::9", "::ffff:10.41.0.9"] {
        assert!(!is_answered(&mut lab, from), "{from}");
    }
    assert!(is_answered(&mut Lab::new(config()), "10.41.0.9") && is_answered(&mut Lab::new(config()), "::1"));
    let nobody = Config { associate: vec![at(SMF)], ..allowing(&[]) };
    let mut lab = Lab::new(nobody);
    assert!(is_answered(&mut lab, "10.40.0.9"), "it is one of `associate`");
    assert!(!is_answered(&mut lab, "10.40.0.8"));
}

/// Nothing is answered, whatever is asked, and all of it counts; of many, few are told one by one.
#[test]
fn what_is_not_allowed_is_counted_and_fills_no_log() {
    let mut lab = Lab::new(allowing(&["10.40.0.0/16"]));
    let count = 1_000;
    for sequence in 0..count {
        lab.tell(ELSEWHERE, &Message::node(sequence, setup(ELSEWHERE, 1)));
    }
    lab.receive(at(ELSEWHERE), b"no message");
    let newer = [0x40, 1, 0, 4, 0, 0, 1, 0];
    lab.receive(at(ELSEWHERE), &newer);
    assert!(lab.sent.is_empty() && lab.associations.is_empty());
    let counters = *lab.node.counters();
    assert_eq!((counters.not_allowed, counters.received), (1_002, 1_002));
    assert_eq!((counters.garbage, counters.refused), (0, 0));
    assert_eq!(lab.notes.iter().filter(|note| note.contains("10.99.0.9:8805 is not answered")).count(), 10);
    lab.pass(Duration::from_secs(1));
    assert_eq!(
        lab.notes.last().unwrap(),
        "992 more datagrams of addresses that are not allowed were dropped"
    );
}

/// Requests would go there.
#[test]
fn no_session_is_named_at_an_address_that_is_not_allowed() {
    let mut lab = Lab::associated_with(allowing(&["10.40.0.0/16"]));
    let elsewhere = FSeid::new(77, ELSEWHERE.into());
    let request = SessionEstablishmentRequest { cp_f_seid: elsewhere, ..establishment(77) };
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 5, request)) else {
        panic!("an answer")
    };
    assert_eq!((response.cause, response.offending_ie), (Cause::RequestRejected, Some(ie::F_SEID)));
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
    let (session, _) = established(&mut lab, establishment(78));
    let renamed = SessionModificationRequest { cp_f_seid: Some(elsewhere), ..Default::default() };
    let response = lab.modify(session, renamed);
    assert_eq!((response.cause, response.offending_ie), (Cause::RequestRejected, Some(ie::F_SEID)));
    assert_eq!(lab.saved[&session].cp_f_seid.address, IpAddr::from(SMF));
}

/// Somebody must be told that the tunnel's peer has no use for packets.
fn indicate(lab: &mut Lab, session: Seid) -> Vec<(SocketAddr, Message)> {
    lab.pass(Duration::from_secs(11));
    let tunnel = lab.in_force[&session].rules.fars[1].forwarding.unwrap().outer_header_creation.unwrap();
    let event = Event::ErrorIndication { teid: tunnel.teid().unwrap(), peer: tunnel.address, towards: None };
    lab.handle(Input::DataPath(&Notice::Event(event)));
    lab.reports()
}

#[test]
fn nobody_is_told_of_sessions_where_that_is_not_allowed() {
    let mut lab = Lab::new(allowing(&["10.40.0.0/16"]));
    let alternatives = [ELSEWHERE, OTHER].map(|address| CpIpAddress::new(address.into())).to_vec();
    lab.ask(SMF, &Message::node(1, AssociationSetupRequest { alternatives, ..setup(SMF, 1) }));
    assert_eq!(lab.associations[&SMF.to_string()].alternatives, [IpAddr::from(OTHER)]);
    assert!(lab.notes.iter().any(|note| note.contains("10.99.0.9, too, which is not allowed")));
    let alternatives = vec![CpIpAddress::new(ELSEWHERE.into())];
    let update =
        AssociationUpdateRequest { alternatives, ..AssociationUpdateRequest::new(NodeId::Ipv4(SMF)) };
    lab.ask(SMF, &Message::node(2, update));
    assert!(lab.associations[&SMF.to_string()].alternatives.is_empty());

    let (session, _) = established(&mut lab, establishment(77));
    accepted(&lab.modify(session, path_switch(9)));
    let alternative = CpIpAddress::new(ELSEWHERE.into());
    let change = SessionChangeInfo {
        fq_csids: vec![],
        group_ids: vec![],
        cp_ip_addresses: vec![CpIpAddress::new(SMF.into())],
        alternative,
        carried: vec![],
    };
    let request =
        SessionSetModificationRequest { node_id: NodeId::Ipv4(SMF), changes: vec![change], carried: vec![] };
    let Body::SessionSetModificationResponse(response) = lab.ask(SMF, &Message::node(3, request)) else {
        panic!("an answer")
    };
    let told = (response.cause, response.offending_ie);
    assert_eq!(told, (Cause::MandatoryIeIncorrect, Some(ie::ALTERNATIVE_SMF_IP_ADDRESS)));

    let reports = indicate(&mut lab, session);
    let [(to, report)] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(*to, at(SMF));
    let redirection = SessionReportResponse {
        alternative: Some(alternative),
        cp_f_seid: Some(FSeid::new(1, ELSEWHERE.into())),
        ..SessionReportResponse::of(Cause::RedirectionRequested)
    };
    lab.tell(SMF, &Message::session(session.0, report.sequence, redirection));
    let reports = indicate(&mut lab, session);
    assert!(reports.iter().all(|(to, _)| *to == at(SMF)) && !reports.is_empty(), "{reports:?}");
}

/// The operator allows fewer than before: nothing is said to the others, and their sessions stay as those of any who are silent.
#[test]
fn who_is_allowed_no_more_is_silent() {
    let mut lab = Lab::associated();
    lab.associate(OTHER, 1);
    let (session, _) = established(&mut lab, establishment(77));
    accepted(&lab.modify(session, path_switch(9)));
    lab.config = Config { silent_max: Some(Duration::from_secs(600)), ..allowing(&["10.40.0.8/32"]) };
    lab.restart();
    lab.sent.clear();
    assert!(indicate(&mut lab, session).is_empty());
    lab.handle(Input::UserPlanePath {
        side: rules::Interface::Access,
        peer: [10, 30, 0, 7].into(),
        is_up: false,
    });
    lab.pass(Duration::from_secs(580));
    assert!(lab.sent.iter().all(|(to, _)| *to == at(OTHER)) && !lab.sent.is_empty());
    assert_eq!((lab.in_force.len(), lab.associations.len()), (1, 2));
    lab.pass(Duration::from_secs(20));
    assert_eq!((lab.in_force.len(), lab.associations.len()), (0, 1));
}

//! Who has a session that another control plane looks after, or asks for (TS 29.244 5.22.3, 7.4.7).

use crate::common::personas::{accepted, established};
use crate::common::smf::{establishment, path_switch, setup};
use crate::common::{Lab, OTHER, Obedience, SMF, at, config};
use dplink::{Event, Notice};
use n4::{Config, Input, Limits};
use pfcp::*;
use rules::Seid;
use std::net::Ipv4Addr;
use std::time::Duration;

/// How long stale sessions stay.
const PATIENCE: Duration = Duration::from_secs(3_600);
const OWNER: &str = "10.40.0.9";
const HEIR: &str = "10.40.0.8";

fn set_up(lab: &mut Lab, peer: Ipv4Addr) {
    let sequence = 0x8000 + lab.trace.len() as u32;
    let request = AssociationSetupRequest { smf_set_id: Some(b"\0\x04set1".to_vec()), ..setup(peer, 1) };
    let answer = lab.ask(peer, &Message::node(sequence, request));
    assert!(matches!(answer, Body::AssociationSetupResponse(ref setup) if setup.cause.is_accepted()));
}

/// Two of a set. Of one's sessions, by numbers, the other looks after some.
fn lab(config: Config, sessions: u8, looked_after: &[u8]) -> (Lab, Vec<Seid>) {
    let mut lab = Lab::new(config);
    [SMF, OTHER].into_iter().for_each(|peer| set_up(&mut lab, peer));
    let establish = |number: u8| {
        let mut request = establishment(number.into());
        request.group_id = Some(vec![number]);
        request.create_pdrs.truncate(1);
        established(&mut lab, request).0
    };
    let all = (1..=sessions).map(establish).collect();
    let change = SessionChangeInfo {
        fq_csids: vec![],
        group_ids: looked_after.iter().map(|number| vec![*number]).collect(),
        cp_ip_addresses: vec![],
        alternative: CpIpAddress::new(OTHER.into()),
        carried: vec![],
    };
    let request =
        SessionSetModificationRequest { node_id: NodeId::Ipv4(SMF), changes: vec![change], carried: vec![] };
    let answer = lab.ask(SMF, &Message::node(0x7000, request));
    assert!(matches!(answer, Body::SessionSetModificationResponse(it) if it.cause.is_accepted()));
    (lab, all)
}

fn owners(lab: &Lab, sessions: &[Seid]) -> Vec<Option<String>> {
    sessions.iter().map(|session| Some(lab.saved.get(session)?.owner.clone())).collect()
}

/// What it has named since is its own, whoever looks after it; what it has forgotten is another's.
#[test]
fn stale_sessions_end_and_their_owner_loses_no_others_to_who_looks_after_them() {
    let (mut lab, all) = lab(Config { stale_max: Some(PATIENCE), ..config() }, 4, &[1, 2]);
    set_up(&mut lab, SMF);
    for named in [all[0], all[2]] {
        accepted(&lab.modify(named, SessionModificationRequest::default()));
    }
    lab.pass(PATIENCE * 2);
    let expected = [Some(OWNER), Some(HEIR), Some(OWNER), None].map(|owner| owner.map(str::to_owned));
    assert_eq!(owners(&lab, &all), expected);
    let extras = lab.saved[&all[0]].extras.as_ref().unwrap();
    assert_eq!(extras.alternative, Some(OTHER.into()), "and is looked after as before");
}

/// One whose association is over while its own sessions, which are many, end by portions.
fn with_one_that_leaves() -> (Lab, Seid) {
    let limits = Limits { portion: 1, ..Limits::default() };
    let (mut lab, all) = lab(Config { limits, ..config() }, 1, &[1]);
    for number in 2..=5 {
        let mut request = establishment(number);
        (request.node_id, request.cp_f_seid) = (NodeId::Ipv4(OTHER), FSeid::new(number, OTHER.into()));
        request.create_pdrs.truncate(1);
        lab.ask(OTHER, &Message::session(0, number as u32, request));
    }
    accepted(&lab.modify(all[0], path_switch(9)));
    lab.sent.clear();
    lab.obedience = Obedience::Waits;
    let release = AssociationReleaseRequest { node_id: NodeId::Ipv4(OTHER), carried: vec![] };
    lab.tell(OTHER, &Message::node(0x7001, release));
    assert!(lab.is_silent() && lab.node.sessions() > 2, "it is not over yet");
    (lab, all[0])
}

fn ends(lab: &mut Lab) {
    lab.obedience = Obedience::Obeys;
    lab.obey();
    lab.pass(Duration::from_secs(1));
}

#[test]
fn nobody_inherits_whose_association_is_over() {
    let (mut lab, session) = with_one_that_leaves();
    lab.tell(SMF, &Message::node(0x7002, setup(SMF, 2)));
    while lab.node.sessions() > 0 {
        let there = lab.saved.get(&session);
        assert!(there.is_none_or(|record| record.owner == OWNER), "not for a moment");
        lab.obey();
        lab.handle(Input::Tick);
    }
    ends(&mut lab);
    assert!(!lab.saved.contains_key(&session) && lab.in_force.is_empty());
    assert_eq!((lab.node.sessions(), lab.associations.len()), (0, 1));
}

#[test]
fn nobody_takes_a_session_over_whose_association_is_over() {
    let (mut lab, session) = with_one_that_leaves();
    let taking_over = SessionModificationRequest {
        node_id: Some(NodeId::Ipv4(OTHER)),
        cp_f_seid: Some(FSeid::new(99, OTHER.into())),
        ..path_switch(9)
    };
    let response = lab.modify(session, taking_over);
    let told = (response.cause, response.offending_ie);
    assert_eq!(told, (Cause::NoEstablishedPfcpAssociation, Some(ie::NODE_ID)));
    ends(&mut lab);
    assert_eq!(owners(&lab, &[session]), [Some(OWNER.to_owned())]);
}

/// It was told of its user while it was there, and gives the session a name when it is there no more.
#[test]
fn a_name_from_where_an_association_is_over_is_the_owners() {
    let (mut lab, session) = with_one_that_leaves();
    let tunnel = lab.in_force[&session].rules.fars[1].forwarding.unwrap().outer_header_creation.unwrap();
    let event = Event::ErrorIndication { teid: tunnel.teid().unwrap(), peer: tunnel.address, towards: None };
    lab.handle(Input::DataPath(&Notice::Event(event)));
    let (to, message) = lab.reports().remove(0);
    assert_eq!(to, at(OTHER));
    let response = SessionReportResponse {
        cp_f_seid: Some(FSeid::new(99, OTHER.into())),
        ..SessionReportResponse::of(Cause::RequestAccepted)
    };
    lab.tell(OTHER, &Message::session(session.0, message.sequence, response));
    ends(&mut lab);
    assert_eq!(owners(&lab, &[session]), [Some(OWNER.to_owned())]);
    assert_eq!(lab.saved[&session].cp_f_seid.seid, 99);
}

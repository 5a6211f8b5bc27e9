//! Sets of sessions that end or move together.

use crate::common::personas::{accepted, established};
use crate::common::smf::{self, establishment, path_switch, setup};
use crate::common::{Lab, OTHER, SMF, config};
use dplink::{Event, Notice};
use n4::Input;
use pfcp::*;
use rules::Seid;
use std::net::Ipv4Addr;
use std::time::Duration;

pub(crate) const SET: &[u8] = b"\0\x04set1";

fn fq_csid(csid: u16) -> FqCsid {
    FqCsid { node_id_type: 0, node: vec![10, 0, 0, 7], csids: vec![csid], node_type: None }
}

fn sessions_of(lab: &mut Lab, csids: &[u16]) -> Vec<Seid> {
    let establish = |(at, csid): (usize, &u16)| {
        let mut request = establishment(at as u64 + 1);
        (request.fq_csids, request.group_id) = (vec![fq_csid(*csid)], Some(vec![*csid as u8]));
        request.create_pdrs[0].pdi.f_teid = Some(smf::choose(None));
        established(lab, request).0
    };
    csids.iter().enumerate().map(establish).collect()
}

pub(crate) fn associate_of_set(lab: &mut Lab, peer: Ipv4Addr, alternatives: &[Ipv4Addr]) {
    let request = AssociationSetupRequest {
        smf_set_id: Some(SET.to_vec()),
        alternatives: alternatives.iter().map(|address| CpIpAddress::new((*address).into())).collect(),
        ..setup(peer, 1)
    };
    let answer = lab.ask(peer, &Message::node(0xFFF1, request));
    assert!(matches!(answer, Body::AssociationSetupResponse(ref setup) if setup.cause.is_accepted()));
}

fn delete_set(lab: &mut Lab, from: Ipv4Addr, fq_csids: Vec<FqCsid>) -> (Cause, Option<u16>) {
    let request = SessionSetDeletionRequest { node_id: NodeId::Ipv4(from), fq_csids, carried: vec![] };
    let sequence = lab.trace.len() as u32;
    match lab.ask(from, &Message::node(sequence, request)) {
        Body::SessionSetDeletionResponse(response) => (response.cause, response.offending_ie),
        other => panic!("{other:?}"),
    }
}

fn move_set(lab: &mut Lab, change: SessionChangeInfo) -> Cause {
    let (node_id, changes) = (NodeId::Ipv4(SMF), vec![change]);
    let request = SessionSetModificationRequest { node_id, changes, carried: vec![] };
    let sequence = lab.trace.len() as u32;
    match lab.ask(SMF, &Message::node(sequence, request)) {
        Body::SessionSetModificationResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

fn to(alternative: Ipv4Addr) -> SessionChangeInfo {
    SessionChangeInfo {
        fq_csids: vec![],
        group_ids: vec![],
        cp_ip_addresses: vec![],
        alternative: CpIpAddress::new(alternative.into()),
        carried: vec![],
    }
}

/// The other one answers a report by its own name for the session, which is its own from then on.
pub(crate) fn takes_on(lab: &mut Lab, session: Seid, report: &Message) {
    let response = SessionReportResponse {
        cp_f_seid: Some(FSeid::new(99, OTHER.into())),
        ..SessionReportResponse::of(Cause::RequestAccepted)
    };
    lab.tell(OTHER, &Message::session(session.0, report.sequence, response));
}

/// Where a report about a session goes, its message, and what it says of the control plane before.
pub(crate) fn reported(lab: &mut Lab, session: Seid) -> (Ipv4Addr, Message, Option<FSeid>) {
    let tunnel = lab.in_force[&session].rules.fars[1].forwarding.unwrap().outer_header_creation.unwrap();
    let event = Event::ErrorIndication { teid: tunnel.teid().unwrap(), peer: tunnel.address, towards: None };
    lab.handle(Input::DataPath(&Notice::Event(event)));
    let (to, message) = lab.reports().remove(0);
    let Body::SessionReportRequest(report) = &message.body else { panic!("{message:?}") };
    let old = report.old_cp_f_seid;
    let std::net::SocketAddr::V4(to) = to else { panic!("{to}") };
    (*to.ip(), message, old)
}

#[test]
fn a_set_of_sessions_ends_whole() {
    let mut lab = Lab::associated();
    let sessions = sessions_of(&mut lab, &[1, 2, 1]);
    assert_eq!(delete_set(&mut lab, SMF, vec![fq_csid(1)]), (Cause::RequestAccepted, None));
    assert!(lab.in_force.keys().eq([&sessions[1]]) && lab.saved.keys().eq([&sessions[1]]));
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (1, 1));
    let foreign = FqCsid { node: vec![10, 0, 0, 8], ..fq_csid(2) };
    assert_eq!(delete_set(&mut lab, SMF, vec![foreign]), (Cause::RequestAccepted, None));
    assert_eq!(lab.node.sessions(), 1);
}

#[test]
fn sets_survive_a_restart() {
    let mut lab = Lab::associated();
    sessions_of(&mut lab, &[1, 2]);
    lab.restart();
    delete_set(&mut lab, SMF, vec![fq_csid(2), fq_csid(1)]);
    assert_eq!((lab.node.sessions(), lab.saved.len()), (0, 0));
}

#[test]
fn nobody_ends_the_sessions_of_others() {
    let mut lab = Lab::associated();
    sessions_of(&mut lab, &[1]);
    assert_eq!(delete_set(&mut lab, OTHER, vec![fq_csid(1)]), (Cause::NoEstablishedPfcpAssociation, None));
    lab.associate(OTHER, 1);
    assert_eq!(delete_set(&mut lab, OTHER, vec![fq_csid(1)]), (Cause::RequestAccepted, None));
    let missing = (Cause::ConditionalIeMissing, Some(ie::FQ_CSID));
    assert_eq!(delete_set(&mut lab, SMF, vec![]), missing);
    assert_eq!(lab.node.sessions(), 1);
}

#[test]
fn a_modification_gives_a_session_another_set() {
    let mut lab = Lab::associated();
    let session = sessions_of(&mut lab, &[1])[0];
    let request = SessionModificationRequest { fq_csids: vec![fq_csid(5)], ..Default::default() };
    accepted(&lab.modify(session, request));
    delete_set(&mut lab, SMF, vec![fq_csid(1)]);
    assert_eq!(lab.node.sessions(), 1);
    delete_set(&mut lab, SMF, vec![fq_csid(5)]);
    assert_eq!(lab.node.sessions(), 0);
}

#[test]
fn reports_go_to_who_looks_after_the_session() {
    let changes = [
        SessionChangeInfo { fq_csids: vec![fq_csid(1)], ..to(OTHER) },
        SessionChangeInfo { group_ids: vec![vec![1]], ..to(OTHER) },
        SessionChangeInfo { cp_ip_addresses: vec![CpIpAddress::new(SMF.into())], ..to(OTHER) },
    ];
    for change in changes {
        let mut lab = Lab::associated();
        let session = sessions_of(&mut lab, &[1])[0];
        accepted(&lab.modify(session, path_switch(9)));
        assert_eq!(move_set(&mut lab, change), Cause::RequestAccepted);
        lab.restart();
        let (to, message, old) = reported(&mut lab, session);
        assert_eq!((to, message.seid, old), (OTHER, Some(0), Some(FSeid::new(1, SMF.into()))));
        // The new one answers with its own name, and is the one from now on.
        takes_on(&mut lab, session, &message);
        assert_eq!(lab.saved[&session].cp_f_seid.seid, 99);
        lab.pass(Duration::from_secs(30));
        let (to, message, old) = reported(&mut lab, session);
        assert_eq!((to, message.seid, old), (OTHER, Some(99), None));
    }
}

fn of_two() -> (Lab, Vec<Seid>) {
    let mut lab = Lab::new(config());
    associate_of_set(&mut lab, SMF, &[]);
    associate_of_set(&mut lab, OTHER, &[]);
    let sessions = sessions_of(&mut lab, &[1, 2]);
    accepted(&lab.modify(sessions[0], path_switch(9)));
    let change = SessionChangeInfo { fq_csids: vec![fq_csid(1)], ..to(OTHER) };
    assert_eq!(move_set(&mut lab, change), Cause::RequestAccepted);
    (lab, sessions)
}

fn release(lab: &mut Lab, peer: Ipv4Addr) {
    lab.ask(
        peer,
        &Message::node(0xFFF2, AssociationReleaseRequest { node_id: NodeId::Ipv4(peer), carried: vec![] }),
    );
}

/// TS 29.244 7.4.7: who looks after them counts on them, whatever becomes of the one before.
#[test]
fn sessions_that_moved_outlive_whom_they_moved_from() {
    let ends: [fn(&mut Lab); 3] =
        [|lab| lab.associate(SMF, 2), |lab| lab.tells_of_restart(SMF, 9, 9), |lab| release(lab, SMF)];
    for end in ends {
        let (mut lab, sessions) = of_two();
        end(&mut lab);
        lab.pass(Duration::from_secs(5));
        assert!(lab.in_force.keys().eq([&sessions[0]]) && lab.saved.keys().eq([&sessions[0]]));
        lab.restart();
        let (to, message, old) = reported(&mut lab, sessions[0]);
        assert_eq!((to, message.seid, old), (OTHER, Some(0), Some(FSeid::new(1, SMF.into()))));
        // They are the other's now, and end with it.
        release(&mut lab, OTHER);
        assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.saved.len()), (0, 0, 0));
    }
}

#[test]
fn who_gives_a_session_its_name_has_it() {
    let (mut lab, sessions) = of_two();
    let (_, message, _) = reported(&mut lab, sessions[0]);
    takes_on(&mut lab, sessions[0], &message);
    assert_eq!(lab.saved[&sessions[0]].owner, "10.40.0.8");
    lab.associate(SMF, 2);
    assert!(lab.in_force.keys().eq([&sessions[0]]));
    lab.associate(OTHER, 2);
    assert!(lab.in_force.is_empty());
}

#[test]
fn what_is_not_meant_stays() {
    let mut lab = Lab::associated();
    let session = sessions_of(&mut lab, &[1])[0];
    accepted(&lab.modify(session, path_switch(9)));
    move_set(
        &mut lab,
        SessionChangeInfo { fq_csids: vec![fq_csid(2)], group_ids: vec![vec![]], ..to(OTHER) },
    );
    assert_eq!(reported(&mut lab, session).0, SMF);
}

#[test]
fn the_features_are_advertised() {
    let mut lab = Lab::new(config());
    let Body::AssociationSetupResponse(response) = lab.ask(SMF, &Message::node(1, setup(SMF, 5))) else {
        panic!("an answer")
    };
    let features = response.up_function_features.unwrap();
    assert!(features.contains(UpFeature::Sset) && features.contains(UpFeature::Mpas));
}

fn answer_by_portions(lab: &mut Lab, request: impl Into<Body>) -> Body {
    let sequence = lab.trace.len() as u32;
    lab.tell(SMF, &Message::node(sequence, request));
    lab.pass(Duration::from_secs(5));
    lab.answer(sequence).body
}

/// How long it takes until so many changes that name the same sessions are worked off.
fn time_to_move(lab: &mut Lab, count: usize) -> Duration {
    let change = SessionChangeInfo { cp_ip_addresses: vec![CpIpAddress::new(SMF.into())], ..to(OTHER) };
    let (node_id, changes) = (NodeId::Ipv4(SMF), vec![change; count]);
    let began = std::time::Instant::now();
    let answer = answer_by_portions(lab, SessionSetModificationRequest { node_id, changes, carried: vec![] });
    assert!(matches!(answer, Body::SessionSetModificationResponse(answer) if answer.cause.is_accepted()));
    began.elapsed()
}

/// One datagram names a set, a group or all sessions of a control plane thousands of times: they are looked for once.
#[test]
fn sessions_that_are_named_very_often_are_looked_for_once() {
    let mut lab = Lab::associated();
    let sessions = sessions_of(&mut lab, &[1; 3_000]);
    let once = time_to_move(&mut lab, 1);
    // Other programs may have the CPU now and then, but not each time.
    let often = (0..3).map(|_| time_to_move(&mut lab, 2_500)).min().unwrap();
    assert!(often < once * 5 + Duration::from_millis(100), "{often:?}, and {once:?} for one");
    let repeated = FqCsid { csids: vec![1; 15], ..fq_csid(1) };
    let (node_id, fq_csids) = (NodeId::Ipv4(SMF), vec![repeated; 1_000]);
    answer_by_portions(&mut lab, SessionSetDeletionRequest { node_id, fq_csids, carried: vec![] });
    assert_eq!((sessions.len(), lab.node.sessions()), (3_000, 0));
}

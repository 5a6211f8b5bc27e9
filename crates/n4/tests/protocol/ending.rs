//! Very many sessions that end together do so by portions, between which everybody else is served.

use crate::common::billing::{metered, urr};
use crate::common::smf::{self, establishment, setup};
use crate::common::{Lab, OTHER, Obedience, SMF, config};
use n4::{Config, Limits, Output};
use pfcp::*;
use rules::Seid;
use std::net::Ipv4Addr;
use std::time::Duration;

pub(crate) const PORTION: usize = 10;
pub(crate) const SESSIONS: u64 = 35;
/// Of the request whose answer waits for their end.
pub(crate) const NUMBER: u32 = 0xAAAA;
/// Requests that end sets at once.
const SETS: u64 = 64;
/// The data plane is waited for no longer.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

fn tunnel(cp_seid: u64) -> u32 {
    0x7000 + cp_seid as u32
}

fn ue(cp_seid: u64) -> Ipv4Addr {
    [10, 60, 1, cp_seid as u8].into()
}

pub(crate) fn request(owner: Ipv4Addr, cp_seid: u64) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    (request.node_id, request.cp_f_seid) = (NodeId::Ipv4(owner), FSeid::new(cp_seid, owner.into()));
    request.create_pdrs[0].pdi.f_teid = Some(smf::given(tunnel(cp_seid)));
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![smf::ue(ue(cp_seid))];
    request.fq_csids = vec![set(cp_seid % 2)];
    request
}

pub(crate) fn set(csid: u64) -> FqCsid {
    FqCsid { node_id_type: 0, node: vec![10, 0, 0, 7], csids: vec![csid as u16], node_type: None }
}

/// Two control planes, one with many sessions.
pub(crate) fn lab() -> Lab {
    lab_with(config())
}

pub(crate) fn lab_with(config: Config) -> Lab {
    let limits = Limits { portion: PORTION, ..config.limits };
    let mut lab = Lab::associated_with(Config { limits, ..config });
    lab.associate(OTHER, 1);
    for cp_seid in 1..=SESSIONS {
        lab.establish(request(SMF, cp_seid));
    }
    lab.sent.clear();
    lab.told.clear();
    lab
}

/// How many sessions the data plane was told to let go since it was asked last.
pub(crate) fn deletions(lab: &mut Lab) -> usize {
    let told = std::mem::take(&mut lab.told);
    told.iter().filter(|order| matches!(order, Output::Delete(_))).count()
}

pub(crate) fn restart(lab: &mut Lab, sequence: u32, stamp: u32) {
    lab.tell(SMF, &Message::node(sequence, setup(SMF, stamp)));
}

pub(crate) fn answers(lab: &mut Lab, sequence: u32) -> Vec<Body> {
    let (answers, others) =
        std::mem::take(&mut lab.sent).into_iter().partition(|(_, it)| it.sequence == sequence);
    lab.sent = others;
    let answers: Vec<(_, Message)> = answers;
    answers.into_iter().map(|(_, message)| message.body).collect()
}

pub(crate) fn is_set_up(answers: &[Body]) -> bool {
    matches!(answers, [Body::AssociationSetupResponse(response)] if response.cause.is_accepted())
}

pub(crate) fn establishes(lab: &mut Lab, owner: Ipv4Addr, cp_seid: u64) -> Cause {
    let sequence = 0x1_0000 + lab.trace.len() as u32;
    match lab.ask(owner, &Message::session(0, sequence, request(owner, cp_seid))) {
        Body::SessionEstablishmentResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is_alive(lab: &mut Lab) -> bool {
    let request = HeartbeatRequest { recovery_time_stamp: 1, carried: vec![] };
    let sequence = 0x2_0000 + lab.trace.len() as u32;
    matches!(lab.ask(OTHER, &Message::node(sequence, request)), Body::HeartbeatResponse(_))
}

#[test]
fn a_control_plane_that_restarted_is_answered_when_all_its_sessions_are_gone() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    for ended in [PORTION, 2 * PORTION, 3 * PORTION] {
        assert_eq!(deletions(&mut lab), PORTION, "no more than that in one go");
        assert_eq!(lab.node.sessions(), SESSIONS as usize - ended);
        restart(&mut lab, NUMBER, 2);
        assert!(answers(&mut lab, NUMBER).is_empty(), "neither answered nor begun anew");
        lab.pass(PATIENCE / 2);
        assert_eq!(deletions(&mut lab), 0, "the data plane has yet to let go of these");
        assert!(is_alive(&mut lab));
        assert_eq!(
            lab.associations["10.40.0.9"].recovery_time_stamp, 1,
            "else nobody would know after a crash"
        );
        lab.obey();
        lab.pass(Duration::ZERO);
    }
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.saved.len()), (0, 0, 0));
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
    assert_eq!(lab.associations["10.40.0.9"].recovery_time_stamp, 2);
    restart(&mut lab, NUMBER, 2);
    assert!(is_set_up(&answers(&mut lab, NUMBER)), "the same again");
    lab.obey();
    assert!(lab.in_force.is_empty());
}

#[test]
fn a_data_plane_that_does_not_answer_is_not_waited_for_long() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    let due = lab.node.next_due().unwrap();
    assert!(due > lab.time(), "there is nothing to do until then");
    lab.pass(PATIENCE * 3);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
    let mut lab = self::lab();
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    lab.orders.clear();
    lab.handle(n4::Input::DataPathLost);
    lab.pass(Duration::ZERO);
    assert!(is_set_up(&answers(&mut lab, NUMBER)), "nor one that is not there");
}

#[test]
fn what_is_going_gives_way_to_others() {
    let mut lab = lab();
    assert_eq!(establishes(&mut lab, OTHER, 30), Cause::RuleCreationModificationFailure, "it is not");
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    lab.tell(OTHER, &Message::session(0, 7, request(OTHER, 30)));
    lab.obedience = Obedience::Obeys;
    lab.obey();
    let [Body::SessionEstablishmentResponse(response)] = &answers(&mut lab, 7)[..] else { panic!() };
    assert_eq!(response.cause, Cause::RequestAccepted);
    lab.pass(Duration::ZERO);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.in_force.len()), (1, 1, 1));
    assert_eq!(establishes(&mut lab, SMF, 30), Cause::RuleCreationModificationFailure);
    assert_eq!(establishes(&mut lab, SMF, 31), Cause::RequestAccepted);
}

/// The answer is not there, so it asks again.
#[test]
fn who_dies_in_between_goes_on_when_asked_again() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    lab.orders.clear();
    lab.restart();
    assert_eq!(lab.node.sessions(), SESSIONS as usize - PORTION);
    lab.obedience = Obedience::Obeys;
    restart(&mut lab, NUMBER, 2);
    lab.pass(Duration::ZERO);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
    assert_eq!((lab.node.sessions(), lab.saved.len(), lab.in_force.len()), (0, 0, 0));
}

#[test]
fn who_asks_anew_meanwhile_is_answered_and_its_former_request_refused() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    restart(&mut lab, NUMBER + 1, 3);
    let [Body::AssociationSetupResponse(refused)] = &answers(&mut lab, NUMBER)[..] else { panic!() };
    assert_eq!(refused.cause, Cause::PfcpEntityInCongestion);
    lab.obedience = Obedience::Obeys;
    lab.obey();
    lab.pass(Duration::ZERO);
    assert!(is_set_up(&answers(&mut lab, NUMBER + 1)));
    assert_eq!((lab.node.sessions(), lab.associations["10.40.0.9"].recovery_time_stamp), (0, 3));
}

#[test]
fn who_leaves_makes_no_sessions_any_more() {
    let mut lab = lab();
    let release = AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] };
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::node(NUMBER, release));
    assert_eq!(deletions(&mut lab), PORTION);
    assert_eq!(establishes(&mut lab, SMF, 77), Cause::NoEstablishedPfcpAssociation);
    lab.obedience = Obedience::Obeys;
    lab.obey();
    assert_eq!(lab.associations.len(), 2);
    lab.pass(Duration::ZERO);
    let [Body::AssociationReleaseResponse(response)] = &answers(&mut lab, NUMBER)[..] else { panic!() };
    assert_eq!(response.cause, Cause::RequestAccepted);
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.associations.len()), (0, 0, 1));
}

/// By their CP F-SEIDs' address, which here is that of all.
#[test]
fn what_is_retained_stays() {
    let mut lab = lab();
    let mut request = setup(SMF, 2);
    let value = vec![0, 185, 0, 5, 2, 10, 40, 0, 9];
    request.carried = vec![RawIe { ie: ie::PFCP_SESSION_RETENTION_INFORMATION, value }];
    lab.tell(SMF, &Message::node(NUMBER, request));
    assert!(answers(&mut lab, NUMBER).is_empty(), "it takes as long to look at them");
    lab.pass(Duration::ZERO);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
    assert_eq!((lab.node.sessions(), deletions(&mut lab)), (SESSIONS as usize, 0));
}

/// What it has made since it restarted stays, as it is of today.
#[test]
fn who_only_told_of_a_restart_loses_the_sessions_it_had() {
    let mut lab = lab();
    lab.silent = vec![SMF];
    lab.tells_of_restart(SMF, NUMBER, 2);
    assert_eq!(establishes(&mut lab, SMF, 77), Cause::RequestAccepted);
    lab.obedience = Obedience::Waits;
    lab.pass(Duration::from_secs(5));
    assert_eq!(deletions(&mut lab), PORTION);
    assert!(
        lab.node.next_due().unwrap() > lab.time(),
        "there is nothing to do until the data plane has spoken"
    );
    assert_eq!(lab.associations["10.40.0.9"].recovery_time_stamp, 1);
    lab.obedience = Obedience::Obeys;
    lab.obey();
    lab.pass(Duration::ZERO);
    assert_eq!((lab.node.sessions(), lab.saved.len(), lab.in_force.len()), (1, 1, 1));
    assert_eq!(lab.associations["10.40.0.9"].recovery_time_stamp, 2);
    lab.pass(Duration::from_secs(60));
    assert_eq!(lab.node.sessions(), 1);
}

#[test]
fn what_many_sessions_used_is_told_before_we_leave() {
    let limits = Limits { portion: PORTION, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { limits, ..config() });
    let sessions: Vec<Seid> = (1..=SESSIONS)
        .map(|cp_seid| {
            let mut metered = metered(cp_seid, vec![urr(1, 0)]);
            metered.create_pdrs.truncate(1);
            lab.establish(metered)
        })
        .collect();
    sessions.iter().for_each(|session| lab.traffic(*session, (100, 200), true));
    let outputs = lab.node.leave(Duration::from_secs(50), lab.time());
    lab.carry_out_all(outputs);
    (lab.told, lab.obedience) = (vec![], Obedience::Waits);
    lab.pass(Duration::from_secs(50));
    assert_eq!(deletions(&mut lab), PORTION);
    lab.obey();
    assert_eq!((lab.node.leaving().len(), lab.reports().len()), (1, PORTION));
    lab.obedience = Obedience::Obeys;
    lab.pass(Duration::ZERO);
    assert_eq!(lab.reports().len(), SESSIONS as usize - PORTION);
    lab.pass(Duration::from_secs(1));
    assert!(lab.node.leaving().is_empty() && lab.associations.is_empty());
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.saved.len()), (0, 0, 0));
}

pub(crate) fn delete_set(lab: &mut Lab, sequence: u32, csid: u64) {
    let node_id = NodeId::Ipv4(SMF);
    let request = SessionSetDeletionRequest { node_id, fq_csids: vec![set(csid)], carried: vec![] };
    lab.tell(SMF, &Message::node(sequence, request));
}

#[test]
fn sets_end_in_turns() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    delete_set(&mut lab, NUMBER, 0);
    delete_set(&mut lab, NUMBER + 1, 1);
    assert_eq!(deletions(&mut lab), PORTION, "there is one portion for all");
    assert!(lab.is_silent());
    lab.obey();
    lab.pass(Duration::ZERO);
    lab.obey();
    lab.pass(Duration::ZERO);
    let left = lab.saved.keys().map(|seid| seid.0 % 2).fold([0, 0], |mut left, set| {
        left[set as usize] += 1;
        left
    });
    assert!(left.iter().all(|left| *left < SESSIONS as usize / 2), "of both: {left:?}");
    assert!(is_alive(&mut lab));
    lab.obedience = Obedience::Obeys;
    lab.obey();
    lab.pass(Duration::ZERO);
    for number in [NUMBER, NUMBER + 1] {
        let [Body::SessionSetDeletionResponse(response)] = &answers(&mut lab, number)[..] else { panic!() };
        assert_eq!(response.cause, Cause::RequestAccepted);
    }
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.saved.len()), (0, 0, 0));
    assert_eq!(lab.associations.len(), 2);
}

#[test]
fn not_more_sets_end_at_once_than_there_is_room_for() {
    let limits = Limits { portion: 1, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { limits, ..config() });
    for cp_seid in 1..=SETS * 2 {
        lab.establish(SessionEstablishmentRequest { fq_csids: vec![set(0)], ..request(SMF, cp_seid) });
    }
    lab.sent.clear();
    lab.obedience = Obedience::Waits;
    (0..=SETS).for_each(|number| delete_set(&mut lab, NUMBER + number as u32, 0));
    let [(_, sent)] = &lab.sent[..] else { panic!("one answer, to the last: {:?}", lab.sent) };
    let Body::SessionSetDeletionResponse(response) = &sent.body else { panic!("{sent:?}") };
    assert_eq!((sent.sequence, response.cause), (NUMBER + SETS as u32, Cause::PfcpEntityInCongestion));
    assert_eq!(lab.node.sessions() as u64, SETS * 2 - 1, "the others wait for the first");
}

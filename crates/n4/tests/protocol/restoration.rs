//! Whoever lost what it knew gets back to the same state: a node whose database is gone, and asks for nothing but to be told
//! again (RESTI, TS 29.244 8.2.177, TS 23.527 4.3), a control plane that was restarted, and both after a path was down.

use crate::common::smf::{self, chosen, establishment};
use crate::common::{Lab, SMF, at, config};
use n4::{Config, UePool};
use pfcp::*;
use rules::{Rules, Seid};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

const SESSIONS: u64 = 20;

/// RESTI (TS 29.244 8.2.177).
const RESTI: u8 = 1;

fn lab() -> Lab {
    let prefix = "10.60.0.0/24".parse().unwrap();
    let pool = UePool { name: "all".to_owned(), prefix, network_instance: None };
    Lab::associated_with(Config { ue_pools: vec![pool], ..config() })
}

/// What a control plane remembers of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    cp_seid: u64,
    teid: u32,
    ue: Ipv4Addr,
}

fn answer(lab: &mut Lab, request: SessionEstablishmentRequest) -> SessionEstablishmentResponse {
    let sequence = 0x1000 + request.cp_f_seid.seid as u32;
    match lab.ask(SMF, &Message::session(0, sequence, request)) {
        Body::SessionEstablishmentResponse(response) => {
            assert_eq!(response.cause, Cause::RequestAccepted, "{:?}", lab.notes);
            response
        }
        other => panic!("{other:?}"),
    }
}

/// One whose tunnel and address are ours to choose.
fn fresh(lab: &mut Lab, cp_seid: u64) -> Known {
    let mut request = establishment(cp_seid);
    let choose = UeIpAddress { ipv4: None, choose_ipv4: true, ..smf::ue(Ipv4Addr::UNSPECIFIED) };
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![choose];
    let response = answer(lab, request);
    let told = response.created_pdrs.iter().find_map(|created| created.ue_ip_addresses.first()?.ipv4);
    Known { cp_seid, teid: chosen(&response.created_pdrs, 1), ue: told.unwrap() }
}

/// The same again, with what it had.
fn again(lab: &mut Lab, known: Known) {
    let mut request = establishment(known.cp_seid);
    request.create_pdrs[0].pdi.f_teid = Some(smf::given(known.teid));
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![smf::ue(known.ue)];
    request.pfcpse_req_flags = Some(RESTI);
    assert!(answer(lab, request).created_pdrs.is_empty(), "nothing of it was ours to choose");
}

/// What is in force, whatever we call it.
fn in_force(lab: &Lab) -> Vec<Rules> {
    assert_eq!(lab.in_force, lab.desired());
    let mut rules: Vec<Rules> = lab.in_force.values().map(|desired| desired.rules.as_ref().clone()).collect();
    rules.sort_by_key(|rules| rules.pdrs[0].pdi.f_teid.unwrap().teid);
    rules
}

fn state(lab: &Lab) -> (Vec<Rules>, usize, usize, usize) {
    (in_force(lab), lab.node.tunnels(), lab.node.addresses(), lab.saved.len())
}

/// Nothing that is chosen later is anybody's already.
fn choose_more(lab: &mut Lab, known: &[Known]) {
    let mut all = known.to_vec();
    all.extend((1_000..1_000 + SESSIONS).map(|cp_seid| fresh(lab, cp_seid)));
    let teids: BTreeSet<u32> = all.iter().map(|known| known.teid).collect();
    let users: BTreeSet<Ipv4Addr> = all.iter().map(|known| known.ue).collect();
    assert_eq!((teids.len(), users.len()), (all.len(), all.len()));
}

/// With an empty database and the very allocators of the node before it.
#[test]
fn a_node_that_lost_its_database_is_told_again_and_chooses_nothing_twice() {
    let mut before = lab();
    let known: Vec<Known> = (1..=SESSIONS).map(|cp_seid| fresh(&mut before, cp_seid)).collect();
    let expected = state(&before);
    let mut after = lab();
    known.iter().for_each(|known| again(&mut after, *known));
    assert_eq!(state(&after), expected);
    choose_more(&mut after, &known);
}

/// Some of them come back while others are already new: these must not have taken what is to come.
#[test]
fn what_is_told_again_too_late_is_refused_and_harms_nobody() {
    let mut before = lab();
    let known = fresh(&mut before, 1);
    let mut after = lab();
    let new = fresh(&mut after, 900);
    assert_eq!((new.teid, new.ue), (known.teid, known.ue), "else this test shows nothing");
    let expected = state(&after);
    let mut request = establishment(known.cp_seid);
    request.create_pdrs[0].pdi.f_teid = Some(smf::given(known.teid));
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![smf::ue(known.ue)];
    request.pfcpse_req_flags = Some(RESTI);
    let Body::SessionEstablishmentResponse(response) = after.ask(SMF, &Message::session(0, 9, request))
    else {
        panic!()
    };
    assert_eq!(
        (response.cause, response.offending_ie),
        (Cause::RuleCreationModificationFailure, Some(ie::F_TEID))
    );
    assert_eq!(state(&after), expected);
}

/// A process that only dies keeps everything: control planes need not know.
#[test]
fn a_restart_with_the_database_changes_nothing() {
    let mut lab = lab();
    let known: Vec<Known> = (1..=SESSIONS).map(|cp_seid| fresh(&mut lab, cp_seid)).collect();
    let expected = state(&lab);
    lab.restart();
    assert_eq!(state(&lab), expected);
    lab.restart_plane();
    assert_eq!(state(&lab), expected);
    choose_more(&mut lab, &known);
}

#[test]
fn a_control_plane_that_was_restarted_has_no_sessions_and_makes_them_anew() {
    let mut lab = lab();
    let known: Vec<Known> = (1..=SESSIONS).map(|cp_seid| fresh(&mut lab, cp_seid)).collect();
    let expected = state(&lab);
    lab.associate(SMF, 2);
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()), (0, 0, 0));
    assert!(lab.in_force.is_empty() && lab.saved.is_empty());
    known.iter().for_each(|known| again(&mut lab, *known));
    assert_eq!(state(&lab), expected);
    choose_more(&mut lab, &known);
}

/// One that leaves the association to us, and of whose restart only heartbeats tell, is asked again until it takes it.
#[test]
fn a_control_plane_that_was_restarted_is_asked_to_associate_again() {
    let mut lab = Lab::new(Config { associate: vec![at(SMF)], ..config() });
    let asked = |lab: &mut Lab| {
        let is_setup = |(_, message): &(_, Message)| {
            matches!(message.body, Body::AssociationSetupRequest(_)).then_some(message.sequence)
        };
        lab.sent.drain(..).collect::<Vec<_>>().iter().filter_map(is_setup).next_back()
    };
    let take = |lab: &mut Lab, sequence: u32, stamp: u32| {
        let answer = AssociationSetupResponse::new(NodeId::Ipv4(SMF), Cause::RequestAccepted, stamp);
        lab.tell(SMF, &Message::node(sequence, answer));
    };
    lab.pass(Duration::ZERO);
    let first = asked(&mut lab).unwrap();
    take(&mut lab, first, 1);
    lab.pass(Duration::from_secs(60));
    assert_eq!(asked(&mut lab), None);
    lab.tells_of_restart(SMF, 9, 2);
    lab.pass(Duration::from_secs(60));
    assert!(asked(&mut lab).is_some());
    // It may have been lost.
    lab.pass(Duration::from_secs(60));
    let last = asked(&mut lab).unwrap();
    take(&mut lab, last, 2);
    assert_eq!(lab.associations[&SMF.to_string()].recovery_time_stamp, 2);
    lab.pass(Duration::from_secs(60));
    assert_eq!(asked(&mut lab), None);
}

/// Silence loses nothing, and the same recovery time stamp says that nothing was lost there, either.
#[test]
fn a_path_that_was_down_loses_no_session() {
    let mut lab = lab();
    let known: Vec<Known> = (1..=SESSIONS).map(|cp_seid| fresh(&mut lab, cp_seid)).collect();
    let expected = state(&lab);
    lab.pass(Duration::from_secs(600));
    lab.sent.clear();
    assert_eq!(state(&lab), expected);
    lab.associate(SMF, 1);
    assert_eq!(state(&lab), expected);
    let session = *lab.in_force.keys().next().unwrap();
    assert_eq!(lab.modify(session, smf::path_switch(9)).cause, Cause::RequestAccepted);
    choose_more(&mut lab, &known);
    let all: Vec<Seid> = lab.in_force.keys().copied().collect();
    all.into_iter().for_each(|session| drop(lab.delete(session)));
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()), (0, 0, 0));
}

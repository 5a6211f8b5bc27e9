//! A control plane associates anew with the time stamp it had: its sessions stay, and those it has forgotten give way to new ones
//! that want what they have.

use crate::common::smf::{self, establishment, path_switch, setup};
use crate::common::{Lab, OTHER, Obedience, SMF, config};
use ::charging::{Cause as Closed, Key, Policy, Rating};
use n4::{Charging, Config, Output, UePool};
use pfcp::*;
use rules::Seid;
use std::net::Ipv4Addr;
use std::time::Duration;

const TEID: u32 = 0x1234;
const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 7);

/// With a pool, records, and the session that is to be forgotten.
fn lab() -> (Lab, Seid) {
    let prefix = "10.60.0.0/24".parse().unwrap();
    let pool = UePool { name: "all".to_owned(), prefix, network_instance: None };
    let key = Key { rating_group: 1, service_id: None };
    let rating = Rating::new(Some(key), vec![], []).unwrap();
    let charging = Some(Charging { rating, policy: Policy::default() });
    let mut lab = Lab::associated_with(Config { ue_pools: vec![pool], charging, ..config() });
    let session = lab.establish(with(1, TEID, UE));
    (lab, session)
}

/// All of which the control plane chooses.
fn with(cp_seid: u64, teid: u32, address: Ipv4Addr) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    request.create_pdrs[0].pdi.f_teid = Some(smf::given(teid));
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![smf::ue(address)];
    request
}

/// With the time stamp of before.
fn associate_anew(lab: &mut Lab) {
    let sequence = 0x8000 + lab.trace.len() as u32;
    let answer = lab.ask(SMF, &Message::node(sequence, setup(SMF, 1)));
    assert!(matches!(answer, Body::AssociationSetupResponse(ref setup) if setup.cause.is_accepted()));
}

fn ask(lab: &mut Lab, request: SessionEstablishmentRequest) -> Cause {
    let sequence = 0x9000 + lab.trace.len() as u32;
    match lab.ask(SMF, &Message::session(0, sequence, request)) {
        Body::SessionEstablishmentResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

/// What the data plane was told since then, sessions that go in front of a minus.
fn orders(lab: &Lab, since: usize) -> Vec<(char, Seid)> {
    let order = |output: &Output| match output {
        Output::Put(desired) => Some(('+', desired.session)),
        Output::Delete(session) => Some(('-', *session)),
        _ => None,
    };
    lab.told[since..].iter().filter_map(order).collect()
}

fn is_whole(lab: &Lab) {
    assert_eq!((&lab.in_force, lab.node.sessions()), (&lab.desired(), lab.saved.len()));
}

/// By its tunnel, by its user's address, and by both.
#[test]
fn what_is_forgotten_gives_way_to_whoever_wants_what_it_has() {
    for (teid, address) in [(TEID, UE), (TEID, Ipv4Addr::new(10, 60, 0, 8)), (TEID + 1, UE)] {
        let (mut lab, session) = lab();
        lab.traffic(session, (100, 200), true);
        associate_anew(&mut lab);
        assert!(lab.in_force.contains_key(&session), "it stays until then");
        let since = lab.told.len();
        assert_eq!(ask(&mut lab, with(2, teid, address)), Cause::RequestAccepted, "{:?}", lab.notes);
        let new = *lab.in_force.keys().max().unwrap();
        assert_eq!(orders(&lab, since)[..2], [('-', session), ('+', new)], "in this order");
        assert_eq!((lab.in_force.len(), lab.node.tunnels(), lab.node.addresses()), (1, 1, 1));
        is_whole(&lab);
        // It ends like any other.
        let [cdr] = &lab.cdrs[..] else { panic!("{:?}", lab.cdrs) };
        let used = (cdr.containers[0].uplink_bytes, cdr.containers[0].downlink_bytes);
        assert_eq!((cdr.session.seid, used), (session.0, (100, 200)));
        assert_ne!(cdr.cause, Closed::TimeLimit);
        lab.delete(new);
        assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()), (0, 0, 0));
    }
}

/// Several may be in the way of one.
#[test]
fn one_takes_the_place_of_several() {
    let (mut lab, session) = lab();
    let other = lab.establish(with(2, TEID + 1, Ipv4Addr::new(10, 60, 0, 8)));
    let third = lab.establish(with(3, TEID + 2, Ipv4Addr::new(10, 60, 0, 9)));
    let stays = lab.establish(with(4, TEID + 3, Ipv4Addr::new(10, 60, 0, 10)));
    associate_anew(&mut lab);
    assert_eq!(ask(&mut lab, with(3, TEID, Ipv4Addr::new(10, 60, 0, 8))), Cause::RequestAccepted);
    assert!([session, other, third].iter().all(|gone| !lab.in_force.contains_key(gone)));
    assert!(lab.in_force.contains_key(&stays));
    assert_eq!((lab.in_force.len(), lab.node.tunnels(), lab.node.addresses()), (2, 2, 2));
    is_whole(&lab);
}

/// Nothing of that without a new association, of what was named after it, and to others.
#[test]
fn who_is_not_forgotten_keeps_what_it_has() {
    type Case = fn(&mut Lab, Seid);
    let cases: [Case; 4] = [
        |_, _| {},
        |lab, session| {
            associate_anew(lab);
            assert_eq!(lab.modify(session, path_switch(5)).cause, Cause::RequestAccepted);
        },
        |lab, _| {
            associate_anew(lab);
            lab.restart();
            let it = *lab.in_force.keys().next().unwrap();
            // Even a request that is refused names it.
            let unknown = UpdatePdr { pdr_id: 99, ..UpdatePdr::default() };
            let bad = SessionModificationRequest { update_pdrs: vec![unknown], ..Default::default() };
            assert_ne!(lab.modify(it, bad).cause, Cause::RequestAccepted);
            lab.restart();
        },
        |lab, _| {
            lab.associate(OTHER, 1);
            lab.ask(OTHER, &Message::node(1, setup(OTHER, 1)));
        },
    ];
    for case in cases {
        let (mut lab, session) = lab();
        case(&mut lab, session);
        let refused = Cause::RuleCreationModificationFailure;
        assert_eq!(ask(&mut lab, with(2, TEID, Ipv4Addr::new(10, 60, 0, 8))), refused);
        assert_eq!(ask(&mut lab, with(2, TEID + 1, UE)), refused);
        assert!(lab.in_force.contains_key(&session));
        is_whole(&lab);
    }
}

#[test]
fn what_is_forgotten_stays_so_across_a_restart() {
    let (mut lab, session) = lab();
    associate_anew(&mut lab);
    lab.restart();
    assert!(lab.in_force.contains_key(&session));
    assert_eq!(ask(&mut lab, with(2, TEID, UE)), Cause::RequestAccepted);
    assert!(!lab.in_force.contains_key(&session));
    is_whole(&lab);
}

/// What no pool of ours has, and networks behind users, too.
#[test]
fn addresses_of_no_pool_and_networks_count() {
    let route = |r: &mut SessionEstablishmentRequest| {
        let value = b"192.0.2.0/24".to_vec();
        r.create_pdrs[1].pdi.carried = vec![RawIe { ie: ie::FRAMED_ROUTE, value }];
    };
    let elsewhere = Ipv4Addr::new(172, 16, 0, 1);
    for (changes, address) in [(false, elsewhere), (true, Ipv4Addr::new(172, 16, 0, 2))] {
        let (mut lab, _) = lab();
        let mut request = with(2, TEID + 1, elsewhere);
        route(&mut request);
        let old = lab.establish(request);
        associate_anew(&mut lab);
        let mut request = with(3, TEID + 2, address);
        if changes {
            route(&mut request);
        }
        assert_eq!(ask(&mut lab, request), Cause::RequestAccepted);
        assert!(!lab.in_force.contains_key(&old));
        is_whole(&lab);
    }
}

#[test]
fn it_comes_back_where_the_new_one_fails() {
    let (mut lab, session) = lab();
    associate_anew(&mut lab);
    lab.obedience = Obedience::RefusesAfter(session);
    let before = (lab.in_force[&session].rules.clone(), lab.node.tunnels(), lab.node.addresses());
    for request in [with(2, TEID, UE), with(2, TEID + 1, UE)] {
        assert_eq!(ask(&mut lab, request), Cause::SystemFailure);
        assert_eq!((lab.in_force[&session].rules.clone(), lab.node.tunnels(), lab.node.addresses()), before);
        is_whole(&lab);
    }
    // And is in the way of the next as it was.
    lab.obedience = Obedience::Obeys;
    assert_eq!(ask(&mut lab, with(2, TEID + 1, UE)), Cause::RequestAccepted);
    assert!(!lab.in_force.contains_key(&session));
    is_whole(&lab);
}

/// It goes for one; for another, of its name, it is not there any more, whatever becomes of the first.
#[test]
fn what_gives_way_to_one_is_not_given_to_another() {
    for obeys in [true, false] {
        let (mut lab, session) = lab();
        associate_anew(&mut lab);
        lab.obedience = Obedience::Waits;
        lab.tell(SMF, &Message::session(0, 900, with(2, TEID, UE)));
        lab.tell(SMF, &Message::session(0, 901, with(3, TEID, Ipv4Addr::new(10, 60, 0, 8))));
        let Body::SessionEstablishmentResponse(response) = lab.answer(901).body else { panic!() };
        assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
        lab.tell(SMF, &Message::session(0, 902, with(1, TEID + 1, Ipv4Addr::new(10, 60, 0, 9))));
        lab.obedience = if obeys { Obedience::Obeys } else { Obedience::RefusesAfter(session) };
        lab.obey();
        let causes = [900, 902].map(|sequence| match lab.answer(sequence).body {
            Body::SessionEstablishmentResponse(response) => response.cause,
            other => panic!("{other:?}"),
        });
        let expected = if obeys { Cause::RequestAccepted } else { Cause::SystemFailure };
        assert_eq!(causes, [expected; 2]);
        is_whole(&lab);
        let left = if obeys { 2 } else { 0 };
        assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()), (left, left, left));
    }
}

/// A full table is no reason to keep what is forgotten.
#[test]
fn there_is_room_where_one_goes_for_another() {
    let (mut lab, _) = lab();
    lab.config.limits.sessions = 1;
    lab.restart();
    assert_eq!(ask(&mut lab, with(2, TEID, UE)), Cause::NoResourcesAvailable);
    associate_anew(&mut lab);
    assert_eq!(ask(&mut lab, with(2, TEID, UE)), Cause::RequestAccepted);
    assert_eq!(lab.node.sessions(), 1);
    lab.pass(Duration::from_secs(1));
    is_whole(&lab);
}

const OTHERS: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 8);

/// A change that gives a session another tunnel and another address.
fn moved_to(teid: u32, address: Ipv4Addr) -> SessionModificationRequest {
    let pdrs = with(1, teid, address).create_pdrs;
    let update =
        |pdr: CreatePdr| UpdatePdr { pdr_id: pdr.pdr_id, pdi: Some(pdr.pdi), ..UpdatePdr::default() };
    let update_pdrs = pdrs.into_iter().map(update).collect();
    SessionModificationRequest { update_pdrs, ..SessionModificationRequest::default() }
}

/// Of two sessions, both forgotten for all we know, one that the control plane speaks of gets what the other has.
fn two() -> (Lab, Seid, Seid) {
    let (mut lab, stale) = lab();
    let other = lab.establish(with(2, TEID + 1, OTHERS));
    associate_anew(&mut lab);
    (lab, stale, other)
}

#[test]
fn what_is_forgotten_gives_way_to_a_change_of_another() {
    for (teid, address) in [(TEID, OTHERS), (TEID + 1, UE), (TEID, UE)] {
        let (mut lab, stale, other) = two();
        let since = lab.told.len();
        assert_eq!(
            lab.modify(other, moved_to(teid, address)).cause,
            Cause::RequestAccepted,
            "{:?}",
            lab.notes
        );
        assert_eq!(orders(&lab, since)[..2], [('-', stale), ('+', other)], "in this order");
        assert_eq!((lab.in_force.len(), lab.node.tunnels(), lab.node.addresses()), (1, 1, 1));
        is_whole(&lab);
        lab.delete(other);
        assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()), (0, 0, 0));
    }
}

/// Somebody else has the address of one that moved.
#[test]
fn who_has_what_another_left_gives_way_for_it() {
    let (mut lab, moved) = lab();
    assert_eq!(lab.modify(moved, moved_to(TEID, OTHERS)).cause, Cause::RequestAccepted);
    let stale = lab.establish(with(2, TEID + 1, UE));
    associate_anew(&mut lab);
    let since = lab.told.len();
    assert_eq!(ask(&mut lab, with(3, TEID + 2, UE)), Cause::RequestAccepted, "{:?}", lab.notes);
    let new = *lab.in_force.keys().max().unwrap();
    assert_eq!(orders(&lab, since)[..2], [('-', stale), ('+', new)], "in this order");
    assert!(lab.in_force.contains_key(&moved));
    is_whole(&lab);
}

/// Where the change cannot be, both are as they were; and where the other has been spoken of, it keeps what it has.
#[test]
fn what_gave_way_to_a_change_comes_back_if_that_is_refused() {
    let (mut lab, stale, other) = two();
    lab.obedience = Obedience::RefusesAfter(stale);
    assert_ne!(lab.modify(other, moved_to(TEID, UE)).cause, Cause::RequestAccepted);
    lab.obedience = Obedience::Obeys;
    lab.restart();
    assert!(lab.in_force.contains_key(&stale) && lab.in_force.contains_key(&other));
    assert_eq!((lab.in_force.len(), lab.node.tunnels(), lab.node.addresses()), (2, 2, 2));
    let bad = SessionModificationRequest {
        update_pdrs: vec![UpdatePdr { pdr_id: 99, ..UpdatePdr::default() }],
        ..moved_to(TEID, UE)
    };
    assert_ne!(lab.modify(other, bad).cause, Cause::RequestAccepted);
    assert_eq!((lab.in_force.len(), lab.node.tunnels(), lab.node.addresses()), (2, 2, 2));
    assert_eq!(lab.modify(stale, path_switch(5)).cause, Cause::RequestAccepted);
    assert_ne!(lab.modify(other, moved_to(TEID, UE)).cause, Cause::RequestAccepted);
    is_whole(&lab);
    // While it has something under way, it is not to go.
    assert_eq!(lab.in_force.len(), 2);
}

/// Two names behind the translation whose address is the control plane's.
const BEFORE: Ipv4Addr = Ipv4Addr::new(172, 20, 0, 1);
const AFTER: Ipv4Addr = Ipv4Addr::new(172, 20, 0, 2);

/// Somebody by that name associates at an address.
fn associate_by(lab: &mut Lab, from: Ipv4Addr, name: &NodeId) {
    let sequence = 0xA000 + lab.trace.len() as u32;
    let request = request::setup(name.clone(), 1);
    let answer = lab.ask(from, &Message::node(sequence, request));
    assert!(matches!(answer, Body::AssociationSetupResponse(ref setup) if setup.cause.is_accepted()));
    lab.pass(Duration::from_secs(30));
}

/// What one of that name is answered who wants the session's tunnel and address.
fn wants(lab: &mut Lab, from: Ipv4Addr, name: &NodeId, cp_seid: u64) -> Cause {
    let mut request = with(cp_seid, TEID, UE);
    (request.node_id, request.cp_f_seid) = (name.clone(), FSeid::new(cp_seid, from.into()));
    let sequence = 0xB000 + lab.trace.len() as u32;
    match lab.ask(from, &Message::session(0, sequence, request)) {
        Body::SessionEstablishmentResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

/// A lab in which one of a name has a session, and another one came by another name.
fn succeeded(names: &[NodeId; 2]) -> (Lab, Seid) {
    let mut lab = Lab::new(config());
    associate_by(&mut lab, SMF, &names[0]);
    assert_eq!(wants(&mut lab, SMF, &names[0], 1), Cause::RequestAccepted);
    lab.pass(Duration::from_secs(30));
    associate_by(&mut lab, SMF, &names[1]);
    let session = *lab.in_force.keys().next().unwrap();
    (lab, session)
}

/// A new container has a new address, and so another Node ID, but behind address translation it comes by the same one: heartbeats to
/// its predecessor it answers, too.
#[test]
fn a_control_plane_behind_translation_comes_back_by_another_name() {
    let addresses = [BEFORE, AFTER].map(NodeId::Ipv4);
    let names = ["smf-1.lab", "smf-2.lab"].map(|name| NodeId::Fqdn(name.to_owned()));
    for (names, restarts) in [(&addresses, false), (&names, false), (&addresses, true)] {
        let (mut lab, session) = succeeded(names);
        if restarts {
            lab.restart();
            lab.pass(Duration::from_secs(30));
        }
        assert!(lab.in_force.contains_key(&session), "it stays until then");
        assert_eq!(wants(&mut lab, SMF, &names[1], 2), Cause::RequestAccepted, "{:?}", lab.notes);
        assert!(!lab.in_force.contains_key(&session));
        assert_eq!((lab.in_force.len(), lab.node.tunnels()), (1, 1));
        is_whole(&lab);
    }
}

/// Who has spoken by its name since the other came is not that one, nor is who was there before.
#[test]
fn control_planes_behind_one_address_keep_what_they_have() {
    let names = [BEFORE, AFTER].map(NodeId::Ipv4);
    let speaks: [fn(&mut Lab, Seid); 4] = [
        |lab, session| assert_eq!(lab.modify(session, path_switch(5)).cause, Cause::RequestAccepted),
        |lab, _| {
            let update = AssociationUpdateRequest::new(NodeId::Ipv4(BEFORE));
            lab.ask(SMF, &Message::node(0xC000, update));
        },
        |lab, _| associate_by(lab, SMF, &NodeId::Ipv4(BEFORE)),
        |lab, _| {
            let mut request = with(9, TEID + 9, Ipv4Addr::new(10, 60, 0, 9));
            (request.node_id, request.cp_f_seid) = (NodeId::Ipv4(BEFORE), FSeid::new(9, SMF.into()));
            lab.ask(SMF, &Message::session(0, 0xC001, request));
        },
    ];
    for speaks in speaks {
        for restarts in [false, true] {
            let (mut lab, session) = succeeded(&names);
            speaks(&mut lab, session);
            if restarts {
                lab.restart();
            }
            lab.pass(Duration::from_secs(30));
            assert_eq!(wants(&mut lab, SMF, &names[1], 2), Cause::RuleCreationModificationFailure);
            assert!(lab.in_force.contains_key(&session));
            is_whole(&lab);
        }
    }
    let (mut lab, session) = succeeded(&names);
    // One that is at its own address is behind no translation, and one at another address is somebody else.
    for (from, name) in [(SMF, SMF), (OTHER, OTHER), (OTHER, Ipv4Addr::new(172, 20, 0, 3))] {
        associate_by(&mut lab, from, &NodeId::Ipv4(name));
        assert_eq!(wants(&mut lab, from, &NodeId::Ipv4(name), 3), Cause::RuleCreationModificationFailure);
    }
    // The former one gets nothing of its successor's.
    assert_eq!(wants(&mut lab, SMF, &names[1], 2), Cause::RequestAccepted);
    assert!(!lab.in_force.contains_key(&session));
    assert_eq!(wants(&mut lab, SMF, &names[0], 4), Cause::RuleCreationModificationFailure);
    is_whole(&lab);
}

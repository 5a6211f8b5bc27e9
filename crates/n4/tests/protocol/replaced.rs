//! A CP F-SEID that is used again: the session that had the name goes when the new one is there, and not before.

use crate::common::billing::{Bill, metered, urr};
use crate::common::smf::{self, establishment, path_switch, setup};
use crate::common::{Lab, Obedience, SMF, config};
use n4::{Config, UePool};
use pfcp::*;
use rules::{Seid, UrrId};
use std::time::Duration;

const CP_SEID: u64 = 77;
const GIVEN: u32 = 0x1234;

/// With a pool, and room for two sessions.
fn lab() -> (Lab, Seid) {
    let prefix = "10.60.0.0/24".parse().unwrap();
    let pool = UePool { name: "all".to_owned(), prefix, network_instance: None };
    let mut config = Config { ue_pools: vec![pool], ..config() };
    config.limits.sessions = 2;
    let mut lab = Lab::associated_with(config);
    let other = establishment(5);
    let mut other = SessionEstablishmentRequest { create_pdrs: other.create_pdrs[..1].to_vec(), ..other };
    other.create_pdrs[0].pdi.f_teid = Some(smf::given(9));
    lab.establish(other);
    let session = lab.establish(old());
    lab.modify(session, path_switch(5));
    (lab, session)
}

/// With a TEID and an address that are the control plane's choice.
fn old() -> SessionEstablishmentRequest {
    let mut request = metered(CP_SEID, vec![urr(1, 2)]);
    request.create_pdrs[0].pdi.f_teid = Some(smf::given(GIVEN));
    request
}

fn establish(lab: &mut Lab, request: SessionEstablishmentRequest) -> Cause {
    match lab.ask(SMF, &Message::session(0, 900, request)) {
        Body::SessionEstablishmentResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

type Case = (Cause, fn(&mut SessionEstablishmentRequest));

/// Refused at once: nothing is even asked of the data plane.
const REFUSED: &[Case] = &[
    (Cause::ServiceNotSupported, |r| r.pdn_type = Some(PdnType::NonIp)),
    (Cause::RuleCreationModificationFailure, |r| r.create_pdrs[0].far_id = Some(40)),
    // Of another session.
    (Cause::RuleCreationModificationFailure, |r| r.create_pdrs[0].pdi.f_teid = Some(smf::given(9))),
    (Cause::RuleCreationModificationFailure, |r| {
        // What it could have had, and what it took before it is refused.
        r.create_pdrs.push(smf::uplink(3, smf::choose(None)));
        let flow_description = Some("nonsense".to_owned());
        r.create_pdrs[1].pdi.sdf_filters.push(SdfFilter { flow_description, ..SdfFilter::default() });
    }),
];

#[test]
fn a_refused_establishment_leaves_the_session_of_its_name_untouched() {
    let (mut lab, session) = lab();
    let before = (lab.desired(), lab.saved.clone(), lab.node.tunnels(), lab.node.addresses(), lab.told.len());
    for (cause, change) in REFUSED {
        let mut request = old();
        change(&mut request);
        assert_eq!(establish(&mut lab, request), *cause);
        let now =
            (lab.desired(), lab.saved.clone(), lab.node.tunnels(), lab.node.addresses(), lab.told.len());
        assert_eq!(now, before);
    }
    assert_eq!(lab.modify(session, path_switch(6)).cause, Cause::RequestAccepted);
}

#[test]
fn the_new_one_may_have_all_that_the_old_one_had() {
    let (mut lab, session) = lab();
    let before = (lab.node.tunnels(), lab.node.addresses());
    assert_eq!(establish(&mut lab, old()), Cause::RequestAccepted, "{:?}", lab.notes);
    assert_eq!((lab.node.tunnels(), lab.node.addresses(), lab.node.sessions()), (before.0, before.1, 2));
    assert!(!lab.in_force.contains_key(&session) && !lab.saved.contains_key(&session));
    assert_eq!((lab.in_force.clone(), lab.saved.len()), (lab.desired(), 2));
    // And all of it is free when that one goes.
    let new = *lab.in_force.keys().max().unwrap();
    lab.delete(new);
    assert_eq!((lab.node.tunnels(), lab.node.addresses(), lab.node.sessions()), (1, 0, 1));
}

#[test]
fn an_establishment_the_data_plane_refuses_gives_the_old_session_back() {
    let (mut lab, session) = lab();
    lab.traffic(session, (100, 200), true);
    let before = (lab.in_force[&session].rules.clone(), lab.node.tunnels(), lab.node.addresses());
    lab.obedience = Obedience::RefusesAfter(session);
    let mut other = old();
    other.create_pdrs.push(smf::uplink(3, smf::choose(None)));
    assert_eq!(establish(&mut lab, other), Cause::SystemFailure);
    lab.obedience = Obedience::Obeys;
    let now = (lab.in_force[&session].rules.clone(), lab.node.tunnels(), lab.node.addresses());
    assert_eq!(now, before);
    assert_eq!((lab.in_force.clone(), lab.node.sessions()), (lab.desired(), 2));
    assert!(lab.saved.contains_key(&session));
    // Its name leads to it, and nothing it has used is lost.
    assert_eq!(lab.modify(session, path_switch(7)).cause, Cause::RequestAccepted);
    lab.traffic(session, (10, 20), true);
    let mut bill = Bill::default();
    bill.add(&lab.delete(session).usage_reports);
    assert_eq!(bill.sums()[&UrrId(1)], (110, 220));
    assert_eq!((lab.node.tunnels(), lab.node.addresses()), (1, 0));
}

#[test]
fn what_comes_for_the_old_one_meanwhile_waits() {
    for obeys in [true, false] {
        let (mut lab, session) = lab();
        lab.obedience = Obedience::Waits;
        lab.tell(SMF, &Message::session(0, 900, old()));
        lab.tell(SMF, &Message::session(session.0, 901, path_switch(8)));
        assert!(lab.is_silent());
        lab.obedience = if obeys { Obedience::Obeys } else { Obedience::RefusesAfter(session) };
        lab.obey();
        let Body::SessionEstablishmentResponse(first) = lab.answer(900).body else { panic!() };
        let Body::SessionModificationResponse(second) = lab.answer(901).body else { panic!() };
        let expected = match obeys {
            true => (Cause::RequestAccepted, Cause::SessionContextNotFound),
            false => (Cause::SystemFailure, Cause::RequestAccepted),
        };
        assert_eq!((first.cause, second.cause), expected);
        assert_eq!((lab.in_force.clone(), lab.node.sessions()), (lab.desired(), 2));
    }
}

/// It is looked at before anything is done to the one that is under way.
#[test]
fn a_bad_one_leaves_the_one_that_is_under_way() {
    for (cause, change) in REFUSED {
        let (mut lab, session) = lab();
        lab.obedience = Obedience::Waits;
        lab.tell(SMF, &Message::session(0, 900, old()));
        let before = (lab.desired(), lab.node.tunnels(), lab.node.addresses(), lab.node.sessions());
        let mut bad = old();
        change(&mut bad);
        lab.tell(SMF, &Message::session(0, 901, bad));
        let Body::SessionEstablishmentResponse(response) = lab.answer(901).body else { panic!() };
        assert_eq!(response.cause, *cause);
        let now = (lab.desired(), lab.node.tunnels(), lab.node.addresses(), lab.node.sessions());
        assert_eq!(now, before);
        lab.obedience = Obedience::Obeys;
        lab.obey();
        let Body::SessionEstablishmentResponse(response) = lab.answer(900).body else { panic!() };
        assert_eq!(response.cause, Cause::RequestAccepted);
        assert!(!lab.saved.contains_key(&session));
        assert_eq!((lab.in_force.clone(), lab.node.sessions()), (lab.desired(), 2));
    }
}

/// All that the first two have, the third may have.
#[test]
fn a_good_one_ends_the_one_that_is_under_way_and_takes_its_place() {
    let (mut lab, session) = lab();
    let before = (lab.node.tunnels(), lab.node.addresses());
    lab.obedience = Obedience::Waits;
    for sequence in [900, 901] {
        lab.tell(SMF, &Message::session(0, sequence, old()));
    }
    lab.obedience = Obedience::Obeys;
    lab.obey();
    let causes = [900, 901].map(|sequence| match lab.answer(sequence).body {
        Body::SessionEstablishmentResponse(response) => response.cause,
        other => panic!("{other:?}"),
    });
    assert_eq!(causes, [Cause::SystemFailure, Cause::RequestAccepted]);
    assert!(!lab.saved.contains_key(&session));
    assert_eq!((lab.node.tunnels(), lab.node.addresses()), before);
    assert_eq!((lab.in_force.clone(), lab.node.sessions()), (lab.desired(), 2));
    let new = *lab.in_force.keys().max().unwrap();
    lab.delete(new);
    assert_eq!((lab.node.tunnels(), lab.node.addresses(), lab.node.sessions()), (1, 0, 1));
}

#[test]
fn a_data_plane_that_is_lost_meanwhile_gives_it_back_too() {
    let (mut lab, session) = lab();
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(0, 900, old()));
    lab.obedience = Obedience::Obeys;
    lab.restart_plane();
    let Body::SessionEstablishmentResponse(response) = lab.answer(900).body else { panic!() };
    assert_eq!(response.cause, Cause::SystemFailure);
    assert!(lab.in_force.contains_key(&session));
    assert_eq!((lab.in_force.clone(), lab.node.sessions()), (lab.desired(), 2));
}

/// Both are gone when their owner is: the one that waits to go has no name any more.
#[test]
fn an_owner_that_restarts_meanwhile_leaves_neither() {
    let (mut lab, _) = lab();
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(0, 900, old()));
    lab.tell(SMF, &Message::node(901, setup(SMF, 2)));
    lab.obedience = Obedience::Obeys;
    lab.obey();
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()), (0, 0, 0));
    assert!(lab.in_force.is_empty() && lab.saved.is_empty());
    lab.pass(Duration::from_secs(1));
}

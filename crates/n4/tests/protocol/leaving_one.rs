//! Taking leave of one control plane, and not of the others.

use crate::common::billing::{metered, urr};
use crate::common::personas::established;
use crate::common::smf::establishment;
use crate::common::{Lab, OTHER, SMF, at, config};
use crate::leaving::{release, release_us, set_up, told};
use n4::Config;
use pfcp::*;
use std::time::Duration;

/// Whoever waits for the release, or takes the order back, is told what it has cost.
#[test]
fn who_did_not_release_us_is_known_until_the_next_order() {
    let mut lab = Lab::associated();
    lab.associate(OTHER, 1);
    lab.establish(metered(77, vec![urr(1, 0)]));
    established(&mut lab, establishment(78));
    let known = |lab: &Lab| lab.node.unreleased().into_iter().collect::<Vec<_>>();
    release(&mut lab, 50).unwrap();
    lab.pass(Duration::from_secs(50));
    assert_eq!(told(&mut lab).len(), 1);
    lab.pass(Duration::from_secs(1));
    assert!(lab.node.leaving().is_empty() && lab.associations.is_empty());
    let both = vec![("10.40.0.8".to_owned(), 0), ("10.40.0.9".to_owned(), 2)];
    assert_eq!(known(&lab), both);
    let outputs = lab.node.stay_with(&OTHER.to_string(), lab.time());
    lab.carry_out_all(outputs);
    assert_eq!(known(&lab), both[1..]);
    // It is asked again, and obeys.
    let outputs = lab.node.stay(lab.time());
    lab.carry_out_all(outputs);
    assert!(known(&lab).is_empty());
    lab.associate(SMF, 1);
    release_one(&mut lab, SMF, 50);
    release_us(&mut lab);
    lab.pass(Duration::from_secs(60));
    assert!(known(&lab).is_empty());
    // Released alone it may be back before anybody looks.
    lab.associate(SMF, 1);
    release_one(&mut lab, SMF, 1);
    lab.pass(Duration::from_secs(2));
    assert_eq!(set_up(&mut lab, SMF, 1), Cause::RequestAccepted);
    assert_eq!(known(&lab), [("10.40.0.9".to_owned(), 0)]);
}

fn release_one(lab: &mut Lab, peer: std::net::Ipv4Addr, within_s: u64) {
    let outputs = lab.node.leave_one(&peer.to_string(), Duration::from_secs(within_s), lab.time());
    lab.sent.clear();
    lab.carry_out_all(outputs);
}

fn establishes(lab: &mut Lab, peer: std::net::Ipv4Addr, number: u8) -> Cause {
    let mut request = establishment(number.into());
    (request.node_id, request.cp_f_seid) = (NodeId::Ipv4(peer), FSeid::new(number.into(), peer.into()));
    request.create_pdrs.truncate(1);
    match lab.ask(peer, &Message::session(0, 7_000 + u32::from(number), request)) {
        Body::SessionEstablishmentResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_control_plane_is_asked_to_release_us_and_the_others_are_left_alone() {
    let mut lab = Lab::associated();
    lab.associate(OTHER, 1);
    assert_eq!(establishes(&mut lab, SMF, 1), Cause::RequestAccepted);
    assert_eq!(establishes(&mut lab, OTHER, 2), Cause::RequestAccepted);
    release_one(&mut lab, SMF, 100);
    let asked: Vec<_> = lab.sent.iter().map(|(to, sent)| (*to, sent.body.message_type())).collect();
    assert_eq!(asked, [(at(SMF), 7)]);
    assert_eq!(lab.node.leaving(), ["10.40.0.9"]);
    assert_eq!(establishes(&mut lab, SMF, 3), Cause::RequestRejected);
    assert_eq!(establishes(&mut lab, OTHER, 4), Cause::RequestAccepted);
    // Who comes back before the time is over would be asked in vain.
    assert_eq!(set_up(&mut lab, SMF, 1), Cause::NoResourcesAvailable);
    let third = std::net::Ipv4Addr::new(10, 40, 0, 7);
    assert_eq!(set_up(&mut lab, third, 1), Cause::RequestAccepted);
    // The order outlives a restart.
    lab.restart();
    lab.pass(Duration::from_secs(99));
    assert_eq!((lab.node.sessions(), lab.associations.len()), (3, 3));
    lab.pass(Duration::from_secs(1));
    assert_eq!((lab.node.sessions(), lab.associations.len()), (2, 2));
    assert!(lab.node.leaving().is_empty());
    assert_eq!(set_up(&mut lab, SMF, 1), Cause::RequestAccepted, "it may come back");
}

#[test]
fn the_order_to_leave_one_is_taken_back() {
    let mut lab = Lab::associated();
    lab.associate(OTHER, 1);
    for peer in [SMF, OTHER] {
        release_one(&mut lab, peer, 100);
    }
    let now = lab.time();
    let outputs = lab.node.stay_with(&SMF.to_string(), now);
    lab.carry_out_all(outputs);
    assert_eq!(lab.node.leaving(), ["10.40.0.8"]);
    assert_eq!(establishes(&mut lab, SMF, 1), Cause::RequestAccepted);
    lab.restart();
    lab.pass(Duration::from_secs(101));
    assert!(lab.associations.keys().eq(["10.40.0.9"]));
}

#[test]
fn who_is_not_associated_is_not_released() {
    let mut lab = Lab::associated();
    release_one(&mut lab, OTHER, 100);
    assert!(lab.sent.is_empty() && lab.node.leaving().is_empty());
}

/// Nobody is left to ask, nor to tell.
#[test]
fn one_that_is_silent_is_cleared_away_at_once() {
    let mut lab = Lab::associated();
    lab.establish(metered(77, vec![urr(1, 0)]));
    lab.goes_silent();
    lab.pass(Duration::from_secs(30));
    release_one(&mut lab, SMF, 0);
    lab.pass(Duration::ZERO);
    assert_eq!((lab.node.sessions(), lab.associations.len(), lab.in_force.len()), (0, 0, 0));
    lab.pass(Duration::from_secs(60));
    assert!(lab.reports().is_empty());
}

/// Or it would be back at once.
#[test]
fn one_that_was_released_is_not_asked_to_associate_again() {
    let mut lab = Lab::new(Config { associate: vec![at(SMF)], ..config() });
    lab.associate(SMF, 1);
    release_one(&mut lab, SMF, 50);
    release_us(&mut lab);
    let is_asked = |lab: &mut Lab| {
        lab.sent.clear();
        lab.pass(Duration::from_secs(60));
        lab.sent.iter().any(|(_, sent)| matches!(sent.body, Body::AssociationSetupRequest(_)))
    };
    assert!(!is_asked(&mut lab));
    let now = lab.time();
    let outputs = lab.node.stay(now);
    lab.carry_out_all(outputs);
    assert!(is_asked(&mut lab));
    // Nor is it held against one that comes by itself, and goes by itself.
    lab.associate(SMF, 1);
    lab.pass(Duration::from_secs(10));
    release_one(&mut lab, SMF, 0);
    lab.pass(Duration::ZERO);
    assert!(!is_asked(&mut lab));
    lab.associate(SMF, 1);
    release_us(&mut lab);
    assert!(is_asked(&mut lab));
}

//! Whose a Node ID is, and who may make sessions in its name.

use crate::common::smf::{establishment, setup};
use crate::common::{Lab, OTHER, SMF, at, config};
use crate::peers::with_session;
use pfcp::*;
use std::time::Duration;

pub(crate) fn named(name: &str, stamp: u32) -> AssociationSetupRequest {
    AssociationSetupRequest { node_id: NodeId::Fqdn(name.to_owned()), ..setup(SMF, stamp) }
}

pub(crate) fn set_up(lab: &mut Lab, from: std::net::Ipv4Addr, request: AssociationSetupRequest) -> Cause {
    lab.sent.clear();
    match lab.ask(from, &Message::node(20, request)) {
        Body::AssociationSetupResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_else_takes_the_place_of_a_control_plane_that_answers() {
    let mut lab = with_session();
    let before = lab.associations.clone();
    for stamp in [1, 2] {
        assert_eq!(set_up(&mut lab, OTHER, setup(SMF, stamp)), Cause::RequestRejected);
        assert_eq!((lab.in_force.len(), lab.saved.len()), (1, 1));
        assert_eq!(lab.associations, before);
    }
    // Its own address may have changed, once it answers no longer there.
    lab.goes_silent();
    lab.pass(Duration::from_secs(60));
    assert_eq!(set_up(&mut lab, OTHER, setup(SMF, 2)), Cause::RequestAccepted);
    assert!(lab.in_force.is_empty());
    // And whoever has the address has the name.
    assert_eq!(set_up(&mut lab, SMF, setup(SMF, 3)), Cause::RequestAccepted);
    assert_eq!(lab.associations[&SMF.to_string()].address, at(SMF));
}

/// A host name tells nothing of addresses: it is that of whoever answers.
#[test]
fn nobody_else_takes_a_host_name_that_answers() {
    let mut lab = Lab::new(config());
    lab.answers_heartbeats = false;
    assert_eq!(set_up(&mut lab, SMF, named("smf.lab", 1)), Cause::RequestAccepted);
    let node_id = NodeId::Fqdn("smf.lab".to_owned());
    lab.establish(SessionEstablishmentRequest { node_id, ..establishment(77) });
    assert_eq!(set_up(&mut lab, OTHER, named("smf.lab", 1)), Cause::RequestRejected);
    assert_eq!((lab.in_force.len(), lab.associations["smf.lab"].address), (1, at(SMF)));
    // It may come back elsewhere at once, as a restart tells that it is gone there: a container gets another address.
    assert_eq!(set_up(&mut lab, OTHER, named("SMF.Lab", 2)), Cause::RequestAccepted);
    assert_eq!((lab.in_force.len(), lab.associations["smf.lab"].address), (0, at(OTHER)));
    // Or once it answers no longer there.
    lab.goes_silent();
    lab.pass(Duration::from_secs(60));
    assert_eq!(set_up(&mut lab, SMF, named("smf.lab", 2)), Cause::RequestAccepted);
}

#[test]
fn a_place_of_ones_own_set_may_be_taken() {
    let alternatives = vec![CpIpAddress::new(OTHER.into())];
    for request in [setup(SMF, 1), named("smf.lab", 1)] {
        let mut lab = Lab::new(config());
        let first = AssociationSetupRequest { alternatives: alternatives.clone(), ..request.clone() };
        assert_eq!(set_up(&mut lab, SMF, first), Cause::RequestAccepted);
        assert_eq!(set_up(&mut lab, OTHER, request), Cause::RequestAccepted);
    }
}

fn elsewhere(node_id: NodeId, cp_f_seid: FSeid) -> SessionEstablishmentRequest {
    SessionEstablishmentRequest { node_id, cp_f_seid, ..establishment(77) }
}

pub(crate) fn cause_of(body: &Body) -> Cause {
    match body {
        Body::SessionEstablishmentResponse(response) => response.cause,
        Body::SessionModificationResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

/// TS 29.244 5.8.1: there is one association, whatever addresses it has.
#[test]
fn a_control_plane_with_a_host_name_makes_sessions_from_another_of_its_addresses() {
    let mut lab = Lab::new(config());
    assert_eq!(set_up(&mut lab, SMF, named("smf.lab", 1)), Cause::RequestAccepted);
    let name = NodeId::Fqdn("smf.lab".to_owned());
    let first = Message::session(0, 2, elsewhere(name.clone(), FSeid::new(77, OTHER.into())));
    let Body::SessionEstablishmentResponse(response) = lab.ask(OTHER, &first) else { panic!() };
    assert_eq!(response.cause, Cause::RequestAccepted);
    let session = rules::Seid(response.up_f_seid.unwrap().seid);
    assert_eq!(lab.saved[&session].owner, "smf.lab");
    // Asked again it is answered the same.
    let Body::SessionEstablishmentResponse(again) = lab.ask(OTHER, &first) else { panic!() };
    assert_eq!(again, response);
    let change = Message::session(session.0, 3, crate::common::smf::path_switch(9));
    assert_eq!(cause_of(&lab.ask(OTHER, &change)), Cause::RequestAccepted);
    // It is of its association, and gone with it.
    assert_eq!(set_up(&mut lab, SMF, named("smf.lab", 2)), Cause::RequestAccepted);
    assert_eq!(lab.node.sessions(), 0);
}

#[test]
fn nobody_makes_sessions_in_the_name_of_others() {
    let mut lab = Lab::associated();
    assert_eq!(set_up(&mut lab, SMF, named("smf.lab", 1)), Cause::RequestAccepted);
    let name = |name: &str| NodeId::Fqdn(name.to_owned());
    let refused = [
        // One that is an address speaks from there.
        elsewhere(NodeId::Ipv4(SMF), FSeid::new(77, OTHER.into())),
        // The name of a session where the sender is not.
        elsewhere(name("smf.lab"), FSeid::new(77, SMF.into())),
        elsewhere(name("other.lab"), FSeid::new(77, OTHER.into())),
    ];
    for (sequence, request) in (30..).zip(refused) {
        let answer = lab.ask(OTHER, &Message::session(0, sequence, request));
        assert_eq!(cause_of(&answer), Cause::NoEstablishedPfcpAssociation);
    }
    assert_eq!(lab.node.sessions(), 0);
}

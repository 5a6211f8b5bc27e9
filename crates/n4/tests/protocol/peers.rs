//! Associations and heartbeats, from either side.

use crate::common::smf::{establishment, setup};
use crate::common::{Lab, OTHER, SMF, STAMP, US, at, config};
use crate::peers_named::{cause_of, named, set_up};
use pfcp::*;
use std::time::Duration;

fn heartbeat(stamp: u32) -> HeartbeatRequest {
    HeartbeatRequest { recovery_time_stamp: stamp, carried: vec![] }
}

fn heartbeat_answer(stamp: u32) -> HeartbeatResponse {
    HeartbeatResponse { recovery_time_stamp: stamp, carried: vec![] }
}

pub(crate) fn with_session() -> Lab {
    let mut lab = Lab::associated();
    lab.answers_heartbeats = false;
    let answer = lab.ask(SMF, &Message::session(0, 1, establishment(77)));
    assert!(matches!(answer, Body::SessionEstablishmentResponse(response) if response.cause.is_accepted()));
    lab
}

fn asks(lab: &Lab) -> Option<Message> {
    lab.sent.first().map(|(_, message)| message.clone())
}

/// The number of the next request of ours.
fn next_request(lab: &mut Lab) -> u32 {
    lab.sent.clear();
    while lab.is_silent() {
        lab.pass(Duration::from_secs(1));
    }
    lab.sent.remove(0).1.sequence
}

#[test]
fn anyone_is_told_that_we_are_there() {
    let mut lab = Lab::new(config());
    assert_eq!(lab.ask(OTHER, &Message::node(7, heartbeat(1))), heartbeat_answer(STAMP).into());
    assert!(lab.associations.is_empty());
}

#[test]
fn a_control_plane_associates_and_hears_what_we_can_do() {
    let mut lab = Lab::new(config());
    let Body::AssociationSetupResponse(response) = lab.ask(SMF, &Message::node(1, setup(SMF, 5))) else {
        panic!("an answer")
    };
    assert_eq!((response.cause, response.node_id), (Cause::RequestAccepted, NodeId::Ipv4(US)));
    assert_eq!(response.recovery_time_stamp, STAMP);
    let record = &lab.associations[&SMF.to_string()];
    assert_eq!((record.address, record.recovery_time_stamp), (at(SMF), 5));
}

#[test]
fn without_association_there_are_no_sessions() {
    let mut lab = Lab::new(config());
    lab.tell(SMF, &Message::session(0, 1, establishment(77)));
    let answer = lab.answer(1);
    assert_eq!(answer.seid, Some(77));
    let Body::SessionEstablishmentResponse(response) = answer.body else { panic!("{answer:?}") };
    assert_eq!(response.cause, Cause::NoEstablishedPfcpAssociation);
    let release = AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] };
    let Body::AssociationReleaseResponse(response) = lab.ask(SMF, &Message::node(2, release)) else {
        panic!("an answer")
    };
    assert_eq!(response.cause, Cause::NoEstablishedPfcpAssociation);
}

#[test]
fn peers_have_a_limit() {
    let mut config = config();
    config.limits.peers = 1;
    let mut lab = Lab::new(config);
    lab.associate(SMF, 1);
    let Body::AssociationSetupResponse(response) = lab.ask(OTHER, &Message::node(1, setup(OTHER, 1))) else {
        panic!("an answer")
    };
    assert_eq!(response.cause, Cause::NoResourcesAvailable);
    lab.associate(SMF, 2);
}

#[test]
fn we_associate_by_ourselves_and_never_tire() {
    let mut config = config();
    config.associate = vec![at(SMF)];
    let mut lab = Lab::new(config.clone());
    lab.pass(Duration::ZERO);
    let first = asks(&lab).expect("a request");
    let Body::AssociationSetupRequest(request) = &first.body else { panic!("{first:?}") };
    assert_eq!((&request.node_id, request.recovery_time_stamp), (&NodeId::Ipv4(US), STAMP));
    lab.pass(Duration::from_secs(3600));
    let round = config.t1 * config.n1 + config.heartbeat_interval;
    let rounds = 3600 / round.as_secs() as usize;
    assert!(lab.sent.len() >= rounds * config.n1 as usize);
    assert!(lab.sent.len() <= (rounds + 1) * config.n1 as usize);

    let last = next_request(&mut lab);
    let node_id = NodeId::Fqdn("smf.lab".to_owned());
    let answer = AssociationSetupResponse::new(node_id, Cause::RequestAccepted, 5);
    // Only the one who was asked can answer.
    lab.tell(OTHER, &Message::node(last, answer.clone()));
    assert!(lab.associations.is_empty());
    lab.tell(SMF, &Message::node(last, answer));
    assert_eq!(lab.associations["smf.lab"].recovery_time_stamp, 5);
    lab.pass(config.heartbeat_interval);
    assert!(matches!(asks(&lab).unwrap().body, Body::HeartbeatRequest(_)));
}

#[test]
fn a_refused_association_is_asked_for_again() {
    let mut config = config();
    config.associate = vec![at(SMF)];
    let mut lab = Lab::new(config.clone());
    lab.pass(Duration::ZERO);
    let sequence = lab.sent.remove(0).1.sequence;
    let refused = [0x20, 6, 0, 18, 0, 0, sequence as u8, 0, 0, 60, 0, 5, 0, 10, 40, 0, 9, 0, 19, 0, 1, 64];
    lab.receive(at(SMF), &refused);
    assert!(lab.associations.is_empty());
    lab.pass(config.heartbeat_interval);
    assert!(matches!(asks(&lab).unwrap().body, Body::AssociationSetupRequest(_)));
}

#[test]
fn a_silent_peer_keeps_its_sessions_and_is_asked_on() {
    let mut lab = with_session();
    lab.goes_silent();
    lab.pass(Duration::from_secs(60));
    assert!(lab.notes.iter().any(|note| note.contains("is silent")));
    assert_eq!(lab.in_force.len(), 1);
    let last = next_request(&mut lab);
    lab.tell(SMF, &Message::node(last, heartbeat_answer(1)));
    assert!(lab.notes.iter().any(|note| note.contains("answers again")));
    lab.pass(config().heartbeat_interval);
    assert!(matches!(asks(&lab).unwrap().body, Body::HeartbeatRequest(_)));
}

#[test]
fn a_peer_that_restarts_loses_its_sessions() {
    let restarts: [fn(&mut Lab); 3] = [
        |lab| lab.tells_of_restart(SMF, 0, 2),
        |lab| lab.tell(SMF, &Message::node(0, setup(SMF, 2))),
        |lab| {
            let asked = next_request(lab);
            lab.tell(SMF, &Message::node(asked, heartbeat_answer(2)));
        },
    ];
    for restart in restarts {
        let mut lab = with_session();
        restart(&mut lab);
        lab.pass(Duration::from_secs(5));
        assert!(lab.in_force.is_empty() && lab.saved.is_empty());
        assert_eq!(lab.node.tunnels(), 0);
        assert_eq!(lab.associations[&SMF.to_string()].recovery_time_stamp, 2);
        // It counts its requests anew: an old answer is not for it.
        lab.sent.clear();
        let answer = lab.ask(SMF, &Message::session(0, 1, establishment(77)));
        assert!(matches!(answer, Body::SessionEstablishmentResponse(r) if r.cause.is_accepted()));
        assert_eq!(lab.in_force.len(), 1);
    }
}

/// It is told how many are lost, where some are.
#[test]
fn a_peer_that_restarts_without_sessions_has_lost_nothing() {
    for (mut lab, expected) in [(with_session(), 1), (Lab::associated(), 0)] {
        lab.tell(SMF, &Message::node(9, setup(SMF, 2)));
        lab.pass(Duration::from_secs(5));
        assert_eq!(lab.associations[&SMF.to_string()].recovery_time_stamp, 2);
        assert_eq!(lab.notes.iter().filter(|note| note.contains("has lost")).count(), expected);
    }
}

/// Heartbeats name nobody: where two control planes share an address, neither's time stamp is the other's.
#[test]
fn a_neighbour_at_the_same_address_ends_no_sessions() {
    let heard: [fn(&mut Lab); 2] = [
        |lab| lab.tell(SMF, &Message::node(9, heartbeat(200))),
        |lab| {
            let asked = next_request(lab);
            lab.tell(SMF, &Message::node(asked, heartbeat_answer(200)));
        },
    ];
    for hear in heard {
        let mut lab = Lab::new(config());
        assert_eq!(set_up(&mut lab, SMF, named("smf-a.lab", 100)), Cause::RequestAccepted);
        assert_eq!(set_up(&mut lab, SMF, named("smf-b.lab", 200)), Cause::RequestAccepted);
        lab.establish(SessionEstablishmentRequest {
            node_id: NodeId::Fqdn("smf-a.lab".to_owned()),
            ..establishment(77)
        });
        hear(&mut lab);
        lab.pass(Duration::from_secs(10));
        assert_eq!((lab.in_force.len(), lab.associations["smf-a.lab"].recovery_time_stamp), (1, 100));
        // Whose sessions are gone says so when it associates.
        assert_eq!(set_up(&mut lab, SMF, named("smf-a.lab", 300)), Cause::RequestAccepted);
        assert_eq!(lab.in_force.len(), 0);
    }
}

#[test]
fn an_old_stamp_or_the_same_one_changes_nothing() {
    let mut lab = with_session();
    lab.tell(SMF, &Message::node(9, heartbeat(0)));
    lab.tell(SMF, &Message::node(10, setup(SMF, 1)));
    lab.tell(OTHER, &Message::node(11, heartbeat(9)));
    lab.pass(Duration::from_secs(10));
    assert_eq!(lab.in_force.len(), 1);
    assert_eq!(lab.associations[&SMF.to_string()].recovery_time_stamp, 1);
}

#[test]
fn a_release_ends_the_association_and_its_sessions() {
    for node_id in [NodeId::Ipv4(SMF), NodeId::Ipv4([0, 0, 0, 0].into())] {
        let mut lab = with_session();
        let request = AssociationReleaseRequest { node_id, carried: vec![] };
        let Body::AssociationReleaseResponse(response) = lab.ask(SMF, &Message::node(2, request)) else {
            panic!("an answer")
        };
        assert_eq!((response.cause, response.node_id), (Cause::RequestAccepted, NodeId::Ipv4(US)));
        assert!(lab.in_force.is_empty() && lab.saved.is_empty() && lab.associations.is_empty());
        lab.pass(Duration::from_secs(60));
        assert!(lab.is_silent());
    }
}

#[test]
fn an_update_is_answered_to_associates_only() {
    let update = AssociationUpdateRequest::new;
    let mut lab = Lab::associated();
    for (peer, cause) in [(SMF, Cause::RequestAccepted), (OTHER, Cause::NoEstablishedPfcpAssociation)] {
        let Body::AssociationUpdateResponse(response) =
            lab.ask(peer, &Message::node(1, update(NodeId::Ipv4(SMF))))
        else {
            panic!("an answer")
        };
        assert_eq!(response.cause, cause);
    }
}

#[test]
fn a_restarted_node_knows_its_peers() {
    let mut lab = with_session();
    lab.restart();
    lab.pass(Duration::ZERO);
    assert!(matches!(asks(&lab).unwrap().body, Body::HeartbeatRequest(_)));
    assert_eq!(lab.desired(), lab.in_force);
}

/// TS 29.244 6.2.6.2: all of them, or those of the control planes that are named.
#[test]
fn sessions_outlive_the_restart_of_a_control_plane_that_retains_them() {
    let entity = |address: std::net::Ipv4Addr| {
        let address = address.octets();
        [&[0, 185, 0, 5, 2][..], &address].concat()
    };
    // One of a set need not change its time stamp.
    let cases = [(vec![], 2, 1), (entity(SMF), 2, 1), (entity(OTHER), 2, 0)];
    let cases = cases.into_iter().chain([(vec![], 1, 1), (entity(SMF), 1, 1), (entity(OTHER), 1, 0)]);
    for (value, stamp, sessions) in cases {
        let mut lab = with_session();
        // Its heartbeat may come first.
        lab.tells_of_restart(SMF, 19, stamp);
        lab.pass(Duration::from_secs(4));
        assert_eq!(lab.in_force.len(), 1);
        let carried = vec![RawIe { ie: ie::PFCP_SESSION_RETENTION_INFORMATION, value }];
        let request = AssociationSetupRequest { carried, ..setup(SMF, stamp) };
        lab.sent.clear();
        let Body::AssociationSetupResponse(response) = lab.ask(SMF, &Message::node(20, request)) else {
            panic!("an answer")
        };
        assert_eq!((lab.in_force.len(), lab.saved.len()), (sessions, sessions));
        // PSREI: it is told whether any of them are there (8.2.134).
        assert_eq!(response.cause, Cause::RequestAccepted);
        let flags: Vec<_> = response.carried.iter().filter(|other| other.ie == ie::PFCPASRSP_FLAGS).collect();
        assert!(flags.iter().map(|flags| &flags.value).eq(vec![&vec![1]; sessions]), "{flags:?}");
        lab.pass(Duration::from_secs(10));
        assert_eq!(lab.in_force.len(), sessions, "nothing is waited for any more");
    }
    let mut lab = with_session();
    let carried = vec![RawIe { ie: ie::PFCP_SESSION_RETENTION_INFORMATION, value: vec![0, 185, 0, 9, 2] }];
    let request = AssociationSetupRequest { carried, ..setup(SMF, 2) };
    assert_eq!(set_up(&mut lab, SMF, request), Cause::MandatoryIeIncorrect);
    assert_eq!(lab.in_force.len(), 1);
}

/// Some control planes make sessions without associating anew.
#[test]
fn whoever_restarted_and_makes_new_sessions_has_lost_the_old_ones() {
    let mut lab = with_session();
    let old = *lab.in_force.keys().next().unwrap();
    lab.tells_of_restart(SMF, 9, 2);
    lab.sent.clear();
    let request = Message::session(0, 1, establishment(78));
    assert_eq!(cause_of(&lab.ask(SMF, &request)), Cause::RequestAccepted);
    assert!(lab.in_force.len() == 1 && !lab.in_force.contains_key(&old));
    lab.pass(Duration::from_secs(10));
    lab.sent.clear();
    assert_eq!(cause_of(&lab.ask(SMF, &request)), Cause::RequestAccepted);
    assert_eq!(lab.in_force.len(), 1, "it was asked for once");
}

/// Some control planes send no heartbeats, and would never hear of it.
#[test]
fn after_a_crash_those_who_were_associated_are_told_and_asked_to_be_again() {
    let mut lab = with_session();
    lab.crash();
    lab.pass(Duration::ZERO);
    let first = asks(&lab).expect("a request");
    let Body::HeartbeatRequest(heartbeat) = &first.body else { panic!("{first:?}") };
    assert_eq!(heartbeat.recovery_time_stamp, STAMP + 1);
    let sequence = first.sequence;
    lab.tell(SMF, &Message::node(sequence, heartbeat_answer(1)));
    lab.sent.clear();
    lab.pass(config().heartbeat_interval);
    let Body::AssociationSetupRequest(request) = &asks(&lab).expect("a request").body else {
        panic!("{:?}", lab.sent)
    };
    assert_eq!(request.recovery_time_stamp, STAMP + 1);
    // One that is gone is not asked for ever.
    lab.pass(Duration::from_secs(600));
    lab.sent.clear();
    lab.pass(Duration::from_secs(3600));
    assert!(lab.sent.is_empty(), "{:?}", lab.sent);
}

#[test]
fn after_a_crash_one_that_comes_back_by_itself_is_not_asked_to() {
    let mut lab = with_session();
    lab.crash();
    lab.pass(Duration::ZERO);
    lab.associate(SMF, 1);
    lab.sent.clear();
    lab.pass(config().heartbeat_interval * 3);
    let is_setup = |message: &Message| matches!(message.body, Body::AssociationSetupRequest(_));
    assert!(!lab.sent.iter().any(|(_, message)| is_setup(message)), "{:?}", lab.sent);
}

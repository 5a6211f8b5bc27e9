//! A user plane that forgets (TS 23.007 19A).

use super::*;
use pfcp::{Cause, HeartbeatRequest, SessionEstablishmentResponse};

#[test]
fn sessions_outlive_silence_but_not_a_new_recovery_time_stamp() {
    let mut scene = Scene::ready(1);
    scene.pass(secs(13));
    assert_eq!(scene.events, [Event::Silent]);
    scene.sent.clear();
    scene.pass(secs(8));
    scene.accept_all();
    assert_eq!(scene.events, [Event::Silent, Event::Answering]);
    scene.recovery_time_stamp += 1;
    scene.pass(HEARTBEAT);
    scene.accept_all();
    assert_eq!(scene.events[2], Event::Restarted);
    assert!(matches!(scene.events[3..], [Event::Associated(_), Event::SessionUp(..), Event::Ready]));
}

#[test]
fn a_heartbeat_of_a_restarted_user_plane_brings_new_sessions_with_new_seids() {
    let mut scene = Scene::ready(1);
    let old = scene.smf.sessions.get(0).unwrap().seid;
    scene.recovery_time_stamp += 1;
    let recovery_time_stamp = scene.recovery_time_stamp;
    scene.say(&Message::node(77, HeartbeatRequest { recovery_time_stamp, carried: vec![] }));
    let kinds: Vec<u8> = scene.sent.iter().map(|message| message.body.message_type()).collect();
    assert_eq!(kinds, [5, 2]);
    scene.sent.pop();
    scene.accept_all();
    assert_eq!(scene.events.last(), Some(&Event::Ready));
    assert_ne!(scene.smf.sessions.get(0).unwrap().seid, old);
}

#[test]
fn a_setup_from_the_other_side_is_answered_and_a_restart_told_by_it_is_seen() {
    let mut scene = Scene::ready(1);
    let setup = |sequence, recovery_time_stamp| {
        let node_id = pfcp::NodeId::Ipv4(*UPF.ip());
        let request = pfcp::AssociationSetupRequest::new(node_id, recovery_time_stamp);
        Message::node(sequence, request)
    };
    scene.say(&setup(1, scene.recovery_time_stamp));
    let Body::AssociationSetupResponse(answer) = scene.one().body else { panic!("a response") };
    assert_eq!((answer.cause, answer.recovery_time_stamp), (Cause::RequestAccepted, BORN));
    assert_eq!((scene.smf.sessions_up(), &scene.events[..]), (1, &[][..]));
    scene.recovery_time_stamp += 1;
    scene.say(&setup(2, scene.recovery_time_stamp));
    scene.sent.retain(|message| message.body.message_type() != 6);
    scene.accept_all();
    assert_eq!((scene.events.first(), scene.events.last()), (Some(&Event::Restarted), Some(&Event::Ready)));
}

#[test]
fn a_lost_session_is_established_again() {
    let mut scene = Scene::of(1, FTeidMode::Choose);
    while let Some(request) = scene.sent.pop() {
        let lost = request.body.message_type() == 52 && !scene.events.contains(&Event::SessionLost(0));
        let answer = match lost {
            true => {
                Message::session(0, request.sequence, modification_response(Cause::SessionContextNotFound))
            }
            false => scene.accept(&request),
        };
        scene.say(&answer);
    }
    assert_eq!(scene.events.last(), Some(&Event::SessionLost(0)));
    scene.pass(RETRY);
    scene.accept_all();
    assert_eq!(scene.events.last(), Some(&Event::Ready));
    assert_eq!(failures(&scene), [""; 0]);
}

#[test]
fn an_association_the_user_plane_forgot_is_set_up_again() {
    let (mut scene, request) = Scene::establishing(FTeidMode::Choose);
    let refusal = SessionEstablishmentResponse {
        cause: Cause::NoEstablishedPfcpAssociation,
        up_f_seid: None,
        ..establishment_response(None)
    };
    scene.say(&Message::session(0, request.sequence, refusal));
    scene.accept_all();
    assert!(scene.events.contains(&Event::Restarted));
    assert_eq!(scene.events.last(), Some(&Event::Ready));
}

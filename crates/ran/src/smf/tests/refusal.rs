//! A user plane that refuses, errs or keeps silent.

use super::super::failure::Reason;
use super::*;
use pfcp::{Cause, FailedRuleId, SessionEstablishmentResponse, ie};

#[test]
fn a_refusal_is_told_by_name_and_tried_again() {
    let (mut scene, request) = Scene::establishing(FTeidMode::Choose);
    let refusal = SessionEstablishmentResponse {
        cause: Cause::RuleCreationModificationFailure,
        offending_ie: Some(ie::CREATE_QER),
        failed_rule_id: Some(FailedRuleId::Qer(1)),
        up_f_seid: None,
        ..establishment_response(None)
    };
    scene.say(&Message::session(establishment(&request).cp_f_seid.seid, request.sequence, refusal));
    let sentence = "session establishment of UE 10.60.0.1 failed: UPF 10.40.0.2:8805 refuses with cause 73 \
                    (rule creation modification failure), offending IE Create QER, failed rule QER 1";
    assert_eq!(failures(&scene), [sentence]);
    assert_eq!(scene.sent, []);
    scene.pass(RETRY);
    scene.accept_all();
    assert_eq!(scene.events.last(), Some(&Event::Ready));
}

#[test]
fn a_refused_association_is_told_and_tried_again() {
    let mut scene = Scene::of(1, FTeidMode::Choose);
    let request = scene.one();
    scene.say(&Message::node(request.sequence, setup_response(Cause::NoResourcesAvailable, 1)));
    assert!(failures(&scene)[0].starts_with("association setup of the SMF failed"), "{:?}", failures(&scene));
    scene.pass(RETRY);
    assert_eq!(scene.one().body.message_type(), 5);
}

#[test]
fn a_session_without_its_f_teid_is_deleted_before_the_next_try() {
    let (mut scene, request) = Scene::establishing(FTeidMode::Choose);
    let seid = establishment(&request).cp_f_seid.seid;
    scene.say(&Message::session(seid, request.sequence, establishment_response(None)));
    assert!(
        failures(&scene)[0].ends_with("accepts, but its answer lacks Created PDR"),
        "{:?}",
        failures(&scene)
    );
    scene.pass(RETRY);
    let deletion = scene.one();
    assert_eq!((deletion.body.message_type(), deletion.seid), (54, Some(0x5000)));
    let answer = scene.accept(&deletion);
    scene.say(&answer);
    assert_eq!(scene.sent[0].body.message_type(), 50);
}

#[test]
fn a_silent_user_plane_is_asked_t1_apart_until_the_wait_is_over() {
    let mut scene = Scene::of(1, FTeidMode::Choose);
    scene.pass(secs(29));
    assert_eq!((scene.sent.len(), scene.events.len()), (30, 0));
    let resent: Vec<u32> = scene.sent.iter().take(4).map(|message| message.sequence).collect();
    assert_eq!(resent, [1, 1, 1, 2]);
    scene.pass(secs(1));
    assert_eq!(scene.events, [Event::Unreachable(UPF)]);
    assert_eq!((scene.sent.len(), scene.smf.next_due()), (30, None));
}

#[test]
fn an_answer_about_another_session_is_no_answer() {
    let (mut scene, request) = Scene::establishing(FTeidMode::Choose);
    scene.say(&Message::session(0xbad, request.sequence, establishment_response(Some(1))));
    let Some(Event::Failed(failure)) = scene.events.last() else { panic!("a failure") };
    assert_eq!(failure.reason, Reason::Seid(Some(0xbad)));
}

#[test]
fn strangers_are_not_heard() {
    let mut scene = Scene::of(1, FTeidMode::Choose);
    let setup = scene.one();
    let answer = pfcp::encode(&scene.accept(&setup));
    scene.feed(Input::Datagram(SocketAddrV4::new(SMF, 8805), &answer));
    assert_eq!((&scene.sent[..], &scene.events[..]), (&[][..], &[][..]));
}

//! UEs that sleep, and what wakes them.

use super::*;
use pfcp::{ApplyAction, DownlinkDataReport, ReportType, SessionReportRequest};

fn action(message: &Message) -> Option<ApplyAction> {
    match &message.body {
        Body::SessionModificationRequest(request) => request.update_fars[0].apply_action,
        other => panic!("not a modification: {other:?}"),
    }
}

fn asleep() -> Scene {
    let mut scene = Scene::ready(2);
    scene.feed(Input::Sleep(1));
    let request = scene.one();
    assert_eq!(action(&request), Some(ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP)));
    let answer = scene.accept(&request);
    scene.say(&answer);
    assert_eq!(scene.events, [Event::Asleep(1)]);
    scene.events.clear();
    scene
}

#[test]
fn packets_wake_a_ue() {
    let mut scene = asleep();
    let seid = scene.smf.sessions.get(1).unwrap().seid;
    let report = SessionReportRequest {
        report_type: ReportType(ReportType::DLDR),
        downlink_data_report: Some(DownlinkDataReport { pdr_ids: vec![2], ..Default::default() }),
        ..SessionReportRequest::default()
    };
    scene.say(&Message::session(seid, 5, report));
    // First the answer, then what follows from it.
    let [answer, request] = &scene.sent[..] else { panic!("{:?}", scene.sent) };
    assert!(matches!(&answer.body, Body::SessionReportResponse(answer) if answer.cause.is_accepted()));
    assert_eq!(action(request), Some(ApplyAction::new(ApplyAction::FORW)));
    let request = scene.sent.pop().unwrap();
    let answer = scene.accept(&request);
    scene.say(&answer);
    assert_eq!(scene.events, [Event::Paged(1), Event::Awake(1)]);
}

#[test]
fn a_ue_wakes_when_told() {
    let mut scene = asleep();
    scene.feed(Input::Wake(1));
    let request = scene.one();
    assert_eq!(action(&request), Some(ApplyAction::new(ApplyAction::FORW)));
    let answer = scene.accept(&request);
    scene.say(&answer);
    assert_eq!(scene.events, [Event::Awake(1)]);
}

#[test]
fn a_refusal_leaves_the_session_up() {
    let mut scene = Scene::ready(1);
    scene.feed(Input::Sleep(0));
    let request = scene.one();
    let mut answer = scene.accept(&request);
    answer.body = modification_response(pfcp::Cause::ServiceNotSupported).into();
    scene.say(&answer);
    assert_eq!((failures(&scene).len(), scene.smf.sessions_up()), (1, 1));
    scene.feed(Input::Wake(0));
    assert_eq!(action(&scene.one()), Some(ApplyAction::new(ApplyAction::FORW)));
}

#[test]
fn a_ue_without_session_cannot_sleep() {
    let (mut scene, _) = Scene::establishing(FTeidMode::Choose);
    scene.feed(Input::Sleep(0));
    scene.feed(Input::Sleep(7));
    assert_eq!(scene.sent, []);
}

//! What comes twice.

use super::*;
use pfcp::{Cause, ReportType, SessionReportRequest, SessionReportResponse};

#[test]
fn the_same_answer_twice_does_nothing_twice() {
    let mut scene = Scene::of(1, FTeidMode::Choose);
    let mut sent = 0;
    while let Some(request) = scene.sent.pop() {
        sent += 1;
        let answer = scene.accept(&request);
        scene.say(&answer);
        let (asked, events) = (scene.sent.len(), scene.events.len());
        scene.say(&answer);
        assert_eq!((scene.sent.len(), scene.events.len()), (asked, events));
    }
    assert_eq!(sent, 3);
}

#[test]
fn the_same_request_twice_gets_the_same_answer() {
    let mut scene = Scene::ready(1);
    let session = scene.smf.sessions.get(0).unwrap();
    let (seid, remote) = (session.seid, session.remote.unwrap().seid);
    let report = SessionReportRequest { report_type: ReportType(ReportType::ERIR), ..Default::default() };
    for _ in 0..2 {
        scene.say(&Message::session(seid, 5, report.clone()));
        let accepted = SessionReportResponse::of(Cause::RequestAccepted);
        assert_eq!(scene.one(), Message::session(remote, 5, accepted));
    }
    assert_eq!(scene.events, [Event::ErrorIndicationReport(0)]);
    scene.say(&Message::session(seid + 1, 6, report));
    let unknown = SessionReportResponse::of(Cause::SessionContextNotFound);
    assert_eq!(scene.one(), Message::session(0, 6, unknown));
}

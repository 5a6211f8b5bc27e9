//! Error Indications reach the control plane whose session they hit.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::smf::{GNB, establishment, path_switch};
use common::{Lab, SMF, config};
use dplink::{Event, Notice};
use n4::Input;
use pfcp::{ApplyAction, Body, Cause, FTeid, Message, ReportType, SessionReportResponse};
use rules::Teid;

fn indication(teid: u32) -> Notice {
    Notice::Event(Event::ErrorIndication { teid: Teid(teid), peer: GNB.into() })
}

/// With one session that sends into the tunnel 5.
fn lab() -> Lab {
    let mut lab = Lab::associated();
    let Body::SessionEstablishmentResponse(response) =
        lab.ask(SMF, &Message::session(0, 1, establishment(77)))
    else {
        panic!("an answer")
    };
    lab.ask(SMF, &Message::session(response.up_f_seid.unwrap().seid, 2, path_switch(5)));
    lab
}

fn report(lab: &Lab) -> &Message {
    &lab.sent.first().expect("a report").1
}

#[test]
fn the_owner_hears_which_tunnel_is_gone() {
    let mut lab = lab();
    lab.handle(Input::DataPath(&indication(5)));
    assert_eq!(report(&lab).seid, Some(77));
    let Body::SessionReportRequest(request) = &report(&lab).body else { panic!("{:?}", lab.sent) };
    assert_eq!(request.report_type, ReportType(ReportType::ERIR));
    let gone = FTeid::Explicit { teid: 5, ipv4: Some(GNB), ipv6: None };
    assert_eq!(request.error_indication_report.as_ref().unwrap().remote_f_teids, [gone]);
}

#[test]
fn a_report_is_repeated_until_answered_and_no_longer() {
    let mut lab = lab();
    lab.handle(Input::DataPath(&indication(5)));
    lab.pass(config().t1);
    assert_eq!(lab.sent.len(), 2);
    assert_eq!(lab.sent[0], lab.sent[1]);
    let sequence = report(&lab).sequence;
    lab.sent.clear();
    answer(&mut lab, sequence, Cause::RequestAccepted);
    lab.pass(config().t1);
    assert!(lab.is_silent());
    assert_eq!(lab.in_force.len(), 1);
}

fn answer(lab: &mut Lab, sequence: u32, cause: Cause) {
    let seid = lab.in_force.keys().next().unwrap().0;
    let response = SessionReportResponse::of(cause);
    lab.tell(SMF, &Message::session(seid, sequence, response));
}

#[test]
fn a_storm_of_indications_is_one_report() {
    let mut lab = lab();
    (0..1_000).for_each(|_| lab.handle(Input::DataPath(&indication(5))));
    assert_eq!(lab.sent.len(), 1);
    assert_eq!(lab.node.counters().reports_held_back, 999);
}

/// As Open5GS was recorded doing: an eNB loses a context whose successor it gives the same TEID, within milliseconds.
#[test]
fn a_tunnel_given_anew_is_reported_anew() {
    let mut lab = lab();
    lab.handle(Input::DataPath(&indication(5)));
    let seid = lab.in_force.keys().next().unwrap().0;
    let mut idle = path_switch(5);
    idle.update_fars[0].apply_action = Some(ApplyAction::new(ApplyAction::BUFF));
    idle.update_fars[0].update_forwarding_parameters = None;
    lab.ask(SMF, &Message::session(seid, 3, idle));
    lab.ask(SMF, &Message::session(seid, 4, path_switch(5)));
    lab.handle(Input::DataPath(&indication(5)));
    lab.handle(Input::DataPath(&indication(5)));
    assert_eq!(lab.sent.len(), 2);
}

#[test]
fn tunnels_nobody_uses_are_not_reported() {
    let mut lab = lab();
    lab.handle(Input::DataPath(&indication(6)));
    let seid = lab.in_force.keys().next().unwrap().0;
    lab.ask(SMF, &Message::session(seid, 3, path_switch(7)));
    lab.handle(Input::DataPath(&indication(5)));
    assert!(lab.is_silent());
    lab.handle(Input::DataPath(&indication(7)));
    assert_eq!(lab.sent.len(), 1);
}

#[test]
fn a_session_its_owner_does_not_know_is_removed() {
    let mut lab = lab();
    lab.handle(Input::DataPath(&indication(5)));
    let sequence = report(&lab).sequence;
    lab.sent.clear();
    answer(&mut lab, sequence, Cause::SessionContextNotFound);
    assert!(lab.in_force.is_empty() && lab.saved.is_empty());
}

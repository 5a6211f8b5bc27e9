//! Error Indications reach the control plane whose session they hit, and reports whoever is to hear of it.

use crate::common::billing::{metered, total, urr};
use crate::common::smf::{GNB, establishment, path_switch};
use crate::common::{Lab, OTHER, SMF, at, config};
use dplink::{Event, Notice};
use n4::{Config, Input, Limits};
use pfcp::{
    ApplyAction, AssociationSetupRequest, Body, Cause, CpIpAddress, FSeid, FTeid, Message, NodeId,
    ReportType, SessionReportRequest, SessionReportResponse,
};
use rules::{Interface, Seid, Teid};
use std::net::Ipv4Addr;
use std::time::Duration;

fn indication(teid: u32) -> Notice {
    Notice::Event(Event::ErrorIndication { teid: Teid(teid), peer: GNB.into(), towards: None })
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

/// A host of the data network says that it is a base station.
#[test]
fn nobody_hears_of_a_tunnel_from_where_its_other_end_is_not() {
    let mut lab = lab();
    let from = |side| Event::ErrorIndication { teid: Teid(5), peer: GNB.into(), towards: Some(side) };
    lab.handle(Input::DataPath(&Notice::Event(from(Interface::Core))));
    assert_eq!(lab.sent.len(), 0, "{:?}", lab.sent);
    lab.handle(Input::DataPath(&Notice::Event(from(Interface::Access))));
    assert_eq!(report(&lab).seid, Some(77));
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

/// A session of which a first report says that 1,100 octets were used.
fn used() -> (Lab, Seid) {
    let mut rule = urr(1, 1 << 1);
    rule.volume_threshold = total(1_000);
    let mut lab = Lab::associated();
    let session = lab.establish(metered(77, vec![rule]));
    lab.traffic(session, (400, 700), false);
    (lab, session)
}

/// The one report on its way: to whom, its number, and what it says.
fn one(lab: &mut Lab) -> (Ipv4Addr, u32, SessionReportRequest) {
    let [(to, message)] = &lab.reports()[..] else { panic!("one report") };
    let Body::SessionReportRequest(request) = &message.body else { panic!("{message:?}") };
    let std::net::SocketAddr::V4(to) = to else { panic!("{to}") };
    (*to.ip(), message.sequence, request.clone())
}

fn respond(lab: &mut Lab, (from, sequence): (Ipv4Addr, u32), response: SessionReportResponse) {
    let seid = lab.in_force.keys().next().unwrap().0;
    lab.tell(from, &Message::session(seid, sequence, response));
}

fn redirection(to: Ipv4Addr) -> SessionReportResponse {
    SessionReportResponse {
        alternative: Some(CpIpAddress::new(to.into())),
        ..SessionReportResponse::of(Cause::RedirectionRequested)
    }
}

/// Behind an adapter, or address translation, the CP F-SEID's address is nobody's from here.
#[test]
fn where_nobody_answers_at_the_name_s_address_the_owner_hears_at_its_own() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.cp_f_seid = FSeid::new(77, Ipv4Addr::from([10, 99, 0, 1]).into());
    let session = lab.establish(request);
    lab.ask(SMF, &Message::session(session.0, 2, path_switch(5)));
    let told_at = |lab: &mut Lab, teid| {
        lab.ask(SMF, &Message::session(session.0, teid, path_switch(teid)));
        lab.sent.clear();
        lab.handle(Input::DataPath(&indication(teid)));
        let (to, sequence, _) = one(lab);
        (to, sequence)
    };
    let named = Ipv4Addr::from([10, 99, 0, 1]);
    assert_eq!(told_at(&mut lab, 6).0, named);
    lab.pass(config().t1 * (config().n1 + 1));
    let (to, sequence) = told_at(&mut lab, 7);
    assert_eq!(to, SMF);
    // There is somebody after all.
    respond(&mut lab, (named, sequence), SessionReportResponse::of(Cause::RequestAccepted));
    assert_eq!(told_at(&mut lab, 8).0, named);
}

/// Two control planes behind one address of a translator: what is sent there, either may hear, and know nothing of.
#[test]
fn a_neighbour_behind_the_same_address_ends_no_session() {
    for named in [Ipv4Addr::from([10, 99, 0, 1]), SMF] {
        let mut lab = Lab::associated();
        let other = AssociationSetupRequest::new(NodeId::Fqdn("other.lab".to_owned()), 7);
        lab.tell(SMF, &Message::node(0xFFF1, other));
        lab.sent.clear();
        let mut request = establishment(77);
        request.cp_f_seid = FSeid::new(77, named.into());
        let session = lab.establish(request);
        lab.ask(SMF, &Message::session(session.0, 2, path_switch(5)));
        for teid in [6, 7] {
            lab.ask(SMF, &Message::session(session.0, teid, path_switch(teid)));
            lab.sent.clear();
            lab.handle(Input::DataPath(&indication(teid)));
            let (to, sequence, _) = one(&mut lab);
            assert_eq!(to, named, "not to who may be another");
            if named == SMF {
                respond(&mut lab, (SMF, sequence), SessionReportResponse::of(Cause::SessionContextNotFound));
            }
            lab.pass(config().t1 * (config().n1 + 1));
            assert_eq!(lab.in_force.len(), 1, "{named}");
        }
    }
}

/// A peer that lost five tunnels, and room for fewer requests: the others are told of once there is room again.
#[test]
fn what_found_no_room_is_told_with_the_next_indication() {
    let limits = Limits { requests: 8, peers: 2, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { limits, ..config() });
    for teid in 5..10 {
        let session = lab.establish(establishment(u64::from(teid)));
        lab.ask(SMF, &Message::session(session.0, teid, path_switch(teid)));
    }
    let mut told = || {
        lab.sent.clear();
        (5..10).for_each(|teid| lab.handle(Input::DataPath(&indication(teid))));
        let reports = lab.reports();
        for (_, report) in &reports {
            let taken = SessionReportResponse::of(Cause::RequestAccepted);
            respond(&mut lab, (SMF, report.sequence), taken);
        }
        reports.len()
    };
    let first = told();
    assert!((1..5).contains(&first), "{first}");
    assert_eq!((told(), told()), (5 - first, 0));
}

/// TS 29.244 7.5.9.1: with what it says of usage, and with who gave the session its name.
#[test]
fn a_report_goes_on_to_whom_it_is_redirected() {
    let (mut lab, session) = used();
    let (first, sequence, report) = one(&mut lab);
    assert_eq!(first, SMF);
    respond(&mut lab, (SMF, sequence), redirection(OTHER));
    let (second, sequence, again) = one(&mut lab);
    assert_eq!((second, &again.usage_reports), (OTHER, &report.usage_reports));
    assert_eq!(again.old_cp_f_seid, Some(FSeid::new(77, SMF.into())));
    let named = SessionReportResponse {
        cp_f_seid: Some(FSeid::new(5, OTHER.into())),
        ..SessionReportResponse::of(Cause::RequestAccepted)
    };
    respond(&mut lab, (OTHER, sequence), named);
    lab.pass(Duration::from_secs(60));
    assert!(lab.reports().is_empty() && lab.saved[&session].usage.unconfirmed.is_none());
    lab.traffic(session, (400, 700), false);
    assert_eq!(one(&mut lab).0, OTHER, "the next, too");
}

#[test]
fn an_error_indication_is_redirected_too() {
    let mut lab = lab();
    lab.handle(Input::DataPath(&indication(5)));
    let (_, sequence, report) = one(&mut lab);
    respond(&mut lab, (SMF, sequence), redirection(OTHER));
    let (to, _, again) = one(&mut lab);
    assert_eq!((to, again.error_indication_report), (OTHER, report.error_indication_report));
}

/// Two that send us to each other are asked at leisure.
#[test]
fn redirections_are_not_followed_for_ever() {
    let (mut lab, _) = used();
    let mut sent = 0;
    for _ in 0..60 {
        lab.pass(Duration::from_secs(1));
        for (to, message) in lab.reports() {
            let (from, next) = if to == at(SMF) { (SMF, OTHER) } else { (OTHER, SMF) };
            sent += 1;
            respond(&mut lab, (from, message.sequence), redirection(next));
        }
    }
    assert!((3..=20).contains(&sent), "{sent}");
}

/// Who cannot take it now is told again, of the same octets; who wants none of it is not.
#[test]
fn what_was_used_is_told_again_where_it_could_not_be_taken() {
    let again = [
        (Cause::PfcpEntityInCongestion, true),
        (Cause::NoResourcesAvailable, true),
        (Cause::SystemFailure, true),
        (Cause::RedirectionRequested, true),
        (Cause::RequestRejected, false),
    ];
    for (cause, comes_again) in again {
        let (mut lab, _) = used();
        let (_, sequence, report) = one(&mut lab);
        respond(&mut lab, (SMF, sequence), SessionReportResponse::of(cause));
        assert!(lab.reports().is_empty(), "not at once");
        lab.pass(config().heartbeat_interval);
        let told = lab.reports();
        assert_eq!(!told.is_empty(), comes_again, "{cause:?}");
        for (_, message) in told {
            let Body::SessionReportRequest(request) = message.body else { panic!("a report") };
            assert_eq!(request.usage_reports, report.usage_reports);
        }
    }
}

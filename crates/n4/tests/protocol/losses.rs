//! A data plane that comes back with less room than before: what it does not take back is over, and told.

use crate::common::billing::{Bill, metered, octets, urr};
use crate::common::smf::{self, establishment, path_switch};
use crate::common::{Lab, Obedience, SMF, at, config};
use dplink::{Notice, RefusalCause};
use n4::{Config, Input, Limits};
use pfcp::*;
use rules::{Seid, UrrId};
use std::time::Duration;

/// It comes back empty and takes none but those up to `last`.
fn come_back_small(lab: &mut Lab, last: Seid) {
    lab.obedience = Obedience::Waits;
    lab.restart_plane();
    let refused: Vec<(Seid, u64)> =
        lab.desired().values().map(|desired| (desired.session, desired.revision)).collect();
    for (session, revision) in refused {
        let notice = match session > last {
            true => {
                lab.in_force.remove(&session);
                lab.plane.sessions.remove(&session);
                Notice::Refused {
                    session,
                    revision,
                    cause: RefusalCause::Full,
                    reason: "it is full".to_owned(),
                }
            }
            false => Notice::Applied { session, revision, removed: vec![] },
        };
        lab.handle(Input::DataPath(&notice));
    }
    lab.obedience = Obedience::Obeys;
    lab.obey();
}

/// It can do enhanced association release, which we do not advertise.
fn knows_of_ends(lab: &mut Lab) {
    let features = Some(CpFunctionFeatures::of(&[CpFeature::Epfar]));
    let setup = AssociationSetupRequest { cp_function_features: features, ..smf::setup(SMF, 1) };
    let Body::AssociationSetupResponse(response) = lab.ask(SMF, &Message::node(0xFFF1, setup)) else {
        panic!()
    };
    assert_eq!(response.cause, Cause::RequestAccepted);
    assert!(!response.up_function_features.unwrap().contains(UpFeature::Epfar));
}

#[test]
fn a_control_plane_hears_what_was_used_and_no_more() {
    let mut lab = Lab::associated();
    let first = lab.establish(establishment(76));
    let [metered, plain] = [metered(77, vec![urr(1, 0)]), establishment(78)];
    let mut plain = plain;
    plain.create_pdrs.truncate(1);
    let [metered, plain] = [metered, plain].map(|request| lab.establish(request));
    lab.sent.clear();
    come_back_small(&mut lab, first);
    let reports = lab.reports();
    let [(_, report)] = &reports[..] else { panic!("{reports:?}") };
    let Body::SessionReportRequest(request) = &report.body else { panic!() };
    assert_eq!((report.seid, request.pfcpsrreq_flags), (Some(77), None));
    assert_eq!(request.report_type, ReportType(ReportType::USAR));
    assert_eq!(lab.node.sessions(), 1);
    for session in [metered, plain] {
        let asked = Message::session(session.0, 50, path_switch(5));
        let Body::SessionModificationResponse(response) = lab.ask(SMF, &asked) else { panic!() };
        assert_eq!(response.cause, Cause::SessionContextNotFound);
    }
}

#[test]
fn what_is_not_taken_back_is_over_and_its_owner_hears_what_it_used() {
    let mut lab = Lab::associated();
    knows_of_ends(&mut lab);
    let first = lab.establish(establishment(76));
    let session = lab.establish(metered(77, vec![urr(1, 0)]));
    lab.traffic(session, (100, 200), true);
    // Counted, told to nobody: asked about so that the node knows.
    lab.pass(Duration::from_secs(1));
    let known = known_octets(&mut lab, session);
    lab.sent.clear();
    come_back_small(&mut lab, first);
    let reports = lab.reports();
    let [(to, report)] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!((*to, report.seid), (at(SMF), Some(77)));
    let Body::SessionReportRequest(request) = &report.body else { panic!() };
    assert_eq!(request.pfcpsrreq_flags, None);
    assert_eq!(request.report_type, ReportType(ReportType::USAR));
    let mut bill = Bill::default();
    bill.add(&request.usage_reports);
    assert_eq!(bill.sums()[&UrrId(1)], (0, 0), "all was told before");
    assert_eq!(known, (100, 200));
    assert!(request.usage_reports[0].usage_report_trigger.0 & UsageReportTrigger::TERMR != 0);
    // It is over, and the other one is not.
    assert_eq!((lab.node.sessions(), lab.saved.len()), (1, 1));
    assert_eq!(lab.in_force.keys().copied().collect::<Vec<_>>(), [first]);
    let Body::SessionModificationResponse(response) =
        lab.ask(SMF, &Message::session(session.0, 50, path_switch(5)))
    else {
        panic!()
    };
    assert_eq!(response.cause, Cause::SessionContextNotFound);
    // Told until it is answered.
    lab.pass(config().t1);
    let again = lab.reports();
    assert_eq!(again.len(), 1);
    let response = SessionReportResponse::of(Cause::RequestAccepted);
    lab.tell(SMF, &Message::session(0, again[0].1.sequence, response));
    lab.pass(config().t1);
    assert!(lab.reports().is_empty());
}

/// Asks for what was used.
fn known_octets(lab: &mut Lab, session: Seid) -> (u64, u64) {
    let request = SessionModificationRequest {
        query_urrs: vec![QueryUrr { urr_id: 1, carried: vec![] }],
        ..SessionModificationRequest::default()
    };
    octets(&lab.modify(session, request).usage_reports[0])
}

#[test]
fn more_losses_than_can_be_told_at_once_are_told_later() {
    let limits = Limits { requests: 3, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { limits, ..config() });
    knows_of_ends(&mut lab);
    let measured =
        |cp_seid| SessionEstablishmentRequest { create_urrs: vec![urr(1, 0)], ..only_tunnel(cp_seid) };
    let sessions: Vec<Seid> = (1..=9).map(|cp_seid| lab.establish(measured(cp_seid))).collect();
    come_back_small(&mut lab, sessions[0]);
    let mut told = std::collections::BTreeSet::new();
    for _ in 0..60 {
        for (_, report) in lab.reports() {
            told.insert(report.seid.unwrap());
            let response = SessionReportResponse::of(Cause::RequestAccepted);
            lab.tell(SMF, &Message::session(0, report.sequence, response));
        }
        lab.pass(Duration::from_secs(1));
    }
    assert_eq!(told, (2..=9).collect());
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.saved.len()), (1, 1, 1));
}

fn only_tunnel(cp_seid: u64) -> SessionEstablishmentRequest {
    let request = establishment(cp_seid);
    SessionEstablishmentRequest { create_pdrs: request.create_pdrs[..1].to_vec(), ..request }
}

/// A change that is refused while the session is in force is no end of it.
#[test]
fn a_refused_change_ends_nothing() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(77));
    lab.restart_plane();
    let revision = lab.in_force[&session].revision;
    lab.handle(Input::DataPath(&Notice::Applied { session, revision, removed: vec![] }));
    lab.obedience = Obedience::Refuses;
    assert_eq!(lab.modify(session, path_switch(5)).cause, Cause::SystemFailure);
    lab.obedience = Obedience::Obeys;
    assert_eq!((lab.node.sessions(), lab.reports().len()), (1, 0));
    assert_eq!(lab.modify(session, path_switch(5)).cause, Cause::RequestAccepted);
}

/// A report on its way is no reason to lose what waits behind it: what an answer had no room for.
#[test]
fn what_waits_behind_a_report_on_its_way_is_told() {
    let mut lab = Lab::associated();
    let first = lab.establish(establishment(76));
    let urrs = (1..=250).map(|id| urr(id, 0)).collect();
    let session = lab.establish(SessionEstablishmentRequest { create_urrs: urrs, ..only_tunnel(77) });
    let all = SessionModificationRequest {
        pfcpsm_req_flags: Some(flags::PFCPSM_QAURR),
        ..SessionModificationRequest::default()
    };
    let mut bill = Bill::default();
    bill.add(&lab.modify(session, all).usage_reports);
    come_back_small(&mut lab, first);
    lab.pass(Duration::from_secs(1));
    for (_, report) in lab.reports() {
        if let Body::SessionReportRequest(request) = report.body {
            bill.add(&request.usage_reports);
        }
    }
    assert_eq!(lab.node.sessions(), 1);
    assert!((1..=250).all(|id| bill.reports.contains_key(&(id, 0))), "each was told once before it was over");
}

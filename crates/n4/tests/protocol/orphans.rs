//! Sessions and addresses that nobody could name any more: found by games of random messages.

use crate::common::billing::{metered, urr};
use crate::common::smf::{self, establishment};
use crate::common::{Lab, Obedience, SMF, config};
use n4::{Config, UePool};
use pfcp::*;
use std::time::Duration;

/// It gave way to one of its name that failed, and the data plane has no room for it any more either.
#[test]
fn a_session_that_is_not_taken_back_is_over_and_what_it_used_is_told() {
    let mut lab = Lab::new(config());
    // It knows a flag that says so, which we do not say that we use (EPFAR, TS 29.244 5.18.2).
    let features = Some(CpFunctionFeatures::of(&[CpFeature::Epfar]));
    let setup = AssociationSetupRequest { cp_function_features: features, ..smf::setup(SMF, 1) };
    lab.ask(SMF, &Message::node(1, setup));
    lab.establish(metered(77, vec![urr(1, 0)]));
    lab.obedience = Obedience::Refuses;
    let Body::SessionEstablishmentResponse(response) =
        lab.ask(SMF, &Message::session(0, 900, establishment(77)))
    else {
        panic!("an answer")
    };
    assert_eq!(response.cause, Cause::SystemFailure);
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.saved.len()), (0, 0, 0));
    let (_, report) = lab.reports().remove(0);
    let Body::SessionReportRequest(report) = report.body else { panic!("{report:?}") };
    assert_eq!((report.report_type, report.usage_reports.len()), (ReportType(ReportType::USAR), 1));
    assert_eq!(report.pfcpsrreq_flags, None);
}

/// Nobody hears that it is gone, and its name has gone to another session meanwhile.
#[test]
fn a_session_that_was_to_be_deleted_does_not_stay() {
    for is_replaced in [true, false] {
        let mut lab = Lab::associated();
        let session = lab.establish(establishment(77));
        lab.obedience = Obedience::Waits;
        lab.tell(SMF, &Message::session(session.0, 900, SessionDeletionRequest::default()));
        if is_replaced {
            lab.tell(SMF, &Message::session(0, 901, establishment(77)));
        }
        lab.pass(Duration::from_secs(5));
        let Body::SessionDeletionResponse(response) = lab.answer(900).body else { panic!("an answer") };
        assert_eq!(response.cause, Cause::RequestAccepted);
        lab.obedience = Obedience::Obeys;
        lab.obey();
        assert_eq!(lab.node.sessions(), 0);
        let release = AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] };
        lab.ask(SMF, &Message::node(902, release));
        assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.in_force.len()), (0, 0, 0));
    }
}

/// As before, but its owner leaves while it is being deleted: that is answered first.
#[test]
fn a_session_without_a_name_goes_with_its_owner() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(77));
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(session.0, 900, SessionDeletionRequest::default()));
    lab.tell(SMF, &Message::session(0, 901, establishment(77)));
    let release = AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] };
    lab.tell(SMF, &Message::node(902, release));
    lab.pass(Duration::from_secs(1));
    assert!(lab.sent.iter().all(|(_, sent)| sent.sequence == 901), "{:?}", lab.sent);
    lab.pass(Duration::from_secs(5));
    let Body::SessionDeletionResponse(deleted) = lab.answer(900).body else { panic!("an answer") };
    let Body::AssociationReleaseResponse(released) = lab.answer(902).body else { panic!("an answer") };
    assert_eq!((deleted.cause, released.cause), (Cause::RequestAccepted, Cause::RequestAccepted));
    lab.obedience = Obedience::Obeys;
    lab.obey();
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.in_force.len()), (0, 0, 0));
}

/// It was deleted with its set while it gave way, and its successor is given up for another one.
#[test]
fn a_session_that_is_gone_is_in_nobodys_way() {
    let mut lab = Lab::associated();
    let fq_csids =
        vec![FqCsid { node_id_type: 0, node: vec![10, 40, 0, 1], csids: vec![5], node_type: None }];
    lab.establish(SessionEstablishmentRequest { fq_csids: fq_csids.clone(), ..establishment(77) });
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(0, 900, establishment(77)));
    let deletion = SessionSetDeletionRequest { node_id: NodeId::Ipv4(SMF), fq_csids, carried: vec![] };
    lab.tell(SMF, &Message::node(901, deletion));
    assert_eq!(lab.node.sessions(), 1);
    lab.tell(SMF, &Message::session(0, 902, establishment(77)));
    lab.obedience = Obedience::Obeys;
    lab.obey();
    let Body::SessionEstablishmentResponse(response) = lab.answer(902).body else { panic!("an answer") };
    assert_eq!(response.cause, Cause::RequestAccepted);
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (1, 1));
}

/// The pool is named, and the rules are of another network than it.
#[test]
fn an_address_stays_taken_whatever_network_its_rules_are_of() {
    let pool = UePool {
        name: "users".to_owned(),
        prefix: "10.70.0.0/28".parse().unwrap(),
        network_instance: Some("internet".to_owned()),
    };
    let network_instances = ["ims", "internet"].map(str::to_owned).to_vec();
    let mut lab = Lab::associated_with(Config { network_instances, ue_pools: vec![pool], ..config() });
    let choosing = |cp_seid| {
        let mut request = establishment(cp_seid);
        let down = &mut request.create_pdrs[1];
        down.pdi.network_instance = Some(NetworkInstance::labels("ims"));
        down.pdi.ue_ip_addresses = vec![UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() }];
        down.ue_ip_address_pool = Some(PoolIdentity(b"users".to_vec()));
        request
    };
    let session = lab.establish(choosing(77));
    // One of the same name, which is refused, and a new process.
    let mut refused = choosing(77);
    refused.create_pdrs[0].far_id = Some(40);
    lab.ask(SMF, &Message::session(0, 900, refused));
    assert_eq!(lab.node.addresses(), 1);
    lab.restart();
    assert_eq!(lab.node.addresses(), 1);
    lab.establish(choosing(78));
    assert_eq!(lab.node.addresses(), 2);
    lab.delete(session);
    assert_eq!(lab.node.addresses(), 1);
}

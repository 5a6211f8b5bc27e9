//! N4 over IPv6, alone or beside IPv4 (TS 29.244 8.2.37, 8.2.38).

use crate::common::billing::urr;
use crate::common::{Lab, N3, SMF, US, smf};
use n4::Config;
use pfcp::*;
use rules::Seid;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const US6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x40, 0, 0, 0, 0, 2);
const SMF6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x40, 0, 0, 0, 0, 1);

fn ask(lab: &mut Lab, message: &Message) -> Body {
    lab.receive(SocketAddr::new(SMF6.into(), 8805), &encode(message));
    lab.answer(message.sequence).body
}

/// A control plane that is known by its IPv6 address, and a session of it.
fn established(config: Config) -> (Lab, SessionEstablishmentResponse) {
    let mut lab = Lab::new(config);
    let setup = AssociationSetupRequest { node_id: NodeId::Ipv6(SMF6), ..smf::setup(SMF, 5) };
    let Body::AssociationSetupResponse(response) = ask(&mut lab, &Message::node(1, setup)) else { panic!() };
    assert_eq!((response.cause, response.node_id), (Cause::RequestAccepted, lab_node_id()));
    let mut request = smf::establishment(77);
    request.node_id = NodeId::Ipv6(SMF6);
    // One that has both: ours to choose.
    request.cp_f_seid = FSeid { seid: 77, ipv4: Some(SMF), ipv6: Some(SMF6) };
    request.create_urrs = vec![CreateUrr { measurement_period: Some(10), ..urr(1, 1) }];
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.urr_ids = vec![1]);
    let Body::SessionEstablishmentResponse(response) = ask(&mut lab, &Message::session(0, 2, request)) else {
        panic!()
    };
    assert_eq!(response.cause, Cause::RequestAccepted, "{:?}", lab.notes);
    (lab, response)
}

fn lab_node_id() -> NodeId {
    NodeId::Ipv6(US6)
}

/// Where the first periodic report goes.
fn reported_to(lab: &mut Lab) -> IpAddr {
    lab.sent.clear();
    crate::common::billing::seconds(lab, 11);
    let reports = lab.reports();
    let [(to, report), ..] = &reports[..] else { panic!("{:?}", lab.sent) };
    assert_eq!(report.seid, Some(77));
    to.ip()
}

#[test]
fn a_node_at_an_ipv6_address_alone_is_known_by_it_and_reports_over_it() {
    let (mut lab, response) = established(Config::new(lab_node_id(), US6, N3));
    let name = response.up_f_seid.unwrap();
    assert_eq!((name.ipv4, name.ipv6, response.node_id), (None, Some(US6), lab_node_id()));
    let switch = Message::session(name.seid, 3, smf::path_switch(5));
    let Body::SessionModificationResponse(changed) = ask(&mut lab, &switch) else { panic!() };
    assert_eq!(changed.cause, Cause::RequestAccepted);
    assert_eq!(reported_to(&mut lab), IpAddr::V6(SMF6));
    // And so it stays.
    lab.restart();
    assert!(lab.in_force.contains_key(&Seid(name.seid)));
    assert_eq!(reported_to(&mut lab), IpAddr::V6(SMF6));
}

#[test]
fn a_node_at_both_says_so() {
    let config = Config { ipv4: Some(US), ..Config::new(lab_node_id(), US6, N3) };
    let (mut lab, response) = established(config);
    let name = response.up_f_seid.unwrap();
    assert_eq!((name.ipv4, name.ipv6), (Some(US), Some(US6)));
    assert_eq!(reported_to(&mut lab), IpAddr::V4(SMF));
}

#[test]
fn a_node_asks_for_an_association_over_ipv6() {
    let to = SocketAddr::new(SMF6.into(), 8805);
    let mut lab = Lab::new(Config { associate: vec![to], ..Config::new(lab_node_id(), US6, N3) });
    lab.pass(std::time::Duration::ZERO);
    let (sent_to, bytes) = lab.sent.last().unwrap();
    assert_eq!(*sent_to, to);
    let Body::AssociationSetupRequest(setup) = &bytes.body else { panic!() };
    assert_eq!(setup.node_id, lab_node_id());
}

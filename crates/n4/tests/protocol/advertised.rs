//! A port behind 1:1 translation: what control planes are told is what peers reach it by, and nothing else changes.

use crate::common::personas::*;
use crate::common::smf::{self, UE, downlink, uplink};
use crate::common::{Lab, N3, SMF, config};
use n4::{Config, GtpuAddress};
use pfcp::*;
use rules::Interface;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What N3 is reached by, and what its IPv6 address is.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
const OWN6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x30, 0, 0, 0, 0, 2);
const PUBLIC6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 2);
/// A port that nothing is translated to.
const N6: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 2);

fn translated() -> Config {
    let n3 = GtpuAddress {
        ipv6: Some(OWN6),
        advertise: Some(PUBLIC),
        advertise6: Some(PUBLIC6),
        ..GtpuAddress::access(N3)
    };
    let n6 = GtpuAddress { interface: Interface::Core, ..GtpuAddress::access(N6) };
    Config { gtpu: vec![n3, n6], ..config() }
}

const fn at(teid: u32, ipv4: Option<Ipv4Addr>, ipv6: Option<Ipv6Addr>) -> FTeid {
    FTeid::Explicit { teid, ipv4, ipv6 }
}

fn addresses(f_teid: Option<FTeid>) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
    match f_teid {
        Some(FTeid::Explicit { ipv4, ipv6, .. }) => (ipv4, ipv6),
        other => panic!("{other:?}"),
    }
}

/// Whatever is told, tunnels end at the port's own address.
fn ends(lab: &Lab, session: rules::Seid) -> Vec<IpAddr> {
    rules(lab, session).pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid).map(|it| it.address).collect()
}

#[test]
fn an_endpoint_is_told_at_the_address_it_is_reached_at() {
    let mut lab = Lab::associated_with(translated());
    let choose = |ipv4, ipv6, choose_id| FTeid::Choose { ipv4, ipv6, choose_id };
    let mut request = smf::establishment(77);
    request.create_pdrs = vec![
        uplink(1, choose(true, false, None)),
        uplink(2, choose(false, true, None)),
        uplink(3, choose(true, true, None)),
        uplink(4, choose(true, false, Some(7))),
        uplink(5, choose(true, true, Some(7))),
        downlink(6, Some(UE)),
        uplink(7, choose(true, false, None)),
    ];
    request.create_pdrs[6].pdi.source_interface = SourceInterface::Core;
    let endpoint = CreateTrafficEndpoint {
        traffic_endpoint_id: 5,
        local_f_teid: Some(choose(true, true, None)),
        ..CreateTrafficEndpoint::default()
    };
    request.create_traffic_endpoints = vec![endpoint];
    let mut at_endpoint = uplink(8, choose(true, false, None));
    (at_endpoint.pdi.f_teid, at_endpoint.pdi.traffic_endpoint_id) = (None, Some(5));
    request.create_pdrs.push(at_endpoint);
    let Body::SessionEstablishmentResponse(answer) = lab.ask(SMF, &Message::session(0, 500, request)) else {
        panic!("an answer")
    };
    assert_eq!(answer.cause, Cause::RequestAccepted);
    let told: Vec<_> = answer.created_pdrs.iter().map(|pdr| addresses(pdr.local_f_teid)).collect();
    let (ipv4, ipv6) = (Some(PUBLIC), Some(PUBLIC6));
    let at_n6 = (Some(N6), None);
    assert_eq!(told, [(ipv4, None), (None, ipv6), (ipv4, ipv6), (ipv4, None), (ipv4, ipv6), at_n6]);
    assert_eq!(answer.created_pdrs[3].local_f_teid.map(teid), answer.created_pdrs[4].local_f_teid.map(teid));
    let [endpoint] = &answer.created_traffic_endpoints[..] else { panic!("one endpoint") };
    assert_eq!(addresses(endpoint.local_f_teid), (ipv4, ipv6));
    let session = rules::Seid(answer.up_f_seid.unwrap().seid);
    assert_eq!(
        ends(&lab, session),
        [N3.into(), OWN6.into(), N3.into(), N3.into(), N3.into(), N6.into(), IpAddr::V4(N3)]
    );
}

const fn teid(f_teid: FTeid) -> u32 {
    match f_teid {
        FTeid::Explicit { teid, .. } => teid,
        FTeid::Choose { .. } => 0,
    }
}

/// Control planes that give endpoints have the public address in their configuration, or the private one.
#[test]
fn an_endpoint_may_be_given_at_either_address() {
    let mut lab = Lab::associated_with(translated());
    let mut request = smf::establishment(77);
    request.create_pdrs = vec![
        uplink(1, at(1, Some(PUBLIC), None)),
        uplink(2, at(2, Some(N3), None)),
        uplink(3, at(3, None, Some(PUBLIC6))),
        uplink(4, at(4, None, Some(OWN6))),
        uplink(5, at(5, Some(PUBLIC), Some(PUBLIC6))),
        uplink(6, at(6, Some(N6), None)),
    ];
    let (session, created) = established(&mut lab, request.clone());
    assert_eq!(created, []);
    let all: [IpAddr; 6] = [N3.into(), N3.into(), OWN6.into(), OWN6.into(), N3.into(), N6.into()];
    assert_eq!(ends(&lab, session), all);
    // It is one endpoint, by whichever name.
    let mut other = smf::establishment(78);
    other.create_pdrs = vec![uplink(1, at(1, Some(N3), None))];
    assert_eq!(refused(&mut lab, other), (Cause::RuleCreationModificationFailure, Some(ie::F_TEID)));
    for wrong in
        [at(9, Some(PUBLIC), Some(Ipv6Addr::LOCALHOST)), at(9, Some(Ipv4Addr::new(203, 0, 113, 3)), None)]
    {
        let mut other = smf::establishment(78);
        other.create_pdrs = vec![uplink(1, wrong)];
        assert_eq!(refused(&mut lab, other), (Cause::MandatoryIeIncorrect, Some(ie::F_TEID)));
    }
}

fn refused(lab: &mut Lab, request: SessionEstablishmentRequest) -> (Cause, Option<u16>) {
    match lab.ask(SMF, &Message::session(0, 501, request)) {
        Body::SessionEstablishmentResponse(response) => (response.cause, response.offending_ie),
        other => panic!("{other:?}"),
    }
}

/// Control planes that choose endpoints read there what to tell base stations (TS 29.244 Release 15, 8.2.82).
#[test]
fn resources_are_told_at_the_addresses_they_are_reached_at() {
    let mut lab = Lab::new(translated());
    let Body::AssociationSetupResponse(answer) = lab.ask(SMF, &Message::node(1, smf::setup(SMF, 1))) else {
        panic!("an answer")
    };
    let told = answer.carried.iter().filter(|raw| raw.ie == ie::USER_PLANE_IP_RESOURCE_INFORMATION);
    let told: Vec<_> = told.map(|ie| ie.value.clone()).collect();
    let n3 = [&[0x43][..], &PUBLIC.octets(), &PUBLIC6.octets(), &[0]].concat();
    assert_eq!(told, [n3, [&[0x41][..], &N6.octets(), &[1]].concat()]);
}

/// An SGW-U and a PGW-U of one user in one node: the control plane names the other by the address that it was told.
#[test]
fn an_address_that_we_advertise_is_ourselves() {
    let mut lab = Lab::associated_with(translated());
    let (session, _) = established(&mut lab, smf::establishment(77));
    let peers = |lab: &Lab| -> Vec<IpAddr> {
        let fars = &rules(lab, session).fars;
        let to = fars.iter().flat_map(|far| far.forwarding.iter().chain(&far.duplicates));
        to.filter_map(|to| to.outer_header_creation).map(|to| to.address).collect()
    };
    let change = |lab: &mut Lab, creation| {
        let updates = request::updates(vec![request::far_into(2, DestinationInterface::Access, creation)]);
        let Body::SessionModificationResponse(answer) =
            lab.ask(SMF, &Message::session(session.0, 600, updates))
        else {
            panic!("an answer")
        };
        accepted(&answer);
    };
    change(&mut lab, OuterHeaderCreation::GtpuIpv4 { teid: 5, address: PUBLIC });
    assert_eq!(peers(&lab), [IpAddr::V4(N3)]);
    change(&mut lab, OuterHeaderCreation::GtpuIpv6 { teid: 6, address: PUBLIC6 });
    assert_eq!(peers(&lab), [IpAddr::V6(OWN6)]);
    change(&mut lab, smf::tunnel(7));
    assert_eq!(peers(&lab), [IpAddr::V4(smf::GNB)]);
}

/// Sessions know the ports' own addresses, so they are the same after a restart, with another address advertised or none.
#[test]
fn sessions_outlive_another_translation() {
    let mut lab = Lab::associated_with(translated());
    let mut request = smf::establishment(77);
    let choose = FTeid::Choose { ipv4: true, ipv6: true, choose_id: Some(3) };
    request.create_pdrs[0].pdi.f_teid = Some(choose);
    request.create_pdrs[0].pdi.qfis = vec![1];
    let (session, created) = established(&mut lab, request);
    let first = created[0].local_f_teid.unwrap();
    let before = rules(&lab, session).clone();
    lab.restart();
    assert_eq!(rules(&lab, session), &before);
    // A QoS flow more in the same tunnel, which is told as before.
    let added = |lab: &mut Lab, id| {
        let mut pdr = uplink(id, choose);
        pdr.pdi.qfis = vec![id as u8];
        let request = SessionModificationRequest { create_pdrs: vec![pdr], ..Default::default() };
        match lab.ask(SMF, &Message::session(session.0, 600 + u32::from(id), request)) {
            Body::SessionModificationResponse(answer) => {
                accepted(&answer);
                answer.created_pdrs[0].local_f_teid.unwrap()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(added(&mut lab, 3), first);
    let elsewhere = Ipv4Addr::new(198, 51, 100, 2);
    (lab.config.gtpu[0].advertise, lab.config.gtpu[0].advertise6) = (Some(elsewhere), None);
    lab.restart();
    assert_eq!(added(&mut lab, 4), at(teid(first), Some(elsewhere), Some(OWN6)));
}

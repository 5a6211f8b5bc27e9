//! At which of several ports an endpoint is: that of its side, its network instance or its interface.

use crate::common::personas::*;
use crate::common::smf::{self, uplink};
use crate::common::{Lab, N3, SMF, config};
use n4::{Config, GtpuAddress, InterfaceTypes};
use pfcp::*;
use rules::{Instance, Interface};

/// A gateway between others has tunnels on both sides: each is served by a port of its side, of its network instance if one
/// is, unless the control plane says where.
#[test]
fn endpoints_are_served_by_a_port_of_their_side() {
    let [n6, s5, elsewhere] = [[10, 50, 0, 2], [10, 55, 0, 2], [10, 99, 0, 2]].map(std::net::Ipv4Addr::from);
    let core = |ipv4| GtpuAddress { interface: Interface::Core, ..GtpuAddress::access(ipv4) };
    let gtpu =
        vec![GtpuAddress::access(N3), core(n6), GtpuAddress { instance: Instance::of("s5"), ..core(s5) }];
    let mut lab = Lab::new(Config { gtpu, network_instances: vec!["s5".to_owned()], ..config() });
    let Body::AssociationSetupResponse(answer) = lab.ask(SMF, &Message::node(1, smf::setup(SMF, 1))) else {
        panic!("an answer")
    };
    // A control plane that gives endpoints itself tells them apart by side and network (TS 29.244 Release 15, 8.2.82).
    let told = answer.carried.iter().filter(|raw| raw.ie == ie::USER_PLANE_IP_RESOURCE_INFORMATION);
    let told: Vec<_> = told.map(|ie| ie.value.clone()).collect();
    let of = |flags: u8, at: std::net::Ipv4Addr, rest: &[u8]| [&[flags][..], &at.octets(), rest].concat();
    assert_eq!(told, [of(0x41, N3, &[0]), of(0x41, n6, &[1]), of(0x61, s5, b"\x02s5\x01")]);
    let choose = FTeid::Choose { ipv4: true, ipv6: false, choose_id: None };
    let pdr = |id, f_teid, side, network: Option<&str>| {
        let mut pdr = uplink(id, f_teid);
        pdr.pdi.source_interface = side;
        pdr.pdi.network_instance = network.map(|name| NetworkInstance(name.as_bytes().to_vec()));
        pdr
    };
    let given = |teid, ipv4| FTeid::Explicit { teid, ipv4: Some(ipv4), ipv6: None };
    let request = |last: FTeid| {
        let mut request = smf::establishment(77);
        request.create_pdrs = vec![
            pdr(1, choose, SourceInterface::Access, None),
            pdr(2, choose, SourceInterface::Core, None),
            pdr(3, choose, SourceInterface::Core, Some("s5")),
            pdr(4, choose, SourceInterface::Access, Some("s5")),
            pdr(5, given(9, s5), SourceInterface::Access, None),
            pdr(6, last, SourceInterface::Core, None),
        ];
        request.create_fars.iter_mut().for_each(|far| {
            let to = far.forwarding_parameters.as_mut();
            to.into_iter().for_each(|to| to.network_instance = None);
        });
        request
    };
    let (session, created) = established(&mut lab, request(given(10, N3)));
    let told = |created: &CreatedPdr| match created.local_f_teid {
        Some(FTeid::Explicit { ipv4: Some(ipv4), .. }) => (created.pdr_id, ipv4),
        other => panic!("{other:?}"),
    };
    let told: Vec<_> = created.iter().map(told).collect();
    assert_eq!(told, [(1, N3), (2, n6), (3, s5), (4, N3)]);
    let all = rules(&lab, session);
    let all: Vec<_> = all.pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid).map(|it| it.address).collect();
    assert_eq!(all, [N3, n6, s5, N3, s5, N3].map(std::net::IpAddr::from));
    match lab.ask(SMF, &Message::session(0, 501, request(given(11, elsewhere)))) {
        Body::SessionEstablishmentResponse(response) => {
            let expected = (Cause::MandatoryIeIncorrect, Some(ie::F_TEID));
            assert_eq!((response.cause, response.offending_ie), expected);
        }
        other => panic!("{other:?}"),
    }
}

/// S1-U and S5-U of a PGW-U are both of the access side, and of one network instance: the 3GPP Interface Type tells them apart.
#[test]
fn endpoints_are_served_by_a_port_of_their_interface() {
    let [s5, n9, any] = [[10, 55, 0, 2], [10, 59, 0, 2], [10, 99, 0, 2]].map(std::net::Ipv4Addr::from);
    let port = |ipv4, types: &[u8]| GtpuAddress {
        interface_types: InterfaceTypes::of(types.iter().copied()),
        ..GtpuAddress::access(ipv4)
    };
    let core = GtpuAddress { interface: Interface::Core, ..port(n9, &[15]) };
    let gtpu = vec![port(s5, &[1, 19]), core, port(N3, &[0, 11]), port(any, &[])];
    let mut lab = Lab::new(Config { gtpu, ..config() });
    let Body::AssociationSetupResponse(answer) = lab.ask(SMF, &Message::node(1, smf::setup(SMF, 1))) else {
        panic!("an answer")
    };
    let told = answer.carried.iter().filter(|raw| raw.ie == ie::USER_PLANE_IP_RESOURCE_INFORMATION);
    let told: Vec<_> = told.map(|ie| ie.value[1..5].to_vec()).collect();
    assert_eq!(told, [N3, any, s5, n9].map(|at| at.octets().to_vec()), "where base stations are first");
    let choose = FTeid::Choose { ipv4: true, ipv6: false, choose_id: None };
    let cases = [
        (SourceInterface::Access, Some(0), N3),
        (SourceInterface::Access, Some(1), s5),
        (SourceInterface::Access, Some(19), s5),
        // Its interface first, then its side.
        (SourceInterface::Access, Some(15), n9),
        (SourceInterface::Core, Some(15), n9),
        // Of those that nobody is for, and where none is said, as before.
        (SourceInterface::Access, Some(7), any),
        (SourceInterface::Access, None, s5),
        (SourceInterface::Core, None, n9),
    ];
    let mut request = smf::establishment(77);
    let pdr = |(id, (side, interface_type, _)): (u16, (SourceInterface, Option<u8>, _))| {
        let mut pdr = uplink(id, choose);
        (pdr.pdi.source_interface, pdr.pdi.interface_type) = (side, interface_type);
        pdr
    };
    request.create_pdrs = (1..).zip(cases).map(pdr).collect();
    // One says so of a traffic endpoint.
    let create = CreateTrafficEndpoint {
        traffic_endpoint_id: 5,
        local_f_teid: Some(choose),
        interface_type: Some(0),
        ..CreateTrafficEndpoint::default()
    };
    request.create_traffic_endpoints = vec![create];
    let mut at_endpoint = uplink(20, choose);
    (at_endpoint.pdi.f_teid, at_endpoint.pdi.traffic_endpoint_id) = (None, Some(5));
    request.create_pdrs.push(at_endpoint);
    let (session, _) = established(&mut lab, request);
    let all = rules(&lab, session);
    let all: Vec<_> = all.pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid).map(|it| it.address).collect();
    let expected: Vec<std::net::IpAddr> =
        cases.iter().map(|case| case.2).chain([N3]).map(Into::into).collect();
    assert_eq!(all, expected);
}

/// A gateway of one arm has S1-U and S5-U at one port.
#[test]
fn a_port_serves_both_sides_where_there_is_no_other() {
    let mut lab = Lab::new(config());
    lab.associate(SMF, 1);
    let mut request = smf::establishment(77);
    let choose = FTeid::Choose { ipv4: true, ipv6: false, choose_id: None };
    request.create_pdrs = vec![uplink(1, choose), uplink(2, choose)];
    request.create_pdrs[1].pdi.source_interface = SourceInterface::Core;
    let (session, _) = established(&mut lab, request);
    let pdrs = &rules(&lab, session).pdrs;
    let [s1, s5] = [0, 1].map(|at| (pdrs[at].pdi.source_interface, pdrs[at].pdi.f_teid.unwrap()));
    assert_eq!(
        (s1.0, s5.0, s1.1.address, s5.1.address),
        (Interface::Access, Interface::Core, N3.into(), N3.into())
    );
    assert_ne!(s1.1.teid, s5.1.teid);
}

/// Two control planes that count TEIDs themselves, each for the address it uses (TS 29.281 3.1).
#[test]
fn a_teid_is_one_sessions_at_one_port_only() {
    let s5 = std::net::Ipv4Addr::new(10, 55, 0, 2);
    let core = GtpuAddress { interface: Interface::Core, ..GtpuAddress::access(s5) };
    let mut lab = Lab::new(Config { gtpu: vec![GtpuAddress::access(N3), core], ..config() });
    lab.associate(SMF, 1);
    let at = |ipv4| FTeid::Explicit { teid: 5, ipv4: Some(ipv4), ipv6: None };
    let ask = |lab: &mut Lab, cp_seid: u64, f_teids: &[FTeid]| {
        let mut request = smf::establishment(cp_seid);
        request.create_pdrs = f_teids.iter().zip(1..).map(|(f_teid, id)| uplink(id, *f_teid)).collect();
        match lab.ask(SMF, &Message::session(0, cp_seid as u32, request)) {
            Body::SessionEstablishmentResponse(response) => response.cause,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(&mut lab, 1, &[at(N3), at(s5)]), Cause::RuleCreationModificationFailure, "one session");
    assert_eq!(lab.node.tunnels(), 0);
    assert_eq!(ask(&mut lab, 2, &[at(N3)]), Cause::RequestAccepted);
    assert_eq!(ask(&mut lab, 3, &[at(s5)]), Cause::RequestAccepted);
    lab.restart();
    assert_eq!((lab.in_force.len(), lab.node.tunnels()), (2, 2));
    for taken in [N3, s5] {
        assert_eq!(ask(&mut lab, 4, &[at(taken)]), Cause::RuleCreationModificationFailure);
    }
    // Those we choose are at neither.
    assert_eq!(ask(&mut lab, 5, &[smf::choose(None)]), Cause::RequestAccepted);
    let chosen = lab.in_force.values().last().unwrap().rules.pdrs[0].pdi.f_teid.unwrap();
    assert_ne!(chosen.teid.0, 5);
}

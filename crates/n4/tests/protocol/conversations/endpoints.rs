//! Traffic endpoints, and users' addresses that we choose.

use super::Conversation;
use super::sessions::{delete, establish, modify, setup};
use crate::common::smf::{self, UE, choose, establishment, ue};
use pfcp::*;

fn endpoint(id: u8, f_teid: Option<FTeid>, ue: Option<UeIpAddress>) -> CreateTrafficEndpoint {
    CreateTrafficEndpoint {
        traffic_endpoint_id: id,
        local_f_teid: f_teid,
        network_instance: Some(NetworkInstance::labels("internet")),
        ue_ip_addresses: ue.into_iter().collect(),
        interface_type: Some(11),
        ..CreateTrafficEndpoint::default()
    }
}

fn naming(mut pdr: CreatePdr, id: u8) -> CreatePdr {
    (pdr.pdi.f_teid, pdr.pdi.ue_ip_addresses) = (None, vec![]);
    (pdr.pdi.network_instance, pdr.pdi.traffic_endpoint_id) = (None, Some(id));
    pdr
}

/// Uplink at endpoint 1, whose tunnel we choose, downlink at endpoint 2, an endpoint that goes, and one that gets a tunnel.
fn established() -> SessionEstablishmentRequest {
    let mut request = establishment(77);
    let up = CreateTrafficEndpoint { qfis: vec![9], ..endpoint(1, Some(choose(None)), None) };
    request.create_traffic_endpoints = vec![
        up,
        endpoint(2, None, Some(ue(UE))),
        endpoint(3, Some(choose(None)), None),
        endpoint(5, None, None),
    ];
    let [first, second] = &request.create_pdrs[..] else { panic!("two PDRs") };
    let third = CreatePdr { pdr_id: 3, ..first.clone() };
    request.create_pdrs = vec![naming(first.clone(), 1), naming(second.clone(), 2), naming(third, 3)];
    let to = request.create_fars[0].forwarding_parameters.as_mut().unwrap();
    to.linked_traffic_endpoint_id = Some(2);
    request
}

fn changed() -> SessionModificationRequest {
    let up = UpdateTrafficEndpoint {
        traffic_endpoint_id: 1,
        local_f_teid: Some(smf::given(0xAB)),
        network_instance: Some(NetworkInstance::labels("ims")),
        qfis: vec![7],
        ..UpdateTrafficEndpoint::default()
    };
    let later = UpdateTrafficEndpoint {
        traffic_endpoint_id: 5,
        local_f_teid: Some(choose(None)),
        interface_type: Some(11),
        ..UpdateTrafficEndpoint::default()
    };
    let down = UpdateTrafficEndpoint {
        traffic_endpoint_id: 2,
        ue_ip_addresses: vec![ue([10, 60, 0, 2].into())],
        ..UpdateTrafficEndpoint::default()
    };
    let to = UpdateForwardingParameters { linked_traffic_endpoint_id: Some(1), ..Default::default() };
    let far = UpdateFar { far_id: 1, update_forwarding_parameters: Some(to), ..UpdateFar::default() };
    SessionModificationRequest {
        create_traffic_endpoints: vec![endpoint(4, Some(choose(None)), None)],
        create_pdrs: vec![naming(smf::uplink(4, choose(None)), 4)],
        update_traffic_endpoints: vec![up, down, later],
        remove_traffic_endpoints: vec![RemoveTrafficEndpoint { traffic_endpoint_id: 3, carried: vec![] }],
        update_fars: vec![far],
        ..SessionModificationRequest::default()
    }
}

pub fn whole() -> Conversation {
    let steps = vec![setup(), establish(established()), modify(changed()), delete()];
    Conversation::new("a session with traffic endpoints", steps)
}

fn chosen() -> UeIpAddress {
    UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() }
}

fn of_pool(name: &str) -> Option<PoolIdentity> {
    Some(PoolIdentity(name.as_bytes().to_vec()))
}

/// One address by a PDR, one by a traffic endpoint, from pools that are named.
pub fn pools() -> Conversation {
    let mut by_pdr = establishment(77);
    for pdr in &mut by_pdr.create_pdrs {
        pdr.pdi.ue_ip_addresses = vec![chosen()];
    }
    by_pdr.create_pdrs[1].ue_ip_address_pool = of_pool("others");
    let mut by_endpoint = establishment(78);
    let with_pool =
        CreateTrafficEndpoint { ue_ip_address_pool: of_pool("others"), ..endpoint(2, None, Some(chosen())) };
    by_endpoint.create_traffic_endpoints = vec![with_pool];
    by_endpoint.create_pdrs[1] = naming(by_endpoint.create_pdrs[1].clone(), 2);
    let steps = vec![setup(), establish(by_pdr), establish(by_endpoint), delete()];
    Conversation::new("addresses of pools", steps)
}

fn behind(number: u8) -> Vec<RawIe> {
    let route = |ie, text: String| RawIe { ie, value: text.into_bytes() };
    vec![
        route(ie::FRAMED_ROUTE, format!("192.168.{number}.0/24")),
        route(ie::FRAMED_IPV6_ROUTE, format!("2001:db8:{number}::/48")),
        RawIe { ie: ie::FRAMED_ROUTING, value: vec![0; 4] },
    ]
}

/// Networks behind users: of a traffic endpoint, that become others, and of PDRs.
pub fn framed() -> Conversation {
    let mut by_endpoint = establishment(77);
    let user = ue([10, 60, 0, 2].into());
    by_endpoint.create_traffic_endpoints =
        vec![CreateTrafficEndpoint { carried: behind(7), ..endpoint(2, None, Some(user)) }];
    by_endpoint.create_pdrs[1] = naming(by_endpoint.create_pdrs[1].clone(), 2);
    let others = UpdateTrafficEndpoint {
        traffic_endpoint_id: 2,
        ue_ip_addresses: vec![user],
        carried: behind(8),
        ..UpdateTrafficEndpoint::default()
    };
    let change = SessionModificationRequest {
        update_traffic_endpoints: vec![others],
        ..SessionModificationRequest::default()
    };
    let mut by_pdr = establishment(78);
    by_pdr.create_pdrs.iter_mut().for_each(|pdr| pdr.pdi.carried.extend(behind(9)));
    let steps = vec![setup(), establish(by_endpoint), modify(change), establish(by_pdr), delete()];
    Conversation::new("networks behind users", steps)
}

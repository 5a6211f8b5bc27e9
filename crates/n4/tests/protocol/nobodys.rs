//! Users' addresses that nobody can have, and conditions of nothing, which would mean everybody's packets.

use crate::common::smf::{self, establishment};
use crate::common::{Lab, N3, SMF, config};
use n4::{Config, GtpuAddress};
use pfcp::*;
use rules::{Instance, Interface};

/// What a session is answered whose downlink PDR is of this user.
fn answered(lab: &mut Lab, user: UeIpAddress) -> (Cause, Option<u16>) {
    let mut request = establishment(77);
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![user];
    answer(lab, request)
}

fn answer(lab: &mut Lab, request: SessionEstablishmentRequest) -> (Cause, Option<u16>) {
    match lab.ask(SMF, &Message::session(0, 900, request)) {
        Body::SessionEstablishmentResponse(response) => (response.cause, response.offending_ie),
        other => panic!("{other:?}"),
    }
}

const INCORRECT: (Cause, Option<u16>) = (Cause::MandatoryIeIncorrect, Some(ie::UE_IP_ADDRESS));
const ACCEPTED: (Cause, Option<u16>) = (Cause::RequestAccepted, None);

fn user(text: &str) -> UeIpAddress {
    match text.parse().unwrap() {
        std::net::IpAddr::V4(address) => smf::ue(address),
        std::net::IpAddr::V6(address) => UeIpAddress { ipv6: Some(address), ..UeIpAddress::default() },
    }
}

#[test]
fn an_address_that_nobody_can_have_is_refused() {
    let nobodys =
        ["0.0.0.0", "255.255.255.255", "224.0.0.5", "239.1.2.3", "127.0.0.1", "::", "::1", "ff02::1"];
    for text in nobodys {
        assert_eq!(answered(&mut Lab::associated(), user(text)), INCORRECT, "{text}");
    }
    // Link-local ones are of users, too, and so is any network that is somebody's.
    for text in ["10.60.0.1", "192.0.2.1", "240.0.0.1", "169.254.1.1", "fe80::1", "2001:db8::"] {
        assert_eq!(answered(&mut Lab::associated(), user(text)), ACCEPTED, "{text}");
    }
}

/// Of those that a PDR has, one is enough; and an endpoint may say it.
#[test]
fn it_is_refused_wherever_it_is_said() {
    let mut lab = Lab::associated();
    let both = UeIpAddress { ipv6: "::1".parse().ok(), ..user("10.60.0.1") };
    assert_eq!(answered(&mut lab, both), INCORRECT);
    let mut request = establishment(77);
    request.create_traffic_endpoints = vec![CreateTrafficEndpoint {
        traffic_endpoint_id: 1,
        ue_ip_addresses: vec![user("0.0.0.0")],
        ..CreateTrafficEndpoint::default()
    }];
    assert_eq!(answer(&mut lab, request), INCORRECT);
    let session = lab.establish(establishment(77));
    let update =
        UpdatePdr { pdi: Some(smf::downlink(2, Some([127, 0, 0, 1].into())).pdi), ..UpdatePdr::new(2) };
    let response =
        lab.modify(session, SessionModificationRequest { update_pdrs: vec![update], ..Default::default() });
    assert_eq!((response.cause, response.offending_ie), INCORRECT);
    assert_eq!(lab.in_force, lab.desired());
}

/// A port of a network, over both families, and another address by which peers know it.
fn port(instance: Instance) -> GtpuAddress {
    GtpuAddress {
        interface: Interface::Core,
        instance,
        ipv6: "2001:db8:6::2".parse().ok(),
        advertise: Some([203, 0, 113, 2].into()),
        ..GtpuAddress::access([10, 50, 0, 2].into())
    }
}

#[test]
fn an_address_of_a_port_of_ours_is_no_users() {
    let config = || {
        let mut config = config();
        config.gtpu.push(port(Instance::DEFAULT));
        config
    };
    for text in ["10.50.0.2", "203.0.113.2", "2001:db8:6::2", "2001:db8:6::", &N3.to_string()] {
        assert_eq!(answered(&mut Lab::associated_with(config()), user(text)), INCORRECT, "{text}");
    }
    for text in ["10.50.0.3", "2001:db8:7::"] {
        assert_eq!(answered(&mut Lab::associated_with(config()), user(text)), ACCEPTED, "{text}");
    }
}

/// Networks have addresses of their own each.
#[test]
fn a_port_of_another_network_is_in_nobodys_way() {
    let network_instances = ["access", "ims", "internet"].map(str::to_owned).to_vec();
    let mut config = Config { network_instances, ..config() };
    config.gtpu.push(port(Instance::of("ims")));
    for (network, expected) in [("internet", ACCEPTED), ("ims", INCORRECT)] {
        let mut request = establishment(77);
        let name = |name| Some(NetworkInstance::text(name));
        for (pdr, network) in request.create_pdrs.iter_mut().zip(["access", network]) {
            pdr.pdi.network_instance = name(network);
            pdr.pdi.ue_ip_addresses = vec![user("10.50.0.2")];
        }
        assert_eq!(answer(&mut Lab::associated_with(config.clone()), request), expected, "{network}");
    }
}

#[test]
fn a_condition_of_nothing_is_refused() {
    for is_destination in [false, true] {
        let nothing = UeIpAddress { is_destination, ..UeIpAddress::default() };
        assert_eq!(answered(&mut Lab::associated(), nothing), INCORRECT);
    }
    let mut request = establishment(77);
    request.create_pdrs[1].pdi.sdf_filters = vec![SdfFilter::default()];
    let refused = (Cause::MandatoryIeIncorrect, Some(ie::SDF_FILTER));
    assert_eq!(answer(&mut Lab::associated(), request), refused);
}

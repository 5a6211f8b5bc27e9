//! Networks behind users (framed routes, TS 29.244 5.16).

use crate::common::personas::{accepted, established, rules};
use crate::common::smf::{self, UE, establishment};
use crate::common::{Lab, Obedience, SMF};
use dplink::RefusalCause;
use pfcp::*;
use rules::Seid;

fn route(text: &str) -> RawIe {
    let ie = if text.contains(':') { ie::FRAMED_IPV6_ROUTE } else { ie::FRAMED_ROUTE };
    RawIe { ie, value: text.as_bytes().to_vec() }
}

/// As Open5GS says it: in both PDRs, though the uplink one does not name the user's address.
fn request() -> SessionEstablishmentRequest {
    let mut request = establishment(77);
    for pdr in &mut request.create_pdrs {
        pdr.pdi.carried.extend([route("192.168.9.1/24 10.60.0.1 1"), route("2001:db8:9::/48")]);
        pdr.pdi.carried.push(RawIe { ie: ie::FRAMED_ROUTING, value: vec![0; 4] });
    }
    request
}

/// What a session's PDRs know to be behind the user.
fn routes(lab: &Lab, session: Seid) -> Vec<Vec<String>> {
    let texts = |pdi: &rules::Pdi| pdi.framed_routes.iter().map(ToString::to_string).collect();
    rules(lab, session).pdrs.iter().map(|pdr| texts(&pdr.pdi)).collect()
}

fn answer(lab: &mut Lab, request: SessionEstablishmentRequest) -> SessionEstablishmentResponse {
    match lab.ask(SMF, &Message::session(0, 501, request)) {
        Body::SessionEstablishmentResponse(response) => response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn networks_behind_a_user_match_as_its_own_address_does() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, request());
    assert_eq!(routes(&lab, session), [["192.168.9.0/24", "2001:db8:9::/48"]; 2]);
    // Who names what is behind the user and not the user means both.
    assert_eq!(rules(&lab, session).pdrs[0].pdi.ue_ipv4, Some(UE));
    lab.restart();
    assert_eq!(routes(&lab, session), [["192.168.9.0/24", "2001:db8:9::/48"]; 2]);
}

#[test]
fn a_downlink_pdr_that_names_nobody_is_of_the_user_and_what_is_behind() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, request());
    let dedicated = SessionModificationRequest {
        create_pdrs: vec![smf::downlink(9, None)],
        ..SessionModificationRequest::default()
    };
    accepted(&lab.modify(session, dedicated));
    assert_eq!(routes(&lab, session)[2], ["192.168.9.0/24", "2001:db8:9::/48"]);
    assert_eq!(rules(&lab, session).pdrs[2].pdi.ue_ipv4, Some(UE));
}

#[test]
fn a_new_pdi_replaces_them() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, request());
    let mut pdi = smf::pdi(SourceInterface::Core);
    pdi.ue_ip_addresses = vec![smf::ue(UE)];
    pdi.carried = vec![route("172.16.0.0")];
    let update = UpdatePdr { pdr_id: 2, pdi: Some(pdi), ..UpdatePdr::default() };
    let request =
        SessionModificationRequest { update_pdrs: vec![update], ..SessionModificationRequest::default() };
    accepted(&lab.modify(session, request));
    assert_eq!(routes(&lab, session)[1], ["172.16.0.0/16"]);
}

#[test]
fn a_traffic_endpoint_has_them_for_all_its_pdrs() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_traffic_endpoints = vec![CreateTrafficEndpoint {
        traffic_endpoint_id: 2,
        ue_ip_addresses: vec![smf::ue(UE)],
        carried: vec![route("192.168.9.0/24")],
        ..CreateTrafficEndpoint::default()
    }];
    let pdi = &mut request.create_pdrs[1].pdi;
    (pdi.ue_ip_addresses, pdi.network_instance, pdi.traffic_endpoint_id) = (vec![], None, Some(2));
    let (session, _) = established(&mut lab, request.clone());
    assert_eq!(routes(&lab, session), [vec![], vec!["192.168.9.0/24"]]);
    let update = |carried| SessionModificationRequest {
        update_traffic_endpoints: vec![UpdateTrafficEndpoint {
            traffic_endpoint_id: 2,
            carried,
            ..UpdateTrafficEndpoint::default()
        }],
        ..SessionModificationRequest::default()
    };
    accepted(&lab.modify(session, update(vec![])));
    assert_eq!(routes(&lab, session)[1], ["192.168.9.0/24"]);
    accepted(&lab.modify(session, update(vec![route("10.9.0.0/16"), route("2001:db8:7::/56")])));
    assert_eq!(routes(&lab, session)[1], ["10.9.0.0/16", "2001:db8:7::/56"]);
    accepted(&lab.modify(session, update(vec![RawIe { ie: ie::FRAMED_ROUTE, value: vec![] }])));
    assert_eq!(routes(&lab, session)[1], Vec::<String>::new());
    // Who names an endpoint has said all there is to say.
    request.cp_f_seid = FSeid::new(78, SMF.into());
    request.create_pdrs[1].pdi.carried.push(route("10.9.0.0/16"));
    let refused = answer(&mut lab, request);
    assert_eq!(
        (refused.cause, refused.offending_ie, refused.failed_rule_id),
        (Cause::RuleCreationModificationFailure, Some(ie::TRAFFIC_ENDPOINT_ID), Some(FailedRuleId::Pdr(2)))
    );
}

/// A user's prefix of 56 bits, by its length or by the bits it delegates; its own link is the fifth.
fn delegated(by_length: bool) -> UeIpAddress {
    let (length, bits) = if by_length { (Some(56), None) } else { (None, Some(8)) };
    UeIpAddress {
        ipv6: Some("2001:db8:7:105::1".parse().unwrap()),
        ipv6_prefix_length: length,
        ipv6_prefix_delegation_bits: bits,
        is_destination: true,
        ..UeIpAddress::default()
    }
}

fn links(lab: &Lab, session: Seid) -> Vec<Option<String>> {
    let text = |pdr: &rules::Pdr| pdr.pdi.ue_ipv6.map(|link| link.to_string());
    rules(lab, session).pdrs.iter().map(text).collect()
}

/// TS 29.244 8.2.62.
#[test]
fn what_is_delegated_to_a_user_is_behind_its_own_link() {
    for by_length in [true, false] {
        let mut lab = Lab::associated();
        let mut request = establishment(77);
        request.create_pdrs[1].pdi.ue_ip_addresses = vec![delegated(by_length)];
        let (session, _) = established(&mut lab, request.clone());
        for _ in 0..2 {
            assert_eq!(links(&lab, session)[1].as_deref(), Some("2001:db8:7:105::/64"));
            assert_eq!(routes(&lab, session)[1], ["2001:db8:7:100::/56"]);
            lab.restart();
        }
        for length in [0, 72, 129] {
            let address = UeIpAddress { ipv6_prefix_length: Some(length), ..delegated(false) };
            request.create_pdrs[1].pdi.ue_ip_addresses = vec![address];
            request.cp_f_seid = FSeid::new(78, SMF.into());
            assert!(!answer(&mut lab, request.clone()).cause.is_accepted(), "{length}");
        }
    }
}

#[test]
fn a_traffic_endpoint_delegates_to_all_its_pdrs_and_its_next_prefix_is_another() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_traffic_endpoints = vec![CreateTrafficEndpoint {
        traffic_endpoint_id: 2,
        ue_ip_addresses: vec![delegated(true)],
        ..CreateTrafficEndpoint::default()
    }];
    let pdi = &mut request.create_pdrs[1].pdi;
    (pdi.ue_ip_addresses, pdi.network_instance, pdi.traffic_endpoint_id) = (vec![], None, Some(2));
    let (session, _) = established(&mut lab, request);
    assert_eq!(routes(&lab, session)[1], ["2001:db8:7:100::/56"]);
    let next = UeIpAddress { ipv6_prefix_length: Some(60), ..delegated(true) };
    let update = UpdateTrafficEndpoint {
        traffic_endpoint_id: 2,
        ue_ip_addresses: vec![next],
        ..UpdateTrafficEndpoint::default()
    };
    let request = SessionModificationRequest {
        update_traffic_endpoints: vec![update],
        ..SessionModificationRequest::default()
    };
    accepted(&lab.modify(session, request));
    assert_eq!(links(&lab, session)[1].as_deref(), Some("2001:db8:7:105::/64"));
    assert_eq!(routes(&lab, session)[1], ["2001:db8:7:100::/60"]);
}

#[test]
fn what_cannot_be_a_route_or_is_not_done_is_refused_by_its_name() {
    let wrong = Cause::RuleCreationModificationFailure;
    let cases = [
        (route("192.168.9.0/33"), wrong, Some(ie::FRAMED_ROUTE)),
        (RawIe { ie: ie::FRAMED_ROUTE, value: vec![0xff; 3] }, wrong, Some(ie::FRAMED_ROUTE)),
        (
            RawIe { ie: ie::FRAMED_IPV6_ROUTE, value: b"10.0.0.0/8".to_vec() },
            wrong,
            Some(ie::FRAMED_IPV6_ROUTE),
        ),
        // Longer than what the data path finds users by.
        (route("2001:db8::/65"), wrong, None),
        // RIP, both ways.
        (
            RawIe { ie: ie::FRAMED_ROUTING, value: vec![0, 0, 0, 3] },
            Cause::ServiceNotSupported,
            Some(ie::FRAMED_ROUTING),
        ),
    ];
    for (carried, cause, offending_ie) in cases {
        let mut lab = Lab::associated();
        let mut request = establishment(77);
        request.create_pdrs[1].pdi.carried.push(carried);
        let refused = answer(&mut lab, request);
        assert_eq!((refused.cause, refused.offending_ie), (cause, offending_ie));
        assert_eq!(refused.failed_rule_id, Some(FailedRuleId::Pdr(2)));
        assert!(lab.desired().is_empty() && lab.node.tunnels() == 0);
    }
    let mut lab = Lab::associated();
    let mut many = establishment(77);
    many.create_pdrs[1].pdi.carried.extend((0..65).map(|net| route(&format!("10.{net}.0.0/16"))));
    assert_eq!(answer(&mut lab, many).cause, Cause::NoResourcesAvailable);
}

/// Routing protocols are not spoken, whoever asks.
#[test]
fn a_traffic_endpoint_that_asks_for_routing_alone_is_refused() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_traffic_endpoints =
        vec![CreateTrafficEndpoint { traffic_endpoint_id: 1, ..CreateTrafficEndpoint::default() }];
    let session = lab.establish(request);
    let carried = vec![RawIe { ie: ie::FRAMED_ROUTING, value: vec![0, 0, 0, 3] }];
    let update = UpdateTrafficEndpoint { traffic_endpoint_id: 1, carried, ..Default::default() };
    let request = SessionModificationRequest { update_traffic_endpoints: vec![update], ..Default::default() };
    let refused = lab.modify(session, request);
    assert_eq!((refused.cause, refused.offending_ie), (Cause::ServiceNotSupported, Some(ie::FRAMED_ROUTING)));
}

/// The data plane knows what all sessions have, and how much room there is.
#[test]
fn what_the_data_plane_has_no_room_for_or_gave_to_another_is_refused_so() {
    for (refusal, cause) in [
        (RefusalCause::Taken, Cause::RuleCreationModificationFailure),
        (RefusalCause::Full, Cause::NoResourcesAvailable),
        (RefusalCause::Unfit, Cause::SystemFailure),
    ] {
        let mut lab = Lab::associated();
        (lab.obedience, lab.refusal) = (Obedience::Refuses, refusal);
        assert_eq!(answer(&mut lab, request()).cause, cause);
        assert!(lab.saved.is_empty() && lab.node.tunnels() == 0);
    }
}

/// The data plane says no more than that it is another's; whose rule asks for it is known here.
#[test]
fn a_rule_that_asks_for_what_another_session_has_is_named() {
    let mut lab = Lab::associated();
    established(&mut lab, request());
    (lab.obedience, lab.refusal) = (Obedience::Refuses, RefusalCause::Taken);
    for (is_route, expected) in [(false, ie::UE_IP_ADDRESS), (true, ie::FRAMED_ROUTE)] {
        let mut other = establishment(78);
        if is_route {
            let pdi = &mut other.create_pdrs[1].pdi;
            pdi.ue_ip_addresses = vec![smf::ue([10, 60, 0, 77].into())];
            pdi.carried.push(route("192.168.9.1/24 10.60.0.77 1"));
        }
        let refused = answer(&mut lab, other);
        assert_eq!(refused.cause, Cause::RuleCreationModificationFailure);
        let blamed = (refused.offending_ie, refused.failed_rule_id);
        assert_eq!(blamed, (Some(expected), Some(FailedRuleId::Pdr(2))));
    }
}

#[test]
fn the_feature_is_advertised() {
    let mut lab = Lab::new(crate::common::config());
    let Body::AssociationSetupResponse(response) = lab.ask(SMF, &Message::node(1, smf::setup(SMF, 5))) else {
        panic!("an answer")
    };
    assert!(response.up_function_features.unwrap().contains(UpFeature::Frrt));
}

//! Users' addresses that we choose.

use crate::common::personas::{accepted, established, rules};
use crate::common::smf::{self, establishment};
use crate::common::{Lab, SMF};
use n4::{Config, UePool};
use pfcp::*;
use rules::{PdrId, Seid};
use std::net::Ipv4Addr;

const CHOOSE: UeIpAddress = UeIpAddress {
    ipv4: None,
    ipv6: None,
    is_destination: false,
    choose_ipv4: true,
    choose_ipv6: false,
    ipv6_prefix_delegation_bits: None,
    ipv6_prefix_length: None,
};

fn pool(name: &str, prefix: &str, network_instance: Option<&str>) -> UePool {
    let network_instance = network_instance.map(str::to_owned);
    UePool { name: name.to_owned(), prefix: prefix.parse().unwrap(), network_instance }
}

fn config() -> Config {
    let ue_pools =
        vec![pool("users", "10.60.0.0/30", Some("internet")), pool("six", "2001:db8:60::/56", None)];
    Config { ue_pools, ..crate::common::config() }
}

/// Both directions ask for an address.
fn asking(cp_seid: u64, address: UeIpAddress) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    request.create_pdrs[0].pdi.ue_ip_addresses = vec![address];
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![UeIpAddress { is_destination: true, ..address }];
    request
}

fn told(created: &[CreatedPdr]) -> Vec<(u16, Option<Ipv4Addr>)> {
    created
        .iter()
        .map(|pdr| (pdr.pdr_id, pdr.ue_ip_addresses.first().and_then(|address| address.ipv4)))
        .collect()
}

fn cause(lab: &mut Lab, request: SessionEstablishmentRequest) -> (Cause, Option<u16>) {
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 900, request))
    else {
        panic!("an answer")
    };
    (response.cause, response.offending_ie)
}

#[test]
fn a_session_gets_one_address_for_all_its_rules() {
    let mut lab = Lab::associated_with(config());
    let (session, created) = established(&mut lab, asking(1, CHOOSE));
    let address = Ipv4Addr::new(10, 60, 0, 1);
    assert_eq!(told(&created), [(1, Some(address)), (2, Some(address))]);
    assert!(created[0].local_f_teid.is_some() && created[1].local_f_teid.is_none());
    let says_destination = |pdr: &CreatedPdr| pdr.ue_ip_addresses[0].is_destination;
    assert!(!created.iter().any(says_destination), "it is for PDIs alone (TS 29.244 8.2.62)");
    assert!(rules(&lab, session).pdrs.iter().all(|pdr| pdr.pdi.ue_ipv4 == Some(address)));
    let (_, created) = established(&mut lab, asking(2, CHOOSE));
    assert_eq!(told(&created)[0].1, Some(Ipv4Addr::new(10, 60, 0, 2)));
    let exhausted = (Cause::AllDynamicAddressesAreOccupied, Some(ie::UE_IP_ADDRESS));
    assert_eq!(cause(&mut lab, asking(3, CHOOSE)), exhausted);
    assert_eq!((lab.node.addresses(), lab.node.sessions(), lab.node.tunnels()), (2, 2, 2));
    lab.delete(session);
    let (_, created) = established(&mut lab, asking(4, CHOOSE));
    assert_eq!(told(&created)[0].1, Some(address));
}

/// As a card with tables of 128 entries sees it: up by TEID, down by address. The rule that asks for the tunnel comes
/// before the one that names the user, or asks for an address.
#[test]
fn chosen_teids_lead_where_their_users_addresses_do() {
    let mut lab = Lab::associated_with(config());
    let given = |address: [u8; 4]| UeIpAddress { ipv4: Some(address.into()), choose_ipv4: false, ..CHOOSE };
    let mut teids = Vec::new();
    for (cp_seid, address) in (1..).zip([CHOOSE, given([10, 99, 1, 2]), given([10, 99, 7, 3]), CHOOSE]) {
        let mut request = asking(cp_seid, address);
        request.create_pdrs[0].pdi.ue_ip_addresses.clear();
        let (session, created) = established(&mut lab, request);
        let user = rules(&lab, session).pdrs[1].pdi.ue_ipv4.unwrap();
        let Some(FTeid::Explicit { teid, .. }) = created[0].local_f_teid else { panic!("{created:?}") };
        let entry = |octets: [u8; 4]| steer::toeplitz(&steer::KEY, &octets) % 128;
        assert_eq!(entry(teid.to_be_bytes()), entry(user.octets()));
        // A tunnel asked for later is of the same user.
        let more = SessionModificationRequest {
            create_pdrs: vec![smf::uplink(7, smf::choose(None))],
            ..Default::default()
        };
        let response = lab.modify(session, more);
        let Some(FTeid::Explicit { teid: later, .. }) = response.created_pdrs[0].local_f_teid else {
            panic!("{response:?}")
        };
        assert_eq!(entry(later.to_be_bytes()), entry(user.octets()));
        teids.extend([teid, later]);
    }
    teids.sort_unstable();
    teids.dedup();
    assert_eq!(teids.len(), 8);
}

#[test]
fn both_families_at_once() {
    let mut lab = Lab::associated_with(config());
    let (session, created) = established(&mut lab, asking(1, UeIpAddress { choose_ipv6: true, ..CHOOSE }));
    let address = created[1].ue_ip_addresses[0];
    assert_eq!(address.ipv4, Some([10, 60, 0, 1].into()));
    let prefix = rules(&lab, session).pdrs[1].pdi.ue_ipv6.unwrap();
    assert_eq!((Some(prefix.network()), prefix.prefix_len()), (address.ipv6, 64));
    assert!("2001:db8:60::/56".parse::<ipnet::Ipv6Net>().unwrap().contains(&prefix));
    assert_eq!(lab.node.addresses(), 2);
}

#[test]
fn later_rules_have_the_same_address_and_a_restart_loses_none() {
    let mut lab = Lab::associated_with(config());
    let (session, _) = established(&mut lab, asking(1, CHOOSE));
    lab.restart();
    assert_eq!(lab.node.addresses(), 1);
    let mut create = smf::downlink(5, None);
    create.pdi.ue_ip_addresses = vec![CHOOSE];
    let response =
        lab.modify(session, SessionModificationRequest { create_pdrs: vec![create], ..Default::default() });
    accepted(&response);
    assert_eq!(told(&response.created_pdrs), [(5, Some([10, 60, 0, 1].into()))]);
    let (_, created) = established(&mut lab, asking(2, CHOOSE));
    assert_eq!(told(&created)[0].1, Some([10, 60, 0, 2].into()));
    lab.delete(session);
    assert_eq!(lab.node.addresses(), 1);
}

#[test]
fn traffic_endpoints_may_ask_for_an_address() {
    let mut lab = Lab::associated_with(config());
    let mut request = establishment(1);
    request.create_traffic_endpoints = vec![CreateTrafficEndpoint {
        traffic_endpoint_id: 2,
        network_instance: Some(NetworkInstance::text("internet")),
        ue_ip_addresses: vec![CHOOSE],
        ..CreateTrafficEndpoint::default()
    }];
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![];
    request.create_pdrs[1].pdi.traffic_endpoint_id = Some(2);
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, request)) else {
        panic!("an answer")
    };
    let [created] = &response.created_traffic_endpoints[..] else { panic!("{response:?}") };
    assert_eq!(created.ue_ip_addresses[0].ipv4, Some([10, 60, 0, 1].into()));
    let session = Seid(response.up_f_seid.unwrap().seid);
    assert_eq!(rules(&lab, session).pdrs[1].pdi.ue_ipv4, Some([10, 60, 0, 1].into()));
}

#[test]
fn an_address_that_is_given_is_nobody_elses() {
    let mut lab = Lab::associated_with(config());
    let given = smf::ue([10, 60, 0, 1].into());
    established(&mut lab, asking(1, given));
    let taken = (Cause::RuleCreationModificationFailure, Some(ie::UE_IP_ADDRESS));
    assert_eq!(cause(&mut lab, asking(2, given)), taken);
    let (session, created) = established(&mut lab, asking(3, CHOOSE));
    assert_eq!(told(&created)[0].1, Some([10, 60, 0, 2].into()));
    assert_eq!(rules(&lab, session).pdrs.len(), 2);
    // Outside of the pools it is the control plane's concern.
    established(&mut lab, asking(4, smf::ue([10, 99, 0, 1].into())));
    assert_eq!(lab.node.addresses(), 2);
}

#[test]
fn a_pool_may_be_named() {
    let pools = vec![pool("a", "10.60.0.0/24", None), pool("b", "10.61.0.0/24", None)];
    let mut lab = Lab::associated_with(Config { ue_pools: pools, ..crate::common::config() });
    let mut request = asking(1, CHOOSE);
    request.create_pdrs[0].ue_ip_address_pool = Some(PoolIdentity(b"b".to_vec()));
    let (_, created) = established(&mut lab, request);
    let all = told(&created);
    assert!(all.len() == 2 && all[0].1 == all[1].1, "{all:?}");
    assert_eq!(all[0].1.map(|address| address.octets()[1]), Some(61));
    let mut request = asking(2, CHOOSE);
    request.create_pdrs[0].ue_ip_address_pool = Some(PoolIdentity(b"c".to_vec()));
    let unknown = (Cause::ServiceNotSupported, Some(ie::UE_IP_ADDRESS_POOL_IDENTITY));
    assert_eq!(cause(&mut lab, request.clone()), unknown);
    let none = (Cause::ServiceNotSupported, Some(ie::UE_IP_ADDRESS));
    assert_eq!(cause(&mut Lab::associated(), request), none, "where there are none, it is not for the name");
    // It is there, and has nothing of the kind.
    let mut request = asking(3, UeIpAddress { choose_ipv4: false, choose_ipv6: true, ..CHOOSE });
    request.create_pdrs[0].ue_ip_address_pool = Some(PoolIdentity(b"b".to_vec()));
    assert_eq!(cause(&mut lab, request), (Cause::ServiceNotSupported, Some(ie::UE_IP_ADDRESS)));
    assert_eq!(lab.node.addresses(), 1);
}

#[test]
fn what_fails_gives_its_address_back() {
    let mut lab = Lab::associated_with(config());
    let mut request = asking(1, CHOOSE);
    request.create_pdrs[1].far_id = Some(40);
    assert_eq!(cause(&mut lab, request).0, Cause::RuleCreationModificationFailure);
    assert_eq!(lab.node.addresses(), 0);
    lab.obedience = crate::common::Obedience::Refuses;
    assert_eq!(cause(&mut lab, asking(2, CHOOSE)).0, Cause::SystemFailure);
    assert_eq!(lab.node.addresses(), 0);
    lab.obedience = crate::common::Obedience::Obeys;
    let (session, _) = established(&mut lab, asking(3, smf::ue([10, 99, 0, 1].into())));
    lab.obedience = crate::common::Obedience::Refuses;
    let mut create = smf::downlink(5, None);
    create.pdi.ue_ip_addresses = vec![CHOOSE];
    lab.modify(session, SessionModificationRequest { create_pdrs: vec![create], ..Default::default() });
    assert_eq!(lab.node.addresses(), 0);
    assert!(rules(&lab, session).pdrs.iter().any(|pdr| pdr.id == PdrId(2)));
}

#[test]
fn the_feature_and_the_pools_are_advertised_if_there_are_any() {
    for (config, pools) in [(config(), 2), (crate::common::config(), 0)] {
        let mut lab = Lab::new(config);
        let Body::AssociationSetupResponse(response) = lab.ask(SMF, &Message::node(1, smf::setup(SMF, 5)))
        else {
            panic!("an answer")
        };
        assert_eq!(response.up_function_features.unwrap().contains(UpFeature::Ueip), pools > 0);
        assert_eq!(response.pools.len(), pools);
        if let [four, six] = &response.pools[..] {
            assert_eq!((&*four.identity.0, four.ip_version), (&b"users"[..], Some(flags::IP_VERSION_V4)));
            assert_eq!(four.network_instance, Some(NetworkInstance::labels("internet")));
            assert_eq!((six.ip_version, &six.network_instance), (Some(flags::IP_VERSION_V6), &None));
        }
    }
    let mut lab = Lab::associated();
    assert_eq!(cause(&mut lab, asking(1, CHOOSE)), (Cause::ServiceNotSupported, Some(ie::UE_IP_ADDRESS)));
}

#[test]
fn prefixes_of_other_lengths_are_refused() {
    let mut lab = Lab::associated_with(config());
    let six = UeIpAddress { choose_ipv4: false, choose_ipv6: true, ipv6_prefix_length: Some(56), ..CHOOSE };
    assert_eq!(cause(&mut lab, asking(1, six)), (Cause::ServiceNotSupported, Some(ie::UE_IP_ADDRESS)));
    established(&mut lab, asking(1, UeIpAddress { ipv6_prefix_length: Some(64), ..six }));
}

#[test]
fn two_thousand_users_come_and_go() {
    let ue_pools = vec![pool("users", "10.60.0.0/16", None)];
    let mut lab = Lab::associated_with(Config { ue_pools, ..crate::common::config() });
    let sessions: Vec<Seid> = (1..=2_000)
        .map(|cp_seid| {
            let request = asking(cp_seid, CHOOSE);
            lab.tell(SMF, &Message::session(0, cp_seid as u32, request));
            lab.sent.clear();
            *lab.in_force.keys().next_back().unwrap()
        })
        .collect();
    assert_eq!(lab.node.addresses(), 2_000);
    let addresses: std::collections::BTreeSet<_> =
        lab.in_force.values().map(|desired| desired.rules.pdrs[1].pdi.ue_ipv4).collect();
    assert_eq!(addresses.len(), 2_000);
    for session in sessions {
        lab.tell(SMF, &Message::session(session.0, 1, SessionDeletionRequest::default()));
        lab.sent.clear();
    }
    assert_eq!((lab.node.addresses(), lab.node.tunnels(), lab.node.sessions()), (0, 0, 0));
}

/// What no rule has any more is free again; what is chosen later is what the session has by then (TS 29.244 5.21.3).
#[test]
fn an_address_that_a_session_leaves_is_free_again() {
    let ue_pools = vec![pool("users", "10.60.0.0/24", None)];
    let mut lab = Lab::associated_with(Config { ue_pools, ..crate::common::config() });
    let mut request = asking(1, CHOOSE);
    request.create_pdrs[0].pdi.ue_ip_addresses.clear();
    let (session, created) = established(&mut lab, request);
    let old = told(&created).into_iter().find_map(|(_, address)| address).unwrap();
    let new = Ipv4Addr::new(10, 60, 0, 200);
    let moves = SessionModificationRequest {
        remove_pdrs: vec![RemovePdr { pdr_id: 2, ..Default::default() }],
        create_pdrs: vec![smf::downlink(3, Some(new))],
        ..Default::default()
    };
    accepted(&lab.modify(session, moves));
    assert_eq!(lab.node.addresses(), 1);
    let mut create = smf::downlink(4, None);
    create.pdi.ue_ip_addresses = vec![CHOOSE];
    let more = SessionModificationRequest { create_pdrs: vec![create], ..Default::default() };
    assert_eq!(told(&lab.modify(session, more).created_pdrs), [(4, Some(new))]);
    // Another session may have the old one, and after a restart, too.
    lab.restart();
    established(&mut lab, asking(2, smf::ue(old)));
    assert_eq!(lab.node.addresses(), 2);
}

/// A change that the data plane refuses gives nothing away.
#[test]
fn an_address_stays_where_a_change_fails() {
    let mut lab = Lab::associated_with(config());
    let mut request = asking(1, CHOOSE);
    request.create_pdrs[0].pdi.ue_ip_addresses.clear();
    let (session, _) = established(&mut lab, request);
    lab.obedience = crate::common::Obedience::Refuses;
    let remove_pdrs = vec![RemovePdr { pdr_id: 2, ..Default::default() }];
    let response = lab.modify(session, SessionModificationRequest { remove_pdrs, ..Default::default() });
    assert!(!response.cause.is_accepted());
    lab.obedience = crate::common::Obedience::Obeys;
    assert_eq!(lab.node.addresses(), 1);
}

/// The rule for what the user sends names the access side's network, which has no pool; the one for what goes to the user
/// names the data network, whose address both get.
#[test]
fn an_address_is_of_the_data_network() {
    let name = |name| Some(NetworkInstance::text(name));
    let ue_pools = vec![pool("users", "10.60.0.0/24", Some("internet"))];
    let mut lab = Lab::associated_with(Config { ue_pools, ..crate::common::config() });
    let mut request = asking(1, CHOOSE);
    request.create_pdrs[0].pdi.network_instance = name("access");
    request.create_pdrs[1].pdi.network_instance = name("internet");
    let (session, created) = established(&mut lab, request);
    let all = told(&created);
    assert!(all.len() == 2 && all[0].1.is_some() && all[0].1 == all[1].1, "{all:?}");
    // The same for rules that come later.
    lab.delete(session);
    assert_eq!(lab.node.addresses(), 0);
    let mut tunnel = establishment(2);
    tunnel.create_pdrs.truncate(1);
    let (session, _) = established(&mut lab, tunnel);
    let mut up = smf::uplink(7, smf::choose(None));
    (up.pdi.ue_ip_addresses, up.pdi.network_instance) = (vec![CHOOSE], name("access"));
    let mut down = smf::downlink(8, None);
    (down.pdi.ue_ip_addresses, down.pdi.network_instance) = (vec![CHOOSE], name("internet"));
    let more = SessionModificationRequest { create_pdrs: vec![up, down], ..Default::default() };
    let response = lab.modify(session, more);
    accepted(&response);
    let all = told(&response.created_pdrs);
    assert!(all.len() == 2 && all[0].1.is_some() && all[0].1 == all[1].1, "{all:?}");
}

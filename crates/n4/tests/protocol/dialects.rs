//! What real control planes ask for, each in its own way.

use crate::common::smf::{self, chosen, downlink, establishment, uplink};
use crate::common::{Lab, SMF};
use pfcp::{
    ApplyAction, Body, Cause, CreateBar, CreateTrafficEndpoint, DestinationInterface, FTeid, FailedRuleId,
    ForwardingParameters, Message, NetworkInstance, OuterHeaderCreation, OuterHeaderRemoval, RawIe,
    SdfFilter, SessionEstablishmentRequest, SessionEstablishmentResponse, SessionModificationRequest,
    SessionModificationResponse, SourceInterface, UpdateFar, UpdateForwardingParameters, UpdatePdr, ie,
};
use rules::{Interface, Rules, Seid};

fn establish(lab: &mut Lab, request: SessionEstablishmentRequest) -> SessionEstablishmentResponse {
    let sequence = lab.trace.len() as u32;
    match lab.ask(SMF, &Message::session(0, sequence, request)) {
        Body::SessionEstablishmentResponse(response) => response,
        other => panic!("{other:?}"),
    }
}

fn modify(lab: &mut Lab, seid: u64, request: SessionModificationRequest) -> SessionModificationResponse {
    let sequence = lab.trace.len() as u32;
    match lab.ask(SMF, &Message::session(seid, sequence, request)) {
        Body::SessionModificationResponse(response) => response,
        other => panic!("{other:?}"),
    }
}

/// The rules that come of a request that must be accepted.
fn rules_of(request: SessionEstablishmentRequest) -> Rules {
    let mut lab = Lab::associated();
    let response = establish(&mut lab, request);
    assert_eq!(response.cause, Cause::RequestAccepted, "{:?}", lab.notes);
    lab.in_force.into_values().next().unwrap().rules.as_ref().clone()
}

#[test]
fn every_way_to_ask_for_an_endpoint_gets_an_ipv4_one() {
    for (ipv4, ipv6, choose_id) in
        [(false, false, None), (true, false, None), (true, true, None), (true, true, Some(5))]
    {
        let mut lab = Lab::associated();
        let mut request = establishment(1);
        request.create_pdrs[0] = uplink(1, FTeid::Choose { ipv4, ipv6, choose_id });
        let response = establish(&mut lab, request);
        assert_ne!(chosen(&response.created_pdrs, 1), 0);
    }
}

/// One TEID at both addresses of the port, where it has both (TS 29.244 8.2.3).
#[test]
fn who_asks_for_both_families_gets_both_where_there_are_both() {
    let ipv6 = "2001:db8:30::2".parse().unwrap();
    for (has_ipv6, asked, expected) in [(true, true, Some(ipv6)), (true, false, None), (false, true, None)] {
        let mut config = crate::common::config();
        config.gtpu[0].ipv6 = Some(ipv6).filter(|_| has_ipv6);
        let ipv4 = config.gtpu[0].ipv4;
        let mut lab = Lab::associated_with(config);
        let choose = FTeid::Choose { ipv4: true, ipv6: asked, choose_id: Some(5) };
        let mut request = establishment(1);
        request.create_pdrs = vec![uplink(1, choose), uplink(2, smf::choose(Some(5)))];
        request.create_traffic_endpoints = vec![CreateTrafficEndpoint {
            traffic_endpoint_id: 1,
            local_f_teid: Some(FTeid::Choose { ipv4: true, ipv6: asked, choose_id: None }),
            ..CreateTrafficEndpoint::default()
        }];
        let response = establish(&mut lab, request);
        let Some(FTeid::Explicit { teid, .. }) = response.created_pdrs[0].local_f_teid else { panic!() };
        let told = |ipv6| Some(FTeid::Explicit { teid, ipv4: Some(ipv4), ipv6 });
        assert_eq!(response.created_pdrs[0].local_f_teid, told(expected));
        assert_eq!(response.created_pdrs[1].local_f_teid, told(None), "who asks for one is told of one");
        let Some(FTeid::Explicit { ipv6, .. }) = response.created_traffic_endpoints[0].local_f_teid else {
            panic!()
        };
        assert_eq!(ipv6, expected);
    }
}

#[test]
fn an_uplink_pdr_without_a_tunnel_would_never_match_and_is_refused() {
    let mut lab = Lab::associated();
    let mut request = establishment(1);
    request.create_pdrs[0].pdi.f_teid = None;
    request.create_pdrs[0].pdi.ue_ip_addresses = vec![smf::ue(smf::UE)];
    let response = establish(&mut lab, request);
    assert_eq!(
        (response.cause, response.offending_ie, response.failed_rule_id),
        (Cause::RuleCreationModificationFailure, Some(ie::F_TEID), Some(FailedRuleId::Pdr(1)))
    );
    assert!(lab.in_force.is_empty() && lab.node.tunnels() == 0);
}

#[test]
fn a_choose_id_is_shared_within_a_request() {
    let mut lab = Lab::associated();
    let mut request = establishment(1);
    let (five, ten) = (smf::choose(Some(5)), smf::choose(Some(10)));
    request.create_pdrs =
        vec![uplink(1, five), uplink(2, five), uplink(3, ten), uplink(4, smf::choose(None))];
    let response = establish(&mut lab, request);
    let teids: Vec<u32> = (1..=4).map(|pdr| chosen(&response.created_pdrs, pdr)).collect();
    assert_eq!(teids[0], teids[1]);
    assert!(teids[1] != teids[2] && teids[2] != teids[3] && teids[1] != teids[3]);
    assert_eq!(lab.node.tunnels(), 3);

    let seid = response.up_f_seid.unwrap().seid;
    let create_pdrs = vec![uplink(9, five)];
    let later = modify(&mut lab, seid, SessionModificationRequest { create_pdrs, ..Default::default() });
    assert!(!teids.contains(&chosen(&later.created_pdrs, 9)));
}

/// Open5GS adds QoS flows so, and the radio sends their packets where it sends all others.
#[test]
fn flows_of_a_pdu_session_share_its_endpoint() {
    let flow = |id| {
        let mut pdr = uplink(id, smf::choose(Some(5)));
        pdr.pdi.qfis = vec![id as u8];
        pdr
    };
    let mut lab = Lab::associated();
    let mut request = establishment(1);
    request.create_pdrs[0] = flow(1);
    let response = establish(&mut lab, request);
    let (seid, teid) = (response.up_f_seid.unwrap().seid, chosen(&response.created_pdrs, 1));
    lab.restart();
    let added = SessionModificationRequest { create_pdrs: vec![flow(9)], ..Default::default() };
    assert_eq!(chosen(&modify(&mut lab, seid, added).created_pdrs, 9), teid);

    // An endpoint without PDRs is nobody's.
    let remove_pdrs = [1, 9].map(|pdr_id| pfcp::RemovePdr { pdr_id, carried: vec![] }).to_vec();
    let without = SessionModificationRequest { remove_pdrs, ..Default::default() };
    assert_eq!(modify(&mut lab, seid, without).cause, Cause::RequestAccepted);
    assert_eq!(lab.node.tunnels(), 0);
    let again = SessionModificationRequest { create_pdrs: vec![flow(9)], ..Default::default() };
    assert_ne!(chosen(&modify(&mut lab, seid, again).created_pdrs, 9), 0);
    assert_eq!(lab.node.tunnels(), 1);
}

/// OMEC says Forwarding Parameters in an Update FAR, too, and means those of an update.
#[test]
fn forwarding_parameters_of_an_update_go_by_either_name() {
    let mut lab = Lab::associated();
    let seid = establish(&mut lab, establishment(1)).up_f_seid.unwrap().seid;
    for teid in [5, 6] {
        let mut request = smf::path_switch(teid);
        let update = &mut request.update_fars[0];
        update.forwarding_parameters = update.update_forwarding_parameters.take();
        let told = update.forwarding_parameters.as_mut().unwrap();
        told.pfcpsm_req_flags = Some(pfcp::flags::PFCPSM_SNDEM);
        assert_eq!(modify(&mut lab, seid, request).cause, Cause::RequestAccepted);
        let forwarding = lab.in_force[&Seid(seid)].rules.fars[1].forwarding.unwrap();
        assert_eq!(forwarding.outer_header_creation.unwrap().teid().unwrap().0, teid);
    }
    assert_eq!(crate::common::personas::end_markers(&lab), [5]);
}

#[test]
fn endpoints_of_removed_rules_are_free_again() {
    let mut lab = Lab::associated();
    let mut request = establishment(1);
    request.create_pdrs.push(uplink(3, smf::given(7)));
    let seid = establish(&mut lab, request.clone()).up_f_seid.unwrap().seid;
    request.cp_f_seid.seid = 2;
    let refused = establish(&mut lab, request.clone());
    assert_eq!(refused.cause, Cause::RuleCreationModificationFailure);
    assert_eq!(refused.failed_rule_id, Some(pfcp::FailedRuleId::Pdr(3)));
    assert_eq!(lab.node.tunnels(), 2);
    let remove_pdrs = vec![pfcp::RemovePdr { pdr_id: 3, carried: vec![] }];
    modify(&mut lab, seid, SessionModificationRequest { remove_pdrs, ..Default::default() });
    assert_eq!(lab.node.tunnels(), 1);
    assert_eq!(establish(&mut lab, request).cause, Cause::RequestAccepted);
}

#[test]
fn network_instances_are_all_the_same_network() {
    for instance in [None, Some(NetworkInstance::text("Internet")), Some(NetworkInstance(vec![0xFF]))] {
        let mut request = establishment(1);
        request.create_pdrs.iter_mut().for_each(|pdr| pdr.pdi.network_instance.clone_from(&instance));
        rules_of(request);
    }
}

#[test]
fn the_users_address_is_where_the_interface_says() {
    for is_destination in [false, true] {
        let mut request = establishment(1);
        let address = pfcp::UeIpAddress { is_destination, ..smf::ue(smf::UE) };
        request.create_pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ip_addresses = vec![address]);
        let rules = rules_of(request);
        assert!(rules.pdrs.iter().all(|pdr| pdr.pdi.ue_ipv4 == Some(smf::UE)));
    }
}

#[test]
fn a_downlink_rule_without_address_means_the_sessions() {
    let mut request = establishment(1);
    request.create_pdrs.push(downlink(3, None));
    assert_eq!(rules_of(request).pdrs[2].pdi.ue_ipv4, Some(smf::UE));

    let mut lab = Lab::associated();
    let seid = establish(&mut lab, establishment(1)).up_f_seid.unwrap().seid;
    let create_pdrs = vec![downlink(3, None)];
    modify(&mut lab, seid, SessionModificationRequest { create_pdrs, ..Default::default() });
    assert_eq!(lab.in_force[&Seid(seid)].rules.pdrs[2].pdi.ue_ipv4, Some(smf::UE));
}

#[test]
fn precedence_may_be_absent_or_0() {
    let mut request = establishment(1);
    request.create_pdrs[0].precedence = None;
    request.create_pdrs[1].precedence = Some(0);
    let rules = rules_of(request);
    assert_eq!((rules.pdrs[0].precedence, rules.pdrs[1].precedence), (u32::MAX, 0));
}

#[test]
fn the_outer_header_is_removed_by_either_word_and_may_come_late() {
    for description in [OuterHeaderRemoval::GTPU_UDP_IPV4, OuterHeaderRemoval::GTPU_UDP_IP] {
        let mut request = establishment(1);
        let removal = OuterHeaderRemoval { description, extension_header_deletion: Some(1) };
        request.create_pdrs[0].outer_header_removal = Some(removal);
        assert!(rules_of(request).pdrs[0].outer_header_removal);
    }
    let mut lab = Lab::associated();
    let mut request = establishment(1);
    request.create_pdrs[0].outer_header_removal = None;
    let seid = establish(&mut lab, request).up_f_seid.unwrap().seid;
    let removal = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IP);
    let update_pdrs =
        vec![UpdatePdr { pdr_id: 1, outer_header_removal: Some(removal), ..Default::default() }];
    let request = SessionModificationRequest { update_pdrs, ..Default::default() };
    assert_eq!(modify(&mut lab, seid, request).cause, Cause::RequestAccepted);
    assert!(lab.in_force[&Seid(seid)].rules.pdrs[0].outer_header_removal);
}

/// Releases of free5GC before 3.4.3 wrote the filters of an uplink classifier from the user on (free5gc #599).
#[test]
fn a_filter_written_from_the_user_on_is_turned_round() {
    for (text, remote) in [
        ("permit out ip from 10.60.0.1 to 10.70.0.0/24", "10.70.0.0/24"),
        ("permit out ip from 10.70.0.0/24 to 10.60.0.1", "10.70.0.0/24"),
        // Either end may be the user's: other users are in that network.
        ("permit out ip from 10.60.0.0/16 to assigned", "10.60.0.0/16"),
        ("permit out ip from 10.60.0.0/16 to 10.60.0.0/24", "10.60.0.0/16"),
    ] {
        let mut request = establishment(1);
        request.create_pdrs[0].pdi.sdf_filters = vec![SdfFilter::flow(text)];
        let filter = rules_of(request).pdrs[0].pdi.sdf_filters[0].clone();
        assert_eq!(
            filter.flow.unwrap().remote.addresses.map(|wanted| wanted.prefix),
            Some(remote.parse().unwrap()),
            "{text}"
        );
    }
    // Later, too, and with the address that another rule has told.
    let mut lab = Lab::associated();
    let seid = establish(&mut lab, establishment(1)).up_f_seid.unwrap().seid;
    let mut branch = uplink(3, smf::given(7));
    branch.pdi.sdf_filters = vec![SdfFilter::flow("permit out ip from 10.60.0.1 to 10.70.0.0/24")];
    let request = SessionModificationRequest { create_pdrs: vec![branch], ..Default::default() };
    assert_eq!(modify(&mut lab, seid, request).cause, Cause::RequestAccepted);
    let flow = lab.in_force[&Seid(seid)].rules.pdrs[2].pdi.sdf_filters[0].flow.clone().unwrap();
    assert_eq!(flow.remote.addresses.map(|wanted| wanted.prefix), Some("10.70.0.0/24".parse().unwrap()));
}

#[test]
fn apply_action_has_one_octet_or_two() {
    let mut request = establishment(1);
    request.create_fars[0].apply_action = ApplyAction::short(2);
    request.create_fars[1].apply_action = ApplyAction::new(1);
    assert_eq!(rules_of(request).fars[0].apply_action, rules::ApplyAction::Forward);
}

/// As OMEC's user plane takes it (omec upf #367). In an update it would stop a user, or nothing: who knows.
#[test]
fn a_far_that_says_nothing_drops_and_no_far_is_told_to_say_nothing() {
    for nothing in [ApplyAction::short(0), ApplyAction::new(0)] {
        let mut lab = Lab::associated();
        let mut request = establishment(1);
        request.create_fars[1].apply_action = nothing;
        let seid = establish(&mut lab, request).up_f_seid.unwrap().seid;
        let action = |lab: &Lab| lab.in_force[&Seid(seid)].rules.fars[1].apply_action;
        assert_eq!(action(&lab), rules::ApplyAction::Drop);
        assert_eq!(modify(&mut lab, seid, smf::path_switch(5)).cause, Cause::RequestAccepted);
        let update = UpdateFar { far_id: 2, apply_action: Some(nothing), ..Default::default() };
        let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
        let refused = modify(&mut lab, seid, request);
        assert_eq!(
            (refused.cause, refused.offending_ie),
            (Cause::MandatoryIeIncorrect, Some(ie::APPLY_ACTION))
        );
        assert_eq!(action(&lab), rules::ApplyAction::Forward);
    }
}

/// The radio side is filled in with zeros until it is known.
#[test]
fn a_tunnel_of_zeros_is_none_yet() {
    let mut lab = Lab::associated();
    let mut request = establishment(1);
    let zeros = OuterHeaderCreation::GtpuIpv4 { teid: 0, address: [0, 0, 0, 0].into() };
    request.create_fars[1].forwarding_parameters = Some(ForwardingParameters {
        outer_header_creation: Some(zeros.clone()),
        ..smf::forwarding(DestinationInterface::Access)
    });
    let seid = establish(&mut lab, request).up_f_seid.unwrap().seid;
    let forwarding = lab.in_force[&Seid(seid)].rules.fars[1].forwarding.unwrap();
    assert_eq!(
        (forwarding.destination_interface, forwarding.outer_header_creation),
        (Interface::Access, None)
    );

    let parameters = UpdateForwardingParameters { outer_header_creation: Some(zeros), ..Default::default() };
    let update = UpdateFar {
        far_id: 2,
        apply_action: Some(ApplyAction::new(ApplyAction::FORW)),
        update_forwarding_parameters: Some(parameters),
        ..Default::default()
    };
    let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
    let refused = modify(&mut lab, seid, request);
    assert_eq!(
        (refused.cause, refused.offending_ie),
        (Cause::MandatoryIeIncorrect, Some(ie::OUTER_HEADER_CREATION))
    );
    assert_eq!(modify(&mut lab, seid, smf::path_switch(5)).cause, Cause::RequestAccepted);
}

#[test]
fn the_operators_own_network_lies_beside_the_core() {
    let mut request = establishment(1);
    request.create_fars[0].forwarding_parameters = Some(smf::forwarding(DestinationInterface::SgiLan));
    request.create_pdrs[1].pdi.source_interface = SourceInterface::SgiLan;
    let rules = rules_of(request);
    assert_eq!(rules.fars[0].forwarding.unwrap().destination_interface, Interface::SgiLan);
    assert_eq!(rules.pdrs[1].pdi.source_interface, Interface::SgiLan);
}

#[test]
fn a_whole_pdi_sent_again_keeps_its_endpoint() {
    let mut lab = Lab::associated();
    let response = establish(&mut lab, establishment(1));
    let seid = response.up_f_seid.unwrap().seid;
    let teid = chosen(&response.created_pdrs, 1);
    for f_teid in [smf::choose(None), smf::given(teid)] {
        let pdi = Some(uplink(1, f_teid).pdi);
        let update_pdrs = vec![UpdatePdr { pdr_id: 1, pdi, ..Default::default() }];
        let answer = modify(&mut lab, seid, SessionModificationRequest { update_pdrs, ..Default::default() });
        assert_eq!((answer.cause, answer.created_pdrs.len()), (Cause::RequestAccepted, 0));
        assert_eq!(lab.in_force[&Seid(seid)].rules.pdrs[0].pdi.f_teid.unwrap().teid.0, teid);
    }
    assert_eq!(lab.node.tunnels(), 1);
}

#[test]
fn several_qers_of_a_rule_are_kept_and_taken_off_by_a_null_id() {
    let mut lab = Lab::associated();
    let mut request = establishment(1);
    request.create_qers = vec![smf::qer(1), smf::qer(2)];
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.qer_ids = vec![1, 2]);
    let seid = establish(&mut lab, request).up_f_seid.unwrap().seid;
    assert_eq!(lab.in_force[&Seid(seid)].rules.pdrs[0].qers.len(), 2);
    let null = RawIe { ie: ie::QER_ID, value: vec![] };
    let update_pdrs = vec![UpdatePdr { pdr_id: 1, carried: vec![null], ..Default::default() }];
    modify(&mut lab, seid, SessionModificationRequest { update_pdrs, ..Default::default() });
    let rules = &lab.in_force[&Seid(seid)].rules;
    assert_eq!((rules.pdrs[0].qers.len(), rules.pdrs[1].qers.len()), (0, 2));
}

/// As some senders close names and the texts of PFDs.
#[test]
fn a_zero_closes_the_text_of_a_filter() {
    let with = |end: &str| {
        let mut request = establishment(1);
        let flow_description = Some(format!("permit out ip from 198.51.100.1 to assigned{end}"));
        request.create_pdrs[1].pdi.sdf_filters = vec![SdfFilter { flow_description, ..SdfFilter::default() }];
        request
    };
    assert_eq!(rules_of(with("\0")).pdrs, rules_of(with("")).pdrs);
    let response = establish(&mut Lab::associated(), with("\0\0"));
    assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
}

#[test]
fn what_only_informs_is_accepted() {
    let mut request = establishment(1);
    request.create_bar = Some(CreateBar { bar_id: 1, ..CreateBar::default() });
    request.create_fars[1].bar_id = Some(1);
    request.pfcpse_req_flags = Some(pfcp::flags::PFCPSE_RESTI);
    request.carried = vec![
        RawIe { ie: ie::RAT_TYPE, value: vec![6] },
        RawIe { ie: ie::RECOVERY_TIME_STAMP, value: vec![0; 4] },
        RawIe { ie: 399, value: vec![] },
        RawIe { ie: 0x8001, value: vec![0, 1, 2] },
    ];
    let odd = vec![RawIe { ie: 0x8001, value: vec![0, 1, 2] }, RawIe { ie: ie::CAUSE, value: vec![] }];
    request.create_pdrs.iter_mut().for_each(|pdr| {
        pdr.carried.clone_from(&odd);
        pdr.pdi.carried.clone_from(&odd);
        pdr.pdi.interface_type = Some(11);
    });
    request.create_fars.iter_mut().for_each(|far| far.carried.clone_from(&odd));
    rules_of(request);
}

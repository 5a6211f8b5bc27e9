//! What is not done is refused by name, and changes nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::smf::{self, establishment, path_switch};
use common::{Lab, SMF};
use pfcp::*;

type Case = (u16, fn(&mut SessionEstablishmentRequest));
type Nonsense = (FailedRuleId, fn(&mut SessionEstablishmentRequest));
type Change = (u16, fn(&mut SessionModificationRequest));

fn carry(list: &mut Vec<RawIe>, number: u16) {
    list.push(RawIe { ie: number, value: vec![1] });
}

const RATES: Rates = Rates { uplink_kbps: 1_000, downlink_kbps: 1_000 };

fn rates_in(request: &mut SessionEstablishmentRequest, change: fn(&mut CreateQer)) {
    let mut qer = smf::qer(1);
    change(&mut qer);
    request.create_qers.push(qer);
}

fn act(request: &mut SessionEstablishmentRequest, flags: u16) {
    request.create_fars[1].apply_action = ApplyAction::new(flags);
}

fn parameters(request: &mut SessionEstablishmentRequest) -> &mut ForwardingParameters {
    request.create_fars[0].forwarding_parameters.as_mut().unwrap()
}

const ESTABLISHMENTS: &[Case] = &[
    (ie::CREATE_URR, |r| {
        r.create_urrs.push(CreateUrr { urr_id: 1, reporting_triggers: vec![2, 0], ..CreateUrr::default() });
    }),
    (ie::URR_ID, |r| r.create_pdrs[0].urr_ids.push(1)),
    (ie::MBR, |r| rates_in(r, |qer| qer.mbr = Some(RATES))),
    (ie::GBR, |r| rates_in(r, |qer| qer.gbr = Some(RATES))),
    (ie::RQI, |r| rates_in(r, |qer| qer.rqi = Some(1))),
    (ie::PACKET_RATE, |r| rates_in(r, |qer| carry(&mut qer.carried, ie::PACKET_RATE))),
    (ie::SDF_FILTER, |r| r.create_pdrs[1].pdi.sdf_filters.push(SdfFilter::default())),
    (ie::APPLICATION_ID, |r| r.create_pdrs[1].pdi.application_id = Some(b"web".to_vec())),
    (ie::TRAFFIC_ENDPOINT_ID, |r| r.create_pdrs[0].pdi.traffic_endpoint_id = Some(1)),
    (ie::CREATE_TRAFFIC_ENDPOINT, |r| carry(&mut r.carried, ie::CREATE_TRAFFIC_ENDPOINT)),
    (ie::ETHERNET_PACKET_FILTER, |r| carry(&mut r.create_pdrs[0].pdi.carried, ie::ETHERNET_PACKET_FILTER)),
    (ie::FRAMED_ROUTE, |r| carry(&mut r.create_pdrs[1].pdi.carried, ie::FRAMED_ROUTE)),
    (ie::ACTIVATION_TIME, |r| carry(&mut r.create_pdrs[1].carried, ie::ACTIVATION_TIME)),
    (ie::SOURCE_INTERFACE, |r| r.create_pdrs[1].pdi.source_interface = SourceInterface::CpFunction),
    (ie::F_TEID, |r| {
        let f_teid = FTeid::Explicit { teid: 5, ipv4: None, ipv6: Some([0; 16].into()) };
        r.create_pdrs[0].pdi.f_teid = Some(f_teid);
    }),
    (ie::F_TEID, |r| {
        r.create_pdrs[0].pdi.f_teid = Some(FTeid::Choose { ipv4: false, ipv6: true, choose_id: None });
    }),
    (ie::UE_IP_ADDRESS, |r| {
        let ipv6 = UeIpAddress { ipv6: Some([1; 16].into()), ..UeIpAddress::default() };
        r.create_pdrs[1].pdi.ue_ip_addresses.push(ipv6);
    }),
    (ie::UE_IP_ADDRESS, |r| {
        let choose = UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() };
        r.create_pdrs[1].pdi.ue_ip_addresses = vec![choose];
    }),
    (ie::OUTER_HEADER_REMOVAL, |r| r.create_pdrs[0].outer_header_removal = Some(OuterHeaderRemoval::new(1))),
    (ie::APPLY_ACTION, |r| act(r, ApplyAction::BUFF | ApplyAction::NOCP)),
    (ie::APPLY_ACTION, |r| act(r, ApplyAction::BUFF)),
    (ie::APPLY_ACTION, |r| act(r, ApplyAction::NOCP)),
    (ie::APPLY_ACTION, |r| act(r, ApplyAction::FORW | ApplyAction::DUPL)),
    (ie::DUPLICATING_PARAMETERS, |r| carry(&mut r.create_fars[0].carried, ie::DUPLICATING_PARAMETERS)),
    (ie::DESTINATION_INTERFACE, |r| parameters(r).destination_interface = DestinationInterface::CpFunction),
    (ie::OUTER_HEADER_CREATION, |r| {
        let creation = OuterHeaderCreation::GtpuIpv6 { teid: 1, address: [1; 16].into() };
        parameters(r).outer_header_creation = Some(creation);
    }),
    (ie::OUTER_HEADER_CREATION, |r| {
        parameters(r).outer_header_creation = Some(OuterHeaderCreation::Other(vec![4, 0, 10, 0, 0, 1, 0, 7]));
    }),
    (ie::TRANSPORT_LEVEL_MARKING, |r| parameters(r).transport_level_marking = Some(0x28FC)),
    (ie::REDIRECT_INFORMATION, |r| carry(&mut parameters(r).carried, ie::REDIRECT_INFORMATION)),
    (ie::HEADER_ENRICHMENT, |r| carry(&mut parameters(r).carried, ie::HEADER_ENRICHMENT)),
    (ie::FORWARDING_POLICY, |r| carry(&mut parameters(r).carried, ie::FORWARDING_POLICY)),
    (ie::PDN_TYPE, |r| r.pdn_type = Some(PdnType::Ethernet)),
    (ie::PDN_TYPE, |r| r.pdn_type = Some(PdnType::Ipv4v6)),
    (ie::USER_PLANE_INACTIVITY_TIMER, |r| carry(&mut r.carried, ie::USER_PLANE_INACTIVITY_TIMER)),
    (ie::TRACE_INFORMATION, |r| carry(&mut r.carried, ie::TRACE_INFORMATION)),
];

const MODIFICATIONS: &[Change] = &[
    (ie::QUERY_URR, |r| carry(&mut r.carried, ie::QUERY_URR)),
    (ie::NODE_ID, |r| carry(&mut r.carried, ie::NODE_ID)),
    (ie::UPDATE_URR, |r| r.update_urrs.push(UpdateUrr::default())),
    (ie::REMOVE_URR, |r| r.remove_urrs.push(RemoveUrr::default())),
    (ie::PFCPSMREQ_FLAGS, |r| r.pfcpsm_req_flags = Some(flags::PFCPSM_SNDEM)),
    (ie::PFCPSMREQ_FLAGS, |r| {
        let parameters = r.update_fars[0].update_forwarding_parameters.as_mut().unwrap();
        parameters.pfcpsm_req_flags = Some(flags::PFCPSM_SNDEM);
    }),
    (ie::OUTER_HEADER_CREATION, |r| {
        let parameters = r.update_fars[0].update_forwarding_parameters.as_mut().unwrap();
        parameters.outer_header_creation = None;
        parameters.carried.push(RawIe { ie: ie::OUTER_HEADER_CREATION, value: vec![] });
    }),
    (ie::APPLY_ACTION, |r| r.update_fars[0].apply_action = Some(ApplyAction::new(ApplyAction::BUFF))),
    (ie::URR_ID, |r| {
        r.update_pdrs.push(UpdatePdr { pdr_id: 1, urr_ids: vec![1], ..UpdatePdr::default() });
    }),
    (ie::MBR, |r| r.update_qers.push(UpdateQer { qer_id: 1, mbr: Some(RATES), ..UpdateQer::default() })),
];

#[test]
fn establishments_are_refused_by_name_and_leave_nothing() {
    for (at, (ie, change)) in ESTABLISHMENTS.iter().enumerate() {
        let mut lab = Lab::associated();
        let mut request = establishment(77);
        change(&mut request);
        lab.tell(SMF, &Message::session(0, 1, request));
        let answer = lab.answer(1);
        assert_eq!(answer.seid, Some(77));
        let Body::SessionEstablishmentResponse(response) = answer.body else { panic!("{answer:?}") };
        let told = (response.cause, response.offending_ie);
        assert_eq!(told, (Cause::ServiceNotSupported, Some(*ie)), "case {at}");
        assert!(response.up_f_seid.is_none() && response.created_pdrs.is_empty());
        assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.in_force.len()), (0, 0, 0), "case {at}");
    }
}

#[test]
fn modifications_are_refused_by_name_and_change_nothing() {
    let mut lab = Lab::associated();
    let Body::SessionEstablishmentResponse(response) =
        lab.ask(SMF, &Message::session(0, 1, establishment(77)))
    else {
        panic!("an answer")
    };
    let seid = response.up_f_seid.unwrap().seid;
    let before = (lab.desired(), lab.node.tunnels());
    for (at, (ie, change)) in MODIFICATIONS.iter().enumerate() {
        let mut request = path_switch(5);
        request.create_pdrs.push(smf::uplink(9, smf::choose(None)));
        change(&mut request);
        let sequence = 2 + at as u32;
        lab.tell(SMF, &Message::session(seid, sequence, request));
        let answer = lab.answer(sequence);
        assert_eq!(answer.seid, Some(77));
        let Body::SessionModificationResponse(response) = answer.body else { panic!("{answer:?}") };
        let told = (response.cause, response.offending_ie);
        assert_eq!(told, (Cause::ServiceNotSupported, Some(*ie)), "case {at}");
    }
    assert_eq!((lab.desired(), lab.node.tunnels()), before);
}

#[test]
fn predefined_rules_are_unknown() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_pdrs[0].activate_predefined_rules.push(b"gold".to_vec());
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, request)) else {
        panic!("an answer")
    };
    assert_eq!(response.cause, Cause::UnknownPredefinedRule);
}

#[test]
fn rules_that_make_no_sense_are_named() {
    let cases: [Nonsense; 4] = [
        (FailedRuleId::Pdr(2), |r| r.create_pdrs[1].far_id = Some(40)),
        (FailedRuleId::Pdr(1), |r| r.create_pdrs[0].qer_ids.push(40)),
        (FailedRuleId::Far(1), |r| r.create_fars[0].forwarding_parameters = None),
        (FailedRuleId::Pdr(1), |r| r.create_pdrs[1].pdr_id = 1),
    ];
    for (rule, change) in cases {
        let mut lab = Lab::associated();
        let mut request = establishment(77);
        change(&mut request);
        let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, request))
        else {
            panic!("an answer")
        };
        assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
        assert_eq!(response.failed_rule_id, Some(rule));
        assert_eq!(lab.node.tunnels(), 0);
    }
}

#[test]
fn a_rule_without_far_lacks_a_conditional_ie() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_pdrs[0].far_id = None;
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, request)) else {
        panic!("an answer")
    };
    assert_eq!((response.cause, response.offending_ie), (Cause::ConditionalIeMissing, Some(ie::FAR_ID)));
}

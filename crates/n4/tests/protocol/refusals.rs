//! What is not done is refused by name, and changes nothing.

use crate::common::personas::accepted;
use crate::common::smf::{self, establishment, path_switch};
use crate::common::{Lab, SMF};
use pfcp::*;

type Case = (u16, fn(&mut SessionEstablishmentRequest));
type Change = (u16, fn(&mut SessionModificationRequest));

fn carry(list: &mut Vec<RawIe>, number: u16) {
    list.push(RawIe { ie: number, value: vec![1] });
}

fn qer_in(request: &mut SessionEstablishmentRequest, change: fn(&mut CreateQer)) {
    let mut qer = smf::qer(1);
    change(&mut qer);
    request.create_qers.push(qer);
}

/// A URR that would be accepted.
fn urr() -> CreateUrr {
    CreateUrr {
        urr_id: 1,
        measurement_method: flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(2),
        volume_threshold: Some(Volumes { total: Some(1), ..Volumes::default() }),
        ..CreateUrr::default()
    }
}

fn packet_rate(request: &mut SessionEstablishmentRequest, value: &[u8]) {
    let carried = vec![RawIe { ie: ie::PACKET_RATE, value: value.to_vec() }];
    request.create_qers.push(CreateQer { carried, ..smf::qer(1) });
}

fn urr_in(request: &mut SessionEstablishmentRequest, change: fn(&mut CreateUrr)) {
    let mut urr = urr();
    change(&mut urr);
    request.create_urrs.push(urr);
}

fn act(request: &mut SessionEstablishmentRequest, flags: u16) {
    request.create_fars[1].apply_action = ApplyAction::new(flags);
}

fn parameters(request: &mut SessionEstablishmentRequest) -> &mut ForwardingParameters {
    request.create_fars[0].forwarding_parameters.as_mut().unwrap()
}

const ESTABLISHMENTS: &[Case] = &[
    (ie::REPORTING_TRIGGERS, |r| urr_in(r, |urr| urr.reporting_triggers = ReportingTriggers::new(1 << 10))),
    (ie::REPORTING_TRIGGERS, |r| urr_in(r, |urr| urr.reporting_triggers = ReportingTriggers::new(1 << 17))),
    (ie::MEASUREMENT_INFORMATION, |r| urr_in(r, |urr| urr.measurement_information = Some(1 << 7))),
    (ie::TIME_QUOTA_MECHANISM, |r| urr_in(r, |urr| carry(&mut urr.carried, ie::TIME_QUOTA_MECHANISM))),
    (ie::AGGREGATED_URRS, |r| urr_in(r, |urr| carry(&mut urr.carried, ie::AGGREGATED_URRS))),
    (ie::NUMBER_OF_REPORTS, |r| urr_in(r, |urr| carry(&mut urr.carried, ie::NUMBER_OF_REPORTS))),
    // With exception reports, which we cannot tell from other packets.
    (ie::PACKET_RATE, |r| {
        qer_in(r, |qer| qer.carried.push(RawIe { ie: ie::PACKET_RATE, value: vec![0b101, 0, 0, 9, 0, 1] }));
    }),
    (ie::DL_FLOW_LEVEL_MARKING, |r| qer_in(r, |qer| carry(&mut qer.carried, ie::DL_FLOW_LEVEL_MARKING))),
    (ie::LOCAL_INGRESS_TUNNEL, |r| {
        r.create_traffic_endpoints.push(CreateTrafficEndpoint::default());
        carry(&mut r.create_traffic_endpoints[0].carried, ie::LOCAL_INGRESS_TUNNEL);
    }),
    (ie::FRAMED_ROUTING, |r| carry(&mut r.create_pdrs[1].pdi.carried, ie::FRAMED_ROUTING)),
    (ie::ACTIVATION_TIME, |r| carry(&mut r.create_pdrs[1].carried, ie::ACTIVATION_TIME)),
    // The control plane's packets come in tunnels only.
    (ie::SOURCE_INTERFACE, |r| r.create_pdrs[1].pdi.source_interface = SourceInterface::CpFunction),
    (ie::SOURCE_INTERFACE, |r| r.create_pdrs[1].pdi.source_interface = SourceInterface::Other(4)),
    (ie::F_TEID, |r| {
        let f_teid = FTeid::Explicit { teid: 5, ipv4: None, ipv6: Some([0; 16].into()) };
        r.create_pdrs[0].pdi.f_teid = Some(f_teid);
    }),
    (ie::F_TEID, |r| {
        r.create_pdrs[0].pdi.f_teid = Some(FTeid::Choose { ipv4: false, ipv6: true, choose_id: None });
    }),
    (ie::UE_IP_ADDRESS, |r| {
        let other = smf::ue([10, 60, 9, 9].into());
        r.create_pdrs[1].pdi.ue_ip_addresses.push(other);
    }),
    (ie::UE_IP_ADDRESS, |r| {
        let choose = UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() };
        r.create_pdrs[1].pdi.ue_ip_addresses = vec![choose];
    }),
    (ie::OUTER_HEADER_REMOVAL, |r| r.create_pdrs[0].outer_header_removal = Some(OuterHeaderRemoval::new(2))),
    (ie::APPLY_ACTION, |r| act(r, ApplyAction::DROP | ApplyAction::DFRT)),
    (ie::APPLY_ACTION, |r| act(r, ApplyAction::DROP | 1 << 10)),
    (ie::DESTINATION_INTERFACE, |r| parameters(r).destination_interface = DestinationInterface::CpFunction),
    (ie::DESTINATION_INTERFACE, |r| parameters(r).destination_interface = DestinationInterface::LiFunction),
    (ie::OUTER_HEADER_CREATION, |r| {
        parameters(r).outer_header_creation = Some(OuterHeaderCreation::Other(vec![16, 0, 10, 0, 0, 1]));
    }),
    // GTP-U is served over IPv4 only.
    (ie::OUTER_HEADER_CREATION, |r| parameters(r).outer_header_creation = Some(OVER_IPV6)),
    (ie::OUTER_HEADER_CREATION, |r| {
        r.create_fars[0].duplicating_parameters = vec![DuplicatingParameters {
            destination_interface: DestinationInterface::LiFunction,
            outer_header_creation: Some(OVER_IPV6),
            transport_level_marking: None,
            carried: vec![],
        }];
    }),
    // A SIP URI.
    (ie::REDIRECT_INFORMATION, |r| {
        let to = [&[3, 0, 7][..], b"sip:a@b"].concat();
        parameters(r).redirect_information = Some(RedirectInformation::Other(to));
    }),
    (ie::HEADER_ENRICHMENT, |r| carry(&mut parameters(r).carried, ie::HEADER_ENRICHMENT)),
    (ie::PFCPSEREQ_FLAGS, |r| r.pfcpse_req_flags = Some(flags::PFCPSE_SUMPC)),
    (ie::PDN_TYPE, |r| r.pdn_type = Some(PdnType::NonIp)),
    (ie::TRACE_INFORMATION, |r| carry(&mut r.carried, ie::TRACE_INFORMATION)),
];

const OVER_IPV6: OuterHeaderCreation =
    OuterHeaderCreation::GtpuIpv6 { teid: 5, address: std::net::Ipv6Addr::LOCALHOST };

const MODIFICATIONS: &[Change] = &[
    (ie::REPORTING_TRIGGERS, |r| {
        let reporting_triggers = Some(ReportingTriggers::new(1 << 10));
        r.update_urrs.push(UpdateUrr { urr_id: 1, reporting_triggers, ..UpdateUrr::default() });
    }),
    (ie::ETHERNET_CONTEXT_INFORMATION, |r| carry(&mut r.carried, ie::ETHERNET_CONTEXT_INFORMATION)),
    (ie::TIME_QUOTA_MECHANISM, |r| {
        r.create_urrs.push(urr());
        carry(&mut r.create_urrs[0].carried, ie::TIME_QUOTA_MECHANISM);
    }),
    (ie::APPLY_ACTION, |r| r.update_fars[0].apply_action = Some(ApplyAction::new(ApplyAction::IPMA))),
    (ie::OUTER_HEADER_CREATION, |r| {
        let to = r.update_fars[0].update_forwarding_parameters.as_mut().unwrap();
        to.outer_header_creation = Some(OVER_IPV6);
    }),
    (ie::PROXYING, |r| {
        let to = r.update_fars[0].update_forwarding_parameters.as_mut().unwrap();
        carry(&mut to.carried, ie::PROXYING);
    }),
    (ie::DL_FLOW_LEVEL_MARKING, |r| {
        r.update_qers.push(UpdateQer { qer_id: 1, ..UpdateQer::default() });
        carry(&mut r.update_qers[0].carried, ie::DL_FLOW_LEVEL_MARKING);
    }),
    (ie::PFCPSMREQ_FLAGS, |r| r.pfcpsm_req_flags = Some(flags::PFCPSM_SUMPC)),
    (ie::PFCPSMREQ_FLAGS, |r| r.pfcpsm_req_flags = Some(flags::PFCPSM_RUMUC)),
    // DETEID, of a later release.
    (ie::PFCPSMREQ_FLAGS, |r| r.pfcpsm_req_flags = Some(flags::PFCPSM_QAURR | 1 << 5)),
    (ie::QUERY_PACKET_RATE_STATUS, |r| carry(&mut r.carried, ie::QUERY_PACKET_RATE_STATUS)),
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

type Blamed = ((Cause, Option<u16>, Option<FailedRuleId>), fn(&mut SessionEstablishmentRequest));

fn told(request: SessionEstablishmentRequest) -> ((Cause, Option<u16>, Option<FailedRuleId>), Lab) {
    let mut lab = Lab::associated();
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, request)) else {
        panic!("an answer")
    };
    ((response.cause, response.offending_ie, response.failed_rule_id), lab)
}

#[test]
fn what_makes_no_sense_is_named_and_leaves_nothing() {
    const NO_RULE: Cause = Cause::RuleCreationModificationFailure;
    let cases: &[Blamed] = &[
        ((NO_RULE, None, Some(FailedRuleId::Pdr(2))), |r| r.create_pdrs[1].far_id = Some(40)),
        ((NO_RULE, None, Some(FailedRuleId::Pdr(1))), |r| r.create_pdrs[0].qer_ids.push(40)),
        ((NO_RULE, None, Some(FailedRuleId::Pdr(1))), |r| r.create_pdrs[0].urr_ids.push(40)),
        ((NO_RULE, None, Some(FailedRuleId::Far(2))), |r| r.create_fars[1].bar_id = Some(9)),
        ((NO_RULE, None, Some(FailedRuleId::Pdr(1))), |r| r.create_pdrs[1].pdr_id = 1),
        ((NO_RULE, None, Some(FailedRuleId::Far(1))), |r| r.create_fars[1].far_id = 1),
        ((NO_RULE, None, Some(FailedRuleId::Qer(1))), |r| r.create_qers = vec![smf::qer(1), smf::qer(1)]),
        ((NO_RULE, None, Some(FailedRuleId::Urr(1))), |r| r.create_urrs = vec![urr(), urr()]),
        ((NO_RULE, None, Some(FailedRuleId::Urr(1))), |r| urr_in(r, |urr| urr.linked_urr_ids.push(9))),
        ((NO_RULE, None, Some(FailedRuleId::Urr(1))), |r| urr_in(r, |urr| urr.quota_far_id = Some(40))),
        ((NO_RULE, Some(ie::SDF_FILTER), Some(FailedRuleId::Pdr(2))), |r| {
            let flow_description = Some("deny out ip from any to any".to_owned());
            r.create_pdrs[1].pdi.sdf_filters.push(SdfFilter { flow_description, ..SdfFilter::default() });
        }),
        ((Cause::ConditionalIeMissing, Some(ie::MEASUREMENT_PERIOD), None), |r| {
            urr_in(r, |urr| urr.reporting_triggers = ReportingTriggers::new(1));
        }),
        ((Cause::ConditionalIeMissing, Some(ie::DUPLICATING_PARAMETERS), None), |r| {
            act(r, ApplyAction::FORW | ApplyAction::DUPL);
        }),
        ((Cause::MandatoryIeIncorrect, Some(ie::APPLY_ACTION), None), |r| act(r, 3)),
        ((Cause::MandatoryIeIncorrect, Some(ie::APPLY_ACTION), None), |r| {
            act(r, ApplyAction::FORW | ApplyAction::NOCP);
        }),
        // No such unit of time; and a number cut short.
        ((Cause::MandatoryIeIncorrect, Some(ie::PACKET_RATE), None), |r| packet_rate(r, &[1, 5, 0, 9])),
        ((Cause::MandatoryIeIncorrect, Some(ie::PACKET_RATE), None), |r| packet_rate(r, &[3, 0, 0, 9, 0, 9])),
        ((Cause::MandatoryIeIncorrect, Some(ie::F_TEID), None), |r| {
            r.create_pdrs[0].pdi.f_teid = Some(smf::given(0));
        }),
        ((Cause::InvalidForwardingPolicy, Some(ie::FORWARDING_POLICY), None), |r| {
            let name = RawIe { ie: ie::FORWARDING_POLICY, value: b"\x04MEC1".to_vec() };
            parameters(r).carried.push(name);
        }),
        (
            (Cause::UnknownPredefinedRule, Some(ie::ACTIVATE_PREDEFINED_RULES), Some(FailedRuleId::Pdr(1))),
            |r| {
                r.create_pdrs[0].activate_predefined_rules.push(b"gold".to_vec());
            },
        ),
    ];
    for (at, (expected, change)) in cases.iter().enumerate() {
        let mut request = establishment(77);
        change(&mut request);
        let (told, lab) = told(request);
        assert_eq!(told, *expected, "case {at}");
        assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.in_force.len()), (0, 0, 0), "case {at}");
    }
}

/// TS 29.244 8.2.40, EVENT: a number of events means nothing where none are measured.
#[test]
fn numbers_of_events_are_refused_where_events_are_not_measured() {
    let event = |change: fn(&mut CreateUrr)| {
        let mut rule = urr();
        change(&mut rule);
        rule
    };
    let time = |subsequent_event_quota| AdditionalMonitoringTime {
        subsequent_event_quota,
        ..AdditionalMonitoringTime::default()
    };
    let cases = [
        event(|urr| urr.reporting_triggers = ReportingTriggers::new(ReportingTriggers::EVETH)),
        event(|urr| urr.reporting_triggers = ReportingTriggers::new(ReportingTriggers::EVEQU)),
        event(|urr| urr.event_threshold = Some(1)),
        event(|urr| urr.event_quota = Some(0)),
        event(|urr| (urr.monitoring_time, urr.subsequent_event_threshold) = (Some(9), Some(1))),
        CreateUrr { additional_monitoring_times: vec![time(Some(2))], ..urr() },
    ];
    let refused = (Cause::MandatoryIeIncorrect, Some(ie::MEASUREMENT_METHOD), Some(FailedRuleId::Urr(1)));
    for (at, rule) in cases.into_iter().enumerate() {
        for (method, expected) in [
            (rule.measurement_method, refused),
            (flags::METHOD_EVENT, (Cause::RequestAccepted, None, None)),
            (flags::METHOD_EVENT | flags::METHOD_VOLUM, (Cause::RequestAccepted, None, None)),
        ] {
            let create_urrs = vec![CreateUrr { measurement_method: method, ..rule.clone() }];
            let request = SessionEstablishmentRequest { create_urrs, ..establishment(77) };
            assert_eq!(told(request).0, expected, "case {at}");
        }
    }
}

#[test]
fn more_urrs_than_can_be_told_of_are_refused() {
    let mut request = establishment(77);
    request.create_urrs = (1..=250).map(|urr_id| CreateUrr { urr_id, ..urr() }).collect();
    assert_eq!(told(request.clone()).0.0, Cause::RequestAccepted);
    request.create_urrs.push(CreateUrr { urr_id: 251, ..urr() });
    let excess = Some(FailedRuleId::Urr(251));
    assert_eq!(told(request).0, (Cause::NoResourcesAvailable, None, excess));
}

/// What one session has is told the data plane in one piece, over a link that is everybody's: modifications do not add up to
/// more than that.
#[test]
fn rules_that_are_too_long_together_are_refused_and_the_session_stays() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(77));
    let fars = |batch: u32| {
        let url = format!("http://portal.example/{}", "x".repeat(950));
        let far = |id| {
            let mut far = smf::far(id, ApplyAction::FORW, Some(smf::forwarding(DestinationInterface::Core)));
            let to = far.forwarding_parameters.as_mut().unwrap();
            to.redirect_information = Some(RedirectInformation::Url(url.clone()));
            far
        };
        let create_fars = (100 * batch..100 * batch + 50).map(far).collect();
        SessionModificationRequest { create_fars, ..Default::default() }
    };
    let refused = (1..40).find_map(|batch| {
        let before = (lab.desired()[&session].rules.clone(), lab.told.len());
        let answer = lab.modify(session, fars(batch));
        (!answer.cause.is_accepted()).then_some((answer.cause, before, batch))
    });
    let (cause, (rules, told), batch) = refused.unwrap();
    assert_eq!((cause, batch > 10), (Cause::NoResourcesAvailable, true));
    assert_eq!(lab.desired()[&session].rules, rules);
    let fits = |order: &n4::Output| match order {
        n4::Output::Put(desired) => dplink::frame::fits(desired),
        _ => true,
    };
    assert!(lab.told[told..].iter().all(fits));
    assert_eq!(lab.in_force, lab.desired());
    assert!(lab.modify(session, path_switch(5)).cause.is_accepted());
}

/// TS 29.244 table 7.5.2.3-1: where packets go is said where they are forwarded.
#[test]
fn a_far_that_forwards_says_where() {
    let missing = |ie| (Cause::ConditionalIeMissing, Some(ie), Some(FailedRuleId::Far(2)));
    let mut request = establishment(77);
    request.create_fars[1] = smf::far(2, ApplyAction::FORW, None);
    assert_eq!(told(request.clone()).0, missing(ie::FORWARDING_PARAMETERS));
    act(&mut request, ApplyAction::DROP);
    let mut lab = Lab::associated();
    let session = lab.establish(request);
    let wakes = UpdateFar {
        far_id: 2,
        apply_action: Some(ApplyAction::new(ApplyAction::FORW)),
        ..UpdateFar::default()
    };
    let nowhere =
        UpdateForwardingParameters { outer_header_creation: Some(smf::tunnel(5)), ..Default::default() };
    let cases = [(None, ie::UPDATE_FORWARDING_PARAMETERS), (Some(nowhere), ie::DESTINATION_INTERFACE)];
    for (update_forwarding_parameters, expected) in cases {
        let update_fars = vec![UpdateFar { update_forwarding_parameters, ..wakes.clone() }];
        let answer = lab.modify(session, SessionModificationRequest { update_fars, ..Default::default() });
        assert_eq!((answer.cause, answer.offending_ie, answer.failed_rule_id), missing(expected));
    }
    let create_fars = vec![smf::far(2, ApplyAction::FORW, None)];
    let answer = lab.modify(session, SessionModificationRequest { create_fars, ..Default::default() });
    assert_eq!(answer.offending_ie, Some(ie::FORWARDING_PARAMETERS));
    accepted(&lab.modify(session, path_switch(5)));
}

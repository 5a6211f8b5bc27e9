//! What this user plane does not do yet. Every IE that would need it is refused by name; the rest is done, or has
//! nothing to do for us. This list shrinks with every release.
//!
//! User ID, APN/DNN and S-NSSAI only go into charging data records. Accepted and without effect: RAT Type, GBR (`reasons.rs`), RESTI,
//! Averaging Window, and the 3GPP Interface Type that packets leave by: where they leave, routes say. That of a PDI says at which port a tunnel
//! ends, where the operator has said which ports are for which. Network Instances are obeyed where the operator has named some, and others stand for the network without a
//! name, or are refused, as the operator says; else there is one network behind each side,
//! and every name stands for it. A Forwarding Policy is accepted by the names the operator lists, and leads where packets
//! go anyway.
//!
//! A DL Buffering Duration in a report's response, which cannot be refused, is noted and not obeyed (DLBD).
//!
//! Packets to and from a control plane (CP-function, in tunnels) go by the access side, where our tunnel endpoints
//! are. Router solicitations of users are the exception: where a session has an IPv6 prefix, the data plane answers
//! them itself, unless a rule of the session leads them to the control plane. Copies for the LI function go by the core side.
//!
//! A redirection is done in the user plane (TREU), to a URL or to addresses; to another port, or by SIP, is refused.
//! Sessions of Ethernet frames have no copies, redirection, header enrichment or applications; ARP and ND are not proxied, and
//! their anchor is not relocated (ETHAR).
//! Framed routes of IPv6 are of 64 bits at most. Routing protocols are not spoken with users: Framed-Routing is refused where it
//! asks for some.
//! Enhanced association release is not done (EPFAR): no session is said to be over (PSDBU, UISR), and what a control plane
//! announces by it (PARPS) changes nothing. What sessions that we end used is told.
//! Values (interfaces, actions, addresses) that are not done are in `values`.

use crate::config::Config;
use crate::families;
use crate::networks;
use crate::refusal::Refusal;
use charging::OWN_METERS;
use pfcp::{
    Cause, CreatePdr, CreateUrr, FailedRuleId, Pdi, PdnType, RawIe, ReportingTriggers,
    SessionEstablishmentRequest, SessionModificationRequest, UpFeature, UpFunctionFeatures, UpdatePdr,
    UpdateUrr, flags, ie,
};
use rules::Triggers;

/// What we always can do (TS 29.244 8.2.25).
const FEATURES: &[UpFeature] = &[
    UpFeature::Ftup,
    UpFeature::Pfdm,
    UpFeature::Pfde,
    UpFeature::Ddnd,
    UpFeature::Heeu,
    UpFeature::Treu,
    UpFeature::Frrt,
    UpFeature::Quoac,
    UpFeature::Empu,
    UpFeature::Pdiu,
    UpFeature::Udbc,
    UpFeature::Sset,
    UpFeature::Mnop,
    UpFeature::Mpas,
    UpFeature::Vtime,
    UpFeature::Resps,
];

/// What we say we can do: some of it only if the operator has provided for it.
pub(crate) fn features(config: &Config) -> UpFunctionFeatures {
    let predefined = (!config.predefined.is_empty()).then_some(UpFeature::Adpdp);
    let addresses = (!config.ue_pools.is_empty()).then_some(UpFeature::Ueip);
    let all: Vec<UpFeature> = FEATURES.iter().copied().chain(predefined).chain(addresses).collect();
    UpFunctionFeatures::of(&all)
}

/// Refused in a Session Establishment Request and, with what follows, in a Session Modification Request.
pub(crate) const IN_SESSION: &[u16] = &[
    ie::TRACE_INFORMATION,
    ie::ETHERNET_CONTEXT_INFORMATION,
    ie::CREATE_MAR,
    ie::CREATE_SRR,
    ie::CREATE_BRIDGE_INFO_FOR_TSC,
    ie::PROVIDE_ATSSS_CONTROL_INFORMATION,
    ie::PROVIDE_RDS_CONFIGURATION_INFORMATION,
    ie::L2TP_TUNNEL_INFORMATION,
    ie::L2TP_SESSION_INFORMATION,
    ie::MBS_SESSION_N4MB_CONTROL_INFORMATION,
    ie::MBS_SESSION_N4_CONTROL_INFORMATION,
    ie::DSCP_TO_PPI_CONTROL_INFORMATION,
];

pub(crate) const IN_MODIFICATION: &[u16] = &[
    ie::UPDATE_MAR,
    ie::REMOVE_MAR,
    ie::UPDATE_SRR,
    ie::REMOVE_SRR,
    ie::TSC_MANAGEMENT_INFORMATION,
    ie::ACCESS_AVAILABILITY_CONTROL_INFORMATION,
    ie::QUERY_PACKET_RATE_STATUS,
];

pub(crate) const IN_PDI: &[u16] = &[
    ie::REDUNDANT_TRANSMISSION_PARAMETERS,
    ie::IP_MULTICAST_ADDRESSING_INFO,
    ie::DNS_QUERY_RESPONSE_FILTER,
    ie::LOCAL_INGRESS_TUNNEL,
    ie::MBS_SESSION_IDENTIFIER,
    ie::AREA_SESSION_ID,
    ie::PROTOCOL_DESCRIPTION,
];

pub(crate) const IN_TRAFFIC_ENDPOINT: &[u16] = &[
    ie::REDUNDANT_TRANSMISSION_PARAMETERS,
    ie::IP_MULTICAST_ADDRESSING_INFO,
    ie::LOCAL_INGRESS_TUNNEL,
    ie::MBS_SESSION_IDENTIFIER,
    ie::AREA_SESSION_ID,
];

pub(crate) const IN_PDR: &[u16] = &[
    ie::MAR_ID,
    ie::PACKET_REPLICATION_AND_DETECTION_CARRY_ON_INFORMATION,
    ie::IP_MULTICAST_ADDRESSING_INFO,
    ie::MPTCP_APPLICABLE_INDICATION,
    ie::TRANSPORT_DELAY_REPORTING,
    ie::ACTIVATION_TIME,
    ie::DEACTIVATION_TIME,
];

pub(crate) const IN_FAR: &[u16] = &[
    ie::REDUNDANT_TRANSMISSION_FORWARDING_PARAMETERS,
    ie::MBS_MULTICAST_PARAMETERS,
    ie::ADD_MBS_UNICAST_PARAMETERS,
    ie::REMOVE_MBS_UNICAST_PARAMETERS,
];

pub(crate) const IN_FORWARDING: &[u16] =
    &[ie::PROXYING, ie::DATA_STATUS, ie::IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT];

pub(crate) const IN_DUPLICATING: &[u16] = &[
    ie::REDIRECT_INFORMATION,
    ie::HEADER_ENRICHMENT,
    ie::PROXYING,
    ie::DATA_STATUS,
    ie::IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT,
];

pub(crate) const IN_QER: &[u16] = &[
    ie::DL_FLOW_LEVEL_MARKING,
    ie::PAGING_POLICY_INDICATOR,
    ie::QER_CONTROL_INDICATIONS,
    ie::QER_INDICATIONS,
];

/// DLBD and MT-EDT.
pub(crate) const IN_BAR: &[u16] = &[ie::DL_BUFFERING_DURATION, ie::MT_EDT_CONTROL_INFORMATION];

/// In URRs: events (`reasons.rs`) and what belongs to them, envelopes, aggregation, a number of reports, and what is exempted from the
/// action beyond a quota (QUASF).
pub(crate) const IN_URR: &[u16] = &[
    ie::EVENT_QUOTA,
    ie::EVENT_THRESHOLD,
    ie::SUBSEQUENT_EVENT_QUOTA,
    ie::SUBSEQUENT_EVENT_THRESHOLD,
    ie::TIME_QUOTA_MECHANISM,
    ie::AGGREGATED_URRS,
    ie::ADDITIONAL_MONITORING_TIME,
    ie::NUMBER_OF_REPORTS,
    ie::APPLICATION_ID,
    ie::SDF_FILTER,
];

/// What is obeyed though it is not decoded with its group, with its name in the code.
pub(crate) const OBEYED: &[(&str, u16, &str)] = &[
    (
        "Association Setup Request",
        ie::PFCP_SESSION_RETENTION_INFORMATION,
        "PFCP_SESSION_RETENTION_INFORMATION",
    ),
    ("Create QER", ie::PACKET_RATE, "PACKET_RATE"),
    ("Update QER", ie::PACKET_RATE, "PACKET_RATE"),
    ("Forwarding Parameters", ie::FORWARDING_POLICY, "FORWARDING_POLICY"),
    ("Update Forwarding Parameters", ie::FORWARDING_POLICY, "FORWARDING_POLICY"),
    ("Duplicating Parameters", ie::FORWARDING_POLICY, "FORWARDING_POLICY"),
    ("PDI", ie::FRAMED_ROUTE, "FRAMED_ROUTE"),
    ("PDI", ie::FRAMED_IPV6_ROUTE, "FRAMED_IPV6_ROUTE"),
    ("PDI", ie::FRAMED_ROUTING, "FRAMED_ROUTING"),
    ("Create Traffic Endpoint", ie::FRAMED_ROUTE, "FRAMED_ROUTE"),
    ("Create Traffic Endpoint", ie::FRAMED_IPV6_ROUTE, "FRAMED_IPV6_ROUTE"),
    ("Create Traffic Endpoint", ie::FRAMED_ROUTING, "FRAMED_ROUTING"),
    ("Update Traffic Endpoint", ie::FRAMED_ROUTE, "FRAMED_ROUTE"),
    ("Update Traffic Endpoint", ie::FRAMED_IPV6_ROUTE, "FRAMED_IPV6_ROUTE"),
    ("Update Traffic Endpoint", ie::FRAMED_ROUTING, "FRAMED_ROUTING"),
    ("Update Duplicating Parameters", ie::FORWARDING_POLICY, "FORWARDING_POLICY"),
];

/// What we send in octets of our own making, with its name in the tests.
pub(crate) const SENT_WHOLE: &[(&str, u16, &str)] = &[
    ("Association Setup Response", ie::USER_PLANE_IP_RESOURCE_INFORMATION, "upiri"),
    ("Association Update Request (ours)", ie::USER_PLANE_IP_RESOURCE_INFORMATION, "upiri"),
    ("Association Setup Response", ie::PFCPASRSP_FLAGS, "PFCPASRSP_FLAGS"),
    (
        "Session Modification Response",
        ie::ADDITIONAL_USAGE_REPORTS_INFORMATION,
        "ADDITIONAL_USAGE_REPORTS_INFORMATION",
    ),
    (
        "Session Deletion Response",
        ie::ADDITIONAL_USAGE_REPORTS_INFORMATION,
        "ADDITIONAL_USAGE_REPORTS_INFORMATION",
    ),
];

/// What is decoded and has nothing to do for us, by group.
pub(crate) const WITHOUT_EFFECT: &[(&str, u16)] = &[
    ("Association Setup Request", ie::UP_FUNCTION_FEATURES),
    ("Association Setup Request", ie::UE_IP_ADDRESS_POOL_INFORMATION),
    ("Association Update Request", ie::UP_FUNCTION_FEATURES),
    ("Association Update Request", ie::UE_IP_ADDRESS_POOL_INFORMATION),
    ("Association Update Request", ie::PFCP_ASSOCIATION_RELEASE_REQUEST),
    ("Association Update Request", ie::GRACEFUL_RELEASE_PERIOD),
    ("Session Establishment Request", ie::PFCPSEREQ_FLAGS),
    ("Forwarding Parameters", ie::TGPP_INTERFACE_TYPE),
    ("Update Forwarding Parameters", ie::TGPP_INTERFACE_TYPE),
    ("Create QER", ie::GBR),
    ("Update QER", ie::GBR),
    // Whatever it says, the report was heard.
    ("Node Report Response", ie::NODE_ID),
    ("Node Report Response", ie::CAUSE),
    ("Node Report Response", ie::OFFENDING_IE),
    ("Session Report Response", ie::OFFENDING_IE),
];

/// What only control planes say in messages that both sides send, or those with features that we have not.
pub(crate) const NOT_OURS: &[(&str, u16)] = &[
    // Of enhanced association release.
    ("Session Report Request", ie::PFCPSRREQ_FLAGS),
    ("Association Setup Response", ie::CP_FUNCTION_FEATURES),
    ("Association Setup Response", ie::SMF_SET_ID),
    ("Association Setup Response", ie::ALTERNATIVE_SMF_IP_ADDRESS),
    ("Association Update Response", ie::CP_FUNCTION_FEATURES),
    ("Association Update Request (ours)", ie::CP_FUNCTION_FEATURES),
    ("Association Update Request (ours)", ie::SMF_SET_ID),
    ("Association Update Request (ours)", ie::ALTERNATIVE_SMF_IP_ADDRESS),
];

/// Reporting triggers that are obeyed. Not those that need applications to be recognised, or envelopes.
pub(crate) const TRIGGERS: u32 = Triggers::PERIODIC.0
    | Triggers::VOLUME_THRESHOLD.0
    | Triggers::TIME_THRESHOLD.0
    | Triggers::QUOTA_HOLDING_TIME.0
    | Triggers::START_OF_TRAFFIC.0
    | Triggers::STOP_OF_TRAFFIC.0
    | Triggers::DROPPED_DOWNLINK.0
    | Triggers::LINKED_USAGE.0
    | Triggers::VOLUME_QUOTA.0
    | Triggers::TIME_QUOTA.0
    | Triggers::MAC_ADDRESSES.0
    | Triggers::QUOTA_VALIDITY_TIME.0;

/// PFCPSMReq-Flags that are obeyed. Not pauses of charging (SUMPC, RUMUC), nor what later releases ask for.
const IN_MODIFICATION_FLAGS: u8 = flags::PFCPSM_DROBU | flags::PFCPSM_SNDEM | flags::PFCPSM_QAURR;

/// SSPOC, ASPOC and CIAM: pauses of charging, and measuring by application (TS 29.244 8.2.68).
const MEASUREMENT_REFUSED: u8 = 0xE0;

/// URRs in a session. The reports of all, each in two parts, fit one datagram.
const URRS: usize = 250;

/// Whether any of these bits is set.
fn has(bits: Option<u8>, any: u8) -> bool {
    bits.is_some_and(|bits| bits & any != 0)
}

/// Refuses `ie` where it is there.
const fn without(is_there: bool, ie: u16) -> Result<(), Refusal> {
    if is_there { Err(Refusal::unsupported(ie)) } else { Ok(()) }
}

/// An IE without octets asks for removal of what is not done anyway.
fn without_any(carried: &[RawIe], refused: &[u16]) -> Result<(), Refusal> {
    match carried.iter().find(|other| refused.contains(&other.ie) && !other.value.is_empty()) {
        Some(other) => Err(Refusal::unsupported(other.ie)),
        None => Ok(()),
    }
}

pub(crate) fn establishment(request: &SessionEstablishmentRequest, config: &Config) -> Result<(), Refusal> {
    let policies = &config.forwarding_policies;
    networks::establishment(request, config)?;
    families::establishment(request, config)?;
    without_any(&request.carried, IN_SESSION)?;
    let is_done = !matches!(request.pdn_type, Some(PdnType::NonIp | PdnType::Other(_)));
    without(!is_done, ie::PDN_TYPE)?;
    without(has(request.pfcpse_req_flags, flags::PFCPSE_SUMPC), ie::PFCPSEREQ_FLAGS)?;
    request.create_bar.iter().try_for_each(|bar| without_any(&bar.carried, IN_BAR))?;
    let endpoints = request.create_traffic_endpoints.iter().map(|endpoint| &endpoint.carried);
    endpoints.into_iter().try_for_each(|carried| without_any(carried, IN_TRAFFIC_ENDPOINT))?;
    request.create_pdrs.iter().try_for_each(create_pdr)?;
    request.create_qers.iter().try_for_each(|qer| without_any(&qer.carried, IN_QER))?;
    request.create_urrs.iter().try_for_each(create_urr)?;
    request.create_fars.iter().try_for_each(|far| {
        without_any(&far.carried, IN_FAR)?;
        far.forwarding_parameters.iter().try_for_each(|to| forwarding(&to.carried, policies))?;
        far.duplicating_parameters.iter().try_for_each(|to| copying(&to.carried, policies))
    })
}

pub(crate) fn modification(request: &SessionModificationRequest, config: &Config) -> Result<(), Refusal> {
    let policies = &config.forwarding_policies;
    networks::modification(request, config)?;
    families::modification(request, config)?;
    without_any(&request.carried, IN_SESSION)?;
    without_any(&request.carried, IN_MODIFICATION)?;
    without(has(request.pfcpsm_req_flags, !IN_MODIFICATION_FLAGS), ie::PFCPSMREQ_FLAGS)?;
    request.create_bar.iter().try_for_each(|bar| without_any(&bar.carried, IN_BAR))?;
    request.update_bar.iter().try_for_each(|bar| without_any(&bar.carried, IN_BAR))?;
    let endpoints = request.create_traffic_endpoints.iter().map(|endpoint| &endpoint.carried);
    endpoints.into_iter().try_for_each(|carried| without_any(carried, IN_TRAFFIC_ENDPOINT))?;
    request.create_pdrs.iter().try_for_each(create_pdr)?;
    let endpoints = request.update_traffic_endpoints.iter().map(|endpoint| &endpoint.carried);
    endpoints.into_iter().try_for_each(|carried| without_any(carried, IN_TRAFFIC_ENDPOINT))?;
    request.update_pdrs.iter().try_for_each(update_pdr)?;
    request.create_qers.iter().try_for_each(|qer| without_any(&qer.carried, IN_QER))?;
    request.update_qers.iter().try_for_each(|qer| without_any(&qer.carried, IN_QER))?;
    request.create_urrs.iter().try_for_each(create_urr)?;
    request.update_urrs.iter().try_for_each(update_urr)?;
    request.create_fars.iter().try_for_each(|far| {
        without_any(&far.carried, IN_FAR)?;
        far.forwarding_parameters.iter().try_for_each(|to| forwarding(&to.carried, policies))?;
        far.duplicating_parameters.iter().try_for_each(|to| copying(&to.carried, policies))
    })?;
    request.update_fars.iter().try_for_each(|far| {
        without_any(&far.carried, IN_FAR)?;
        far.parameters().into_iter().try_for_each(|to| forwarding(&to.carried, policies))?;
        far.update_duplicating_parameters.iter().try_for_each(|to| copying(&to.carried, policies))
    })
}

/// More URRs than can be told of at once, one with an ID that is ours, or one that measures nothing.
pub(crate) fn urrs(rules: &rules::Rules) -> Result<(), Refusal> {
    let blame = |cause, urr: &rules::Urr| Refusal {
        failed_rule_id: Some(FailedRuleId::Urr(urr.id.0)),
        ..Refusal::of(cause)
    };
    let ours = rules.urrs.iter().find(|urr| urr.id.0 >= OWN_METERS);
    let refusal = match (rules.urrs.get(URRS), ours) {
        (Some(excess), _) => Some(blame(Cause::NoResourcesAvailable, excess)),
        (None, ours) => ours.map(|ours| blame(Cause::RuleCreationModificationFailure, ours)),
    };
    refusal.map_or(Ok(()), Err)?;
    let empty = rules.urrs.iter().any(measures_nothing);
    if empty { Err(Refusal::unsupported(ie::MEASUREMENT_METHOD)) } else { Ok(()) }
}

/// Of events alone (TS 29.244 8.2.40), but of none that we know: its reports would say nothing.
fn measures_nothing(urr: &rules::Urr) -> bool {
    let methods = urr.methods;
    let events = [Triggers::START_OF_TRAFFIC, Triggers::STOP_OF_TRAFFIC, Triggers::MAC_ADDRESSES];
    let knows_events = events.iter().any(|event| urr.triggers.contains(*event));
    methods.event && !(methods.volume || methods.duration || knows_events)
}

fn create_pdr(pdr: &CreatePdr) -> Result<(), Refusal> {
    without_any(&pdr.carried, IN_PDR)?;
    pdi(&pdr.pdi)
}

fn update_pdr(pdr: &UpdatePdr) -> Result<(), Refusal> {
    without_any(&pdr.carried, IN_PDR)?;
    pdr.pdi.iter().try_for_each(pdi)
}

fn pdi(pdi: &Pdi) -> Result<(), Refusal> {
    without_any(&pdi.carried, IN_PDI)
}

fn copying(carried: &[RawIe], policies: &[String]) -> Result<(), Refusal> {
    without_any(carried, IN_DUPLICATING)?;
    forwarding(carried, policies)
}

/// The name of a policy stands behind an octet of its length (TS 29.244 8.2.23).
fn forwarding(carried: &[RawIe], policies: &[String]) -> Result<(), Refusal> {
    without_any(carried, IN_FORWARDING)?;
    let asked = carried.iter().filter(|other| other.ie == ie::FORWARDING_POLICY && !other.value.is_empty());
    let is_known = |policy: &RawIe| {
        let name = policy.value.split_first().and_then(|(length, rest)| rest.get(..usize::from(*length)));
        name.is_some_and(|name| policies.iter().any(|known| known.as_bytes() == name))
    };
    match asked.into_iter().all(is_known) {
        true => Ok(()),
        false => Err(Refusal::blaming(Cause::InvalidForwardingPolicy, ie::FORWARDING_POLICY)),
    }
}

fn create_urr(urr: &CreateUrr) -> Result<(), Refusal> {
    without_any(&urr.carried, IN_URR)?;
    measurement(urr.measurement_information)?;
    let is_periodic = |triggers: &ReportingTriggers| triggers.bits() & Triggers::PERIODIC.0 != 0;
    match urr.measurement_period {
        None if is_periodic(&urr.reporting_triggers) => {
            Err(Refusal::blaming(Cause::ConditionalIeMissing, ie::MEASUREMENT_PERIOD))
        }
        period => positive(period),
    }
}

fn update_urr(urr: &UpdateUrr) -> Result<(), Refusal> {
    without_any(&urr.carried, IN_URR)?;
    measurement(urr.measurement_information)?;
    positive(urr.measurement_period)
}

fn measurement(bits: Option<u8>) -> Result<(), Refusal> {
    without(bits.is_some_and(|bits| bits & MEASUREMENT_REFUSED != 0), ie::MEASUREMENT_INFORMATION)
}

fn positive(period: Option<u32>) -> Result<(), Refusal> {
    if period == Some(0) { Err(Refusal::incorrect(ie::MEASUREMENT_PERIOD)) } else { Ok(()) }
}

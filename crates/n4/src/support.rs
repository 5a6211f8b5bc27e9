//! What this user plane does not do yet. Every IE that would need it is refused by name; the rest is done, or has
//! nothing to do for us. This list shrinks with every release.
//!
//! Accepted and without effect: User ID, APN/DNN, S-NSSAI, RAT Type, FQ-CSID, Group ID, 3GPP Interface Type, QER
//! Correlation ID and Averaging Window (nothing is metered), BARs (nothing is buffered, so there is nothing to
//! configure), the flags DROBU and QAURR (nothing is buffered or measured), and Network Instance: there is one
//! network behind each side, so every name stands for it. Values (interfaces, actions, addresses) that are not done
//! are in `values`.

use crate::refusal::Refusal;
use pfcp::{
    Cause, CreateFar, CreatePdr, CreateQer, ForwardingParameters, Pdi, PdnType, RawIe,
    SessionEstablishmentRequest, SessionModificationRequest, UpFeature, UpFunctionFeatures, UpdateFar,
    UpdateForwardingParameters, UpdatePdr, UpdateQer, flags, ie,
};

/// What we say we can do (TS 29.244 8.2.25).
pub(crate) fn features() -> UpFunctionFeatures {
    UpFunctionFeatures::of(&[UpFeature::Ftup])
}

/// Refused in a Session Establishment Request and, with what follows, in a Session Modification Request.
const IN_SESSION: &[u16] = &[
    ie::CREATE_TRAFFIC_ENDPOINT,
    ie::USER_PLANE_INACTIVITY_TIMER,
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

/// A new Node ID would move the session to another control plane of a set: SSET is not offered.
const IN_MODIFICATION: &[u16] = &[
    ie::NODE_ID,
    ie::QUERY_URR,
    ie::UPDATE_TRAFFIC_ENDPOINT,
    ie::REMOVE_TRAFFIC_ENDPOINT,
    ie::UPDATE_MAR,
    ie::REMOVE_MAR,
    ie::UPDATE_SRR,
    ie::REMOVE_SRR,
    ie::TSC_MANAGEMENT_INFORMATION,
    ie::ACCESS_AVAILABILITY_CONTROL_INFORMATION,
    ie::QUERY_PACKET_RATE_STATUS,
];

const IN_PDI: &[u16] = &[
    ie::ETHERNET_PDU_SESSION_INFORMATION,
    ie::ETHERNET_PACKET_FILTER,
    ie::FRAMED_ROUTE,
    ie::FRAMED_ROUTING,
    ie::FRAMED_IPV6_ROUTE,
    ie::REDUNDANT_TRANSMISSION_PARAMETERS,
    ie::IP_MULTICAST_ADDRESSING_INFO,
    ie::DNS_QUERY_RESPONSE_FILTER,
    ie::LOCAL_INGRESS_TUNNEL,
    ie::AREA_SESSION_ID,
    ie::PROTOCOL_DESCRIPTION,
];

const IN_PDR: &[u16] = &[
    ie::MAR_ID,
    ie::PACKET_REPLICATION_AND_DETECTION_CARRY_ON_INFORMATION,
    ie::IP_MULTICAST_ADDRESSING_INFO,
    ie::MPTCP_APPLICABLE_INDICATION,
    ie::TRANSPORT_DELAY_REPORTING,
    ie::ACTIVATION_TIME,
    ie::DEACTIVATION_TIME,
];

const IN_FAR: &[u16] = &[
    ie::DUPLICATING_PARAMETERS,
    ie::UPDATE_DUPLICATING_PARAMETERS,
    ie::REDUNDANT_TRANSMISSION_FORWARDING_PARAMETERS,
    ie::MBS_MULTICAST_PARAMETERS,
    ie::ADD_MBS_UNICAST_PARAMETERS,
    ie::REMOVE_MBS_UNICAST_PARAMETERS,
];

const IN_FORWARDING: &[u16] = &[
    ie::REDIRECT_INFORMATION,
    ie::FORWARDING_POLICY,
    ie::HEADER_ENRICHMENT,
    ie::TRAFFIC_ENDPOINT_ID,
    ie::PROXYING,
    ie::DATA_STATUS,
    ie::IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT,
];

const IN_QER: &[u16] = &[
    ie::PACKET_RATE,
    ie::DL_FLOW_LEVEL_MARKING,
    ie::PAGING_POLICY_INDICATOR,
    ie::QER_CONTROL_INDICATIONS,
    ie::QER_INDICATIONS,
];

/// The first bit of RQI: reflective QoS (TS 29.244 8.2.88).
const RQI: u8 = 1;

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

fn without_predefined(names: &[Vec<u8>], ie: u16) -> Result<(), Refusal> {
    if names.is_empty() { Ok(()) } else { Err(Refusal::blaming(Cause::UnknownPredefinedRule, ie)) }
}

pub(crate) fn establishment(request: &SessionEstablishmentRequest) -> Result<(), Refusal> {
    without_any(&request.carried, IN_SESSION)?;
    without(!request.create_urrs.is_empty(), ie::CREATE_URR)?;
    without(!matches!(request.pdn_type, None | Some(PdnType::Ipv4)), ie::PDN_TYPE)?;
    request.create_pdrs.iter().try_for_each(create_pdr)?;
    request.create_fars.iter().try_for_each(create_far)?;
    request.create_qers.iter().try_for_each(create_qer)
}

pub(crate) fn modification(request: &SessionModificationRequest) -> Result<(), Refusal> {
    without_any(&request.carried, IN_SESSION)?;
    without_any(&request.carried, IN_MODIFICATION)?;
    without(!request.create_urrs.is_empty(), ie::CREATE_URR)?;
    without(!request.update_urrs.is_empty(), ie::UPDATE_URR)?;
    without(!request.remove_urrs.is_empty(), ie::REMOVE_URR)?;
    without(asks_for_end_markers(request.pfcpsm_req_flags), ie::PFCPSMREQ_FLAGS)?;
    request.create_pdrs.iter().try_for_each(create_pdr)?;
    request.create_fars.iter().try_for_each(create_far)?;
    request.create_qers.iter().try_for_each(create_qer)?;
    request.update_pdrs.iter().try_for_each(update_pdr)?;
    request.update_fars.iter().try_for_each(update_far)?;
    request.update_qers.iter().try_for_each(update_qer)
}

fn create_pdr(pdr: &CreatePdr) -> Result<(), Refusal> {
    without_any(&pdr.carried, IN_PDR)?;
    without(!pdr.urr_ids.is_empty(), ie::URR_ID)?;
    without_predefined(&pdr.activate_predefined_rules, ie::ACTIVATE_PREDEFINED_RULES)?;
    pdi(&pdr.pdi)
}

fn update_pdr(pdr: &UpdatePdr) -> Result<(), Refusal> {
    without_any(&pdr.carried, IN_PDR)?;
    without(!pdr.urr_ids.is_empty(), ie::URR_ID)?;
    without_predefined(&pdr.activate_predefined_rules, ie::ACTIVATE_PREDEFINED_RULES)?;
    without_predefined(&pdr.deactivate_predefined_rules, ie::DEACTIVATE_PREDEFINED_RULES)?;
    pdr.pdi.iter().try_for_each(pdi)
}

fn pdi(pdi: &Pdi) -> Result<(), Refusal> {
    without_any(&pdi.carried, IN_PDI)?;
    without(!pdi.sdf_filters.is_empty(), ie::SDF_FILTER)?;
    without(pdi.application_id.is_some(), ie::APPLICATION_ID)?;
    without(pdi.traffic_endpoint_id.is_some(), ie::TRAFFIC_ENDPOINT_ID)
}

fn create_far(far: &CreateFar) -> Result<(), Refusal> {
    without_any(&far.carried, IN_FAR)?;
    far.forwarding_parameters.iter().try_for_each(forwarding)
}

fn forwarding(parameters: &ForwardingParameters) -> Result<(), Refusal> {
    without_any(&parameters.carried, IN_FORWARDING)?;
    without(parameters.transport_level_marking.is_some(), ie::TRANSPORT_LEVEL_MARKING)
}

fn update_far(far: &UpdateFar) -> Result<(), Refusal> {
    without_any(&far.carried, IN_FAR)?;
    far.update_forwarding_parameters.iter().try_for_each(update_forwarding)
}

/// A tunnel can be replaced, not taken away.
fn update_forwarding(parameters: &UpdateForwardingParameters) -> Result<(), Refusal> {
    without_any(&parameters.carried, IN_FORWARDING)?;
    without(parameters.removes(ie::OUTER_HEADER_CREATION), ie::OUTER_HEADER_CREATION)?;
    without(parameters.transport_level_marking.is_some(), ie::TRANSPORT_LEVEL_MARKING)?;
    without(asks_for_end_markers(parameters.pfcpsm_req_flags), ie::PFCPSMREQ_FLAGS)
}

fn asks_for_end_markers(bits: Option<u8>) -> bool {
    bits.is_some_and(|bits| bits & flags::PFCPSM_SNDEM != 0)
}

fn create_qer(qer: &CreateQer) -> Result<(), Refusal> {
    without_any(&qer.carried, IN_QER)?;
    without(qer.mbr.is_some(), ie::MBR)?;
    without(qer.gbr.is_some(), ie::GBR)?;
    without(qer.rqi.is_some_and(|rqi| rqi & RQI != 0), ie::RQI)
}

/// A mark can be replaced, not taken away.
fn update_qer(qer: &UpdateQer) -> Result<(), Refusal> {
    without_any(&qer.carried, IN_QER)?;
    without(qer.mbr.is_some(), ie::MBR)?;
    without(qer.gbr.is_some(), ie::GBR)?;
    without(qer.rqi.is_some_and(|rqi| rqi & RQI != 0), ie::RQI)?;
    without(qer.removes(ie::QFI), ie::QFI)
}

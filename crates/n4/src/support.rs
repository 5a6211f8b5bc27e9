//! What this user plane does not do yet. Every IE that would need it is refused by name; the rest is done, or has
//! nothing to do for us. This list shrinks with every release.
//!
//! User ID, APN/DNN and S-NSSAI only go into charging data records. Accepted and without effect: RAT Type, GBR (`reasons.rs`), RESTI,
//! Averaging Window, and the 3GPP Interface Type that packets leave by: where they leave, routes say. That of a PDI says at which port a tunnel
//! ends, where the operator has said which ports are for which. Network Instances are obeyed where the operator has named some, and others stand for the network without a
//! name, or are refused, as the operator says; else there is one network behind each side,
//! and every name stands for it. A Forwarding Policy is one of those the operator has configured, and says where packets go that
//! leave outside of tunnels; into a tunnel they go as without.
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

mod check;

pub(crate) use check::{establishment, modification, urrs};

use crate::config::Config;
use pfcp::{UpFeature, UpFunctionFeatures, ie};
use rules::Triggers;

/// What we always can do (TS 29.244 8.2.25).
const FEATURES: &[UpFeature] = &[
    UpFeature::Ftup,
    UpFeature::Pfdm,
    UpFeature::Pfde,
    UpFeature::Ddnd,
    UpFeature::Dlbd,
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
    let policies = (!config.forwarding_policies.is_empty()).then_some(UpFeature::Trst);
    let provided = [predefined, addresses, policies].into_iter().flatten();
    let all: Vec<UpFeature> = FEATURES.iter().copied().chain(provided).collect();
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

/// How long packets are kept is said in the answer to a report alone (TS 29.244 7.5.9.2). And MT-EDT.
pub(crate) const IN_BAR: &[u16] = &[ie::DL_BUFFERING_DURATION, ie::MT_EDT_CONTROL_INFORMATION];

/// In URRs: envelopes, aggregation, a number of reports, and what is exempted from the action beyond a quota (QUASF).
pub(crate) const IN_URR: &[u16] = &[
    ie::TIME_QUOTA_MECHANISM,
    ie::AGGREGATED_URRS,
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

/// Reporting triggers that are obeyed. Not that of envelopes, nor of multicast and of what later releases ask for.
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
    | Triggers::EVENT_THRESHOLD.0
    | Triggers::EVENT_QUOTA.0
    | Triggers::QUOTA_VALIDITY_TIME.0;

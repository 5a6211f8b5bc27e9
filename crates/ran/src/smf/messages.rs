//! The pieces that requests are put together of, each with nothing in it that was not asked for.

use super::dialect::About;
use super::event::{PduSession, Settings};
use crate::tunnel::Tunnel;
use pfcp::{
    ApplyAction, AssociationReleaseRequest, AssociationSetupRequest, CpFunctionFeatures, CreateFar,
    CreatePdr, CreateQer, DestinationInterface, FSeid, ForwardingParameters, Gate, GateStatus,
    HeartbeatRequest, Message, OuterHeaderCreation, Pdi, PdnType, QueryUrr, Rates, RemoveFar, RemovePdr,
    RemoveQer, SdfFilter, SessionEstablishmentRequest, SessionModificationRequest, SourceInterface,
    UeIpAddress, UpdateFar, UpdateForwardingParameters,
};
use std::net::Ipv4Addr;

/// Until [`super::Smf`] sends it.
pub(super) const UNNUMBERED: u32 = 0;
/// The reporting trigger of volume thresholds (TS 29.244 8.2.19).
pub(super) const VOLTH: u32 = 1 << 1;
/// That of volume quotas.
pub(super) const VOLQU: u32 = 1 << 8;

pub(super) fn setup(settings: &Settings) -> AssociationSetupRequest {
    AssociationSetupRequest {
        node_id: settings.node_id.clone(),
        recovery_time_stamp: settings.recovery_time_stamp,
        up_function_features: None,
        cp_function_features: Some(CpFunctionFeatures::of(&[])),
        pools: vec![],
        smf_set_id: None,
        alternatives: vec![],
        carried: vec![],
    }
}

pub(super) fn heartbeat(settings: &Settings) -> Message {
    let recovery_time_stamp = settings.recovery_time_stamp;
    Message::node(UNNUMBERED, HeartbeatRequest { recovery_time_stamp, carried: vec![] })
}

pub(super) fn release(settings: &Settings) -> Message {
    let node_id = settings.node_id.clone();
    Message::node(UNNUMBERED, AssociationReleaseRequest { node_id, carried: vec![] })
}

/// Of a session of IP packets.
pub(super) fn establishment(
    of: About<'_>,
    create_pdrs: Vec<CreatePdr>,
    create_fars: Vec<CreateFar>,
) -> SessionEstablishmentRequest {
    let pdn_type = if of.session.plan.ue6.is_some() { PdnType::Ipv4v6 } else { PdnType::Ipv4 };
    SessionEstablishmentRequest {
        node_id: of.settings.node_id.clone(),
        cp_f_seid: f_seid(of),
        create_pdrs,
        create_fars,
        create_urrs: vec![],
        create_qers: vec![],
        create_bar: None,
        pdn_type: Some(pdn_type),
        user_plane_inactivity_timer: None,
        user_id: None,
        apn_dnn: None,
        s_nssai: None,
        pfcpse_req_flags: None,
        create_traffic_endpoints: vec![],
        fq_csids: vec![],
        group_id: None,
        carried: vec![],
    }
}

/// Our end of a session.
pub(super) fn f_seid(of: About<'_>) -> FSeid {
    FSeid::new(of.session.seid, of.settings.address.into())
}

pub(super) fn updates(update_fars: Vec<UpdateFar>) -> SessionModificationRequest {
    SessionModificationRequest { update_fars, ..SessionModificationRequest::default() }
}

pub(super) fn removals(pdrs: &[u16], fars: &[u32], qers: &[u32]) -> SessionModificationRequest {
    let pdr = |pdr_id: &u16| RemovePdr { pdr_id: *pdr_id, ..RemovePdr::default() };
    let far = |far_id: &u32| RemoveFar { far_id: *far_id, ..RemoveFar::default() };
    let qer = |qer_id: &u32| RemoveQer { qer_id: *qer_id, ..RemoveQer::default() };
    SessionModificationRequest {
        remove_pdrs: pdrs.iter().map(pdr).collect(),
        remove_fars: fars.iter().map(far).collect(),
        remove_qers: qers.iter().map(qer).collect(),
        ..SessionModificationRequest::default()
    }
}

pub(super) fn query(urr_id: u32) -> SessionModificationRequest {
    let query_urrs = vec![QueryUrr { urr_id, ..QueryUrr::default() }];
    SessionModificationRequest { query_urrs, ..SessionModificationRequest::default() }
}

pub(super) fn pdr((pdr_id, far_id): (u16, u32), precedence: u32, pdi: Pdi) -> CreatePdr {
    CreatePdr {
        pdr_id,
        precedence: Some(precedence),
        pdi,
        outer_header_removal: None,
        far_id: Some(far_id),
        urr_ids: vec![],
        qer_ids: vec![],
        activate_predefined_rules: vec![],
        ue_ip_address_pool: None,
        carried: vec![],
    }
}

pub(super) fn pdi(source_interface: SourceInterface) -> Pdi {
    Pdi {
        source_interface,
        f_teid: None,
        network_instance: None,
        ue_ip_addresses: vec![],
        traffic_endpoint_id: None,
        ethernet_pdu_session_information: None,
        ethernet_packet_filters: vec![],
        sdf_filters: vec![],
        application_id: None,
        qfis: vec![],
        interface_type: None,
        carried: vec![],
    }
}

/// The UE's addresses.
pub(super) fn ue(plan: &PduSession, is_destination: bool) -> Vec<UeIpAddress> {
    vec![UeIpAddress { ipv4: Some(plan.ue), ipv6: plan.ue6, is_destination, ..UeIpAddress::default() }]
}

/// The server's packets to the UE, and those back, as TS 29.212 5.4.2 writes both ways.
pub(super) fn sdf(server: Ipv4Addr, port: u16) -> Vec<SdfFilter> {
    let flow = format!("permit out 17 from {server} {port} to assigned");
    vec![SdfFilter { flow_description: Some(flow), ..SdfFilter::default() }]
}

pub(super) fn forwarding(destination_interface: DestinationInterface) -> ForwardingParameters {
    ForwardingParameters {
        destination_interface,
        network_instance: None,
        outer_header_creation: None,
        transport_level_marking: None,
        redirect_information: None,
        header_enrichment: None,
        interface_type: None,
        linked_traffic_endpoint_id: None,
        carried: vec![],
    }
}

pub(super) fn far(
    far_id: u32,
    apply_action: ApplyAction,
    forwarding_parameters: Option<ForwardingParameters>,
) -> CreateFar {
    CreateFar {
        far_id,
        apply_action,
        forwarding_parameters,
        duplicating_parameters: vec![],
        bar_id: None,
        carried: vec![],
    }
}

/// Without forwarding parameters.
pub(super) fn far_action(far_id: u32, apply_action: ApplyAction) -> UpdateFar {
    UpdateFar { far_id, apply_action: Some(apply_action), ..UpdateFar::default() }
}

/// Forwards into a tunnel.
pub(super) fn far_into(
    far_id: u32,
    destination_interface: DestinationInterface,
    tunnel: Tunnel,
) -> UpdateFar {
    let parameters = UpdateForwardingParameters {
        destination_interface: Some(destination_interface),
        outer_header_creation: Some(outer_header(tunnel)),
        ..UpdateForwardingParameters::default()
    };
    UpdateFar {
        update_forwarding_parameters: Some(parameters),
        ..far_action(far_id, ApplyAction::new(ApplyAction::FORW))
    }
}

pub(super) fn outer_header(Tunnel { teid, address }: Tunnel) -> OuterHeaderCreation {
    OuterHeaderCreation::GtpuIpv4 { teid: teid.0, address }
}

/// Open both ways.
pub(super) fn qer(qer_id: u32, mbr: Option<Rates>, qfi: Option<u8>) -> CreateQer {
    CreateQer {
        qer_id,
        qer_correlation_id: None,
        gate_status: GateStatus { uplink: Gate::Open, downlink: Gate::Open },
        mbr,
        gbr: None,
        qfi,
        rqi: None,
        carried: vec![],
    }
}

/// What the plan allows.
pub(super) fn mbr(plan: &PduSession) -> Option<Rates> {
    plan.mbr.map(|mbr| Rates { uplink_kbps: mbr.uplink_kbps, downlink_kbps: mbr.downlink_kbps })
}

//! What an SMF sends to set a session up, to give it its downlink tunnel, and to end it (TS 23.502 4.3.2.2.1).

use crate::setup::{ENDPOINTS, QFI, user};
use pfcp::{
    ApplyAction, AssociationSetupRequest, CpFunctionFeatures, CreateFar, CreatePdr, CreateQer, CreateUrr,
    DestinationInterface, FSeid, FTeid, ForwardingParameters, Gate, GateStatus, Message, NodeId,
    OuterHeaderCreation, OuterHeaderRemoval, Pdi, PdnType, ReportingTriggers, SessionDeletionRequest,
    SessionEstablishmentRequest, SessionModificationRequest, SourceInterface, UeIpAddress, UpdateFar,
    UpdateForwardingParameters, Volumes, flags,
};
use std::net::Ipv4Addr;

/// Who we are.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
/// Until the client sends it.
const UNNUMBERED: u32 = 0;
/// The rules that matter up and down.
const UPLINK: u16 = 1;
const DOWNLINK: u16 = 2;
/// Report when the volume threshold is reached (TS 29.244 8.2.19).
const VOLTH: u32 = 1 << 1;
/// Never reached: there is no traffic.
const THRESHOLD_BYTES: u64 = 1 << 30;

pub(super) fn setup(recovery_time_stamp: u32) -> Message {
    let request = AssociationSetupRequest {
        node_id: NodeId::Ipv4(ADDRESS),
        recovery_time_stamp,
        up_function_features: None,
        cp_function_features: Some(CpFunctionFeatures::of(&[])),
        pools: vec![],
        smf_set_id: None,
        alternatives: vec![],
        carried: vec![],
    };
    Message::node(UNNUMBERED, request)
}

/// A PDR, a FAR each way, a QER and a URR; the user plane chooses the tunnel.
pub(crate) fn establishment(number: u32) -> Message {
    let choose = FTeid::Choose { ipv4: true, ipv6: false, choose_id: Some(1) };
    let removal = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IPV4);
    let up = Pdi { f_teid: Some(choose), ..pdi(SourceInterface::Access, number) };
    let down = pdi(SourceInterface::Core, number);
    let request = SessionEstablishmentRequest {
        node_id: NodeId::Ipv4(ADDRESS),
        cp_f_seid: FSeid::new(u64::from(number) + 1, ADDRESS.into()),
        create_pdrs: vec![
            CreatePdr { outer_header_removal: Some(removal), ..pdr(UPLINK, up) },
            pdr(DOWNLINK, down),
        ],
        create_fars: vec![uplink_far(), far(DOWNLINK, ApplyAction::DROP, None)],
        create_urrs: vec![urr()],
        create_qers: vec![qer()],
        create_bar: None,
        pdn_type: Some(PdnType::Ipv4),
        user_plane_inactivity_timer: None,
        user_id: None,
        apn_dnn: None,
        s_nssai: None,
        pfcpse_req_flags: None,
        create_traffic_endpoints: vec![],
        fq_csids: vec![],
        group_id: None,
        carried: vec![],
    };
    Message::session(0, UNNUMBERED, request)
}

/// The downlink goes into the gNB's tunnel.
pub(crate) fn modification(number: u32, seid: u64) -> Message {
    let tunnel = OuterHeaderCreation::GtpuIpv4 { teid: user(number).teid, address: ENDPOINTS.gnb.1 };
    let parameters = UpdateForwardingParameters {
        destination_interface: Some(DestinationInterface::Access),
        outer_header_creation: Some(tunnel),
        ..UpdateForwardingParameters::default()
    };
    let update = UpdateFar {
        far_id: DOWNLINK.into(),
        apply_action: Some(ApplyAction::new(ApplyAction::FORW)),
        update_forwarding_parameters: Some(parameters),
        ..UpdateFar::default()
    };
    let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
    Message::session(seid, UNNUMBERED, request)
}

/// The end of it.
pub(crate) fn deletion(seid: u64) -> Message {
    Message::session(seid, UNNUMBERED, SessionDeletionRequest::default())
}

fn pdi(source_interface: SourceInterface, number: u32) -> Pdi {
    let is_destination = source_interface != SourceInterface::Access;
    let ue = UeIpAddress { ipv4: Some(user(number).address), is_destination, ..UeIpAddress::default() };
    Pdi {
        source_interface,
        f_teid: None,
        network_instance: None,
        ue_ip_addresses: vec![ue],
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

/// Its FAR has the same number.
fn pdr(pdr_id: u16, pdi: Pdi) -> CreatePdr {
    CreatePdr {
        pdr_id,
        precedence: Some(255),
        pdi,
        outer_header_removal: None,
        far_id: Some(pdr_id.into()),
        urr_ids: vec![1],
        qer_ids: vec![1],
        activate_predefined_rules: vec![],
        ue_ip_address_pool: None,
        carried: vec![],
    }
}

fn uplink_far() -> CreateFar {
    let parameters = ForwardingParameters {
        destination_interface: DestinationInterface::Core,
        network_instance: None,
        outer_header_creation: None,
        transport_level_marking: None,
        redirect_information: None,
        header_enrichment: None,
        interface_type: None,
        linked_traffic_endpoint_id: None,
        carried: vec![],
    };
    far(UPLINK, ApplyAction::FORW, Some(parameters))
}

fn far(far_id: u16, action: u16, forwarding_parameters: Option<ForwardingParameters>) -> CreateFar {
    let apply_action = ApplyAction::new(action);
    CreateFar {
        far_id: far_id.into(),
        apply_action,
        forwarding_parameters,
        duplicating_parameters: vec![],
        bar_id: None,
        carried: vec![],
    }
}

fn qer() -> CreateQer {
    CreateQer {
        qer_id: 1,
        qer_correlation_id: None,
        gate_status: GateStatus { uplink: Gate::Open, downlink: Gate::Open },
        mbr: None,
        gbr: None,
        qfi: Some(QFI),
        rqi: None,
        carried: vec![],
    }
}

/// All bytes are counted; what the session used is told when it ends.
fn urr() -> CreateUrr {
    CreateUrr {
        urr_id: 1,
        measurement_method: flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(VOLTH),
        volume_threshold: Some(Volumes { total: Some(THRESHOLD_BYTES), ..Volumes::default() }),
        ..CreateUrr::default()
    }
}

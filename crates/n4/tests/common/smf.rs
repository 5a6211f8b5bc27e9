//! What a control plane says.

use super::{N3, SMF};
use pfcp::*;
use std::net::Ipv4Addr;

pub const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
pub const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);

pub fn setup(peer: Ipv4Addr, stamp: u32) -> AssociationSetupRequest {
    AssociationSetupRequest {
        node_id: NodeId::Ipv4(peer),
        recovery_time_stamp: stamp,
        up_function_features: None,
        cp_function_features: Some(CpFunctionFeatures::of(&[])),
        pools: vec![],
        smf_set_id: None,
        alternatives: vec![],
        carried: vec![],
    }
}

pub fn choose(choose_id: Option<u8>) -> FTeid {
    FTeid::Choose { ipv4: true, ipv6: false, choose_id }
}

pub fn given(teid: u32) -> FTeid {
    FTeid::Explicit { teid, ipv4: Some(N3), ipv6: None }
}

pub fn ue(address: Ipv4Addr) -> UeIpAddress {
    UeIpAddress { ipv4: Some(address), is_destination: true, ..UeIpAddress::default() }
}

pub fn pdi(source_interface: SourceInterface) -> Pdi {
    Pdi {
        source_interface,
        f_teid: None,
        network_instance: Some(NetworkInstance::labels("internet")),
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

pub fn pdr(id: u16, pdi: Pdi, far: u32) -> CreatePdr {
    CreatePdr {
        pdr_id: id,
        precedence: Some(255),
        pdi,
        outer_header_removal: None,
        far_id: Some(far),
        urr_ids: vec![],
        qer_ids: vec![],
        activate_predefined_rules: vec![],
        ue_ip_address_pool: None,
        carried: vec![],
    }
}

pub fn uplink(id: u16, f_teid: FTeid) -> CreatePdr {
    let pdi = Pdi { f_teid: Some(f_teid), ..pdi(SourceInterface::Access) };
    let removal = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IP);
    CreatePdr { outer_header_removal: Some(removal), ..pdr(id, pdi, 1) }
}

pub fn downlink(id: u16, address: Option<Ipv4Addr>) -> CreatePdr {
    let pdi = Pdi { ue_ip_addresses: address.map(ue).into_iter().collect(), ..pdi(SourceInterface::Core) };
    pdr(id, pdi, 2)
}

pub fn forwarding(destination_interface: DestinationInterface) -> ForwardingParameters {
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

pub fn far(id: u32, action: u16, forwarding_parameters: Option<ForwardingParameters>) -> CreateFar {
    let apply_action = ApplyAction::new(action);
    let duplicating_parameters = vec![];
    CreateFar {
        far_id: id,
        apply_action,
        forwarding_parameters,
        duplicating_parameters,
        bar_id: None,
        carried: vec![],
    }
}

pub fn qer(id: u32) -> CreateQer {
    CreateQer {
        qer_id: id,
        qer_correlation_id: None,
        gate_status: GateStatus { uplink: Gate::Open, downlink: Gate::Open },
        mbr: None,
        gbr: None,
        qfi: Some(9),
        rqi: None,
        carried: vec![],
    }
}

/// Uplink to the data network, downlink dropped until the radio is known.
pub fn establishment(cp_seid: u64) -> SessionEstablishmentRequest {
    let to_core = forwarding(DestinationInterface::Core);
    SessionEstablishmentRequest {
        node_id: NodeId::Ipv4(SMF),
        cp_f_seid: FSeid::new(cp_seid, SMF.into()),
        create_pdrs: vec![uplink(1, choose(None)), downlink(2, Some(UE))],
        create_fars: vec![far(1, ApplyAction::FORW, Some(to_core)), far(2, ApplyAction::DROP, None)],
        create_urrs: vec![],
        create_qers: vec![],
        create_bar: None,
        pdn_type: Some(PdnType::Ipv4),
        user_plane_inactivity_timer: None,
        user_id: Some(vec![1, 8, 0x99, 0x79, 0, 0, 0, 0, 0, 0xF1]),
        apn_dnn: Some(NetworkInstance::labels("internet").0),
        s_nssai: Some(vec![1, 0xFF, 0xFF, 0xFF]),
        pfcpse_req_flags: None,
        create_traffic_endpoints: vec![],
        fq_csids: vec![],
        group_id: None,
        carried: vec![],
    }
}

pub fn tunnel(teid: u32) -> OuterHeaderCreation {
    OuterHeaderCreation::GtpuIpv4 { teid, address: GNB }
}

/// The radio is known now, or has changed.
pub fn path_switch(teid: u32) -> SessionModificationRequest {
    let parameters = UpdateForwardingParameters {
        destination_interface: Some(DestinationInterface::Access),
        outer_header_creation: Some(tunnel(teid)),
        ..UpdateForwardingParameters::default()
    };
    let update = UpdateFar {
        far_id: 2,
        apply_action: Some(ApplyAction::new(ApplyAction::FORW)),
        update_forwarding_parameters: Some(parameters),
        ..UpdateFar::default()
    };
    SessionModificationRequest { update_fars: vec![update], ..SessionModificationRequest::default() }
}

/// The endpoint chosen for a PDR.
pub fn chosen(created: &[CreatedPdr], pdr_id: u16) -> u32 {
    let pdr = created.iter().find(|pdr| pdr.pdr_id == pdr_id).expect("a created PDR");
    match pdr.local_f_teid {
        Some(FTeid::Explicit { teid, ipv4: Some(N3), ipv6: None }) => teid,
        other => panic!("{other:?}"),
    }
}

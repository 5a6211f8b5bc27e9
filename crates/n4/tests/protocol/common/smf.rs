//! What a control plane says.

use super::{N3, SMF};
use pfcp::*;
use std::net::Ipv4Addr;

pub const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
pub const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);

pub fn setup(peer: Ipv4Addr, stamp: u32) -> AssociationSetupRequest {
    request::setup(NodeId::Ipv4(peer), stamp)
}

pub fn choose(choose_id: Option<u8>) -> FTeid {
    FTeid::choose(choose_id)
}

pub fn given(teid: u32) -> FTeid {
    FTeid::ipv4(teid, N3)
}

pub fn ue(address: Ipv4Addr) -> UeIpAddress {
    UeIpAddress { ipv4: Some(address), is_destination: true, ..UeIpAddress::default() }
}

pub fn pdi(source_interface: SourceInterface) -> Pdi {
    let network_instance = Some(NetworkInstance::labels("internet"));
    Pdi { network_instance, ..Pdi::new(source_interface) }
}

pub fn pdr(id: u16, pdi: Pdi, far: u32) -> CreatePdr {
    request::pdr((id, far), 255, pdi)
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
    ForwardingParameters::new(destination_interface)
}

pub fn far(id: u32, action: u16, forwarding_parameters: Option<ForwardingParameters>) -> CreateFar {
    request::far(id, ApplyAction::new(action), forwarding_parameters)
}

pub fn qer(id: u32) -> CreateQer {
    request::qer(id, None, Some(9))
}

/// Uplink to the data network, downlink dropped until the radio is known.
pub fn establishment(cp_seid: u64) -> SessionEstablishmentRequest {
    let to_core = forwarding(DestinationInterface::Core);
    let (node_id, f_seid) = (NodeId::Ipv4(SMF), FSeid::new(cp_seid, SMF.into()));
    let pdrs = vec![uplink(1, choose(None)), downlink(2, Some(UE))];
    let fars = vec![far(1, ApplyAction::FORW, Some(to_core)), far(2, ApplyAction::DROP, None)];
    SessionEstablishmentRequest {
        pdn_type: Some(PdnType::Ipv4),
        user_id: Some(vec![1, 8, 0x99, 0x79, 0, 0, 0, 0, 0, 0xF1]),
        apn_dnn: Some(NetworkInstance::labels("internet").0),
        s_nssai: Some(vec![1, 0xFF, 0xFF, 0xFF]),
        ..SessionEstablishmentRequest::new(node_id, f_seid, pdrs, fars)
    }
}

pub fn tunnel(teid: u32) -> OuterHeaderCreation {
    OuterHeaderCreation::GtpuIpv4 { teid, address: GNB }
}

/// The radio is known now, or has changed.
pub fn path_switch(teid: u32) -> SessionModificationRequest {
    request::updates(vec![request::far_into(2, DestinationInterface::Access, tunnel(teid))])
}

/// The endpoint chosen for a PDR.
pub fn chosen(created: &[CreatedPdr], pdr_id: u16) -> u32 {
    let pdr = created.iter().find(|pdr| pdr.pdr_id == pdr_id).expect("a created PDR");
    match pdr.local_f_teid {
        Some(FTeid::Explicit { teid, ipv4: Some(N3), ipv6: None }) => teid,
        other => panic!("{other:?}"),
    }
}

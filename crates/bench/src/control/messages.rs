//! What an SMF sends to set a session up, to give it its downlink tunnel, and to end it (TS 23.502 4.3.2.2.1).

use crate::setup::{ENDPOINTS, QFI, user};
use pfcp::request::{self, far, far_into, pdr, qer};
use pfcp::{
    ApplyAction, CreatePdr, CreateUrr, DestinationInterface, FSeid, FTeid, ForwardingParameters, Message,
    NodeId, OuterHeaderCreation, OuterHeaderRemoval, Pdi, PdnType, ReportingTriggers, SessionDeletionRequest,
    SessionEstablishmentRequest, SourceInterface, UeIpAddress, Volumes, flags,
};
use std::net::Ipv4Addr;

/// Who we are.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
/// Until the client sends it.
const UNNUMBERED: u32 = 0;
/// The rules that matter up and down: PDR and FAR.
const UPLINK: (u16, u32) = (1, 1);
const DOWNLINK: (u16, u32) = (2, 2);
const PRECEDENCE: u32 = 255;
/// Both PDRs share it.
const QER: u32 = 1;
const URR: u32 = 1;
/// Never reached: there is no traffic.
const THRESHOLD_BYTES: u64 = 1 << 30;

pub(super) fn setup(recovery_time_stamp: u32) -> Message {
    Message::node(UNNUMBERED, request::setup(NodeId::Ipv4(ADDRESS), recovery_time_stamp))
}

/// A PDR, a FAR each way, a QER and a URR; the user plane chooses the tunnel.
pub(crate) fn establishment(number: u32) -> Message {
    let removal = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IPV4);
    let up = Pdi { f_teid: Some(FTeid::choose(Some(1))), ..pdi(SourceInterface::Access, number) };
    let up = CreatePdr { outer_header_removal: Some(removal), ..measured(UPLINK, up) };
    let pdrs = vec![up, measured(DOWNLINK, pdi(SourceInterface::Core, number))];
    let to_core = ForwardingParameters::new(DestinationInterface::Core);
    let fars = vec![
        far(UPLINK.1, ApplyAction::new(ApplyAction::FORW), Some(to_core)),
        far(DOWNLINK.1, ApplyAction::new(ApplyAction::DROP), None),
    ];
    let f_seid = FSeid::new(u64::from(number) + 1, ADDRESS.into());
    let request = SessionEstablishmentRequest {
        create_urrs: vec![urr()],
        create_qers: vec![qer(QER, None, Some(QFI))],
        pdn_type: Some(PdnType::Ipv4),
        ..SessionEstablishmentRequest::new(NodeId::Ipv4(ADDRESS), f_seid, pdrs, fars)
    };
    Message::session(0, UNNUMBERED, request)
}

/// The downlink goes into the gNB's tunnel.
pub(crate) fn modification(number: u32, seid: u64) -> Message {
    let tunnel = OuterHeaderCreation::GtpuIpv4 { teid: user(number).teid, address: ENDPOINTS.gnb.1 };
    let update = far_into(DOWNLINK.1, DestinationInterface::Access, tunnel);
    Message::session(seid, UNNUMBERED, request::updates(vec![update]))
}

/// The end of it.
pub(crate) fn deletion(seid: u64) -> Message {
    Message::session(seid, UNNUMBERED, SessionDeletionRequest::default())
}

fn pdi(source_interface: SourceInterface, number: u32) -> Pdi {
    let is_destination = source_interface != SourceInterface::Access;
    let ue = UeIpAddress { ipv4: Some(user(number).address), is_destination, ..UeIpAddress::default() };
    Pdi { ue_ip_addresses: vec![ue], ..Pdi::new(source_interface) }
}

fn measured(ids: (u16, u32), pdi: Pdi) -> CreatePdr {
    CreatePdr { urr_ids: vec![URR], qer_ids: vec![QER], ..pdr(ids, PRECEDENCE, pdi) }
}

/// All bytes are counted; what the session used is told when it ends.
fn urr() -> CreateUrr {
    let triggers = ReportingTriggers::new(ReportingTriggers::VOLTH);
    CreateUrr {
        volume_threshold: Some(Volumes { total: Some(THRESHOLD_BYTES), ..Volumes::default() }),
        ..CreateUrr::new(URR, flags::METHOD_VOLUM, triggers)
    }
}

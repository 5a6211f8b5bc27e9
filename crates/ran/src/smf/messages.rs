//! The pieces of requests that are made of what the emulator knows; the others are [`pfcp::request`]'s.

use super::dialect::About;
use super::event::{PduSession, Settings};
use crate::tunnel::Tunnel;
use pfcp::{
    AssociationReleaseRequest, AssociationSetupRequest, CreateFar, CreatePdr, DestinationInterface, FSeid,
    HeartbeatRequest, Message, OuterHeaderCreation, PdnType, Rates, SdfFilter, SessionEstablishmentRequest,
    UeIpAddress, UpdateFar, request,
};
use std::net::Ipv4Addr;

/// Until [`super::Smf`] sends it.
pub(super) const UNNUMBERED: u32 = 0;

pub(super) fn setup(settings: &Settings) -> AssociationSetupRequest {
    request::setup(settings.node_id.clone(), settings.recovery_time_stamp)
}

pub(super) fn heartbeat(settings: &Settings) -> Message {
    Message::node(UNNUMBERED, HeartbeatRequest::new(settings.recovery_time_stamp))
}

pub(super) fn release(settings: &Settings) -> Message {
    Message::node(UNNUMBERED, AssociationReleaseRequest::new(settings.node_id.clone()))
}

/// Of a session of IP packets.
pub(super) fn establishment(
    of: About<'_>,
    pdrs: Vec<CreatePdr>,
    fars: Vec<CreateFar>,
) -> SessionEstablishmentRequest {
    let pdn_type = if of.session.plan.ue6.is_some() { PdnType::Ipv4v6 } else { PdnType::Ipv4 };
    SessionEstablishmentRequest {
        pdn_type: Some(pdn_type),
        ..SessionEstablishmentRequest::new(of.settings.node_id.clone(), f_seid(of), pdrs, fars)
    }
}

/// Our end of a session.
pub(super) fn f_seid(of: About<'_>) -> FSeid {
    FSeid::new(of.session.seid, of.settings.address.into())
}

/// The UE's addresses.
pub(super) fn ue(plan: &PduSession, is_destination: bool) -> Vec<UeIpAddress> {
    vec![UeIpAddress { ipv4: Some(plan.ue), ipv6: plan.ue6, is_destination, ..UeIpAddress::default() }]
}

/// The server's packets to the UE, and those back, as TS 29.212 5.4.2 writes both ways.
pub(super) fn sdf(server: Ipv4Addr, port: u16) -> Vec<SdfFilter> {
    vec![SdfFilter::flow(format!("permit out 17 from {server} {port} to assigned"))]
}

/// Forwards into a tunnel.
pub(super) fn far_into(far_id: u32, to: DestinationInterface, tunnel: Tunnel) -> UpdateFar {
    request::far_into(far_id, to, outer_header(tunnel))
}

pub(super) fn outer_header(Tunnel { teid, address }: Tunnel) -> OuterHeaderCreation {
    OuterHeaderCreation::GtpuIpv4 { teid: teid.0, address }
}

/// What the plan allows, and zeros where it says nothing: a rate that policy leaves out is sent so by two SMFs.
pub(super) fn mbr_or_zeros(plan: &PduSession) -> Option<Rates> {
    mbr(plan).or(Some(Rates { uplink_kbps: 0, downlink_kbps: 0 }))
}

/// What the plan allows.
pub(super) fn mbr(plan: &PduSession) -> Option<Rates> {
    plan.mbr.map(|mbr| Rates { uplink_kbps: mbr.uplink_kbps, downlink_kbps: mbr.downlink_kbps })
}

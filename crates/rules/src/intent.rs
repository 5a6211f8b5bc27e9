//! Rules as a control plane states them (TS 29.244 5.2.1).

use crate::ids::{FarId, PdrId, QerId, Qfi, Teid};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// What one session may hold at most. More is refused, never silently cut.
pub mod limits {
    /// PDRs in a session.
    pub const PDRS: usize = 1_000;
    /// FARs in a session.
    pub const FARS: usize = 1_000;
    /// QERs in a session.
    pub const QERS: usize = 1_000;
    /// QERs named by one PDR.
    pub const QERS_PER_PDR: usize = 8;
    /// QFIs in one PDI.
    pub const QFIS_PER_PDI: usize = 64;
}

/// Where a packet comes from or goes to (TS 29.244 8.2.2 and 8.2.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Interface {
    /// Towards the radio: N3, S1-U, or N9/S5-U when nearer to it.
    Access,
    /// Towards the data network or the next user plane: N6, SGi, N9, S5-U.
    Core,
    /// The operator's service network beside N6.
    SgiLan,
}

/// A tunnel endpoint of ours (TS 29.244 8.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FTeid {
    /// Never 0.
    pub teid: Teid,
    /// The address of ours it is reached at.
    pub address: Ipv4Addr,
}

/// Packet Detection Information: all that is present must match (TS 29.244 7.5.2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pdi {
    /// Where the packet arrives from.
    pub source_interface: Interface,
    /// The tunnel it arrives in.
    pub f_teid: Option<FTeid>,
    /// The user's address: source on the uplink, destination on the downlink.
    pub ue_ipv4: Option<Ipv4Addr>,
    /// Any of these; empty matches every packet.
    pub qfis: Vec<Qfi>,
}

/// Packet Detection Rule (TS 29.244 7.5.2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pdr {
    /// Unique in the session.
    pub id: PdrId,
    /// Lower is matched first.
    pub precedence: u32,
    /// What it matches.
    pub pdi: Pdi,
    /// Remove the GTP-U, UDP and IP headers of the tunnel.
    pub outer_header_removal: bool,
    /// What to do with what it matches.
    pub far: FarId,
    /// Every gate among them must be open; the first QFI among them marks the packet.
    pub qers: Vec<QerId>,
}

/// What a FAR does with a packet (TS 29.244 8.2.26).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApplyAction {
    /// DROP.
    Drop,
    /// FORW.
    Forward,
}

/// The GTP-U/UDP/IPv4 header to put on (TS 29.244 8.2.56).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OuterHeaderCreation {
    /// The peer's tunnel.
    pub teid: Teid,
    /// The peer's address.
    pub address: Ipv4Addr,
}

/// Where and how to forward (TS 29.244 7.5.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardingParameters {
    /// The side it leaves on.
    pub destination_interface: Interface,
    /// The tunnel to put it into; `None` sends plain IP.
    pub outer_header_creation: Option<OuterHeaderCreation>,
}

/// Forwarding Action Rule (TS 29.244 7.5.2.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Far {
    /// Unique in the session.
    pub id: FarId,
    /// What to do.
    pub apply_action: ApplyAction,
    /// Needed by [`ApplyAction::Forward`]; kept through any other action.
    pub forwarding: Option<ForwardingParameters>,
}

/// A gate (TS 29.244 8.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gate {
    /// Packets pass.
    Open,
    /// Packets are dropped.
    Closed,
}

/// QoS Enforcement Rule (TS 29.244 7.5.2.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qer {
    /// Unique in the session.
    pub id: QerId,
    /// The gate of packets from the user.
    pub uplink_gate: Gate,
    /// The gate of packets to the user.
    pub downlink_gate: Gate,
    /// Marks packets put into a tunnel, in the PDU session container.
    pub qfi: Option<Qfi>,
}

/// All rules of a session: the desired state of the data plane for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// At most [`limits::PDRS`].
    pub pdrs: Vec<Pdr>,
    /// At most [`limits::FARS`].
    pub fars: Vec<Far>,
    /// At most [`limits::QERS`].
    pub qers: Vec<Qer>,
}

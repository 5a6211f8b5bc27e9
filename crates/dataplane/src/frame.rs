//! A vector of packets on its way through the graph.

use crate::counters::DropReason;
use crate::state::SessionIndex;
use packet::gtpu::PduSession;
use rules::{Action, Interface};
use std::net::Ipv4Addr;

/// Most packets of a vector.
pub const VECTOR: usize = 256;

/// A port by its place in the configuration.
pub(crate) type PortIndex = u8;

/// The end of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Give it to a port.
    Send(PortIndex),
    /// Free it.
    Drop(DropReason),
    /// It was for us; free it.
    Consumed,
    /// Keep it until the next hop's Ethernet address is known.
    Hold,
}

/// The tunnel a packet came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tunnel {
    pub(crate) teid: u32,
    /// Our address it was sent to.
    pub(crate) address: Ipv4Addr,
    /// Who sent it.
    pub(crate) peer: Ipv4Addr,
    pub(crate) pdu_session: Option<PduSession>,
}

/// The IPv4 header at hand: the outer one, then the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ip {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) header_length: usize,
}

/// Where a packet goes next on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    pub(crate) port: PortIndex,
    pub(crate) address: Ipv4Addr,
}

/// What the nodes have found out about a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    /// Where it came in.
    pub(crate) port: PortIndex,
    /// Set by `ip4_input` and `classify`; nodes that answer set the destination of the answer.
    pub(crate) ip: Ip,
    /// Set by `gtpu_input`.
    pub(crate) tunnel: Option<Tunnel>,
    /// Set by `session_uplink` and `session_downlink`.
    pub(crate) session: SessionIndex,
    /// Set by `classify`.
    pub(crate) action: Action,
    /// Whose routes apply in `ip4_output`.
    pub(crate) towards: Interface,
    /// Set by `ip4_output`.
    pub(crate) next_hop: NextHop,
    /// Set at the end of its way.
    pub(crate) fate: Fate,
}

impl Meta {
    /// What is known of a packet that just came in on a port of this side.
    pub(crate) const fn new(port: PortIndex, interface: Interface) -> Self {
        Self {
            port,
            ip: Ip { source: Ipv4Addr::UNSPECIFIED, destination: Ipv4Addr::UNSPECIFIED, header_length: 0 },
            tunnel: None,
            session: SessionIndex::NONE,
            action: Action::Drop,
            towards: interface,
            next_hop: NextHop { port: 0, address: Ipv4Addr::UNSPECIFIED },
            fate: Fate::Drop(DropReason::Unfinished),
        }
    }
}

/// One packet; its data starts at the layer the next node reads.
#[derive(Debug)]
pub(crate) struct Packet<B> {
    pub(crate) buffer: B,
    pub(crate) meta: Meta,
}

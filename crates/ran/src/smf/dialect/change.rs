//! What may become of a session that is up.

use crate::tunnel::Tunnel;
use rules::Qfi;
use std::net::Ipv4Addr;

/// A change that a control plane may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Downlink packets go to another radio, and those before them end with an End Marker (TS 23.502 4.9.1.2).
    Handover(Tunnel),
    /// A flow with a QoS of its own: a QoS flow, or a dedicated bearer.
    AddFlow(Flow),
    /// The radio has taken it; of control planes that make it in two steps.
    ActivateFlow(Flow),
    /// It is about another server now.
    ModifyFlow(Flow),
    /// It is over.
    RemoveFlow,
    /// Packets that the old radio still has go through us to the new one (TS 23.502 4.11.1.2.2).
    Forward(Tunnel),
    /// They have all come.
    EndForwarding,
    /// A usage report is wanted now.
    QueryUsage,
    /// So many bytes more may be used.
    Grant(u64),
}

/// Packets to and from a UDP port of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The server.
    pub server: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// The QoS flow, of 5G.
    pub qfi: Qfi,
    /// Where downlink packets go: of 4G, where each bearer has tunnels of its own.
    pub downlink: Tunnel,
    /// Where an SGW sends uplink packets.
    pub beyond: Tunnel,
}

/// An endpoint of the user plane, by what comes in there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Uplink packets.
    Uplink,
    /// Downlink packets from another gateway.
    Core,
    /// Packets of the control plane for the UE.
    ControlPlane,
    /// Uplink packets of the added flow.
    FlowUplink,
    /// Its downlink packets from another gateway.
    FlowCore,
    /// Packets from the radio that was left.
    Forwarding,
}

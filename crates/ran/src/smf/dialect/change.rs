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
    /// Packets for a network leave the usual way here (TS 23.501 5.6.4.2), of control planes with uplink classifiers.
    Branch(Branch),
    /// No longer.
    EndBranch,
    /// Packets that the old radio still has go through us to the new one (TS 23.502 4.11.1.2.2).
    Forward(Tunnel),
    /// They have all come.
    EndForwarding,
    /// A usage report is wanted now.
    QueryUsage,
    /// So many bytes more may be used.
    Grant(u64),
    /// What is used is not measured any more.
    EndCharging,
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

/// Where packets for a network go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its address, and how many bits of it count.
    pub network: (Ipv4Addr, u8),
    /// The anchor that has the network; `None` where it is beside the user plane itself.
    pub beyond: Option<Tunnel>,
    /// The filter is written from the UE on, as releases of free5GC before 3.4.3 do.
    pub is_turned: bool,
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

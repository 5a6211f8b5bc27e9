//! Service data flow filters (TS 29.244 8.2.5): which packets of a user a rule is about.

mod display;
mod parse;
#[cfg(test)]
mod tests;

use crate::compile::Arrival;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

pub use parse::SdfError;

/// Ports from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortRange {
    /// Not above `last`.
    pub first: u16,
    /// Not below `first`.
    pub last: u16,
}

/// One end of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FlowEnd {
    /// `None`: any address (`any`, or for the user's end `assigned`).
    pub prefix: Option<IpNet>,
    /// Any of these; empty: any port, and packets without ports.
    pub ports: Vec<PortRange>,
}

/// `permit out PROTOCOL from REMOTE to USER`, as flow descriptions are always written, whichever way the packets of
/// the PDR go (TS 29.244 5.2.1A.2A: for packets from the user the ends change places).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FlowDescription {
    /// `None`: any (`ip`).
    pub protocol: Option<u8>,
    /// The far end: `from`.
    pub remote: FlowEnd,
    /// The user's end: `to`.
    pub user: FlowEnd,
}

/// Type of service, or traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TrafficClass {
    /// Compared under the mask.
    pub value: u8,
    /// Bits that count.
    pub mask: u8,
}

/// One SDF filter: all that is present must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SdfFilter {
    /// FD.
    pub flow: Option<FlowDescription>,
    /// TTC.
    pub traffic_class: Option<TrafficClass>,
    /// SPI: of the IPsec packet.
    pub spi: Option<u32>,
    /// FL: of the IPv6 header, 20 bits.
    pub flow_label: Option<u32>,
    /// BID: a filter of nothing but this stands for the session's other filter of the same ID.
    pub id: Option<u32>,
}

impl PortRange {
    /// Whether a port is in it.
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

impl FlowEnd {
    fn matches(&self, address: IpAddr, port: Option<u16>) -> bool {
        let in_ports = || port.is_some_and(|port| self.ports.iter().any(|range| range.contains(port)));
        self.prefix.is_none_or(|prefix| prefix.contains(&address)) && (self.ports.is_empty() || in_ports())
    }
}

impl FlowDescription {
    fn matches(&self, packet: &Arrival) -> bool {
        self.protocol.is_none_or(|protocol| protocol == packet.protocol)
            && self.remote.matches(packet.remote, packet.remote_port)
            && self.user.matches(packet.ue, packet.ue_port)
    }
}

impl SdfFilter {
    /// The ID of the filter it stands for, if it is nothing but an ID (TS 29.244 5.2.1A.2A).
    pub fn reference(&self) -> Option<u32> {
        let id = self.id?;
        (*self == Self { id: Some(id), ..Self::default() }).then_some(id)
    }

    /// Whether a packet matches.
    pub fn matches(&self, packet: &Arrival) -> bool {
        let class = |wanted: TrafficClass| packet.traffic_class & wanted.mask == wanted.value & wanted.mask;
        self.flow.as_ref().is_none_or(|flow| flow.matches(packet))
            && self.traffic_class.is_none_or(class)
            && self.spi.is_none_or(|spi| packet.spi == Some(spi))
            && self.flow_label.is_none_or(|label| packet.flow_label == Some(label))
    }
}

//! Service data flow filters (TS 29.244 8.2.5): which packets of a user a rule is about.

mod display;
mod parse;
#[cfg(test)]
mod tests;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub use parse::SdfError;

/// Ports from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortRange {
    /// Not above `last`.
    pub first: u16,
    /// Not below `first`.
    pub last: u16,
}

/// Addresses of one IP version, which packets must be of (RFC 6733 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Addresses {
    /// Those in it.
    pub prefix: IpNet,
    /// `!`: all but those.
    pub inverted: bool,
}

/// One end of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FlowEnd {
    /// `None`: any address (`any`, or for the user's end `assigned`). Of the other end's IP version, if that names any.
    pub addresses: Option<Addresses>,
    /// Any of these, at most [`limits::PORT_RANGES`](crate::limits::PORT_RANGES) (and
    /// [`limits::PORT_RANGES_PER_SESSION`](crate::limits::PORT_RANGES_PER_SESSION)); empty: any port, and packets without
    /// ports, such as later fragments. Only for a protocol that has ports, or any.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TrafficClass {
    /// Compared under the mask; bits outside it do not count.
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
    /// SPI: of the IPsec packet; others do not match.
    pub spi: Option<u32>,
    /// FL: of the IPv6 header, 20 bits; IPv4 packets do not match.
    pub flow_label: Option<u32>,
    /// BID: a filter of nothing but this stands for the session's other filter of the same ID, of several for the first,
    /// and there must be one.
    pub id: Option<u32>,
}

impl PortRange {
    /// Whether a port is in it.
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

impl From<IpNet> for Addresses {
    fn from(prefix: IpNet) -> Self {
        Self { prefix, inverted: false }
    }
}

impl FlowDescription {
    /// The ends change places.
    pub const fn turn(&mut self) {
        std::mem::swap(&mut self.remote, &mut self.user);
    }
}

impl SdfFilter {
    /// The ID of the filter it stands for, if it is nothing but an ID (TS 29.244 5.2.1A.2A).
    pub fn reference(&self) -> Option<u32> {
        let id = self.id?;
        (*self == Self { id: Some(id), ..Self::default() }).then_some(id)
    }
}

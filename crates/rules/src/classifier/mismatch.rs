//! Why a PDR does not match a packet: the first criterion that differs, for people who wonder.

use super::Classifier;
use super::matcher::{Filter, Matcher, is_among};
use crate::compile::Arrival;
use crate::ids::Teid;
use crate::intent::Interface;
use crate::sdf::{Addresses, PortRange, TrafficClass};
use ipnet::Ipv6Net;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// The first criterion of a PDI that a packet does not meet, and what the PDI wants there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mismatch {
    /// Packets from another side.
    Source(Interface),
    /// Packets of another network instance.
    Instance,
    /// Packets of another tunnel; `None`: of none.
    Tunnel(Option<Teid>),
    /// Packets of a user at other addresses.
    User(Option<Ipv4Addr>, Option<Ipv6Net>),
    /// Packets of other QoS flows: bit n set wants QFI n.
    Qfis(u64),
    /// Packets of a certain application.
    Application,
    /// None of so many SDF filters matches; this is what the nearest lacks.
    Filters(u16, FilterMismatch),
}

/// The first criterion of an SDF filter that a packet does not meet, and what the filter wants there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterMismatch {
    /// Another protocol.
    Protocol(u8),
    /// A port at the far end in the first of so many ranges, or another of them.
    RemotePort(PortRange, u16),
    /// A port at the user's end, likewise.
    UserPort(PortRange, u16),
    /// One of these far ends.
    Remote(Addresses),
    /// One of these users' ends.
    User(Addresses),
    /// Another type of service, or traffic class.
    TrafficClass(TrafficClass),
    /// Another Security Parameters Index.
    Spi(u32),
    /// Another IPv6 flow label.
    FlowLabel(u32),
}

impl Classifier {
    /// Why the PDR at `place`, in the order they are tried, does not match; `None` where it does, and where there is
    /// none. Slow beside [`Classifier::find`].
    pub fn mismatch(&self, place: usize, packet: &Arrival) -> Option<Mismatch> {
        let mismatch = self.matcher_of(place)?.mismatch(packet);
        mismatch.or_else(|| (!self.is_of(place, packet.application)).then_some(Mismatch::Application))
    }

    /// Bit n set: some PDR asks for QFI n.
    pub fn qfis(&self) -> u64 {
        self.matchers.iter().fold(0, |mask, matcher| mask | matcher.qfi_mask())
    }
}

impl Matcher {
    fn mismatch(&self, packet: &Arrival) -> Option<Mismatch> {
        if self.matches(packet) {
            return None;
        }
        Some(if !self.matches_source(packet) {
            Mismatch::Source(self.source)
        } else if self.teid() != packet.teid {
            Mismatch::Tunnel(self.teid())
        } else if !self.matches_instance(packet) {
            Mismatch::Instance
        } else if !self.matches_ue(packet.ue) {
            Mismatch::User(self.ue_ipv4, self.ue_ipv6())
        } else if !self.matches_qfi(packet.qfi) {
            Mismatch::Qfis(self.qfi_mask())
        } else {
            let lacking = self.filters().iter().filter_map(|filter| filter.mismatch(packet));
            // Later criteria are looked at last: who fails there was near.
            let nearest = lacking.reduce(|best, next| if next.rank() > best.rank() { next } else { best })?;
            Mismatch::Filters(self.filters().len() as u16, nearest)
        })
    }
}

impl Filter {
    fn mismatch(&self, packet: &Arrival) -> Option<FilterMismatch> {
        let ports = |ranges: &[PortRange], port: Option<u16>| {
            let first = *ranges.first()?;
            let within = port.is_some_and(|port| ranges.iter().any(|range| range.contains(port)));
            (!within).then_some((first, ranges.len() as u16))
        };
        let class = |wanted: &TrafficClass| (packet.traffic_class ^ wanted.value) & wanted.mask != 0;
        let protocol = self.protocol.filter(|protocol| *protocol != packet.protocol);
        let remote_port = || ports(&self.remote_ports, packet.remote_port);
        let user_port = || ports(&self.user_ports, packet.ue_port);
        let remote = || self.remote.filter(|wanted| !is_among(*wanted, packet.remote));
        let user = || self.user.filter(|wanted| !is_among(*wanted, packet.ue));
        let spi = || self.spi.filter(|spi| packet.spi != Some(*spi));
        let label = || self.flow_label.filter(|label| packet.flow_label != Some(*label));
        protocol
            .map(FilterMismatch::Protocol)
            .or_else(|| remote_port().map(|(first, of)| FilterMismatch::RemotePort(first, of)))
            .or_else(|| user_port().map(|(first, of)| FilterMismatch::UserPort(first, of)))
            .or_else(|| remote().map(FilterMismatch::Remote))
            .or_else(|| user().map(FilterMismatch::User))
            .or_else(|| self.traffic_class.filter(class).map(FilterMismatch::TrafficClass))
            .or_else(|| spi().map(FilterMismatch::Spi))
            .or_else(|| label().map(FilterMismatch::FlowLabel))
    }
}

impl FilterMismatch {
    /// The place of the criterion in the order they are looked at.
    const fn rank(&self) -> u8 {
        match self {
            Self::Protocol(_) => 0,
            Self::RemotePort(..) => 1,
            Self::UserPort(..) => 2,
            Self::Remote(_) => 3,
            Self::User(_) => 4,
            Self::TrafficClass(_) => 5,
            Self::Spi(_) => 6,
            Self::FlowLabel(_) => 7,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(Interface::Access) => f.write_str("is for packets from the access side"),
            Self::Source(Interface::Core) => f.write_str("is for packets from the core side"),
            Self::Source(Interface::SgiLan) => f.write_str("is for packets from the SGi-LAN"),
            Self::Instance => f.write_str("is for packets from another network instance"),
            Self::Tunnel(Some(teid)) => write!(f, "is for packets in tunnel {teid}"),
            Self::Tunnel(None) => f.write_str("is for packets outside any tunnel"),
            Self::User(Some(ipv4), Some(ipv6)) => write!(f, "is for user {ipv4} or {ipv6}"),
            Self::User(Some(ipv4), None) => write!(f, "is for user {ipv4}"),
            Self::User(None, Some(ipv6)) => write!(f, "is for user {ipv6}"),
            Self::User(None, None) => f.write_str("is for another user"),
            Self::Qfis(mask) => {
                let qfis = (0..64).filter(|qfi| mask >> qfi & 1 == 1).map(|qfi: u32| qfi.to_string());
                write!(f, "is for QFI {}", qfis.collect::<Vec<_>>().join(", "))
            }
            Self::Application => {
                f.write_str("is for packets of an application that this is not known to be of")
            }
            Self::Filters(1, lacks) => write!(f, "its SDF filter wants {lacks}"),
            Self::Filters(count, lacks) => {
                write!(f, "none of {count} SDF filters matches; one wants {lacks}")
            }
        }
    }
}

impl fmt::Display for FilterMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(protocol) => write!(f, "protocol {protocol}"),
            Self::RemotePort(range, 1) => write!(f, "port {range} at the far end"),
            Self::RemotePort(range, of) => write!(f, "port {range} or another of {of} ranges at the far end"),
            Self::UserPort(range, 1) => write!(f, "port {range} at the user's end"),
            Self::UserPort(range, of) => {
                write!(f, "port {range} or another of {of} ranges at the user's end")
            }
            Self::Remote(wanted) => write!(f, "a far end {} {}", where_from(wanted), wanted.prefix),
            Self::User(wanted) => write!(f, "a user {} {}", where_from(wanted), wanted.prefix),
            Self::TrafficClass(TrafficClass { value, mask }) => {
                write!(f, "type of service {value:#04x} under mask {mask:#04x}")
            }
            Self::Spi(spi) => write!(f, "SPI {spi:#010x}"),
            Self::FlowLabel(label) => write!(f, "flow label {label:#07x}"),
        }
    }
}

const fn where_from(wanted: &Addresses) -> &'static str {
    if wanted.inverted { "outside" } else { "in" }
}

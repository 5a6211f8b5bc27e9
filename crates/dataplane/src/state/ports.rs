//! The ports as nodes see them, and the addresses that are ours.

use super::step::longest_tunnel;
use crate::config::{ConfigError, PORTS_MAX, PortConfig};
use crate::frame::{Meta, NextHop, PortIndex};
use crate::side::Side;
use rules::{FTeid, Instance, Interface, Teid};
use std::net::{IpAddr, Ipv6Addr};

/// In the order of the configuration.
pub(crate) struct Ports {
    ports: Box<[PortConfig]>,
    receivers: Box<[Receiver]>,
    /// By the lowest six bits of an IPv4 address: whether one of ours ends so.
    endings: u64,
    clamp_mtu: Option<u16>,
    /// Some port is of a network instance that is not the default one.
    has_instances: bool,
}

/// What tells that a packet is for us, as it stands on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiver {
    mac: u64,
    pub(crate) address: [u8; 4],
    address6: Option<Ipv6Addr>,
    /// Users' addresses say all: the port is of the default instance, or there is no other.
    pub(crate) is_plain: bool,
    /// What is known of a packet that just came in.
    pub(crate) fresh: Meta,
}

/// From here on, addresses of IPv4 are not of single stations.
pub(crate) const FIRST_GROUP: u8 = 224;

/// Bits of an Ethernet address in the word it is the front of.
const MAC: u64 = u64::MAX >> 16;

impl Receiver {
    fn new(index: PortIndex, port: &PortConfig, has_instances: bool) -> Self {
        let [a, b, c, d, e, f] = port.mac.0;
        Self {
            mac: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
            address: port.address.addr().octets(),
            address6: port.address6.map(|address| address.addr()),
            is_plain: match port.interface {
                Interface::Access => !has_instances,
                Interface::Core | Interface::SgiLan => port.instance == Instance::DEFAULT,
            },
            fresh: Meta::new(index, port.side()),
        }
    }

    /// Whether what is for this address goes on from here: it is neither the port's, nor a group's, nor of this link alone.
    pub(crate) fn leads_on(&self, to: IpAddr) -> bool {
        match to {
            IpAddr::V4(to) => to.octets() != self.address && to.octets()[0] < FIRST_GROUP,
            IpAddr::V6(to) => Some(to) != self.address6 && !to.is_multicast() && !to.is_unicast_link_local(),
        }
    }

    /// Bits in which an Ethernet address, at the front of a frame, is not ours; `front` are its first eight octets.
    #[inline(always)]
    pub(crate) const fn strange(&self, front: u64) -> u64 {
        (front ^ self.mac) & MAC
    }
}

impl Ports {
    pub(crate) fn new(ports: &[PortConfig]) -> Result<Self, ConfigError> {
        if ports.len() > PORTS_MAX {
            return Err(ConfigError::TooManyPorts(ports.len()));
        }
        for (at, port) in ports.iter().enumerate() {
            if port.ethernet && port.interface == Interface::Access {
                return Err(ConfigError::EthernetAccess(port.name.clone()));
            }
            let is_twin = |other: &PortConfig| other.ethernet && other.side() == port.side();
            if port.ethernet && ports[..at].iter().any(is_twin) {
                return Err(ConfigError::TwoEthernetPorts);
            }
            for address in port.addresses() {
                if ports[..at].iter().flat_map(PortConfig::addresses).any(|other| other == address) {
                    return Err(ConfigError::DoubleAddress(address));
                }
            }
        }
        let has_instances = ports.iter().any(|port| port.side().instance() != Instance::DEFAULT);
        let receiver = |(index, port)| Receiver::new(index, port, has_instances);
        let clamp_mtu = ports.iter().filter(|port| port.mss_clamp).map(room).min();
        Ok(Self {
            ports: ports.into(),
            receivers: (0..).zip(ports).map(receiver).collect(),
            endings: ports
                .iter()
                .map(|port| ending(port.address.addr().octets()))
                .fold(0, std::ops::BitOr::bitor),
            clamp_mtu,
            has_instances,
        })
    }

    /// The port at a place; indexes come from the worker, which counts the same ports.
    #[inline]
    pub(crate) fn get(&self, index: PortIndex) -> &PortConfig {
        &self.ports[usize::from(index)]
    }

    /// What users' TCP connections are to fit into, if anything.
    #[inline]
    pub(crate) const fn clamp_mtu(&self) -> Option<u16> {
        self.clamp_mtu
    }

    /// Whether users of different networks may have the same address.
    #[inline]
    pub(crate) const fn has_instances(&self) -> bool {
        self.has_instances
    }

    /// What tells that a packet is for us.
    #[inline]
    pub(crate) fn receiver(&self, index: PortIndex) -> &Receiver {
        &self.receivers[usize::from(index)]
    }

    /// Whether an IPv4 address, as it stands on the wire, is one of ours.
    #[inline]
    pub(crate) fn is_ours_ipv4(&self, address: [u8; 4]) -> bool {
        self.endings & ending(address) != 0 && self.is_receiver(address)
    }

    #[cold]
    #[inline(never)]
    fn is_receiver(&self, address: [u8; 4]) -> bool {
        let mut receivers = self.receivers.iter().zip(&self.ports);
        // One of Ethernet has no address, whatever stands for it.
        receivers.any(|(receiver, port)| receiver.address == address && !port.ethernet)
    }

    /// Whether an address is one of ours.
    #[inline]
    pub(crate) fn is_ours(&self, address: IpAddr) -> bool {
        self.ports.iter().flat_map(PortConfig::addresses).any(|ours| ours == address)
    }

    /// The port whose address this is.
    pub(crate) fn with_address(&self, address: IpAddr) -> Option<PortIndex> {
        self.iter().find(|(_, port)| port.addresses().any(|ours| ours == address)).map(|(index, _)| index)
    }

    /// Whether a next hop is no neighbour but this node.
    #[inline]
    pub(crate) fn is_own(&self, next_hop: NextHop) -> bool {
        let port = self.get(next_hop.port);
        match next_hop.address {
            IpAddr::V4(address) => port.address.addr() == address,
            IpAddr::V6(address) => port.address6.is_some_and(|own| own.addr() == address),
        }
    }

    /// The key of the tunnel a packet came in: we are known by the port's address there.
    #[inline]
    pub(crate) fn tunnel_key(&self, meta: &Meta) -> u64 {
        key(meta.port, meta.teid)
    }

    /// The key of a tunnel.
    pub(crate) const fn key(port: PortIndex, teid: u32) -> u64 {
        key(port, teid)
    }

    /// The tunnel of a key.
    pub(crate) const fn tunnel(key: u64) -> (PortIndex, Teid) {
        ((key >> 32) as PortIndex, Teid(key as u32))
    }

    /// The key of a tunnel endpoint; `None` where the address is not ours.
    pub(crate) fn endpoint_key(ports: &[PortConfig], endpoint: FTeid) -> Option<u64> {
        let ours = |port: &PortConfig| port.addresses().any(|address| address == endpoint.address);
        let port = ports.iter().position(ours)?;
        Some(key(port as PortIndex, endpoint.teid.0))
    }

    /// All sides of these kinds that ports are on, the kinds in this order; some come more than once.
    pub(crate) fn sides(&self, kinds: &[Interface]) -> impl Iterator<Item = Side> {
        let of = |kind: &Interface| {
            let kind = *kind;
            self.ports.iter().map(PortConfig::side).filter(move |side| side.interface() == kind)
        };
        kinds.iter().flat_map(of)
    }

    /// The side packets in a tunnel come from that are [`Key::turned`](super::Key::turned), and others.
    pub(crate) fn source(&self, port: PortIndex, is_turned: bool) -> Interface {
        let own = self.get(port).interface;
        match own {
            _ if !is_turned => own,
            Interface::Access => Interface::Core,
            Interface::Core | Interface::SgiLan => Interface::Access,
        }
    }

    /// In their order.
    pub(crate) fn all(&self) -> &[PortConfig] {
        &self.ports
    }

    /// Ports with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PortIndex, &PortConfig)> {
        (0..).zip(self.ports.iter())
    }
}

/// The bit that stands for how an address ends.
#[inline(always)]
const fn ending(address: [u8; 4]) -> u64 {
    1 << (address[3] & 63)
}

/// Bytes of the longest user's packet that surely passes a port.
fn room(port: &PortConfig) -> u16 {
    let headers = match (port.interface, port.address6) {
        (Interface::Core | Interface::SgiLan, _) => 0,
        (Interface::Access, None) => longest_tunnel(false),
        (Interface::Access, Some(_)) => longest_tunnel(true),
    };
    port.mtu.saturating_sub(headers as u16)
}

/// A port's IPv4 and IPv6 address share one space of TEIDs.
const fn key(port: PortIndex, teid: u32) -> u64 {
    (port as u64) << 32 | teid as u64
}

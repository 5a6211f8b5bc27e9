//! What identifies a flow: addresses, ports, protocol and the other fields that packet filters look at
//! (TS 29.212 5.4.2, TS 24.501 9.11.4.13).

use crate::{ipv4, ipv6, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zerocopy::{Immutable, IntoBytes, KnownLayout};

const ECN: u8 = 3;

/// A flow key of 48 bytes: equal keys, equal bytes.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(16))]
pub struct FiveTuple {
    /// From whom, from the highest octet down; of an IPv4 address, the first four octets are used and the others 0.
    pub source: [u8; 16],
    /// To whom, likewise.
    pub destination: [u8; 16],
    /// 0 where the protocol has no ports or the packet does not show them.
    pub source_port: u16,
    /// Likewise.
    pub destination_port: u16,
    /// Security Parameters Index of ESP or AH, else 0.
    pub spi: u32,
    /// IPv6 flow label (20 bits); 0 over IPv4.
    pub flow_label: u32,
    /// What the packet carries; of IPv6, behind the extension headers.
    pub protocol: u8,
    /// Type of service or traffic class, ECN included.
    pub tos: u8,
    /// 4 or 6.
    pub version: u8,
    /// A fragment other than the first, which shows no ports.
    pub fragment: bool,
}

const _: () = assert!(size_of::<FiveTuple>() == 48, "six words, three vector registers");

impl PartialEq for FiveTuple {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for FiveTuple {}

impl std::hash::Hash for FiveTuple {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write(self.as_bytes());
    }
}

/// What is wrong with a packet whose flow is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// No bytes at all.
    Empty,
    /// Neither version 4 nor 6.
    Version,
    /// The IPv4 header is at fault.
    Ipv4(ipv4::Malformed),
    /// The IPv6 header or an extension header is at fault.
    Ipv6(ipv6::Malformed),
    /// The packet ends within the ports or the SPI.
    Transport,
}

/// The flow of a packet, and where its parts lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dissected {
    /// The flow.
    pub tuple: FiveTuple,
    /// Bytes before the upper layer: headers, options, extension headers.
    pub upper: usize,
    /// Bytes of the whole packet; what follows is padding.
    pub total: usize,
}

impl FiveTuple {
    /// Reads the IP packet at the front of `bytes`, of either version.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Dissected, Malformed> {
        match bytes.first().map(|first| first >> 4) {
            Some(4) => {
                let packet = ipv4::Packet::parse(bytes).map_err(Malformed::Ipv4)?;
                let (upper, total) = (packet.header_length(), packet.total_length());
                Ok(Dissected { tuple: Self::of_ipv4(&packet)?, upper, total })
            }
            Some(6) => {
                let packet = ipv6::Packet::parse(bytes).map_err(Malformed::Ipv6)?;
                let upper = packet.upper().map_err(Malformed::Ipv6)?;
                let tuple = Self::of_ipv6(&packet, &upper)?;
                Ok(Dissected { tuple, upper: upper.offset, total: packet.total_length() })
            }
            Some(_) => Err(Malformed::Version),
            None => Err(Malformed::Empty),
        }
    }

    /// The flow of a checked IPv4 packet.
    ///
    /// # Errors
    /// [`Malformed::Transport`].
    #[inline]
    pub fn of_ipv4(packet: &ipv4::Packet<'_>) -> Result<Self, Malformed> {
        let header = packet.header();
        let tuple = Self {
            source: from_ipv4(header.source),
            destination: from_ipv4(header.destination),
            protocol: packet.protocol(),
            tos: header.tos,
            version: 4,
            fragment: packet.is_later_fragment(),
            ..Self::default()
        };
        if tuple.fragment { Ok(tuple) } else { tuple.with_transport(packet.payload()) }
    }

    /// The flow of a checked IPv6 packet, given what [`ipv6::Packet::upper`] found.
    ///
    /// # Errors
    /// [`Malformed::Transport`].
    #[inline]
    pub fn of_ipv6(packet: &ipv6::Packet<'_>, upper: &ipv6::Upper) -> Result<Self, Malformed> {
        let (source, destination) = packet.header().addresses();
        let tuple = Self {
            source: *source,
            destination: *destination,
            spi: upper.spi,
            flow_label: packet.flow_label(),
            protocol: upper.protocol,
            tos: packet.traffic_class(),
            version: 6,
            fragment: upper.is_later_fragment(),
            ..Self::default()
        };
        let payload = packet.payload().get(upper.offset - ipv6::LENGTH..).unwrap_or_default();
        if tuple.fragment { Ok(tuple) } else { tuple.with_transport(payload) }
    }

    /// Adds what the upper-layer header says.
    #[inline]
    fn with_transport(mut self, upper: &[u8]) -> Result<Self, Malformed> {
        if protocol::has_ports(self.protocol) {
            let [a, b, c, d] = *upper.first_chunk().ok_or(Malformed::Transport)?;
            self.source_port = u16::from_be_bytes([a, b]);
            self.destination_port = u16::from_be_bytes([c, d]);
        } else if matches!(self.protocol, protocol::ESP | protocol::AH) {
            self.spi = spi(self.protocol, upper).ok_or(Malformed::Transport)?;
        }
        Ok(self)
    }

    /// The same flow the other way.
    #[must_use]
    pub const fn reversed(mut self) -> Self {
        (self.source, self.destination) = (self.destination, self.source);
        (self.source_port, self.destination_port) = (self.destination_port, self.source_port);
        self
    }

    /// The same without ECN, which changes from packet to packet of one flow (RFC 3168).
    #[inline]
    #[must_use]
    pub const fn without_ecn(mut self) -> Self {
        self.tos &= !ECN;
        self
    }

    /// From whom.
    pub const fn source_address(&self) -> IpAddr {
        to_address(self.version, self.source)
    }

    /// To whom.
    pub const fn destination_address(&self) -> IpAddr {
        to_address(self.version, self.destination)
    }

    /// A hash for tables; with a seed that senders cannot know, they cannot aim at one bucket. Not for signatures.
    #[inline]
    pub const fn hash_with(&self, seed: u64) -> u64 {
        let ports = (self.source_port as u64) << 16 | self.destination_port as u64;
        let place = (self.spi as u64 ^ (self.flow_label as u64) << 12) << 32 | ports;
        let kind = u32::from_le_bytes([self.protocol, self.tos, self.version, self.fragment as u8]) as u64;
        let [a, b] = halves(self.source);
        let [c, d] = halves(self.destination);
        let mut hash = mix(a ^ seed, c ^ 0x9e37_79b9_7f4a_7c15);
        if self.version == 6 {
            hash ^= mix(b ^ seed.rotate_left(32), d ^ 0xc2b2_ae3d_27d4_eb4f);
        }
        mix(hash ^ place, kind ^ 0x1656_67b1_9e37_79f9 ^ seed)
    }
}

/// Both halves of the product: every bit of either factor reaches the result.
#[inline]
const fn mix(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline]
const fn halves(octets: [u8; 16]) -> [u64; 2] {
    let whole = u128::from_be_bytes(octets);
    [(whole >> 64) as u64, whole as u64]
}

#[inline]
const fn from_ipv4(octets: [u8; 4]) -> [u8; 16] {
    ((u32::from_be_bytes(octets) as u128) << 96).to_be_bytes()
}

const fn to_address(version: u8, octets: [u8; 16]) -> IpAddr {
    match (version, octets) {
        (4, [a, b, c, d, ..]) => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        _ => IpAddr::V6(Ipv6Addr::from_octets(octets)),
    }
}

/// Security Parameters Index (RFC 4303 2, RFC 4302 2).
fn spi(protocol: u8, header: &[u8]) -> Option<u32> {
    let at = if protocol == protocol::ESP { 0 } else { 4 };
    header.get(at..)?.first_chunk().map(|octets| u32::from_be_bytes(*octets))
}

#[cfg(test)]
mod tests;

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
    /// From whom, as a number, so that a prefix is a mask of its upper bits; an IPv4 address is in the upper 32 bits,
    /// and the others are 0.
    pub source: u128,
    /// To whom, likewise.
    pub destination: u128,
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
    /// Of a part of a larger packet: which part of which.
    pub part: Option<ipv6::Fragment>,
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
                Ok(Dissected { tuple: Self::of_ipv4(&packet)?, upper, total, part: packet.part() })
            }
            Some(6) => {
                let packet = ipv6::Packet::parse(bytes).map_err(Malformed::Ipv6)?;
                // Apart, so that the usual packet's values stay in registers.
                if packet.has_extensions() {
                    return with_extensions(&packet);
                }
                let tuple = Self::of_ipv6(&packet, &ipv6::Upper::next(packet.next_header()))?;
                Ok(Dissected { tuple, upper: ipv6::LENGTH, total: packet.total_length(), part: None })
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
        let (header, fragment) = (packet.header(), packet.is_later_fragment());
        let transport = Transport::of(packet.protocol(), fragment, packet.payload())?;
        Ok(Self {
            source: from_ipv4(header.source),
            destination: from_ipv4(header.destination),
            source_port: transport.source_port,
            destination_port: transport.destination_port,
            spi: transport.spi,
            flow_label: 0,
            protocol: packet.protocol(),
            tos: header.tos,
            version: 4,
            fragment,
        })
    }

    /// The flow of a checked IPv6 packet, given what [`ipv6::Packet::upper`] found.
    ///
    /// # Errors
    /// [`Malformed::Transport`].
    #[inline]
    pub fn of_ipv6(packet: &ipv6::Packet<'_>, upper: &ipv6::Upper) -> Result<Self, Malformed> {
        let (source, destination) = packet.header().addresses();
        let fragment = upper.is_later_fragment();
        let payload = packet.payload().get(upper.offset - ipv6::LENGTH..).unwrap_or_default();
        let transport = Transport::of(upper.protocol, fragment, payload)?;
        Ok(Self {
            source: u128::from_be_bytes(*source),
            destination: u128::from_be_bytes(*destination),
            source_port: transport.source_port,
            destination_port: transport.destination_port,
            // An authentication header before ESP is of the same sender; what is inside counts.
            spi: if transport.spi == 0 { upper.spi } else { transport.spi },
            flow_label: packet.flow_label(),
            protocol: upper.protocol,
            tos: packet.traffic_class(),
            version: 6,
            fragment,
        })
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

#[cold]
fn with_extensions(packet: &ipv6::Packet<'_>) -> Result<Dissected, Malformed> {
    let upper = packet.upper().map_err(Malformed::Ipv6)?;
    let tuple = FiveTuple::of_ipv6(packet, &upper)?;
    let part = upper.fragment.filter(|_| upper.is_fragment());
    Ok(Dissected { tuple, upper: upper.offset, total: packet.total_length(), part })
}

/// Both halves of the product: every bit of either factor reaches the result.
#[inline]
const fn mix(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline]
const fn halves(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}

#[inline]
const fn from_ipv4(octets: [u8; 4]) -> u128 {
    (u32::from_be_bytes(octets) as u128) << 96
}

const fn to_address(version: u8, address: u128) -> IpAddr {
    match version {
        4 => IpAddr::V4(Ipv4Addr::from_bits((address >> 96) as u32)),
        _ => IpAddr::V6(Ipv6Addr::from_bits(address)),
    }
}

/// What the front of the upper layer says.
#[derive(Clone, Copy)]
struct Transport {
    source_port: u16,
    destination_port: u16,
    spi: u32,
}

impl Transport {
    const NONE: Self = Self { source_port: 0, destination_port: 0, spi: 0 };

    /// `upper` begins with the header of `protocol`, unless this is a later fragment.
    #[inline]
    fn of(protocol: u8, later_fragment: bool, upper: &[u8]) -> Result<Self, Malformed> {
        if later_fragment {
            return Ok(Self::NONE);
        }
        if protocol::has_ports(protocol) {
            let [a, b, c, d] = *upper.first_chunk().ok_or(Malformed::Transport)?;
            let (source_port, destination_port) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            return Ok(Self { source_port, destination_port, spi: 0 });
        }
        let spi = match protocol {
            protocol::ESP => upper.first_chunk().ok_or(Malformed::Transport)?,
            // RFC 4302 2.
            protocol::AH => upper.get(4..).and_then(<[u8]>::first_chunk).ok_or(Malformed::Transport)?,
            _ => return Ok(Self::NONE),
        };
        Ok(Self { spi: u32::from_be_bytes(*spi), ..Self::NONE })
    }
}

#[cfg(test)]
mod tests;

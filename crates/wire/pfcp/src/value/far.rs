//! What becomes of packets.

use super::blame;
use crate::ErrorKind;
use crate::fields::Value;
use rs_pfcp::ie::outer_header_creation::OuterHeaderCreation as Wire;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Apply Action (TS 29.244 8.2.26), a set of the bits named here.
///
/// Coded here: releases before 16 have one octet, later ones two; both must be read, none is too few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ApplyAction {
    /// The first octet in the low bits, the second above.
    pub flags: u16,
    /// Whether it has but one octet on the wire.
    pub is_short: bool,
}

impl ApplyAction {
    /// Drop.
    pub const DROP: u16 = 1;
    /// Forward.
    pub const FORW: u16 = 1 << 1;
    /// Buffer.
    pub const BUFF: u16 = 1 << 2;
    /// Notify the control plane.
    pub const NOCP: u16 = 1 << 3;
    /// Duplicate.
    pub const DUPL: u16 = 1 << 4;
    /// IP multicast accept.
    pub const IPMA: u16 = 1 << 5;
    /// IP multicast deny.
    pub const IPMD: u16 = 1 << 6;
    /// Duplicate for redundant transmission.
    pub const DFRT: u16 = 1 << 7;

    /// On two octets.
    pub const fn new(flags: u16) -> Self {
        Self { flags, is_short: false }
    }

    /// On one octet, as releases before 16 have it.
    pub const fn short(flags: u8) -> Self {
        Self { flags: flags as u16, is_short: true }
    }

    /// Whether all of `bits` are set.
    pub const fn contains(self, bits: u16) -> bool {
        self.flags & bits == bits
    }
}

impl Value for ApplyAction {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        match bytes {
            [] => Err(ErrorKind::InvalidLength(ie)),
            [first] => Ok(Self::short(*first)),
            [first, second, ..] => Ok(Self::new(u16::from_le_bytes([*first, *second]))),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let octets = if self.is_short { 1 } else { 2 };
        out.extend(self.flags.to_le_bytes().into_iter().take(octets));
    }
}

/// Destination Interface (TS 29.244 8.2.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationInterface {
    /// Towards the radio.
    Access,
    /// Towards the data network.
    Core,
    /// SGi-LAN or N6-LAN.
    SgiLan,
    /// The control plane.
    CpFunction,
    /// Lawful interception.
    LiFunction,
    /// 5G VN internal (5), or one of a release after ours.
    Other(u8),
}

impl Value for DestinationInterface {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        Ok(match u8::read(bytes, ie)? & 0x0F {
            0 => Self::Access,
            1 => Self::Core,
            2 => Self::SgiLan,
            3 => Self::CpFunction,
            4 => Self::LiFunction,
            other => Self::Other(other),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Access => 0,
            Self::Core => 1,
            Self::SgiLan => 2,
            Self::CpFunction => 3,
            Self::LiFunction => 4,
            Self::Other(other) => other & 0x0F,
        });
    }
}

/// Outer Header Creation (TS 29.244 8.2.56).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OuterHeaderCreation {
    /// GTP-U/UDP/IPv4.
    GtpuIpv4 {
        /// The peer's tunnel.
        teid: u32,
        /// The peer's address.
        address: Ipv4Addr,
    },
    /// GTP-U/UDP/IPv6.
    GtpuIpv6 {
        /// The peer's tunnel.
        teid: u32,
        /// The peer's address.
        address: Ipv6Addr,
    },
    /// UDP/IPv4.
    UdpIpv4 {
        /// The peer's address.
        address: Ipv4Addr,
        /// Its port.
        port: u16,
    },
    /// UDP/IPv6.
    UdpIpv6 {
        /// The peer's address.
        address: Ipv6Addr,
        /// Its port.
        port: u16,
    },
    /// Any other description, as it came: plain IP, VLAN tags, both families, N6 or N19 indications.
    Other(Vec<u8>),
}

impl OuterHeaderCreation {
    const GTPU_UDP_IPV4: [u8; 2] = [1, 0];
    const GTPU_UDP_IPV6: [u8; 2] = [2, 0];
    const UDP_IPV4: [u8; 2] = [4, 0];
    const UDP_IPV6: [u8; 2] = [8, 0];

    fn write_udp(out: &mut Vec<u8>, description: [u8; 2], address: &[u8], port: u16) {
        out.extend_from_slice(&description);
        out.extend_from_slice(address);
        out.extend_from_slice(&port.to_be_bytes());
    }
}

impl Value for OuterHeaderCreation {
    /// The description is looked at here first: `rs-pfcp` does not see its second octet.
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let description = bytes.first_chunk().ok_or(ErrorKind::InvalidLength(ie))?;
        let wire = Wire::unmarshal(bytes).map_err(|error| blame(&error, ie))?;
        let (teid, port) = (wire.teid.map_or(0, |teid| teid.0), wire.port_number.unwrap_or(0));
        Ok(match (*description, wire.ipv4_address, wire.ipv6_address) {
            (Self::GTPU_UDP_IPV4, Some(address), _) => Self::GtpuIpv4 { teid, address },
            (Self::GTPU_UDP_IPV6, _, Some(address)) => Self::GtpuIpv6 { teid, address },
            (Self::UDP_IPV4, Some(address), _) => Self::UdpIpv4 { address, port },
            (Self::UDP_IPV6, _, Some(address)) => Self::UdpIpv6 { address, port },
            _ => Self::Other(bytes.to_vec()),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::GtpuIpv4 { teid, address } => out.extend(Wire::gtpu_ipv4(*teid, *address).marshal()),
            Self::GtpuIpv6 { teid, address } => out.extend(Wire::gtpu_ipv6(*teid, *address).marshal()),
            Self::UdpIpv4 { address, port } => {
                Self::write_udp(out, Self::UDP_IPV4, &address.octets(), *port);
            }
            Self::UdpIpv6 { address, port } => {
                Self::write_udp(out, Self::UDP_IPV6, &address.octets(), *port);
            }
            Self::Other(bytes) => out.extend_from_slice(bytes),
        }
    }
}

/// Redirect Information (TS 29.244 8.2.20).
///
/// Coded here: `rs-pfcp` does not know the types with two addresses or a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RedirectInformation {
    /// A URL.
    Url(String),
    /// An address.
    Address(IpAddr),
    /// One address of each IP version.
    Addresses(Ipv4Addr, Ipv6Addr),
    /// Any other type, as it came: a SIP URI, a port.
    Other(Vec<u8>),
}

impl RedirectInformation {
    const IPV4: u8 = 0;
    const IPV6: u8 = 1;
    const URL: u8 = 2;
    const IPV4_AND_IPV6: u8 = 4;
}

/// An address is text, as in the AVP that it comes from (RFC 4006 8.39).
fn address<T: FromStr>(text: &[u8], ie: u16) -> Result<T, ErrorKind> {
    let address = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    address.ok_or(ErrorKind::MandatoryIeIncorrect(ie))
}

/// Octets behind two that say how many, and the rest.
fn long_counted(bytes: &[u8], ie: u16) -> Result<(&[u8], &[u8]), ErrorKind> {
    let found = bytes
        .split_first_chunk()
        .and_then(|(length, rest)| rest.split_at_checked(usize::from(u16::from_be_bytes(*length))));
    found.ok_or(ErrorKind::InvalidLength(ie))
}

/// Cut at what the length can tell.
fn put_long_counted(text: &str, out: &mut Vec<u8>) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend(text.bytes().take(usize::from(length)));
}

impl Value for RedirectInformation {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let (kind, rest) = bytes.split_first().ok_or(ErrorKind::InvalidLength(ie))?;
        match kind & 0x0F {
            Self::URL => {
                let url = long_counted(rest, ie)?.0.to_vec();
                String::from_utf8(url).map(Self::Url).map_err(|_| ErrorKind::MandatoryIeIncorrect(ie))
            }
            Self::IPV4 => address(long_counted(rest, ie)?.0, ie).map(|ipv4| Self::Address(IpAddr::V4(ipv4))),
            Self::IPV6 => address(long_counted(rest, ie)?.0, ie).map(|ipv6| Self::Address(IpAddr::V6(ipv6))),
            Self::IPV4_AND_IPV6 => {
                let (one, rest) = long_counted(rest, ie)?;
                let (other, _) = long_counted(rest, ie)?;
                // Which of them stands first is not said.
                match (address(one, ie)?, address(other, ie)?) {
                    (IpAddr::V4(ipv4), IpAddr::V6(ipv6)) | (IpAddr::V6(ipv6), IpAddr::V4(ipv4)) => {
                        Ok(Self::Addresses(ipv4, ipv6))
                    }
                    _ => Err(ErrorKind::MandatoryIeIncorrect(ie)),
                }
            }
            _ => Ok(Self::Other(bytes.to_vec())),
        }
    }

    /// A URL is cut at what its length can tell.
    fn write(&self, out: &mut Vec<u8>) {
        let kind = match self {
            Self::Url(_) => Self::URL,
            Self::Address(IpAddr::V4(_)) => Self::IPV4,
            Self::Address(IpAddr::V6(_)) => Self::IPV6,
            Self::Addresses(..) => Self::IPV4_AND_IPV6,
            Self::Other(bytes) => return out.extend_from_slice(bytes),
        };
        out.push(kind);
        match self {
            Self::Url(url) => put_long_counted(url, out),
            Self::Address(address) => put_long_counted(&address.to_string(), out),
            Self::Addresses(ipv4, ipv6) => {
                put_long_counted(&ipv4.to_string(), out);
                put_long_counted(&ipv6.to_string(), out);
            }
            Self::Other(_) => {}
        }
    }
}

/// Header Enrichment (TS 29.244 8.2.67).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeaderEnrichment {
    /// A field of HTTP, of up to 255 octets each.
    Http {
        /// Its name.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// A type of a release after ours, as it came.
    Other(Vec<u8>),
}

impl Value for HeaderEnrichment {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let (kind, rest) = bytes.split_first().ok_or(ErrorKind::InvalidLength(ie))?;
        if kind & 0x1F != 0 {
            return Ok(Self::Other(bytes.to_vec()));
        }
        let (name, rest) = counted(rest).ok_or(ErrorKind::InvalidLength(ie))?;
        let (value, _) = counted(rest).ok_or(ErrorKind::InvalidLength(ie))?;
        Ok(Self::Http { name: name.to_vec(), value: value.to_vec() })
    }

    /// Name and value are cut at what their lengths can tell.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Http { name, value } => {
                out.push(0);
                for text in [name, value] {
                    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
                    out.push(length);
                    out.extend(text.iter().take(usize::from(length)));
                }
            }
            Self::Other(bytes) => out.extend_from_slice(bytes),
        }
    }
}

/// Octets behind one that says how many, and the rest.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

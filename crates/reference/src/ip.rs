//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, and what the PDRs look at behind them.

use crate::bytes::{checksum, octets, put, u8_at, u16_at, u32_at};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const DCCP: u8 = 33;
pub(crate) const ESP: u8 = 50;
pub(crate) const AH: u8 = 51;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const SCTP: u8 = 132;
pub(crate) const UDP_LITE: u8 = 136;

pub(crate) const HOP_BY_HOP: u8 = 0;
pub(crate) const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
pub(crate) const DESTINATION_OPTIONS: u8 = 60;

/// A longer chain of extension headers is an attack on the receiver's time.
const EXTENSIONS_MAX: usize = 8;
const IPV6_LENGTH: usize = 40;

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Truncated,
    Version,
    HeaderLength,
    Checksum,
}

/// The fixed header of an IP packet whose lengths fit its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Type of service, or traffic class.
    pub(crate) traffic_class: u8,
    /// Of IPv6.
    pub(crate) flow_label: Option<u32>,
    pub(crate) hops: u8,
    /// The protocol, or the first next header.
    pub(crate) next: u8,
    /// Options included, extension headers not.
    pub(crate) length: usize,
    /// Of header and payload; what is behind is padding.
    pub(crate) total: usize,
    /// Of IPv4: offset in units of 8 octets, and whether more fragments follow.
    fragment: (u16, bool),
}

/// What stands behind all headers of the IP layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upper {
    pub(crate) protocol: u8,
    /// Where it begins.
    pub(crate) at: usize,
    /// Offset in the whole packet in units of 8 octets, and whether more fragments follow.
    pub(crate) fragment: (u16, bool),
    /// Of IPv6: what the fragment header says, if there is one, be it of a whole packet.
    pub(crate) identification: Option<u32>,
    /// Security Parameters Index of an authentication header on the way.
    spi: Option<u32>,
    /// Of IPv6: a routing header or a signature says more of the addresses.
    pub(crate) is_bound: bool,
}

impl Upper {
    /// A part of a packet, and not all of it.
    pub(crate) fn is_fragment(&self) -> bool {
        self.fragment != (0, false)
    }

    /// A part without the upper layer's header.
    pub(crate) fn is_later_fragment(&self) -> bool {
        self.fragment.0 > 0
    }
}

/// Reads whichever version it is; `None` for anything unsound.
pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
    match u8_at(bytes, 0)? >> 4 {
        4 => read_v4(bytes).ok(),
        6 => read_v6(bytes).ok(),
        _ => None,
    }
}

/// The most basic fault first.
pub(crate) fn read_v4(bytes: &[u8]) -> Result<Header, Fault> {
    let fixed: [u8; 20] = octets(bytes, 0).ok_or(Fault::Truncated)?;
    let [first, traffic_class, t0, t1, _, _, f0, f1, hops, next, _, _, s0, s1, s2, s3, d0, d1, d2, d3] =
        fixed;
    if first >> 4 != 4 {
        return Err(Fault::Version);
    }
    let length = usize::from(first & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([t0, t1]));
    if length < 20 || length > total {
        return Err(Fault::HeaderLength);
    }
    if total > bytes.len() {
        return Err(Fault::Truncated);
    }
    if checksum(&[bytes.get(..length).unwrap_or_default()]) != 0 {
        return Err(Fault::Checksum);
    }
    let flags = u16::from_be_bytes([f0, f1]);
    Ok(Header {
        source: Ipv4Addr::new(s0, s1, s2, s3).into(),
        destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
        traffic_class,
        flow_label: None,
        hops,
        next,
        length,
        total,
        fragment: (flags & 0x1fff, flags & 0x2000 != 0),
    })
}

/// The most basic fault first. Jumbograms (RFC 2675) are read as packets without payload.
pub(crate) fn read_v6(bytes: &[u8]) -> Result<Header, Fault> {
    let fixed = bytes.get(..IPV6_LENGTH).ok_or(Fault::Truncated)?;
    let first = u32_at(fixed, 0).ok_or(Fault::Truncated)?;
    if first >> 28 != 6 {
        return Err(Fault::Version);
    }
    let total = IPV6_LENGTH + usize::from(u16_at(fixed, 4).ok_or(Fault::Truncated)?);
    if total > bytes.len() {
        return Err(Fault::Truncated);
    }
    let address = |at| octets(fixed, at).map(Ipv6Addr::from_octets).ok_or(Fault::Truncated);
    Ok(Header {
        source: address(8)?.into(),
        destination: address(24)?.into(),
        traffic_class: (first >> 20) as u8,
        flow_label: Some(first & 0x000f_ffff),
        hops: u8_at(fixed, 7).ok_or(Fault::Truncated)?,
        next: u8_at(fixed, 6).ok_or(Fault::Truncated)?,
        length: IPV6_LENGTH,
        total,
        fragment: (0, false),
    })
}

impl Header {
    /// What the packet carries; `None` where extension headers make no sense. `packet` ends with its payload.
    pub(crate) fn upper(&self, packet: &[u8]) -> Option<Upper> {
        let upper = Upper {
            protocol: self.next,
            at: self.length,
            fragment: self.fragment,
            identification: None,
            spi: None,
            is_bound: false,
        };
        match self.source {
            IpAddr::V4(_) => Some(upper),
            IpAddr::V6(_) => skip_extensions(upper, packet),
        }
    }
}

/// Walks the chain (RFC 8200 4). It ends at the first header that is no extension, and in a later fragment behind the
/// fragment header: what follows there is not a header.
fn skip_extensions(mut upper: Upper, packet: &[u8]) -> Option<Upper> {
    for place in 0..=EXTENSIONS_MAX {
        let extension = [HOP_BY_HOP, ROUTING, FRAGMENT, AH, DESTINATION_OPTIONS].contains(&upper.protocol);
        if !extension || upper.is_later_fragment() {
            return Some(upper);
        }
        // Hop-by-hop options stand first or not at all (RFC 8200 4.1).
        if upper.protocol == HOP_BY_HOP && place > 0 {
            return None;
        }
        upper = skip_extension(upper, packet)?;
    }
    None
}

fn skip_extension(upper: Upper, packet: &[u8]) -> Option<Upper> {
    let [next, length, o0, o1, w0, w1, w2, w3] = octets(packet, upper.at)?;
    let mut after = Upper { protocol: next, ..upper };
    let length = match upper.protocol {
        FRAGMENT => {
            let offset = u16::from_be_bytes([o0, o1]);
            after.fragment = (offset >> 3, offset & 1 != 0);
            after.identification = Some(u32::from_be_bytes([w0, w1, w2, w3]));
            8
        }
        ROUTING => {
            after.is_bound = true;
            8 * (usize::from(length) + 1)
        }
        AH => {
            after.spi = Some(u32::from_be_bytes([w0, w1, w2, w3]));
            after.is_bound = true;
            4 * (usize::from(length) + 2)
        }
        _ => 8 * (usize::from(length) + 1),
    };
    after.at += length;
    (after.at <= packet.len()).then_some(after)
}

/// A user's packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserPacket {
    /// Without anything behind it.
    pub(crate) bytes: Vec<u8>,
    pub(crate) header: Header,
    pub(crate) protocol: u8,
    /// Source and destination port, where it has and shows them.
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) spi: Option<u32>,
    /// Of a fragment: the identification, and whether it is a later one.
    pub(crate) part: Option<(u32, bool)>,
    /// A later fragment whose first one has told what it carries.
    pub(crate) follows: bool,
}

impl UserPacket {
    /// Takes the packet at the front of `bytes`; `None` where it is unsound in any header that rules look at.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let header = read(bytes)?;
        let bytes = bytes.get(..header.total)?;
        let upper = header.upper(bytes)?;
        let (protocol, bytes_of_it) = (upper.protocol, bytes.to_vec());
        let identification = upper.identification.or(u16_at(bytes, 4).map(u32::from));
        let part = identification.filter(|_| upper.is_fragment()).map(|id| (id, upper.is_later_fragment()));
        let mut packet =
            Self { bytes: bytes_of_it, header, protocol, ports: None, spi: None, part, follows: false };
        if upper.is_later_fragment() {
            return Some(packet);
        }
        packet.spi = upper.spi;
        match upper.protocol {
            TCP | UDP | SCTP | UDP_LITE | DCCP => {
                packet.ports = Some((u16_at(bytes, upper.at)?, u16_at(bytes, upper.at + 2)?));
            }
            ESP => packet.spi = Some(u32_at(bytes, upper.at)?),
            AH => packet.spi = Some(u32_at(bytes, upper.at + 4)?),
            _ => {}
        }
        Some(packet)
    }
}

/// Takes one hop off a packet that has one to spare.
pub(crate) fn take_hop(packet: &mut [u8], header: &Header) {
    let at = if header.source.is_ipv4() { 8 } else { 7 };
    put(packet, at, &[header.hops.saturating_sub(1)]);
    renew_checksum(packet, header);
}

/// Sets the DSCP and leaves the two bits of ECN alone (RFC 2474, RFC 3168).
pub(crate) fn set_dscp(packet: &mut [u8], header: &Header, dscp: u8) {
    set_traffic_class(packet, header, dscp << 2 | header.traffic_class & 0b11);
}

/// Sets the type of service, or traffic class.
pub(crate) fn set_traffic_class(packet: &mut [u8], header: &Header, class: u8) {
    match header.source {
        IpAddr::V4(_) => put(packet, 1, &[class]),
        IpAddr::V6(_) => {
            let label = header.flow_label.unwrap_or(0);
            put(packet, 0, &(6 << 28 | u32::from(class) << 20 | label).to_be_bytes());
        }
    }
    renew_checksum(packet, header);
}

fn renew_checksum(packet: &mut [u8], header: &Header) {
    if header.source.is_ipv4() {
        renew_checksum_v4(packet, header.length);
    }
}

pub(crate) fn renew_checksum_v4(packet: &mut [u8], length: usize) {
    put(packet, 10, &[0, 0]);
    let checksum = checksum(&[packet.get(..length).unwrap_or_default()]);
    put(packet, 10, &checksum.to_be_bytes());
}

/// The packet turned around: addresses swapped, 64 hops.
pub(crate) fn reverse(packet: &[u8], header: &Header) -> Vec<u8> {
    let mut answer = packet.to_vec();
    match (header.source, header.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            put(&mut answer, 12, &destination.octets());
            put(&mut answer, 16, &source.octets());
            put(&mut answer, 8, &[64]);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            put(&mut answer, 8, &destination.octets());
            put(&mut answer, 24, &source.octets());
            put(&mut answer, 7, &[64]);
        }
        _ => {}
    }
    renew_checksum(&mut answer, header);
    answer
}

/// What a new header says besides its addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New {
    pub(crate) protocol: u8,
    pub(crate) traffic_class: u8,
    pub(crate) hops: u8,
}

/// A packet of ours around `payload`: not to be fragmented, identification 0 (RFC 6864 allows that for packets that
/// are not), flow label 0. Addresses of two versions give an empty packet.
pub(crate) fn packet(source: IpAddr, destination: IpAddr, new: New, payload: &[u8]) -> Vec<u8> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => packet_v4(source, destination, new, payload),
        (IpAddr::V6(source), IpAddr::V6(destination)) => packet_v6(source, destination, new, payload),
        _ => Vec::new(),
    }
}

fn packet_v4(source: Ipv4Addr, destination: Ipv4Addr, new: New, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut bytes = vec![0x45, new.traffic_class];
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, new.hops, new.protocol, 0, 0]);
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    let checksum = checksum(&[&bytes]);
    put(&mut bytes, 10, &checksum.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn packet_v6(source: Ipv6Addr, destination: Ipv6Addr, new: New, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (6 << 28 | u32::from(new.traffic_class) << 20).to_be_bytes().to_vec();
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([new.protocol, new.hops]);
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    bytes.extend(payload);
    bytes
}

/// What checksums of IPv6's upper layers begin with (RFC 8200 8.1).
pub(crate) fn pseudo_header(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, length: usize) -> Vec<u8> {
    let mut bytes = source.octets().to_vec();
    bytes.extend(destination.octets());
    bytes.extend((length as u32).to_be_bytes());
    bytes.extend([0, 0, 0, protocol]);
    bytes
}

/// A UDP datagram of ours: without a checksum over IPv4, where that is allowed, and with one over IPv6, where it is
/// not (TS 29.281 4.4.2.0, RFC 8200 8.1).
pub(crate) fn datagram(from: (IpAddr, u16), to: (IpAddr, u16), payload: &[u8]) -> Vec<u8> {
    let mut bytes = from.1.to_be_bytes().to_vec();
    bytes.extend(to.1.to_be_bytes());
    bytes.extend(((8 + payload.len()) as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    if let (IpAddr::V6(source), IpAddr::V6(destination)) = (from.0, to.0) {
        let pseudo = pseudo_header(source, destination, UDP, bytes.len());
        let checksum = match checksum(&[&pseudo, &bytes]) {
            0 => 0xffff,
            checksum => checksum,
        };
        put(&mut bytes, 6, &checksum.to_be_bytes());
    }
    bytes
}

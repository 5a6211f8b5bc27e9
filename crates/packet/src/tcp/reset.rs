//! Ends a connection in the place of its other end (RFC 9293 3.5.2).

use super::segment::{Header, LENGTH, Segment, flag};
use crate::{checksum, ipv4, ipv6, protocol};
use zerocopy::IntoBytes;
use zerocopy::byteorder::network_endian::{U16, U32};

/// Why a packet is not answered with a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReset {
    /// Not a whole TCP segment in an intact IP packet.
    NotTcp,
    /// A reset is not reset.
    IsReset,
    /// A fragment.
    Fragment,
    /// From or to more than one station.
    NotUnicast,
    /// The answer does not fit where it should be written.
    NoRoom,
}

/// Writes the whole IP packet that resets the connection of `packet`, an IPv4 or IPv6 packet, to the front of
/// `bytes`; returns its length, 40 or 60.
///
/// # Errors
/// Why not; `bytes` are then unchanged, or undefined where there was no room.
pub fn write_reset(packet: &[u8], bytes: &mut [u8]) -> Result<usize, NoReset> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => reset_ipv4(packet, bytes),
        Some(6) => reset_ipv6(packet, bytes),
        _ => Err(NoReset::NotTcp),
    }
}

fn reset_ipv4(packet: &[u8], bytes: &mut [u8]) -> Result<usize, NoReset> {
    let packet = ipv4::Packet::parse(packet).map_err(|_| NoReset::NotTcp)?;
    let (us, them) = (packet.destination(), packet.source());
    if packet.is_fragment() {
        return Err(NoReset::Fragment);
    }
    if packet.protocol() != protocol::TCP {
        return Err(NoReset::NotTcp);
    }
    let group = us.is_multicast() || us.is_broadcast();
    if group || them.is_multicast() || them.is_broadcast() || them.is_unspecified() {
        return Err(NoReset::NotUnicast);
    }
    let answer = answer(packet.payload(), ipv4::pseudo_sum(us, them, protocol::TCP, LENGTH))?;
    let header = ipv4::Header::new(us, them, protocol::TCP, LENGTH).ok_or(NoReset::NoRoom)?;
    write(header.as_bytes(), &answer, bytes)
}

fn reset_ipv6(packet: &[u8], bytes: &mut [u8]) -> Result<usize, NoReset> {
    let packet = ipv6::Packet::parse(packet).map_err(|_| NoReset::NotTcp)?;
    let upper = packet.upper().map_err(|_| NoReset::NotTcp)?;
    let (us, them) = (packet.destination(), packet.source());
    if upper.is_fragment() {
        return Err(NoReset::Fragment);
    }
    if upper.protocol != protocol::TCP {
        return Err(NoReset::NotTcp);
    }
    if us.is_multicast() || them.is_multicast() || them.is_unspecified() {
        return Err(NoReset::NotUnicast);
    }
    let segment = packet.payload().get(upper.offset - ipv6::LENGTH..).unwrap_or_default();
    let answer = answer(segment, ipv6::pseudo_sum(us, them, protocol::TCP, LENGTH))?;
    let header = ipv6::Header::new(us, them, protocol::TCP, LENGTH).ok_or(NoReset::NoRoom)?;
    write(header.as_bytes(), &answer, bytes)
}

/// The reset that answers a segment, given the sum of its own pseudo header.
fn answer(segment: &[u8], pseudo_sum: u16) -> Result<Header, NoReset> {
    let segment = Segment::parse(segment).map_err(|_| NoReset::NotTcp)?;
    if segment.has(flag::RST) {
        return Err(NoReset::IsReset);
    }
    let (sequence, acknowledgement, flags) = match segment.has(flag::ACK) {
        true => (segment.acknowledgement(), 0, flag::RST),
        false => (0, segment.sequence().wrapping_add(segment.sequence_length()), flag::RST | flag::ACK),
    };
    let mut header = Header {
        source: U16::new(segment.destination()),
        destination: U16::new(segment.source()),
        sequence: U32::new(sequence),
        acknowledgement: U32::new(acknowledgement),
        data_offset: (LENGTH as u8 / 4) << 4,
        flags,
        window: U16::ZERO,
        checksum: U16::ZERO,
        urgent: U16::ZERO,
    };
    header.checksum.set(!checksum::add(checksum::sum(header.as_bytes()), pseudo_sum));
    Ok(header)
}

fn write(ip: &[u8], tcp: &Header, bytes: &mut [u8]) -> Result<usize, NoReset> {
    let (front, rest) = bytes.split_at_mut_checked(ip.len()).ok_or(NoReset::NoRoom)?;
    front.copy_from_slice(ip);
    tcp.write_to_prefix(rest).map_err(|_| NoReset::NoRoom)?;
    Ok(ip.len() + LENGTH)
}

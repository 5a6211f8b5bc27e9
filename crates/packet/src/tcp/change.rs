//! Changes to segments in place.

use super::segment::Header;
use crate::{checksum, ipv4, ipv6, protocol};
use zerocopy::FromBytes;
use zerocopy::byteorder::network_endian::U16;

/// Sets four octets of the segment at the front of `segment`, which is a whole header at least, and updates its checksum
/// (RFC 1624): a number in the header or its options. `None`, and no change, where they are not in it.
pub fn change(segment: &mut [u8], at: usize, number: u32) -> Option<()> {
    // Whole words: at an odd place, octets count in the other halves.
    let (from, to) = (at & !1, (at + 5) & !1);
    let mut old = [0; 6];
    let old = old.get_mut(..to - from)?;
    old.copy_from_slice(segment.get(from..to)?);
    segment.get_mut(at..at + 4)?.copy_from_slice(&number.to_be_bytes());
    let mut new = [0; 6];
    let new = new.get_mut(..to - from)?;
    new.copy_from_slice(segment.get(from..to)?);
    let (header, _) = Header::mut_from_prefix(segment).ok()?;
    header.checksum.set(checksum::update_bytes(header.checksum.get(), old, new));
    Some(())
}

/// Works out the checksum of the segment that begins `upper` bytes into the IP packet that fills `packet`. `None` where
/// there is none.
pub fn seal(packet: &mut [u8], upper: usize) -> Option<()> {
    let length = packet.len().checked_sub(upper)?;
    let pseudo = match packet.first()? >> 4 {
        4 => {
            let ip = ipv4::Packet::parse(packet).ok()?;
            ipv4::pseudo_sum(ip.source(), ip.destination(), protocol::TCP, length)
        }
        _ => ipv6::Packet::parse(packet).ok()?.pseudo_sum(protocol::TCP, length),
    };
    let segment = packet.get_mut(upper..)?;
    let (header, _) = Header::mut_from_prefix(segment).ok()?;
    header.checksum = U16::ZERO;
    let sum = checksum::add(checksum::sum(segment), pseudo);
    let (header, _) = Header::mut_from_prefix(segment).ok()?;
    header.checksum.set(!sum);
    Some(())
}

/// Whether the checksum of the segment that begins `upper` bytes into the IP packet that fills `packet` is right.
pub fn is_sealed(packet: &[u8], upper: usize) -> bool {
    let length = packet.len().saturating_sub(upper);
    let pseudo = match packet.first().map(|first| first >> 4) {
        Some(4) => ipv4::Packet::parse(packet)
            .map(|ip| ipv4::pseudo_sum(ip.source(), ip.destination(), protocol::TCP, length))
            .ok(),
        _ => ipv6::Packet::parse(packet).map(|ip| ip.pseudo_sum(protocol::TCP, length)).ok(),
    };
    let sum = checksum::sum(packet.get(upper..).unwrap_or_default());
    pseudo.is_some_and(|pseudo| checksum::add(sum, pseudo) == u16::MAX)
}

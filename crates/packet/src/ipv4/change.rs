//! Changes to packets in place, the checksum updated with them (RFC 1624).

use super::header::{DONT_FRAGMENT, Header};
use crate::checksum;
use zerocopy::FromBytes;
use zerocopy::byteorder::network_endian::U16;

/// Takes one hop off the packet at the front of `bytes`; `None`, and no change, where none is left.
#[inline]
pub fn decrement_ttl(bytes: &mut [u8]) -> Option<()> {
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    let hops = header.ttl.checked_sub(1).filter(|hops| *hops > 0)?;
    header.ttl = hops;
    // The hops are the first octet of their word: RFC 1624, eqn. 3 with `!m + m'` and both complements worked out; in the CPU's own
    // order of octets, as such sums are the same in either (RFC 1071 2).
    const ONE: u16 = u16::from_ne_bytes([1, 0]);
    let checksum = u16::from_ne_bytes(header.checksum.to_bytes());
    let carry = u16::from(checksum >= !ONE);
    header.checksum = U16::from_bytes(checksum.wrapping_add(ONE).wrapping_add(carry).to_ne_bytes());
    Some(())
}

/// Turns the packet at the front of `bytes` around: source and destination swapped, 64 hops, checksum renewed.
pub fn reverse(bytes: &mut [u8]) -> Option<()> {
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    std::mem::swap(&mut header.source, &mut header.destination);
    header.ttl = 64;
    header.checksum = U16::ZERO;
    let length = header.length();
    let checksum = checksum::of(bytes.get(..length)?);
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    header.checksum = U16::new(checksum);
    Some(())
}

/// Sets how long the packet at the front of `bytes` is; `None` where they are too short for a header.
pub fn set_total_length(bytes: &mut [u8], total: u16) -> Option<()> {
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    header.checksum.set(checksum::update(header.checksum.get(), header.total_length.get(), total));
    header.total_length.set(total);
    Some(())
}

/// Sets the type of service (DSCP and ECN) of the packet at the front of `bytes`; `None` where they are too short.
#[inline]
pub fn set_tos(bytes: &mut [u8], tos: u8) -> Option<()> {
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    // The other half of the word is version and header length, which cancel out.
    let (old, new) = (u16::from(header.tos), u16::from(tos));
    header.checksum.set(checksum::update(header.checksum.get(), old, new));
    header.tos = tos;
    Some(())
}

/// Sets the DSCP, of which the lower six bits count, and leaves ECN alone (RFC 2474); `None` where `bytes` are too
/// short.
#[inline]
pub fn set_dscp(bytes: &mut [u8], dscp: u8) -> Option<()> {
    let tos = Header::ref_from_prefix(bytes).ok()?.0.tos;
    set_tos(bytes, dscp << 2 | tos & 3)
}

/// Sets ECN, of which the lower two bits count, and leaves the DSCP alone (RFC 3168); `None` where `bytes` are too
/// short.
#[inline]
pub fn set_ecn(bytes: &mut [u8], ecn: u8) -> Option<()> {
    let tos = Header::ref_from_prefix(bytes).ok()?.0.tos;
    set_tos(bytes, tos & !3 | ecn & 3)
}

/// Lets routers fragment the packet at the front of `bytes`, and gives it the identification that this takes
/// (see [`Header::fragmentable`]); `None` where they are too short.
#[inline]
pub fn allow_fragments(bytes: &mut [u8], identification: u16) -> Option<()> {
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    let (old_flags, old) = (header.flags_fragment.get(), header.identification.get());
    let flags = old_flags & !DONT_FRAGMENT;
    let checksum = checksum::update(header.checksum.get(), old, identification);
    header.checksum.set(checksum::update(checksum, old_flags, flags));
    header.identification.set(identification);
    header.flags_fragment.set(flags);
    Some(())
}

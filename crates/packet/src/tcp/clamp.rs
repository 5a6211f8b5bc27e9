//! Lowers the maximum segment size that connections agree on, so that their packets fit into tunnels.

use super::segment::{Header, LENGTH, MAXIMUM_SEGMENT_SIZE, Malformed, Segment, flag};
use crate::{checksum, ipv4, ipv6};
use zerocopy::FromBytes;

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clamp {
    /// The maximum segment size was lowered, and the checksum with it.
    Lowered,
    /// Nothing was changed: no SYN, no such option, or it is low enough.
    Unchanged,
}

/// The largest segment whose packet, without options, fits an MTU; the IP version is 4 or 6.
#[inline]
pub const fn mss_for_mtu(mtu: u16, version: u8) -> u16 {
    let headers = if version == 6 { ipv6::LENGTH } else { ipv4::LENGTH } + LENGTH;
    mtu.saturating_sub(headers as u16)
}

/// Lowers the maximum segment size that the SYN in `segment` announces to `mss`, and updates its checksum. `segment`
/// is the front of a TCP segment, its whole header at least.
///
/// # Errors
/// The header is cut short; nothing is changed then.
#[inline]
pub fn clamp_mss(segment: &mut [u8], mss: u16) -> Result<Clamp, Malformed> {
    match Header::ref_from_prefix(segment) {
        Ok((header, _)) if header.flags & flag::SYN == 0 => Ok(Clamp::Unchanged),
        Ok(_) => clamp_syn(segment, mss),
        Err(_) => Err(Malformed::Truncated),
    }
}

fn clamp_syn(bytes: &mut [u8], mss: u16) -> Result<Clamp, Malformed> {
    let segment = Segment::parse(bytes)?;
    let option = segment.options().find(|option| option.kind == MAXIMUM_SEGMENT_SIZE);
    let Some((place, old)) = option.and_then(|option| Some((LENGTH + option.at + 2, value(option.content)?)))
    else {
        return Ok(Clamp::Unchanged);
    };
    if old <= mss {
        return Ok(Clamp::Unchanged);
    }
    let to = bytes.get_mut(place..).and_then(<[u8]>::first_chunk_mut).ok_or(Malformed::Truncated)?;
    *to = mss.to_be_bytes();
    // At an odd place its octets count in the other halves of their words (RFC 1071 2).
    let (old, new) = if place % 2 == 0 { (old, mss) } else { (old.swap_bytes(), mss.swap_bytes()) };
    let (header, _) = Header::mut_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
    header.checksum.set(checksum::update(header.checksum.get(), old, new));
    Ok(Clamp::Lowered)
}

fn value(content: &[u8]) -> Option<u16> {
    content.try_into().ok().map(u16::from_be_bytes)
}

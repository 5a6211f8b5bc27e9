//! Lowers what TCP connections agree to send at once, so that their packets fit into tunnels (RFC 4459 3.2).

use packet::tcp::{clamp_mss, mss_for_mtu};
use packet::{ipv6, protocol};

/// Of a user's packet that may be a SYN; `mtu` is what fits. Others stay as they are.
#[inline]
pub(super) fn clamp(packet: &mut [u8], mtu: u16) {
    // Where the protocol stands, in either header; extension headers hide no SYN worth looking for.
    let (version, at) = match packet.first().map(|first| first >> 4) {
        Some(6) => (6, 6),
        _ => (4, 9),
    };
    if packet.get(at) != Some(&protocol::TCP) {
        return;
    }
    if let Some(segment) = segment(packet, version) {
        // A header cut short is for the receiver to judge.
        let _ = clamp_mss(segment, mss_for_mtu(mtu, version));
    }
}

/// The TCP segment, if it begins in this packet. The header was checked.
#[inline]
fn segment(packet: &mut [u8], version: u8) -> Option<&mut [u8]> {
    if version == 6 {
        return packet.get_mut(ipv6::LENGTH..);
    }
    let (first, place) = (*packet.first()?, u16::from_be_bytes(*packet.get(6..)?.first_chunk()?));
    // A later fragment begins in the midst of it.
    (place & 0x1fff == 0).then_some(())?;
    packet.get_mut(usize::from(first & 15) * 4..)
}

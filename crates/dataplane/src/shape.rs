//! What the headers of usual packets have in common, as words of theirs and the bits of these that matter: comparing words takes a
//! fraction of what fields take, one by one.

use packet::{ethernet, gtpu, ipv4, protocol, udp};

/// Ethernet, IPv4, UDP, and the mandatory part of GTP-U.
pub(crate) const TUNNEL: usize = ethernet::LENGTH + ipv4::LENGTH + udp::LENGTH + 8;
/// GTP-U's optional part, and the PDU session container in its shortest form.
pub(crate) const CONTAINER: usize = 8;

/// EtherType, and what follows it.
pub(crate) const ETHERTYPE: usize = 12;

/// How a word is to be, and which bits of it.
pub(crate) type Shape = (u64, u64);

/// From the EtherType on: IPv4...
pub(crate) const IPV4: Shape = (0x0008, 0xffff);
/// ... without options that says nothing of congestion which the user's packet has to say, too ([`packet::ecn::matters`])...
pub(crate) const FRONT: Shape = (IPV4.0 | 0x45 << 16, 0x01ff_ffff);
/// ... or that may...
pub(crate) const SHORT: Shape = (FRONT.0, 0x00ff_ffff);
/// ... whole, and UDP, from the 20th octet on...
pub(crate) const WHOLE: Shape = ((protocol::UDP as u64) << 24, 0xff00_ff3f);
/// ... for the port of GTP-U, from the 34th on...
pub(crate) const TO_PORT: Shape = ((gtpu::PORT.swap_bytes() as u64) << 16, 0xffff << 16);
/// ... and a G-PDU of version 1, with or without an extension header, from the 38th on.
pub(crate) const G_PDU: Shape = (0x30 << 32 | (gtpu::message_type::G_PDU as u64) << 40, 0xfffb << 32);
/// Behind it, the container alone, one unit of four octets long, of either type, and without a paging policy.
pub(crate) const ALONE: Shape = (0x85 << 24 | 1 << 32, 0xff80_efff_ff00_0000);
/// In the octet of GTP-U's flags: an extension header follows.
pub(crate) const EXTENSION: u8 = 4;

/// Eight octets of a header, the first of them lowest.
#[inline(always)]
pub(crate) fn word<const N: usize>(header: &[u8; N], at: usize) -> u64 {
    header[at..].first_chunk().map_or(0, |octets| u64::from_le_bytes(*octets))
}

/// Bits in which a word is not as it has to be.
#[inline(always)]
pub(crate) const fn differs(word: u64, (usual, matters): Shape) -> u64 {
    (word ^ usual) & matters
}

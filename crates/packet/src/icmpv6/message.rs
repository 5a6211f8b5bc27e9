//! What all messages have in common.

use crate::{checksum, ipv6, protocol};
use std::net::Ipv6Addr;

/// Where the checksum stands in a message.
const CHECKSUM: usize = 2;

/// Whether the message of a packet is as it was sent.
pub(crate) fn is_intact(packet: &ipv6::Packet<'_>, message: &[u8]) -> bool {
    let pseudo = packet.pseudo_sum(protocol::ICMPV6, message.len());
    checksum::add(checksum::sum(message), pseudo) == u16::MAX
}

/// Completes the packet whose message of `length` bytes, its checksum 0, stands in `bytes` after room for the IPv6
/// header: writes that header and the checksum. Returns the length of the packet.
pub(crate) fn seal(
    bytes: &mut [u8],
    (source, destination): (Ipv6Addr, Ipv6Addr),
    hop_limit: u8,
    length: usize,
) -> Option<usize> {
    let header = ipv6::Header::new(source, destination, protocol::ICMPV6, length)?;
    let message = bytes.get_mut(ipv6::LENGTH..)?.get_mut(..length)?;
    let pseudo = ipv6::pseudo_sum(source, destination, protocol::ICMPV6, length);
    let checksum = !checksum::add(checksum::sum(message), pseudo);
    *message.get_mut(CHECKSUM..)?.first_chunk_mut()? = checksum.to_be_bytes();
    header.with_hop_limit(hop_limit).write(bytes)?;
    Some(ipv6::LENGTH + length)
}

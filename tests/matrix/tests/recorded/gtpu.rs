//! GTP-U as it was recorded, and as we say it, taken apart by hand.

use packet::{ethernet, ipv4, ipv6, ndp};
use std::net::Ipv4Addr;

pub const PORT: u16 = 2152;
pub const ERROR_INDICATION: u8 = 26;
pub const END_MARKER: u8 = 254;
pub const G_PDU: u8 = 255;
/// Types of ICMPv6 (RFC 4861 4.1, 4.2), and the option that tells a prefix (4.6.2).
pub const SOLICITATION: u8 = 133;
pub const ADVERTISEMENT: u8 = 134;
const PREFIX_INFORMATION: u8 = 3;
/// Of extension headers (TS 29.281 5.2.1).
const PDU_SESSION_CONTAINER: u8 = 0x85;

/// A message in a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gtpu {
    /// Its other end.
    pub peer: Ipv4Addr,
    pub kind: u8,
    pub teid: u32,
    /// Of the PDU session container, where there is one.
    pub qfi: Option<u8>,
    pub inner: Vec<u8>,
}

impl Gtpu {
    pub fn read(peer: Ipv4Addr, bytes: &[u8]) -> Self {
        assert_eq!(bytes[0] >> 4, 3, "GTP-U of version 1");
        let teid = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        let end = 8 + usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        // Any of the three flags brings all three fields.
        let mut at = if bytes[0] & 7 == 0 { 8 } else { 12 };
        let (mut next, mut qfi) = (if bytes[0] & 4 == 0 { 0 } else { bytes[11] }, None);
        while next != 0 {
            let length = usize::from(bytes[at]) * 4;
            qfi = qfi.or((next == PDU_SESSION_CONTAINER).then(|| bytes[at + 2] & 0x3F));
            next = bytes[at + length - 1];
            at += length;
        }
        Self { peer, kind: bytes[1], teid, qfi, inner: bytes[at..end].to_vec() }
    }

    /// What left by the port to the radios.
    pub fn sent(frame: &[u8]) -> Self {
        let packet = ipv4::Packet::parse(&frame[ethernet::LENGTH..]).unwrap();
        let udp = packet.payload();
        assert_eq!(udp[2..4], PORT.to_be_bytes(), "to the port of GTP-U");
        Self::read(packet.destination(), &udp[8..])
    }
}

/// The message with another TEID.
pub fn with_teid(bytes: &[u8], teid: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[4..8].copy_from_slice(&teid.to_be_bytes());
    bytes
}

/// A packet one hop further on its way, or one hop back.
pub fn with_hops(packet: &[u8], change: i8) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 6 {
        packet[7] = packet[7].wrapping_add_signed(change);
        return packet;
    }
    let length = usize::from(packet[0] & 0x0F) * 4;
    packet[8] = packet[8].wrapping_add_signed(change);
    packet[10..12].fill(0);
    let checksum = packet::checksum::of(&packet[..length]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// The type of a message of ICMPv6.
pub fn icmpv6(packet: &[u8]) -> Option<u8> {
    (packet.first()? >> 4 == 6 && packet[6] == 58).then(|| packet[40])
}

/// Whether the checksum of a message of neighbour discovery is wrong.
pub fn is_damaged(packet: &[u8]) -> bool {
    let packet = ipv6::Packet::parse(packet).unwrap();
    ndp::Message::parse(&packet) == Err(ndp::Malformed::Checksum)
}

/// The prefix that a router advertisement tells.
pub fn prefix(advertisement: &[u8]) -> Option<[u8; 16]> {
    let mut options = &advertisement[56..];
    while options.len() >= 8 {
        if options[0] == PREFIX_INFORMATION {
            return options[16..32].try_into().ok();
        }
        options = &options[usize::from(options[1]) * 8..];
    }
    None
}

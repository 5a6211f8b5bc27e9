//! What stations beside the user plane send and receive, put together and taken apart by hand.

use crate::mac_of;
use crate::setup::{N3, N6_ROUTER, address_of, mac_of_port};
use packet::{ethernet, ipv4, ipv6, protocol, udp};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where GTP-U is spoken (TS 29.281 4.4.2.3).
const GTPU_PORT: u16 = 2152;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
/// Where the addresses are in an IPv4 header.
const SOURCE: usize = 12;
const DESTINATION: usize = 16;
/// Where it is in a UDP header.
const CHECKSUM: usize = 6;
/// A GTP-U header without optional fields.
const GTPU: usize = 8;
/// The optional fields, and a PDU session container.
const CONTAINER: usize = 8;
const G_PDU: u8 = 255;
const END_MARKER: u8 = 254;
const ERROR_INDICATION: u8 = 26;
const ECHO_REQUEST: u8 = 1;
const ECHO_RESPONSE: u8 = 2;

/// A UDP datagram over IPv4.
pub fn datagram(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let length = UDP + payload.len();
    let mut bytes = vec![0; IPV4 + UDP];
    ipv4::Header::new(from.0, to.0, protocol::UDP, length).unwrap().write(&mut bytes).unwrap();
    udp::Header::new(from.1, to.1, payload.len()).unwrap().write(&mut bytes[IPV4..]).unwrap();
    bytes.extend(payload);
    bytes
}

/// A UDP datagram over IPv6, which must have a checksum there (RFC 8200 8.1).
pub fn datagram6(from: (Ipv6Addr, u16), to: (Ipv6Addr, u16), payload: &[u8]) -> Vec<u8> {
    let length = UDP + payload.len();
    let mut bytes = vec![0; IPV6 + UDP];
    ipv6::Header::new(from.0, to.0, protocol::UDP, length).unwrap().write(&mut bytes).unwrap();
    udp::Header::new(from.1, to.1, payload.len()).unwrap().write(&mut bytes[IPV6..]).unwrap();
    bytes.extend(payload);
    let checksum = !sum6(&bytes);
    bytes[IPV6 + CHECKSUM..IPV6 + UDP].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Whether a UDP datagram over IPv6 is what its sender made: its checksum is right.
pub fn is_whole6(packet: &[u8]) -> bool {
    sum6(packet) == u16::MAX
}

/// Of the addresses, the length, the protocol and the datagram (RFC 8200 8.1).
fn sum6(packet: &[u8]) -> u16 {
    let datagram = &packet[IPV6..];
    sum(&[&packet[8..IPV6], datagram, &[0, protocol::UDP], &(datagram.len() as u16).to_be_bytes()])
}

/// In ones' complement (RFC 1071), of parts that begin at even places.
fn sum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |bytes: &[u8]| u32::from(u16::from_be_bytes([bytes[0], *bytes.get(1).unwrap_or(&0)]));
    let mut sum = words.map(word).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What a router makes of a packet.
pub fn a_hop_on(packet: &[u8]) -> Vec<u8> {
    let mut left = packet.to_vec();
    if packet[0] >> 4 == 6 {
        left[7] -= 1;
        return left;
    }
    left[8] -= 1;
    left[10..12].fill(0);
    let checksum = !sum(&[&left[..IPV4]]);
    left[10..12].copy_from_slice(&checksum.to_be_bytes());
    left
}

/// A frame with an IP packet to one of our ports, from the station of that address.
pub fn frame(port: usize, station: Ipv4Addr, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; ethernet::LENGTH];
    let ethertype = if packet[0] >> 4 == 6 { ethernet::IPV6 } else { ethernet::IPV4 };
    let header = ethernet::Header::new(mac_of_port(port), mac_of(station), ethertype);
    header.write(&mut frame).unwrap();
    frame.extend(packet);
    frame
}

/// A user's packet in a tunnel of ours, from a radio or a gateway at `from`.
pub fn g_pdu(port: usize, from: Ipv4Addr, tunnel: (u32, Option<u8>), inner: &[u8]) -> Vec<u8> {
    g_pdu_to((port, address_of(port)), from, tunnel, inner)
}

/// The same to an address that may be another than the port's.
pub fn g_pdu_to(
    (port, to): (usize, Ipv4Addr),
    from: Ipv4Addr,
    (teid, qfi): (u32, Option<u8>),
    inner: &[u8],
) -> Vec<u8> {
    // Type 1 is uplink (TS 38.415 5.5.2.2), which is what radios send.
    let container: Vec<u8> = qfi.map_or(vec![], |qfi| vec![0, 0, 0, 0x85, 1, 0x10, qfi, 0]);
    let flags = if qfi.is_some() { 0x34 } else { 0x30 };
    let length = ((container.len() + inner.len()) as u16).to_be_bytes();
    let message = [&[flags, G_PDU][..], &length, &teid.to_be_bytes(), &container, inner].concat();
    frame(port, from, &datagram((from, GTPU_PORT), (to, GTPU_PORT), &message))
}

/// What comes out of 1:1 translation of a frame to us: to `inside`, if it was to `outside`; nothing else gets through.
pub fn translated_in(frame: &[u8], (outside, inside): (Ipv4Addr, Ipv4Addr)) -> Option<Vec<u8>> {
    readdressed(frame, DESTINATION, (outside, inside))
}

/// The same of a frame of ours, which was from `inside`.
pub fn translated_out(frame: &[u8], (outside, inside): (Ipv4Addr, Ipv4Addr)) -> Option<Vec<u8>> {
    readdressed(frame, SOURCE, (inside, outside))
}

/// Of an IPv4 packet whose UDP datagram has no checksum.
fn readdressed(frame: &[u8], at: usize, (before, after): (Ipv4Addr, Ipv4Addr)) -> Option<Vec<u8>> {
    let (header, packet) = (&frame[..ethernet::LENGTH], &mut packet_of(frame)[..]);
    assert_eq!(packet[IPV4 + CHECKSUM..IPV4 + UDP], [0, 0]);
    if packet[at..at + 4] != before.octets() {
        return None;
    }
    packet[at..at + 4].copy_from_slice(&after.octets());
    packet[10..12].fill(0);
    let checksum = !sum(&[&packet[..IPV4]]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    Some([header, packet].concat())
}

/// A radio or a gateway at `from` knows no tunnel of that TEID (TS 29.281 7.3.1).
pub fn error_indication(port: usize, from: Ipv4Addr, teid: u32) -> Vec<u8> {
    // TEID Data I and GTP-U Peer Address (8.3 and 8.4), after a sequence number.
    let about = [&[16][..], &teid.to_be_bytes(), &[133, 0, 4], &from.octets()].concat();
    let length = (about.len() as u16 + 4).to_be_bytes();
    let message = [&[0x32, ERROR_INDICATION][..], &length, &[0; 8], &about].concat();
    frame(port, from, &datagram((from, GTPU_PORT), (address_of(port), GTPU_PORT), &message))
}

/// Whom we ask whether they are there, in a frame of ours, and by which number (TS 29.281 7.2.1).
pub fn echo_request(frame: &[u8]) -> Option<(Ipv4Addr, [u8; 2])> {
    let packet = packet_of(frame);
    let message = &packet[IPV4 + UDP..];
    let to = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
    (message[1] == ECHO_REQUEST).then(|| (to, [message[8], message[9]]))
}

/// A peer at `from` is there, and says when it began, in seconds since 1900.
pub fn echo_response(port: usize, from: Ipv4Addr, (number, began): ([u8; 2], Option<u32>)) -> Vec<u8> {
    // Recovery (7.7.11), which says nothing, and Recovery Time Stamp (8.8).
    let stamp = began.map_or(vec![], |began| [&[231, 0, 4][..], &began.to_be_bytes()].concat());
    let length = (stamp.len() as u16 + 6).to_be_bytes();
    let start = [&[0x32, ECHO_RESPONSE][..], &length, &[0; 4]].concat();
    let message = [&start[..], &number, &[0, 0, 14, 0], &stamp].concat();
    frame(port, from, &datagram((from, GTPU_PORT), (address_of(port), GTPU_PORT), &message))
}

/// A packet from the data network.
pub fn from_network(port: usize, packet: &[u8]) -> Vec<u8> {
    assert_ne!(port, N3);
    frame(port, N6_ROUTER, packet)
}

/// A GTP-U message we sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnelled {
    /// From which address of ours.
    pub from: Ipv4Addr,
    /// To which peer.
    pub to: Ipv4Addr,
    /// Into which of its tunnels.
    pub teid: u32,
    /// In which QoS flow, and whether the container says uplink, where there is one.
    pub flow: Option<(u8, bool)>,
    /// The user's packet; none in an End Marker.
    pub inner: Option<Vec<u8>>,
}

/// The IP packet in a frame of ours.
pub fn packet_of(frame: &[u8]) -> Vec<u8> {
    let ethertype = ethernet::Header::parse(frame).map(ethernet::Header::ethertype);
    let packet = frame[ethernet::LENGTH..].to_vec();
    assert_eq!(ethertype, Some(if packet[0] >> 4 == 6 { ethernet::IPV6 } else { ethernet::IPV4 }));
    packet
}

/// Takes a frame apart that must be a G-PDU or an End Marker.
pub fn tunnelled(frame: &[u8]) -> Tunnelled {
    let packet = packet_of(frame);
    assert_eq!(packet[0] >> 4, 4);
    assert_eq!(packet[IPV4 + 2..IPV4 + 4], GTPU_PORT.to_be_bytes(), "no GTP-U: {frame:02x?}");
    let from = Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]);
    let to = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
    let message = &packet[IPV4 + UDP..];
    assert_eq!(usize::from(u16::from_be_bytes([message[2], message[3]])), message.len() - GTPU);
    let teid = u32::from_be_bytes([message[4], message[5], message[6], message[7]]);
    let (flow, payload) = match message[0] {
        0x30 => (None, &message[GTPU..]),
        0x34 => {
            let container = &message[GTPU..GTPU + CONTAINER];
            assert_eq!((container[3], container[4], container[7]), (0x85, 1, 0), "{container:02x?}");
            (Some((container[6] & 0x3f, container[5] == 0x10)), &message[GTPU + CONTAINER..])
        }
        flags => panic!("flags {flags:#x}"),
    };
    let inner = match message[1] {
        G_PDU => Some(payload.to_vec()),
        END_MARKER if payload.is_empty() => None,
        kind => panic!("message type {kind}"),
    };
    Tunnelled { from, to, teid, flow, inner }
}

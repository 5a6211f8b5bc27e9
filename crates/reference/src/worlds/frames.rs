//! Users' packets in frames, with and without a tunnel.

use super::World;
use super::environment::{host, peer};
use super::random::{Random, chance, pick, pick_of};
use super::{damage, user_packets};
use crate::bytes::{checksum, put};
use crate::ethernet::{IPV4, IPV6, VLAN, frame};
use crate::gtpu::{self, PDU_SESSION_CONTAINER};
use crate::ip::{self, UDP};
use rand::Rng;
use rules::{FTeid, Pdi};
use std::net::IpAddr;

/// The tunnel of ours that a packet is put into.
pub(super) struct Tunnel<'a> {
    pub(super) port: usize,
    pub(super) f_teid: FTeid,
    pub(super) pdi: &'a Pdi,
}

/// A user's packet in a tunnel.
pub(super) fn tunnelled(world: &World, random: &mut Random, tunnel: Tunnel<'_>, packet: &[u8]) -> Vec<u8> {
    let mut message = g_pdu(random, &tunnel, packet);
    if world.scope.damage && chance(random, 15) {
        damage::spoil(random, &mut message);
    }
    let from = if chance(random, 4) {
        peer(random, tunnel.port, tunnel.f_teid.address.is_ipv6())
    } else {
        host(tunnel.port, 1, tunnel.f_teid.address.is_ipv6())
    };
    let outer = datagram_to_us(random, from, tunnel.f_teid.address, &message);
    plain(world, random, tunnel.port, &outer)
}

/// A UDP datagram to port 2152, or now and then another, in an IP packet.
pub(super) fn datagram_to_us(random: &mut Random, from: IpAddr, us: IpAddr, message: &[u8]) -> Vec<u8> {
    let source_port = pick(random, [2152, 2152, 40_001]);
    let port = if chance(random, 5) { 2153 } else { gtpu::PORT };
    let mut datagram = ip::datagram((from, source_port), (us, port), message);
    match random.random_range(0..200) {
        0 => put(&mut datagram, 4, &pick(random, [0_u16, 7, 8, 9, 0xffff]).to_be_bytes()),
        // Without a checksum, which some senders do over IPv6, too (RFC 6935).
        1..=20 => put(&mut datagram, 6, &[0, 0]),
        _ => {}
    }
    let new = ip::New { protocol: UDP, traffic_class: outer_class(random), hops: pick(random, [64, 1, 255]) };
    if us.is_ipv6() && chance(random, 15) {
        let (protocol, payload) = user_packets::with_extensions(random, (UDP, 7), datagram);
        return ip::packet(from, us, ip::New { protocol, ..new }, &payload);
    }
    let mut packet = ip::packet(from, us, new, &datagram);
    if us.is_ipv4() && chance(random, 8) {
        put(&mut packet, 6, &pick(random, [0x2000_u16, 0x0010, 0x0000]).to_be_bytes());
        damage::mend_checksum(random, &mut packet);
    }
    packet
}

/// The traffic class of a tunnel's header; now and then with what routers say of congestion.
fn outer_class(random: &mut Random) -> u8 {
    let drawn = random.random_range(0..100_u8);
    let ecn = match drawn {
        0..4 => 1 + drawn / 2,
        4..8 => 3,
        _ => 0,
    };
    ecn | if drawn % 2 == 0 { 0 } else { 0xb8 }
}

/// The container a PDR asks for, mostly; sequence numbers and other extension headers now and then.
fn g_pdu(random: &mut Random, tunnel: &Tunnel<'_>, packet: &[u8]) -> Vec<u8> {
    let wanted = pick_of(random, &tunnel.pdi.qfis).map(|qfi| qfi.value());
    let qfi = match wanted {
        Some(qfi) if chance(random, 900) => Some(qfi),
        _ => pick(random, [None, Some(1), Some(5), Some(9), Some(63)]),
    };
    let mut extensions: Vec<(u8, Vec<u8>)> = qfi.map(|qfi| container(random, qfi)).into_iter().collect();
    if chance(random, 30) {
        let kind = pick(random, [0x40, 0x03, 0x20, 0x81, 0x82, 0xc0, 0xc0, PDU_SESSION_CONTAINER]);
        let content = if kind == PDU_SESSION_CONTAINER { [0, 0] } else { random.random() };
        let other = match chance(random, 200) {
            true => vec![2, content[0], content[1], 0, 0, 0, 0, 0],
            false => vec![1, content[0], content[1], 0],
        };
        let count = pick(random, [1, 1, 2, 7, 8]);
        extensions.extend(std::iter::repeat_n((kind, other), count));
    }
    let mut flags: u8 = if extensions.is_empty() { 0x30 } else { 0x34 };
    flags |= if chance(random, 100) { pick(random, [0x02, 0x01, 0x03, 0x08]) } else { 0 };
    let mut body = Vec::new();
    if flags & 7 != 0 {
        body.extend(random.random::<[u8; 3]>());
        // Without the flag, the type is there but says nothing.
        body.push(extensions.first().map_or(0x55, |(kind, _)| *kind));
    }
    let following = extensions.iter().skip(1).map(|(kind, _)| *kind).chain([0]);
    for ((_, bytes), next) in extensions.iter().zip(following) {
        body.extend(bytes);
        body.pop();
        body.push(next);
    }
    body.extend(packet);
    gtpu::message(flags, gtpu::G_PDU, tunnel.f_teid.teid.0, &body)
}

/// A PDU session container, now and then with what is optional in it (TS 38.415 5.5.2).
fn container(random: &mut Random, qfi: u8) -> (u8, Vec<u8>) {
    let bytes = match random.random_range(0..150) {
        0 => vec![1, 0x00, qfi, 0],
        1 => vec![1, 0x00, 0x40 | qfi, 0],
        2 => vec![2, 0x00, 0x80 | qfi, 0xe0, 0, 0, 0, 0],
        3 => vec![1, 0x00, 0x80 | qfi, 0],
        4 => vec![1, 0x20, qfi, 0],
        5 => vec![3, 0x18, qfi, 1, 2, 3, 4, 5, 6, 7, 8, 0],
        _ => vec![1, 0x10, qfi, 0],
    };
    (PDU_SESSION_CONTAINER, bytes)
}

/// An IP packet in a frame to a port of ours, from its first neighbour.
pub(super) fn plain(world: &World, random: &mut Random, port: usize, packet: &[u8]) -> Vec<u8> {
    let ours = world.setup.ports.get(port).map_or([0; 6], |port| port.mac);
    let to = match random.random_range(0..300) {
        0 => [2, 0, 0, 0, 0, 0x99],
        1 => [0xff; 6],
        2 => [0x01, 0, 0x5e, 0, 0, 1],
        _ => ours,
    };
    let version = packet.first().map_or(4, |first| first >> 4);
    let ethertype = match (random.random_range(0..500), version) {
        (0, _) => pick(random, [IPV4, IPV6, 0x8100, 0x88cc]),
        (_, 6) => IPV6,
        _ => IPV4,
    };
    let mut bytes = frame(to, neighbour_mac(world, port), ethertype, packet);
    // A priority, now and then a VLAN.
    if chance(random, 4) {
        let tag = pick(random, [[0x81, 0, 0xa0, 0], [0x81, 0, 0x00, 0], [0x81, 0, 0x00, 7]]);
        bytes.splice(12..12, tag);
    }
    // Networks pad short frames, and some do it with rubbish.
    if bytes.len() < 60 && chance(random, 700) {
        bytes.resize(60, pick(random, [0, 0, 0xee]));
    }
    bytes
}

/// The tag of a VLAN, with some priority; now and then another's, or none.
pub(super) fn tag(random: &mut Random, frame: &mut Vec<u8>, vlan: u16) {
    let id = match random.random_range(0..100) {
        0 => return,
        1 => pick(random, [0, vlan ^ 1]),
        _ => vlan,
    };
    let kind = if chance(random, 20) { pick(random, [0x88a8, 0x9100, 0x9200]) } else { VLAN };
    let [[k0, k1], [v0, v1]] = [kind, pick(random, [0, 0xa000]) | id].map(u16::to_be_bytes);
    if frame.len() >= 12 {
        frame.splice(12..12, [k0, k1, v0, v1]);
    }
}

pub(super) fn neighbour_mac(world: &World, port: usize) -> [u8; 6] {
    world
        .setup
        .neighbours
        .iter()
        .find(|neighbour| neighbour.port == port)
        .map_or([2; 6], |neighbour| neighbour.mac)
}

/// Whether the checksum of the IPv4 header at the front is renewed, so that deeper faults are seen.
pub(super) fn renew_ipv4_checksum(packet: &mut [u8]) {
    let length = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    if length < 20 || length > packet.len() {
        return;
    }
    put(packet, 10, &[0, 0]);
    let checksum = checksum(&[packet.get(..length).unwrap_or_default()]);
    put(packet, 10, &checksum.to_be_bytes());
}

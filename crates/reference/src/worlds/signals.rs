//! Frames that concern no user: ARP, pings, Neighbour Discovery, GTP-U signalling.

use super::World;
use super::environment::{Below, host};
use super::frames::{datagram_to_us, neighbour_mac, plain, renew_ipv4_checksum};
use super::random::{Random, chance, pick, pick_of};
use crate::bytes::{checksum, put};
use crate::ethernet::{ARP, IPV6, arp, frame as ethernet_frame};
use crate::gtpu;
use crate::icmp::{icmpv6_packet, neighbour_message, solicitation, solicited_node};
use crate::ip::{self, ICMP};
use rand::Rng;
use rules::FTeid;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A frame and its port.
pub(super) fn frame(world: &World, random: &mut Random) -> (usize, Vec<u8>) {
    let port = random.random_range(0..world.setup.ports.len().max(1));
    let ipv6 = world.scope.ipv6_transport && chance(random, 400);
    let frame = match random.next_below(10) {
        0..=2 if ipv6 => neighbour_discovery(world, random, port),
        0..=2 => arp_frame(world, random, port),
        3..=5 => ping(world, random, port, ipv6),
        6 => return stray(world, random),
        _ => gtpu_signal(world, random, port, ipv6),
    };
    (port, frame)
}

fn ipv4_of(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

fn ipv6_of(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(_) => Ipv6Addr::UNSPECIFIED,
        IpAddr::V6(address) => address,
    }
}

/// Requests, replies, and announcements that move a neighbour to another Ethernet address.
fn arp_frame(world: &World, random: &mut Random, port: usize) -> Vec<u8> {
    let ours = host(port, 2, false);
    let others = [host(port, 1, false), host(port, 3, false), host(port, 77, false)];
    let sender = if chance(random, 50) { ours } else { pick(random, others) };
    let target = pick(random, [ours, ours, sender, host(port, 55, false)]);
    let mac = [2, 0, 0, 9, port as u8, random.next_below(3) as u8];
    let mac = station(world, random, port, mac);
    let operation = pick(random, [1, 1, 2, 3]);
    let message = arp(operation, (mac, ipv4_of(sender)), ([0; 6], ipv4_of(target)));
    let to = if chance(random, 500) { [0xff; 6] } else { our_mac(world, port) };
    ethernet_frame(to, mac, ARP, &message)
}

/// Mostly this; else that of nobody, of all, or of ours.
fn station(world: &World, random: &mut Random, port: usize, mac: [u8; 6]) -> [u8; 6] {
    let strange = pick(random, [[0; 6], [0xff; 6], our_mac(world, port)]);
    if chance(random, 50) { strange } else { mac }
}

fn our_mac(world: &World, port: usize) -> [u8; 6] {
    world.setup.ports.get(port).map_or([0; 6], |port| port.mac)
}

/// A solicitation of our address, or of another; to the group or to us alone; now and then a probe for doubles.
fn neighbour_discovery(world: &World, random: &mut Random, port: usize) -> Vec<u8> {
    let ours = ipv6_of(host(port, 2, true));
    let target = pick(random, [ours, ours, ours, ipv6_of(host(port, 55, true))]);
    let mac = [2, 0, 0, 8, port as u8, random.next_below(3) as u8];
    let mac = station(world, random, port, mac);
    let other = ipv6_of(host(port, pick(random, [1, 3]), true));
    let asker = if chance(random, 50) { ours } else { other };
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let source = pick(random, [asker, asker, link_local, Ipv6Addr::UNSPECIFIED]);
    let (group, request) = solicitation(source, mac, target);
    match random.next_below(10) {
        0 => {
            let message = request.get(40..).unwrap_or_default().to_vec();
            ethernet_frame(our_mac(world, port), mac, IPV6, &icmpv6_packet(source, ours, message))
        }
        // Without the option.
        1 => {
            let message = request.get(40..64).unwrap_or_default().to_vec();
            ethernet_frame(group, mac, IPV6, &icmpv6_packet(source, solicited_node(target), message))
        }
        2 => {
            let message = neighbour_message(136, 0x60, asker, (2, mac));
            ethernet_frame(our_mac(world, port), mac, IPV6, &icmpv6_packet(asker, ours, message))
        }
        _ => ethernet_frame(group, mac, IPV6, &request),
    }
}

/// An echo request, mostly to us and intact; also empty ones with number 0, whose checksums are special.
fn ping(world: &World, random: &mut Random, port: usize, ipv6: bool) -> Vec<u8> {
    let us = host(port, 2, ipv6);
    let from = host(port, pick(random, [1, 3]), ipv6);
    let kind = if ipv6 { pick(random, [128, 128, 129, 1]) } else { pick(random, [8, 8, 0, 3]) };
    let number = if chance(random, 500) { 0 } else { random.random::<u8>() };
    let mut message = vec![kind, 0, 0, 0, 0, number, 0, 0];
    message.resize(8 + pick(random, [0, 0, 1, 56]), number);
    if let (IpAddr::V6(source), IpAddr::V6(destination)) = (from, us) {
        return plain(world, random, port, &icmpv6_packet(source, destination, message));
    }
    let checksum = checksum(&[&message]);
    put(&mut message, 2, &checksum.to_be_bytes());
    let new = ip::New { protocol: ICMP, traffic_class: pick(random, [0, 0x28]), hops: 64 };
    let mut packet = ip::packet(from, us, new, &message);
    if chance(random, 30) {
        put(&mut packet, 6, &pick(random, [0x2000_u16, 0x0001]).to_be_bytes());
        renew_ipv4_checksum(&mut packet);
    }
    plain(world, random, port, &packet)
}

/// A packet that nobody waits for, and its port.
pub(super) fn stray(world: &World, random: &mut Random) -> (usize, Vec<u8>) {
    let port = random.random_range(0..world.setup.ports.len().max(1));
    let ipv6 = world.scope.ipv6_transport && chance(random, 400);
    let us = host(port, 2, ipv6);
    let server = super::environment::server(random, ipv6);
    let to = pick(random, [us, host(1, 2, ipv6), host(port, 99, ipv6), server]);
    let new = ip::New { protocol: pick(random, [6, 47, 17, 59]), traffic_class: 0, hops: 64 };
    (port, plain(world, random, port, &ip::packet(host(port, 1, ipv6), to, new, &[0; 24])))
}

/// A TEID at a port.
fn tunnel(world: &World, random: &mut Random, port: usize) -> u32 {
    let pdrs = world.sessions.iter().flat_map(|(_, rules)| &rules.pdrs);
    let is_there = |f_teid: &FTeid| world.setup.ports.get(port).is_some_and(|port| port.has(f_teid.address));
    let teids: Vec<u32> =
        pdrs.filter_map(|pdr| pdr.pdi.f_teid.filter(is_there)).map(|f_teid| f_teid.teid.0).collect();
    pick_of(random, &teids).copied().unwrap_or(0x100)
}

/// Echo, Error Indication, end marker, others; whole and not.
fn gtpu_signal(world: &World, random: &mut Random, port: usize, ipv6: bool) -> Vec<u8> {
    let address = host(0, 1, world.scope.ipv6_transport && chance(random, 500));
    let message = match random.next_below(10) {
        0..=2 => gtpu::message(0x32, gtpu::ECHO_REQUEST, 0, &[0x12, random.random(), 0, 0]),
        3 => gtpu::message(0x30, gtpu::ECHO_REQUEST, 0, &[]),
        4 => gtpu::message(0x32, gtpu::ECHO_RESPONSE, 0, &[0, 1, 0, 0, 14, 0]),
        5 | 6 => gtpu::message(0x30, gtpu::END_MARKER, tunnel(world, random, port), &[]),
        7 => gtpu::error_indication(0x200, address),
        8 => gtpu::message(0x30, random.random(), 0x100, &[]),
        _ => {
            let mut half = gtpu::error_indication(0x200, address);
            let length = half.len() - pick(random, [1, 5, 8]);
            half.truncate(length);
            put(&mut half, 2, &(length as u16 - 8).to_be_bytes());
            half
        }
    };
    let packet = datagram_to_us(random, host(port, 1, ipv6), host(port, 2, ipv6), &message);
    let mut frame = plain(world, random, port, &packet);
    // From whoever it is.
    put(&mut frame, 6, &neighbour_mac(world, port));
    frame
}

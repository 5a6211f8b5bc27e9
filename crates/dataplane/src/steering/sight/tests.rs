//! Frames of all shapes, whose user is known as they were made of it.

use super::*;
use crate::fixture::{N3, N6, config};
use crate::state::Ports;
use crate::tests::rates::uplink;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

const USER4: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 9);
const USER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x65, 7, 0, 0, 0, 9);
const SERVER4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 9);
const PEER4: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
const PEER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
/// In this tunnel, packets go the other way than others of their port.
const TURNED: u32 = 7;

fn ports() -> Ports {
    Ports::new(&config().ports).unwrap()
}

/// Addressed to the port.
fn to(port: usize, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if let Some(destination) = frame.first_chunk_mut() {
        *destination = config().ports[port].mac.0;
    }
    frame
}

/// Of a frame that is made one for the port.
fn see(frame: &[u8], port: usize) -> Sight {
    see_as_it_is(&to(port, frame), port)
}

fn see_as_it_is(frame: &[u8], port: usize) -> Sight {
    let ports = ports();
    let receiver = ports.receiver(port as u8);
    let own = receiver.fresh.direction();
    let turned = if own == Direction::Uplink { Direction::Downlink } else { Direction::Uplink };
    sight(frame, receiver, |teid| if teid == TURNED { turned } else { own })
}

/// An IP packet from one to the other.
fn ip((from, to): (IpAddr, IpAddr), protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes.truncate(20);
            ipv4::Header::new(from, to, protocol, payload.len()).unwrap().write(&mut bytes).unwrap();
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            ipv6::Header::new(from, to, protocol, payload.len()).unwrap().write(&mut bytes).unwrap();
        }
        other => panic!("{other:?}"),
    }
    bytes.extend_from_slice(payload);
    bytes
}

fn datagram(payload: &[u8]) -> Vec<u8> {
    datagram_to(gtpu::PORT, payload)
}

fn datagram_to(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    udp::Header::new(port, port, payload.len()).unwrap().write(&mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

fn framed(packet: &[u8]) -> Vec<u8> {
    let ethertype: &[u8] = if packet[0] >> 4 == 6 { &[0x86, 0xdd] } else { &[8, 0] };
    [&[2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 3, 1], ethertype, packet].concat()
}

/// A message of GTP-U with these extension headers.
fn gtp(kind: u8, teid: u32, extensions: &[&[u8]], payload: &[u8]) -> Vec<u8> {
    let mut rest = vec![];
    if let [first, ..] = extensions {
        rest.extend([0, 0, 0, first[0]]);
    }
    for (at, extension) in extensions.iter().enumerate() {
        rest.extend(&extension[1..]);
        rest.push(extensions.get(at + 1).map_or(0, |next| next[0]));
    }
    rest.extend(payload);
    let mut bytes = vec![if extensions.is_empty() { 0x30 } else { 0x34 }, kind];
    bytes.extend((rest.len() as u16).to_be_bytes());
    bytes.extend(teid.to_be_bytes());
    bytes.extend(rest);
    bytes
}

/// The way of the frame's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

fn user_packet(is_ipv6: bool, way: Way) -> Vec<u8> {
    let (user, server) = match is_ipv6 {
        true => (IpAddr::from(USER6), IpAddr::from(SERVER6)),
        false => (USER4.into(), SERVER4.into()),
    };
    ip(if way == Way::Up { (user, server) } else { (server, user) }, 17, &datagram_to(53, &[1; 30]))
}

fn user(is_ipv6: bool) -> Sight {
    Sight::User(match is_ipv6 {
        true => ((USER6.to_bits() >> 64) as u64, true),
        false => (u64::from(USER4.to_bits()) << 32, false),
    })
}

proptest! {
    #[test]
    fn a_packet_in_a_tunnel_is_its_users(
        (outer6, inner6, is_turned, is_n6) in any::<(bool, bool, bool, bool)>(),
        extensions in proptest::sample::subsequence(vec![&[0x85, 1, 0x10, 9][..], &[0xc0, 1, 1, 2], &[0x40, 1, 8, 8]], 0..=3),
    ) {
        let (port, own) = if is_n6 { (N6, Way::Down) } else { (N3, Way::Up) };
        let (teid, way) = match (is_turned, own) {
            (false, own) => (0x100, own),
            (true, Way::Up) => (TURNED, Way::Down),
            (true, Way::Down) => (TURNED, Way::Up),
        };
        let message = gtp(message_type::G_PDU, teid, &extensions, &user_packet(inner6, way));
        let us = &config().ports[port];
        let ends = match us.address6.filter(|_| outer6) {
            Some(us) => (PEER6.into(), us.addr().into()),
            None => (PEER4.into(), us.address.addr().into()),
        };
        prop_assert_eq!(see(&framed(&ip(ends, 17, &datagram(&message))), port), user(inner6));
    }

    /// And where a closer look agrees with the first one: of whatever is cut or changed, too.
    #[test]
    fn what_is_seen_at_once_is_seen_by_looking_closer(
        (flips, port) in (proptest::collection::vec((0..80_usize, 0..8_u8), 0..4), prop_oneof![Just(N3), Just(N6)]),
        length in 14..120_usize, is_down in any::<bool>(),
    ) {
        let mut frame = to(port, &if is_down { framed(&user_packet(false, Way::Down)) } else { uplink(9, 80) });
        for (at, bit) in flips {
            if let Some(octet) = frame.get_mut(at) {
                *octet ^= 1 << bit;
            }
        }
        frame.truncate(length);
        let ports = ports();
        let receiver = ports.receiver(port as u8);
        let way = |_| receiver.fresh.direction();
        let (first, closer) = (sight(&frame, receiver, way), look_closer(&frame, receiver, way));
        // Of what is not sound, nobody has to say the same twice.
        prop_assert!(first == closer || closer == Sight::Unclear, "{:?} {:?}", first, closer);
    }
}

#[test]
fn a_packet_in_no_tunnel_is_its_users_where_it_comes_from_the_network() {
    for is_ipv6 in [false, true] {
        assert_eq!(see(&framed(&user_packet(is_ipv6, Way::Down)), N6), user(is_ipv6));
        assert_eq!(see(&framed(&user_packet(is_ipv6, Way::Down)), N3), Sight::Nobody);
    }
    // A part of a packet says where it goes as the whole does.
    let mut part = framed(&user_packet(false, Way::Down));
    part[14 + 6] = 0x20;
    assert_eq!(see(&part, N6), user(false));
}

#[test]
fn what_is_for_the_port_itself_or_a_group_is_nobodys() {
    let us = config().ports[N6].clone();
    let echo = |to: IpAddr| framed(&ip((SERVER4.into(), to), 1, &[8; 16]));
    for to in [us.address.addr(), Ipv4Addr::new(224, 0, 0, 5)] {
        assert_eq!(see(&echo(to.into()), N6), Sight::Nobody, "{to}");
    }
    let groups = ["ff02::1".parse().unwrap(), "fe80::9".parse().unwrap()];
    for to in us.address6.map(|us| us.addr()).into_iter().chain(groups) {
        let frame = framed(&ip((SERVER6.into(), to.into()), 58, &[128; 16]));
        assert_eq!(see(&frame, N6), Sight::Nobody, "{to}");
    }
    let arp = [&[0xff; 6][..], &[2; 6], &[8, 6], &[0; 28]].concat();
    assert_eq!([N3, N6].map(|port| see_as_it_is(&arp, port)), [Sight::Nobody; 2]);
    assert_eq!([see(&arp, N6), see(&[], N3)], [Sight::Nobody; 2]);
    // Frames of Ethernet sessions are nobody's at first sight.
    let us = config().ports[N3].address.addr();
    let tunnelled = datagram(&gtp(message_type::G_PDU, 1, &[], &[2; 60]));
    assert_eq!(see(&framed(&ip((PEER4.into(), us.into()), 17, &tunnelled)), N3), Sight::Nobody);
}

/// Flooded to all stations, it is dropped where it comes in, and takes nobody's place in a ring.
#[test]
fn what_is_for_another_station_is_nobodys() {
    let frames = [
        (N3, uplink(9, 80)),
        (N6, framed(&user_packet(false, Way::Down))),
        (N6, framed(&user_packet(true, Way::Down))),
    ];
    for (port, frame) in frames {
        assert!(matches!(see(&frame, port), Sight::User(_)));
        let mut flooded = to(port, &frame);
        flooded[5] ^= 1;
        assert_eq!(see_as_it_is(&flooded, port), Sight::Nobody);
    }
}

#[test]
fn of_parts_of_tunnels_and_of_what_is_said_of_one_nothing_can_be_told() {
    let us = config().ports[N3].address.addr();
    let marker = datagram(&gtp(message_type::END_MARKER, 0x100, &[], &[]));
    let frame = framed(&ip((PEER4.into(), us.into()), 17, &marker));
    assert_eq!(see(&frame, N3), Sight::Unclear);
    for place in [0x2000_u16, 0x2040, 0x0040] {
        let mut part = uplink(9, 80);
        part[20..22].copy_from_slice(&place.to_be_bytes());
        assert_eq!(see(&part, N3), Sight::Unclear, "{place:x}");
    }
}

//! Users' packets, as bytes.

use super::aim::{Aim, Speech, Subject};
use super::random::{Random, chance, pick};
use super::{content, lookup, media};
use crate::bytes::{checksum, put};
use crate::ip::{
    AH, DCCP, DESTINATION_OPTIONS, ESP, FRAGMENT, HOP_BY_HOP, ICMP, ICMPV6, ROUTING, SCTP, TCP, UDP, UDP_LITE,
};
use rand::Rng;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A packet as aimed, with options, extension headers, fragmentation and few hops left now and then.
pub(super) fn build(random: &mut Random, aim: &Aim) -> Vec<u8> {
    let upper = match aim.speaks {
        Some(said) => speech(random, aim, said),
        None => upper(random, aim),
    };
    match (aim.source, aim.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => ipv4(random, aim, (source, destination), &upper),
        (IpAddr::V6(source), IpAddr::V6(destination)) => ipv6(random, aim, (source, destination), upper),
        // Filters of the other version than the user's address.
        _ => Vec::new(),
    }
}

/// A datagram, or a segment of a connection, which mostly is as it should be.
fn speech(random: &mut Random, aim: &Aim, said: Speech) -> Vec<u8> {
    let ends = (aim.source, aim.destination);
    let mut bytes = match said.of {
        Subject::Lookup => datagram(aim, &lookup::message(random, said.from)),
        Subject::Media => datagram(aim, &media::packet(random)),
        _ => content::segment(random, (aim.source_port, aim.destination_port), said),
    };
    if chance(random, 950) {
        content::seal(&mut bytes, ends, aim.protocol);
    }
    bytes
}

/// Its checksum is arbitrary.
fn datagram(aim: &Aim, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [header(aim), payload.to_vec()].concat();
    let length = (bytes.len() as u16).to_be_bytes();
    put(&mut bytes, 4, &length);
    bytes
}

fn upper(random: &mut Random, aim: &Aim) -> Vec<u8> {
    let mut bytes = header(aim);
    if aim.protocol == TCP && aim.has_options {
        add_options(random, &mut bytes);
    }
    if aim.protocol == TCP && aim.goes_on && !aim.has_options {
        go_on(random, &mut bytes);
    }
    bytes.resize(bytes.len() + aim.payload, random.random());
    if aim.protocol == TCP && aim.goes_on && chance(random, 500) {
        let words = pick(
            random,
            ["GET / HTTP/1.1\r\n", "GET /", "POST /a", "get / ", "GE T / ", "OVERLONGMETHODS1 ", "GET"],
        );
        let at = bytes.get(12).map_or(20, |offset| 4 * usize::from(offset >> 4));
        put(&mut bytes, at, words.as_bytes());
    }
    if aim.protocol == UDP {
        let length = (bytes.len() as u16).to_be_bytes();
        put(&mut bytes, 4, &length);
    }
    bytes
}

/// The upper layer's header, its checksum arbitrary: the data path does not look at it.
fn header(aim: &Aim) -> Vec<u8> {
    let mut ports = aim.source_port.to_be_bytes().to_vec();
    ports.extend(aim.destination_port.to_be_bytes());
    let spi = aim.spi.to_be_bytes();
    match aim.protocol {
        TCP => [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0x20, 0, 0xbe, 0xef, 0, 0]].concat(),
        UDP | UDP_LITE => [&ports[..], &[0, 8, 0xbe, 0xef]].concat(),
        SCTP | DCCP => [&ports[..], &[0; 8]].concat(),
        ESP => [&spi[..], &[0, 0, 0, 1]].concat(),
        AH => [&[UDP, 4, 0, 0], &spi[..], &[0; 16]].concat(),
        ICMP | ICMPV6 => vec![8, 0, 0xbe, 0xef, 0, 1, 0, 1],
        _ => Vec::new(),
    }
}

/// Any segment of a connection, now and then with timestamps.
fn go_on(random: &mut Random, header: &mut Vec<u8>) {
    let flags = pick(
        random,
        [0x02, 0x02, 0x10, 0x10, 0x18, 0x18, 0x18, 0x11, 0x19, 0x04, 0x14, 0x12, 0x00, 0x01, 0x06, 0x13],
    );
    put(header, 4, &random.random::<[u8; 8]>());
    put(header, 13, &[flags]);
    if chance(random, 300) {
        let length = pick(random, [10, 10, 10, 10, 9, 1]);
        let option = pick(random, [[1, 1, 8, length], [8, length, 1, 1], [3, 3, 7, 8], [0, 1, 8, length]]);
        header.extend(option);
        header.extend(random.random::<[u8; 8]>());
        put(header, 12, &[0x80]);
    }
}

/// What a connection says that it takes: longer than what passes, or not, at an even place or an odd one, behind what cannot be read.
fn add_options(random: &mut Random, header: &mut Vec<u8>) {
    let [high, low] = pick(random, [536, 1_336, 1_360, 1_400, 1_460, 8_960, 0xffff_u16]).to_be_bytes();
    let options = pick(
        random,
        [
            [2, 4, high, low, 1, 1, 1, 1],
            [2, 4, high, low, 1, 1, 1, 1],
            [1, 2, 4, high, low, 0, 0, 0],
            [4, 2, 1, 1, 2, 4, high, low],
            [3, 3, 7, 2, 4, high, low, 2],
            [0, 0, 0, 0, 2, 4, high, low],
            [4, 1, 2, 4, high, low, 1, 1],
            [2, 3, high, 2, 4, high, low, 1],
            [1, 1, 1, 1, 1, 2, 4, high],
        ],
    );
    header.extend(options);
    let length = pick(random, [0x70, 0x70, 0x70, 0x70, 0x60, 0x40, 0xf0]);
    let flags = pick(random, [0x02, 0x02, 0x12, 0x10]);
    put(header, 12, &[length, flags]);
}

fn hops(random: &mut Random) -> u8 {
    if chance(random, 960) { 64 } else { pick(random, [0, 1, 2, 255]) }
}

fn ipv4(random: &mut Random, aim: &Aim, ends: (Ipv4Addr, Ipv4Addr), upper: &[u8]) -> Vec<u8> {
    let options = if chance(random, 980) { 0 } else { 4 * pick(random, [1, 2, 10]) };
    let fragment: u16 = match random.random_range(0..40) {
        0 => 0x2000,
        1 => pick(random, [0x0001, 0x2001, 0x00b9, 0x3fff]),
        _ => pick(random, [0, 0x4000]),
    };
    let length = 20 + options;
    let mut bytes = vec![0x40 | (length / 4) as u8, aim.traffic_class];
    bytes.extend(((length + upper.len()) as u16).to_be_bytes());
    let identification = if fragment & 0x3fff == 0 { random.random() } else { aim.identification };
    bytes.extend(identification.to_be_bytes());
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([hops(random), aim.protocol, 0, 0]);
    bytes.extend(ends.0.octets());
    bytes.extend(ends.1.octets());
    // No operation.
    bytes.resize(length, 1);
    let checksum = checksum(&[&bytes]);
    put(&mut bytes, 10, &checksum.to_be_bytes());
    bytes.extend(upper);
    bytes
}

fn ipv6(random: &mut Random, aim: &Aim, ends: (Ipv6Addr, Ipv6Addr), upper: Vec<u8>) -> Vec<u8> {
    let (next, payload) = match chance(random, 880) {
        true => (aim.protocol, upper),
        false => with_extensions(random, (aim.protocol, aim.identification), upper),
    };
    let first = 6 << 28 | u32::from(aim.traffic_class) << 20 | aim.flow_label;
    let mut bytes = first.to_be_bytes().to_vec();
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([next, hops(random)]);
    bytes.extend(ends.0.octets());
    bytes.extend(ends.1.octets());
    bytes.extend(payload);
    bytes
}

/// A chain of extension headers in front of the payload; mostly one or two, now and then more than anybody takes.
pub(super) fn with_extensions(
    random: &mut Random,
    (protocol, identification): (u8, u16),
    upper: Vec<u8>,
) -> (u8, Vec<u8>) {
    let count = pick(random, [1, 1, 1, 2, 2, 3, 7, 8, 9]);
    let (mut next, mut payload) = (protocol, upper);
    for left in (0..count).rev() {
        let kind = pick(random, [DESTINATION_OPTIONS, DESTINATION_OPTIONS, ROUTING, FRAGMENT, AH]);
        let first = left == 0;
        let kind = if first && chance(random, 250) || chance(random, 15) { HOP_BY_HOP } else { kind };
        payload = [extension(random, (kind, next), identification), payload].concat();
        next = kind;
    }
    (next, payload)
}

fn extension(random: &mut Random, (kind, next): (u8, u8), identification: u16) -> Vec<u8> {
    match kind {
        FRAGMENT => {
            let place: u16 = pick(random, [0, 0, 1, 1, 8, 9, 0xfff8]);
            let [high, low] = place.to_be_bytes();
            let [above, below] = identification.to_be_bytes();
            vec![next, 0, high, low, 0, 0, above, below]
        }
        AH => {
            let spi = pick(random, super::filters::SPIS).to_be_bytes();
            [&[next, 4, 0, 0], &spi[..], &[0; 16]].concat()
        }
        // One option that fills it (PadN).
        _ => match pick(random, [0_u8, 0, 1, 3]) {
            0 => vec![next, 0, 1, 4, 0, 0, 0, 0],
            units => {
                let mut bytes = vec![next, units, 1, units * 8 + 4];
                bytes.resize(8 + 8 * usize::from(units), 0);
                bytes
            }
        },
    }
}

use super::*;
use crate::checksum;
use crate::ipv6::Fragment;
use crate::protocol::{AH, DESTINATION_OPTIONS, ESP, FRAGMENT, ICMP, ICMPV6, SCTP, TCP, UDP};
use proptest::prelude::*;

const A: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
const C: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, 6);
const D: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 9, 9, 9, 9, 9);
const PORTS: [u8; 8] = [0x9c, 0x40, 0, 53, 0, 8, 0, 0];

fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ipv4::LENGTH];
    ipv4::Header::new(A, B, protocol, payload.len()).unwrap().write(&mut bytes).unwrap();
    [&bytes, payload].concat()
}

/// The packet with some of its IPv4 header changed and the checksum renewed.
fn changed(mut bytes: Vec<u8>, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut bytes);
    let header = usize::from(bytes[0] & 15) * 4;
    bytes[10..12].fill(0);
    let checksum = checksum::of(&bytes[..header]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ipv6::LENGTH];
    let header = ipv6::Header::new(C, D, next, payload.len()).unwrap();
    header.with_flow_label(0xabcde).with_traffic_class(0xb9).write(&mut bytes).unwrap();
    [&bytes, payload].concat()
}

fn tuple(bytes: &[u8]) -> FiveTuple {
    FiveTuple::parse(bytes).unwrap().tuple
}

#[test]
fn a_plain_ipv4_packet() {
    for protocol in [UDP, TCP, SCTP] {
        let read = FiveTuple::parse(&[v4(protocol, &PORTS), vec![0; 6]].concat()).unwrap();
        assert_eq!((read.upper, read.total), (20, 28));
        assert_eq!((read.tuple.source_port, read.tuple.destination_port), (40_000, 53));
        assert_eq!((read.tuple.protocol, read.tuple.version, read.tuple.fragment), (protocol, 4, false));
        assert_eq!((read.tuple.source_address(), read.tuple.destination_address()), (A.into(), B.into()));
        assert_eq!((read.tuple.spi, read.tuple.flow_label, read.tuple.tos), (0, 0, 0));
    }
}

#[test]
fn options_move_the_ports() {
    let bytes = changed(v4(UDP, &[&[1; 4][..], &PORTS].concat()), |bytes| bytes[0] = 0x46);
    let read = FiveTuple::parse(&bytes).unwrap();
    assert_eq!((read.upper, read.tuple.source_port), (24, 40_000));
}

#[test]
fn only_later_fragments_hide_the_ports() {
    let first = tuple(&changed(v4(UDP, &PORTS), |bytes| bytes[6] = 0x20));
    assert_eq!((first.source_port, first.fragment), (40_000, false));
    let later = tuple(&changed(v4(UDP, &PORTS), |bytes| bytes[7] = 1));
    assert_eq!((later.source_port, later.destination_port, later.fragment), (0, 0, true));
}

#[test]
fn fragments_say_which_part_of_which_packet_they_are() {
    let named = |bytes: &mut Vec<u8>, place: [u8; 2]| {
        bytes[4..6].copy_from_slice(&[0x12, 0x34]);
        bytes[6..8].copy_from_slice(&place);
    };
    let v4 = |place: [u8; 2]| FiveTuple::parse(&changed(v4(UDP, &PORTS), |bytes| named(bytes, place)));
    let part = |offset, more| Some(Fragment { identification: 0x1234, offset, more });
    assert_eq!(v4([0x40, 0]).unwrap().part, None);
    assert_eq!(v4([0x20, 0]).unwrap().part, part(0, true));
    assert_eq!(v4([0x20, 2]).unwrap().part, part(16, true));
    assert_eq!(v4([0, 2]).unwrap().part, part(16, false));
    let v6 = |place: u8| {
        let header = [UDP, 0, 0, place, 0, 0, 0x12, 0x34];
        FiveTuple::parse(&v6(FRAGMENT, &[&header[..], &PORTS].concat())).unwrap().part
    };
    assert_eq!((v6(0), v6(1), v6(16)), (None, part(0, true), part(16, false)));
}

#[test]
fn a_plain_ipv6_packet() {
    let read = FiveTuple::parse(&v6(TCP, &PORTS)).unwrap();
    assert_eq!((read.upper, read.total), (40, 48));
    assert_eq!((read.tuple.source_address(), read.tuple.destination_address()), (C.into(), D.into()));
    assert_eq!((read.tuple.source_port, read.tuple.destination_port), (40_000, 53));
    assert_eq!((read.tuple.tos, read.tuple.flow_label, read.tuple.version), (0xb9, 0xabcde, 6));
    assert_eq!(read.tuple.without_ecn().tos, 0xb8);
}

#[test]
fn extension_headers_are_passed() {
    let options = [&[UDP, 0, 1, 4, 0, 0, 0, 0][..], &PORTS].concat();
    let read = FiveTuple::parse(&v6(DESTINATION_OPTIONS, &options)).unwrap();
    assert_eq!((read.upper, read.tuple.protocol, read.tuple.source_port), (48, UDP, 40_000));
    let fragment = |place: u8| tuple(&v6(FRAGMENT, &[&[UDP, 0, 0, place, 0, 0, 0, 1][..], &PORTS].concat()));
    assert_eq!((fragment(1).source_port, fragment(1).fragment), (40_000, false));
    assert_eq!((fragment(8).source_port, fragment(8).fragment, fragment(8).protocol), (0, true, UDP));
}

#[test]
fn security_headers_show_their_index() {
    let esp = [0, 0, 0x12, 0x34, 0, 0, 0, 1];
    assert_eq!((tuple(&v4(ESP, &esp)).spi, tuple(&v6(ESP, &esp)).spi), (0x1234, 0x1234));
    let ah = [&[TCP, 1, 0, 0, 0, 0, 0x56, 0x78, 0, 0, 0, 1][..], &PORTS].concat();
    let over_4 = tuple(&v4(AH, &ah));
    assert_eq!((over_4.protocol, over_4.spi, over_4.source_port), (AH, 0x5678, 0));
    // Over IPv6 it is an extension header, and the packet shows what it carries.
    let over_6 = tuple(&v6(AH, &ah));
    assert_eq!((over_6.protocol, over_6.spi, over_6.source_port), (TCP, 0x5678, 40_000));
}

#[test]
fn others_have_no_ports() {
    assert_eq!(tuple(&v4(ICMP, &PORTS)).source_port, 0);
    assert_eq!(tuple(&v6(ICMPV6, &[])).source_port, 0);
}

#[test]
fn each_fault_has_its_name() {
    assert_eq!(FiveTuple::parse(&[]), Err(Malformed::Empty));
    assert_eq!(FiveTuple::parse(&[0x50; 60]), Err(Malformed::Version));
    for good in [v4(TCP, &PORTS), v6(TCP, &PORTS)] {
        for length in 1..good.len() {
            let fault = FiveTuple::parse(&good[..length]).unwrap_err();
            let expected = match good[0] >> 4 {
                4 => Malformed::Ipv4(ipv4::Malformed::Truncated),
                _ => Malformed::Ipv6(ipv6::Malformed::Truncated),
            };
            assert_eq!(fault, expected, "{length} bytes");
        }
    }
    for length in 0..4 {
        for protocol in [TCP, UDP, ESP, AH] {
            assert_eq!(FiveTuple::parse(&v4(protocol, &PORTS[..length])), Err(Malformed::Transport));
        }
        assert_eq!(FiveTuple::parse(&v6(TCP, &PORTS[..length])), Err(Malformed::Transport));
    }
    let endless = v6(DESTINATION_OPTIONS, &[60, 0, 1, 4, 0, 0, 0, 0].repeat(9));
    assert_eq!(FiveTuple::parse(&endless), Err(Malformed::Ipv6(ipv6::Malformed::TooManyExtensions)));
}

#[test]
fn every_field_tells_flows_apart() {
    let base = tuple(&v6(TCP, &PORTS));
    let others = [
        FiveTuple { source: 1, ..base },
        FiveTuple { destination: 1, ..base },
        FiveTuple { source_port: 1, ..base },
        FiveTuple { destination_port: 1, ..base },
        FiveTuple { spi: 1, ..base },
        FiveTuple { flow_label: 1, ..base },
        FiveTuple { protocol: 1, ..base },
        FiveTuple { tos: 1, ..base },
        FiveTuple { version: 4, ..base },
        FiveTuple { fragment: true, ..base },
    ];
    for other in others {
        assert_ne!(other, base);
        assert_ne!(other.hash_with(7), base.hash_with(7), "{other:?}");
    }
    assert_ne!(base.hash_with(7), base.hash_with(8));
}

/// A million flows of one user, as a scan makes them, over 65,536 buckets: 16 each, and no bucket far from it.
#[test]
fn neighbouring_flows_spread() {
    let base = tuple(&v4(UDP, &PORTS));
    let mut buckets = vec![0u16; 1 << 16];
    for n in 0..1u32 << 20 {
        let [a, b, c, d] = n.to_be_bytes();
        let mut flow = FiveTuple { source_port: u16::from_be_bytes([c, d]), ..base };
        flow.destination ^= u128::from(u16::from_be_bytes([a, b])) << 96;
        buckets[flow.hash_with(1) as usize & 0xffff] += 1;
    }
    assert!(buckets.iter().all(|count| *count < 48), "{:?}", buckets.iter().max());
}

proptest! {
    #[test]
    fn twice_reversed_is_the_same(source: u128, destination: u128, ports: (u16, u16)) {
        let flow = FiveTuple { source, destination, source_port: ports.0, destination_port: ports.1, ..FiveTuple::default() };
        prop_assert_eq!(flow.reversed().reversed(), flow);
        prop_assert_eq!((flow.reversed().source, flow.reversed().source_port), (destination, ports.1));
    }

    #[test]
    fn any_bytes_parse_or_fail(mut bytes in proptest::collection::vec(any::<u8>(), 1..100), version in prop_oneof![Just(4u8), Just(6)]) {
        bytes[0] = version << 4 | 5;
        if bytes.len() >= 20 && version == 4 {
            bytes[2] = 0;
            bytes[3] %= 100;
            bytes = changed(bytes, |_| ());
        }
        if bytes.len() >= 40 && version == 6 {
            bytes[4] = 0;
            bytes[5] %= 64;
            bytes[6] &= 0x3f;
        }
        if let Ok(read) = FiveTuple::parse(&bytes) {
            prop_assert!(read.upper <= read.total && read.total <= bytes.len());
        }
    }
}

use super::*;
use crate::protocol::{AH, DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, NO_NEXT_HEADER, ROUTING, TCP, UDP};
use proptest::prelude::*;
use std::net::Ipv6Addr;

const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const B: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);

fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    Header::new(A, B, next, payload.len()).unwrap().write(&mut bytes).unwrap();
    [&bytes, payload].concat()
}

/// An extension header of 8 bytes, 16 of AH, that leads to `next`.
fn extension(kind: u8, next: u8) -> Vec<u8> {
    match kind {
        FRAGMENT => vec![next, 0, 0, 0, 0, 0, 0, 9],
        AH => [vec![next, 2, 0, 0, 0, 0, 0x12, 0x34], vec![0xaa; 8]].concat(),
        _ => vec![next, 0, 1, 4, 0, 0, 0, 0],
    }
}

/// The chain of these kinds in front of `last`.
fn chain(kinds: &[u8], last: u8, payload: &[u8]) -> Vec<u8> {
    let nexts = kinds.iter().skip(1).copied().chain([last]);
    let headers = kinds.iter().zip(nexts).flat_map(|(kind, next)| extension(*kind, next));
    packet(*kinds.first().unwrap_or(&last), &[headers.collect::<Vec<_>>(), payload.to_vec()].concat())
}

fn upper(bytes: &[u8]) -> Result<Upper, Malformed> {
    Packet::parse(bytes)?.upper()
}

#[test]
fn each_fault_has_its_name() {
    let good = packet(UDP, &[0; 8]);
    for length in 0..48 {
        assert_eq!(Packet::parse(&good[..length]).unwrap_err(), Malformed::Truncated, "{length} bytes");
    }
    let mut other = good.clone();
    other[0] = 0x45;
    assert_eq!(Packet::parse(&other).unwrap_err(), Malformed::Version);
    assert!(Header::new(A, B, UDP, 65_536).is_none());
}

#[test]
fn padding_is_not_payload() {
    let padded = [packet(UDP, &[1; 8]), vec![0xff; 6]].concat();
    let read = Packet::parse(&padded).unwrap();
    assert_eq!((read.total_length(), read.payload()), (48, &[1; 8][..]));
}

#[test]
fn without_extensions_the_upper_layer_is_next() {
    for protocol in [UDP, TCP, NO_NEXT_HEADER, 132, 255] {
        let upper = upper(&packet(protocol, &[0; 8])).unwrap();
        assert_eq!((upper.protocol, upper.offset, upper.is_fragment()), (protocol, LENGTH, false));
    }
}

#[test]
fn every_kind_is_stepped_over() {
    let kinds = [HOP_BY_HOP, DESTINATION_OPTIONS, ROUTING, FRAGMENT, AH, DESTINATION_OPTIONS];
    let upper = upper(&chain(&kinds, TCP, &[0; 20])).unwrap();
    assert_eq!((upper.protocol, upper.offset), (TCP, LENGTH + 5 * 8 + 16));
    assert_eq!((upper.spi, upper.hop_by_hop), (0x1234, true));
    assert_eq!(upper.fragment, Some(Fragment { identification: 9, offset: 0, more: false }));
    assert!(!upper.is_fragment());
}

#[test]
fn a_later_fragment_ends_the_chain() {
    let place = [DESTINATION_OPTIONS, 0, 0x01, 0x01, 0, 0, 0, 1];
    let upper = upper(&packet(FRAGMENT, &[&place[..], &[60, 255]].concat())).unwrap();
    assert_eq!(upper.fragment, Some(Fragment { identification: 1, offset: 0x100, more: true }));
    assert_eq!((upper.protocol, upper.offset), (DESTINATION_OPTIONS, LENGTH + 8));
    assert!(upper.is_later_fragment() && upper.is_fragment());
}

#[test]
fn chains_are_bounded() {
    let longest = chain(&[DESTINATION_OPTIONS; EXTENSIONS_MAX], UDP, &[0; 8]);
    assert_eq!(upper(&longest).unwrap().offset, LENGTH + EXTENSIONS_MAX * 8);
    let longer = chain(&[DESTINATION_OPTIONS; EXTENSIONS_MAX + 1], UDP, &[0; 8]);
    assert_eq!(upper(&longer), Err(Malformed::TooManyExtensions));
}

#[test]
fn hop_by_hop_options_come_first() {
    assert!(upper(&chain(&[HOP_BY_HOP], UDP, &[])).is_ok());
    assert_eq!(upper(&chain(&[DESTINATION_OPTIONS, HOP_BY_HOP], UDP, &[])), Err(Malformed::Extension));
}

#[test]
fn a_chain_cut_anywhere_is_refused() {
    let kinds = [HOP_BY_HOP, ROUTING, AH, FRAGMENT];
    let whole = chain(&kinds, UDP, &[]);
    for length in LENGTH..whole.len() {
        let mut cut = whole[..length].to_vec();
        cut[5] = (length - LENGTH) as u8;
        assert_eq!(upper(&cut), Err(Malformed::Extension), "{length} bytes");
    }
}

/// RFC 8200 8.1, by hand: addresses, length and next header, word by word.
#[test]
fn a_pseudo_header() {
    let words = [0x2001u32, 0xdb8, 1, 0xff02, 0x16, 0x1_0008 >> 16, 8, 17];
    let sum: u32 = words.iter().sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    assert_eq!(u32::from(pseudo_sum(A, B, UDP, 0x1_0008)), folded);
    let bytes = packet(UDP, &[0; 8]);
    assert_eq!(Packet::parse(&bytes).unwrap().pseudo_sum(UDP, 8), pseudo_sum(A, B, UDP, 8));
}

proptest! {
    #[test]
    fn a_header_reads_as_it_was_written(source: Ipv6Addr, destination: Ipv6Addr, fields: (u8, u8, u8), label in 0u32..1 << 20) {
        let (next, class, hops) = fields;
        let header = Header::new(source, destination, next, 3).unwrap();
        let mut bytes = [0; LENGTH + 3];
        header.with_flow_label(label).with_traffic_class(class).with_hop_limit(hops).write(&mut bytes).unwrap();
        let read = Packet::parse(&bytes).unwrap();
        prop_assert_eq!((read.source(), read.destination()), (source, destination));
        prop_assert_eq!((read.next_header(), read.hop_limit()), (next, hops));
        prop_assert_eq!((read.traffic_class(), read.flow_label()), (class, label));
        prop_assert!(Header::new(source, destination, next, 3).unwrap().write(&mut [0; LENGTH - 1]).is_none());
    }

    #[test]
    fn any_bytes_parse_or_fail_and_offsets_hold(kinds in proptest::collection::vec(0usize..5, 0..10), noise in proptest::collection::vec(any::<u8>(), 0..64), at: proptest::sample::Index, with: u8) {
        let kinds: Vec<u8> = kinds.iter().map(|kind| [HOP_BY_HOP, ROUTING, FRAGMENT, AH, DESTINATION_OPTIONS][*kind]).collect();
        let mut bytes = chain(&kinds, UDP, &noise);
        let at = at.index(bytes.len());
        bytes[at] = with;
        if let Ok(packet) = Packet::parse(&bytes)
            && let Ok(upper) = packet.upper()
        {
            prop_assert!((LENGTH..=packet.total_length()).contains(&upper.offset));
        }
    }
}

use super::*;
use crate::checksum;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 77);

fn packet(payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH + payload];
    Header::new(A, B, UDP, payload).unwrap().write(&mut bytes).unwrap();
    bytes
}

/// The header in RFC 1071's most quoted example: checksum 0xb861.
#[test]
fn a_known_header_is_intact_until_a_bit_flips() {
    let mut bytes = vec![
        0x45, 0x00, 0x00, 0x14, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
        0x00, 0xc7,
    ];
    let checksum = checksum::of(&bytes);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    assert!(Packet::parse(&bytes).is_ok());
    bytes[15] ^= 4;
    assert_eq!(Packet::parse(&bytes).unwrap_err(), Malformed::Checksum);
}

#[test]
fn each_fault_has_its_name() {
    let good = packet(8);
    assert_eq!(Packet::parse(&good[..19]).unwrap_err(), Malformed::Truncated);
    assert_eq!(Packet::parse(&good[..27]).unwrap_err(), Malformed::Truncated);
    let with = |at: usize, value: u8| [&good[..at], &[value], &good[at + 1..]].concat();
    assert_eq!(Packet::parse(&with(0, 0x65)).unwrap_err(), Malformed::Version);
    assert_eq!(Packet::parse(&with(0, 0x44)).unwrap_err(), Malformed::HeaderLength);
    assert_eq!(Packet::parse(&with(0, 0x4f)).unwrap_err(), Malformed::HeaderLength);
    assert_eq!(Packet::parse(&with(3, 19)).unwrap_err(), Malformed::HeaderLength);
}

#[test]
fn the_last_hop_is_not_taken() {
    let mut bytes = packet(0);
    for _ in 0..63 {
        decrement_ttl(&mut bytes).unwrap();
        assert!(Packet::parse(&bytes).is_ok());
    }
    assert!(decrement_ttl(&mut bytes).is_none());
    assert_eq!(Packet::parse(&bytes).unwrap().ttl(), 1);
}

#[test]
fn a_hop_less_changes_every_checksum_as_the_rfc_has_it() {
    let mut bytes = packet(0);
    let word = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    for before in 0..=u16::MAX {
        bytes[8] = 64;
        bytes[10..12].copy_from_slice(&before.to_be_bytes());
        let old = word(&bytes, 8);
        decrement_ttl(&mut bytes).unwrap();
        assert_eq!(word(&bytes, 10), checksum::update(before, old, word(&bytes, 8)), "{before:04x}");
    }
}

#[test]
fn a_reversed_packet_goes_back() {
    let mut bytes = packet(4);
    reverse(&mut bytes).unwrap();
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.source(), packet.destination()), (B, A));
}

proptest! {
    #[test]
    fn any_bytes_parse_or_fail_and_lengths_hold(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(packet) = Packet::parse(&bytes) {
            prop_assert!(packet.header_length() <= packet.total_length());
            prop_assert!(packet.total_length() <= bytes.len());
        }
    }

    #[test]
    fn changes_keep_the_rest_and_the_checksum(tos: u8, dscp in 0u8..64, ecn in 0u8..4, id: u16, hops in 1u8..) {
        let header = Header::new(A, B, UDP, 4).unwrap().with_tos(!tos).with_ttl(hops);
        let mut bytes = [0; LENGTH + 4];
        header.write(&mut bytes).unwrap();
        set_tos(&mut bytes, tos).unwrap();
        prop_assert_eq!(Packet::parse(&bytes).unwrap().tos(), tos);
        set_dscp(&mut bytes, dscp).unwrap();
        prop_assert_eq!(Packet::parse(&bytes).unwrap().tos(), dscp << 2 | tos & 3);
        set_ecn(&mut bytes, ecn).unwrap();
        allow_fragments(&mut bytes, id).unwrap();
        let read = Packet::parse(&bytes).unwrap();
        prop_assert_eq!((read.tos(), read.ttl()), (dscp << 2 | ecn, hops));
        prop_assert_eq!((read.identification(), read.dont_fragment(), read.is_fragment()), (id, false, false));
        let built = header.with_tos(dscp << 2 | ecn).fragmentable(id);
        let mut other = [0; LENGTH + 4];
        built.write(&mut other).unwrap();
        prop_assert_eq!(bytes, other);
    }

    #[test]
    fn options_of_any_shape_end(bytes in proptest::collection::vec(any::<u8>(), 0..=40)) {
        let read: Vec<_> = Options::of(&bytes).collect();
        prop_assert!(read.len() <= bytes.len());
        prop_assert!(read.iter().rev().skip(1).all(Result::is_ok), "only the last may be bad");
    }
}

#[test]
fn too_short_for_a_change() {
    for length in 0..LENGTH {
        let mut bytes = packet(0)[..length].to_vec();
        assert_eq!(
            (set_tos(&mut bytes, 1), set_dscp(&mut bytes, 1), set_ecn(&mut bytes, 1)),
            (None, None, None)
        );
        assert_eq!((allow_fragments(&mut bytes, 1), reverse(&mut bytes)), (None, None));
        assert_eq!((decrement_ttl(&mut bytes), &bytes[..]), (None, &packet(0)[..length]));
    }
}

#[test]
fn where_a_fragment_goes() {
    let mut bytes = packet(8);
    bytes[4..8].copy_from_slice(&[0x12, 0x34, 0x20, 0x03]);
    bytes[10..12].fill(0);
    let checksum = checksum::of(&bytes[..LENGTH]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    let read = Packet::parse(&bytes).unwrap();
    assert_eq!((read.identification(), read.fragment_offset()), (0x1234, 24));
    assert!(read.more_fragments() && read.is_fragment() && read.is_later_fragment() && !read.dont_fragment());
}

/// RFC 768, by hand.
#[test]
fn a_pseudo_header() {
    let sum: u32 = [0x0a00, 0x0001, 0xc0a8, 0x014d, 17, 8].iter().sum();
    assert_eq!(u32::from(pseudo_sum(A, B, UDP, 8)), (sum & 0xffff) + (sum >> 16));
    assert_eq!(Packet::parse(&packet(8)).unwrap().pseudo_sum(), pseudo_sum(A, B, UDP, 8));
}

#[test]
fn options_one_by_one() {
    // No-operation, record route with no room, stream identifier, end, and what nobody reads.
    let bytes = [1, 7, 3, 4, 0x88, 4, 0, 9, 0, 99];
    let read: Vec<_> =
        Options::of(&bytes).map(|option| option.map(|option| (option.kind(), option.is_copied()))).collect();
    assert_eq!(read, [Ok((1, false)), Ok((7, false)), Ok((0x88, true))]);
    for (bad, good_before) in [(&[7][..], 0), (&[7, 1], 0), (&[1, 7, 3, 0, 0], 2), (&[0x88, 9, 1], 0)] {
        let read: Vec<_> = Options::of(bad).collect();
        let expected_bad = bad != [1, 7, 3, 0, 0];
        assert_eq!(read.iter().filter(|option| option.is_ok()).count(), good_before);
        assert_eq!(read.last() == Some(&Err(BadOption)), expected_bad, "{bad:?}");
    }
}

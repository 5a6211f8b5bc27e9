use super::*;
use crate::{FiveTuple, checksum, ipv4, ipv6, protocol};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
const UE6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 2);

/// A segment from port 40000 to 80, sequence number 1000, acknowledgement 2000; its checksum that of the UE to the
/// server over IPv4.
fn segment(flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let offset = ((20 + options.len()) / 4) as u8;
    let mut bytes =
        vec![0x9c, 0x40, 0, 80, 0, 0, 3, 0xe8, 0, 0, 7, 0xd0, offset << 4, flags, 1, 0, 0, 0, 0, 0];
    bytes.extend(options);
    bytes.extend(payload);
    let sum = checksum::add(checksum::sum(&bytes), pseudo(bytes.len()));
    bytes[16..18].copy_from_slice(&(!sum).to_be_bytes());
    bytes
}

fn pseudo(length: usize) -> u16 {
    ipv4::pseudo_sum(UE, SERVER, protocol::TCP, length)
}

fn is_intact(segment: &[u8]) -> bool {
    checksum::add(checksum::sum(segment), pseudo(segment.len())) == u16::MAX
}

fn over_v4(segment: &[u8]) -> Vec<u8> {
    let mut ip = [0; 20];
    ipv4::Header::new(UE, SERVER, protocol::TCP, segment.len()).unwrap().write(&mut ip).unwrap();
    [&ip, segment].concat()
}

fn over_v6(segment: &[u8]) -> Vec<u8> {
    let mut ip = [0; 40];
    ipv6::Header::new(UE6, SERVER6, protocol::TCP, segment.len()).unwrap().write(&mut ip).unwrap();
    [&ip, segment].concat()
}

#[test]
fn a_segment_field_by_field() {
    let bytes = segment(flag::SYN | flag::ECE, &[2, 4, 5, 0xb4, 1, 3, 3, 7], b"ab");
    let read = Segment::parse(&bytes).unwrap();
    assert_eq!(
        (read.source(), read.destination(), read.sequence(), read.acknowledgement()),
        (40_000, 80, 1000, 2000)
    );
    assert_eq!((read.header_length(), read.payload(), read.window()), (28, &b"ab"[..], 256));
    assert_eq!((read.maximum_segment_size(), read.sequence_length()), (Some(1460), 3));
    assert!(read.has(flag::SYN) && !read.has(flag::ACK | flag::FIN));
    assert_eq!(
        read.options().map(|option| (option.kind, option.at)).collect::<Vec<_>>(),
        [(2, 0), (1, 4), (3, 5)]
    );
}

#[test]
fn a_segment_cut_anywhere_is_refused() {
    let whole = segment(flag::SYN, &[2, 4, 5, 0xb4], &[]);
    for length in 0..24 {
        assert_eq!(Segment::parse(&whole[..length]).unwrap_err(), Malformed::Truncated);
        assert_eq!(clamp_mss(&mut whole[..length].to_vec(), 1), Err(Malformed::Truncated));
    }
    let mut short = whole.clone();
    short[12] = 0x40;
    assert_eq!(Segment::parse(&short).unwrap_err(), Malformed::HeaderLength);
    assert_eq!(clamp_mss(&mut short, 1), Err(Malformed::HeaderLength));
}

#[test]
fn options_that_lie_end_the_walk() {
    for options in [[2, 1, 0, 0], [2, 0, 0, 0], [2, 5, 0, 0], [0, 2, 4, 0], [1, 1, 1, 2]] {
        let mut bytes = segment(flag::SYN, &options, &[]);
        let before = bytes.clone();
        assert_eq!(Segment::parse(&bytes).unwrap().maximum_segment_size(), None, "{options:?}");
        assert_eq!((clamp_mss(&mut bytes, 1), &bytes), (Ok(Clamp::Unchanged), &before));
    }
}

#[test]
fn only_what_is_too_large_is_clamped() {
    let syn = segment(flag::SYN, &[2, 4, 5, 0xb4], &[]);
    for (flags, mss, expected) in [
        (flag::SYN, 1400, Clamp::Lowered),
        (flag::SYN | flag::ACK, 1400, Clamp::Lowered),
        (flag::SYN, 1460, Clamp::Unchanged),
        (flag::ACK, 1400, Clamp::Unchanged),
    ] {
        let mut bytes = segment(flags, &syn[20..24], &[]);
        assert_eq!(clamp_mss(&mut bytes, mss), Ok(expected));
        let after = Segment::parse(&bytes).unwrap().maximum_segment_size();
        assert_eq!(after, Some(if expected == Clamp::Lowered { mss } else { 1460 }));
        assert!(is_intact(&bytes));
    }
    assert_eq!((mss_for_mtu(1500, 4), mss_for_mtu(1500, 6), mss_for_mtu(10, 4)), (1460, 1440, 0));
}

#[test]
fn a_reset_as_the_other_end_would_send_it() {
    let mut bytes = [0; 40];
    assert_eq!(write_reset(&over_v4(&segment(flag::ACK, &[], b"abc")), &mut bytes), Ok(40));
    let ip = ipv4::Packet::parse(&bytes).unwrap();
    assert_eq!((ip.source(), ip.destination(), ip.protocol()), (SERVER, UE, protocol::TCP));
    let read = Segment::parse(ip.payload()).unwrap();
    assert_eq!((read.source(), read.destination(), read.flags()), (80, 40_000, flag::RST));
    assert_eq!((read.sequence(), read.acknowledgement()), (2000, 0));
    assert_eq!(checksum::add(checksum::sum(ip.payload()), ip.pseudo_sum()), u16::MAX);
}

#[test]
fn a_reset_over_ipv6_of_what_acknowledges_nothing() {
    let mut bytes = [0; 60];
    assert_eq!(write_reset(&over_v6(&segment(flag::SYN, &[2, 4, 5, 0xb4], b"ab")), &mut bytes), Ok(60));
    let ip = ipv6::Packet::parse(&bytes).unwrap();
    assert_eq!((ip.source(), ip.destination()), (SERVER6, UE6));
    let read = Segment::parse(ip.payload()).unwrap();
    assert_eq!((read.sequence(), read.acknowledgement(), read.flags()), (0, 1003, flag::RST | flag::ACK));
    assert_eq!(checksum::add(checksum::sum(ip.payload()), ip.pseudo_sum(protocol::TCP, 20)), u16::MAX);
}

#[test]
fn what_is_not_reset() {
    let reset = |packet: &[u8]| write_reset(packet, &mut [0; 60]).unwrap_err();
    assert_eq!(reset(&over_v4(&segment(flag::RST, &[], &[]))), NoReset::IsReset);
    assert_eq!(reset(&over_v6(&segment(flag::RST | flag::ACK, &[], &[]))), NoReset::IsReset);
    let good4 = over_v4(&segment(flag::SYN, &[], &[]));
    let good6 = over_v6(&segment(flag::SYN, &[], &[]));
    assert!((0..40).all(|length| reset(&good4[..length]) == NoReset::NotTcp));
    assert!((0..60).all(|length| reset(&good6[..length]) == NoReset::NotTcp));
    assert!((0..40).all(|length| write_reset(&good4, &mut vec![0; length]) == Err(NoReset::NoRoom)));
    assert!((0..60).all(|length| write_reset(&good6, &mut vec![0; length]) == Err(NoReset::NoRoom)));
    let mut udp = good6.clone();
    udp[6] = protocol::UDP;
    assert_eq!(reset(&udp), NoReset::NotTcp);
    let mut group = good6.clone();
    group[24] = 0xff;
    assert_eq!(reset(&group), NoReset::NotUnicast);
    let mut fragment = good4.clone();
    ipv4::Header::new(UE, SERVER, protocol::TCP, 20).unwrap().write(&mut fragment).unwrap();
    fragment[6] = 0x20;
    fragment[10..12].fill(0);
    let checksum = checksum::of(&fragment[..20]);
    fragment[10..12].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(reset(&fragment), NoReset::Fragment);
}

proptest! {
    /// Wherever the option stands, at an even or an odd place.
    #[test]
    fn a_clamped_segment_is_intact(before in 0usize..8, old: u16, mss: u16, payload in proptest::collection::vec(any::<u8>(), 0..20)) {
        let mut options = vec![1; before];
        options.extend([2, 4]);
        options.extend(old.to_be_bytes());
        options.resize(options.len().next_multiple_of(4), 0);
        let mut bytes = segment(flag::SYN, &options, &payload);
        clamp_mss(&mut bytes, mss).unwrap();
        prop_assert_eq!(Segment::parse(&bytes).unwrap().maximum_segment_size(), Some(old.min(mss)));
        prop_assert!(is_intact(&bytes));
    }

    #[test]
    fn any_bytes_parse_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..80), mss: u16) {
        if let Ok(read) = Segment::parse(&bytes) {
            prop_assert_eq!(read.header_length() + read.payload().len(), bytes.len());
            prop_assert!(read.options().count() <= 40);
        }
        let _ = clamp_mss(&mut bytes.clone(), mss);
        let _ = write_reset(&over_v4(&bytes), &mut [0; 60]);
    }
}

/// The flow of [`segment`], the other way.
fn back(packet: &[u8]) -> FiveTuple {
    FiveTuple::parse(packet).unwrap().tuple.reversed()
}

#[test]
fn an_answer_has_the_numbers_and_timestamps_its_receiver_expects() {
    let options = [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 9];
    let bytes = segment(flag::ACK | flag::FIN, &options, b"GET /");
    let asked = Segment::parse(&bytes).unwrap();
    assert_eq!(asked.timestamps(), Some((5, 9)));
    for packet in [over_v4(&bytes), over_v6(&bytes)] {
        let mut out = [0; 200];
        let made = Made::answering(&asked, flag::ACK | flag::PSH, b"odd");
        let length = made.write(&back(&packet), &mut out).unwrap();
        let found = FiveTuple::parse(&out[..length]).unwrap();
        assert_eq!((found.tuple.source, found.tuple.source_port), (back(&packet).source, 80));
        let answer = Segment::parse(&out[found.upper..length]).unwrap();
        assert_eq!((answer.sequence(), answer.acknowledgement()), (2000, 1000 + 5 + 1));
        assert_eq!((answer.timestamps(), answer.payload()), (Some((9, 5)), &b"odd"[..]));
        let pseudo = match (found.tuple.source_address(), found.tuple.destination_address()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => ipv4::pseudo_sum(a, b, protocol::TCP, length - 20),
            (IpAddr::V6(a), IpAddr::V6(b)) => ipv6::pseudo_sum(a, b, protocol::TCP, length - 40),
            _ => unreachable!(),
        };
        assert_eq!(checksum::add(checksum::sum(&out[found.upper..length]), pseudo), u16::MAX);
        assert_eq!(made.write(&back(&packet), &mut out[..length - 1]), None, "it does not fit");
    }
}

#[test]
fn without_an_acknowledgement_an_answer_begins_at_zero() {
    let bytes = segment(flag::SYN, &[], b"");
    let made = Made::answering(&Segment::parse(&bytes).unwrap(), flag::RST | flag::ACK, b"");
    assert_eq!((made.sequence, made.acknowledgement, made.timestamps), (0, 1001, None));
    let mut out = [0; 40];
    assert_eq!(made.write(&back(&over_v4(&bytes)), &mut out), Some(40));
    assert_eq!(out.to_vec(), {
        let mut reset = [0; 40];
        write_reset(&over_v4(&bytes), &mut reset).unwrap();
        reset.to_vec()
    });
}

//! Every packet of the golden files, cut at every byte and with every byte changed, through every parser and every
//! change in place: whatever comes of it, nothing panics, what is read stays within the packet, and what is refused
//! leaves it alone.

use crate::{
    FiveTuple, HeapBuffer, arp, ethernet, fragment, gtpu, icmp, icmpv6, ipv4, ipv6, ndp, tcp, udp, vlan,
};
use std::net::{Ipv4Addr, Ipv6Addr};

const FILES: [&str; 7] = [
    include_str!("../golden/answers.golden"),
    include_str!("../golden/changes.golden"),
    include_str!("../golden/flows.golden"),
    include_str!("../golden/fragments.golden"),
    include_str!("../golden/messages.golden"),
    include_str!("../golden/neighbours.golden"),
    include_str!("../golden/tunnels.golden"),
];
/// Longer packets have nothing but payload behind this.
const LONGEST: usize = 120;

fn packets() -> impl Iterator<Item = Vec<u8>> {
    let words = FILES.iter().flat_map(|file| file.split_whitespace());
    words.filter(|word| word.len() >= 20).filter_map(|word| {
        let digits = word.as_bytes().iter().take(2 * LONGEST);
        let nibbles: Option<Vec<_>> = digits.map(|digit| char::from(*digit).to_digit(16)).collect();
        nibbles.map(|nibbles| nibbles.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
    })
}

fn read_all(bytes: &[u8]) {
    if let Ok(read) = FiveTuple::parse(bytes) {
        assert!(read.upper <= read.total && read.total <= bytes.len());
    }
    if let Ok(message) = gtpu::Message::parse(bytes) {
        assert!(message.header_length <= message.total_length && message.total_length <= bytes.len());
        assert!(message.extensions(bytes).count() <= gtpu::EXTENSIONS_MAX);
        let _ = gtpu::TunnelError::read(&message, bytes);
        let _ = gtpu::read_supported_extension_headers(&message, bytes);
    }
    if let Ok(packet) = ipv6::Packet::parse(bytes) {
        let _ = ndp::Message::parse(&packet);
    }
    if let Ok(segment) = tcp::Segment::parse(bytes) {
        assert!(segment.options().count() <= 40);
    }
    let _ = (udp::Header::parse(bytes), udp::verify(bytes, 0), arp::Message::parse(bytes));
    let _ = (vlan::Tags::parse(bytes), ethernet::Header::parse(bytes), ipv4::Packet::parse(bytes));
}

fn answer_all(bytes: &[u8]) {
    let room = &mut [0; 1500];
    let fits = |length: usize| assert!(length <= 1280);
    let _ = tcp::write_reset(bytes, room).map(fits);
    let _ = icmp::write_error(icmp::Error::TimeExceeded, bytes, Ipv4Addr::LOCALHOST, room).map(fits);
    let _ = icmpv6::write_error(icmpv6::Error::TimeExceeded, bytes, Ipv6Addr::LOCALHOST, room).map(fits);
    for mtu in [0, 27, 28, 68] {
        if let Ok(split) = fragment::Split::plan(bytes, mtu) {
            assert!(
                (0..split.count())
                    .all(|number| split.write(number, room).is_some_and(|length| length <= mtu))
            );
        }
    }
}

fn change_all(bytes: &[u8]) {
    let changes: [fn(&mut [u8]) -> bool; 11] = [
        |bytes| ipv4::decrement_ttl(bytes).is_some(),
        |bytes| ipv4::set_tos(bytes, 1).is_some(),
        |bytes| ipv4::allow_fragments(bytes, 1).is_some(),
        |bytes| ipv6::decrement_hop_limit(bytes).is_some(),
        |bytes| ipv6::reverse(bytes).is_some(),
        |bytes| ipv6::set_dscp(bytes, 1).is_some(),
        |bytes| icmp::reply_to_echo(bytes).is_ok(),
        |bytes| icmpv6::reply_to_echo(bytes).is_ok(),
        |bytes| udp::fill_checksum(bytes, 1).is_some(),
        |bytes| udp::update_checksum(bytes, 1, 2).is_some(),
        |bytes| tcp::clamp_mss(bytes, 1).is_ok(),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut changed = bytes.to_vec();
        assert!(change(&mut changed) || changed == bytes, "change {number} was refused and yet made");
    }
    let _ = ipv4::reverse(&mut bytes.to_vec());
    let _ = vlan::pop(&mut HeapBuffer::new(bytes));
}

fn try_all(bytes: &[u8]) {
    read_all(bytes);
    answer_all(bytes);
    change_all(bytes);
}

#[test]
fn cut_at_every_byte() {
    for packet in packets() {
        (0..=packet.len()).for_each(|length| try_all(&packet[..length]));
    }
}

#[test]
fn every_byte_changed() {
    let mut tried = 0;
    for packet in packets() {
        for at in 0..packet.len().min(60) {
            for value in [0, 0xff, packet[at] ^ 1, packet[at] ^ 0x80, packet[at].wrapping_add(3)] {
                let mut changed = packet.clone();
                changed[at] = value;
                try_all(&changed);
                tried += 1;
            }
        }
    }
    assert!(tried > 10_000, "{tried} packets are too few: are the golden files read?");
}

//! Random packets of RTP (RFC 3550 5.1) and RTCP (6.4), of few sources, so that some follow others; and of QUIC, which nobody can read.

use super::random::{Random, chance, maybe, pick};
use rand::Rng;

/// A packet, or what nearly is one.
pub(super) fn packet(random: &mut Random) -> Vec<u8> {
    let mut bytes = match random.random_range(0..1_000) {
        0..5 => rtcp(random),
        5..105 => quic(random),
        _ => rtp(random),
    };
    let length = maybe(random, 50, |random| random.random_range(0..bytes.len())).unwrap_or(bytes.len());
    bytes.truncate(length);
    if chance(random, 20) { vec![] } else { bytes }
}

fn rtp(random: &mut Random) -> Vec<u8> {
    // Of another version, with contributing sources, and types of which some are of RTCP.
    let first = pick(random, [0x80, 0x80, 0x80, 0x80, 0xa0, 0x83, 0x8f, 0x40]);
    let kind = pick(random, [0, 0, 0, 0x80, 8, 71, 72, 76, 77]);
    let number = 65_500_u16.wrapping_add(random.random_range(0..300)).to_be_bytes();
    let mut bytes = vec![first, kind, number[0], number[1], 0, 0, 0, 0, 0, 0, 0, pick(random, [1, 1, 1, 2])];
    bytes.resize(12 + 4 * usize::from(first & 0x0f) + random.random_range(0..40), 0xa5);
    bytes
}

/// Of a version that can be read, or that nobody has, or a server's versions (RFC 8999), or nearly.
fn quic(random: &mut Random) -> Vec<u8> {
    let first = pick(random, [0xc3, 0xc3, 0xc3, 0x83, 0x43]);
    let version = pick(random, [0_u32, 1, 0x6b33_43cf, 0x1a2a_3a4a]).to_be_bytes();
    let mut bytes = [&[first][..], &version].concat();
    for _ in 0..2 {
        let length = pick(random, [0, 8, 8, 20, 21]);
        bytes.push(length);
        bytes.extend(vec![0xa5; length.into()]);
    }
    let length = pick(random, [bytes.len(), bytes.len() + 7, bytes.len() + 8, 1_199, 1_200]);
    bytes.resize(length.max(bytes.len()), 0xa5);
    bytes
}

/// With less behind it than its length says, or more.
fn rtcp(random: &mut Random) -> Vec<u8> {
    let first = pick(random, [0x80, 0x81, 0xc1]);
    let kind = pick(random, [200, 200, 201, 205, 207, 208]);
    let words = random.random_range(0..4_u8);
    let mut bytes = vec![first, kind, 0, words, 0, 0, 0, pick(random, [1, 1, 2])];
    bytes.resize(8 + random.random_range(0..16), 0xa5);
    bytes
}

//! What lines, bugs and attackers do to packets.

use super::frames::renew_ipv4_checksum;
use super::random::{Random, chance, pick};
use crate::bytes::put;
use rand::Rng;

/// Makes one thing wrong.
pub(super) fn spoil(random: &mut Random, bytes: &mut Vec<u8>) {
    // Faults near the front are seen by most parsers.
    let near = if chance(random, 700) { 48 } else { usize::MAX };
    let at = random.random_range(0..=bytes.len().min(near));
    match random.random_range(0..7) {
        0 | 1 => bytes.truncate(at),
        2 | 3 => flip(random, bytes, at),
        4 => put(bytes, at, &[random.random()]),
        5 => put(bytes, at, &pick(random, [0_u16, 1, 7, 0x00ff, 0xffff]).to_be_bytes()),
        _ => bytes.extend(std::iter::repeat_n(0xcc, at)),
    }
}

fn flip(random: &mut Random, bytes: &mut [u8], at: usize) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.random_range(0..8);
    }
}

/// Half the time makes an IPv4 header's checksum right again, so that its other fields are looked at.
pub(super) fn mend_checksum(random: &mut Random, packet: &mut [u8]) {
    if packet.first().is_some_and(|first| first >> 4 == 4) && chance(random, 500) {
        renew_ipv4_checksum(packet);
    }
}

//! Random lookups of names, and answers from which nobody learns an address.

use super::random::{Random, chance, maybe, pick, pick_of};
use rules::Direction;

/// Of hosts that rules have, and others; one is too long, and one is the root's.
const NAMES: [&[&str]; 8] = [
    &["a", "example"],
    &["A", "Example"],
    &["x", "a", "EXAMPLE"],
    &["b", "example"],
    &["other", "example"],
    &["a.", "example"],
    &["_dns", "b", "example"],
    &[],
];
const LONG: &str = "a-label-of-sixty-three-octets-and-not-one-octet-more-than-these";

/// A message of either side.
pub(super) fn message(random: &mut Random, from: Direction) -> Vec<u8> {
    let is_answer = (from == Direction::Downlink) != chance(random, 30);
    let flags = if is_answer { pick(random, [0x8180_u16, 0x8180, 0x8183, 0x8400]) } else { 0x0100 };
    let flags = if chance(random, 30) { flags | 0x2800 } else { flags };
    let questions = if chance(random, 30) { pick(random, [0_u16, 2]) } else { 1 };
    let records = if is_answer { pick(random, [0_u16, 1, 2]) } else { 0 };
    let numbers = [pick(random, [7, 7, 8]), flags, questions, records, 0, 0];
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    bytes.extend(name(random));
    let class = if chance(random, 30) { 3 } else { 1 };
    bytes.extend([0, pick(random, [1, 28, 65, 16]), 0, class]);
    for _ in 0..records {
        // Another name, or a text.
        let (kind, data) = pick(random, [(5, &b"\x01b\x07example\0"[..]), (16, &b"\x04text"[..])]);
        bytes.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
        bytes.extend(data);
    }
    let length = maybe(random, 30, |random| pick(random, [0, 11, 12, 14, 20, 27])).unwrap_or(bytes.len());
    bytes.truncate(length);
    bytes
}

/// Mostly of labels, now and then with a pointer into the header, to octets that are 0, or to itself.
fn name(random: &mut Random) -> Vec<u8> {
    let mut labels = pick_of(random, &NAMES).copied().unwrap_or_default().to_vec();
    if chance(random, 30) {
        labels.resize(labels.len() + pick(random, [1, 3, 4]), LONG);
    }
    let mut name: Vec<u8> =
        labels.iter().flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    let end: &[u8] =
        if chance(random, 970) { &[0] } else { pick(random, [&[0xc0, 8], &[0xc0, 12], &[0x40]]) };
    name.extend(end);
    name
}

//! What users say over TLS: random ClientHellos, some of which no server would take, in records, and cut into pieces.

use super::content::{CUT, Pieces};
use super::random::{Random, chance, maybe, pick, pick_of};
use crate::bytes::put;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Of hosts that rules have, and others; the last are none.
const NAMES: [&str; 12] = [
    "a.example",
    "A.Example",
    "x.a.example",
    "y.X.A.EXAMPLE",
    "b.example",
    "B.example.",
    "b.example:443",
    "xa.example",
    "other.example",
    "another.example",
    "a b",
    "",
];
const GREASE: [u16; 3] = [0x0a0a, 0x4a4a, 0xfafa];
/// Most octets of a piece, and now and then of the beginning.
const PIECE_MAX: usize = 1_200;
const LONG_MAX: usize = 8_000;

/// The pieces of one stream, which follows from a number; `only_front`: which all begin with its beginning.
pub(super) fn pieces(random: &mut Random, number: u64, only_front: bool) -> Pieces {
    let fixed = &mut Random::seed_from_u64(number);
    let message = message(fixed);
    let mut stream = in_records(fixed, &message);
    if chance(fixed, 200) {
        // Of application data.
        stream.extend([23, 3, 3, 0, 20]);
        stream.extend([0xda; 20]);
    }
    let mut cuts: Vec<usize> =
        (0..fixed.random_range(0..3)).map(|_| fixed.random_range(0..stream.len())).collect();
    cuts.extend((0..stream.len()).step_by(PIECE_MAX));
    cuts.push(CUT.min(stream.len()));
    cuts.push(stream.len());
    cuts.sort_unstable();
    let front = of(&stream, (0, CUT));
    if chance(random, 30) {
        // What comes later for a place counts nothing.
        let at = random.random_range(1..stream.len());
        stream.get_mut(at).into_iter().for_each(|octet| *octet ^= 1 << random.random_range(0..8));
    }
    let (from, to) = part(random, &cuts);
    let (from, to) = if only_front { (0, to.min(PIECE_MAX)) } else { (from, to) };
    let whole = if chance(random, 900) { PIECE_MAX } else { LONG_MAX };
    Pieces { all: of(&stream, (0, whole)), front, later: (from as i32, of(&stream, (from, to))) }
}

fn of(stream: &[u8], (from, to): (usize, usize)) -> Vec<u8> {
    stream.get(from..to.min(stream.len())).unwrap_or_default().to_vec()
}

/// From one cut to the next, now and then from a little before, or not as far.
fn part(random: &mut Random, cuts: &[usize]) -> (usize, usize) {
    let place = random.random_range(0..cuts.len().saturating_sub(1).max(1));
    let at = |place: usize| cuts.get(place).copied().unwrap_or(0);
    let (from, to) = (at(place), at(place + 1));
    match random.random_range(0..12) {
        0 => (from.saturating_sub(random.random_range(0..30)), to),
        1 => (from, to.saturating_sub(random.random_range(0..30)).max(from)),
        _ => (from, to),
    }
}

/// A handshake message.
fn message(random: &mut Random) -> Vec<u8> {
    let mut extensions = extensions(random);
    extensions.shuffle(random);
    let session = vec![7; or_else(random, [0, 32], [33, 255])];
    let suites = vec![0x13; or_else(random, [2, 34], [0, 3])];
    let compressions = vec![0; or_else(random, [1, 1], [2, 0])];
    let mut body = vec![3, pick(random, [3, 3, 3, 1, 4])];
    body.extend([0xaa; 32]);
    body.extend(list(random, 1, &session));
    body.extend(list(random, 2, &suites));
    body.extend(list(random, 1, &compressions));
    if !extensions.is_empty() || chance(random, 500) {
        body.extend(list(random, 2, &extensions.concat()));
    }
    if chance(random, 20) {
        body.push(0);
    }
    if chance(random, 50) {
        let length = random.random_range(0..body.len());
        body.truncate(length);
    }
    let kind = if chance(random, 20) { 2 } else { 1 };
    [vec![kind], list(random, 3, &body)].concat()
}

fn extensions(random: &mut Random) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let count = or_else(random, [1, 1], [0, 2]);
    (0..count).for_each(|_| all.push(server_name(random)));
    for kind in GREASE.into_iter().chain([10, 35, 0x3344]) {
        let length = random.random_range(0..20);
        all.extend(maybe(random, 300, |random| extension(random, kind, &vec![0x55; length])));
    }
    all.extend(maybe(random, 600, protocols));
    all.extend(maybe(random, 600, versions));
    all.extend(maybe(random, 200, |random| extension(random, 0xfe0d, &[0xec; 60])));
    let share = pick(random, [36, 36, 36, 36, 36, 36, 1_220, 3_900, 5_000]);
    all.extend(maybe(random, 700, |random| extension(random, 51, &vec![0x33; share])));
    all
}

fn server_name(random: &mut Random) -> Vec<u8> {
    let mut names = Vec::new();
    for _ in 0..or_else(random, [1, 1], [0, 2]) {
        names.push(or_else(random, [0, 0], [1, 0]));
        let name = pick_of(random, &NAMES).copied().unwrap_or_default();
        names.extend(list(random, 2, name.as_bytes()));
    }
    let content = list(random, 2, &names);
    extension(random, 0, &content)
}

fn protocols(random: &mut Random) -> Vec<u8> {
    let of_http: &[&[u8]] = or_else(random, [&[b"h2", b"http/1.1"], &[b"http/1.1"]], [&[], &[b"", b"h2"]]);
    let names: Vec<Vec<u8>> = of_http.iter().map(|name| list(random, 1, name)).collect();
    let content = list(random, 2, &names.concat());
    extension(random, 16, &content)
}

fn versions(random: &mut Random) -> Vec<u8> {
    let all = [0x2a, 0x2a, 3, 4, 3, 3];
    let some = or_else(random, [6, 4], [5, 0]);
    let content = list(random, 1, all.get(..some).unwrap_or_default());
    extension(random, 43, &content)
}

/// One of what servers take, and seldom one of what is rare.
fn or_else<T: Copy>(random: &mut Random, usual: [T; 2], rare: [T; 2]) -> T {
    if chance(random, 960) { pick(random, usual) } else { pick(random, rare) }
}

fn extension(random: &mut Random, kind: u16, content: &[u8]) -> Vec<u8> {
    [kind.to_be_bytes().to_vec(), list(random, 2, content)].concat()
}

/// Octets behind their number, which is in so many octets, and now and then another one.
fn list(random: &mut Random, width: usize, content: &[u8]) -> Vec<u8> {
    let wrong = maybe(random, 5, |random| pick(random, [-1, 1, 2, 200, 0x1_0000])).unwrap_or(0);
    let length = (content.len() as u32).wrapping_add_signed(wrong).to_be_bytes();
    [length.get(4 - width..).unwrap_or_default(), content].concat()
}

/// Records that some servers pass over, and two that none does.
const NOTHING: [&[u8]; 5] = [
    &[22, 3, 1, 0, 0],
    &[20, 3, 3, 0, 0],
    &[21, 3, 1, 0, 2, 1, 90],
    &[21, 3, 1, 0, 2, 2, 40],
    &[23, 3, 3, 0, 0],
];

/// A message in records, one of which now and then is none, or says nothing.
fn in_records(random: &mut Random, message: &[u8]) -> Vec<u8> {
    let nearly_too_many = message.len().div_ceil(64);
    let most = pick(random, [usize::MAX, usize::MAX, usize::MAX, 1_000, 60, 20, nearly_too_many, 1]);
    let is_damaged = chance(random, 80);
    let mut stream = Vec::new();
    for part in message.chunks(most) {
        if chance(random, if stream.is_empty() { 150 } else { 20 }) {
            stream.extend(pick(random, NOTHING).repeat(pick(random, [1, 1, 5])));
        }
        let mut head = [22, 3, pick(random, [1, 1, 3, 0, 9]), 0, 0];
        let is_wrong = is_damaged && chance(random, 300);
        let [high, low] = (part.len() as u16).to_be_bytes();
        head[3..].copy_from_slice(&[high, low]);
        let (at, value) = pick(random, [(0, 21), (0, 23), (1, 2), (1, 16), (3, 0x40), (3, 0x41)]);
        if is_wrong {
            put(&mut head, at, &[value]);
        }
        stream.extend(head);
        stream.extend(part);
        if is_wrong && chance(random, 300) {
            stream.extend([22, 3, 3, 0, 0]);
        }
    }
    stream
}

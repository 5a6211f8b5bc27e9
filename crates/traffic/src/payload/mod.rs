//! What the first packets of flows carry, as real clients and servers of the kind write it.

pub(crate) mod dns;
pub(crate) mod http;
pub(crate) mod media;
pub(crate) mod quic;
pub(crate) mod tls;

use crate::random::mixed;

/// Appends what `content` writes, behind its length in two bytes. All contents here are far below 64 KiB.
fn counted16(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let place = out.len();
    out.extend([0; 2]);
    content(out);
    let length = (out.len() - place - 2) as u16;
    if let Some(field) = out.get_mut(place..place + 2) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends what `content` writes, behind its length in one byte. All contents here are far below 256 bytes.
fn counted8(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let place = out.len();
    out.push(0);
    content(out);
    let length = (out.len() - place - 1) as u8;
    if let Some(field) = out.get_mut(place) {
        *field = length;
    }
}

fn put16(out: &mut Vec<u8>, numbers: &[u16]) {
    out.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
}

/// Appends `length` bytes that look random, the same for the same `seed`.
pub(crate) fn put_random(out: &mut Vec<u8>, length: usize, seed: u64) {
    let end = out.len() + length;
    (0..length.div_ceil(8) as u64).for_each(|word| out.extend(mixed(seed.wrapping_add(word)).to_be_bytes()));
    out.truncate(end);
}

/// `text` as bytes of one DNS name (RFC 1035 3.1).
fn put_name(out: &mut Vec<u8>, text: &str) {
    for label in text.split('.') {
        counted8(out, |out| out.extend(label.as_bytes()));
    }
    out.push(0);
}

//! Lookups of names and their answers in datagrams of port 53 (RFC 1035 4.1), each by the name that it asks for, or was asked for; and
//! what connections to that port begin with, behind its length (4.2.2).
//!
//! * It is a standard query, or the answer to one, with one question for a name of the Internet. Nothing else of it is looked at, nor
//!   what stands behind the question, nor whether the checksum is right.
//! * Labels are of visible characters, and have no dots within, which would make two of one. At most 16 pointers (4.1.4), each to
//!   something before it, make up a name.

use super::content::{Layer, Said};
use super::request::Reading;
use crate::bytes::{u8_at, u16_at};
use std::ops::RangeInclusive;

/// What stands before the question.
const HEADER: usize = 12;
const LABEL_MAX: u8 = 63;
const POINTERS_MAX: usize = 16;
const NAME_MAX: usize = 253;
const INTERNET: u16 = 1;
/// A question for the root, and the longest that clients have over TCP.
const LENGTHS: RangeInclusive<usize> = HEADER + 5..=2_048;

/// What a message says; `None` of what is no lookup.
pub(super) fn read(message: &[u8]) -> Option<Said> {
    let (flags, questions) = (u16_at(message, 2)?, u16_at(message, 4)?);
    let is_standard = flags & 0x7800 == 0;
    let (name, behind) = name(message)?;
    // The type stands before it.
    let is_of_internet = u16_at(message, behind + 2)? == INTERNET;
    let said = Said { layer: Some(Layer::Dns), host: Some(name), ..Said::default() };
    (is_standard && questions == 1 && is_of_internet).then_some(said)
}

/// Whether a stream begins with a lookup. Of one that has not come whole, the flags and the number of questions may say that it is none.
pub(super) fn begins(stream: &[u8]) -> Reading {
    let Some(length) = u16_at(stream, 0).map(usize::from) else { return Reading::More };
    if !LENGTHS.contains(&length) {
        return Reading::Other;
    }
    let message = stream.get(2..).unwrap_or_default();
    let is_question = u8_at(message, 2).is_none_or(|flags| flags & 0xf8 == 0);
    let is_one =
        u8_at(message, 4).is_none_or(|high| high == 0) && u8_at(message, 5).is_none_or(|low| low == 1);
    match message.get(..length) {
        _ if !is_question || !is_one => Reading::Other,
        Some(whole) => read(whole).map_or(Reading::Other, Reading::Said),
        None => Reading::More,
    }
}

/// The name of the question in lower case, with dots between its labels, and the place behind it.
fn name(message: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut place, mut behind, mut pointers) = (Vec::new(), HEADER, None, 0);
    loop {
        match u8_at(message, place)? {
            0 => break,
            length @ 1..=LABEL_MAX => {
                let end = place + 1 + usize::from(length);
                labels.push(label(message.get(place + 1..end)?)?);
                place = end;
            }
            0xc0.. if pointers < POINTERS_MAX => {
                let to = usize::from(u16_at(message, place)? & 0x3fff);
                behind = behind.or(Some(place + 2));
                pointers += 1;
                place = if to < place { to } else { return None };
            }
            _ => return None,
        }
    }
    let name = labels.join(".");
    (name.len() <= NAME_MAX).then(|| (name, behind.unwrap_or(place + 1)))
}

fn label(octets: &[u8]) -> Option<String> {
    let is_right = octets.iter().all(|octet| octet.is_ascii_graphic() && *octet != b'.');
    is_right.then(|| String::from_utf8_lossy(octets).to_ascii_lowercase())
}

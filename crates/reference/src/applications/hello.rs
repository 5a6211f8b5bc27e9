//! ClientHellos of TLS (RFC 8446 4.1.2) at the beginning of what a user says, and the server's name in them (RFC 6066 3).
//!
//! * Records of handshakes carry it (RFC 8446 5.1), of any version below 16.x, with no more than 2^14 octets each. It is read once all
//!   of it is there, though its last record may not be, and what stands behind it says nothing.
//! * Before it and within it some servers pass records over: empty ones of handshakes and of changes of the cipher (OpenSSL), and
//!   alerts that are warnings (Go).
//! * What a server could not parse, which it has to refuse (RFC 8446 6.2, `decode_error`), says nothing: lists that are longer or
//!   shorter than what they stand in, or hold fewer or longer values than they may. Of extensions those of the server's name, of
//!   application protocols (RFC 7301 3.1) and of versions (RFC 8446 4.2.1) are looked into; all else is whatever it is.
//! * The extension of the server's name is there once, with one name of a host; names of other types are passed over. A port or a dot at
//!   its end is left out, as of requests.
//! * An Encrypted ClientHello is not looked into: the name beside it counts.
//! * Where no more will be looked at, what there is of one says what is in its extensions as far as they are whole, once these have begun.

use super::content::{Layer, Said};
use super::request::{self, Reading};
use crate::bytes::{octets, u8_at, u16_at};

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const VERSION_MAX: u8 = 15;
const WARNING: u8 = 1;
const CLIENT_HELLO: u8 = 1;

const RECORD_MAX: usize = 1 << 14;

const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
const PROTOCOLS: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;
/// draft-ietf-tls-esni, 11.1.
const ENCRYPTED: u16 = 0xfe0d;

/// Reads what there is; `is_last`: of no more. `None` of what does not begin like one.
pub(super) fn read(stream: &[u8], is_last: bool) -> Option<Reading> {
    if !is_begun(stream) {
        return None;
    }
    let Some(message) = message(stream) else { return Some(Reading::Other) };
    let is_whole = is_whole(&message);
    if !is_whole && !is_last {
        return Some(Reading::More);
    }
    Some(said(&message, is_whole).map_or(Reading::Other, Reading::Said))
}

/// Whether it is the beginning of records with the beginning of a ClientHello, as far as it is there.
fn is_begun(stream: &[u8]) -> bool {
    let mut rest = stream;
    while let Record::Part(&[], behind) = record(rest) {
        rest = behind;
    }
    match record(rest) {
        Record::Part(content, _) => content.starts_with(&[CLIENT_HELLO]),
        Record::Cut => {
            let kind =
                u8_at(rest, 0).is_none_or(|kind| [CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE].contains(&kind));
            !stream.is_empty() && kind && u8_at(rest, 1).is_none_or(|version| version <= VERSION_MAX)
        }
        Record::None => false,
    }
}

/// What octets begin with.
enum Record<'a> {
    /// One with this part of the message, as far as it is there, and what stands behind it.
    Part(&'a [u8], &'a [u8]),
    /// Perhaps one.
    Cut,
    None,
}

fn record(octets_left: &[u8]) -> Record<'_> {
    let Some([kind, version, _, high, low]) = octets(octets_left, 0) else { return Record::Cut };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let end = (5 + length).min(octets_left.len());
    let (content, behind) = octets_left.split_at(end);
    let content = content.get(5..).unwrap_or_default();
    match (kind, length, content.first()) {
        _ if version > VERSION_MAX => Record::None,
        (HANDSHAKE, ..=RECORD_MAX, _) => Record::Part(content, behind),
        (CHANGE_CIPHER_SPEC, 0, _) | (ALERT, 2, Some(&WARNING)) => Record::Part(&[], behind),
        (ALERT, 2, None) => Record::Cut,
        _ => Record::None,
    }
}

/// What the records hold up to the one that ends the message, as far as they are there; `None` where one of them is none.
fn message(stream: &[u8]) -> Option<Vec<u8>> {
    let (mut message, mut rest) = (Vec::new(), stream);
    while !is_whole(&message) {
        match record(rest) {
            Record::Part(content, behind) => {
                message.extend(content);
                rest = behind;
            }
            Record::Cut => break,
            Record::None => return None,
        }
    }
    Some(message)
}

/// How many octets a message has, its type and length included, where these are there.
fn length(message: &[u8]) -> Option<usize> {
    let [_, high, middle, low] = octets(message, 0)?;
    Some(4 + u32::from_be_bytes([0, high, middle, low]) as usize)
}

fn is_whole(message: &[u8]) -> bool {
    length(message).is_some_and(|length| length <= message.len())
}

fn said(message: &[u8], is_whole: bool) -> Option<Said> {
    let mut rest = message.get(4..length(message)?.min(message.len()))?;
    // Version and random.
    take(&mut rest, 2 + 32)?;
    let session = short_list(&mut rest)?;
    let suites = long_list(&mut rest)?;
    let compressions = short_list(&mut rest)?;
    let are_right = !suites.is_empty() && suites.len().is_multiple_of(2) && !compressions.is_empty();
    if session.len() > 32 || !are_right {
        return None;
    }
    let nothing = Said { layer: Some(Layer::Tls), ..Said::default() };
    // Before TLS 1.3 there may be no extensions (RFC 5246 7.4.1.2).
    if is_whole && rest.is_empty() {
        return Some(nothing);
    }
    let extensions = match is_whole {
        true => only(long_list(&mut rest), rest)?,
        false => {
            let length = usize::from(u16_at(rest, 0)?);
            rest.get(2..(2 + length).min(rest.len()))?
        }
    };
    with_extensions(nothing, extensions, is_whole)
}

fn with_extensions(mut said: Said, mut rest: &[u8], is_whole: bool) -> Option<Said> {
    while !rest.is_empty() {
        let kind = u16_at(rest, 0);
        let content = take(&mut rest, 2).and_then(|_| long_list(&mut rest));
        let (Some(kind), Some(content)) = (kind, content) else { return (!is_whole).then_some(said) };
        match kind {
            SERVER_NAME if said.host.is_some() => return None,
            SERVER_NAME => said.host = Some(server_name(content)?),
            PROTOCOLS if !are_protocols(content) => return None,
            SUPPORTED_VERSIONS if !are_versions(content) => return None,
            ENCRYPTED => said.is_encrypted = true,
            _ => {}
        }
    }
    Some(said)
}

fn server_name(mut content: &[u8]) -> Option<String> {
    let mut list = only(long_list(&mut content), content)?;
    let mut hosts = Vec::new();
    while !list.is_empty() {
        let kind = u8_at(take(&mut list, 1)?, 0)?;
        // Of whatever type, it stands behind its length (RFC 6066 3).
        let name = long_list(&mut list)?;
        if kind == HOST_NAME {
            hosts.push(request::name(std::str::from_utf8(name).ok()?)?);
        }
    }
    let [host] = hosts.as_slice() else { return None };
    Some(host.clone())
}

/// Some, and each has a name.
fn are_protocols(mut content: &[u8]) -> bool {
    let Some(mut list) = only(long_list(&mut content), content).filter(|list| !list.is_empty()) else {
        return false;
    };
    while !list.is_empty() {
        if short_list(&mut list).is_none_or(<[u8]>::is_empty) {
            return false;
        }
    }
    true
}

fn are_versions(mut content: &[u8]) -> bool {
    let list = only(short_list(&mut content), content);
    list.is_some_and(|list| !list.is_empty() && list.len().is_multiple_of(2))
}

/// The first octets of the rest, which is what is behind them from then on.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(taken)
}

/// What stands behind its length in one octet.
fn short_list<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u8_at(take(rest, 1)?, 0)?;
    take(rest, length.into())
}

/// What stands behind its length in two octets.
fn long_list<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u16_at(take(rest, 2)?, 0)?;
    take(rest, length.into())
}

/// A list behind which nothing stands.
fn only<'a>(list: Option<&'a [u8]>, behind: &[u8]) -> Option<&'a [u8]> {
    list.filter(|_| behind.is_empty())
}

#[cfg(test)]
mod tests;

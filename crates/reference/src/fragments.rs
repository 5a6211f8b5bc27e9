//! Splits IPv4 packets (RFC 791 3.2).

use crate::bytes::{put, u8_at, u16_at};
use crate::ip::{self, UserPacket};

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
/// The offset has 13 bits, in units of 8 octets.
const OFFSET: u16 = 0x1fff;

const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const COPIED: u8 = 0x80;

/// The fragments of a packet that is longer than `mtu` octets, as long as may be; `None` where it must not be split or
/// cannot: IPv6, the sender's wish, options that make no sense, offsets that would not fit.
pub(crate) fn split(packet: &UserPacket, mtu: usize) -> Option<Vec<UserPacket>> {
    let field = u16_at(&packet.bytes, 6)?;
    if packet.header.source.is_ipv6() || field & DONT_FRAGMENT != 0 {
        return None;
    }
    let (first, payload) = packet.bytes.split_at_checked(packet.header.length)?;
    let units = mtu.checked_sub(first.len())? / 8;
    let offset = usize::from(field & OFFSET);
    if units == 0 || offset + payload.len() / 8 > usize::from(OFFSET) {
        return None;
    }
    let later = later_header(first)?;
    let count = payload.len().div_ceil(8 * units);
    let fragment = |(number, part): (usize, &[u8])| {
        let header = if number == 0 { first } else { &later };
        let more = number + 1 < count || field & MORE_FRAGMENTS != 0;
        let place = (offset + number * units) as u16 | if more { MORE_FRAGMENTS } else { 0 };
        let mut bytes = [header, part].concat();
        let length = bytes.len() as u16;
        put(&mut bytes, 2, &length.to_be_bytes());
        put(&mut bytes, 6, &place.to_be_bytes());
        ip::renew_checksum_v4(&mut bytes, header.len());
        Some(UserPacket { header: ip::read_v4(&bytes).ok()?, bytes, ..packet.clone() })
    };
    payload.chunks(8 * units).enumerate().map(fragment).collect()
}

/// The fragments of a datagram of ours, as long as may be; which datagram they are of is left to tell. `None` where not even
/// eight octets fit.
pub(crate) fn split_own(mut datagram: UserPacket, mtu: usize) -> Option<Vec<Vec<u8>>> {
    if datagram.header.source.is_ipv6() {
        return split_v6(&datagram.bytes, mtu);
    }
    put(&mut datagram.bytes, 6, &[0, 0]);
    Some(split(&datagram, mtu)?.into_iter().map(|part| part.bytes).collect())
}

/// With a fragment header each (RFC 8200 4.5), behind the fixed header that the packet has alone.
fn split_v6(packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
    let (header, payload) = packet.split_at_checked(40)?;
    let room = mtu.checked_sub(48)? / 8 * 8;
    let upper = u8_at(header, 6)?;
    if room == 0 {
        return None;
    }
    let fragment = |(number, part): (usize, &[u8])| {
        let more = (number + 1) * room < payload.len();
        let place = (number * room) as u16 | u16::from(more);
        let [p0, p1] = place.to_be_bytes();
        let mut bytes = [header, &[upper, 0, p0, p1, 0, 0, 0, 0], part].concat();
        put(&mut bytes, 4, &(8 + part.len() as u16).to_be_bytes());
        put(&mut bytes, 6, &[44]);
        bytes
    };
    Some(payload.chunks(room).enumerate().map(fragment).collect())
}

/// The header of all fragments but the first: with those options alone whose highest bit says so (RFC 791 3.1).
fn later_header(first: &[u8]) -> Option<Vec<u8>> {
    let mut header = first.get(..20)?.to_vec();
    let mut at = 20;
    while at < first.len() {
        let (kind, length) = (u8_at(first, at)?, u8_at(first, at + 1));
        let length = match (kind, length) {
            (END_OF_OPTIONS, _) => break,
            (NO_OPERATION, _) => 1,
            (_, Some(length @ 2..)) => usize::from(length),
            _ => return None,
        };
        let option = first.get(at..at + length)?;
        if kind & COPIED != 0 {
            header.extend(option);
        }
        at += length;
    }
    header.resize(header.len().next_multiple_of(4), 0);
    let words = header.len() / 4;
    put(&mut header, 0, &[0x40 | words as u8]);
    Some(header)
}

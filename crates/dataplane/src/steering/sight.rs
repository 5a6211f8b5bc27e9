//! Whose packet a frame carries, at first sight: by the headers' shape alone, and right for whatever is sound. Who is led astray by
//! a packet that is not, or lies, finds that out where all packets are read, as its owner does.

use crate::shape::{self, differs, word};
use crate::state::{FIRST_GROUP, Receiver};
use packet::gtpu::{self, Message, message_type};
use packet::{ethernet, ipv4, ipv6, protocol, udp};
use rules::Direction;
use std::net::IpAddr;

/// What a frame seems to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// A packet of this user.
    User(User),
    /// Nothing that tells a user, or nothing for us: what is flooded to all stations is dropped where it comes in.
    Nobody,
    /// A part of something, or what is said of a tunnel: it may be any user's, and none of theirs is to overtake it.
    Unclear,
}

/// As a flow's key has it: an IPv4 address in the upper half, or the prefix of an IPv6 address; and whether it is of IPv6.
pub(crate) type User = (u64, bool);

/// Of a frame that came in at a port whose packets go up; `way` says which way those of a tunnel do.
#[inline(always)]
pub(crate) fn sight_up(frame: &[u8], port: &Receiver, way: impl Fn(u32) -> Direction) -> Sight {
    in_tunnel(frame, port, &way).map_or_else(|| look_closer(frame, port, way), Sight::User)
}

/// The same of a port whose packets go down.
#[inline(always)]
pub(crate) fn sight_down(frame: &[u8], port: &Receiver, way: impl Fn(u32) -> Direction) -> Sight {
    let seen = plain(frame, port).or_else(|| in_tunnel(frame, port, &way));
    seen.map_or_else(|| look_closer(frame, port, way), Sight::User)
}

/// The same of any port.
#[inline]
pub(crate) fn sight(frame: &[u8], port: &Receiver, way: impl Fn(u32) -> Direction) -> Sight {
    match port.fresh.direction() {
        Direction::Uplink => sight_up(frame, port, way),
        Direction::Downlink => sight_down(frame, port, way),
    }
}

/// To a user of IPv4, in no tunnel.
#[inline(always)]
fn plain(frame: &[u8], port: &Receiver) -> Option<User> {
    let header: &[u8; ethernet::LENGTH + ipv4::LENGTH] = frame.first_chunk()?;
    let to: [u8; 4] = *header[30..].first_chunk()?;
    let is_strange = port.strange(word(header, 0)) | differs(word(header, shape::ETHERTYPE), shape::IPV4);
    (is_strange == 0 && to != port.address && to[0] < FIRST_GROUP).then_some(user4(to))
}

const fn user4(address: [u8; 4]) -> User {
    ((u32::from_be_bytes(address) as u64) << 32, false)
}

/// Of a user of IPv4, in a tunnel over IPv4 with at most a container.
#[inline(always)]
fn in_tunnel(frame: &[u8], port: &Receiver, way: impl Fn(u32) -> Direction) -> Option<User> {
    let header: &[u8; shape::TUNNEL + shape::CONTAINER] = frame.first_chunk()?;
    let has_container = header[42] & shape::EXTENSION != 0;
    let is_strange = port.strange(word(header, 0))
        | differs(word(header, shape::ETHERTYPE), shape::SHORT)
        | differs(word(header, 20), shape::WHOLE)
        | differs(word(header, 34), shape::TO_PORT)
        | differs(word(header, 38), shape::G_PDU)
        | if has_container { differs(word(header, shape::TUNNEL), shape::ALONE) } else { 0 };
    let start = shape::TUNNEL + if has_container { shape::CONTAINER } else { 0 };
    let inner: &[u8; ipv4::LENGTH] = frame.get(start..)?.first_chunk()?;
    let teid = u32::from_be_bytes([header[46], header[47], header[48], header[49]]);
    let user = match way(teid) {
        Direction::Uplink => inner[12..].first_chunk()?,
        Direction::Downlink => inner[16..].first_chunk()?,
    };
    (is_strange == 0 && inner[0] >> 4 == 4).then_some(user4(*user))
}

/// Of any other shape.
#[cold]
#[inline(never)]
fn look_closer(frame: &[u8], port: &Receiver, way: impl Fn(u32) -> Direction) -> Sight {
    let front: Option<&[u8; 8]> = frame.first_chunk();
    let is_for_us = front.is_some_and(|front| port.strange(word(front, 0)) == 0);
    let Some(packet) = frame.get(ethernet::LENGTH..).filter(|_| is_for_us) else { return Sight::Nobody };
    let ((protocol, header), is_part, to) = match ethernet::Header::parse(frame)
        .map(ethernet::Header::ethertype)
    {
        Some(ethernet::IPV4) => match ipv4::Packet::parse(packet) {
            Ok(ip) => ((ip.protocol(), ip.header_length()), ip.is_fragment(), IpAddr::V4(ip.destination())),
            Err(_) => return Sight::Unclear,
        },
        Some(ethernet::IPV6) => match ipv6::Packet::parse(packet) {
            Ok(ip) => ((ip.next_header(), ipv6::LENGTH), ip.has_extensions(), IpAddr::V6(ip.destination())),
            Err(_) => return Sight::Unclear,
        },
        _ => return Sight::Nobody,
    };
    if port.fresh.direction() == Direction::Downlink && port.leads_on(to) {
        return user(packet, Direction::Downlink).map_or(Sight::Nobody, Sight::User);
    }
    match protocol {
        _ if is_part => Sight::Unclear,
        protocol::UDP => in_datagram(packet.get(header..).unwrap_or_default(), way),
        _ => Sight::Nobody,
    }
}

/// Of what a datagram carries.
fn in_datagram(datagram: &[u8], way: impl Fn(u32) -> Direction) -> Sight {
    if udp::Header::parse(datagram).is_none_or(|header| header.destination() != gtpu::PORT) {
        return Sight::Nobody;
    }
    let payload = datagram.get(udp::LENGTH..).unwrap_or_default();
    match Message::parse(payload) {
        Ok(message) if message.message_type == message_type::G_PDU => {
            let inner = payload.get(message.header_length..);
            inner.and_then(|inner| user(inner, way(message.teid))).map_or(Sight::Nobody, Sight::User)
        }
        _ => Sight::Unclear,
    }
}

/// Whose IP packet it is.
fn user(packet: &[u8], direction: Direction) -> Option<User> {
    let (v4, v6) = match direction {
        Direction::Uplink => (12, 8),
        Direction::Downlink => (16, 24),
    };
    match packet.first()? >> 4 {
        4 => packet.get(v4..)?.first_chunk().map(|address| user4(*address)),
        6 => packet.get(v6..)?.first_chunk().map(|prefix| (u64::from_be_bytes(*prefix), true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

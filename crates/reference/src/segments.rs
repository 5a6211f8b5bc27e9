//! How long the segments of TCP connections are that cross a tunnel (RFC 4459 3.2, RFC 9293 3.7.1).

use crate::bytes::{put, u8_at, u16_at};
use crate::ip::{TCP, UserPacket};
use crate::redirection::changed;
use crate::setup::{PortSetup, Setup};
use rules::Interface;

const SYN: u8 = 0x02;
/// Options: the end of all, none, and the longest segment.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const LONGEST: u8 = 2;

impl Setup {
    /// Lowers what a connection that begins says it takes to what surely passes all ports that want it so. It is looked for
    /// right behind IP's header; where that is none of TCP's, or none that can be read, nothing is changed.
    pub(crate) fn clamp(&self, bytes: &mut [u8], packet: &UserPacket) {
        let rooms = self.ports.iter().filter(|port| port.mss_clamp).map(room);
        let Some(room) = rooms.min() else { return };
        let (at, headers) = match packet.header.source.is_ipv6() {
            true => (40, 60),
            false => (packet.header.length, 40),
        };
        let protocol = u8_at(bytes, if at == 40 && headers == 60 { 6 } else { 9 });
        let is_later_part = headers == 40 && u16_at(bytes, 6).is_none_or(|place| place & 0x1fff != 0);
        if protocol != Some(TCP) || is_later_part {
            return;
        }
        if let Some((place, longest)) = announced(bytes.get(at..).unwrap_or_default()) {
            lower((bytes, at), (at + place, longest), room.saturating_sub(headers));
        }
    }
}

/// Where a SYN says what it takes, and how much that is.
fn announced(segment: &[u8]) -> Option<(usize, u16)> {
    let length = usize::from(u8_at(segment, 12)? >> 4) * 4;
    let is_whole = length >= 20 && length <= segment.len();
    if !is_whole || u8_at(segment, 13)? & SYN == 0 {
        return None;
    }
    let mut at = 20;
    while at < length {
        match u8_at(segment, at)? {
            END => return None,
            NO_OPERATION => at += 1,
            kind => {
                let taken = usize::from(u8_at(segment, at + 1).filter(|_| at + 1 < length)?);
                if taken < 2 || at + taken > length {
                    return None;
                }
                if kind == LONGEST {
                    return (taken == 4).then(|| u16_at(segment, at + 2).map(|longest| (at + 2, longest)))?;
                }
                at += taken;
            }
        }
    }
    None
}

/// The checksum is right afterwards if it was before.
fn lower((bytes, tcp): (&mut [u8], usize), (place, longest): (usize, u16), to: u16) {
    if longest <= to {
        return;
    }
    put(bytes, place, &to.to_be_bytes());
    let is_even = (place - tcp).is_multiple_of(2);
    let octets = |value: u16| if is_even { value.to_be_bytes() } else { value.to_le_bytes() };
    if let Some(before) = u16_at(bytes, tcp + 16) {
        let after = changed(before, &octets(longest), &octets(to));
        put(bytes, tcp + 16, &after.to_be_bytes());
    }
}

/// Octets of a user's packet that surely pass a port: on the radio side behind the longest headers of a tunnel there.
fn room(port: &PortSetup) -> u16 {
    let headers = match (port.interface, port.ipv6) {
        (Interface::Core | Interface::SgiLan, _) => 0,
        // UDP, GTP-U, and its extension header with what announces it.
        (Interface::Access, None) => 20 + 8 + 16,
        (Interface::Access, Some(_)) => 40 + 8 + 16,
    };
    port.mtu.saturating_sub(headers)
}

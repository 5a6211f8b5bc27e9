//! What ICMP errors quote, and other addresses for that (RFC 5508 4.2): of a packet that went, or came, with another address than
//! the one who hears of it knows.

use crate::bytes::{put, u8_at, u16_at};
use crate::ip::{self, ICMP, ICMPV6, TCP, UDP, UserPacket};
use crate::redirection::{Flow, changed};
use std::net::IpAddr;

/// A quoted packet.
#[derive(Clone, Debug)]
pub(crate) struct Quote {
    /// Where the error, the quoted packet and what that carries begin.
    error: usize,
    at: usize,
    upper: usize,
    pub(crate) source: (IpAddr, u16),
    pub(crate) destination: (IpAddr, u16),
    protocol: u8,
}

/// Whether a packet, or the fragment that begins it, is an error.
pub(crate) fn is_error(packet: &UserPacket) -> bool {
    let upper = packet.header.upper(&packet.bytes).filter(|upper| !upper.is_later_fragment());
    let kind = upper.and_then(|upper| u8_at(&packet.bytes, upper.at));
    match (packet.header.source, packet.protocol) {
        (IpAddr::V4(_), ICMP) => matches!(kind, Some(3 | 4 | 5 | 11 | 12)),
        (IpAddr::V6(_), ICMPV6) => matches!(kind, Some(..128)),
        _ => false,
    }
}

impl Quote {
    /// Of an error that is whole, and that quotes enough to tell the flow.
    pub(crate) fn of(packet: &UserPacket) -> Option<Self> {
        let outer = packet.header.upper(&packet.bytes)?;
        if !is_error(packet) || outer.is_fragment() || outer.is_bound {
            return None;
        }
        let at = outer.at + 8;
        let quoted = as_whole(packet.bytes.get(at..)?)?;
        let upper = quoted.header.upper(&quoted.bytes)?;
        let is_of_version = quoted.header.source.is_ipv4() == packet.header.source.is_ipv4();
        if !is_of_version || upper.is_later_fragment() || upper.is_bound {
            return None;
        }
        let (from, to) = quoted.ports.unwrap_or_default();
        Some(Self {
            error: outer.at,
            at,
            upper: at + upper.at,
            source: (quoted.header.source, from),
            destination: (quoted.header.destination, to),
            protocol: quoted.protocol,
        })
    }

    /// The flow of a packet from the user.
    pub(crate) fn flow_up(&self) -> Flow {
        Flow { user: self.source, remote: self.destination, protocol: self.protocol }
    }

    /// The flow of a packet to the user, who knows another address than this one.
    pub(crate) fn flow_down(&self, from: IpAddr) -> Flow {
        Flow { user: self.destination, remote: (from, self.source.1), protocol: self.protocol }
    }

    /// The error about a packet with another source or destination. All checksums are right afterwards if they were before.
    pub(crate) fn with_address(
        &self,
        packet: &UserPacket,
        address: IpAddr,
        is_source: bool,
    ) -> Option<UserPacket> {
        let mut bytes = packet.bytes.clone();
        let (place, new) = match address {
            IpAddr::V4(address) => (if is_source { 12 } else { 16 }, address.octets().to_vec()),
            IpAddr::V6(address) => (if is_source { 8 } else { 24 }, address.octets().to_vec()),
        };
        let old = bytes.get(self.at + place..self.at + place + new.len())?.to_vec();
        put(&mut bytes, self.at + place, &new);
        let mut changes = vec![(old.clone(), new.clone())];
        let header = address.is_ipv4().then_some(self.at + 10);
        let upper = match self.protocol {
            TCP => Some(self.upper + 16),
            UDP => Some(self.upper + 6),
            ICMPV6 => Some(self.upper + 2),
            _ => None,
        };
        for at in header.into_iter().chain(upper) {
            let is_udp = self.protocol == UDP && upper == Some(at);
            let Some(before) = u16_at(&bytes, at).filter(|before| *before != 0 || !is_udp) else { continue };
            let after = match changed(before, &old, &new) {
                0 if is_udp => 0xffff,
                after => after,
            };
            put(&mut bytes, at, &after.to_be_bytes());
            changes.push((before.to_be_bytes().to_vec(), after.to_be_bytes().to_vec()));
        }
        let of_error = u16_at(&bytes, self.error + 2)?;
        let of_error = changes.iter().fold(of_error, |sum, (old, new)| changed(sum, old, new));
        put(&mut bytes, self.error + 2, &of_error.to_be_bytes());
        Some(UserPacket { header: ip::read(&bytes)?, bytes, ..packet.clone() })
    }
}

/// A quoted packet as if what is quoted were all of it, and on its way here.
fn as_whole(quoted: &[u8]) -> Option<UserPacket> {
    let mut bytes = quoted.to_vec();
    let length = u16::try_from(bytes.len()).ok()?;
    if u8_at(&bytes, 0)? >> 4 == 4 {
        put(&mut bytes, 2, &length.to_be_bytes());
        let header = usize::from(u8_at(&bytes, 0)? & 0x0f) * 4;
        ip::renew_checksum_v4(&mut bytes, header);
    } else {
        put(&mut bytes, 4, &length.checked_sub(40)?.to_be_bytes());
    }
    UserPacket::read(&bytes)
}

//! How much would have passed, of an error about a packet that was too long (RFC 1191 4, RFC 8201 4).

use super::Quoted;
use crate::{checksum, icmp, icmpv6, ipv4, ipv6};

impl Quoted {
    /// Bytes of IP that would pass, as an error says that is as it was sent; `None` of errors that say nothing of it. Routers
    /// from before RFC 1191 say 0.
    pub fn fits(&self, packet: &[u8]) -> Option<u16> {
        let [kind, code, _, _, a, b, c, d] = *packet.get(self.error..)?.first_chunk()?;
        match self.flow.version {
            4 if icmp::is_too_long(kind, code) => {
                let ip = ipv4::Packet::parse(packet).ok()?;
                checksum::is_intact(ip.payload()).then(|| u16::from_be_bytes([c, d]))
            }
            6 if icmpv6::is_too_big(kind) => {
                let ip = ipv6::Packet::parse(packet).ok()?;
                let message = ip.payload().get(self.error.checked_sub(ipv6::LENGTH)?..)?;
                let fits = u32::from_be_bytes([a, b, c, d]);
                icmpv6::is_intact(&ip, message).then(|| u16::try_from(fits).unwrap_or(u16::MAX))
            }
            _ => None,
        }
    }
}

//! The headers in front of a user's packet (TS 29.281 4.4), written once for a tunnel and then only patched.
//!
//! Of these headers only the lengths and what is computed from them differ from packet to packet. A template keeps
//! the rest, and the ones' complement sum of the rest, so that a packet costs one copy and a few additions.

use super::header::{self, Head, Tail};
use super::{PORT, PduSession};
use crate::{Buffer, checksum, ipv4, ipv6, protocol, udp};
use std::net::{Ipv4Addr, Ipv6Addr};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Whether the UDP checksum over IPv6 is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpChecksum {
    /// Over the whole datagram, as RFC 8200 8.1 wants.
    Computed,
    /// 0: only where the peer and the path are known to take it (RFC 6935, RFC 6936, TS 29.281 4.4.2.0).
    Zero,
}

/// Between which addresses a tunnel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoints {
    /// Over IPv4; without a UDP checksum, which is allowed there.
    V4 {
        /// Ours.
        source: Ipv4Addr,
        /// The peer's.
        destination: Ipv4Addr,
    },
    /// Over IPv6.
    V6 {
        /// Ours.
        source: Ipv6Addr,
        /// The peer's.
        destination: Ipv6Addr,
        /// 20 bits; lets the path spread tunnels over links (RFC 6438).
        flow_label: u32,
        /// Whether to compute it.
        checksum: UdpChecksum,
    },
}

/// What tells the tunnels between two endpoints apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The peer's tunnel.
    pub teid: u32,
    /// QFI, reflective QoS, paging policy; 5G only.
    pub pdu_session: Option<PduSession>,
    /// Type of service or traffic class: DSCP and ECN.
    pub tos: u8,
}

/// What stands in front of every packet of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterHeader {
    /// Between which addresses.
    pub endpoints: Endpoints,
    /// Type of service or traffic class: DSCP and ECN (TS 29.244 8.2.12, transport level marking).
    pub tos: u8,
    /// Source port of UDP; any will do (TS 29.281 4.4.2.3), usually [`PORT`].
    pub source_port: u16,
    /// The peer's tunnel.
    pub teid: u32,
    /// QFI, reflective QoS, paging policy; 5G only.
    pub pdu_session: Option<PduSession>,
}

/// IPv4, UDP and GTP-U up to the TEID.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Front4 {
    ip: ipv4::Header,
    udp: udp::Header,
    gtpu: Head,
}

/// IPv6, UDP and GTP-U up to the TEID.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Front6 {
    ip: ipv6::Header,
    udp: udp::Header,
    gtpu: Head,
}

/// The template of a tunnel over IPv4.
#[derive(Clone, Copy, Debug)]
pub struct Template4 {
    /// Of the IPv4 header without its total length.
    sum: u16,
    tail_length: u8,
    front: Front4,
    tail: Tail,
}

/// The template of a tunnel over IPv6.
#[derive(Clone, Copy, Debug)]
pub struct Template6 {
    /// Of the pseudo header and the datagram without their lengths and without the payload.
    sum: u16,
    tail_length: u8,
    computed: bool,
    front: Front6,
    tail: Tail,
}

const _: () = assert!(size_of::<Template4>() == 52 && size_of::<Template6>() == 72, "a line; a little more");

/// The template of a tunnel over either.
#[derive(Clone, Copy, Debug)]
pub enum Template {
    /// Over IPv4.
    V4(Template4),
    /// Over IPv6.
    V6(Template6),
}

impl OuterHeader {
    /// The template for these values.
    pub fn template(&self) -> Template {
        match self.endpoints {
            Endpoints::V4 { source, destination } => {
                let mut ip = ipv4::Header::empty(source, destination, protocol::UDP);
                ip.tos = self.tos;
                Template::V4(Template4::new(self, ip))
            }
            Endpoints::V6 { source, destination, flow_label, checksum } => {
                let ip = ipv6::Header::empty(source, destination, protocol::UDP)
                    .with_traffic_class(self.tos)
                    .with_flow_label(flow_label);
                Template::V6(Template6::new(self, ip, checksum))
            }
        }
    }

    fn udp(&self) -> udp::Header {
        udp::Header::empty(self.source_port, PORT)
    }
}

impl Template {
    /// Bytes of all headers together.
    #[inline]
    pub fn length(&self) -> usize {
        match self {
            Self::V4(template) => template.length(),
            Self::V6(template) => template.length(),
        }
    }

    /// The same tunnel with another container, for tunnels that carry several QoS flows: one template for the tunnel,
    /// and the flow of each packet.
    #[inline]
    #[must_use]
    pub fn with_pdu_session(self, pdu_session: Option<PduSession>) -> Self {
        match self {
            Self::V4(template) => Self::V4(template.with_pdu_session(pdu_session)),
            Self::V6(template) => Self::V6(template.with_pdu_session(pdu_session)),
        }
    }

    /// Puts the headers in front of the packet in `buffer`; `None` where there is no room or the result would be
    /// too long for its length fields. The packet is then as before, or has undefined bytes at its front: drop it.
    #[inline]
    pub fn encapsulate<B: Buffer>(&self, buffer: &mut B) -> Option<()> {
        match self {
            Self::V4(template) => template.encapsulate(buffer),
            Self::V6(template) => template.encapsulate(buffer),
        }
    }
}

impl Template {
    /// As [`Template::encapsulate`], into another tunnel between the same endpoints; only of a template whose `tos`
    /// was 0.
    #[inline]
    pub fn encapsulate_into<B: Buffer>(&self, buffer: &mut B, tunnel: Tunnel) -> Option<()> {
        match self {
            Self::V4(template) => template.encapsulate_into(buffer, tunnel),
            Self::V6(template) => template.with_tunnel(tunnel).encapsulate(buffer),
        }
    }

    /// This template for another tunnel between the same endpoints; only of one whose `tos` was 0.
    #[inline]
    #[must_use]
    pub fn with_tunnel(&self, tunnel: Tunnel) -> Self {
        match self {
            Self::V4(template) => Self::V4(template.with_tunnel(tunnel)),
            Self::V6(template) => Self::V6(template.with_tunnel(tunnel)),
        }
    }
}

impl Template4 {
    /// As [`Template::encapsulate_into`]: the headers are patched where they will stand, in the packet.
    #[inline]
    pub fn encapsulate_into<B: Buffer>(&self, buffer: &mut B, tunnel: Tunnel) -> Option<()> {
        const FRONT: usize = size_of::<Front4>();
        let payload = buffer.data().len();
        let (head, tail, tail_length) = header::g_pdu(tunnel.teid, tunnel.pdu_session);
        let length = FRONT + usize::from(tail_length);
        let total = u16::try_from(length + payload).ok()?;
        let bytes = buffer.prepend(length)?;
        let front = Front4::mut_from_bytes(bytes.get_mut(..FRONT)?).ok()?;
        *front = self.front;
        let udp = total - ipv4::LENGTH as u16;
        front.ip.tos = tunnel.tos;
        front.ip.total_length.set(total);
        // The type of service is the low octet of the header's first word.
        front.ip.checksum.set(!checksum::add(checksum::add(self.sum, u16::from(tunnel.tos)), total));
        front.udp.length.set(udp);
        front.gtpu = head;
        front.gtpu.length.set(udp - (udp::LENGTH + header::MANDATORY) as u16);
        tail.write(bytes.get_mut(FRONT..)?, tail_length)
    }

    /// As [`Template::with_tunnel`].
    #[inline]
    #[must_use]
    pub fn with_tunnel(&self, tunnel: Tunnel) -> Self {
        let (gtpu, tail, tail_length) = header::g_pdu(tunnel.teid, tunnel.pdu_session);
        let mut front = self.front;
        front.ip.tos = tunnel.tos;
        front.gtpu = gtpu;
        // It is the low octet of the header's first word.
        let sum = checksum::add(self.sum, u16::from(tunnel.tos));
        Self { sum, tail_length, front, tail }
    }

    fn new(outer: &OuterHeader, ip: ipv4::Header) -> Self {
        let (gtpu, tail, tail_length) = header::g_pdu(outer.teid, outer.pdu_session);
        let sum = checksum::sum(ip.as_bytes());
        Self { sum, tail_length, front: Front4 { ip, udp: outer.udp(), gtpu }, tail }
    }

    /// Like [`Template::with_pdu_session`].
    #[inline]
    #[must_use]
    pub fn with_pdu_session(mut self, pdu_session: Option<PduSession>) -> Self {
        // No checksum covers these.
        (self.front.gtpu, self.tail, self.tail_length) = header::g_pdu(self.front.gtpu.teid(), pdu_session);
        self
    }

    /// Bytes of all headers together.
    #[inline]
    pub const fn length(&self) -> usize {
        size_of::<Front4>() + self.tail_length as usize
    }

    /// Like [`Template::encapsulate`].
    #[inline]
    pub fn encapsulate<B: Buffer>(&self, buffer: &mut B) -> Option<()> {
        let payload = buffer.data().len();
        self.write(buffer.prepend(self.length())?, payload)
    }

    /// Writes the headers for `payload` bytes to the front of `bytes`; `None` where those are too short or these
    /// too many.
    #[inline]
    pub fn write(&self, bytes: &mut [u8], payload: usize) -> Option<()> {
        let total = u16::try_from(self.length() + payload).ok()?;
        let mut front = self.front;
        let udp = total - ipv4::LENGTH as u16;
        front.ip.total_length.set(total);
        front.ip.checksum.set(!checksum::add(self.sum, total));
        front.udp.length.set(udp);
        front.gtpu.length.set(udp - (udp::LENGTH + header::MANDATORY) as u16);
        front.write_to_prefix(bytes).ok()?;
        self.tail.write(bytes.get_mut(size_of::<Front4>()..)?, self.tail_length)
    }
}

impl Template6 {
    /// As [`Template::with_tunnel`].
    #[inline]
    #[must_use]
    pub fn with_tunnel(&self, tunnel: Tunnel) -> Self {
        let (gtpu, tail, tail_length) = header::g_pdu(tunnel.teid, tunnel.pdu_session);
        let ip = self.front.ip.with_traffic_class(tunnel.tos);
        Self {
            sum: header_sum(&ip, &self.front.udp, &gtpu, &tail),
            tail_length,
            front: Front6 { ip, gtpu, ..self.front },
            tail,
            ..*self
        }
    }

    fn new(outer: &OuterHeader, ip: ipv6::Header, checksum: UdpChecksum) -> Self {
        let (gtpu, tail, tail_length) = header::g_pdu(outer.teid, outer.pdu_session);
        let udp = outer.udp();
        let sum = header_sum(&ip, &udp, &gtpu, &tail);
        let computed = checksum == UdpChecksum::Computed;
        Self { sum, tail_length, computed, front: Front6 { ip, udp, gtpu }, tail }
    }

    /// Like [`Template::with_pdu_session`].
    #[inline]
    #[must_use]
    pub fn with_pdu_session(mut self, pdu_session: Option<PduSession>) -> Self {
        let before = sum_of_message(&self.front.gtpu, &self.tail);
        (self.front.gtpu, self.tail, self.tail_length) = header::g_pdu(self.front.gtpu.teid(), pdu_session);
        let after = sum_of_message(&self.front.gtpu, &self.tail);
        self.sum = checksum::add(checksum::add(self.sum, !before), after);
        self
    }

    /// Bytes of all headers together.
    #[inline]
    pub const fn length(&self) -> usize {
        size_of::<Front6>() + self.tail_length as usize
    }

    /// Like [`Template::encapsulate`].
    #[inline]
    pub fn encapsulate<B: Buffer>(&self, buffer: &mut B) -> Option<()> {
        self.write(buffer.prepend(self.length())?)
    }

    /// Writes the headers to the front of `packet`, which has room for them before its payload; `None` where it has
    /// not, or is too long. Reads the payload only where the checksum is computed.
    #[inline]
    pub fn write(&self, packet: &mut [u8]) -> Option<()> {
        let (headers, payload) = packet.split_at_mut_checked(self.length())?;
        let udp = u16::try_from(headers.len() - ipv6::LENGTH + payload.len()).ok()?;
        let mut front = self.front;
        let gtpu = udp - (udp::LENGTH + header::MANDATORY) as u16;
        front.ip.payload_length.set(udp);
        front.udp.length.set(udp);
        front.gtpu.length.set(gtpu);
        if self.computed {
            // The length stands in the pseudo header and in the UDP header.
            let lengths = checksum::add(checksum::add(udp, udp), gtpu);
            let sum = checksum::add(checksum::add(self.sum, lengths), checksum::sum(payload));
            front.udp.checksum.set(checksum::of_sum_not_zero(sum));
        }
        front.write_to_prefix(headers).ok()?;
        self.tail.write(headers.get_mut(size_of::<Front6>()..)?, self.tail_length)
    }
}

/// Of the pseudo header and the datagram's headers, without their lengths.
#[inline]
fn header_sum(ip: &ipv6::Header, udp: &udp::Header, gtpu: &Head, tail: &Tail) -> u16 {
    let (source, destination) = ip.addresses();
    let pseudo = checksum::add(checksum::sum(source), checksum::sum(destination));
    let headers = checksum::add(checksum::sum(udp.as_bytes()), sum_of_message(gtpu, tail));
    checksum::add(checksum::add(pseudo, u16::from(protocol::UDP)), headers)
}

/// Sum of the GTP-U header without its length. What a tail does not use is 0.
#[inline]
fn sum_of_message(gtpu: &Head, tail: &Tail) -> u16 {
    checksum::add(checksum::sum(gtpu.as_bytes()), checksum::sum(tail.as_bytes()))
}

#[cfg(test)]
mod tests;

//! The headers in front of a user's packet (TS 29.281 4.4), written once for a tunnel and then only patched.
//!
//! Of these headers only the lengths and what is computed from them differ from packet to packet. A template keeps
//! the rest, and the ones' complement sum of the rest, so that a packet costs one copy and a few additions.

use super::header::{GPdu, MANDATORY, length_with, write_g_pdu_with};
use super::{PORT, PduSession, Relayed};
use crate::{Buffer, checksum, ipv4, ipv6, protocol, udp};
use std::net::{Ipv4Addr, Ipv6Addr};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What of a datagram the GTP-U header does not count.
const BEFORE_GTPU_LENGTH: u16 = (udp::LENGTH + MANDATORY) as u16;

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

/// IPv4 and UDP.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Front4 {
    ip: ipv4::Header,
    udp: udp::Header,
}

impl Front4 {
    /// Fills in what differs from packet to packet; `sum` is that of the rest.
    #[inline(always)]
    pub(super) fn patch(&mut self, sum: u16, tos: u8, total: u16) {
        self.ip.tos = tos;
        self.ip.total_length.set(total);
        self.ip.checksum.set(!checksum::add3(sum, u16::from(tos), total));
        self.udp.length.set(total - ipv4::LENGTH as u16);
    }
}

/// IPv6 and UDP.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Front6 {
    ip: ipv6::Header,
    udp: udp::Header,
}

/// The template of a tunnel over IPv4.
#[derive(Clone, Copy, Debug)]
pub struct Template4 {
    /// Of the IPv4 header without its total length.
    sum: u16,
    front: Front4,
    gtpu: GPdu,
}

/// The template of a tunnel over IPv6.
#[derive(Clone, Copy, Debug)]
pub struct Template6 {
    /// Of the pseudo header and the UDP header without their lengths.
    sum: u16,
    computed: bool,
    front: Front6,
    gtpu: GPdu,
}

const _: () = assert!(size_of::<Template4>() == 48 && size_of::<Template6>() == 68, "a line; a little more");

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

    /// Puts the headers in front of the packet in `buffer`; `None` where there is no room or the result would be
    /// too long for its length fields. The packet is then as before, or has undefined bytes at its front: drop it.
    #[inline]
    pub fn encapsulate<B: Buffer>(&self, buffer: &mut B) -> Option<()> {
        match self {
            Self::V4(template) => template.encapsulate(buffer),
            Self::V6(template) => template.encapsulate(buffer),
        }
    }

    /// Like [`Self::encapsulate`] with another container, for tunnels that carry several QoS flows: one template for
    /// the tunnel, and the flow of each packet.
    #[inline]
    pub fn encapsulate_with<B: Buffer>(&self, buffer: &mut B, pdu_session: Option<PduSession>) -> Option<()> {
        match self {
            Self::V4(template) => template.encapsulate_with(buffer, pdu_session),
            Self::V6(template) => template.encapsulate_with(buffer, pdu_session),
        }
    }

    /// Like [`Self::encapsulate`] into another tunnel between the same endpoints; only of a template whose `tos` is 0.
    #[inline(always)]
    pub fn encapsulate_into<B: Buffer>(&self, buffer: &mut B, tunnel: Tunnel) -> Option<()> {
        match self {
            Self::V4(template) => template.encapsulate_into(buffer, tunnel),
            Self::V6(template) => template.encapsulate_into(buffer, tunnel),
        }
    }

    /// Like [`Self::encapsulate_into`], with the extension headers that the packet came with.
    #[cold]
    pub fn relay_into<B: Buffer>(&self, buffer: &mut B, tunnel: Tunnel, relayed: &Relayed<'_>) -> Option<()> {
        let container = tunnel.pdu_session.map(PduSession::content);
        let container = container.as_ref().and_then(|(content, length)| content.get(..*length));
        let all = relayed.behind(container);
        let (extensions, payload) = (all.as_slice(), buffer.data().len());
        let (gtpu, front) = (length_with(extensions), self.length_of_front());
        let bytes = buffer.prepend(front + gtpu)?;
        write_g_pdu_with(bytes.get_mut(front..)?, tunnel.teid, extensions, payload)?;
        match self {
            Self::V4(template) => {
                template.put_in_front(bytes.get_mut(..front)?, (gtpu + payload, tunnel.tos))
            }
            Self::V6(template) => template.put_in_front(buffer.data_mut(), tunnel.tos),
        }
    }

    const fn length_of_front(&self) -> usize {
        match self {
            Self::V4(_) => size_of::<Front4>(),
            Self::V6(_) => size_of::<Front6>(),
        }
    }
}

impl Template4 {
    fn new(outer: &OuterHeader, ip: ipv4::Header) -> Self {
        let front = Front4 { ip, udp: outer.udp() };
        Self { sum: checksum::sum(ip.as_bytes()), front, gtpu: GPdu::new(outer.teid, outer.pdu_session) }
    }

    /// The sum of the IPv4 header without its length, and what stands before GTP-U.
    pub(super) const fn front(&self) -> (u16, Front4) {
        (self.sum, self.front)
    }

    /// Bytes of all headers together.
    #[inline]
    pub const fn length(&self) -> usize {
        size_of::<Front4>() + self.gtpu.length()
    }

    /// Like [`Template::encapsulate`].
    #[inline]
    pub fn encapsulate<B: Buffer>(&self, buffer: &mut B) -> Option<()> {
        let payload = buffer.data().len();
        self.write(buffer.prepend(self.length())?, payload)
    }

    /// Like [`Template::encapsulate_with`].
    #[inline]
    pub fn encapsulate_with<B: Buffer>(&self, buffer: &mut B, pdu_session: Option<PduSession>) -> Option<()> {
        let (gtpu, payload) = (self.gtpu.with(pdu_session), buffer.data().len());
        let bytes = buffer.prepend(size_of::<Front4>() + gtpu.length())?;
        self.write_before(bytes, &gtpu, payload)
    }

    /// Like [`Template::encapsulate_into`].
    #[inline(always)]
    pub fn encapsulate_into<B: Buffer>(&self, buffer: &mut B, tunnel: Tunnel) -> Option<()> {
        let (gtpu, payload) = (GPdu::new(tunnel.teid, tunnel.pdu_session), buffer.data().len());
        let bytes = buffer.prepend(size_of::<Front4>() + gtpu.length())?;
        self.write_marked(bytes, &gtpu, (payload, tunnel.tos))
    }

    /// Writes the headers for `payload` bytes to the front of `bytes`; `None` where those are too short or these
    /// too many.
    #[inline]
    pub fn write(&self, bytes: &mut [u8], payload: usize) -> Option<()> {
        self.write_before(bytes, &self.gtpu, payload)
    }

    #[inline]
    fn write_before(&self, bytes: &mut [u8], gtpu: &GPdu, payload: usize) -> Option<()> {
        self.write_marked(bytes, gtpu, (payload, 0))
    }

    /// Copies what is always the same in one go, then patches: a header put together elsewhere from small pieces and
    /// copied in large ones would wait for the pieces.
    #[inline(always)]
    fn write_marked(&self, bytes: &mut [u8], gtpu: &GPdu, (payload, tos): (usize, u8)) -> Option<()> {
        let total = u16::try_from(size_of::<Front4>() + gtpu.length() + payload).ok()?;
        let (front, rest) = bytes.split_first_chunk_mut::<{ size_of::<Front4>() }>()?;
        self.put(front, (total, tos));
        gtpu.write(rest, total - ipv4::LENGTH as u16 - BEFORE_GTPU_LENGTH)
    }

    #[inline(always)]
    fn put(&self, front: &mut [u8; size_of::<Front4>()], (total, tos): (u16, u8)) {
        *front = zerocopy::transmute!(self.front);
        let front: &mut Front4 = zerocopy::transmute_mut!(front);
        // The type of service is the low octet of the header's first word, and in the sum already where it is not 0.
        front.patch(self.sum, tos, total);
        front.ip.tos |= self.front.ip.tos;
    }

    /// Before so many bytes of GTP-U.
    fn put_in_front(&self, front: &mut [u8], (gtpu, tos): (usize, u8)) -> Option<()> {
        let total = u16::try_from(size_of::<Front4>() + gtpu).ok()?;
        self.put(front.first_chunk_mut()?, (total, tos));
        Some(())
    }
}

impl Template6 {
    fn new(outer: &OuterHeader, ip: ipv6::Header, checksum: UdpChecksum) -> Self {
        let udp = outer.udp();
        let (source, destination) = ip.addresses();
        let addresses = checksum::add(checksum::sum(source), checksum::sum(destination));
        let pseudo = checksum::add(addresses, u16::from(protocol::UDP));
        let sum = checksum::add(pseudo, checksum::sum(udp.as_bytes()));
        let computed = checksum == UdpChecksum::Computed;
        Self { sum, computed, front: Front6 { ip, udp }, gtpu: GPdu::new(outer.teid, outer.pdu_session) }
    }

    /// Bytes of all headers together.
    #[inline]
    pub const fn length(&self) -> usize {
        size_of::<Front6>() + self.gtpu.length()
    }

    /// Like [`Template::encapsulate`].
    #[inline]
    pub fn encapsulate<B: Buffer>(&self, buffer: &mut B) -> Option<()> {
        self.write(buffer.prepend(self.length())?)
    }

    /// Like [`Template::encapsulate_with`].
    #[inline]
    pub fn encapsulate_with<B: Buffer>(&self, buffer: &mut B, pdu_session: Option<PduSession>) -> Option<()> {
        let gtpu = self.gtpu.with(pdu_session);
        self.write_before(buffer.prepend(size_of::<Front6>() + gtpu.length())?, &gtpu)
    }

    /// Like [`Template::encapsulate_into`].
    #[inline]
    pub fn encapsulate_into<B: Buffer>(&self, buffer: &mut B, tunnel: Tunnel) -> Option<()> {
        let gtpu = GPdu::new(tunnel.teid, tunnel.pdu_session);
        // No checksum covers the traffic class.
        let mut marked = *self;
        marked.front.ip = self.front.ip.with_traffic_class(tunnel.tos);
        marked.write_before(buffer.prepend(size_of::<Front6>() + gtpu.length())?, &gtpu)
    }

    /// Writes the headers to the front of `packet`, which has room for them before its payload; `None` where it has
    /// not, or is too long. Reads the payload only where the checksum is computed.
    #[inline]
    pub fn write(&self, packet: &mut [u8]) -> Option<()> {
        self.write_before(packet, &self.gtpu)
    }

    #[inline]
    fn write_before(&self, packet: &mut [u8], gtpu: &GPdu) -> Option<()> {
        let (headers, payload) = packet.split_at_mut_checked(size_of::<Front6>() + gtpu.length())?;
        let udp = u16::try_from(headers.len() - ipv6::LENGTH + payload.len()).ok()?;
        let after_head = udp - BEFORE_GTPU_LENGTH;
        let mut front = self.front;
        front.ip.payload_length.set(udp);
        front.udp.length.set(udp);
        if self.computed {
            // The length stands in the pseudo header and in the UDP header.
            let lengths = checksum::add(checksum::add(udp, udp), after_head);
            let headers = checksum::add(checksum::add(self.sum, lengths), gtpu.sum());
            front.udp.checksum.set(checksum::of_sum_not_zero(checksum::add(headers, checksum::sum(payload))));
        }
        front.write_to_prefix(headers).ok()?;
        gtpu.write(headers.get_mut(size_of::<Front6>()..)?, after_head)
    }

    /// Before the GTP-U that stands in `packet` behind the room for what it puts there.
    fn put_in_front(&self, packet: &mut [u8], tos: u8) -> Option<()> {
        let (place, gtpu) = packet.split_at_mut_checked(size_of::<Front6>())?;
        let udp = u16::try_from(udp::LENGTH + gtpu.len()).ok()?;
        let mut front = self.front;
        front.ip = front.ip.with_traffic_class(tos);
        front.ip.payload_length.set(udp);
        front.udp.length.set(udp);
        if self.computed {
            // The length stands in the pseudo header and in the UDP header.
            let headers = checksum::add(self.sum, checksum::add(udp, udp));
            front.udp.checksum.set(checksum::of_sum_not_zero(checksum::add(headers, checksum::sum(gtpu))));
        }
        front.write_to_prefix(place).ok()
    }
}

#[cfg(test)]
mod tests;

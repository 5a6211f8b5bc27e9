//! What the packets of one flow say, as far as its server takes them for the user's words.
//!
//! * Of TCP (RFC 9293): neither segments with a wrong checksum, nor those that acknowledge nothing, or what the server has not
//!   said, nor those with timestamps from before the one that it echoes (RFC 7323 5.3). What a SYN carries is said once the server's SYN
//!   acknowledges it; a later SYN with another number begins anew once the server acknowledges that. What its segments are
//!   together, `stream.rs` says. Where the beginning was not seen, what is said first is the beginning.
//! * Of UDP: no datagram of the user's with a wrong checksum. Of RTP two packets tell, one soon behind the other, or two of RTCP.
//! * A stream begins with a request (`request.rs`), a ClientHello (`hello.rs`), or on port 53 with a lookup (`lookup.rs`).
//! * What is like nothing that is known ends it, but for datagrams of port 443, and those of QUIC whose client says later what it wants
//!   (RFC 8999, RFC 9000 6); and so does the server's end of the connection. 64 segments with something in them are looked at, 16 datagrams,
//!   and 4 KiB of a stream: what stands beyond is passed over.

use super::content::{Layer, Said};
use super::hello;
use super::lookup;
use super::request::{self, Reading};
use super::stream::Stream;
use crate::bytes::{checksum, u8_at, u16_at, u32_at};
use crate::detection::Arrival;
use crate::ip::{TCP, UDP, UserPacket, pseudo_header};
use crate::portal::Segment;
use rules::Direction;
use std::net::IpAddr;

const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const ACK: u8 = 0x10;

const SEGMENTS_MAX: u32 = 64;
const DATAGRAMS_MAX: u32 = 16;
pub(super) const OCTETS_MAX: usize = 4_096;
/// Port of lookups.
pub(super) const DNS: u16 = 53;
const QUIC: u16 = 443;
/// Packets of RTP that may be lost between two of one stream.
const LOST_MAX: u16 = 100;

/// What is known of a flow's words so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Inspection {
    /// Packets with something in them.
    packets: u32,
    /// Number of the first octet of the user's.
    first: Option<u32>,
    /// The same of the last SYN that said another one.
    again: Option<u32>,
    /// Of the server's: the number behind its SYN, and the first that was not seen.
    server: Option<(u32, u32)>,
    echoed: Option<u32>,
    /// There is nothing but what came with the SYN.
    is_early: bool,
    stream: Stream,
    /// Source and type of RTP packets, and their numbers.
    media: Vec<((u32, u8), u16)>,
    /// Sources of RTCP packets.
    controls: Vec<u32>,
}

/// What a packet tells of its flow: `None`, that later ones may; nothing said, that none will.
pub(super) type Told = Option<Said>;

impl Inspection {
    /// Looks at the next packet of either direction.
    pub(super) fn look(&mut self, arrival: &Arrival, server_port: u16) -> Told {
        let is_up = arrival.source.direction() == Direction::Uplink;
        let packet = &arrival.packet;
        if packet.protocol == UDP {
            return if !is_up || is_sealed(packet) { self.hear_datagram(packet, server_port) } else { None };
        }
        let segment = Segment::read(packet)?;
        match is_up {
            true => self.hear_user(&segment, is_sealed(packet), server_port),
            false => self.hear_server(&segment, server_port),
        }
    }

    fn hear_user(&mut self, segment: &Segment, is_sealed: bool, server_port: u16) -> Told {
        if !is_sealed {
            return None;
        }
        let has = |flag| segment.flags & flag != 0;
        if has(SYN) && !has(ACK) {
            self.hear_syn(segment);
        }
        let is_fresh = match (segment.stamps, self.echoed) {
            (Some((value, _)), Some(echoed)) => !is_before(value, echoed),
            _ => true,
        };
        // Nothing from before its SYN, and nothing that it has not said.
        let is_acceptable = self.server.is_none_or(|(first, next)| {
            segment.acknowledgement.wrapping_sub(first) <= next.wrapping_sub(first)
        });
        let is_taken = has(ACK) && !has(SYN) && !has(RST) && is_fresh && is_acceptable;
        if segment.payload.is_empty() && segment.urgent.is_none() || !is_taken {
            return None;
        }
        if std::mem::take(&mut self.is_early) {
            // Nobody has seen the server take it. Which octets are urgent another segment said.
            self.stream.shorten(0);
        }
        let first = *self.first.get_or_insert(segment.sequence);
        let ahead = segment.sequence.wrapping_sub(first).cast_signed();
        if let Some(pointer) = segment.urgent {
            // The octet before the one it points at.
            self.stream.take_out(ahead.wrapping_add(i32::from(pointer.max(1)) - 1));
        }
        if segment.payload.is_empty() {
            return None;
        }
        self.packets += 1;
        let is_last = self.packets >= SEGMENTS_MAX;
        if i64::from(ahead) + segment.payload.len() as i64 <= 0 {
            // All of it is from before the beginning.
            return is_last.then(Said::default);
        }
        self.stream.put(ahead, &segment.payload);
        self.read(server_port, is_last || self.stream.read().len() == OCTETS_MAX)
    }

    /// Packets that had something in them.
    pub(super) const fn packets(&self) -> u32 {
        self.packets
    }

    /// What has come is all that is looked at.
    pub(super) fn conclude(&self, server_port: u16) -> Said {
        let is_stream = !self.is_early && !self.stream.read().is_empty();
        is_stream.then(|| self.read(server_port, true)).flatten().unwrap_or_default()
    }

    /// What the SYN carries is kept, if it is the first.
    fn hear_syn(&mut self, segment: &Segment) {
        let begin = segment.sequence.wrapping_add(1);
        if *self.first.get_or_insert(begin) != begin {
            self.again = Some(begin);
        } else if !segment.payload.is_empty() && self.stream.is_empty() {
            self.packets += 1;
            self.stream.put(0, &segment.payload);
            self.is_early = true;
        }
    }

    fn hear_server(&mut self, segment: &Segment, server_port: u16) -> Told {
        let has = |flag| segment.flags & flag != 0;
        let accepts = has(SYN) && has(ACK);
        if accepts && self.again == Some(segment.acknowledgement) {
            *self = Self { first: self.again, ..Self::default() };
        }
        let end = segment.sequence.wrapping_add(segment.length());
        match &mut self.server {
            Some((_, next)) if is_before(*next, end) => *next = end,
            None if has(SYN) => self.server = Some((end, end)),
            _ => {}
        }
        if let Some((_, echo)) = segment.stamps.filter(|_| has(ACK)) {
            self.echoed = self.echoed.filter(|before| !is_before(*before, echo)).or(Some(echo));
        }
        if has(RST) || has(FIN) {
            return Some(Said::default());
        }
        let first = self.first.filter(|_| accepts && self.is_early)?;
        let taken = segment.acknowledgement.wrapping_sub(first) as usize;
        if taken > self.stream.read().len() {
            return None;
        }
        self.is_early = false;
        self.stream.shorten(taken);
        if taken == 0 { None } else { self.read(server_port, false) }
    }

    /// Whether a server that acknowledges this with its SYN has taken one of the user's, with some, all or nothing of what that carried.
    pub(super) fn is_answer(&self, acknowledgement: u32) -> bool {
        let is_of_first =
            |first: u32| acknowledgement.wrapping_sub(first) as usize <= self.stream.read().len();
        self.first.is_some_and(is_of_first) || self.again == Some(acknowledgement)
    }

    fn read(&self, server_port: u16, is_last: bool) -> Told {
        let prefix = self.stream.read();
        let request = || request::read(prefix, is_last && !prefix.is_empty());
        match hello::read(prefix, is_last).unwrap_or_else(request) {
            Reading::Other if server_port == DNS => lookup::begins(prefix),
            reading => reading,
        }
        .told(is_last)
    }

    fn hear_datagram(&mut self, packet: &UserPacket, server_port: u16) -> Told {
        self.packets += 1;
        let nothing = (self.packets >= DATAGRAMS_MAX).then(Said::default);
        let payload = datagram(packet).unwrap_or_default();
        if let Some(source) = rtcp(&payload) {
            if self.controls.iter().rev().take(2).any(|before| *before == source) {
                return Some(Said { layer: Some(Layer::Rtp), ..Said::default() });
            }
            self.controls.push(source);
            return nothing;
        }
        let Some((stream, number)) = rtp(&payload) else {
            return if server_port == QUIC || is_of_quic(&payload) { nothing } else { Some(Said::default()) };
        };
        let follows = |(other, before): &&((u32, u8), u16)| {
            *other == stream && (1..=LOST_MAX).contains(&number.wrapping_sub(*before))
        };
        // Of the last two: each direction has a source of its own.
        if self.media.iter().rev().take(2).any(|before| follows(&before)) {
            return Some(Said { layer: Some(Layer::Rtp), ..Said::default() });
        }
        self.media.push((stream, number));
        nothing
    }
}

/// Of numbers less than half the space apart.
const fn is_before(one: u32, other: u32) -> bool {
    other.wrapping_sub(one).cast_signed() > 0
}

/// The payload, as long as its header says, or all there is where that is impossible.
pub(super) fn datagram(packet: &UserPacket) -> Option<Vec<u8>> {
    let upper = upper_of(packet)?;
    let length = usize::from(u16_at(&upper, 4)?);
    let end = if (8..=upper.len()).contains(&length) { length } else { upper.len() };
    upper.get(8..end).map(<[u8]>::to_vec)
}

/// Whether it is of a QUIC whose client says later what it wants: with the long header of a version of ours; of another, if it is as long
/// as a client's first has to be (RFC 9000 6.1, 14.1); or a server's list of versions (RFC 8999 6). None of these can be read here.
fn is_of_quic(payload: &[u8]) -> bool {
    let id_at = |at: usize| u8_at(payload, at).map(usize::from).filter(|length| *length <= 20);
    let behind_ids = id_at(5).and_then(|one| id_at(6 + one).map(|other| 7 + one + other));
    let (Some(first), Some(version), Some(begin)) = (u8_at(payload, 0), u32_at(payload, 1), behind_ids)
    else {
        return false;
    };
    let Some(rest) = payload.get(begin..) else { return false };
    match version {
        0 => first & 0x80 != 0 && !rest.is_empty() && rest.len().is_multiple_of(4),
        1 | 0x6b33_43cf => first & 0xc0 == 0xc0,
        _ => first & 0xc0 == 0xc0 && payload.len() >= 1_200,
    }
}

/// The source of RTCP (RFC 3550 6.4.1), of which the first packet is in the datagram whole.
fn rtcp(payload: &[u8]) -> Option<u32> {
    let (first, kind, length) = (u8_at(payload, 0)?, u8_at(payload, 1)?, usize::from(u16_at(payload, 2)?));
    let is_rtcp = first >> 6 == 2 && (200..=207).contains(&kind);
    (is_rtcp && length >= 1 && 4 * (length + 1) <= payload.len()).then_some(u32_at(payload, 4)?)
}

/// Source and type, and number (RFC 3550 5.1); 72 to 79 are types of RTCP (RFC 5761 4).
fn rtp(payload: &[u8]) -> Option<((u32, u8), u16)> {
    let (first, kind) = (u8_at(payload, 0)?, u8_at(payload, 1)? & 0x7f);
    let is_whole = payload.len() >= 12 + 4 * usize::from(first & 0x0f);
    let is_rtp = first >> 6 == 2 && !(72..=79).contains(&kind) && is_whole;
    is_rtp.then_some(((u32_at(payload, 8)?, kind), u16_at(payload, 2)?))
}

fn upper_of(packet: &UserPacket) -> Option<Vec<u8>> {
    let upper = packet.header.upper(&packet.bytes)?;
    packet.bytes.get(upper.at..).map(<[u8]>::to_vec)
}

/// Whether the checksum of TCP or UDP is right; that of UDP may be missing over IPv4 (RFC 768), and not over IPv6 (RFC 8200 8.1).
pub(super) fn is_sealed(packet: &UserPacket) -> bool {
    let Some(mut upper) = upper_of(packet) else { return false };
    if packet.protocol == UDP {
        let length = usize::from(u16_at(&upper, 4).unwrap_or(0));
        if length < 8 || length > upper.len() {
            return false;
        }
        upper.truncate(length);
        if u16_at(&upper, 6) == Some(0) {
            return packet.header.source.is_ipv4();
        }
    }
    let ends = (packet.header.source, packet.header.destination);
    checksum(&[&pseudo(ends, packet.protocol, upper.len()), &upper]) == 0
}

/// What the checksum begins with (RFC 9293 3.1, RFC 8200 8.1).
pub(crate) fn pseudo(ends: (IpAddr, IpAddr), protocol: u8, length: usize) -> Vec<u8> {
    match ends {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let [high, low] = (length as u16).to_be_bytes();
            [&source.octets()[..], &destination.octets(), &[0, protocol, high, low]].concat()
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => pseudo_header(source, destination, protocol, length),
        _ => Vec::new(),
    }
}

/// The segment that a packet begins, if it is of TCP, and shows it.
pub(super) fn segment(packet: &UserPacket) -> Option<Segment> {
    let is_later = packet.part.is_some_and(|(_, is_later)| is_later);
    if packet.protocol == TCP && !is_later { Segment::read(packet) } else { None }
}

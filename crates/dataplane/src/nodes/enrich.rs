//! Puts a field into requests of HTTP/1.x (TS 29.244 8.2.67), and keeps the numbers of their connections right on both
//! sides from then on (RFC 9293 3.4, RFC 2018 3).
//!
//! A request gets it where that is sure to be right: its first line is whole in one segment, which begins where a request must
//! begin, nothing behind it has gone before, the checksum is right, there is room on its way, and the rules have been asked for
//! this one. All others pass as they are, and are counted.
//!
//! ICMP errors about such a connection have the numbers of whom they are for ([`errors`]).

mod errors;

use crate::content::Detected;
use crate::counters::DropReason;
use crate::frame::{Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Connection, State, Treatment, Upcoming, begins_with_method, request_line};
use dpi::extract::later_request;
use packet::tcp::{Segment, change, flag, is_sealed, seal};
use packet::{Buffer, FiveTuple, ipv4, ipv6, protocol};
use rules::Direction;
use std::sync::Arc;

pub(crate) struct Enrich;

/// A segment in its packet.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Bytes in front of TCP's header, and of that.
    upper: usize,
    header: usize,
    /// Bytes it carries.
    payload: usize,
    sequence: u32,
    /// The number of the first byte it carries: a SYN has one of its own in front.
    first: u32,
    /// The first number behind it.
    end: u32,
    acknowledgement: u32,
    flags: u8,
    /// A fragment, the first.
    is_fragment: bool,
}

impl<B: Buffer> Node<B> for Enrich {
    const ID: NodeId = NodeId::Enrich;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let done = match (see(packet.buffer.data()), packet.meta.direction()) {
            (Some(seen), Direction::Uplink) => from_user(state, packet, &seen),
            (Some(seen), Direction::Downlink) => to_user(state, packet, &seen),
            (None, _) => {
                errors::renumber(state, packet);
                Some(())
            }
        };
        if done.is_none() {
            // As it is, it would not fit what the other end has; its sender sends it again.
            return Next::drop(DropReason::NotEnriched);
        }
        let step = state.sessions.cells.step(packet.meta.step);
        Next::To(super::far::onward(step, packet.meta.waits.is_some()))
    }
}

/// `None` for what shows no header of TCP.
fn see(packet: &[u8]) -> Option<Seen> {
    let found = FiveTuple::parse(packet).ok()?;
    if found.tuple.protocol != protocol::TCP || found.tuple.fragment {
        return None;
    }
    let segment = Segment::parse(packet.get(found.upper..found.total)?).ok()?;
    Some(Seen {
        upper: found.upper,
        header: segment.header_length(),
        payload: segment.payload().len(),
        sequence: segment.sequence(),
        first: segment.sequence().wrapping_add(u32::from(segment.has(flag::SYN))),
        end: segment.sequence().wrapping_add(segment.sequence_length()),
        acknowledgement: segment.acknowledgement(),
        flags: segment.flags(),
        is_fragment: is_fragment(packet),
    })
}

fn is_fragment(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => ipv4::Packet::parse(packet).is_ok_and(|ip| ip.is_fragment()),
        _ => ipv6::Packet::parse(packet).is_ok_and(|ip| ip.upper().is_ok_and(|upper| upper.is_fragment())),
    }
}

/// `None` where the packet must not go as it is.
fn from_user<B: Buffer>(state: &mut State, packet: &mut Packet<B>, seen: &Seen) -> Option<()> {
    let Meta { key, hash, step, .. } = packet.meta;
    if seen.flags & (flag::SYN | flag::ACK) == flag::SYN {
        state.connections.begin((&key, hash), seen.first, state.now_ns);
        if seen.payload > 0
            && let Some(connection) = state.connections.get((&key, hash))
        {
            // Nothing is put into what a SYN carries (RFC 7413): a server may take it or not.
            follow(connection, packet, seen);
            connection.pass(seen.end);
        }
        return Some(());
    }
    let text = match state.extra(step).and_then(|extra| extra.treatment.as_ref()) {
        Some(Treatment::Enrich(text)) => Some(Arc::clone(text)),
        _ => None,
    };
    let fits = usize::from(state.sessions.cells.step(step).fits);
    let is_judged = text.is_some() && is_judged(state, packet, seen);
    let may_keep = state.connections.may_keep(&key);
    let now_ns = state.now_ns;
    let Some(connection) = state.connections.get((&key, hash)) else {
        let is_passed = text.is_some() && request_line(payload(packet, seen)).is_some();
        state.content.count_request(is_passed.then_some(false));
        return Some(());
    };
    connection.hear_user(seen.flags, seen.acknowledgement, now_ns);
    let fits = fits.min(connection.passes.into());
    // Its first line may go on in the next segment, or nobody knows any more where requests begin.
    let is_begun = text.is_some()
        && connection.is_next(seen.sequence)
        && connection.upcoming.may_be_request(seen.sequence)
        && begins_with_method(payload(packet, seen));
    let text = text.filter(|_| is_judged);
    let is_put = text.and_then(|text| open((connection, may_keep), packet, seen, (&text, fits)));
    follow(connection, packet, seen);
    connection.pass(seen.end);
    let shifted = connection.to_server(seen.sequence);
    let insertion = connection.covers(seen.sequence, seen.payload);
    if is_put == Some(true) {
        state.connections.keep((&key, hash));
    }
    state.content.count_request(is_put.or(is_begun.then_some(false)));
    if let Some((offset, text)) = insertion {
        (!seen.is_fragment).then_some(())?;
        packet.meta.bytes = put(&mut packet.buffer, seen, (offset, &text), fits)?;
    }
    if shifted != seen.sequence {
        change(packet.buffer.data_mut().get_mut(seen.upper..)?, SEQUENCE, shifted)?;
    }
    Some(())
}

/// Whether a request in this segment goes by a rule for itself. Where rules tell requests apart, one whose host stands further on goes by
/// what was known before it, and the field may not be for whom it asks.
fn is_judged<B: Buffer>(state: &State, packet: &Packet<B>, seen: &Seen) -> bool {
    let meta = &packet.meta;
    let session = state.sessions.get(state.sessions.cells.session(meta.step));
    let asks = state.content.is_loaded() && session.is_some_and(|session| session.looks.application);
    let detected = state.flows.detected(meta.flow());
    let is_told_apart = asks && (detected == Detected::NOT_YET || detected.looks_again());
    !is_told_apart || later_request(payload(packet, seen)).is_some()
}

/// Places of numbers in a header of TCP.
const SEQUENCE: usize = 4;
const ACKNOWLEDGEMENT: usize = 8;
/// The kind of the option of selective acknowledgement (RFC 2018 3).
const SACK: u8 = 5;

fn payload<'a, B: Buffer>(packet: &'a Packet<B>, seen: &Seen) -> &'a [u8] {
    let from = seen.upper + seen.header;
    packet.buffer.data().get(from..from + seen.payload).unwrap_or_default()
}

/// Keeps track of where requests begin. What is damaged comes again as it was meant.
fn follow<B: Buffer>(connection: &mut Connection, packet: &Packet<B>, seen: &Seen) {
    let is_in = connection.upcoming.is_in(seen.first, seen.payload) && !seen.is_fragment;
    if is_in && is_sealed(packet.buffer.data(), seen.upper) {
        connection.upcoming.follow(seen.first, payload(packet, seen));
    }
}

/// Opens an insertion where this is a request and nothing is in the way. `None` where it is no request, or not where one
/// begins; `Some(false)` where something is in the way.
fn open<B: Buffer>(
    (connection, may_keep): (&mut Connection, bool),
    packet: &Packet<B>,
    seen: &Seen,
    (text, fits): (&Arc<[u8]>, usize),
) -> Option<bool> {
    if connection.upcoming != Upcoming::Request(seen.sequence) {
        return None;
    }
    let line = request_line(payload(packet, seen))?;
    let length = seen.upper + seen.header + seen.payload;
    let is_possible = (may_keep || connection.is_kept())
        && connection.is_next(seen.sequence)
        && length + connection.text_or(text).len() <= fits
        && is_sealed(packet.buffer.data(), seen.upper);
    Some(is_possible && connection.insert(seen.sequence.wrapping_add(line), text))
}

/// Puts the text in front of an octet of the payload. Where there is no room for all, the segment ends earlier, in front
/// of the text at the earliest: its sender sends the rest again. Returns the bytes of the packet, which is counted as it
/// leaves.
fn put<B: Buffer>(buffer: &mut B, seen: &Seen, (offset, text): (usize, &[u8]), fits: usize) -> Option<u16> {
    let before = seen.upper + seen.header + offset;
    let whole = seen.upper + seen.header + seen.payload;
    if !is_sealed(buffer.data(), seen.upper) {
        // What is damaged stays so.
        return u16::try_from(whole).ok();
    }
    let room = fits.checked_sub(text.len())?;
    // What stands in front of the text goes alone where not even one octet behind it has room.
    let text = if room <= before && offset > 0 { &[] } else { text };
    let left = if text.is_empty() { before } else { whole.min(room.max(before + 1)) };
    buffer.truncate(left)?;
    let packet = buffer.append(text.len())?;
    packet.copy_within(before..left, before + text.len());
    packet.get_mut(before..before + text.len())?.copy_from_slice(text);
    let flags = packet.get_mut(seen.upper + 13)?;
    if left < whole {
        *flags &= !(flag::FIN | flag::PSH);
    }
    lengthen(packet, left + text.len())?;
    seal(packet, seen.upper)?;
    u16::try_from(left + text.len()).ok()
}

/// Says how long the packet is.
fn lengthen(packet: &mut [u8], total: usize) -> Option<()> {
    match packet.first()? >> 4 {
        4 => ipv4::set_total_length(packet, u16::try_from(total).ok()?),
        _ => ipv6::set_payload_length(packet, u16::try_from(total - ipv6::LENGTH).ok()?),
    }
}

/// What the server acknowledges is told the user by its own numbers.
fn to_user<B: Buffer>(state: &mut State, packet: &mut Packet<B>, seen: &Seen) -> Option<()> {
    let Meta { key, hash, .. } = packet.meta;
    let now_ns = state.now_ns;
    let Some(connection) = state.connections.get((&key, hash)) else { return Some(()) };
    connection.hear_server(seen.flags, (seen.sequence, seen.end), now_ns);
    if !connection.is_shifted() || seen.flags & flag::ACK == 0 {
        return Some(());
    }
    let segment = packet.buffer.data_mut().get_mut(seen.upper..)?;
    change(segment, ACKNOWLEDGEMENT, connection.to_user(seen.acknowledgement))?;
    let mut edges = arrayvec::ArrayVec::<(usize, u32), 8>::new();
    for option in Segment::parse(segment).ok()?.options().filter(|option| option.kind == SACK) {
        let numbers = option.content.chunks_exact(4).filter_map(<[u8]>::first_chunk);
        let places = (packet::tcp::LENGTH + option.at + 2..).step_by(4);
        for (place, number) in places.zip(numbers) {
            let _ = edges.try_push((place, connection.to_user(u32::from_be_bytes(*number))));
        }
    }
    if connection.acknowledge(seen.acknowledgement) {
        state.connections.write_down((&key, hash));
    }
    edges.into_iter().try_for_each(|(place, number)| change(segment, place, number))
}

//! Path and tunnel management messages: answers echo requests, notes answers to ours and Error Indications, passes End
//! Markers on (TS 29.281 7.2 and 7.3).

use super::answer::{Way, ends, replace_by_gtpu, write_end_marker};
use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Key, State};
use dplink::Event;
use packet::gtpu::{
    ECHO_MAX, Message, TunnelError, message_type, read_recovery_time_stamp, write_echo_response,
};
use packet::{Buffer, udp};
use rules::{Interface, Teid};

pub(crate) struct GtpuPath;

impl<B: Buffer> Node<B> for GtpuPath {
    const ID: NodeId = NodeId::GtpuPath;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let datagram = packet.buffer.data().get(usize::from(packet.meta.header_length)..).unwrap_or_default();
        let payload = datagram.get(udp::LENGTH..).unwrap_or_default();
        let Ok(message) = Message::parse(payload) else { return Next::drop(DropReason::GtpuTruncated) };
        match message.message_type {
            message_type::ECHO_REQUEST => answer_echo(state, packet, &message),
            message_type::ERROR_INDICATION => note_error(state, packet, &message),
            message_type::ECHO_RESPONSE => note_answer(state, packet, &message),
            message_type::END_MARKER => {
                packet.meta.teid = message.teid;
                end_marker(state, packet)
            }
            _ => Next::drop(DropReason::GtpuUnknownType),
        }
    }
}

/// Behind an End Marker nothing more comes through its tunnel. Where that leads into another tunnel, whose other end waits for
/// the last packet, too, it goes there, behind the packets that came before it: a gateway between others, or one that
/// forwards indirectly during a handover (TS 23.401 5.5.1.1.3, TS 29.281 7.3.2). What the PDR of highest precedence says of
/// the tunnel's packets is said of their end. It ends here where packets leave the tunnels, are kept or dropped.
pub(super) fn end_marker<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Next {
    let key = state.ports.tunnel_key(&packet.meta);
    let Some(session) = state.sessions.by_tunnel(key) else {
        let owner = state.steering.elsewhere(Key::Tunnel(key), packet.meta.handed);
        return Next::End(owner.map_or(Fate::Consumed, Fate::HandOff));
    };
    let Some(found) = state.sessions.get(session) else {
        return super::session::gone(state, session);
    };
    let cells = &state.sessions.cells;
    let mut steps = found.steps().map(|at| cells.step(at));
    let step = steps.find(|step| step.arrives_in == packet.meta.teid);
    let Some(step) = step.filter(|step| step.forwards() && step.tunnels_gtpu()) else {
        return Next::End(Fate::Consumed);
    };
    let Some(way) = state.sessions.peers.way(step.peer) else { return Next::drop(DropReason::NoRoute) };
    packet.meta.next_hop = way.next_hop;
    match packet
        .buffer
        .truncate(0)
        .and_then(|()| write_end_marker(&mut packet.buffer, way.ends, Teid(step.teid)))
    {
        Some(()) => Next::To(NodeId::EthernetOutput),
        None => Next::drop(DropReason::NoHeadroom),
    }
}

/// What a message says of when its sender began.
fn stamp<B: Buffer>(packet: &Packet<B>, message: &Message) -> Option<u32> {
    let payload = packet.buffer.data().get(usize::from(packet.meta.header_length) + udp::LENGTH..)?;
    read_recovery_time_stamp(message, payload)
}

/// The answer goes back to the port the request came from (TS 29.281 4.4.2.2).
fn answer_echo<B: Buffer>(state: &mut State, packet: &mut Packet<B>, request: &Message) -> Next {
    let bytes = packet.buffer.data();
    let datagram = bytes.get(usize::from(packet.meta.header_length)..).unwrap_or_default();
    let began = stamp(packet, request);
    let asked_from = udp::Header::parse(datagram).map(udp::Header::source);
    let (Some((asker, us)), Some(port), Some(sequence)) = (ends(bytes), asked_from, request.sequence) else {
        return Next::drop(DropReason::GtpuIncomplete);
    };
    began.into_iter().for_each(|stamp| state.began((packet.meta.side(), asker), stamp));
    let mut answer = [0; ECHO_MAX];
    let written = write_echo_response(&mut answer, sequence, state.recovery_time_stamp)
        .and_then(|length| answer.get(..length))
        .and_then(|answer| {
            let way = Way { source: us, destination: asker, port };
            replace_by_gtpu(&mut packet.buffer, way, answer)
        });
    match written {
        Some(()) => Next::To(NodeId::IpOutput),
        None => Next::drop(DropReason::NoHeadroom),
    }
}

/// A peer is there if it answers from the address that was asked, to the number that was asked. The restart counter of its
/// answer says nothing (TS 29.281 8.2).
fn note_answer<B: Buffer>(state: &mut State, packet: &Packet<B>, message: &Message) -> Next {
    if let (Some((peer, _)), Some(sequence)) = (ends(packet.buffer.data()), message.sequence) {
        state.answered((packet.meta.side(), peer), (sequence, stamp(packet, message)));
    }
    Next::End(Fate::Consumed)
}

/// Whoever releases a tunnel by it takes a user off, and it says itself whose the tunnel is. So it is heard from where packets to
/// that peer go, and of tunnels that lead there: a host of the data network is no base station. Of tunnels between sessions of this
/// node nobody says anything but the node itself.
fn note_error<B: Buffer>(state: &mut State, packet: &Packet<B>, message: &Message) -> Next {
    let (meta, bytes) = (&packet.meta, packet.buffer.data());
    let payload = bytes.get(usize::from(meta.header_length) + udp::LENGTH..).unwrap_or_default();
    let Some(indication) = TunnelError::read(message, payload) else {
        return Next::drop(DropReason::GtpuIncomplete);
    };
    let (teid, peer) = (Teid(indication.teid), indication.address);
    let sides = [&[Interface::Access][..], &[Interface::Core, Interface::SgiLan]];
    let is_own = meta.loops > 0 && state.ports.is_ours(peer);
    let towards = match sides.map(|kinds| is_own || state.reaches(peer, kinds, meta.port)) {
        [true, true] => None,
        [true, false] => Some(Interface::Access),
        [false, true] => Some(Interface::Core),
        [false, false] => return Next::End(Fate::Consumed),
    };
    if let (Some(stamp), Some((sender, _))) = (indication.recovery_time_stamp, ends(bytes)) {
        state.began((meta.side(), sender), stamp);
    }
    state.note(Event::ErrorIndication { teid, peer, towards });
    Next::End(Fate::Consumed)
}

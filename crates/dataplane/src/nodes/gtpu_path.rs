//! Path and tunnel management messages: answers echo requests, notes answers to ours and Error Indications (TS 29.281 7.2
//! and 7.3).

use super::answer::{Way, ends, replace_by_gtpu};
use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use dplink::Event;
use packet::gtpu::{Message, TunnelError, message_type, write_echo_response};
use packet::{Buffer, udp};
use rules::Teid;

/// The longest answer of ours.
const ANSWER_MAX: usize = 32;

pub(crate) struct GtpuPath;

impl<B: Buffer> Node<B> for GtpuPath {
    const ID: NodeId = NodeId::GtpuPath;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let datagram = packet.buffer.data().get(usize::from(packet.meta.header_length)..).unwrap_or_default();
        let payload = datagram.get(udp::LENGTH..).unwrap_or_default();
        let Ok(message) = Message::parse(payload) else { return Next::drop(DropReason::GtpuTruncated) };
        match message.message_type {
            message_type::ECHO_REQUEST => answer_echo(packet, &message),
            message_type::ERROR_INDICATION => note_error(state, &message, payload),
            message_type::ECHO_RESPONSE => note_answer(state, packet, &message),
            message_type::END_MARKER => Next::End(Fate::Consumed),
            _ => Next::drop(DropReason::GtpuUnknownType),
        }
    }
}

/// The answer goes back to the port the request came from (TS 29.281 4.4.2.2).
fn answer_echo<B: Buffer>(packet: &mut Packet<B>, request: &Message) -> Next {
    let bytes = packet.buffer.data();
    let datagram = bytes.get(usize::from(packet.meta.header_length)..).unwrap_or_default();
    let asked_from = udp::Header::parse(datagram).map(udp::Header::source);
    let (Some((asker, us)), Some(port), Some(sequence)) = (ends(bytes), asked_from, request.sequence) else {
        return Next::drop(DropReason::GtpuIncomplete);
    };
    let mut answer = [0; ANSWER_MAX];
    let written = write_echo_response(&mut answer, sequence)
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

/// A peer is there if it answers from the address that was asked, to the number that was asked; what else its answer
/// holds, its restart counter among it, says nothing (TS 29.281 7.2.2).
fn note_answer<B: Buffer>(state: &mut State, packet: &Packet<B>, message: &Message) -> Next {
    if let (Some((peer, _)), Some(sequence)) = (ends(packet.buffer.data()), message.sequence) {
        state.answered((packet.meta.side(), peer), sequence);
    }
    Next::End(Fate::Consumed)
}

fn note_error(state: &mut State, message: &Message, payload: &[u8]) -> Next {
    let Some(indication) = TunnelError::read(message, payload) else {
        return Next::drop(DropReason::GtpuIncomplete);
    };
    state.note(Event::ErrorIndication { teid: Teid(indication.teid), peer: indication.address });
    Next::End(Fate::Consumed)
}

//! Looks closely at packets that may be too long for their way: those that fit after all go on, those that may be split
//! are, and the senders of the others are told what would pass (RFC 1191, RFC 8201).

use super::far;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Kind, State};
use packet::Buffer;
use packet::fragment::Split;

pub(crate) struct PathMtu;

impl<B: Buffer> Node<B> for PathMtu {
    const ID: NodeId = NodeId::PathMtu;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(mtu) = path_mtu(state, packet) else { return Next::drop(DropReason::NoRoute) };
        if packet.meta.bytes > mtu {
            return match Split::plan(packet.buffer.data(), mtu.into()) {
                Ok(_) => Next::End(Fate::Split),
                Err(_) => Next::To(NodeId::IcmpError),
            };
        }
        let step = *state.sessions.cells.step(packet.meta.step);
        match far::route(&state.ports, packet, step.kind == Kind::Plain, u16::MAX) {
            Ok(()) => Next::To(far::onward(&step)),
            Err(reason) => far::stop(packet, reason),
        }
    }
}

/// Bytes of the longest user's packet that the way of this one takes; `None` where there is no way.
pub(crate) fn path_mtu<B: Buffer>(state: &State, packet: &Packet<B>) -> Option<u16> {
    let Meta { step, towards, .. } = packet.meta;
    let step = state.sessions.cells.step(step);
    let (port, headers) = match step.kind {
        Kind::Tunnel => {
            let way = state.sessions.peers.way(step.peer)?;
            (way.next_hop.port, way.template.length() + step.container_length())
        }
        _ => (state.routes.find(towards, super::destination(packet.buffer.data())?)?.port, 0),
    };
    state.ports.get(port).mtu.checked_sub(headers as u16)
}

//! Reads the user's own packet: checks it, and works out which flow it belongs to.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{FlowKey, State};
use packet::Buffer;
use packet::five_tuple::FiveTuple;

pub(crate) struct UserInput;

impl<B: Buffer> Node<B> for UserInput {
    const ID: NodeId = NodeId::UserInput;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Ok(found) = FiveTuple::parse(packet.buffer.data()) else { return malformed(state, packet) };
        // What is behind the packet is not part of it.
        if packet.buffer.truncate(found.total).is_none() {
            return malformed(state, packet);
        }
        let meta = &mut packet.meta;
        meta.bytes = found.total as u16;
        meta.traffic_class = found.tuple.tos;
        meta.key = FlowKey::new(&found.tuple, meta.direction());
        meta.hash = state.flows.hash(&meta.key);
        state.flows.prefetch(meta.hash);
        Next::To(NodeId::Flow)
    }
}

/// A peer whose tunnel leads nowhere is told so, whatever it sends through it.
fn malformed<B: Buffer>(state: &State, packet: &Packet<B>) -> Next {
    let meta = &packet.meta;
    if meta.tunnelled() && state.sessions.by_tunnel(state.ports.tunnel_key(meta)).is_none() {
        return Next::To(NodeId::GtpuErrorIndication);
    }
    Next::drop(DropReason::UserPacketMalformed)
}

//! Follows what is known of a packet's flow; packets of unknown flows go by the session's rules.

use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;
use rules::Direction;

pub(crate) struct Flow;

impl<B: Buffer> Node<B> for Flow {
    const ID: NodeId = NodeId::Flow;

    #[inline(always)]
    fn first(state: &State, packet: &mut Packet<B>) {
        packet.meta.line = state.flows.prefetch_tags(packet.meta.hash);
    }

    #[inline(always)]
    fn ahead(state: &State, packet: &mut Packet<B>) {
        packet.meta.line = state.flows.look(packet.meta.hash, packet.meta.line);
    }

    #[inline(always)]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let meta = &mut packet.meta;
        match state.flows.find(meta.flow(), state.now_ns) {
            Some((step, generation)) => {
                state.sessions.cells.prefetch(step);
                if meta.direction() == Direction::Downlink {
                    // Most likely it will be put into a tunnel.
                    packet.buffer.prefetch_headroom();
                }
                let meta = &mut packet.meta;
                (meta.step, meta.generation) = (step, generation);
                Next::To(NodeId::Verdict)
            }
            None => Next::To(NodeId::Session),
        }
    }
}

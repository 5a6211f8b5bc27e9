//! Makes sure that what is known of a flow was said by the rules in force, and does what a simple step says at once. Whatever is
//! not that simple goes the long way from `far` on.

use super::at_once;
use crate::frame::{Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;

pub(crate) struct Verdict;

impl<B: Buffer> Node<B> for Verdict {
    const ID: NodeId = NodeId::Verdict;

    #[inline(always)]
    fn ahead(state: &State, packet: &mut Packet<B>) {
        // A whole vector has passed since it was read.
        packet.buffer.prefetch_data();
        state.sessions.cells.prefetch_accounts(packet.meta.step, packet.meta.direction());
    }

    #[inline(always)]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Meta { step: at, generation, teid, .. } = packet.meta;
        let step = state.sessions.cells.step(at);
        // The same addresses and ports may come in another tunnel, which is another PDR's, or nobody's.
        if step.generation != generation || step.arrives_in != teid {
            return Next::To(NodeId::Session);
        }
        if !step.is_simple() {
            return Next::To(NodeId::Far);
        }
        at_once::enforce(state, packet)
    }
}

//! Makes sure that what is known of a flow was said by the rules in force.

use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;

pub(crate) struct Verdict;

impl<B: Buffer> Node<B> for Verdict {
    const ID: NodeId = NodeId::Verdict;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let step = state.sessions.cells.step(packet.meta.step);
        Next::To(if step.generation == packet.meta.generation { NodeId::Far } else { NodeId::Session })
    }
}

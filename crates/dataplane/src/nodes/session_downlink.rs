//! Finds the session of the user a packet from the core is for.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;

pub(crate) struct SessionDownlink;

impl<B: Buffer> Node<B> for SessionDownlink {
    const ID: NodeId = NodeId::SessionDownlink;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        match state.sessions.by_address(packet.meta.ip.destination) {
            Some(session) => {
                packet.meta.session = session;
                Next::To(NodeId::Classify)
            }
            None => Next::drop(DropReason::NoSession),
        }
    }
}

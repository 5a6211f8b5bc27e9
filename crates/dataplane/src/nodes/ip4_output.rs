//! Finds the next hop of a plain packet.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;

pub(crate) struct Ip4Output;

impl<B: Buffer> Node<B> for Ip4Output {
    const ID: NodeId = NodeId::Ip4Output;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        match state.routes.find(packet.meta.towards, packet.meta.ip.destination) {
            Some(next_hop) => {
                packet.meta.next_hop = next_hop;
                Next::To(NodeId::EthernetOutput)
            }
            None => Next::drop(DropReason::NoRoute),
        }
    }
}

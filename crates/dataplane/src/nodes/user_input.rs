//! Reads the user's own packet: checks it, and works out which flow it belongs to.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{Key, State};
use packet::Buffer;

pub(crate) struct UserInput;

impl<B: Buffer> Node<B> for UserInput {
    const ID: NodeId = NodeId::UserInput;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(length) = state.read_flow(packet.buffer.data(), &mut packet.meta) else {
            return malformed(state, packet);
        };
        // What is behind the packet is not part of it.
        if packet.buffer.truncate(usize::from(length)).is_none() {
            return malformed(state, packet);
        }
        let meta = &mut packet.meta;
        (meta.bytes, meta.hash) = (length, state.flows.hash(&meta.key));
        Next::To(state.steering.next(meta.port, &meta.key))
    }
}

/// A peer whose tunnel leads nowhere is told so, whatever it sends through it.
fn malformed<B: Buffer>(state: &mut State, packet: &Packet<B>) -> Next {
    let meta = &packet.meta;
    let key = state.ports.tunnel_key(meta);
    if meta.tunnelled()
        && state.sessions.by_tunnel(key).is_none()
        && !state.steering.is_elsewhere(Key::Tunnel(key))
    {
        return Next::To(NodeId::GtpuErrorIndication);
    }
    Next::drop(DropReason::UserPacketMalformed)
}

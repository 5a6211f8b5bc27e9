//! Finds the session of a packet whose flow is unknown: by its tunnel, or by the user's address.

use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{State, StepIndex, user_key};
use packet::Buffer;

pub(crate) struct Session;

impl<B: Buffer> Node<B> for Session {
    const ID: NodeId = NodeId::Session;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let meta = &mut packet.meta;
        // What an older verdict said holds no longer.
        meta.step = StepIndex::NONE;
        let found = match meta.tunnelled() {
            true => state.sessions.by_tunnel(state.ports.tunnel_key(meta)),
            false => destination(packet.buffer.data()).and_then(|key| state.sessions.by_user(key)),
        };
        match found {
            Some(session) => {
                packet.meta.session = session;
                state.sessions.prefetch_place(session);
                Next::To(NodeId::Classify)
            }
            None => super::steer::astray(state, packet),
        }
    }
}

fn destination(packet: &[u8]) -> Option<u64> {
    user_key(super::destination(packet)?)
}

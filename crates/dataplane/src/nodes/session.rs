//! Finds the session of a packet whose flow is unknown: by its tunnel, or by the user's address.

use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{Key, State, StepIndex, user_key};
use packet::Buffer;

pub(crate) struct Session;

impl<B: Buffer> Node<B> for Session {
    const ID: NodeId = NodeId::Session;

    #[inline]
    fn first(state: &State, packet: &Packet<B>) {
        let meta = &packet.meta;
        let key = match meta.tunnelled() {
            true => Some(Key::Tunnel(state.ports.tunnel_key(meta))),
            false => destination(packet.buffer.data()).map(Key::User),
        };
        if let Some(key) = key {
            state.sessions.prefetch_key(key);
        }
    }

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

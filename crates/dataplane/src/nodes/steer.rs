//! Sends users' packets to the worker that owns the user, where the device may have brought them to any: `steering` has
//! found that it is another.

use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Behind, Key, State, user_key};
use packet::Buffer;

pub(crate) struct Steer;

impl<B: Buffer> Node<B> for Steer {
    const ID: NodeId = NodeId::Steer;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        Next::End(Fate::HandOff(state.steering.owner(packet.meta.key.user())))
    }
}

/// A packet for which this worker has no session: another worker may, or it is for a network behind a user. Whose address it is
/// for itself goes before that, so the worker is asked first that would have such a user.
#[cold]
pub(super) fn astray<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Next {
    let meta = &packet.meta;
    let key = match meta.tunnelled() {
        true => Some(Key::Tunnel(state.ports.tunnel_key(meta))),
        false => {
            let address = super::destination(packet.buffer.data()).and_then(user_key);
            address.map(|address| Key::User(address, meta.instance))
        }
    };
    if let Some(owner) = key.and_then(|key| state.steering.elsewhere(key, meta.handed)) {
        return Next::End(Fate::HandOff(owner));
    }
    if meta.tunnelled() {
        return Next::To(NodeId::GtpuErrorIndication);
    }
    match key.and_then(|key| state.behind(key)) {
        Some(Behind::Here(session)) => super::session::go_on(state, packet, session),
        Some(Behind::At(owner)) if state.steering.may_hand_on(meta.handed) => Next::End(Fate::HandOff(owner)),
        _ => Next::drop(DropReason::NoSession),
    }
}

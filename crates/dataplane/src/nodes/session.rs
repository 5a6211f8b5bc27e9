//! Finds the session of a packet whose flow is unknown: by its tunnel, or by the user's address.

use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Key, SessionIndex, State, StepIndex, user_key};
use packet::Buffer;
use rules::Instance;

pub(crate) struct Session;

impl<B: Buffer> Node<B> for Session {
    const ID: NodeId = NodeId::Session;

    #[inline]
    fn first(state: &State, packet: &mut Packet<B>) {
        // New flows are few in a vector, and all they need is far away: asked for one by one, each would wait for its addresses to
        // be translated.
        state.flows.prefetch_room(packet.meta.hash);
        if let Some(key) = key(state, packet) {
            state.sessions.prefetch_key(key);
        }
    }

    #[inline]
    fn ahead(state: &State, packet: &mut Packet<B>) {
        if let Some(key) = key(state, packet) {
            state.sessions.prefetch_behind(key);
        }
    }

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        // Another worker has read it.
        if packet.meta.is_end_marker() {
            return super::gtpu_path::end_marker(state, packet);
        }
        // What an older verdict said holds no longer.
        packet.meta.step = StepIndex::NONE;
        let meta = &packet.meta;
        let found = match meta.tunnelled() {
            true => state.sessions.by_tunnel(state.ports.tunnel_key(meta)),
            false => user(packet).and_then(|user| state.sessions.by_user(user)),
        };
        match found {
            Some(session) if state.sessions.is_between(session) => between(state, packet, session),
            Some(session) => go_on(state, packet, session),
            None => super::steer::astray(state, packet),
        }
    }
}

/// Takes a packet to the rules of its session.
pub(super) fn go_on<B: Buffer>(state: &State, packet: &mut Packet<B>, session: SessionIndex) -> Next {
    packet.meta.session = session;
    // Only tunnels lead here to those that carry frames.
    if state.switch.carries(session) {
        return Next::To(NodeId::FrameUser);
    }
    state.sessions.prefetch(session);
    Next::To(NodeId::Classify)
}

/// Takes a packet to the rules of a session between tunnels of this node: it passes another session, too, before or after, which
/// has what is known of the flow by the user's addresses. So here flows are found last, by keys of the session's own.
#[cold]
fn between<B: Buffer>(state: &mut State, packet: &mut Packet<B>, session: SessionIndex) -> Next {
    if state.read_flow(packet.buffer.data(), &mut packet.meta).is_none() {
        return go_on(state, packet, session);
    }
    let meta = &mut packet.meta;
    meta.key = meta.key.between(session);
    meta.hash = state.flows.hash(&meta.key);
    let begins = |may_ask| super::flow::beginning(packet.buffer.data(), may_ask);
    if let Some((at, generation)) = state.flows.find(meta.flow(), state.now_ns, begins) {
        let step = state.sessions.cells.step(at);
        if (step.generation, step.arrives_in) == (generation, meta.teid) {
            (meta.step, meta.generation) = (at, generation);
            return Next::To(NodeId::Far);
        }
    }
    go_on(state, packet, session)
}

/// By what the packet's session is found.
#[inline]
fn key<B: Buffer>(state: &State, packet: &Packet<B>) -> Option<Key> {
    let meta = &packet.meta;
    match meta.tunnelled() {
        true => Some(Key::Tunnel(state.ports.tunnel_key(meta))),
        false => user(packet).map(|(address, instance)| Key::User(address, instance)),
    }
}

/// Whom a plain packet is for: a user of the network it came from.
#[inline]
fn user<B: Buffer>(packet: &Packet<B>) -> Option<(u64, Instance)> {
    let address = user_key(super::destination(packet.buffer.data())?)?;
    Some((address, packet.meta.instance))
}

/// A packet of a session that is not there: it waits if another worker is about to give the session.
#[cold]
pub(super) fn gone(state: &State, session: SessionIndex) -> Next {
    match state.is_expected(session) {
        true => Next::End(Fate::Await),
        false => Next::drop(DropReason::NoSession),
    }
}

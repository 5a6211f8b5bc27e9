//! Lets a handshake pass whose rule would stop it. Who a connection is with is said behind its handshake, which goes by the rule for what
//! says no name until then: where that drops, is beyond its quota, or sends users elsewhere, what other rules let pass could never be
//! known by its name, as a host that costs nothing. So segments without payload go by the first rule for an application, whichever, that
//! would let them pass. What has a payload is not forwarded before it is known what it is, but read all the same: once the
//! name is whole the connection goes by its rule, and what was dropped is said again, as over any network.

use super::classify::arrival;
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::Next;
use crate::state::{Bearing, SessionIndex, State, StepIndex};
use packet::tcp::Segment;
use packet::{Buffer, FiveTuple, protocol};
use rules::Arrival;

/// Leads a packet whose flow waits another way, where its own ends; what is to be done at once, if anything.
pub(super) fn lead<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Option<Next> {
    let (at, used) = (packet.meta.step, (packet.meta.direction(), u32::from(packet.meta.bytes)));
    let step = state.sessions.cells.whole(at);
    if step.forwards() && state.has_plenty((&step, at), used) {
        return None;
    }
    let bearing = state.bearing(at);
    if matches!(bearing, Bearing::Passes | Bearing::Keeps) {
        return None;
    }
    let found = FiveTuple::parse(packet.buffer.data()).ok()?;
    let other = way_of_any(state, packet.meta.session, &arrival(&packet.meta, &found.tuple))?;
    let is_whole_tcp = found.tuple.protocol == protocol::TCP && found.part.is_none();
    let upper = packet.buffer.data().get(found.upper..found.total).filter(|_| is_whole_tcp);
    let segment = upper.and_then(|upper| Segment::parse(upper).ok());
    if segment.is_some_and(|segment| segment.payload().is_empty()) {
        packet.meta.step = other;
        return None;
    }
    // No answer: it may be for whom the user means.
    (bearing == Bearing::Answers).then_some(Next::drop(DropReason::Redirected))
}

/// The first rule for an application that would let a packet pass.
fn way_of_any(state: &State, session: SessionIndex, arrival: &Arrival) -> Option<StepIndex> {
    let session = state.sessions.get(session)?;
    let number = session.find_application(arrival, |at| state.bearing(at) == Bearing::Passes)?;
    Some(session.step(number))
}

//! Counts what goes out (TS 29.244 5.2.2), and stops it where a quota is used up.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::receipt::Receipt;
use crate::state::{HotStep, State, WholeStep};
use packet::Buffer;

pub(crate) struct Urr;

impl<B: Buffer> Node<B> for Urr {
    const ID: NodeId = NodeId::Urr;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let step = state.sessions.cells.whole(packet.meta.step);
        if is_beyond_quota(state, packet, &step) {
            return Next::drop(DropReason::QuotaExhausted);
        }
        count_all(state, packet);
        Next::To(out(&step))
    }
}

/// Counts a packet by all URRs of its step, or where its flow waits to be of an application, by those of that, once it is known.
#[inline]
pub(super) fn count_all<B: Buffer>(state: &mut State, packet: &mut Packet<B>) {
    if packet.meta.waits.is_some() && super::inspect::defer(state, packet) {
        return;
    }
    let step = state.sessions.cells.whole(packet.meta.step);
    let meta = &mut packet.meta;
    meta.receipt = Receipt::of_step(meta.step, meta.direction(), meta.bytes);
    for place in step.lists().usages() {
        count(state, &step, packet, *place);
    }
}

/// Whether a quota stops a packet. Where a FAR stands in for the time after it, `far` saw to it that no other one does, but of
/// parts of one packet: they go one way.
#[inline]
pub(super) fn is_beyond_quota<B: Buffer>(state: &mut State, packet: &Packet<B>, step: &WholeStep) -> bool {
    let used = (packet.meta.direction(), u32::from(packet.meta.bytes));
    let rule = (step, packet.meta.step);
    if state.has_plenty(rule, used) {
        return false;
    }
    // Where quotas lead on, one that does may say so of the wrong one.
    if !step.may_yield() && !step.stands_in() && state.is_stopped(rule, used.0) {
        return true;
    }
    let Some(place) = state.stopped_by(rule) else { return false };
    state.remind((step.session, place), |state| state.start_of(packet));
    true
}

fn out(step: &HotStep) -> NodeId {
    if step.tunnels() { NodeId::GtpuEncap } else { NodeId::IpOutput }
}

#[inline]
pub(super) fn count<B: Buffer>(state: &mut State, step: &WholeStep, packet: &Packet<B>, place: u16) {
    let (direction, bytes) = (packet.meta.direction(), u32::from(packet.meta.bytes));
    let (_, tally) = state.sessions.cells.way((step.base(packet.meta.step), place), direction);
    if !tally.add(bytes, state.now_ns) {
        state.look((step.session, place), (direction, bytes), |state| state.start_of(packet));
    }
}

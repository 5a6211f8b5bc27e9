//! Holds packets to their rates (TS 29.244 5.4.3): all QERs of a PDR must admit one, and then all of them are charged.

use super::Urr;
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId, Run};
use crate::state::State;
use packet::Buffer;

pub(crate) struct Qer;

impl<B: Buffer> Node<B> for Qer {
    const ID: NodeId = NodeId::Qer;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let meta = &packet.meta;
        let (direction, bytes) = (meta.direction(), u32::from(meta.bytes));
        let step = state.sessions.cells.whole(meta.step);
        let base = step.base(meta.step);
        // What goes no further takes nothing of a rate that it may share with others.
        if super::urr::is_beyond_quota(state, packet, &step) {
            return Next::drop(DropReason::QuotaExhausted);
        }
        if !admits(state, packet) {
            return refuse(state, packet, DropReason::RateExceeded);
        }
        for place in step.lists().meters() {
            state.sessions.charge((base, *place), direction, (state.now_ns, bytes));
        }
        // Whatever its rules count, others may count it once they are known.
        let is_counted = step.is_counted() || packet.meta.waits.is_some();
        Next::To(match (!is_counted, step.tunnels()) {
            (false, _) => NodeId::Urr,
            (true, true) => NodeId::GtpuEncap,
            (true, false) => NodeId::IpOutput,
        })
    }

    /// Counts what passes at once: the next packet's quotas are asked here, before it takes of a rate.
    #[inline]
    fn pass(run: &mut Run<'_, B>, place: u8) -> Next {
        match run.process::<Self>(place) {
            Next::To(NodeId::Urr) => run.process_at_once::<Urr>(place),
            next => next,
        }
    }
}

/// Whether all QERs of its PDR let a packet pass now. Each of them is asked, as a rate that a packet is beyond notes that: in whichever
/// order they stand, it is the same.
pub(super) fn admits<B: Buffer>(state: &mut State, packet: &Packet<B>) -> bool {
    let (direction, moment) = (packet.meta.direction(), (state.now_ns, state.burst_ns));
    let step = state.sessions.cells.whole(packet.meta.step);
    let base = step.base(packet.meta.step);
    let admits = |place: &u16| state.sessions.admits((base, *place), direction, moment);
    step.lists().meters().iter().map(admits).fold(true, std::ops::BitAnd::bitand)
}

/// Drops a packet that QoS enforcement refuses; some URRs count it all the same (TS 29.244 8.2.68, MBQE).
pub(super) fn refuse<B: Buffer>(state: &mut State, packet: &Packet<B>, reason: DropReason) -> Next {
    let step = state.sessions.cells.whole(packet.meta.step);
    for place in step.lists().usages_before_qos() {
        super::urr::count(state, &step, packet, place);
    }
    Next::drop(reason)
}

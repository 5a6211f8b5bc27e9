//! Counts what goes out (TS 29.244 5.2.2), and stops it where a quota is used up.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{HotStep, Kind, State};
use packet::Buffer;

pub(crate) struct Urr;

impl<B: Buffer> Node<B> for Urr {
    const ID: NodeId = NodeId::Urr;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let step = *state.sessions.cells.step(packet.meta.step);
        let bytes = u32::from(packet.meta.bytes);
        let (base, cells) = (step.base(packet.meta.step), &mut state.sessions.cells);
        let plenty = |place: &u16| cells.account(base, *place).count.left >= bytes;
        if !step.usages().iter().all(plenty) && is_used_up(state, &step) {
            return Next::drop(DropReason::QuotaExhausted);
        }
        for place in step.usages() {
            count(state, &step, packet, *place);
        }
        Next::To(if step.kind == Kind::Tunnel { NodeId::GtpuEncap } else { NodeId::IpOutput })
    }
}

/// Whether any of the step's quotas lets nothing pass. Nothing is counted before all have been asked.
fn is_used_up(state: &mut State, step: &HotStep) -> bool {
    step.usages().iter().any(|place| {
        let ledger = state.sessions.ledger(step.session, *place);
        ledger.is_some_and(|(ledger, account)| ledger.is_used_up(&account.count))
    })
}

#[inline]
pub(super) fn count<B: Buffer>(state: &mut State, step: &HotStep, packet: &Packet<B>, place: u16) {
    let (direction, bytes) = (packet.meta.direction(), u32::from(packet.meta.bytes));
    let count = &mut state.sessions.cells.account(step.base(packet.meta.step), place).count;
    if !count.add(direction, bytes, state.now_ns) {
        state.look((step.session, place), direction, bytes);
    }
}

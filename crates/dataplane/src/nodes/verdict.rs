//! Makes sure that what is known of a flow was said by the rules in force, and does the usual at once: one rate, one
//! count, forward, out. Whatever is not that simple goes the long way from `far` on, which comes to the same.

use super::{EthernetOutput, GtpuEncap, IpOutput};
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{Kind, State};
use packet::Buffer;

pub(crate) struct Verdict;

impl<B: Buffer> Node<B> for Verdict {
    const ID: NodeId = NodeId::Verdict;

    #[inline]
    fn ahead(state: &State, packet: &Packet<B>) {
        // A whole vector has passed since it was read.
        packet.buffer.prefetch_data();
        state.sessions.cells.prefetch_accounts(packet.meta.step);
    }

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let meta = &packet.meta;
        let (direction, bytes, now_ns) = (meta.direction(), u32::from(meta.bytes), state.now_ns);
        let step = state.sessions.cells.step(meta.step);
        // The same addresses and ports may come in another tunnel, which is another PDR's, or nobody's.
        if step.generation != meta.generation || step.arrives_in != meta.teid {
            return Next::To(NodeId::Session);
        }
        let (metered, counted) = (!step.meters().is_empty(), !step.usages().is_empty());
        let (is_simple, plain) = (step.is_simple(), step.kind == Kind::Plain);
        let (towards, fits) = (step.to(), step.fits);
        let (base, counted_at) = (step.base(meta.step), step.counted_at());
        let cells = &mut state.sessions.cells;
        if !is_simple || (counted && cells.account(base, counted_at).count.left < bytes) {
            return Next::To(NodeId::Far);
        }
        packet.meta.towards = towards;
        if let Err(reason) = super::far::route(&state.ports, packet, plain, fits) {
            return super::far::stop(packet, reason);
        }
        if metered {
            let rate = &mut cells.account(base, 0).rate;
            if !rate.admits(direction, now_ns, state.burst_ns) {
                return super::qer::refuse(state, packet, DropReason::RateExceeded);
            }
            rate.charge(direction, now_ns, bytes);
        }
        if counted {
            cells.account(base, counted_at).count.add(direction, bytes, now_ns);
        }
        let next = if plain { IpOutput::process(state, packet) } else { GtpuEncap::process(state, packet) };
        match next {
            Next::To(_) => EthernetOutput::process(state, packet),
            end @ Next::End(_) => end,
        }
    }
}

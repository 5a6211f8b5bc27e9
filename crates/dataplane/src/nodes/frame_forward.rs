//! Does to a frame what the FAR, QERs and URRs of its PDR say, as `far`, `qer` and `urr` do to IP packets; a frame is
//! forwarded as it is, with no hop taken and no marking of what is in it.

use super::{Qer, Urr, far};
use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Kind, State, Ticket};
use packet::Buffer;
use rules::Direction;

pub(crate) struct FrameForward;

impl<B: Buffer> Node<B> for FrameForward {
    const ID: NodeId = NodeId::FrameForward;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        far::substitute(state, packet);
        let step = *state.sessions.cells.step(packet.meta.step);
        packet.meta.towards = step.to();
        match step.kind {
            Kind::Plain | Kind::Tunnel => pass(state, packet),
            Kind::GateClosed => super::qer::refuse(state, packet, DropReason::GateClosed),
            Kind::Keep | Kind::KeepAndNotify => {
                packet.meta.waits = Ticket::NONE;
                Next::End(Fate::Keep)
            }
            // Rules of frames neither redirect nor reset nor enrich.
            Kind::Drop | Kind::DropAndNotify | Kind::Redirect | Kind::Reset | Kind::Enrich => {
                if step.minds_drops() && packet.meta.direction() == Direction::Downlink {
                    state.count_dropped(packet.meta.step, packet.meta.bytes.into());
                }
                Next::drop(DropReason::FarDrop)
            }
        }
    }
}

/// By the rates and counts, and out.
fn pass<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Next {
    let mut next = Qer::process(state, packet);
    if next == Next::To(NodeId::Urr) {
        next = Urr::process(state, packet);
    }
    match next {
        Next::To(NodeId::IpOutput) => Next::To(NodeId::FrameOutput),
        other => other,
    }
}

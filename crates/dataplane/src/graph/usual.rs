//! The usual way, in chunks: while one is in the first node, the one before it is in the second, and the one before that
//! in the third. So what a node asks for comes while the others have other packets at hand, and what came for a packet is
//! in the L1 cache still when the last node needs it.

mod chunk;

use super::{AHEAD, Graph, Hop, Next, Node, NodeId, Run};
use crate::frame::Packet;
use crate::nodes::{Flow, UsualInput, Verdict};
use crate::state::State;
use chunk::{CHUNK, Listed, Marked, Waiting};
use packet::Buffer;
use std::ops::Range;

/// The places of a chunk that begins here, in a vector of `count` packets; none where there is no such chunk.
fn chunk(start: usize, count: usize) -> Range<usize> {
    start.min(count)..(start + CHUNK).min(count)
}

/// Asks for memory for those that wait.
#[inline(always)]
fn ask<B: Buffer>(run: &mut Run<'_, B>, waiting: &impl Waiting, what: impl Fn(&State, &mut Packet<B>)) {
    waiting.for_each(|place| what(run.state, &mut run.packets[place]));
}

impl Graph {
    /// Takes all packets the usual way, those that were handed over from its second node on; those that leave it wait where
    /// they are to go on.
    pub(super) fn run_usual<B: Buffer>(&mut self, run: &mut Run<'_, B>) {
        // Nothing asks for each packet at each node whether somebody watches.
        match (&run.trace, run.state.steering.is_mixed()) {
            (None, false) => self.go_usual::<B, Marked, false>(run),
            (None, true) => self.go_usual::<B, Listed, false>(run),
            (Some(_), _) => self.go_usual::<B, Listed, true>(run),
        }
    }

    #[inline(always)]
    fn go_usual<B: Buffer, W: Waiting, const TRACED: bool>(&mut self, run: &mut Run<'_, B>) {
        let count = run.packets.len();
        let (mut at_flow, mut at_verdict) = (W::none_of(0..0), W::none_of(0..0));
        let mut packets = [0; 3];
        for packet in run.packets.iter_mut().skip(run.handed).take(AHEAD) {
            <UsualInput as Node<B>>::ahead(run.state, packet);
        }
        for start in (0..count + 2 * CHUNK).step_by(CHUNK) {
            if run.state.sessions.cells.are_long() {
                // Their packets' data came with the first node.
                ask(run, &at_verdict, |state, packet| {
                    state.sessions.cells.prefetch_accounts(packet.meta.step);
                });
            }
            let new = chunk(start, count);
            let handed = new.start..run.handed.clamp(new.start, new.end);
            let mut to_flow = W::none_of(new.clone());
            handed.clone().for_each(|place| to_flow.put(place, true));
            let arrived = W::all_of(handed.end..new.end);
            packets[0] +=
                self.pass::<B, UsualInput, W, TRACED>(run, &arrived, Some((NodeId::Flow, &mut to_flow)));
            ask(run, &to_flow, <Flow as Node<B>>::first);
            let mut to_verdict = at_flow.none_of_these();
            packets[1] +=
                self.pass::<B, Flow, W, TRACED>(run, &at_flow, Some((NodeId::Verdict, &mut to_verdict)));
            ask(run, &to_flow, <Flow as Node<B>>::ahead);
            packets[2] += self.pass::<B, Verdict, W, TRACED>(run, &at_verdict, None);
            (at_flow, at_verdict) = (to_flow, to_verdict);
        }
        for (node, packets) in [NodeId::UsualInput, NodeId::Flow, NodeId::Verdict].into_iter().zip(packets) {
            run.counters.count_vector(node, packets);
        }
    }

    /// Takes those that wait at this node through it, mostly onward to the next, and says how many they were.
    #[inline(always)]
    fn pass<B: Buffer, N: Node<B>, W: Waiting, const TRACED: bool>(
        &mut self,
        run: &mut Run<'_, B>,
        waiting: &W,
        mut onward: Option<(NodeId, &mut W)>,
    ) -> usize {
        let mut count = 0;
        let mut others = Listed::none((0, Next::To(N::ID)));
        waiting.for_each(|place| {
            if N::ID == NodeId::UsualInput
                && let Some(later) = run.packets.get_mut(place + AHEAD)
            {
                N::ahead(run.state, later);
            }
            count += 1;
            let next = N::process(run.state, &mut run.packets[place]);
            if TRACED && let Some(trace) = &mut run.trace {
                trace.push(Hop { place: place as u8, node: N::ID, next });
            }
            let goes_on = match &mut onward {
                Some((node, on)) => {
                    let goes_on = next == Next::To(*node);
                    on.put(place, goes_on);
                    goes_on
                }
                None => false,
            };
            // It is here that packets turn out to be another worker's.
            if W::IS_MIXED && N::ID == NodeId::UsualInput {
                others.add_if(!goes_on, (place as u8, next));
            } else if !goes_on {
                self.leave(run, place as u8, next);
            }
        });
        others.items().iter().for_each(|(place, next)| self.leave(run, *place, *next));
        self.charge::<B, N>(run);
        count
    }
}

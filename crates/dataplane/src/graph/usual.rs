//! The usual way, in chunks: while one is in the first node, the one before it is in the second, and the one before that
//! in the third. So what a node asks for comes while the others have other packets at hand, and what came for a packet is
//! in the L1 cache still when the last node needs it.

mod chunk;

use super::{Graph, Hop, Next, Node, NodeId, Run};
use crate::frame::Packet;
use crate::nodes::{Flow, Steer, UsualInput, Verdict};
use crate::state::State;
pub(crate) use chunk::ChunkLength;
use chunk::{Listed, Marked, Waiting};
use packet::Buffer;
use std::ops::Range;

/// The places of a chunk that begins here, in a vector of `count` packets; none where there is no such chunk.
fn chunk(start: usize, length: ChunkLength, count: usize) -> Range<usize> {
    start.min(count)..(start + length.packets()).min(count)
}

/// Where packets go on that stay on the usual way.
const fn onward(node: NodeId) -> Option<NodeId> {
    match node {
        NodeId::UsualInput => Some(NodeId::Flow),
        NodeId::Flow => Some(NodeId::Verdict),
        _ => None,
    }
}

/// Asks for memory for those that wait.
#[inline(always)]
fn ask<B: Buffer>(run: &mut Run<'_, B>, waiting: &impl Waiting, what: impl Fn(&State, &mut Packet<B>)) {
    waiting.for_each(run.packets, |packet| what(run.state, packet));
}

impl<B: Buffer> Run<'_, B> {
    /// Beside the chunk that begins here, asks for what chunks behind it need first. Behind the flows' tags, since one burst for
    /// both was quicker than one for each; a longer one, of all packets as they are received, would hold the CPU up.
    #[inline(always)]
    fn ask_further(&mut self, start: usize, length: ChunkLength) {
        let described = self.packets.iter().skip(start + length.described()).take(length.packets());
        described.for_each(|packet| packet.buffer.prefetch());
        let read = start + length.read();
        if read < self.handed {
            let handed = self.packets.iter().take(self.handed);
            handed.skip(read).take(length.packets()).for_each(|packet| packet.buffer.prefetch_data());
        }
    }
}

impl Graph {
    /// Takes all packets the usual way, those that were handed over from its second node on; those that leave it wait where
    /// they are to go on.
    pub(super) fn run_usual<B: Buffer>(&mut self, run: &mut Run<'_, B>) {
        // Nothing asks for each packet at each node whether somebody watches.
        match (&run.trace, run.state.steering.is_mixed()) {
            (None, false) => self.go_usual::<B, Marked, false>(run),
            (None, true) => self.go_mixed::<B, false>(run),
            (Some(_), _) => self.go_mixed::<B, true>(run),
        }
    }

    /// A function of its own: within the other's, what it needs takes registers from the usual packets (2 % of their rate).
    #[inline(never)]
    fn go_mixed<B: Buffer, const TRACED: bool>(&mut self, run: &mut Run<'_, B>) {
        self.go_usual::<B, Listed, TRACED>(run);
    }

    #[inline(always)]
    fn go_usual<B: Buffer, W: Waiting, const TRACED: bool>(&mut self, run: &mut Run<'_, B>) {
        let (count, length) = (run.packets.len(), self.chunk);
        let none = || W::all_of(0..0, length);
        let (mut due, mut at_flow, mut at_verdict) = (none(), none(), none());
        let mut packets = [0; 3];
        for packet in run.packets.iter_mut().skip(run.handed).take(length.packets()) {
            <UsualInput as Node<B>>::ahead(run.state, packet);
        }
        for start in (0..count + W::BEHIND * length.packets()).step_by(length.packets()) {
            if run.state.sessions.cells.are_long() {
                // Their packets' data came with the first node.
                ask(run, &at_verdict, |state, packet| {
                    state.sessions.cells.prefetch_accounts(packet.meta.step, packet.meta.direction());
                });
            }
            // Once more: of the lines that were asked for a round ago, many are not at hand yet, or no longer.
            ask(run, &at_verdict, |state, packet| state.sessions.cells.prefetch(packet.meta.step));
            let chunk = chunk(start, length, count);
            let handed = run.handed.clamp(chunk.start, chunk.end) - chunk.start;
            let mut arrived = W::all_of(chunk, length);
            packets[0] += self.pass::<B, UsualInput, W, TRACED>(run, &mut arrived, (handed, None));
            ask(run, &arrived, <Flow as Node<B>>::first);
            let are_last = start + length.packets() >= count;
            let Some(arrived) = due.join(arrived, are_last) else {
                run.ask_further(start, length);
                continue;
            };
            ask(run, &at_flow, Flow::again);
            run.ask_further(start, length);
            packets[1] += self.pass::<B, Flow, W, TRACED>(run, &mut at_flow, (0, None));
            // All at once: only walks through the tables of pages that start together overlap.
            ask(run, &at_flow, |state, packet| state.sessions.cells.prefetch(packet.meta.step));
            // There is no chunk before them beside which this could be done; where they are joined, it is done beside none.
            if !W::IS_MIXED && start < 2 * length.packets() {
                ask(run, &arrived, <Flow as Node<B>>::ahead);
            }
            packets[2] += self.pass::<B, Verdict, W, TRACED>(run, &mut at_verdict, (0, Some(&arrived)));
            (at_flow, at_verdict) = (arrived, at_flow);
        }
        for (node, packets) in [NodeId::UsualInput, NodeId::Flow, NodeId::Verdict].into_iter().zip(packets) {
            run.counters.count_vector(node, packets);
        }
    }

    /// Takes those that wait at this node through it, but the first `skipped`, and says how many they were; those that go on to the
    /// next still wait. Beside each, it asks for memory for a packet of a later chunk, the last node for one that has just
    /// `arrived` behind the first. A function of its own, as three nodes in one would have too few registers.
    #[inline(never)]
    fn pass<B: Buffer, N: Node<B>, W: Waiting, const TRACED: bool>(
        &mut self,
        run: &mut Run<'_, B>,
        waiting: &mut W,
        (skipped, arrived): (usize, Option<&W>),
    ) -> usize {
        let mut count = 0;
        let mut others = Listed::none((0, Next::To(N::ID)));
        let Run { packets, state, counters, trace, are_new, .. } = run;
        // No other node is given any; so the compiler knows it, and no turn asks.
        let arrived = arrived.filter(|_| const { matches!(N::ID, NodeId::Verdict) });
        waiting.retain(packets, (skipped, arrived), |other, packet| {
            match (N::ID, other) {
                (NodeId::UsualInput, Some(other)) => N::ahead(state, other),
                (NodeId::Verdict, Some(other)) => <Flow as Node<B>>::ahead(state, other),
                _ => {}
            }
            let Some((place, packet)) = packet else { return false };
            count += 1;
            if N::ID == NodeId::UsualInput && *are_new {
                counters.count_received(packet.meta.port, packet.buffer.data().len());
            }
            let next = N::process(state, packet);
            if TRACED && let Some(trace) = trace {
                trace.push(Hop::new(state, packet, (place as u8, N::ID, next)));
            }
            let goes_on = const { onward(N::ID) }.is_some_and(|node| next == Next::To(node));
            // It is at the first that packets turn out to be another worker's.
            if W::IS_MIXED && N::ID == NodeId::UsualInput {
                others.add_if(!goes_on, (place as u8, next));
            } else if !goes_on {
                self.leave_from(place as u8, packet, next);
            }
            goes_on
        });
        if W::IS_MIXED && N::ID == NodeId::UsualInput {
            self.leave_all(run, &others);
        }
        self.charge::<B, N>(run);
        count
    }

    /// Puts packets of a chunk where they go that leave the usual way at its first node. Of nearly all of them `steer` says to whom
    /// they are handed: here, while what it reads is at hand, and with its cycles in the first node's.
    #[inline(always)]
    fn leave_all<B: Buffer>(&mut self, run: &mut Run<'_, B>, others: &Listed<(u8, Next)>) {
        let mut steered = 0;
        for &(place, next) in others.items() {
            let is_steered = next == Next::To(NodeId::Steer);
            steered += usize::from(is_steered);
            let next = if is_steered { run.process::<Steer>(place) } else { next };
            self.leave(run, place, next);
        }
        run.counters.count_vector(NodeId::Steer, steered);
    }
}

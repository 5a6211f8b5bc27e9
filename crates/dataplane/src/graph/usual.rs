//! The usual way, in chunks: while one is in the first node, the one before it is in the second, and the one before that
//! in the third. So what a node asks for comes while the others have other packets at hand, and what came for a packet is
//! in the L1 cache still when the last node needs it.

mod chunk;

use super::{Graph, Hop, Next, Node, NodeId, Run};
use crate::frame::Packet;
use crate::nodes::{Flow, UsualInput, Verdict};
use crate::state::State;
pub(crate) use chunk::ChunkLength;
use chunk::Waiting;
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
fn ask<B: Buffer>(run: &mut Run<'_, B>, waiting: &Waiting, what: impl Fn(&State, &mut Packet<B>)) {
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
    /// Takes all packets the usual way, those that were read by other workers from its second node on; those that leave it wait
    /// where they are to go on.
    pub(super) fn run_usual<B: Buffer>(&mut self, run: &mut Run<'_, B>) {
        // Nothing asks for each packet at each node whether somebody watches.
        match &run.trace {
            None => self.go_usual::<B, false>(run),
            Some(_) => self.go_watched(run),
        }
    }

    #[cold]
    #[inline(never)]
    fn go_watched<B: Buffer>(&mut self, run: &mut Run<'_, B>) {
        self.go_usual::<B, true>(run);
    }

    #[inline(always)]
    fn go_usual<B: Buffer, const TRACED: bool>(&mut self, run: &mut Run<'_, B>) {
        let (count, length) = (run.packets.len(), self.chunk);
        let none = || Waiting::all_of(0..0, length);
        let (mut at_flow, mut at_verdict) = (none(), none());
        let mut packets = [0; 3];
        for packet in run.packets.iter_mut().skip(run.handed).take(length.packets()) {
            <UsualInput as Node<B>>::ahead(run.state, packet);
        }
        // Two rounds more, for those that are still at the second node and the third.
        for start in (0..count + 2 * length.packets()).step_by(length.packets()) {
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
            let mut arrived = Waiting::all_of(chunk, length);
            packets[0] += self.pass::<B, UsualInput, TRACED>(run, &mut arrived, handed);
            ask(run, &arrived, <Flow as Node<B>>::first);
            ask(run, &at_flow, Flow::again);
            run.ask_further(start, length);
            packets[1] += self.pass::<B, Flow, TRACED>(run, &mut at_flow, 0);
            // All at once: only walks through the tables of pages that start together overlap.
            ask(run, &at_flow, |state, packet| state.sessions.cells.prefetch(packet.meta.step));
            // There is no chunk before them beside which this could be done.
            if start < 2 * length.packets() {
                ask(run, &arrived, <Flow as Node<B>>::ahead);
            }
            packets[2] += self.pass::<B, Verdict, TRACED>(run, &mut at_verdict, 0);
            (at_flow, at_verdict) = (arrived, at_flow);
        }
        for (node, packets) in [NodeId::UsualInput, NodeId::Flow, NodeId::Verdict].into_iter().zip(packets) {
            run.counters.count_vector(node, packets);
        }
    }

    /// Takes those that wait at this node through it, but the first `skipped`, and says how many they were; those that go on to the
    /// next still wait. Beside each, it asks for memory for a packet of a later chunk. A function of its own, as three nodes in one would have too few registers.
    #[inline(never)]
    fn pass<B: Buffer, N: Node<B>, const TRACED: bool>(
        &mut self,
        run: &mut Run<'_, B>,
        waiting: &mut Waiting,
        skipped: usize,
    ) -> usize {
        let mut count = 0;
        let Run { packets, state, counters, trace, are_new, .. } = run;
        // Those that `ahead` is for have been through the first node, unless it is theirs.
        let between = const { if matches!(N::ID, NodeId::Verdict) { 1 } else { 0 } };
        waiting.retain(packets, (skipped, between), |other, packet| {
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
            if !goes_on {
                self.leave_from(place as u8, packet, next);
            }
            goes_on
        });
        self.charge::<B, N>(run);
        count
    }
}

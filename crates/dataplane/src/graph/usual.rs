//! The usual way, in chunks: while one is in the first node, the one before it is in the second, and the one before that
//! in the third. So what a node asks for comes while the others have other packets at hand, and what came for a packet is
//! in the L1 cache still when the last node needs it; and as the nodes are in one loop, no list is kept of who goes on.

use super::{AHEAD, Graph, Hop, Next, Node, NodeId, Run};
use crate::frame::{Packet, VECTOR};
use crate::nodes::{Flow, UsualInput, Verdict};
use crate::state::State;
use packet::Buffer;
use std::ops::Range;

/// Packets of a chunk: many enough for misses to overlap, few enough for what came for three of them to be in the L1 cache still.
const CHUNK: usize = 12;

/// The node each packet waits at; `None` for those that have come to the end of the usual way, or left it.
type Waits = [Option<NodeId>; VECTOR];

/// The places of a chunk in a vector of `count` packets; none where there is no such chunk.
fn chunk(number: Option<usize>, count: usize) -> Range<usize> {
    let start = number.map_or(count, |number| (number * CHUNK).min(count));
    start..(start + CHUNK).min(count)
}

/// Asks for memory for those of a chunk that wait at this node.
#[inline(always)]
fn ask<B: Buffer, N: Node<B>>(
    run: &mut Run<'_, B>,
    (waits, chunk): (&Waits, Range<usize>),
    what: impl Fn(&State, &mut Packet<B>),
) {
    for (packet, wait) in run.packets[chunk.clone()].iter_mut().zip(&waits[chunk]) {
        if *wait == Some(N::ID) {
            what(run.state, packet);
        }
    }
}

impl Graph {
    /// Takes all packets the usual way, those that were handed over from its second node on; those that leave it wait where
    /// they are to go on.
    pub(super) fn run_usual<B: Buffer>(&mut self, run: &mut Run<'_, B>) {
        // Nothing asks for each packet at each node whether somebody watches.
        match run.trace {
            None => self.go_usual::<B, false>(run),
            Some(_) => self.go_usual::<B, true>(run),
        }
    }

    #[inline(always)]
    fn go_usual<B: Buffer, const TRACED: bool>(&mut self, run: &mut Run<'_, B>) {
        let count = run.packets.len();
        let mut waits: Waits = [Some(NodeId::UsualInput); VECTOR];
        waits[..run.handed].fill(Some(NodeId::Flow));
        let mut packets = [0; 3];
        ask::<B, UsualInput>(run, (&waits, 0..AHEAD.min(count)), UsualInput::ahead);
        for turn in 0..count.div_ceil(CHUNK) + 2 {
            let chunk = |number| chunk(number, count);
            let [new, second, third] = [0, 1, 2].map(|before| chunk(turn.checked_sub(before)));
            if run.state.sessions.cells.are_long() {
                // Their packets' data came with the first node.
                ask::<B, Verdict>(run, (&waits, third.clone()), |state, packet| {
                    state.sessions.cells.prefetch_accounts(packet.meta.step);
                });
            }
            let arrived = new.start.max(run.handed)..new.end;
            packets[0] += self.pass::<B, UsualInput, TRACED>(run, (&mut waits, arrived), Some(NodeId::Flow));
            ask::<B, Flow>(run, (&waits, new.clone()), Flow::first);
            packets[1] += self.pass::<B, Flow, TRACED>(run, (&mut waits, second), Some(NodeId::Verdict));
            ask::<B, Flow>(run, (&waits, new), Flow::ahead);
            packets[2] += self.pass::<B, Verdict, TRACED>(run, (&mut waits, third), None);
        }
        let [new, flow, verdict] = packets;
        run.counters.count_vector(NodeId::UsualInput, new);
        run.counters.count_vector(NodeId::Flow, flow);
        run.counters.count_vector(NodeId::Verdict, verdict);
    }

    /// Takes those of a chunk that wait at this node through it, mostly onward to the next, and says how many they were.
    #[inline(always)]
    fn pass<B: Buffer, N: Node<B>, const TRACED: bool>(
        &mut self,
        run: &mut Run<'_, B>,
        (waits, chunk): (&mut Waits, Range<usize>),
        onward: Option<NodeId>,
    ) -> usize {
        let mut count = 0;
        for place in chunk {
            if N::ID == NodeId::UsualInput
                && let Some(later) = run.packets.get_mut(place + AHEAD)
            {
                N::ahead(run.state, later);
            }
            let (packet, wait) = (&mut run.packets[place], &mut waits[place]);
            // All that arrived wait at the first.
            if N::ID != NodeId::UsualInput && *wait != Some(N::ID) {
                continue;
            }
            count += 1;
            let next = N::process(run.state, packet);
            if TRACED && let Some(trace) = &mut run.trace {
                trace.push(Hop { place: place as u8, node: N::ID, next });
            }
            *wait = match next {
                Next::To(node) if Some(node) == onward => onward,
                Next::To(node) => {
                    self.waiting[node as usize].push(place as u8);
                    None
                }
                Next::End(fate) => {
                    packet.meta.fate = fate;
                    None
                }
            };
        }
        self.charge::<B, N>(run);
        count
    }
}

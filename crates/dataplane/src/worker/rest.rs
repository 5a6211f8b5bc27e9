//! Packets that the worker made, or held back, while it gave a vector to its fates: they run in vectors of their own,
//! within the same turn.

use super::Worker;
use super::frames::WAITING;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet, PortIndex, VECTOR};
use crate::graph::{Hop, NodeId};
use crate::port::Port;
use crate::receipt::Receipt;
use crate::trace::Tracer;
use rules::Direction;
use std::collections::VecDeque;

/// Packets that still have to run. Bounded by what one vector can leave behind.
pub(super) struct Rest<B> {
    /// Copies, with all their headers but Ethernet's.
    pub(super) copies: Vec<Packet<B>>,
    /// Packets that copies were made of.
    pub(super) copied: Vec<Packet<B>>,
    /// Packets that a FAR redirects, and copies for their servers.
    pub(super) answered: Vec<Packet<B>>,
    /// Packets whose senders are to hear that no route leads on, or nobody is there.
    unreachable: Vec<Packet<B>>,
    /// Fragments of packets that were too long.
    pub(super) parts: Vec<Packet<B>>,
    /// Fragments of tunnels' datagrams that were too long.
    pub(super) pieces: Vec<Packet<B>>,
    /// Frames of Ethernet data networks, as they came.
    pub(super) arrived: Vec<Packet<B>>,
    /// Frames for users whose session is known.
    pub(super) frames: Vec<Packet<B>>,
    /// Packets for an address of our own, as if they had come in.
    pub(super) looped: Vec<Packet<B>>,
    /// Packets that have been run, and may overtake none of those that were split.
    behind: VecDeque<Packet<B>>,
}

/// Fragments that one vector may make: four of each packet, on average.
pub(super) const PARTS: usize = 4 * VECTOR;
/// Packets that wait until others have left: those of a vector, and of one of fragments.
const BEHIND: usize = 2 * VECTOR;
/// Packets for an address of our own that one vector may leave behind: each as it is or in fragments, and its copies.
const LOOPED: usize = PARTS + rules::limits::DUPLICATES * VECTOR;

impl<B> Rest<B> {
    pub(super) fn new() -> Self {
        let copies = Vec::with_capacity(rules::limits::DUPLICATES * VECTOR);
        Self {
            copies,
            copied: Vec::with_capacity(VECTOR),
            answered: Vec::with_capacity(2 * VECTOR),
            unreachable: Vec::with_capacity(VECTOR),
            parts: Vec::with_capacity(PARTS),
            pieces: Vec::with_capacity(PARTS),
            arrived: Vec::with_capacity(4 * VECTOR),
            frames: Vec::with_capacity(2 * WAITING),
            looped: Vec::with_capacity(LOOPED),
            behind: VecDeque::with_capacity(BEHIND),
        }
    }

    /// Some of the next to run, and where they begin. What was copied may have to be split, and the tunnel's datagram of whatever
    /// leaves; pieces of those, fragments, copies, frames and what is answered leave behind at most what comes back to this node. That
    /// waits until there is room for all it may leave, and does not come back for ever, so there is an end.
    fn next(&mut self) -> Option<(&mut Vec<Packet<B>>, NodeId)> {
        let Self { copies, copied, answered, unreachable, parts, pieces, frames, looped, .. } = self;
        let all = [
            (pieces, NodeId::EthernetOutput),
            (unreachable, NodeId::IcmpError),
            (parts, NodeId::Far),
            (copies, NodeId::EthernetOutput),
            (copied, NodeId::Far),
            (answered, NodeId::Redirect),
            (looped, NodeId::UsualInput),
            (frames, NodeId::FrameClassify),
        ];
        all.into_iter().find(|(packets, _)| !packets.is_empty())
    }

    /// Whether there is room for one more whose sender is to hear that it goes nowhere.
    pub(super) const fn may_tell(&self) -> bool {
        self.unreachable.len() < VECTOR
    }

    /// Lets its sender hear why a packet goes nowhere.
    pub(super) fn tell(&mut self, mut packet: Packet<B>, reason: DropReason) {
        packet.meta.fate = Fate::Drop(reason);
        self.unreachable.push(packet);
    }

    /// Whether there is room for as many as a vector may leave behind.
    pub(super) fn may_stay_behind(&self) -> bool {
        self.behind.len() + VECTOR <= BEHIND
    }

    /// Lets a packet wait until what was split has left, and all that come behind it; they go before those that wait already.
    #[cold]
    pub(super) fn stay_behind(&mut self, packet: Packet<B>, others: impl Iterator<Item = Packet<B>>) {
        let before = self.behind.len();
        self.behind.push_back(packet);
        self.behind.extend(others);
        self.behind.rotate_left(before);
    }

    /// Whether all that was split has left.
    fn has_no_parts(&self) -> bool {
        self.pieces.is_empty() && self.parts.is_empty()
    }
}

impl<P: Port> Worker<P> {
    /// Drops a packet that could not be kept, or no longer: URRs may want to hear of it.
    pub(super) fn discard_kept(&mut self, packet: Packet<P::Buffer>, reason: DropReason) {
        let step = self.state.sessions.cells.step(packet.meta.step);
        if step.minds_drops() && packet.meta.direction() == Direction::Downlink {
            self.state.count_dropped(packet.meta.step, packet.meta.bytes.into());
        }
        self.discard(packet.buffer, reason);
    }

    /// Drops packets that were kept, and were about to go their way, from a place on.
    pub(super) fn discard_resumed(&mut self, from: usize, reason: DropReason) {
        while self.resumed.len() > from
            && let Some(packet) = self.resumed.pop()
        {
            self.discard_kept(packet, reason);
        }
    }

    /// Runs frames that came in from Ethernet data networks, or that other workers handed over.
    pub(super) fn run_arrived(&mut self, mut trace: Option<&mut Vec<Hop>>) {
        while !self.rest.arrived.is_empty() {
            let count = self.rest.arrived.len().min(VECTOR);
            self.vector.extend(self.rest.arrived.drain(..count));
            match self.tracer.take() {
                None => self.run(NodeId::FrameInput, trace.as_deref_mut()),
                Some(tracer) => self.run_watched(NodeId::FrameInput, tracer),
            }
        }
    }

    /// Lets a packet that is for an address of our own come in, at the port whose it is.
    pub(super) fn loop_back(&mut self, port: PortIndex, packet: Packet<P::Buffer>) {
        if self.rest.looped.len() == LOOPED {
            return self.discard(packet.buffer, DropReason::Looped);
        }
        let came_in = Meta::new(port, self.state.ports.get(port).side());
        let meta = Meta { loops: packet.meta.loops + 1, ..came_in };
        self.rest.looped.push(Packet { buffer: packet.buffer, meta });
    }

    /// Lets the sender of a packet hear that no route leads on, if he may; it was not forwarded, and is counted by nobody.
    pub(super) fn tell_unreachable(&mut self, mut packet: Packet<P::Buffer>) {
        self.state.take_back(std::mem::replace(&mut packet.meta.receipt, Receipt::NONE));
        self.rest.tell(packet, DropReason::NoRoute);
    }

    /// Runs what the last vector left behind.
    pub(super) fn run_rest(&mut self) {
        loop {
            if !self.rest.behind.is_empty() && self.rest.has_no_parts() {
                self.finish_behind();
                continue;
            }
            let Some((packets, node)) = self.rest.next() else { return };
            let count = packets.len().min(VECTOR);
            self.vector.extend(packets.drain(..count));
            // What stands in the lanes leaves first, so that there is room.
            self.send_lanes();
            match self.tracer.take() {
                None => self.run_vector(node, None),
                Some(tracer) if node == NodeId::UsualInput => self.run_vector_watched(node, tracer),
                Some(tracer) => self.run_parts(node, tracer),
            }
        }
    }

    /// Runs parts of packets that were watched, maybe.
    #[cold]
    fn run_parts(&mut self, start: NodeId, mut tracer: Box<Tracer>) {
        self.run_graph(start, None);
        tracer.follow(&self.vector);
        self.tracer = Some(tracer);
        self.finish();
    }

    /// Tells whoever watches a packet where a part of it ended that is not run.
    pub(super) fn note_part(&mut self, meta: &Meta, end: Fate) {
        if let Some(tracer) = &mut self.tracer {
            tracer.note(meta, end);
        }
    }

    /// Gives packets that were run to their fates, as far as they overtake none that is split.
    #[cold]
    fn finish_behind(&mut self) {
        let count = self.rest.behind.len().min(VECTOR);
        self.vector.extend(self.rest.behind.drain(..count));
        self.finish();
    }
}

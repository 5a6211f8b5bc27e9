//! Packets and notes between workers.

use super::Worker;
use crate::counters::DropReason;
use crate::frame::{Meta, Packet, VECTOR};
use crate::graph::ChunkLength;
use crate::port::Port;
use crate::state::State;
use crate::steering::{Handed, Note, Unread};
use packet::Buffer;

/// Of a vector, for packets from ports.
const PORTS_ROOM: usize = VECTOR / 4;

impl<P: Port> Worker<P> {
    /// Sees to the notes of the other workers, then takes packets of each, which begin the vector. Some room is left for
    /// the ports: what another has worked on goes before what nobody has, but not instead.
    pub(super) fn hear_others(&mut self) {
        self.hear_notes();
        let limit = VECTOR - PORTS_ROOM;
        let state = (&self.state, self.graph.chunk());
        let read = self.handoff.take_read(limit, taker(state, &mut self.vector, &mut self.rest.arrived));
        self.took_read(read);
        let state = (&self.state, self.graph.chunk());
        let unread = self.handoff.take_unread(limit - read, unread_taker(state, &mut self.vector));
        self.took(read + unread);
    }

    /// Takes up to so many packets of one other worker, which begin the vector; returns how many.
    pub(super) fn take_handed_by(&mut self, giver: usize, limit: usize) -> usize {
        let state = (&self.state, self.graph.chunk());
        let into = taker(state, &mut self.vector, &mut self.rest.arrived);
        let read = self.handoff.take_read_of(giver, limit, into);
        self.took_read(read);
        let state = (&self.state, self.graph.chunk());
        let unread = self.handoff.take_unread_of(giver, limit - read, unread_taker(state, &mut self.vector));
        self.took(read + unread);
        read + unread
    }

    /// Of the vector, so far, others have read all.
    #[inline]
    fn took_read(&mut self, taken: usize) {
        if taken > 0 {
            self.handed = self.vector.len();
            self.look_at_handed();
        }
    }

    #[inline]
    fn took(&mut self, taken: usize) {
        self.counters.handed_in += taken as u64;
        self.handed_unread = self.vector.len() - self.handed;
    }

    /// Which network a tunnel's user is of, and which way its packets go, the owner of the session knows for sure.
    fn find_tunnels(&mut self) {
        let state = &mut self.state;
        for Packet { meta, buffer } in self.vector.iter_mut().filter(|packet| packet.meta.tunnelled()) {
            let source = state.source_of_tunnel(meta.port, meta.source, meta.teid);
            if source != meta.source {
                meta.source = source;
                state.read_flow(buffer.data(), meta);
            }
            meta.key = state.in_network(meta.key, meta);
            meta.hash = state.flows.hash(&meta.key);
        }
    }

    /// Another worker has read these packets; what it found out about them came along.
    fn look_at_handed(&mut self) {
        if self.state.ports.has_instances() || self.state.has_turned() {
            self.find_tunnels();
        }
        // What it changed lies in its cache. The others' is asked for beside those before them.
        self.vector.iter().take(self.graph.chunk().read()).for_each(|packet| packet.buffer.prefetch_data());
        if self.vector.iter().any(|packet| packet.meta.fragment) {
            self.follow_first_fragments();
        }
    }

    /// A packet's fragments may come to several workers; here they meet.
    #[cold]
    fn follow_first_fragments(&mut self) {
        let state = &mut self.state;
        for Packet { meta, buffer } in self.vector.iter_mut().filter(|packet| packet.meta.fragment) {
            state.read_flow(buffer.data(), meta);
            meta.hash = state.flows.hash(&meta.key);
        }
    }

    fn hear_notes(&mut self) {
        self.state.steering.read();
        while let Some(key) = self.state.steering.next_overtaking() {
            match key {
                Ok(key) => self.state.sessions.overtake(key),
                Err(()) => self.state.sessions.overtake_all(),
            }
        }
        let mut learnt = false;
        while let Some(note) = self.state.steering.post.next() {
            learnt |= matches!(note, Note::Station(..));
            self.state.hear(note);
        }
        if learnt {
            self.release_held();
        }
    }

    /// Puts a packet among those for another worker.
    #[inline]
    pub(super) fn hand_off(&mut self, worker: u8, packet: Packet<P::Buffer>) {
        if let Err(packet) = self.handoff.put(worker, packet) {
            self.discard(packet.buffer, DropReason::NoSession);
        }
    }

    /// Hands over what waits. A full ring drops: to wait for one worker would hold up the users of all.
    pub(super) fn send_handed(&mut self) {
        let mut left = std::mem::take(&mut self.received);
        self.counters.handed_out += self.handoff.send(&mut left);
        left.drain(..).for_each(|buffer| self.discard(buffer, DropReason::HandoffFull));
        self.received = left;
    }

    /// The same of what was sorted; returns how many packets that were.
    pub(super) fn send_sorted(&mut self) -> usize {
        let mut left = std::mem::take(&mut self.unsent);
        let sent = self.handoff.send_sorted(&mut left);
        self.counters.handed_out += sent;
        let all = sent as usize + left.len();
        for Unread { buffer, port } in left.drain(..) {
            // Nobody reads it any more who would count its bytes.
            self.counters.count_received(port, buffer.data().len());
            self.discard(buffer, DropReason::HandoffFull);
        }
        self.unsent = left;
        all
    }

    /// Whether a session is this worker's.
    #[cfg(test)]
    pub(crate) fn holds(&self, session: rules::Seid) -> bool {
        self.state.sessions.by_seid(session).is_some()
    }

    /// Tells the other workers of stations that told their addresses.
    pub(super) fn pass_on_stations(&mut self) {
        for heard in std::mem::take(&mut self.state.neighbours.heard) {
            self.state.steering.post.tell_all(Note::Station(heard));
        }
    }
}

/// Takes packets in that were handed over: frames of Ethernet ports among `arrived`, others into the vector.
#[inline]
fn taker<B: Buffer>(
    (state, chunk): (&State, ChunkLength),
    vector: &mut Vec<Packet<B>>,
    arrived: &mut Vec<Packet<B>>,
) -> impl FnMut(Handed<B>) {
    let State { ports, flows, .. } = state;
    move |handed| {
        let port = ports.get(handed.port());
        if port.ethernet || vector.len() < chunk.described() {
            handed.buffer.prefetch();
        }
        let (side, into) = (port.side(), if port.ethernet { &mut *arrived } else { &mut *vector });
        into.push(handed.packet(side, |key| flows.hash(key)));
    }
}

/// The same of those that nobody has read.
#[inline]
fn unread_taker<B: Buffer>(
    (state, chunk): (&State, ChunkLength),
    vector: &mut Vec<Packet<B>>,
) -> impl FnMut(Unread<B>) {
    let ports = &state.ports;
    move |Unread { buffer, port }| {
        if vector.len() < chunk.described() {
            buffer.prefetch();
        }
        let meta = Meta { handed: 1, ..ports.receiver(port).fresh };
        vector.push(Packet { buffer, meta });
    }
}

impl State {
    /// Sees to a note of another worker.
    fn hear(&mut self, note: Note) {
        let Self { sessions, neighbours, ports, routes, now_ns, .. } = self;
        match note {
            Note::Station(heard) => neighbours.hear(heard, *now_ns),
            Note::InUse(name) => sessions.peers.name(name, *now_ns, || Self::way(ports, routes, name)),
            Note::Answered(name, answer) => sessions.peers.answered(name, answer, *now_ns),
            Note::Began(name, stamp) => sessions.peers.began(name, stamp, *now_ns),
            Note::Narrow(peer, mtu) => sessions.peers.narrow(peer, mtu, *now_ns),
            // The directory has read them.
            Note::Owns(_) | Note::Left(_) => {}
        }
    }
}

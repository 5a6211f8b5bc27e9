//! Packets that wait for the Ethernet address of their next hop. While they do they are counted nowhere, and once they leave
//! they are; only what their flow has taken down, which waits to be of an application, stays with it.

use super::{TRASH_ROOM, Worker};
use crate::counters::DropReason;
use crate::frame::{Came, Meta, NextHop, Packet, VECTOR};
use crate::held::Waiting;
use crate::nodes;
use crate::port::Port;
use crate::receipt::{Counted, Receipt};
use crate::state::{Ended, FlowKey, Lookup, SessionIndex, State, StepIndex};
use packet::ethernet::{self, MacAddress};
use packet::{Buffer, FiveTuple};
use rules::Direction;

impl<P: Port> Worker<P> {
    /// Lets a packet wait for its next hop, unless that has told its address behind it in the same vector.
    pub(super) fn hold(&mut self, packet: Packet<P::Buffer>) {
        let Meta { receipt, next_hop, step, .. } = packet.meta;
        if let Some(mac) = self.state.neighbours.known(next_hop) {
            return self.leave_at_last(packet, mac);
        }
        if matches!(receipt.counted(), Counted::Step(_)) {
            self.state.take_back(receipt);
        }
        let (waiting, now_ns) = ((packet.buffer, receipt), self.state.now_ns);
        // What was kept for a user is not lost for his having been woken: it has its place until it leaves.
        if self.is_resuming && self.kept.has_room_beside(self.held.woken()) {
            return self.held.keep_woken(next_hop, waiting, now_ns);
        }
        let came = nodes::may_hear(&self.state, &packet.meta).then(|| Came::of(&packet.meta));
        let awaiting = (next_hop, self.who_chose(step), came);
        if let Err((buffer, receipt)) = self.held.keep(awaiting, waiting, now_ns) {
            forget(&mut self.state, receipt);
            self.discard(buffer, DropReason::NeighbourUnresolved);
        }
    }

    fn leave_at_last(&mut self, mut packet: Packet<P::Buffer>, mac: MacAddress) {
        let Meta { receipt, next_hop: NextHop { port, .. }, .. } = packet.meta;
        match put_header(&mut packet.buffer, (mac, self.state.ports.get(port).mac)) {
            Some(()) => self.lanes[usize::from(port)].push(packet.buffer, receipt),
            None => self.lose(packet, DropReason::NoHeadroom),
        }
    }

    /// The session whose user says where a packet goes: on a plain network. Where a tunnel ends, its rules say.
    fn who_chose(&self, step: StepIndex) -> SessionIndex {
        if step == StepIndex::NONE {
            return SessionIndex::NONE;
        }
        let cells = &self.state.sessions.cells;
        if cells.step(step).tunnels() { SessionIndex::NONE } else { cells.session(step) }
    }

    pub(super) fn release_held(&mut self) {
        for next_hop in std::mem::take(&mut self.state.neighbours.learnt) {
            if let Lookup::Known(mac) = self.state.neighbours.find(next_hop, self.state.now_ns) {
                // Many may have waited: there is to be room for those of the next.
                while self.release_some(next_hop, mac) {
                    self.make_room();
                }
                self.make_room();
            }
        }
    }

    /// Lets out what waited for a next hop, as many as a vector has; whether more may have.
    fn release_some(&mut self, next_hop: NextHop, mac: MacAddress) -> bool {
        let Self { held, state, lanes, counters, trash, .. } = self;
        let (lane, ours) = (&mut lanes[usize::from(next_hop.port)], state.ports.get(next_hop.port).mac);
        let mut released = 0;
        for Waiting { mut buffer, receipt, .. } in held.release(next_hop).take(VECTOR) {
            released += 1;
            match put_header(&mut buffer, (mac, ours)) {
                Some(()) => {
                    state.count_again(receipt);
                    lane.push(buffer, receipt);
                }
                None => {
                    counters.count_drops(DropReason::NoHeadroom, 1);
                    throw_away(trash, buffer);
                }
            }
        }
        released == VECTOR
    }

    /// Gives up what has waited too long, and asks again for those whose answer, or the request for it, may have been lost.
    pub(super) fn expire_held(&mut self) {
        let Self { held, state, counters, trash, rest, .. } = self;
        for Waiting { buffer, receipt, session, came, .. } in held.late(state.now_ns) {
            forget(state, receipt);
            let key = user_key(&buffer);
            let has_room = session != SessionIndex::NONE && rest.may_tell();
            let may_hear = |_: &Came| has_room && state.icmp_errors.nowhere.take(key.user(), state.now_ns);
            if let Some(came) = came.filter(may_hear) {
                let meta = Meta { key, ..came.meta(session) };
                rest.tell(Packet { buffer, meta }, DropReason::NeighbourUnresolved);
                continue;
            }
            counters.count_drops(DropReason::NeighbourUnresolved, 1);
            throw_away(trash, buffer);
        }
        for next_hop in held.awaited() {
            state.neighbours.find(next_hop, state.now_ns);
        }
        self.ask_neighbours();
        self.run_rest();
    }

    /// Counts fragments to us that waited for others of their datagram, and do no more.
    pub(super) fn count_gathered(&mut self) {
        let Ended { whole, senseless, incomplete } = self.state.fragments.ended();
        self.counters.consumed += whole;
        self.counters.count_drops(DropReason::BadFragment, senseless);
        self.counters.count_drops(DropReason::FragmentsIncomplete, incomplete);
    }

    /// The rules of a session change, or it goes: what waits is counted by those that let it pass, as if it left now. Should
    /// it be dropped in the end, it stays counted.
    pub(super) fn settle_held(&mut self, session: SessionIndex) {
        self.held.disown(session);
        for receipt in self.held.receipts() {
            if self.state.is_of(*receipt, session) {
                self.state.count_again(*receipt);
                *receipt = Receipt::NONE;
            }
        }
    }
}

/// Puts the Ethernet header on that a packet waited for: to a station, from us.
fn put_header<B: Buffer>(buffer: &mut B, (to, from): (MacAddress, MacAddress)) -> Option<()> {
    let header = ethernet::Header::new(to, from, nodes::ethertype(buffer.data()));
    nodes::push_ethernet(buffer, header)
}

/// The key of a user's packet, by which errors are meted out.
fn user_key<B: Buffer>(buffer: &B) -> FlowKey {
    let parsed = FiveTuple::parse(buffer.data());
    parsed.map_or(FlowKey::NONE, |parsed| FlowKey::new(&parsed.tuple, Direction::Uplink))
}

/// More may be late at once than are freed at once.
fn throw_away<B: Buffer>(trash: &mut Vec<B>, buffer: B) {
    if trash.len() >= TRASH_ROOM {
        B::free_all(trash);
    }
    trash.push(buffer);
}

/// A packet that waited, or was to, does not leave.
fn forget(state: &mut State, receipt: Receipt) {
    if matches!(receipt.counted(), Counted::Flow(_)) {
        state.take_back(receipt);
    }
}

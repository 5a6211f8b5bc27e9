//! Flows whose first packets have not yet said of what application they are: what is looked at, and what they have used
//! meanwhile, which is counted once it is known by which rules.

use super::flow_key::FlowKey;
use super::flows::{Circumstances, Place};
use super::memory;
use super::session::SessionIndex;
use super::table::Table;
use dpi::extract::Inspection;
use rules::Arrival;
use rules::Direction;

/// Flows that are looked at for one that gives way.
const CANDIDATES: usize = 8;

/// A flow that is looked at; no other ever has the same until 65,536 others had its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    place: u16,
    turn: u16,
}

impl Ticket {
    /// Of no flow.
    pub(crate) const NONE: Self = Self { place: u16::MAX, turn: 0 };

    /// Whether it is one.
    #[inline]
    pub(crate) fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// As one number.
    pub(crate) const fn bits(self) -> u32 {
        (self.turn as u32) << 16 | self.place as u32
    }

    /// Of [`Ticket::bits`].
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self { place: bits as u16, turn: (bits >> 16) as u16 }
    }
}

/// What the packets of one direction have used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deferred {
    /// The last of them, as classifiers see it...
    pub(crate) arrival: Option<Arrival>,
    /// ... and as the flow table does.
    pub(crate) circumstances: Circumstances,
    /// Of the rules by which it was the session's.
    pub(crate) generation: u32,
    pub(crate) packets: u32,
    pub(crate) bytes: u32,
}

/// One flow. What is read for each packet stands first, in few cache lines of one page or two; that is why the order is given.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Waiter {
    key: FlowKey,
    hash: u64,
    seen_ns: u64,
    turn: u16,
    /// Packets of both directions.
    pub(crate) packets: u16,
    /// By [`Direction`].
    pub(crate) deferred: [Deferred; 2],
    pub(crate) inspection: Inspection,
}

/// So many of its first bytes.
const HEAD: usize = std::mem::offset_of!(Waiter, inspection) + Inspection::HEAD;
const _: () = assert!(HEAD <= 9 * 64, "nine cache lines a packet of a flow that waits");

impl Waiter {
    fn none() -> Self {
        Self {
            key: FlowKey::NONE,
            hash: 0,
            turn: 0,
            packets: 0,
            deferred: [Deferred::default(); 2],
            seen_ns: 0,
            inspection: Inspection::new(),
        }
    }

    /// The name of the flow.
    pub(crate) const fn key(&self) -> &FlowKey {
        &self.key
    }

    /// The network of the flow's user.
    pub(crate) const fn network(&self) -> u16 {
        self.key.network()
    }
}

/// All of a worker, in memory of fixed size.
pub(crate) struct Waiting {
    waiters: Box<[Waiter]>,
    /// By waiter: whose flow it is. By themselves, so that those of one are found without a look at the others.
    owners: Box<[SessionIndex]>,
    free: Vec<u16>,
    /// From hashes of flows.
    by_flow: Table,
    swept: usize,
    /// Which gives way next where all are taken.
    next: usize,
}

impl Waiting {
    /// Room for `limit` flows, 65,535 at most.
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.clamp(1, usize::from(u16::MAX));
        Self {
            waiters: (0..limit).map(|_| Waiter::none()).collect(),
            owners: vec![SessionIndex::NONE; limit].into(),
            free: (0..limit as u16).rev().collect(),
            by_flow: Table::new(limit),
            swept: 0,
            next: 0,
        }
    }

    /// Flows that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiters.len() - self.free.len()
    }

    /// The flow of a packet, if it waits, and whose it is. Another of the same hash is in the way: `Err`.
    pub(crate) fn find(&self, key: &FlowKey, hash: u64) -> Result<Option<(Ticket, SessionIndex)>, InTheWay> {
        let Some(place) = self.by_flow.get(hash) else { return Ok(None) };
        let place = place as u16;
        match self.waiters.get(usize::from(place)) {
            Some(waiter) if waiter.key == *key => {
                let owner = self.owners.get(usize::from(place)).copied().unwrap_or(SessionIndex::NONE);
                Ok(Some((Ticket { place, turn: waiter.turn }, owner)))
            }
            _ => Err(InTheWay),
        }
    }

    /// Asks for what tells whether a flow of this hash waits.
    #[inline]
    pub(crate) fn prefetch_place(&self, hash: u64) {
        self.by_flow.prefetch(hash);
    }

    /// Asks for the flow of this hash, if it waits.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(waiter) = self.by_flow.get(hash).and_then(|place| self.waiters.get(place as usize)) {
            memory::prefetch_first(waiter, HEAD);
        }
    }

    /// The one that has to give way before another can wait; `None` where there is room. Of some, it is of the session that has
    /// most, as `count` tells: who opens very many and says nothing displaces its own.
    pub(crate) fn surplus(&mut self, count: impl Fn(SessionIndex) -> u16) -> Option<Ticket> {
        if !self.free.is_empty() {
            return None;
        }
        let places = self.waiters.len();
        let first = self.next;
        self.next = (first + 1) % places;
        let candidates = (0..CANDIDATES.min(places)).map(|ahead| (first + ahead) % places);
        // Of equals the first, so that all have their turn.
        let place = candidates.rev().max_by_key(|place| count(self.owners[*place]))?;
        self.ticket_at(place)
    }

    /// Lets a flow wait that does not yet; there is room.
    pub(crate) fn open(
        &mut self,
        (key, hash): (&FlowKey, u64),
        session: SessionIndex,
        now_ns: u64,
    ) -> Ticket {
        let Some(place) = self.free.pop() else { return Ticket::NONE };
        let waiter = &mut self.waiters[usize::from(place)];
        let turn = waiter.turn.wrapping_add(1);
        waiter.inspection.reset();
        (waiter.key, waiter.hash, waiter.turn, waiter.packets) = (*key, hash, turn, 0);
        (waiter.deferred, waiter.seen_ns) = ([Deferred::default(); 2], now_ns);
        self.owners[usize::from(place)] = session;
        let inserted = self.by_flow.insert(hash, u32::from(place));
        debug_assert!(inserted.is_ok(), "there are as many places as names");
        Ticket { place, turn }
    }

    /// The flow of a ticket, if it still waits.
    pub(crate) fn get(&mut self, ticket: Ticket) -> Option<&mut Waiter> {
        let waiter = self.waiters.get_mut(usize::from(ticket.place))?;
        (waiter.turn == ticket.turn && waiter.key != FlowKey::NONE).then_some(waiter)
    }

    /// Notes a packet of a flow that goes on waiting, and of which generation the rules are that it goes by, and when.
    pub(crate) fn note(
        &mut self,
        ticket: Ticket,
        packet: Place<'_>,
        (arrival, generation, now_ns): (Arrival, u32, u64),
    ) {
        let Some(waiter) = self.get(ticket) else { return };
        let deferred = &mut waiter.deferred[packet.direction as usize];
        (deferred.arrival, deferred.circumstances) = (Some(arrival), packet.circumstances);
        deferred.generation = generation;
        waiter.seen_ns = now_ns;
    }

    /// Takes down what a packet used; false where its flow waits no longer.
    pub(crate) fn defer(&mut self, ticket: Ticket, direction: Direction, bytes: u32) -> bool {
        let Some(waiter) = self.get(ticket) else { return false };
        let deferred = &mut waiter.deferred[direction as usize];
        deferred.packets += 1;
        deferred.bytes = deferred.bytes.saturating_add(bytes);
        true
    }

    /// A packet that was taken down has not left; of a flow that waits no longer, nobody knows where it was counted.
    pub(crate) fn take_back(&mut self, ticket: Ticket, direction: Direction, bytes: u32) {
        let Some(waiter) = self.get(ticket) else { return };
        let deferred = &mut waiter.deferred[direction as usize];
        deferred.packets = deferred.packets.saturating_sub(1);
        deferred.bytes = deferred.bytes.saturating_sub(bytes);
    }

    /// For which session a flow waits.
    pub(crate) fn owner(&self, ticket: Ticket) -> Option<SessionIndex> {
        self.owners.get(usize::from(ticket.place)).copied()
    }

    /// Takes out what a flow has used so far, which goes on waiting.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<(SessionIndex, [Deferred; 2])> {
        let session = *self.owners.get(usize::from(ticket.place))?;
        let waiter = self.get(ticket)?;
        let taken = waiter.deferred;
        for deferred in &mut waiter.deferred {
            (deferred.packets, deferred.bytes) = (0, 0);
        }
        Some((session, taken))
    }

    /// Takes a flow out, with all that is known of it.
    pub(super) fn carry_off(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.get(ticket)?;
        let fresh = Waiter { turn: waiter.turn, ..Waiter::none() };
        let taken = std::mem::replace(waiter, fresh);
        self.vacate(ticket, taken.hash);
        Some(taken)
    }

    /// Takes in a flow that waited elsewhere; gives it back where there is no room, or one of its hash waits.
    pub(super) fn adopt(&mut self, waiter: Waiter, session: SessionIndex) -> Option<Waiter> {
        if self.by_flow.get(waiter.hash).is_some() {
            return Some(waiter);
        }
        let Some(place) = self.free.pop() else { return Some(waiter) };
        let inserted = self.by_flow.insert(waiter.hash, u32::from(place));
        debug_assert!(inserted.is_ok(), "there are as many places as names");
        self.owners[usize::from(place)] = session;
        let slot = &mut self.waiters[usize::from(place)];
        *slot = Waiter { turn: slot.turn.wrapping_add(1), ..waiter };
        None
    }

    /// It waits no longer.
    pub(crate) fn close(&mut self, ticket: Ticket) {
        let Some(waiter) = self.get(ticket) else { return };
        let hash = waiter.hash;
        waiter.key = FlowKey::NONE;
        self.vacate(ticket, hash);
    }

    fn vacate(&mut self, ticket: Ticket, hash: u64) {
        self.owners[usize::from(ticket.place)] = SessionIndex::NONE;
        self.by_flow.remove(hash);
        self.free.push(ticket.place);
    }

    /// A flow of a session, at `from` or behind.
    pub(crate) fn of_session(&self, session: SessionIndex, from: usize) -> Option<(usize, Ticket)> {
        let place = self.owners.iter().skip(from).position(|owner| *owner == session)? + from;
        Some((place, self.ticket_at(place)?))
    }

    /// Looks at one place, for a flow that waits for no packet for longer than `patience_ns`.
    pub(crate) fn sweep(&mut self, now_ns: u64, patience_ns: u64) -> Option<Ticket> {
        self.swept = (self.swept + 1) % self.waiters.len();
        let is_late = now_ns.saturating_sub(self.waiters[self.swept].seen_ns) > patience_ns;
        if is_late { self.ticket_at(self.swept) } else { None }
    }

    fn ticket_at(&self, place: usize) -> Option<Ticket> {
        let waiter = self.waiters.get(place).filter(|waiter| waiter.key != FlowKey::NONE)?;
        Some(Ticket { place: place as u16, turn: waiter.turn })
    }
}

/// A flow that waits has the same hash as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InTheWay;

#[cfg(test)]
mod tests {
    use super::*;
    use packet::five_tuple::FiveTuple;

    /// Two that have one each stay, and so on until all have one.
    #[test]
    fn whose_flows_are_most_has_to_give_way() {
        let mut waiting = Waiting::new(6);
        let mut counts = [0_u16; 3];
        for (number, owner) in [2, 0, 2, 2, 1, 2].into_iter().enumerate() {
            assert!(waiting.surplus(|_| 1).is_none(), "there is room");
            let tuple = FiveTuple { source_port: number as u16, version: 4, ..FiveTuple::default() };
            let key = FlowKey::new(&tuple, Direction::Uplink);
            assert!(waiting.open((&key, key.hash(1)), SessionIndex(owner), 0).is_some());
            counts[owner as usize] += 1;
        }
        for _ in 0..3 {
            let gone = waiting.surplus(|owner| counts[owner.0 as usize]).unwrap();
            let owner = waiting.owners[usize::from(gone.place)];
            assert_eq!(owner, SessionIndex(2));
            counts[2] -= 1;
            waiting.close(gone);
            let tuple = FiveTuple { source_port: 100 + counts[2], version: 4, ..FiveTuple::default() };
            let key = FlowKey::new(&tuple, Direction::Uplink);
            counts[0] += u16::from(counts[2] == 3);
            let next = if counts[2] == 3 { 0 } else { 2 };
            waiting.open((&key, key.hash(1)), SessionIndex(next), 0);
            counts[2] += u16::from(next == 2);
        }
    }
}

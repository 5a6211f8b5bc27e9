//! Packets kept for users who sleep (TS 29.244 5.2.4): in order, bounded for each session and for all together.

use crate::frame::{Meta, Packet};
use crate::state::{SessionIndex, Table};
use arrayvec::ArrayVec;
use rules::{PdrId, Seid};
use std::collections::VecDeque;

/// Sessions looked at in one search for packets kept too long, at the least; ...
const SEARCH: usize = 64;
/// ... all of them in so many searches.
const ROUND: usize = 16;
/// Rules of a session of whose packets the control plane is told. A session that sleeps has one for each QoS flow, and
/// whoever was told of this many has been told enough.
const TOLD: usize = 8;

/// Places for what was told of packets that were not kept.
const UNKEPT: usize = 1_024;
/// Between two times of telling of packets of one rule that are not kept, ...
const AGAIN_NS: u64 = 10_000_000_000;
/// ... and of different rules that have one place.
const GAP_NS: u64 = 100_000_000;
/// Rules of a session of whose kept packets the control plane has heard.
pub(crate) type Told = ArrayVec<PdrId, TOLD>;

/// All packets a worker keeps.
pub(crate) struct Kept<B> {
    slots: Box<[Slot<B>]>,
    free: Vec<u32>,
    queues: Vec<Queue>,
    free_queues: Vec<u32>,
    by_session: Table,
    /// Sessions whose packets there was no room to tell of: each once.
    untold: VecDeque<SessionIndex>,
    searched: usize,
}

struct Slot<B> {
    packet: Option<Packet<B>>,
    until_ns: u64,
    next: u32,
}

#[derive(Clone, Copy)]
struct Queue {
    session: SessionIndex,
    first: u32,
    last: u32,
    length: u32,
    told: [PdrId; TOLD],
    told_length: u8,
    /// Whether it is among the untold.
    is_listed: bool,
}

const NONE: u32 = u32::MAX;

impl Queue {
    const fn of(session: SessionIndex) -> Self {
        Self {
            session,
            first: NONE,
            last: NONE,
            length: 0,
            told: [PdrId(0); TOLD],
            told_length: 0,
            is_listed: false,
        }
    }

    fn is_untold(&self, pdr: PdrId) -> bool {
        let length = usize::from(self.told_length);
        length < TOLD && !self.told[..length].contains(&pdr)
    }

    fn tell(&mut self, pdr: PdrId) {
        if let Some(place) = self.told.get_mut(usize::from(self.told_length)) {
            *place = pdr;
            self.told_length += 1;
        }
    }
}

impl<B> Kept<B> {
    /// Room for so many packets.
    pub(crate) fn new(limit: usize) -> Self {
        let places = 0..u32::try_from(limit).unwrap_or(NONE);
        Self {
            slots: places.clone().map(|_| Slot { packet: None, until_ns: 0, next: NONE }).collect(),
            free: places.rev().collect(),
            queues: Vec::with_capacity(limit),
            free_queues: Vec::with_capacity(limit),
            by_session: Table::new(limit),
            untold: VecDeque::with_capacity(limit),
            searched: 0,
        }
    }

    /// Keeps a packet until a moment, unless its session has `most` already; gives it back where there is no room.
    pub(crate) fn keep(
        &mut self,
        (session, most): (SessionIndex, u16),
        packet: Packet<B>,
        until_ns: u64,
    ) -> Result<(), Packet<B>> {
        if !self.has_room((session, most)) {
            return Err(packet);
        }
        let Some(slot) = self.free.pop() else { return Err(packet) };
        self.slots[slot as usize] = Slot { packet: Some(packet), until_ns, next: NONE };
        let known = self.by_session.get(u64::from(session.0));
        let queue = known.unwrap_or_else(|| self.open(session));
        let queue = &mut self.queues[queue as usize];
        match queue.last {
            NONE => queue.first = slot,
            last => self.slots[last as usize].next = slot,
        }
        queue.last = slot;
        queue.length += 1;
        Ok(())
    }

    /// Whether one more packet of a session would be kept that may have so many.
    pub(crate) fn has_room(&self, (session, most): (SessionIndex, u16)) -> bool {
        self.count(session) < usize::from(most) && !self.free.is_empty()
    }

    /// Whether the control plane still has to be told of the session's packets that matched a rule; [`Kept::told`] says
    /// that it was.
    pub(crate) fn is_untold(&self, session: SessionIndex, pdr: PdrId) -> bool {
        let queue = self.by_session.get(u64::from(session.0));
        queue.is_some_and(|queue| self.queues[queue as usize].is_untold(pdr))
    }

    /// The control plane has been told.
    pub(crate) fn told(&mut self, session: SessionIndex, pdr: PdrId) {
        if let Some(queue) = self.by_session.get(u64::from(session.0)) {
            self.queues[queue as usize].tell(pdr);
        }
    }

    /// There was no room to tell the control plane of a session's packets: [`Kept::next_untold`] says when it is its turn.
    pub(crate) fn tell_later(&mut self, session: SessionIndex) {
        let Some(at) = self.by_session.get(u64::from(session.0)) else { return };
        // A queue that was closed may stand there still: then it is told of too early, which is no harm.
        if self.untold.len() < self.slots.len()
            && !std::mem::replace(&mut self.queues[at as usize].is_listed, true)
        {
            self.untold.push_back(session);
        }
    }

    /// The next session of which to tell what there was no room for.
    pub(crate) fn next_untold(&mut self) -> Option<SessionIndex> {
        let session = self.untold.pop_front()?;
        if let Some(at) = self.by_session.get(u64::from(session.0)) {
            self.queues[at as usize].is_listed = false;
        }
        Some(session)
    }

    /// Whether a session has packets kept.
    pub(crate) fn has(&self, session: SessionIndex) -> bool {
        self.by_session.get(u64::from(session.0)).is_some()
    }

    /// The control plane may have forgotten what it was told of a session.
    pub(crate) fn forget_told(&mut self, session: SessionIndex) {
        if let Some(queue) = self.by_session.get(u64::from(session.0)) {
            self.queues[queue as usize].told_length = 0;
        }
    }

    /// The first packet of a session that the control plane has yet to be told of; `rule` says by which rule it would be.
    pub(crate) fn first_untold(
        &self,
        session: SessionIndex,
        rule: impl Fn(&Meta) -> Option<PdrId>,
    ) -> Option<Meta> {
        let queue = self.queues[self.by_session.get(u64::from(session.0))? as usize];
        let mut slot = queue.first;
        while slot != NONE {
            let Slot { packet, next, .. } = &self.slots[slot as usize];
            let meta = packet.as_ref().map(|packet| packet.meta);
            let is_untold = |meta: &Meta| rule(meta).is_some_and(|pdr| queue.is_untold(pdr));
            if let Some(meta) = meta.filter(is_untold) {
                return Some(meta);
            }
            slot = *next;
        }
        None
    }

    /// What the control plane has been told of a session's packets.
    pub(crate) fn what_was_told(&self, session: SessionIndex) -> Told {
        let queue = self.by_session.get(u64::from(session.0)).and_then(|at| self.queues.get(at as usize));
        let told = |queue: &Queue| queue.told.into_iter().take(queue.told_length.into()).collect();
        queue.map_or_else(Told::new, told)
    }

    /// Packets kept for a session.
    pub(crate) fn count(&self, session: SessionIndex) -> usize {
        let queue = self.by_session.get(u64::from(session.0)).and_then(|at| self.queues.get(at as usize));
        queue.map_or(0, |queue| queue.length as usize)
    }

    /// Appends all packets of a session, oldest first.
    pub(crate) fn release(&mut self, session: SessionIndex, into: &mut Vec<Packet<B>>) {
        while let Some(packet) = self.pop(session) {
            into.push(packet);
        }
    }

    /// Appends packets that have been kept until before now, of some sessions in turn. Of a session none goes before those that
    /// came before it: with packets that wait longer, those behind them do.
    pub(crate) fn expire(&mut self, now_ns: u64, into: &mut Vec<Packet<B>>) {
        for _ in 0..self.queues.len().div_ceil(ROUND).max(SEARCH).min(self.queues.len()) {
            self.searched = (self.searched + 1) % self.queues.len();
            let Queue { session, first, .. } = self.queues[self.searched];
            let mut slot = first;
            if slot != NONE && self.slots[slot as usize].until_ns < now_ns {
                // Nobody came for them: who was told of them hears of the next.
                self.queues[self.searched].told_length = 0;
            }
            while slot != NONE && self.slots[slot as usize].until_ns < now_ns {
                slot = self.slots[slot as usize].next;
                into.extend(self.pop(session));
            }
        }
    }

    /// Whether there is room for one more, beside so many that were kept, and wait for something else.
    pub(crate) fn has_room_beside(&self, others: usize) -> bool {
        self.len() + others < self.slots.len()
    }

    /// Packets kept now.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn open(&mut self, session: SessionIndex) -> u32 {
        let queue = Queue::of(session);
        let at = match self.free_queues.pop() {
            Some(at) => {
                self.queues[at as usize] = queue;
                at
            }
            None => {
                self.queues.push(queue);
                self.queues.len() as u32 - 1
            }
        };
        let inserted = self.by_session.insert(u64::from(session.0), at);
        debug_assert!(inserted.is_ok(), "every queue has a packet, and there is room for each packet");
        at
    }

    fn pop(&mut self, session: SessionIndex) -> Option<Packet<B>> {
        let at = self.by_session.get(u64::from(session.0))?;
        let queue = &mut self.queues[at as usize];
        let slot = queue.first;
        queue.first = self.slots[slot as usize].next;
        queue.length -= 1;
        if queue.length == 0 {
            *queue = Queue { first: NONE, last: NONE, ..*queue };
            self.by_session.remove(u64::from(session.0));
            self.free_queues.push(at);
        }
        self.free.push(slot);
        self.slots[slot as usize].packet.take()
    }
}

/// A rule of a session, and the generation of its rules: once these change, what was told does not count.
pub(crate) type Rule = (Seid, PdrId, u32);

/// Rules whose packets found no room, and when the control plane was told of them. Where more of them have one place than
/// are told of in time, they have to wait.
pub(crate) struct Unkept {
    places: Box<[Option<(Rule, u64)>]>,
}

impl Unkept {
    pub(crate) fn new() -> Self {
        Self { places: vec![None; UNKEPT].into_boxed_slice() }
    }

    /// Whether the control plane is to be told of a packet that was not kept.
    pub(crate) fn is_untold(&self, rule: Rule, now_ns: u64) -> bool {
        self.places[Self::place(rule)].is_none_or(|(known, told_ns)| {
            let gap_ns = if known == rule { AGAIN_NS } else { GAP_NS };
            now_ns.saturating_sub(told_ns) >= gap_ns
        })
    }

    /// The control plane has been told.
    pub(crate) fn told(&mut self, rule: Rule, now_ns: u64) {
        self.places[Self::place(rule)] = Some((rule, now_ns));
    }

    /// By Fibonacci hashing.
    fn place((seid, pdr, _): Rule) -> usize {
        let mixed = (seid.0 ^ u64::from(pdr.0) << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize % UNKEPT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Meta;
    use crate::side::Side;
    use rules::Interface;

    const SLEEPER: SessionIndex = SessionIndex(7);

    fn packet(name: char) -> Packet<char> {
        Packet { buffer: name, meta: Meta::new(0, Side::of(Interface::Core)) }
    }

    fn names(packets: Vec<Packet<char>>) -> String {
        packets.into_iter().map(|packet| packet.buffer).collect()
    }

    fn keep(kept: &mut Kept<char>, session: u32, name: char, until_ns: u64) -> bool {
        kept.keep((SessionIndex(session), 2), packet(name), until_ns).is_ok()
    }

    #[test]
    fn packets_leave_in_order_and_limits_hold() {
        let mut kept = Kept::new(3);
        let taken = [(7, 'a'), (7, 'b'), (7, 'c'), (8, 'd'), (9, 'e')].map(|(s, n)| keep(&mut kept, s, n, 0));
        assert_eq!(taken, [true, true, false, true, false]);
        let mut out = Vec::new();
        kept.release(SessionIndex(7), &mut out);
        assert_eq!(names(out), "ab");
        assert_eq!(kept.len(), 1);
        assert!(keep(&mut kept, 7, 'f', 0));
    }

    #[test]
    fn the_control_plane_is_told_once_of_each_rule_until_all_have_left() {
        let mut kept = Kept::new(3);
        assert!(!kept.is_untold(SLEEPER, PdrId(2)));
        keep(&mut kept, 7, 'a', 0);
        assert!(kept.is_untold(SLEEPER, PdrId(2)));
        kept.told(SLEEPER, PdrId(2));
        keep(&mut kept, 7, 'b', 0);
        assert!(!kept.is_untold(SLEEPER, PdrId(2)));
        assert!(kept.is_untold(SLEEPER, PdrId(3)));
        kept.release(SLEEPER, &mut Vec::new());
        keep(&mut kept, 7, 'c', 0);
        assert!(kept.is_untold(SLEEPER, PdrId(2)));
    }

    #[test]
    fn the_control_plane_is_told_of_so_many_rules() {
        let mut kept = Kept::new(3);
        keep(&mut kept, 7, 'a', 0);
        let told: Vec<bool> = (0..10)
            .map(|pdr| {
                let is_untold = kept.is_untold(SLEEPER, PdrId(pdr));
                kept.told(SLEEPER, PdrId(pdr));
                is_untold
            })
            .collect();
        assert_eq!(told, [[true; TOLD].as_slice(), &[false; 2]].concat());
    }

    #[test]
    fn the_control_plane_is_told_again_after_packets_were_given_up() {
        let mut kept = Kept::new(3);
        keep(&mut kept, 7, 'a', 10);
        keep(&mut kept, 7, 'b', 20);
        kept.told(SLEEPER, PdrId(2));
        kept.expire(10, &mut Vec::new());
        assert!(!kept.is_untold(SLEEPER, PdrId(2)));
        kept.expire(20, &mut Vec::new());
        assert!(kept.is_untold(SLEEPER, PdrId(2)));
    }

    #[test]
    fn nothing_is_kept_for_ever() {
        let mut kept = Kept::new(3);
        keep(&mut kept, 7, 'a', 10);
        keep(&mut kept, 7, 'b', 20);
        let mut out = Vec::new();
        kept.expire(20, &mut out);
        assert_eq!(names(out), "a");
        assert_eq!(kept.len(), 1);
    }

    #[test]
    fn nothing_overtakes_what_waits_longer() {
        let mut kept = Kept::new(3);
        keep(&mut kept, 7, 'a', u64::MAX);
        keep(&mut kept, 7, 'b', 10);
        keep(&mut kept, 8, 'c', 10);
        let mut out = Vec::new();
        kept.expire(20, &mut out);
        assert_eq!(names(out), "c");
    }
}

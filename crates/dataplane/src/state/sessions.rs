//! The sessions of a worker.

use super::account::Count;
use super::apart::Aparts;
use super::cells::{Cell, Cells, MOST as MOST_CELLS, STEPS};
use super::framed::{Framed, around};
use super::index::Index;
use super::installation::{Installation, Installed, Refusal};
use super::lists::WholeStep;
use super::memory::{self, NoMemory};
use super::peers::{Name, Peers, Way};
use super::recent::Recent;
use super::session::{Key, Names, Session, SessionIndex, step_index};
use super::step::{Kind, StepIndex};
use super::usage::Ledger;
use crate::config::{Echo, PORTS_MAX};
use crate::lasting::Section;
use crate::worker::Query;
use dplink::UsageCounts;
use rules::{Instance, PdrId, Seid};

/// Tunnels, and user addresses, a session has on average at most, over all sessions.
pub(crate) const KEYS_PER_SESSION: usize = 2;

pub(crate) struct Sessions {
    /// A session's place does not change while it lives.
    pub(super) slots: Box<[Option<Session>]>,
    /// Places never given out begin here.
    fresh: u32,
    /// Places given back.
    free: Vec<u32>,
    by_seid: Index,
    pub(super) by_tunnel: Index,
    pub(super) by_user: Index,
    pub(crate) framed: Framed,
    /// By place, the network that its user's addresses are of; empty where there is one network.
    pub(super) instances: Box<[Instance]>,
    pub(crate) cells: Cells,
    pub(crate) peers: Peers,
    pub(super) aparts: Aparts,
    pub(super) recent: Recent,
    generation: u32,
    /// By port, how many tunnels there are [`Key::turned`].
    pub(super) turned: [u32; PORTS_MAX],
}

/// How much of everything.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) sessions: usize,
    pub(crate) pdrs: usize,
    pub(crate) peers: usize,
    pub(crate) aparts: usize,
    pub(crate) framed_routes: usize,
    pub(crate) catch_up_ns: u64,
    pub(crate) echo: Echo,
    pub(crate) has_instances: bool,
    /// Where cells lie, if not in memory that ends with the process.
    pub(crate) section: Option<Section>,
}

/// Cells for so many sessions and PDRs.
pub(crate) const fn cells(sessions: usize, pdrs: usize) -> usize {
    let cells = pdrs.div_ceil(STEPS);
    let cells = if cells > sessions { cells } else { sessions };
    if cells > MOST_CELLS { MOST_CELLS } else { cells }
}

/// There is a place and room for a session.
pub(crate) struct Admitted(u32);

impl Sessions {
    /// # Errors
    /// The machine has not the memory for so many PDRs.
    pub(crate) fn new(room: Room) -> Result<Self, NoMemory> {
        let places = 0..u32::try_from(room.sessions).unwrap_or(u32::MAX);
        let cells = cells(room.sessions, room.pdrs);
        Ok(Self {
            slots: memory::filled_with(places.len(), || None),
            fresh: 0,
            free: Vec::with_capacity(places.len()),
            by_seid: Index::new(room.sessions),
            by_tunnel: Index::new(room.sessions * KEYS_PER_SESSION),
            by_user: Index::new(room.sessions * KEYS_PER_SESSION),
            framed: Framed::new(room.framed_routes),
            instances: places.filter(|_| room.has_instances).map(|_| Instance::DEFAULT).collect(),
            cells: Cells::new(cells, room.sessions, room.section.as_ref())?,
            peers: Peers::new(room.peers, room.echo),
            aparts: Aparts::new(room.aparts),
            recent: Recent::new(Recent::METERS, room.catch_up_ns),
            generation: 0,
            turned: [0; PORTS_MAX],
        })
    }

    /// What a plain session takes of the tables of a worker with room for so many, and bytes of all of them.
    pub(crate) const fn tables(sessions: usize) -> [(&'static str, usize); 4] {
        [
            (
                "cell: an account and two steps, and whose it is",
                sessions * (size_of::<Cell>() + Cells::OWNER_BYTES),
            ),
            ("session", sessions * size_of::<Option<Session>>()),
            ("where it is found by its SEID", Index::bytes(sessions)),
            (
                "where it is found by two tunnels and two addresses",
                2 * Index::bytes(sessions * KEYS_PER_SESSION),
            ),
        ]
    }

    /// What tables take beyond that, once there are as many PDRs as there may be: their cells, lists of all steps, and where
    /// cells and places of sessions are free.
    pub(crate) const fn pdr_bytes(sessions: usize, pdrs: usize) -> usize {
        let all = cells(sessions, pdrs);
        let places = sessions * (size_of::<u32>() + size_of::<Instance>());
        (all - sessions) * (size_of::<Cell>() + Cells::OWNER_BYTES) + all * Cells::LATER_BYTES + places
    }

    /// A key has got an owner that it did not have. What flows know of networks around it holds no longer.
    pub(crate) fn overtake(&mut self, key: Key) {
        for network in around(key, self.framed.lengths()) {
            let place = self.framed.get(network);
            place.into_iter().for_each(|place| self.renew(place));
        }
    }

    /// The same of more keys than anybody counted.
    pub(crate) fn overtake_all(&mut self) {
        let mut at = 0;
        while let Some(found) = self.framed.value_at(at) {
            found.into_iter().for_each(|place| self.renew(place));
            at += 1;
        }
    }

    /// A session's rules are as if they were new.
    fn renew(&mut self, place: u32) {
        let Some(session) = self.slots.get_mut(place as usize).and_then(Option::as_mut) else { return };
        self.generation = self.generation.wrapping_add(1).max(1);
        session.generation = self.generation;
        for number in 0..usize::from(session.places) {
            self.cells.renew(step_index(session.run.base, number), self.generation);
        }
    }

    /// The session of this name.
    pub(crate) fn by_seid(&self, seid: Seid) -> Option<SessionIndex> {
        let is_it = |place| self.get(SessionIndex(place)).is_some_and(|session| session.seid == seid);
        self.by_seid.get(seid.0, is_it).map(SessionIndex)
    }

    /// `None` only for [`SessionIndex::NONE`] and sessions that are gone.
    #[inline]
    pub(crate) fn get(&self, index: SessionIndex) -> Option<&Session> {
        self.slots.get(index.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, index: SessionIndex) -> Option<&mut Session> {
        self.slots.get_mut(index.0 as usize)?.as_mut()
    }

    /// The name of the PDR of a session that is tried in this place.
    pub(crate) fn pdr(&self, session: &Session, number: usize) -> PdrId {
        session.classifier.pdr(number).unwrap_or(self.cells.step(session.step(number)).pdr)
    }

    /// Asks for a session.
    #[inline]
    pub(crate) fn prefetch(&self, index: SessionIndex) {
        if let Some(slot) = self.slots.get(index.0 as usize) {
            memory::prefetch_all(slot);
        }
    }

    /// So many more flows of a session wait to be of an application.
    pub(super) fn count_waiting(&mut self, index: SessionIndex, more: i16) {
        if let Some(session) = self.get_mut(index) {
            session.waiting = session.waiting.saturating_add_signed(more);
        }
    }

    /// Sessions in force.
    pub(crate) fn len(&self) -> usize {
        self.by_seid.len()
    }

    /// PDRs that sessions take the room of, and of how many there is room.
    pub(crate) fn pdr_room(&self) -> [u64; 2] {
        [self.cells.used(), self.cells.limit()].map(|cells| (cells * STEPS) as u64)
    }

    /// The ledger of an account, and what was counted in it.
    pub(crate) fn ledger(&self, (index, place): (SessionIndex, u16)) -> Option<(&Ledger, Count)> {
        let session = self.get(index)?;
        let ledger = session.accounts.get(usize::from(place))?.ledger.as_ref()?;
        Some((ledger, self.cells.account(session.run.base, place).count))
    }

    /// Changes the ledger of an account, and what was counted in it.
    pub(crate) fn with_ledger<T>(
        &mut self,
        (index, place): (SessionIndex, u16),
        change: impl FnOnce(&mut Ledger, &mut Count) -> T,
    ) -> Option<T> {
        let session = self.slots.get_mut(index.0 as usize)?.as_mut()?;
        // What waited to be told may be of an account that other rules have taken away, and its cell with it.
        let ledger = session.accounts.get_mut(usize::from(place))?.ledger.as_mut()?;
        Some(self.cells.with_count((session.run.base, place), |count| change(ledger, count)))
    }

    /// Appends what a session has used to `counts`, which has the room.
    pub(crate) fn usage(&mut self, index: SessionIndex, now_ns: u64, counts: &mut Vec<UsageCounts>) {
        let Some(session) = self.slots.get(index.0 as usize).and_then(Option::as_ref) else { return };
        for (ledger, place) in session.ledgers() {
            let account = self.cells.account(session.run.base, place);
            counts.push(ledger.counts(&account.count, now_ns));
        }
    }

    /// Answers what a session has used; where it is reported, thresholds begin anew.
    pub(crate) fn query(&mut self, query: &mut Query, now_ns: u64) {
        let index = self.by_seid(query.seid).unwrap_or(SessionIndex::NONE);
        let Some(session) = self.slots.get_mut(index.0 as usize).and_then(Option::as_mut) else { return };
        let base = session.run.base;
        for (ledger, place) in session.ledgers_mut() {
            if !query.urrs.is_empty() && !query.urrs.contains(&ledger.urr) {
                continue;
            }
            self.cells.with_count((base, place), |count| {
                query.counts.push(ledger.counts(count, now_ns));
                ledger.begin_interval(count);
                if query.is_reported {
                    ledger.reported(count);
                }
            });
        }
    }

    /// Starts of traffic that were told are told again, with the next packet.
    pub(crate) fn await_starts(&mut self, index: SessionIndex) {
        let Some(session) = self.slots.get_mut(index.0 as usize).and_then(Option::as_mut) else { return };
        let base = session.run.base;
        for (ledger, place) in session.ledgers_mut() {
            self.cells.with_count((base, place), |count| ledger.await_start(count));
        }
    }

    /// Puts a session in force, in place of an older one of the same SEID; gives back what is no longer needed. `way`
    /// finds how packets reach a peer.
    pub(crate) fn install(
        &mut self,
        (Admitted(place), mut new): (Admitted, Box<Installation>),
        now_ns: u64,
        way: impl Fn(Name) -> Option<Way>,
    ) -> Installed {
        let old = self.slots[place as usize].take();
        self.enter_aparts(old.as_ref(), &mut new, now_ns);
        if let Some(old) = &old {
            self.retire((old, place), &mut new, now_ns);
        }
        self.put(place, &mut new, way);
        new.session = old;
        Installed { index: SessionIndex(place), spent: new }
    }

    /// Changes nothing unless the session can be installed whole, which is to be done next.
    pub(crate) fn admit(&mut self, new: &mut Installation) -> Result<Admitted, Refusal> {
        let own = self.by_seid(new.seid).map(|index| index.0);
        self.admit_keys(new.keys(), own)?;
        if self.peers.room() < self.peers.new_among(&new.peers) {
            return Err(Refusal::Peers);
        }
        if self.aparts.room() < self.new_aparts(own, new) {
            return Err(Refusal::Meters);
        }
        if own.is_none() && !self.has_place() {
            return Err(Refusal::Sessions);
        }
        let cells = new.steps.len().div_ceil(STEPS).max(new.accounts.len());
        let old = own.and_then(|place| self.slots[place as usize].as_ref());
        let run = match old.filter(|old| old.run.suits(cells)) {
            Some(old) => old.run,
            None => self.cells.allocate(cells).ok_or(Refusal::Rules)?,
        };
        new.session.iter_mut().for_each(|session| session.run = run);
        own.or_else(|| self.take_place()).map(Admitted).ok_or(Refusal::Sessions)
    }

    /// Whether there is a place for one more session.
    pub(super) const fn has_place(&self) -> bool {
        !self.free.is_empty() || (self.fresh as usize) < self.slots.len()
    }

    /// How many have been given out, whether or not they have been given back.
    pub(super) const fn places_used(&self) -> u32 {
        self.fresh
    }

    pub(super) fn take_place(&mut self) -> Option<u32> {
        let fresh = Some(self.fresh).filter(|fresh| (*fresh as usize) < self.slots.len());
        self.free.pop().or_else(|| {
            self.fresh += u32::from(fresh.is_some());
            fresh
        })
    }

    pub(super) fn leave_place(&mut self, place: u32) {
        self.free.push(place);
    }

    fn retire(&mut self, (old, place): (&Session, u32), new: &mut Installation, now_ns: u64) {
        // Connections that were put something into go on, whatever becomes of the rule.
        if self.steps_of(old).any(|step| self.cells.step(step).kind == Kind::Enrich) {
            new.steps.iter_mut().for_each(|step| step.enriches());
        }
        // What comes back from where users were sent is still to seem to come from elsewhere.
        if self.steps_of(old).any(|step| self.cells.step(step).may_readdress()) {
            new.steps.iter_mut().for_each(|step| step.readdresses());
        }
        self.carry(old, new, now_ns);
        self.set_recent_aside(old, new);
        self.forget(old, place);
        self.take_recent_up(new);
        if new.session.as_ref().is_none_or(|new| old.run != new.run) {
            self.cells.release(old.run);
        }
    }

    pub(super) fn steps_of(&self, session: &Session) -> impl Iterator<Item = StepIndex> + use<> {
        let base = session.run.base;
        (0..usize::from(session.places)).map(move |place| step_index(base, place))
    }

    fn put(&mut self, place: u32, new: &mut Installation, way: impl Fn(Name) -> Option<Way>) {
        if let Some(session) = &new.session {
            self.remember((&session.keys, session.instance()), place);
        }
        self.fill(place, new, way);
    }

    /// Puts a session into its place and its cells; its keys lead there.
    pub(super) fn fill(&mut self, place: u32, new: &mut Installation, way: impl Fn(Name) -> Option<Way>) {
        let Some(mut session) = new.session.take() else { return };
        let named = self.by_seid.insert(session.seid.0, place);
        debug_assert!(named.is_ok(), "there are as many places as names");
        self.generation = self.generation.wrapping_add(1).max(1);
        let base = session.run.base;
        self.cells.unlabel(session.run);
        self.cells.own(session.run, SessionIndex(place));
        for (number, (step, peer)) in new.steps.iter().zip(&new.peers).enumerate() {
            let mut step = *step;
            (step.generation, step.cell) = (self.generation, (number / STEPS) as u16);
            let is_apart = |place: &u16| {
                let account = new.accounts.get(usize::from(*place));
                account.is_some_and(|account| account.rate.stands_for().is_some())
            };
            let is_in_place = !step.lists().meters().iter().any(is_apart);
            step.simplify(is_in_place);
            if let Some(name) = *peer {
                step.peer = self.peers.enter(name, || way(name));
                if step.is_udp() {
                    self.peers.enter_udp(step.peer);
                }
            }
            self.cells.put(step_index(base, number), &step);
        }
        for (account, number) in new.accounts.iter().zip(0..) {
            self.cells.put_account((base, number), account);
        }
        self.cells.label(&session);
        session.generation = self.generation;
        self.slots[place as usize] = Some(session);
    }

    /// Rates and counts go on where they stood; of URRs that go, the last counts are taken down.
    fn carry(&mut self, old: &Session, new: &mut Installation, now_ns: u64) {
        let Some(session) = &mut new.session else { return };
        session.waiting = old.waiting;
        let base = old.run.base;
        for (place, names) in session.accounts.iter().enumerate() {
            let Some(before) = names.qer.and_then(|qer| self.rate_of(old, qer, place)) else { continue };
            let apart = before.stands_for().and_then(|at| self.aparts.at(at)?.own_rate());
            new.accounts[place].rate.carry(apart.unwrap_or(&before), now_ns);
        }
        for (before, place) in old.ledgers() {
            let mut count = self.cells.account(base, place).count;
            let is_it = |names: &Names| names.ledger.as_ref().is_some_and(|ledger| ledger.urr == before.urr);
            let after = find_near(&session.accounts, place.into(), is_it);
            let Some((after, ledger)) =
                after.and_then(|at| Some((at, session.accounts[at].ledger.as_mut()?)))
            else {
                new.removed.push(before.counts(&count, now_ns));
                continue;
            };
            ledger.carry(before, &count, now_ns);
            // Limits may have changed: the next packet is to be looked at.
            count.look_at_next();
            new.accounts[after].count = count;
        }
    }

    /// Takes a session out of force; appends its last counts to `usage`, which has the room.
    pub(crate) fn remove(
        &mut self,
        seid: Seid,
        now_ns: u64,
        usage: &mut Vec<UsageCounts>,
    ) -> Option<(SessionIndex, Session)> {
        let index = self.by_seid(seid)?;
        self.usage(index, now_ns, usage);
        let session = self.slots[index.0 as usize].take()?;
        self.give_back(&session, index.0);
        Some((index, session))
    }

    /// Everything that a session had in its place is free for others.
    pub(super) fn give_back(&mut self, session: &Session, place: u32) {
        self.forget(session, place);
        self.cells.release(session.run);
        self.leave_place(place);
    }

    /// Removes the names, and leaves the peers; nobody finds the session by them any more.
    fn forget(&mut self, session: &Session, place: u32) {
        self.by_seid.remove(session.seid.0, place);
        self.forget_keys(&session.keys, place);
        self.leave_meters(session);
        for at in self.steps_of(session) {
            let step = *self.cells.step(at);
            self.cells.put(at, &WholeStep::EMPTY);
            if step.is_udp() {
                self.peers.leave_udp(step.peer);
            }
            if step.peer.is_some() {
                self.peers.leave(step.peer);
            }
        }
    }
}

/// Where something is in a list; soon found where it was in an older one, as it mostly is.
pub(super) fn find_near<T>(list: &[T], place: usize, is_it: impl Fn(&T) -> bool) -> Option<usize> {
    let place = place.min(list.len());
    (place..list.len()).chain(0..place).find(|at| is_it(&list[*at]))
}

//! The sessions of a worker, and the keys by which packets find them.

use super::account::{Account, Count};
use super::apart::Aparts;
use super::cells::{Cells, STEPS};
use super::framed::{Framed, around, found_by, networks};
use super::installation::{Installation, Installed, Refusal};
use super::memory;
use super::peers::{Name, Peers, Way};
use super::ports::Ports;
use super::session::{Key, Session, SessionIndex, step_index};
use super::step::{HotStep, Kind, StepIndex};
use super::table::Table;
use super::usage::Ledger;
use crate::config::{Echo, PORTS_MAX};
use crate::frame::PortIndex;
use crate::worker::Query;
use dplink::UsageCounts;
use rules::{Instance, PdrId, Seid};

/// Tunnels, and user addresses, a session has on average at most, over all sessions.
pub(crate) const KEYS_PER_SESSION: usize = 2;

pub(crate) struct Sessions {
    /// A session's place does not change while it lives.
    pub(super) slots: Box<[Option<Box<Session>>]>,
    pub(super) free: Vec<u32>,
    pub(super) by_seid: Table,
    by_tunnel: Table,
    by_user: Table,
    pub(crate) framed: Framed,
    /// By place, the network that its user's addresses are of; empty where there is one network.
    instances: Box<[Instance]>,
    pub(crate) cells: Cells,
    pub(crate) peers: Peers,
    pub(super) aparts: Aparts,
    generation: u32,
    /// By port, how many tunnels there are [`Key::turned`].
    turned: [u32; PORTS_MAX],
}

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) sessions: usize,
    pub(crate) pdrs: usize,
    pub(crate) peers: usize,
    pub(crate) aparts: usize,
    pub(crate) framed_routes: usize,
    pub(crate) echo: Echo,
    pub(crate) has_instances: bool,
}

/// How many peers there are at most: most steps lead to the same as the one before.
fn most_peers(peers: &[Option<Name>]) -> usize {
    let mut last = None;
    peers.iter().flatten().filter(|peer| last.replace(**peer) != Some(**peer)).count()
}

/// There is a place and room for a session.
pub(crate) struct Admitted(u32);

impl Sessions {
    pub(crate) fn new(room: Room) -> Self {
        let places = 0..u32::try_from(room.sessions).unwrap_or(u32::MAX);
        Self {
            slots: places.clone().map(|_| None).collect(),
            free: places.clone().rev().collect(),
            by_seid: Table::new(room.sessions),
            by_tunnel: Table::new(room.sessions * KEYS_PER_SESSION),
            by_user: Table::new(room.sessions * KEYS_PER_SESSION),
            framed: Framed::new(room.framed_routes),
            instances: places.filter(|_| room.has_instances).map(|_| Instance::DEFAULT).collect(),
            cells: Cells::new(room.sessions.max(room.pdrs.div_ceil(STEPS))),
            peers: Peers::new(room.peers, room.echo),
            aparts: Aparts::new(room.aparts),
            generation: 0,
            turned: [0; PORTS_MAX],
        }
    }

    /// The session behind a tunnel of ours.
    #[inline]
    pub(crate) fn by_tunnel(&self, key: u64) -> Option<SessionIndex> {
        self.by_tunnel.get(key).map(SessionIndex)
    }

    /// The session of a user's address.
    #[inline]
    pub(crate) fn by_user(&self, user: (u64, Instance)) -> Option<SessionIndex> {
        self.by_user.get(user).map(SessionIndex)
    }

    /// The network of the user behind a tunnel of ours; the default one where nobody is behind it.
    pub(crate) fn instance_behind(&self, tunnel: u64) -> Instance {
        let place = self.by_tunnel.get(tunnel).unwrap_or(u32::MAX);
        self.instances.get(place as usize).copied().unwrap_or_default()
    }

    /// Whether packets in some tunnel of a port go the other way than others of it.
    #[inline]
    pub(crate) fn turns(&self, port: PortIndex) -> bool {
        self.turned.get(usize::from(port)).is_some_and(|tunnels| *tunnels > 0)
    }

    /// Whether there are such tunnels on any port.
    #[inline]
    pub(crate) fn has_turned(&self) -> bool {
        self.turned.iter().any(|tunnels| *tunnels > 0)
    }

    /// Whether a session has this key.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.place_of(key).is_some()
    }

    fn place_of(&self, key: Key) -> Option<u32> {
        match found_by(key) {
            Key::Tunnel(key) => self.by_tunnel.get(key),
            Key::User(address, instance) => self.by_user.get((address, instance)),
            Key::Route(bits, length, instance) => self.framed.get((bits, length, instance)),
        }
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
        let Some(session) = self.slots.get_mut(place as usize).and_then(|slot| slot.as_deref_mut()) else {
            return;
        };
        self.generation = self.generation.wrapping_add(1).max(1);
        session.generation = self.generation;
        for number in 0..usize::from(session.places) {
            self.cells.step_mut(step_index(session.run.base, number)).generation = self.generation;
        }
    }

    /// The tunnels of a port of which a key says that they are turned.
    fn turned_at(&mut self, key: Key) -> Option<&mut u32> {
        let (port, _) = Ports::tunnel(key.turned_tunnel()?);
        self.turned.get_mut(usize::from(port))
    }

    /// The session of this name.
    pub(crate) fn by_seid(&self, seid: Seid) -> Option<SessionIndex> {
        self.by_seid.get(seid.0).map(SessionIndex)
    }

    /// `None` only for [`SessionIndex::NONE`] and sessions that are gone.
    #[inline]
    pub(crate) fn get(&self, index: SessionIndex) -> Option<&Session> {
        self.slots.get(index.0 as usize)?.as_deref()
    }

    /// The name of the PDR of a session that is tried in this place.
    pub(crate) fn pdr(&self, session: &Session, number: usize) -> PdrId {
        session.classifier.pdr(number).unwrap_or(self.cells.step(session.step(number)).pdr)
    }

    /// Asks for what leads to a session.
    #[inline]
    pub(crate) fn prefetch_place(&self, index: SessionIndex) {
        if let Some(slot) = self.slots.get(index.0 as usize) {
            memory::prefetch(slot);
        }
    }

    /// Asks for a session, once what leads to it is there.
    #[inline]
    pub(crate) fn prefetch(&self, index: SessionIndex) {
        if let Some(session) = self.get(index) {
            memory::prefetch_all(session);
        }
    }

    /// Asks for what leads to the session of a tunnel or a user's address.
    #[inline]
    pub(crate) fn prefetch_key(&self, key: Key) {
        match key {
            Key::Tunnel(key) => self.by_tunnel.prefetch(key),
            Key::User(address, instance) => self.by_user.prefetch((address, instance)),
            Key::Route(..) => {}
        }
    }

    /// So many more flows of a session wait to be of an application.
    pub(super) fn count_waiting(&mut self, index: SessionIndex, more: i16) {
        let session = self.slots.get_mut(index.0 as usize).and_then(|slot| slot.as_deref_mut());
        if let Some(session) = session {
            session.waiting = session.waiting.saturating_add_signed(more);
        }
    }

    /// Sessions in force.
    pub(crate) fn len(&self) -> usize {
        self.by_seid.len()
    }

    /// The ledger of an account, and the account.
    pub(crate) fn ledger(&mut self, index: SessionIndex, place: u16) -> Option<(&mut Ledger, &mut Account)> {
        let session = self.slots.get_mut(index.0 as usize)?.as_deref_mut()?;
        let account = self.cells.account(session.run.base, place);
        Some((session.ledgers.get_mut(usize::from(place))?, account))
    }

    /// Appends what a session has used to `counts`, which has the room.
    pub(crate) fn usage(&mut self, index: SessionIndex, now_ns: u64, counts: &mut Vec<UsageCounts>) {
        let Some(session) = self.slots.get(index.0 as usize).and_then(|slot| slot.as_deref()) else { return };
        for (ledger, place) in session.ledgers.iter().zip(0..) {
            let account = self.cells.account(session.run.base, place);
            counts.push(ledger.counts(&account.count, now_ns));
        }
    }

    /// Answers what a session has used; where it is reported, thresholds begin anew.
    pub(crate) fn query(&mut self, query: &mut Query, now_ns: u64) {
        let index = self.by_seid(query.seid).unwrap_or(SessionIndex::NONE);
        let Some(session) = self.slots.get_mut(index.0 as usize).and_then(|slot| slot.as_deref_mut()) else {
            return;
        };
        for (ledger, place) in session.ledgers.iter_mut().zip(0..) {
            if !query.urrs.is_empty() && !query.urrs.contains(&ledger.urr) {
                continue;
            }
            let count = &mut self.cells.account(session.run.base, place).count;
            query.counts.push(ledger.counts(count, now_ns));
            if query.is_reported {
                ledger.reported(count);
            }
        }
    }

    /// Starts of traffic that were told are told again, with the next packet.
    pub(crate) fn await_starts(&mut self, index: SessionIndex) {
        let Some(session) = self.slots.get_mut(index.0 as usize).and_then(|slot| slot.as_deref_mut()) else {
            return;
        };
        for (ledger, place) in session.ledgers.iter_mut().zip(0..) {
            ledger.await_start(&mut self.cells.account(session.run.base, place).count);
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
        self.enter_aparts(old.as_deref(), &mut new);
        if let Some(old) = &old {
            self.retire(old, &mut new, now_ns);
        }
        Installed { old, ..self.put(place, *new, way) }
    }

    /// Changes nothing unless the session can be installed whole, which is to be done next.
    pub(crate) fn admit(&mut self, new: &mut Installation) -> Result<Admitted, Refusal> {
        let own = self.by_seid.get(new.session.seid.0);
        self.admit_keys(&new.session.keys, own)?;
        if self.peers.room() < most_peers(&new.peers) {
            return Err(Refusal::Peers);
        }
        if !self.aparts.have_room(&new.aparts) {
            return Err(Refusal::Meters);
        }
        if own.is_none() && self.free.is_empty() {
            return Err(Refusal::Sessions);
        }
        let cells = new.steps.len().div_ceil(STEPS).max(new.accounts.len());
        let old = own.and_then(|place| self.slots[place as usize].as_deref());
        new.session.run = match old.filter(|old| old.run.suits(cells)) {
            Some(old) => old.run,
            None => self.cells.allocate(cells).ok_or(Refusal::Rules)?,
        };
        own.or_else(|| self.free.pop()).map(Admitted).ok_or(Refusal::Sessions)
    }

    pub(super) fn admit_keys(&self, keys: &[Key], own: Option<u32>) -> Result<(), Refusal> {
        let (mut tunnels, mut users, mut routes) = (0, 0, 0);
        for key in keys {
            let place = self.place_of(*key);
            if place.is_some() && place != own {
                return Err(Refusal::taken(*key));
            }
            match found_by(*key) {
                Key::Tunnel(_) => tunnels += 1,
                Key::User(..) => users += 1,
                Key::Route(..) => routes += 1,
            }
        }
        let old = own.and_then(|place| self.slots.get(place as usize)?.as_deref());
        if routes > self.framed.room() + old.map_or(0, |old| networks(&old.keys)) {
            return Err(Refusal::FramedRoutes);
        }
        match tunnels > self.by_tunnel.room() || users > self.by_user.room() {
            true => Err(Refusal::Keys),
            false => Ok(()),
        }
    }

    fn retire(&mut self, old: &Session, new: &mut Installation, now_ns: u64) {
        // Connections that were put something into go on, whatever becomes of the rule.
        if self.steps_of(old).any(|step| self.cells.step(step).kind == Kind::Enrich) {
            new.steps.iter_mut().for_each(HotStep::enriches);
        }
        self.carry(old, new, now_ns);
        self.forget(old);
        if old.run != new.session.run {
            self.cells.release(old.run);
        }
    }

    pub(super) fn steps_of(&self, session: &Session) -> impl Iterator<Item = StepIndex> + use<> {
        let base = session.run.base;
        (0..usize::from(session.places)).map(move |place| step_index(base, place))
    }

    fn put(&mut self, place: u32, new: Installation, way: impl Fn(Name) -> Option<Way>) -> Installed {
        self.remember((&new.session.keys, new.session.instance()), place);
        self.fill(place, new, way)
    }

    /// Puts a session into its place and its cells; its keys lead there.
    pub(super) fn fill(
        &mut self,
        place: u32,
        new: Installation,
        way: impl Fn(Name) -> Option<Way>,
    ) -> Installed {
        let named = self.by_seid.insert(new.session.seid.0, place);
        debug_assert!(named.is_ok(), "there are as many places as names");
        self.generation = self.generation.wrapping_add(1).max(1);
        let base = new.session.run.base;
        for (number, (step, peer)) in new.steps.iter().zip(&new.peers).enumerate() {
            let mut step = *step;
            (step.generation, step.session, step.cell) =
                (self.generation, SessionIndex(place), (number / STEPS) as u16);
            let is_apart = |place: &u16| {
                let account = new.accounts.get(usize::from(*place));
                account.is_some_and(|account| account.rate.stands_for().is_some())
            };
            step.simplify(!step.meters().iter().any(is_apart));
            if let Some(name) = *peer {
                step.peer = self.peers.enter(name, || way(name));
            }
            *self.cells.step_mut(step_index(base, number)) = step;
        }
        for (account, number) in new.accounts.iter().zip(0..) {
            *self.cells.account(base, number) = *account;
        }
        let Installation { mut session, steps, peers, accounts, aparts, removed, end_markers, .. } = new;
        session.generation = self.generation;
        self.slots[place as usize] = Some(session);
        Installed {
            index: SessionIndex(place),
            removed,
            end_markers,
            old: None,
            _ethernet: None,
            _spent: (steps, peers, accounts, aparts),
        }
    }

    /// Rates and counts go on where they stood; of URRs that go, the last counts are taken down.
    fn carry(&mut self, old: &Session, new: &mut Installation, now_ns: u64) {
        new.session.waiting = old.waiting;
        let base = old.run.base;
        for (place, qer) in new.session.qers.iter().enumerate() {
            let Some(before) = self.rate_of(old, *qer, place) else { continue };
            let apart = before.stands_for().and_then(|at| self.aparts.at(at)?.own_rate());
            new.accounts[place].rate.carry(apart.unwrap_or(&before));
        }
        for (place, before) in old.ledgers.iter().enumerate() {
            let count = self.cells.account(base, place as u16).count;
            let after = find_near(&new.session.ledgers, place, |other| other.urr == before.urr);
            let Some(after) = after else {
                new.removed.push(before.counts(&count, now_ns));
                continue;
            };
            new.session.ledgers[after].carry(before, &count);
            // Limits may have changed: the next packet is to be looked at.
            new.accounts[after].count = Count { left: 0, ..count };
        }
    }

    /// Takes a session out of force; appends its last counts to `usage`, which has the room.
    pub(crate) fn remove(
        &mut self,
        seid: Seid,
        now_ns: u64,
        usage: &mut Vec<UsageCounts>,
    ) -> Option<(SessionIndex, Box<Session>)> {
        let place = self.by_seid.get(seid.0)?;
        self.usage(SessionIndex(place), now_ns, usage);
        let session = self.slots[place as usize].take()?;
        self.forget(&session);
        self.by_seid.remove(seid.0);
        self.cells.release(session.run);
        self.free.push(place);
        Some((SessionIndex(place), session))
    }

    /// Keys lead to a place, whose user's addresses are of a network.
    pub(super) fn remember(&mut self, (keys, of): (&[Key], Instance), place: u32) {
        if let Some(instance) = self.instances.get_mut(place as usize) {
            *instance = of;
        }
        for key in keys {
            if let Some(tunnels) = self.turned_at(*key) {
                *tunnels += 1;
            }
            let inserted = match found_by(*key) {
                Key::Tunnel(key) => self.by_tunnel.insert(key, place),
                Key::User(address, instance) => self.by_user.insert((address, instance), place),
                Key::Route(bits, length, instance) => self.framed.insert((bits, length, instance), place),
            };
            debug_assert!(inserted.is_ok(), "admit_keys made sure of room");
        }
    }

    /// Keys lead nowhere any more.
    pub(super) fn forget_keys(&mut self, keys: &[Key]) {
        for key in keys {
            if let Some(tunnels) = self.turned_at(*key) {
                *tunnels -= 1;
            }
            match found_by(*key) {
                Key::Tunnel(key) => self.by_tunnel.remove(key),
                Key::User(address, instance) => self.by_user.remove((address, instance)),
                Key::Route(bits, length, instance) => self.framed.remove((bits, length, instance)),
            };
        }
    }

    /// Removes the keys, and leaves the peers; no packet finds the session by them any more.
    pub(super) fn forget(&mut self, session: &Session) {
        self.forget_keys(&session.keys);
        for place in 0..session.qers.len() as u16 {
            if let Some(apart) = self.cells.account(session.run.base, place).rate.stands_for() {
                self.aparts.leave(apart);
            }
        }
        for at in self.steps_of(session) {
            let step = self.cells.step_mut(at);
            let peer = step.peer;
            *step = HotStep::EMPTY;
            if peer.is_some() {
                self.peers.leave(peer);
            }
        }
    }
}

/// Where something is in a list; soon found where it was in an older one, as it mostly is.
pub(super) fn find_near<T>(list: &[T], place: usize, is_it: impl Fn(&T) -> bool) -> Option<usize> {
    let place = place.min(list.len());
    (place..list.len()).chain(0..place).find(|at| is_it(&list[*at]))
}

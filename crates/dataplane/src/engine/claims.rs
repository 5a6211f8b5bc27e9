//! What belongs to which session where several workers have them: keys, networks behind users, meters that several share.

use super::placement::{Owner, Shared, map_bytes};
use crate::state::{KEYS_PER_SESSION, Key, Refusal, found_by, networks};
use rules::Seid;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Keys that sessions have, and will have once all orders that were given are obeyed. A worker knows those of its own sessions alone.
#[derive(Default)]
pub(super) struct Claims {
    by_key: HashMap<Key, Seid>,
    by_session: HashMap<Seid, Claim>,
    /// Of sessions that are being changed, what they have in the revisions that the change may leave in force: the worker may refuse
    /// it. In the order they were given; there are as many as changes under way.
    before: HashMap<Seid, Vec<Claim>>,
    /// Meters that several sessions share, where, and how many claims there are to each, those before changes among them: these
    /// sessions have to be together, whatever the worker says of the changes.
    shared: HashMap<u64, (Owner, usize)>,
    /// Networks behind users, of all workers, and how many there may be: each worker has to know all.
    routes: usize,
    routes_max: usize,
}

#[derive(Default)]
struct Claim {
    revision: u64,
    keys: SmallVec<[Key; 2]>,
    shared: Shared,
}

impl Claims {
    /// With room for so many networks behind users.
    pub(super) fn new(routes_max: usize) -> Self {
        Self { routes_max, ..Self::default() }
    }

    /// What it takes at most, as so many sessions come.
    pub(super) const fn bytes(sessions: usize) -> usize {
        let keys = 2 * KEYS_PER_SESSION * sessions;
        map_bytes(keys, size_of::<(Key, Seid)>())
            + map_bytes(sessions, size_of::<(Seid, Claim)>())
            // Those that have no place in their claims.
            + keys * size_of::<Key>()
    }

    /// A session is to have these, instead of what it has: until it has, both are its own.
    pub(super) fn claim(
        &mut self,
        session: (Seid, Owner),
        (revision, keys): (u64, &[Key]),
        shared: Shared,
    ) -> Result<(), Refusal> {
        self.check(session.0, keys)?;
        self.check_shared(session, &shared)?;
        self.supersede(session.0);
        for number in &shared {
            self.shared.entry(*number).or_insert((session.1, 0)).1 += 1;
        }
        self.enter(session.0, Claim { revision, keys: keys.into(), shared });
        Ok(())
    }

    /// Whose a key is.
    pub(super) fn holder(&self, key: Key) -> Option<Seid> {
        self.by_key.get(&found_by(key)).copied()
    }

    /// How many keys a session has.
    pub(super) fn keys(&self, session: Seid) -> usize {
        self.by_session.get(&session).map_or(0, |claim| claim.keys.len())
    }

    /// Whether a session shares a meter with others.
    pub(super) fn shares(&self, session: Seid) -> bool {
        let claim = self.by_session.get(&session);
        claim.is_some_and(|claim| self.holders(session, &claim.shared).next().is_some())
    }

    fn check(&self, session: Seid, keys: &[Key]) -> Result<(), Refusal> {
        let is_taken = |key: &&Key| self.holder(**key).is_some_and(|holder| holder != session);
        if let Some(taken) = keys.iter().find(is_taken) {
            return Err(Refusal::taken(*taken));
        }
        let own = self.by_session.get(&session).map_or(0, |claim| networks(&claim.keys));
        match self.routes - own + networks(keys) > self.routes_max {
            true => Err(Refusal::FramedRoutes),
            false => Ok(()),
        }
    }

    /// A meter is one rate only in one worker (TS 29.244 5.4.4): sessions that share it and are elsewhere already, or where there
    /// is no room, cannot.
    pub(super) fn check_shared(
        &self,
        (session, owner): (Seid, Owner),
        shared: &Shared,
    ) -> Result<(), Refusal> {
        match self.holders(session, shared).all(|holder| holder == owner) {
            true => Ok(()),
            false => Err(Refusal::MeterElsewhere),
        }
    }

    /// Who has those of these meters that are other sessions' already.
    pub(super) fn holders(&self, session: Seid, shared: &Shared) -> impl Iterator<Item = Owner> {
        let own = move || self.claims_of(session).flat_map(|claim| &claim.shared);
        shared.iter().filter_map(move |number| {
            let (holder, claims) = self.shared.get(number)?;
            let is_of_others = *claims > own().filter(|own| *own == number).count();
            is_of_others.then_some(*holder)
        })
    }

    /// All that a session has or may have, in the order they were given.
    fn claims_of(&self, session: Seid) -> impl Iterator<Item = &Claim> {
        self.before.get(&session).into_iter().flatten().chain(self.by_session.get(&session))
    }

    fn enter(&mut self, session: Seid, claim: Claim) {
        self.by_key.extend(claim.keys.iter().map(|key| (found_by(*key), session)));
        self.routes += networks(&claim.keys);
        self.by_session.insert(session, claim);
    }

    /// What a session has is what it had, should the change be refused.
    fn supersede(&mut self, session: Seid) {
        if let Some(claim) = self.take(session) {
            // It is not anybody else's before the change is made.
            self.by_key.extend(claim.keys.iter().map(|key| (found_by(*key), session)));
            self.before.entry(session).or_default().push(claim);
        }
    }

    /// A session is in force in a revision: what it had before is free for others.
    pub(super) fn applied(&mut self, session: Seid, revision: u64) {
        let Some(before) = self.before.get_mut(&session) else { return };
        let is_last = self.by_session.get(&session).is_some_and(|claim| claim.revision == revision);
        let at = before.iter().position(|claim| claim.revision == revision);
        let gone: Vec<Claim> = before.drain(..if is_last { before.len() } else { at.unwrap_or(0) }).collect();
        gone.into_iter().for_each(|claim| self.let_go(session, &claim));
    }

    /// A revision of a session is refused: what only that was to have is free for others.
    pub(super) fn refused(&mut self, session: Seid, revision: u64) {
        if self.by_session.get(&session).is_some_and(|claim| claim.revision == revision) {
            let Some(refused) = self.take(session) else { return };
            if let Some(before) = self.before.get_mut(&session).and_then(Vec::pop) {
                self.enter(session, before);
            }
            return self.let_go(session, &refused);
        }
        let before = self.before.get_mut(&session).into_iter();
        let refused: Vec<Claim> =
            before.flat_map(|before| before.extract_if(.., |claim| claim.revision == revision)).collect();
        refused.into_iter().for_each(|claim| self.let_go(session, &claim));
    }

    /// What the session has by no other claim any more is nobody's.
    fn let_go(&mut self, session: Seid, gone: &Claim) {
        if self.before.get(&session).is_some_and(Vec::is_empty) {
            self.before.remove(&session);
        }
        self.give_back(gone);
        let before = self.before.get(&session).into_iter().flatten();
        let others = before.chain(self.by_session.get(&session));
        self.by_key.extend(others.flat_map(|other| &other.keys).map(|key| (found_by(*key), session)));
    }

    /// The meters and keys of a claim that is no more.
    fn give_back(&mut self, gone: &Claim) {
        for key in &gone.keys {
            self.by_key.remove(&found_by(*key));
        }
        for number in &gone.shared {
            let left = self.shared.get_mut(number).map(|(_, claims)| {
                *claims -= 1;
                *claims
            });
            if left == Some(0) {
                self.shared.remove(number);
            }
        }
    }

    /// A session is to go: its keys and meters are free for others.
    pub(super) fn release(&mut self, session: Seid) {
        let claim = self.take(session);
        for claim in self.before.remove(&session).into_iter().flatten().chain(claim) {
            self.give_back(&claim);
        }
    }

    /// Networks are counted as they are to be; meters are its own as long as the claim is there, before a change or not.
    fn take(&mut self, session: Seid) -> Option<Claim> {
        let claim = self.by_session.remove(&session)?;
        for key in &claim.keys {
            self.by_key.remove(&found_by(*key));
        }
        self.routes -= networks(&claim.keys);
        Some(claim)
    }

    /// What a session may share with others that come is where the session is. None moves while it is being changed.
    pub(super) fn moved(&mut self, session: Seid, to: Owner) {
        let shared = self.by_session.get(&session).map(|claim| claim.shared.clone()).unwrap_or_default();
        for number in shared {
            if let Some((owner, _)) = self.shared.get_mut(&number) {
                *owner = to;
            }
        }
    }

    /// Where sessions are that share a meter with this one.
    pub(super) fn sharer(&self, shared: &Shared) -> Option<Owner> {
        shared.iter().find_map(|number| self.shared.get(number)).map(|(owner, _)| *owner)
    }
}

//! Which worker gets a session.

use super::balance::Loads;
use super::claims::Claims;
use crate::config::Limits;
use crate::state::{Key, Ports, Refusal};
use crate::steering::{Buckets, Crew};
use dplink::{Placements, WorkerLoad};
use rules::{Rules, Seid};
use smallvec::SmallVec;

/// The worker of a session, until it moves.
pub(super) type Owner = u8;

/// Meters of a session that other sessions may share, by their numbers.
pub(super) type Shared = SmallVec<[u64; 1]>;

/// Of these rules.
pub(super) fn shared_meters(rules: &Rules) -> Shared {
    rules.qers.iter().filter_map(|qer| qer.correlation).collect()
}

/// Why a session was placed where it was: the count it belongs to.
pub(super) type Reason = fn(&mut Placements) -> &mut u64;

/// Places new sessions.
pub(crate) struct Placement {
    buckets: Buckets,
    distributors: usize,
    /// Of each worker.
    sessions: Vec<usize>,
    /// Of all together, and of each.
    limit: usize,
    room: usize,
    claims: Claims,
    /// Why new ones went where they did.
    pub(super) placed: Placements,
    /// How busy each is.
    pub(super) loads: Loads,
}

/// Bytes of a `HashMap` that has come to so many entries, each of so many bytes: places are a power of two, an eighth of them
/// stays free, and each has a byte of control.
pub(super) const fn map_bytes(entries: usize, size: usize) -> usize {
    (entries * 8 / 7 + 1).next_power_of_two() * (size + 1)
}

impl Placement {
    /// What it takes at most to know who has which keys, as so many sessions come: nothing where a worker is alone.
    pub(crate) const fn bytes(workers: usize, sessions: usize) -> usize {
        if workers == 1 {
            return 0;
        }
        Claims::bytes(sessions)
    }

    /// For the workers of a crew, which together hold no more than `limits` say.
    pub(super) fn new(crew: &Crew, limits: &Limits) -> Self {
        Self {
            buckets: Buckets::new(crew),
            distributors: crew.distributors,
            sessions: vec![0; crew.workers],
            limit: limits.sessions,
            room: crew.share(limits).sessions,
            loads: Loads::new(crew),
            placed: Placements::default(),
            claims: Claims::new(limits.framed_routes),
        }
    }

    /// With one worker there is nothing to decide, and the worker refuses what cannot be.
    fn is_alone(&self) -> bool {
        self.sessions.len() == 1
    }

    /// The worker of a new session: that of the meters it shares, or that of its user's address, or if that one is much busier
    /// than others, the least busy, or if there is no room, the one with the fewest sessions.
    ///
    /// Sessions of Ethernet frames are switched to each other, and so together, in the first worker that has any.
    pub(super) fn place(
        &mut self,
        keys: &[Key],
        shared: &Shared,
        of_frames: bool,
    ) -> Result<(Owner, Reason), Refusal> {
        if self.is_alone() {
            return Ok((0, |placed| &mut placed.address));
        }
        if self.sessions.iter().sum::<usize>() >= self.limit {
            return Err(Refusal::Sessions);
        }
        let by_keys = self.by_keys(keys);
        let (sessions, room) = (&self.sessions, self.room);
        let has_room = |owner: Owner| sessions.get(usize::from(owner)).is_some_and(|count| *count < room);
        let sharer = self.claims.sharer(shared);
        let owner = sharer.unwrap_or_else(|| self.loads.instead_of(by_keys, has_room, sessions.iter().sum()));
        let (owner, reason): (_, Reason) = if of_frames {
            (Some(self.distributors as Owner), |placed| &mut placed.frames)
        } else if !has_room(owner) {
            (self.least_loaded(), |placed| &mut placed.no_room)
        } else if sharer.is_some() {
            (Some(owner), |placed| &mut placed.meter)
        } else if owner != by_keys {
            (Some(owner), |placed| &mut placed.less_busy)
        } else {
            (Some(owner), |placed| &mut placed.address)
        };
        let owner = owner.filter(|owner| has_room(*owner)).ok_or(Refusal::Sessions)?;
        if let Some(count) = self.sessions.get_mut(usize::from(owner)) {
            *count += 1;
        }
        Ok((owner, reason))
    }

    /// By the first address of its user, IPv4 before IPv6; without any, by its first tunnel.
    fn by_keys(&self, keys: &[Key]) -> Owner {
        let users = || keys.iter().filter_map(|key| key.user());
        let user = users().find(|user| user >> 32 == 0).or_else(|| users().next());
        let tunnels =
            keys.iter().filter_map(|key| if let Key::Tunnel(key) = key { Some(*key) } else { None });
        let tunnel = tunnels.map(|key| u64::from(Ports::tunnel(key).1.0)).next();
        self.buckets.owner(Buckets::user(user.or(tunnel).unwrap_or_default()))
    }

    /// The worker that a card leads a user's packets to, whose hash is of the user's address; `user` as in keys.
    pub(super) fn led(&self, user: u64) -> Owner {
        self.buckets.owner(Buckets::user(user))
    }

    fn least_loaded(&self) -> Option<Owner> {
        let owners = self.sessions.iter().enumerate().skip(self.distributors);
        owners.min_by_key(|(_, count)| **count).map(|(owner, _)| owner as Owner)
    }

    /// A session is to have these keys, instead of those it has: until it has, both are its own.
    pub(super) fn claim(
        &mut self,
        session: (Seid, Owner),
        claimed: (u64, &[Key]),
        shared: Shared,
    ) -> Result<(), Refusal> {
        if self.is_alone() {
            return Ok(());
        }
        self.claims.claim(session, claimed, shared)
    }

    /// A session is in force in a revision: what it had before is free for others.
    pub(super) fn applied(&mut self, session: Seid, revision: u64) {
        self.claims.applied(session, revision);
    }

    /// A revision of a session is refused: what only that was to have is free for others.
    pub(super) fn refused(&mut self, session: Seid, revision: u64) {
        self.claims.refused(session, revision);
    }

    /// Whether a worker may own sessions.
    pub(super) fn may_own(&self, owner: Owner) -> bool {
        (self.distributors..self.sessions.len()).contains(&usize::from(owner))
    }

    /// Whether there is room for one session more.
    pub(super) fn has_room(&self, owner: Owner) -> bool {
        self.sessions.get(usize::from(owner)).is_some_and(|count| *count < self.room)
    }

    /// Sessions of each worker, and of how many there is room, in what is told of workers.
    pub(super) fn overview(&self, workers: &mut [WorkerLoad]) {
        for ((owner, worker), count) in (0..).zip(workers).zip(&self.sessions) {
            worker.sessions = *count as u64;
            worker.room = if self.may_own(owner) { self.room as u64 } else { 0 };
        }
    }

    /// Whose a key is.
    pub(super) fn holder(&self, key: Key) -> Option<Seid> {
        self.claims.holder(key)
    }

    /// How many keys a session has.
    pub(super) fn keys(&self, session: Seid) -> usize {
        self.claims.keys(session)
    }

    /// Whether one of these meters is another sessions' already, with another worker than this one's.
    pub(super) fn are_elsewhere(&self, session: (Seid, Owner), shared: &Shared) -> bool {
        !self.is_alone() && self.claims.check_shared(session, shared).is_err()
    }

    /// The worker that has those of these meters that are other sessions'; `None` where they are with several.
    pub(super) fn meters_of_others(&self, session: Seid, shared: &Shared) -> Option<Owner> {
        let mut holders = self.claims.holders(session, shared);
        let first = holders.next()?;
        holders.all(|holder| holder == first).then_some(first)
    }

    /// Whether a session shares a meter with others, as they will be once all orders that were given are obeyed.
    pub(super) fn shares(&self, session: Seid) -> bool {
        self.claims.shares(session)
    }

    /// A session has moved from one worker to another.
    pub(super) fn moved(&mut self, session: Seid, (from, to): (Owner, Owner)) {
        for (owner, more) in [(from, -1), (to, 1)] {
            if let Some(count) = self.sessions.get_mut(usize::from(owner)) {
                *count = count.saturating_add_signed(more);
            }
        }
        self.claims.moved(session, to);
    }

    /// A session is to go: its keys are free for others.
    pub(super) fn release(&mut self, session: Seid) {
        self.claims.release(session);
    }

    /// A session is gone from its worker, or never came.
    pub(super) fn left(&mut self, session: Seid, owner: Owner) {
        self.claims.release(session);
        if let Some(count) = self.sessions.get_mut(usize::from(owner)) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_worker_has_no_room_and_the_next_goes_elsewhere_for_that() {
        let limits = Limits { sessions: 400, ..Limits::default() };
        let mut placement = Placement::new(&Crew::of(2), &limits);
        // A quarter more than half of them, and 64.
        for _ in 0..314 {
            assert!([0, 1].iter().all(|owner| placement.has_room(*owner)));
            let (_, reason) = placement.place(&[], &Shared::new(), false).unwrap();
            *reason(&mut placement.placed) += 1;
        }
        let full = placement.by_keys(&[]);
        assert!(!placement.has_room(full) && placement.has_room(1 - full) && !placement.has_room(2));
        let (owner, reason) = placement.place(&[], &Shared::new(), false).unwrap();
        *reason(&mut placement.placed) += 1;
        assert_eq!(owner, 1 - full);
        assert_eq!(placement.placed, Placements { address: 314, no_room: 1, ..Placements::default() });
        let mut told = [WorkerLoad::default(); 2];
        placement.overview(&mut told);
        let of = |owner: Owner| (told[usize::from(owner)].sessions, told[usize::from(owner)].room);
        assert_eq!([of(full), of(1 - full)], [(314, 314), (1, 314)]);
    }
}

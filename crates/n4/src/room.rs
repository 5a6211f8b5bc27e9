//! Room that stale sessions leave (`stale.rs`). Those of a control plane that chooses nothing itself are in nobody's way: whatever it gives
//! out anew, we choose, and it is never what another session has. They would keep their addresses, their tunnels and their places
//! until others are refused for want of these. So where one of these has run out, a stale session that has it goes for who
//! asks, whoever that is, and one only: the one that its owner has not named for most eras. As long as there is room, none goes.

use crate::interface::Level;
use crate::node::Node;
use crate::peers::Association;
use crate::refusal::Refusal;
use crate::replacement::Way;
use crate::sessions::Session;
use machine::Time;
use pfcp::{Cause, ie};
use rules::Seid;
use session::SessionRecord;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// What there is none left of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scarce {
    /// Places for sessions.
    Sessions,
    /// Tunnel endpoints of ours.
    Tunnels,
    /// Users' addresses of a pool.
    Addresses,
}

impl Scarce {
    /// Why a request was refused, if for that.
    const fn of(refusal: &Refusal) -> Option<Self> {
        match (refusal.cause, refusal.offending_ie) {
            (Cause::AllDynamicAddressesAreOccupied, _) => Some(Self::Addresses),
            (Cause::NoResourcesAvailable, Some(ie::F_TEID)) => Some(Self::Tunnels),
            _ => None,
        }
    }
}

/// Those that are stale are not looked for more often than this, as that is a look at all sessions.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// Sessions that were stale when they were looked for, which is done once an era: later only a new era makes others stale. Those
/// of another era are found a little later.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    /// In the order in which they go.
    left: VecDeque<Seid>,
    /// The eras of all associations at that time.
    eras: BTreeMap<String, u32>,
    /// Before then they are not looked for again.
    not_before: Time,
    /// How many have gone for the room they left.
    gone: u64,
}

/// Sessions that give way, until it is known whether they go, and how many tunnel endpoints each has: who takes their places is not counted
/// twice.
#[derive(Debug, Default)]
pub(crate) struct Going {
    by_seid: BTreeMap<Seid, usize>,
}

impl Going {
    pub(crate) fn len(&self) -> usize {
        self.by_seid.len()
    }

    pub(crate) fn has(&self, seid: Seid) -> bool {
        self.by_seid.contains_key(&seid)
    }
}

impl Node {
    /// Does what takes tunnel endpoints and addresses, where those of the sessions in the way count as free. If there are not enough
    /// of them, stale sessions are in the way, too, one after the other.
    pub(crate) fn with_room<T>(
        &mut self,
        way: &mut Way,
        take: impl Fn(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        loop {
            self.lend(way);
            let taken = take(self);
            self.return_lent(way);
            let scarce = taken.as_ref().err().and_then(Scarce::of);
            let stale = scarce.and_then(|scarce| Some((self.stale_with(scarce, way)?, scarce)));
            match stale {
                Some((stale, scarce)) => way.make_room(stale, scarce),
                None => return taken,
            }
        }
    }

    /// The same for places of sessions. Whether there is one.
    pub(crate) fn has_place(&mut self, way: &mut Way) -> bool {
        while self.beside(way) >= self.config.limits.sessions {
            let Some(stale) = self.stale_with(Scarce::Sessions, way) else { return false };
            way.make_room(stale, Scarce::Sessions);
        }
        true
    }

    /// How many sessions there will be beside a new one.
    fn beside(&self, way: &Way) -> usize {
        let leaving = way.sure().filter(|seid| !self.going.has(*seid)).count();
        self.sessions.len().saturating_sub(self.going.len() + leaving)
    }

    /// The next session that is stale, has what is scarce, and is not in the way already. Of very many that do not have it some are
    /// looked at, and others the next time.
    fn stale_with(&mut self, scarce: Scarce, way: &Way) -> Option<Seid> {
        self.look_for_stale();
        for _ in 0..self.stale.left.len().min(self.config.limits.portion) {
            let next = self.stale.left.pop_front()?;
            let look = |session: &Session| self.leaves(session, scarce);
            let Some(leaves) = self.sessions.peek(next, look).flatten() else { continue };
            if leaves && !way.has(next) {
                // Where the request is refused after all, it is the next again.
                self.stale.left.push_front(next);
                return Some(next);
            }
            self.stale.left.push_back(next);
        }
        None
    }

    /// Whether a session leaves some of what is scarce when it goes; nothing where it is not stale. One with something under way is not
    /// disturbed, nor one that another control plane looks after.
    fn leaves(&self, session: &Session, scarce: Scarce) -> Option<bool> {
        let record = &session.record;
        self.peers.get(&record.owner).filter(|owner| record.era < owner.record.era)?;
        let has_it = match scarce {
            Scarce::Sessions => true,
            Scarce::Tunnels => record.f_teids().next().is_some(),
            Scarce::Addresses => addresses(record).iter().any(|address| self.pools.lack(*address)),
        };
        Some(has_it && session.pending.is_none() && self.heir_of(session).is_none())
    }

    fn look_for_stale(&mut self) {
        if self.now < self.stale.not_before {
            return;
        }
        let era = |peer: &Association| (peer.record.node_id.clone(), peer.record.era);
        let eras: BTreeMap<String, u32> = self.peers.iter().map(era).filter(|(_, era)| *era > 0).collect();
        if eras == self.stale.eras {
            return;
        }
        self.stale.not_before = self.now + BETWEEN_LOOKS;
        let missed = |(owner, era): (&String, &u32)| {
            let sessions = &self.sessions;
            let missed = |seid| Some((Reverse(era.checked_sub(sessions.era_of(seid)?)?), seid));
            sessions.all_of(owner).into_iter().filter_map(missed).collect::<Vec<_>>()
        };
        let mut left: Vec<(Reverse<u32>, Seid)> = eras.iter().flat_map(missed).collect();
        left.retain(|(Reverse(missed), _)| *missed > 0);
        left.sort_unstable();
        (self.stale.left, self.stale.eras) = (left.into_iter().map(|(_, seid)| seid).collect(), eras);
    }

    /// Of the sessions that were to make room for another, those that do: an address is left by who had just that one.
    pub(crate) fn making_room(&mut self, way: &Way, new: &SessionRecord) -> Vec<Seid> {
        let shares = |old: Seid| {
            let is_news = |address: &IpAddr| addresses(new).contains(address);
            self.sessions.look(old, |old| addresses(&old.record).iter().any(is_news))
        };
        let makes_room = |(old, scarce): &&(Seid, Scarce)| *scarce != Scarce::Addresses || shares(*old);
        let all: Vec<Seid> = way.room().iter().filter(makes_room).map(|(old, _)| *old).collect();
        self.note_gone(&all);
        all
    }

    /// An operator may want to know; each time there were twice as many.
    fn note_gone(&mut self, all: &[Seid]) {
        let Some(first) = all.first() else { return };
        let before = self.stale.gone;
        self.stale.gone += all.len() as u64;
        if before.checked_ilog2() != self.stale.gone.checked_ilog2() {
            let (gone, owner) = (self.stale.gone, self.sessions.peek(*first, |it| it.record.owner.clone()));
            let owner = owner.unwrap_or_default();
            let text = format!(
                "there is no room: session {first}, which {owner} has not named since it associated anew, gives way, as have {} before it",
                gone - 1
            );
            self.note(Level::Warning, text);
        }
    }

    /// A session gives way: what it has is not there twice.
    pub(crate) fn is_to_go(&mut self, seid: Seid) {
        self.stays_or_is_gone(seid);
        let tunnels = &self.tunnels;
        let held = self.sessions.peek(seid, |session| tunnels.held_by(&session.record)).unwrap_or(0);
        self.going.by_seid.insert(seid, held);
        self.tunnels.lend(held);
    }

    /// It is known now.
    pub(crate) fn stays_or_is_gone(&mut self, seid: Seid) {
        if let Some(held) = self.going.by_seid.remove(&seid) {
            self.tunnels.no_longer_lend(held);
        }
    }
}

/// Of our pools.
fn addresses(record: &SessionRecord) -> &[IpAddr] {
    record.extras.as_ref().map_or(&[], |extras| &extras.addresses)
}

//! The sessions of a worker, and the keys by which packets find them.

use super::table::Table;
use rules::{FTeid, Program, Seid};
use std::net::Ipv4Addr;

/// Tunnels and user addresses a session has on average at most, over all sessions.
const KEYS_PER_SESSION: usize = 2;

/// A session by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionIndex(u32);

impl SessionIndex {
    /// No session.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// One session, as the data path obeys it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) seid: Seid,
    pub(crate) revision: u64,
    pub(crate) program: Program,
}

/// Why a session cannot be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the data plane holds as many sessions as it is configured for")]
    Sessions,
    #[error("the data plane holds as many tunnels or user addresses as it is configured for")]
    Keys,
    #[error("tunnel {} at {} belongs to another session", .0.teid, .0.address)]
    TunnelTaken(FTeid),
    #[error("user address {0} belongs to another session")]
    AddressTaken(Ipv4Addr),
}

pub(crate) struct Sessions {
    /// A session's place does not change while it lives.
    slots: Box<[Option<Box<Session>>]>,
    free: Vec<u32>,
    by_seid: Table,
    by_tunnel: Table,
    by_address: Table,
}

impl Sessions {
    pub(crate) fn new(limit: usize) -> Self {
        let places = 0..u32::try_from(limit).unwrap_or(u32::MAX);
        Self {
            slots: places.clone().map(|_| None).collect(),
            free: places.rev().collect(),
            by_seid: Table::new(limit),
            by_tunnel: Table::new(limit * KEYS_PER_SESSION),
            by_address: Table::new(limit * KEYS_PER_SESSION),
        }
    }

    /// The session behind a tunnel of ours.
    #[inline]
    pub(crate) fn by_tunnel(&self, teid: u32, address: Ipv4Addr) -> Option<SessionIndex> {
        self.by_tunnel.get(tunnel_key(teid, address)).map(SessionIndex)
    }

    /// The session of a user's address.
    #[inline]
    pub(crate) fn by_address(&self, address: Ipv4Addr) -> Option<SessionIndex> {
        self.by_address.get(address_key(address)).map(SessionIndex)
    }

    /// `None` only for [`SessionIndex::NONE`] and sessions that are gone.
    #[inline]
    pub(crate) fn get(&self, index: SessionIndex) -> Option<&Session> {
        self.slots.get(index.0 as usize)?.as_deref()
    }

    /// Sessions in force.
    pub(crate) fn len(&self) -> usize {
        self.by_seid.len()
    }

    /// Puts a session in force, in place of an older one of the same SEID; gives back what is no longer needed.
    pub(crate) fn install(
        &mut self,
        session: Box<Session>,
    ) -> Result<Option<Box<Session>>, (Refusal, Box<Session>)> {
        match self.place_for(&session) {
            Ok(place) => Ok(self.put(place, session)),
            Err(refusal) => Err((refusal, session)),
        }
    }

    /// Changes nothing unless the session can be installed whole.
    fn place_for(&mut self, session: &Session) -> Result<u32, Refusal> {
        let own = self.by_seid.get(session.seid.0);
        let taken = |place: Option<u32>| place.is_some() && place != own;
        for f_teid in &session.program.f_teids {
            if taken(self.by_tunnel.get(tunnel_key(f_teid.teid.0, f_teid.address))) {
                return Err(Refusal::TunnelTaken(*f_teid));
            }
        }
        for address in &session.program.ue_ipv4s {
            if taken(self.by_address.get(address_key(*address))) {
                return Err(Refusal::AddressTaken(*address));
            }
        }
        let (tunnels, addresses) = (session.program.f_teids.len(), session.program.ue_ipv4s.len());
        if tunnels > self.by_tunnel.room() || addresses > self.by_address.room() {
            return Err(Refusal::Keys);
        }
        own.or_else(|| self.free.pop()).ok_or(Refusal::Sessions)
    }

    fn put(&mut self, place: u32, session: Box<Session>) -> Option<Box<Session>> {
        let old = self.slots[place as usize].take();
        if let Some(old) = &old {
            self.remove_keys(&old.program);
        }
        let full = "place_for made sure of room";
        for f_teid in &session.program.f_teids {
            let inserted = self.by_tunnel.insert(tunnel_key(f_teid.teid.0, f_teid.address), place);
            debug_assert!(inserted.is_ok(), "{full}");
        }
        for address in &session.program.ue_ipv4s {
            let inserted = self.by_address.insert(address_key(*address), place);
            debug_assert!(inserted.is_ok(), "{full}");
        }
        let inserted = self.by_seid.insert(session.seid.0, place);
        debug_assert!(inserted.is_ok(), "{full}");
        self.slots[place as usize] = Some(session);
        old
    }

    /// Takes a session out of force.
    pub(crate) fn remove(&mut self, seid: Seid) -> Option<Box<Session>> {
        let place = self.by_seid.get(seid.0)?;
        let session = self.slots[place as usize].take()?;
        self.remove_keys(&session.program);
        self.by_seid.remove(seid.0);
        self.free.push(place);
        Some(session)
    }

    fn remove_keys(&mut self, program: &Program) {
        for f_teid in &program.f_teids {
            self.by_tunnel.remove(tunnel_key(f_teid.teid.0, f_teid.address));
        }
        for address in &program.ue_ipv4s {
            self.by_address.remove(address_key(*address));
        }
    }
}

fn tunnel_key(teid: u32, address: Ipv4Addr) -> u64 {
    u64::from(u32::from(address)) << 32 | u64::from(teid)
}

fn address_key(address: Ipv4Addr) -> u64 {
    u64::from(u32::from(address))
}

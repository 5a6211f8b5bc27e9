//! Our tunnel endpoints: which session has which TEID.

use rules::{Seid, Teid};
use session::SessionRecord;
use std::collections::HashMap;

/// Spreads start values over the 32 bits (the golden ratio's fraction, odd).
const SPREAD: u32 = 0x9E37_79B9;

/// TEIDs in use. New ones are counted upwards through all 32 bits, so one that was freed comes again only after
/// all others; 0 never does (TS 29.281 5.1).
#[derive(Debug)]
pub(crate) struct Tunnels {
    limit: usize,
    next: u32,
    owners: HashMap<Teid, Seid>,
}

/// Why there is no TEID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// The limit is reached.
    Exhausted,
    /// Another session has it.
    Taken,
}

impl Tunnels {
    /// Counting starts elsewhere after every restart that lost sessions: peers may still send into the old ones.
    pub(crate) fn new(recovery_time_stamp: u32, limit: usize) -> Self {
        Self { limit, next: recovery_time_stamp.wrapping_mul(SPREAD), owners: HashMap::new() }
    }

    /// Takes back what a session of the database has, and counts on behind it.
    pub(crate) fn restore(&mut self, record: &SessionRecord, recovery_time_stamp: u32) {
        let start = recovery_time_stamp.wrapping_mul(SPREAD);
        for teid in record.teids() {
            self.owners.insert(teid, record.seid);
            // Endpoints that control planes gave lie anywhere; those we counted lie shortly behind the start.
            let behind = teid.0.wrapping_sub(start);
            if behind < 1 << 31 && behind >= self.next.wrapping_sub(start) {
                self.next = teid.0.wrapping_add(1);
            }
        }
    }

    /// A new TEID for `session`.
    pub(crate) fn allocate(&mut self, session: Seid) -> Result<Teid, Unavailable> {
        if self.owners.len() >= self.limit {
            return Err(Unavailable::Exhausted);
        }
        while self.next == 0 || self.owners.contains_key(&Teid(self.next)) {
            self.next = self.next.wrapping_add(1);
        }
        let teid = Teid(self.next);
        self.next = self.next.wrapping_add(1);
        self.owners.insert(teid, session);
        Ok(teid)
    }

    /// A TEID the control plane gives to `session`; whether it is new to it.
    pub(crate) fn claim(&mut self, teid: Teid, session: Seid) -> Result<bool, Unavailable> {
        match self.owners.get(&teid) {
            Some(owner) if *owner == session => Ok(false),
            Some(_) => Err(Unavailable::Taken),
            None if self.owners.len() >= self.limit => Err(Unavailable::Exhausted),
            None => {
                self.owners.insert(teid, session);
                Ok(true)
            }
        }
    }

    /// Takes one back that the session had; another may have it by now.
    pub(crate) fn release(&mut self, teid: Teid, session: Seid) {
        if self.owners.get(&teid) == Some(&session) {
            self.owners.remove(&teid);
        }
    }

    /// What a session had is its own again, where nobody took it meanwhile.
    pub(crate) fn take_back(&mut self, record: &SessionRecord) {
        for teid in record.teids() {
            self.owners.entry(teid).or_insert(record.seid);
        }
    }

    /// Releases those of `old` that the session has no more.
    pub(crate) fn release_unused(&mut self, old: Vec<Teid>, new: &SessionRecord) {
        let kept: Vec<Teid> = new.teids().collect();
        old.into_iter().filter(|teid| !kept.contains(teid)).for_each(|teid| self.release(teid, new.seid));
    }

    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_teid_does_not_come_again_soon() {
        let mut tunnels = Tunnels::new(1, 10);
        let first = tunnels.allocate(Seid(1)).unwrap();
        tunnels.release(first, Seid(1));
        let later: Vec<_> = (0..10).map(|_| tunnels.allocate(Seid(1)).unwrap()).collect();
        assert!(!later.contains(&first));
        assert_eq!(tunnels.allocate(Seid(1)), Err(Unavailable::Exhausted));
    }

    #[test]
    fn zero_and_what_is_taken_are_passed_over() {
        let mut tunnels = Tunnels::new(0, 10);
        assert_eq!(tunnels.claim(Teid(1), Seid(9)), Ok(true));
        assert_eq!(tunnels.allocate(Seid(1)), Ok(Teid(2)));
        tunnels.next = u32::MAX;
        assert_eq!(tunnels.allocate(Seid(1)), Ok(Teid(u32::MAX)));
        assert_eq!(tunnels.allocate(Seid(1)), Ok(Teid(3)));
    }

    #[test]
    fn a_given_teid_belongs_to_one_session() {
        let mut tunnels = Tunnels::new(1, 1);
        assert_eq!(tunnels.claim(Teid(7), Seid(1)), Ok(true));
        assert_eq!(tunnels.claim(Teid(7), Seid(1)), Ok(false));
        assert_eq!(tunnels.claim(Teid(7), Seid(2)), Err(Unavailable::Taken));
        assert_eq!(tunnels.claim(Teid(8), Seid(2)), Err(Unavailable::Exhausted));
        tunnels.release(Teid(7), Seid(2));
        assert_eq!(tunnels.claim(Teid(7), Seid(1)), Ok(false));
        tunnels.release(Teid(7), Seid(1));
        assert_eq!(tunnels.claim(Teid(8), Seid(2)), Ok(true));
    }
}

//! Our tunnel endpoints: which session has which TEID.

use rules::{Seid, Teid};
use session::SessionRecord;
use std::collections::HashMap;
use std::net::IpAddr;
use steer::Matching;

/// Spreads start values over the 32 bits (the golden ratio's fraction, odd).
const SPREAD: u32 = 0x9E37_79B9;

/// Blocks of TEIDs looked at for one that leads where its user's address does; then any will do.
const BLOCKS: usize = 1_024;

/// TEIDs in use. New ones are counted upwards through all 32 bits, so one that was freed comes again only after
/// all others; 0 never does (TS 29.281 5.1). Of users whose address is known the count is of blocks, and their lowest
/// bits are such that a card which hashes TEIDs leads both directions to one worker; so 2^25 others come before one
/// comes again.
#[derive(Debug)]
pub(crate) struct Tunnels {
    limit: usize,
    next: u32,
    owners: HashMap<Teid, Seid>,
    matching: Matching,
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
        Self {
            limit,
            next: recovery_time_stamp.wrapping_mul(SPREAD),
            owners: HashMap::new(),
            matching: Matching::new(),
        }
    }

    /// Takes back what a session of the database has, and counts on behind it.
    pub(crate) fn restore(&mut self, record: &SessionRecord, recovery_time_stamp: u32) {
        let block = |teid: u32| teid & !(Matching::BLOCK - 1);
        let start = block(recovery_time_stamp.wrapping_mul(SPREAD));
        for teid in record.teids() {
            self.owners.insert(teid, record.seid);
            // Endpoints that control planes gave lie anywhere; those we counted lie in the start's block or shortly behind it.
            let behind = block(teid.0).wrapping_sub(start);
            if behind < 1 << 31 && behind >= block(self.next).wrapping_sub(start) {
                self.next = block(teid.0).wrapping_add(Matching::BLOCK);
            }
        }
    }

    /// A new TEID for `session`, whose user has this address.
    pub(crate) fn allocate(&mut self, session: Seid, user: Option<IpAddr>) -> Result<Teid, Unavailable> {
        if self.owners.len() >= self.limit {
            return Err(Unavailable::Exhausted);
        }
        let teid = user.and_then(|user| self.matching(user)).unwrap_or_else(|| self.any());
        self.owners.insert(teid, session);
        Ok(teid)
    }

    fn is_free(&self, teid: u32) -> bool {
        teid != 0 && !self.owners.contains_key(&Teid(teid))
    }

    fn any(&mut self) -> Teid {
        while !self.is_free(self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let teid = Teid(self.next);
        self.next = self.next.wrapping_add(1);
        teid
    }

    /// The next that leads to the worker of a user's address, if it is not far.
    fn matching(&mut self, user: IpAddr) -> Option<Teid> {
        let (block, user) = (Matching::BLOCK, hashed(user));
        let blocks = (0..BLOCKS as u32).map(|number| self.next.wrapping_add(number.wrapping_mul(block)));
        let teid = blocks.map(|start| self.matching.teid(start, user)).find(|teid| self.is_free(*teid))?;
        self.next = (teid & !(block - 1)).wrapping_add(block);
        Some(Teid(teid))
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

/// A user's address as cards and workers hash it: of IPv6 the prefix, all of which a user has.
fn hashed(user: IpAddr) -> u64 {
    match user {
        IpAddr::V4(address) => u64::from(address.to_bits()) << 32,
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use steer::{KEY, Table, queue_of_address, toeplitz};

    proptest! {
        /// As a card with tables of 128 entries sees it, whatever it has queues; and no TEID twice.
        #[test]
        fn teids_lead_where_their_users_addresses_do(
            stamp: u32, users in prop::collection::vec(any::<IpAddr>(), 1..200), queues in 1_u16..=64,
        ) {
            let mut tunnels = Tunnels::new(stamp, 1_000);
            let table = Table::new(queues, 7).unwrap();
            for user in users {
                let teid = tunnels.allocate(Seid(1), Some(user)).unwrap();
                let up = table.queue(toeplitz(&KEY, &teid.0.to_be_bytes()));
                prop_assert_eq!(up, queue_of_address(user, true, table));
                tunnels.allocate(Seid(2), None).unwrap();
            }
            prop_assert_eq!(tunnels.len() % 2, 0, "none is another's");
        }
    }

    /// Where every TEID that would do is taken, users still get one.
    #[test]
    fn a_user_without_a_matching_teid_gets_any() {
        let mut tunnels = Tunnels::new(0, 3_000);
        let user = IpAddr::from([10, 60, 0, 1]);
        let first = tunnels.allocate(Seid(1), Some(user)).unwrap().0;
        for number in 1..=BLOCKS as u32 {
            let start = first.wrapping_add(number * Matching::BLOCK);
            tunnels.claim(Teid(tunnels.matching.teid(start, hashed(user))), Seid(2)).unwrap();
        }
        let next = tunnels.next;
        assert_eq!(tunnels.allocate(Seid(3), Some(user)), Ok(Teid(next)));
    }

    #[test]
    fn a_freed_teid_does_not_come_again_soon() {
        let mut tunnels = Tunnels::new(1, 10);
        let first = tunnels.allocate(Seid(1), None).unwrap();
        tunnels.release(first, Seid(1));
        let later: Vec<_> = (0..10).map(|_| tunnels.allocate(Seid(1), None).unwrap()).collect();
        assert!(!later.contains(&first));
        assert_eq!(tunnels.allocate(Seid(1), None), Err(Unavailable::Exhausted));
    }

    #[test]
    fn zero_and_what_is_taken_are_passed_over() {
        let mut tunnels = Tunnels::new(0, 10);
        assert_eq!(tunnels.claim(Teid(1), Seid(9)), Ok(true));
        assert_eq!(tunnels.allocate(Seid(1), None), Ok(Teid(2)));
        tunnels.next = u32::MAX;
        assert_eq!(tunnels.allocate(Seid(1), None), Ok(Teid(u32::MAX)));
        assert_eq!(tunnels.allocate(Seid(1), None), Ok(Teid(3)));
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

//! Our tunnel endpoints: which session has which TEID at which port.

use crate::config::{GtpuAddress, Limits};
use machine::SeededMap;
use rules::{FTeid, Seid, Teid};
use session::SessionRecord;
use std::collections::BTreeSet;
use std::net::IpAddr;
use steer::Matching;

/// Spreads start values over the 32 bits (the golden ratio's fraction, odd).
const SPREAD: u32 = 0x9E37_79B9;

/// Blocks of TEIDs looked at for one that leads where its user's address does; then any will do.
const BLOCKS: usize = 1_024;

/// A TEID at one of our ports, whichever of the port's addresses it is for. Control planes that give TEIDs themselves count
/// them for each address alone (TS 29.281 3.1), so one number may be of several sessions.
type Place = (u16, Teid);

/// TEIDs in use. New ones are counted upwards through all 32 bits, so one that was freed comes again only after
/// all others; 0 never does (TS 29.281 5.1). Of users whose address is known the count is of blocks, and their lowest
/// bits are such that a card which hashes TEIDs leads both directions to one worker; so 2^25 others come before one
/// comes again.
#[derive(Debug)]
pub(crate) struct Tunnels {
    limit: usize,
    next: u32,
    ports: Vec<GtpuAddress>,
    owners: SeededMap<Place, Seid>,
    /// So many of them are of sessions that give way: they do not count.
    lent: usize,
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
    /// Counting starts elsewhere after every restart that lost sessions: peers may still send into the old ones. There is room for one
    /// of each session from the start.
    pub(crate) fn new(recovery_time_stamp: u32, limits: &Limits, ports: &[GtpuAddress]) -> Self {
        let most = limits.sessions.min(limits.tunnels);
        Self {
            limit: limits.tunnels,
            next: recovery_time_stamp.wrapping_mul(SPREAD),
            ports: ports.to_vec(),
            owners: SeededMap::with_capacity_and_hasher(most, Default::default()),
            lent: 0,
            matching: Matching::new(),
        }
    }

    /// Takes back what a session of the database has, and counts on behind it.
    pub(crate) fn restore(&mut self, record: &SessionRecord, recovery_time_stamp: u32) {
        let block = |teid: u32| teid & !(Matching::BLOCK - 1);
        let start = block(recovery_time_stamp.wrapping_mul(SPREAD));
        for f_teid in record.f_teids() {
            self.owners.insert(self.place(f_teid), record.seid);
            // Endpoints that control planes gave lie anywhere; those we counted lie in the start's block or shortly behind it.
            let behind = block(f_teid.teid.0).wrapping_sub(start);
            if behind < 1 << 31 && behind >= block(self.next).wrapping_sub(start) {
                self.next = block(f_teid.teid.0).wrapping_add(Matching::BLOCK);
            }
        }
    }

    fn place(&self, FTeid { teid, address }: FTeid) -> Place {
        let serves = |port: &GtpuAddress| {
            IpAddr::V4(port.ipv4) == address || port.ipv6.is_some_and(|ipv6| IpAddr::V6(ipv6) == address)
        };
        // An address of a former configuration is at no port: sessions have it until they end.
        let port = self.ports.iter().position(serves).and_then(|port| u16::try_from(port).ok());
        (port.unwrap_or(u16::MAX), teid)
    }

    /// A TEID at every port.
    fn places(&self, teid: Teid) -> impl Iterator<Item = Place> + use<> {
        (0_u16..).take(self.ports.len()).map(move |port| (port, teid))
    }

    /// A new endpoint for `session` at `address`; its user may have one, too.
    pub(crate) fn allocate(
        &mut self,
        session: Seid,
        user: Option<IpAddr>,
        address: IpAddr,
    ) -> Result<FTeid, Unavailable> {
        if self.is_full() {
            return Err(Unavailable::Exhausted);
        }
        let teid = user.and_then(|user| self.matching(user)).unwrap_or_else(|| self.any());
        let f_teid = FTeid { teid, address };
        self.owners.insert(self.place(f_teid), session);
        Ok(f_teid)
    }

    fn is_full(&self) -> bool {
        self.owners.len() >= self.limit.saturating_add(self.lent)
    }

    /// How many endpoints are a session's.
    pub(crate) fn held_by(&self, record: &SessionRecord) -> usize {
        let places: BTreeSet<Place> = record.f_teids().map(|f_teid| self.place(f_teid)).collect();
        places.iter().filter(|place| self.owners.get(place) == Some(&record.seid)).count()
    }

    /// Of endpoints in use so many may be another's.
    pub(crate) const fn lend(&mut self, count: usize) {
        self.lent += count;
    }

    /// They are gone, or whose they were.
    pub(crate) const fn no_longer_lend(&mut self, count: usize) {
        self.lent = self.lent.saturating_sub(count);
    }

    /// At every port, as [`Tunnels::claim`] wants it.
    fn is_free(&self, teid: u32) -> bool {
        teid != 0 && !self.places(Teid(teid)).any(|place| self.owners.contains_key(&place))
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

    /// An endpoint the control plane gives to `session`; whether it is new to it. A session tells its own tunnels apart by
    /// their TEIDs alone, so it may have a number at one port only.
    pub(crate) fn claim(&mut self, f_teid: FTeid, session: Seid) -> Result<bool, Unavailable> {
        let place = self.place(f_teid);
        let mut places = self.places(f_teid.teid);
        match self.owners.get(&place) {
            Some(owner) if *owner == session => Ok(false),
            Some(_) => Err(Unavailable::Taken),
            None if places.any(|other| self.owners.get(&other) == Some(&session)) => Err(Unavailable::Taken),
            None if self.is_full() => Err(Unavailable::Exhausted),
            None => {
                self.owners.insert(place, session);
                Ok(true)
            }
        }
    }

    /// Takes one back that the session had; another may have it by now.
    pub(crate) fn release(&mut self, f_teid: FTeid, session: Seid) {
        let place = self.place(f_teid);
        if self.owners.get(&place) == Some(&session) {
            self.owners.remove(&place);
        }
    }

    /// Which session has it.
    pub(crate) fn owner(&self, f_teid: FTeid) -> Option<Seid> {
        self.owners.get(&self.place(f_teid)).copied()
    }

    /// Whether two sessions would have one endpoint.
    pub(crate) fn share(&self, one: &SessionRecord, other: &SessionRecord) -> bool {
        let of_other: Vec<Place> = other.f_teids().map(|f_teid| self.place(f_teid)).collect();
        one.f_teids().any(|f_teid| of_other.contains(&self.place(f_teid)))
    }

    /// What a session had is its own again, where nobody took it meanwhile.
    pub(crate) fn take_back(&mut self, record: &SessionRecord) {
        for f_teid in record.f_teids() {
            self.owners.entry(self.place(f_teid)).or_insert(record.seid);
        }
    }

    /// Releases those of `old` that the session has no more.
    pub(crate) fn release_unused(&mut self, old: Vec<FTeid>, new: &SessionRecord) {
        if new.f_teids().eq(old.iter().copied()) {
            return;
        }
        let kept: Vec<Place> = new.f_teids().map(|f_teid| self.place(f_teid)).collect();
        for old in old {
            if !kept.contains(&self.place(old)) {
                self.release(old, new.seid);
            }
        }
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
    use std::net::Ipv4Addr;
    use steer::{KEY, Table, queue_of_address, toeplitz};

    const N3: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 30, 0, 2));

    fn tunnels(stamp: u32, limit: usize) -> Tunnels {
        Tunnels::new(
            stamp,
            &Limits { tunnels: limit, ..Limits::default() },
            &[GtpuAddress::access(Ipv4Addr::new(10, 30, 0, 2))],
        )
    }

    fn at(teid: u32) -> FTeid {
        FTeid { teid: Teid(teid), address: N3 }
    }

    proptest! {
        /// As a card with tables of 128 entries sees it, whatever it has queues; and no TEID twice.
        #[test]
        fn teids_lead_where_their_users_addresses_do(
            stamp: u32, users in prop::collection::vec(any::<IpAddr>(), 1..200), queues in 1_u16..=64,
        ) {
            let mut tunnels = tunnels(stamp, 1_000);
            let table = Table::new(queues, 7).unwrap();
            for user in users {
                let teid = tunnels.allocate(Seid(1), Some(user), N3).unwrap();
                let up = table.queue(toeplitz(&KEY, &teid.teid.0.to_be_bytes()));
                prop_assert_eq!(up, queue_of_address(user, true, table));
                tunnels.allocate(Seid(2), None, N3).unwrap();
            }
            prop_assert_eq!(tunnels.len() % 2, 0, "none is another's");
        }
    }

    /// Where every TEID that would do is taken, users still get one.
    #[test]
    fn a_user_without_a_matching_teid_gets_any() {
        let mut tunnels = tunnels(0, 3_000);
        let user = IpAddr::from([10, 60, 0, 1]);
        let first = tunnels.allocate(Seid(1), Some(user), N3).unwrap().teid.0;
        for number in 1..=BLOCKS as u32 {
            let start = first.wrapping_add(number * Matching::BLOCK);
            tunnels.claim(at(tunnels.matching.teid(start, hashed(user))), Seid(2)).unwrap();
        }
        let next = tunnels.next;
        assert_eq!(tunnels.allocate(Seid(3), Some(user), N3), Ok(at(next)));
    }

    #[test]
    fn a_freed_teid_does_not_come_again_soon() {
        let mut tunnels = tunnels(1, 10);
        let first = tunnels.allocate(Seid(1), None, N3).unwrap();
        tunnels.release(first, Seid(1));
        let later: Vec<_> = (0..10).map(|_| tunnels.allocate(Seid(1), None, N3).unwrap()).collect();
        assert!(!later.contains(&first));
        assert_eq!(tunnels.allocate(Seid(1), None, N3), Err(Unavailable::Exhausted));
    }

    #[test]
    fn zero_and_what_is_taken_are_passed_over() {
        let mut tunnels = tunnels(0, 10);
        assert_eq!(tunnels.claim(at(1), Seid(9)), Ok(true));
        assert_eq!(tunnels.allocate(Seid(1), None, N3), Ok(at(2)));
        tunnels.next = u32::MAX;
        assert_eq!(tunnels.allocate(Seid(1), None, N3), Ok(at(u32::MAX)));
        assert_eq!(tunnels.allocate(Seid(1), None, N3), Ok(at(3)));
    }

    #[test]
    fn a_given_teid_belongs_to_one_session() {
        let mut tunnels = tunnels(1, 1);
        assert_eq!(tunnels.claim(at(7), Seid(1)), Ok(true));
        assert_eq!(tunnels.claim(at(7), Seid(1)), Ok(false));
        assert_eq!(tunnels.claim(at(7), Seid(2)), Err(Unavailable::Taken));
        assert_eq!(tunnels.claim(at(8), Seid(2)), Err(Unavailable::Exhausted));
        tunnels.release(at(7), Seid(2));
        assert_eq!(tunnels.claim(at(7), Seid(1)), Ok(false));
        tunnels.release(at(7), Seid(1));
        assert_eq!(tunnels.claim(at(8), Seid(2)), Ok(true));
    }
}

//! Ethernet addresses of next hops, learnt by ARP and neighbour discovery.

use super::budget::Budget;
use super::table::Table;
use crate::frame::NextHop;
use arrayvec::ArrayVec;
use packet::ethernet::MacAddress;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Between two requests for the same address.
const REQUEST_INTERVAL_NS: u64 = 1_000_000_000;
/// An address confirmed longer ago is asked for again, and used meanwhile.
const FRESH_NS: u64 = 30_000_000_000;
/// An address confirmed longer ago is no longer used.
const STALE_NS: u64 = 120_000_000_000;
/// Requests in one vector; what is left over is asked for in the next.
const REQUESTS_MAX: usize = 32;

/// Of as many places, one is for a station that was never heard of: whoever asks for many addresses of a subnet that are nobody's
/// takes no others (RFC 6583).
const PLACES_PER_STRANGER: usize = 16;
/// Requests a second for stations that were never heard of.
const STRANGERS_PER_S: u32 = 2_000;
/// Places looked at for one that is given up, where all are taken.
const SEARCH: usize = 8;

/// Next hops whose places are remembered.
const LATELY: usize = 16;

/// What is known of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Send to this address.
    Known(MacAddress),
    /// It has been asked for.
    Asked,
    /// There is no room to remember one more.
    Full,
}

/// What a station told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) next_hop: NextHop,
    pub(crate) mac: MacAddress,
    /// A worker had asked for it: others may need it soon, as sessions move.
    pub(crate) is_wanted: bool,
}

#[derive(Clone, Copy)]
struct Neighbour {
    next_hop: NextHop,
    mac: Option<MacAddress>,
    /// It answered once.
    was_heard: bool,
    confirmed_ns: u64,
    asked_ns: Option<u64>,
}

/// On all ports together.
pub(crate) struct Neighbours {
    table: Table,
    entries: Vec<Neighbour>,
    limit: usize,
    /// Places of stations that were never heard of when they were entered, the oldest first.
    strangers: VecDeque<u32>,
    may_ask: Budget,
    /// Where the next search for a place begins.
    searched: usize,
    /// Where next hops used lately stand: packets have few of them.
    lately: [u32; LATELY],
    /// To be asked for at the end of the vector.
    pub(crate) requests: ArrayVec<NextHop, REQUESTS_MAX>,
    /// Learnt in this vector: what waits for them can go.
    pub(crate) learnt: ArrayVec<NextHop, REQUESTS_MAX>,
    /// Heard in this vector, for other workers. Empty where there are none.
    pub(crate) heard: ArrayVec<Heard, REQUESTS_MAX>,
    is_shared: bool,
    /// Ethernet addresses that turned out to be others, or new.
    changes: u64,
}

impl Neighbours {
    /// So many; `is_shared` where other workers want to hear what stations tell.
    pub(crate) fn new(limit: usize, is_shared: bool) -> Self {
        Self {
            table: Table::new(limit),
            entries: Vec::with_capacity(limit),
            limit,
            strangers: VecDeque::with_capacity(most_strangers(limit)),
            may_ask: Budget::new(STRANGERS_PER_S),
            searched: 0,
            lately: [0; LATELY],
            requests: ArrayVec::new(),
            learnt: ArrayVec::new(),
            heard: ArrayVec::new(),
            is_shared,
            changes: 0,
        }
    }

    /// Counts the Ethernet addresses that turned out to be others, or new: what was read before the last is out of date.
    #[inline(always)]
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The Ethernet address of a next hop that need not be asked for again, and when it must.
    pub(crate) fn fresh(&self, next_hop: NextHop, now_ns: u64) -> Option<(MacAddress, u64)> {
        let known = self.entries.get(self.table.get(key(next_hop))? as usize)?;
        let until_ns = known.confirmed_ns.saturating_add(FRESH_NS);
        let is_fresh = known.next_hop == next_hop && now_ns < until_ns;
        known.mac.filter(|_| is_fresh).map(|mac| (mac, until_ns))
    }

    /// The Ethernet address of a next hop; asks for it where it is unknown or old.
    #[inline]
    pub(crate) fn find(&mut self, next_hop: NextHop, now_ns: u64) -> Lookup {
        let guess = self.lately[lately(next_hop)] as usize;
        match self.entries.get(guess) {
            Some(Neighbour { next_hop: other, mac: Some(mac), confirmed_ns, .. })
                if *other == next_hop && now_ns.saturating_sub(*confirmed_ns) < FRESH_NS =>
            {
                Lookup::Known(*mac)
            }
            _ => self.find_anew(next_hop, now_ns),
        }
    }

    #[cold]
    fn find_anew(&mut self, next_hop: NextHop, now_ns: u64) -> Lookup {
        let Some(at) = self.place(next_hop, now_ns) else { return Lookup::Full };
        self.lately[lately(next_hop)] = at as u32;
        let neighbour = &mut self.entries[at];
        let age_ns = now_ns.saturating_sub(neighbour.confirmed_ns);
        match neighbour.mac {
            Some(mac) if age_ns < FRESH_NS => return Lookup::Known(mac),
            Some(_) if age_ns >= STALE_NS => neighbour.mac = None,
            _ => {}
        }
        let recently = |asked_ns: u64| now_ns.saturating_sub(asked_ns) < REQUEST_INTERVAL_NS;
        let may_ask = !neighbour.asked_ns.is_some_and(recently) && !self.requests.is_full();
        if may_ask && (neighbour.was_heard || self.may_ask.take(now_ns)) {
            self.requests.push(next_hop);
            neighbour.asked_ns = Some(now_ns);
        }
        neighbour.mac.map_or(Lookup::Asked, Lookup::Known)
    }

    /// Whether a packet to a next hop could leave now; asks nobody.
    pub(crate) fn is_known(&self, next_hop: NextHop, now_ns: u64) -> bool {
        let at = self.table.get(key(next_hop)).map(|at| at as usize);
        at.and_then(|at| self.entries.get(at)).is_some_and(|known| {
            let age_ns = now_ns.saturating_sub(known.confirmed_ns);
            known.next_hop == next_hop && known.mac.is_some() && age_ns < STALE_NS
        })
    }

    /// A station told its address. Stations nobody asked for are not remembered, so nobody can fill the table.
    pub(crate) fn learn(&mut self, next_hop: NextHop, mac: MacAddress, now_ns: u64) {
        let is_wanted = self.table.get(key(next_hop)).is_some();
        self.pass_on(Heard { next_hop, mac, is_wanted });
        self.learn_quietly(next_hop, mac, now_ns);
    }

    /// The same, told by another worker. What that one had asked for is remembered here, too, before it is needed: packets of a session
    /// that comes from there would wait for an answer else, and few may. Where it only happened to hear what was asked for here, it and
    /// all others are told that somebody did.
    pub(crate) fn hear(&mut self, heard: Heard, now_ns: u64) {
        let Heard { next_hop, mac, is_wanted } = heard;
        if is_wanted {
            self.place(next_hop, now_ns);
        }
        if self.learn_quietly(next_hop, mac, now_ns) && !is_wanted {
            self.pass_on(Heard { is_wanted: true, ..heard });
        }
    }

    fn pass_on(&mut self, heard: Heard) {
        if self.is_shared {
            // What there is no room for is asked for again.
            let _ = self.heard.try_push(heard);
        }
    }

    /// Whether it was waited for.
    fn learn_quietly(&mut self, next_hop: NextHop, mac: MacAddress, now_ns: u64) -> bool {
        let Some(at) = self.table.get(key(next_hop)) else { return false };
        let neighbour = &mut self.entries[at as usize];
        if neighbour.next_hop != next_hop {
            return false;
        }
        let was_unknown = neighbour.mac.is_none();
        if was_unknown && self.learnt.try_push(next_hop).is_err() {
            return false;
        }
        self.changes += u64::from(neighbour.mac != Some(mac));
        neighbour.mac = Some(mac);
        neighbour.was_heard = true;
        neighbour.confirmed_ns = now_ns;
        neighbour.asked_ns = None;
        was_unknown
    }

    /// The Ethernet address of a next hop, where it is known.
    pub(crate) fn known(&self, next_hop: NextHop) -> Option<MacAddress> {
        let neighbour = self.entries.get(self.table.get(key(next_hop))? as usize)?;
        neighbour.mac.filter(|_| neighbour.next_hop == next_hop)
    }

    /// Where the next hop is remembered, from now on if need be.
    fn place(&mut self, next_hop: NextHop, now_ns: u64) -> Option<usize> {
        if let Some(at) = self.table.get(key(next_hop)) {
            return (self.entries[at as usize].next_hop == next_hop).then_some(at as usize);
        }
        let fresh = Neighbour { next_hop, mac: None, was_heard: false, confirmed_ns: now_ns, asked_ns: None };
        let at = match self.oldest_stranger() {
            Some(at) => self.replace(at, fresh),
            None if self.entries.len() < self.limit => {
                self.entries.push(fresh);
                self.entries.len() - 1
            }
            None => {
                let gone = self.gone(now_ns)?;
                self.replace(gone, fresh)
            }
        };
        self.table.insert(key(next_hop), at as u32).ok()?;
        self.strangers.push_back(at as u32);
        Some(at)
    }

    /// One who has to give way to the next, where there are as many as may be. Real ones answer long before.
    fn oldest_stranger(&mut self) -> Option<usize> {
        while self.strangers.len() >= most_strangers(self.limit) {
            let at = self.strangers.pop_front()? as usize;
            if !self.entries.get(at)?.was_heard {
                return Some(at);
            }
        }
        None
    }

    /// A station that is long gone: a full table gives it up. Each search goes on where the one before ended.
    fn gone(&mut self, now_ns: u64) -> Option<usize> {
        (0..SEARCH.min(self.entries.len())).find_map(|_| {
            let at = self.searched % self.entries.len();
            self.searched = at + 1;
            (now_ns.saturating_sub(self.entries[at].confirmed_ns) >= STALE_NS).then_some(at)
        })
    }

    fn replace(&mut self, at: usize, fresh: Neighbour) -> usize {
        self.table.remove(key(self.entries[at].next_hop));
        self.entries[at] = fresh;
        at
    }
}

const fn most_strangers(limit: usize) -> usize {
    if limit < PLACES_PER_STRANGER { 1 } else { limit / PLACES_PER_STRANGER }
}

/// Where [`Neighbours::lately`] would have it.
#[inline]
fn lately(next_hop: NextHop) -> usize {
    let last = match next_hop.address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    };
    usize::from(last ^ next_hop.port) % LATELY
}

/// Of IPv6 addresses, a hash: two that share one cannot both be remembered, which an entry's own address tells.
fn key(next_hop: NextHop) -> u64 {
    match next_hop.address {
        IpAddr::V4(address) => u64::from(next_hop.port) << 32 | u64::from(u32::from(address)),
        IpAddr::V6(address) => {
            let (high, low) = ((u128::from(address) >> 64) as u64, u128::from(address) as u64);
            high.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ low.rotate_left(17) ^ u64::from(next_hop.port)
                | 1 << 63
        }
    }
}

impl NextHop {
    /// The station with `address` on `port`.
    pub(crate) fn new(port: u8, address: impl Into<IpAddr>) -> Self {
        Self { port, address: address.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

    fn hop(last: u8) -> NextHop {
        NextHop::new(0, std::net::Ipv4Addr::new(10, 0, 0, last))
    }

    #[test]
    fn an_unknown_station_is_asked_for_once_a_second() {
        let mut neighbours = Neighbours::new(4, false);
        for now_ns in [0, 1, REQUEST_INTERVAL_NS - 1, REQUEST_INTERVAL_NS] {
            assert_eq!(neighbours.find(hop(1), now_ns), Lookup::Asked);
        }
        assert_eq!(neighbours.requests.len(), 2);
    }

    #[test]
    fn an_answer_is_used_confirmed_and_at_last_forgotten() {
        let mut neighbours = Neighbours::new(4, false);
        neighbours.find(hop(1), 0);
        neighbours.learn(hop(1), MAC, 5);
        assert_eq!(neighbours.learnt.as_slice(), [hop(1)]);
        neighbours.requests.clear();
        assert_eq!(neighbours.find(hop(1), FRESH_NS), Lookup::Known(MAC));
        assert!(neighbours.requests.is_empty());
        assert_eq!(neighbours.find(hop(1), FRESH_NS + 5), Lookup::Known(MAC));
        assert_eq!(neighbours.requests.len(), 1);
        assert_eq!(neighbours.find(hop(1), STALE_NS + 5), Lookup::Asked);
    }

    #[test]
    fn nobody_is_remembered_unasked() {
        let mut neighbours = Neighbours::new(4, false);
        neighbours.learn(hop(1), MAC, 0);
        assert_eq!(neighbours.find(hop(1), 0), Lookup::Asked);
    }

    /// A station's answer came to a worker that had not asked; the third gets to know of it by the second, and nobody tells for ever.
    #[test]
    fn what_one_worker_asked_for_all_remember() {
        let mut workers = [(); 3].map(|()| Neighbours::new(4, true));
        workers[1].find(hop(1), 0);
        workers[0].learn(hop(1), MAC, 5);
        let mut told = 0;
        for from in [0, 1, 0, 1, 2] {
            for heard in std::mem::take(&mut workers[from].heard) {
                told += 1;
                (0..3).filter(|to| *to != from).for_each(|to| workers[to].hear(heard, 6));
            }
        }
        assert_eq!(workers.each_mut().map(|it| it.find(hop(1), FRESH_NS)), [Lookup::Known(MAC); 3]);
        assert_eq!((told, workers.each_ref().map(|it| it.heard.len())), (2, [0; 3]));
        // What nobody asked for nobody remembers.
        workers[0].learn(hop(2), MAC, 5);
        for heard in std::mem::take(&mut workers[0].heard) {
            workers[1].hear(heard, 6);
        }
        assert_eq!(workers[1].known(hop(2)), None);
    }

    #[test]
    fn stations_that_never_answered_make_room_for_one_another() {
        let mut neighbours = Neighbours::new(2, false);
        neighbours.find(hop(1), 0);
        neighbours.learn(hop(1), MAC, 0);
        for last in 2..5 {
            assert_eq!(neighbours.find(hop(last), 1), Lookup::Asked);
        }
        neighbours.learn(hop(4), MAC, 2);
        assert_eq!([1, 4].map(|last| neighbours.find(hop(last), 2)), [Lookup::Known(MAC); 2]);
        // All places are those of stations that were heard, until one is long gone.
        assert_eq!(neighbours.find(hop(5), 3), Lookup::Full);
        neighbours.learn(hop(4), MAC, STALE_NS / 2);
        assert_eq!(neighbours.find(hop(5), STALE_NS), Lookup::Asked);
        assert!(neighbours.known(hop(1)).is_none() && neighbours.known(hop(4)).is_some());
    }

    /// Somebody asks for all addresses of a subnet, and few are there: others are found all the same, and not all are asked for.
    #[test]
    fn a_scan_of_a_subnet_hinders_nobody() {
        let mut neighbours = Neighbours::new(64, false);
        let nobody = |n: u64| NextHop::new(1, std::net::Ipv6Addr::from_bits(u128::from(n)));
        let mut requests = 0;
        for n in 0..100_000 {
            let now_ns = n * 10_000;
            neighbours.find(nobody(n), now_ns);
            if n % 1_000 == 0 {
                let real = hop((n / 1_000) as u8);
                neighbours.find(real, now_ns);
                neighbours.learn(real, MAC, now_ns + 1);
            }
            requests += neighbours.requests.len();
            neighbours.requests.clear();
            neighbours.learnt.clear();
        }
        let known = (0..100).filter(|last| neighbours.known(hop(*last)).is_some()).count();
        assert!(known >= 60 && neighbours.entries.len() <= 64, "{known}");
        assert!(requests <= 2 * STRANGERS_PER_S as usize, "{requests}");
    }
}

//! Users' addresses that we choose (TS 29.244 5.21, feature UEIP): which session has which.

use ipnet::IpNet;
use machine::SeededMap;
use rules::{Instance, Seid};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most addresses of one pool.
const LARGEST: u32 = 1 << 24;

/// Spreads consecutive time stamps over a pool (2^32 by the golden ratio).
const SPREAD: u32 = 0x9E37_79B9;

/// The bits of a user's prefix that are not the network's.
const USER_BITS: u8 = 64;

/// Where users' addresses are chosen from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UePool {
    /// What control planes call it (TS 29.244 8.2.128).
    pub name: String,
    /// IPv4 addresses, without the first and the last; or IPv6 prefixes, of which each user gets one of 64 bits. At most
    /// 2^24 of either are used.
    pub prefix: IpNet,
    /// The network it belongs to, in lower case; where there is none, it serves every network.
    pub network_instance: Option<String>,
}

/// What is asked of the pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice<'a> {
    pub(crate) is_ipv6: bool,
    /// The name of a pool.
    pub(crate) pool: Option<&'a [u8]>,
    pub(crate) network_instance: Option<&'a str>,
}

/// Why there is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// No pool is meant.
    NoPool,
    /// None is called that.
    UnknownPool,
    /// All are in use.
    Exhausted,
    /// Another session has it.
    Taken,
}

#[derive(Debug)]
struct Pool {
    pool: UePool,
    /// Its network; `None` serves all.
    instance: Option<Instance>,
    /// Who has which of its addresses.
    owners: SeededMap<u32, Seid>,
    size: u32,
    /// The first that is given to users, and the place at which giving begins, counted from there.
    first: u32,
    begin: u32,
    /// So many places after that one were given out; none from there on ever was.
    fresh: u32,
    /// Given out before and free again, the oldest first.
    freed: VecDeque<u32>,
    /// It had no address for whoever asked last.
    is_exhausted: bool,
}

/// All pools.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
}

impl Pool {
    fn new(pool: UePool, recovery_time_stamp: u32) -> Self {
        let (size, first) = match pool.prefix {
            // Neither the network's own address nor its broadcast.
            IpNet::V4(prefix) if prefix.prefix_len() < 31 => (power(32 - prefix.prefix_len()) - 1, 1),
            IpNet::V4(prefix) => (power(32 - prefix.prefix_len()), 0),
            IpNet::V6(prefix) => (power(USER_BITS.saturating_sub(prefix.prefix_len())), 0),
        };
        let instance = pool.network_instance.as_deref().map(Instance::of);
        let (owners, freed) = (SeededMap::default(), VecDeque::new());
        let size = size.min(LARGEST);
        let begin = (u64::from(recovery_time_stamp.wrapping_mul(SPREAD)) * u64::from(size - first)) >> 32;
        Self {
            pool,
            instance,
            owners,
            size,
            first,
            begin: begin as u32,
            fresh: 0,
            freed,
            is_exhausted: false,
        }
    }

    /// How many are given to users.
    const fn count(&self) -> u32 {
        self.size - self.first
    }

    /// The index of a place in the order of giving.
    fn given(&self, place: u32) -> u32 {
        let place = (u64::from(place) + u64::from(self.begin)) % u64::from(self.count());
        self.first + place as u32
    }

    /// Whether an index has come up in the order of giving.
    fn was_given(&self, index: u32) -> bool {
        let place = index.checked_sub(self.first).map(|place| {
            let (place, count) = (u64::from(place), u64::from(self.count()));
            (place + count - u64::from(self.begin)) % count
        });
        place.is_some_and(|place| place < u64::from(self.fresh))
    }

    fn address(&self, index: u32) -> IpAddr {
        match self.pool.prefix {
            IpNet::V4(prefix) => IpAddr::V4(Ipv4Addr::from(u32::from(prefix.network()) | index)),
            IpNet::V6(prefix) => {
                IpAddr::V6(Ipv6Addr::from(u128::from(prefix.network()) | u128::from(index) << USER_BITS))
            }
        }
    }

    /// Where an address lies in it.
    fn index(&self, address: IpAddr) -> Option<u32> {
        let index = match (self.pool.prefix, address) {
            (IpNet::V4(prefix), IpAddr::V4(address)) if prefix.contains(&address) => {
                u32::from(address) - u32::from(prefix.network())
            }
            (IpNet::V6(prefix), IpAddr::V6(address)) if prefix.contains(&address) => {
                u32::try_from((u128::from(address) - u128::from(prefix.network())) >> USER_BITS).ok()?
            }
            _ => return None,
        };
        Some(index).filter(|index| *index < self.size)
    }

    /// A free address, which `session` has from now on.
    fn take(&mut self, session: Seid) -> Option<IpAddr> {
        let taken = |index: &u32| self.owners.contains_key(index);
        let fresh = (self.fresh..self.count()).find(|place| !taken(&self.given(*place)));
        let fresh_index = fresh.map(|place| self.given(place));
        self.fresh = fresh.map_or(self.count(), |place| place + 1);
        let index = fresh_index.or_else(|| self.freed.pop_front())?;
        self.owners.insert(index, session);
        Some(self.address(index))
    }

    /// As [`Pools::claim`], of one of its addresses.
    fn claim(&mut self, index: u32, session: Seid) -> Result<bool, Lack> {
        match self.owners.get(&index) {
            Some(owner) if *owner == session => return Ok(false),
            Some(_) => return Err(Lack::Taken),
            None if self.was_given(index) => self.freed.retain(|freed| *freed != index),
            None => {}
        }
        self.owners.insert(index, session);
        Ok(true)
    }

    fn release(&mut self, index: u32, session: Seid) {
        if self.owners.get(&index) == Some(&session) {
            self.owners.remove(&index);
            if self.was_given(index) {
                self.freed.push_back(index);
            }
        }
    }

    fn serves(&self, choice: &Choice<'_>) -> bool {
        let is_family = matches!(self.pool.prefix, IpNet::V6(_)) == choice.is_ipv6;
        is_family && choice.pool.is_none_or(|name| self.pool.name.as_bytes() == name)
    }
}

const fn power(bits: u8) -> u32 {
    if bits >= 24 { LARGEST } else { 1 << bits }
}

impl Pools {
    /// Giving begins elsewhere in each life of the node, by its recovery time stamp: where a database was lost, sessions that are to
    /// be restored (RESTI) had other addresses than those that newcomers get (TS 23.527 4.3).
    pub(crate) fn new(pools: &[UePool], recovery_time_stamp: u32) -> Self {
        let pool = |pool: &UePool| Pool::new(pool.clone(), recovery_time_stamp);
        Self { pools: pools.iter().map(pool).collect() }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// A free address for `session`: of the pool named, else of those of the network, else of those of every network.
    pub(crate) fn allocate(&mut self, choice: Choice<'_>, session: Seid) -> Result<IpAddr, Lack> {
        let is_called = |name: &[u8]| self.pools.iter().any(|pool| pool.pool.name.as_bytes() == name);
        // Where there are none at all, it is not for the name.
        if !self.is_empty() && choice.pool.is_some_and(|name| !is_called(name)) {
            return Err(Lack::UnknownPool);
        }
        let of = |instance: Option<&str>| {
            let is_it = move |pool: &&Pool| pool.pool.network_instance.as_deref() == instance;
            self.pools.iter().filter(move |pool| pool.serves(&choice)).any(|pool| is_it(&pool))
        };
        let instance = choice.network_instance.filter(|name| of(Some(name)));
        let is_named = choice.pool.is_some() || (choice.network_instance.is_none() && !of(None));
        self.pools.iter_mut().for_each(|pool| pool.is_exhausted = false);
        let mut candidates = self.pools.iter_mut().filter(|pool| {
            pool.serves(&choice) && (is_named || pool.pool.network_instance.as_deref() == instance)
        });
        let mut lack = Lack::NoPool;
        let found = candidates.find_map(|pool| {
            lack = Lack::Exhausted;
            let address = pool.take(session);
            pool.is_exhausted = address.is_none();
            address
        });
        found.ok_or(lack)
    }

    /// Whether an address is of a pool that whoever asked last would have been given one of, had it one.
    pub(crate) fn lack(&self, address: IpAddr) -> bool {
        self.pools.iter().any(|pool| pool.is_exhausted && pool.index(address).is_some())
    }

    /// An address the control plane gives to `session`, in this network where there are several. If it is of ours, nobody
    /// else gets it; whether that is new.
    pub(crate) fn claim(
        &mut self,
        address: IpAddr,
        instance: Option<Instance>,
        session: Seid,
    ) -> Result<bool, Lack> {
        let is_meant =
            |pool: &&mut Pool| instance.is_none() || pool.instance.is_none() || pool.instance == instance;
        let mut pools = self.pools.iter_mut().filter(is_meant);
        let found = pools.find_map(|pool| pool.index(address).map(|index| (pool, index)));
        found.map_or(Ok(false), |(pool, index)| pool.claim(index, session))
    }

    /// `session` had this address and has it again: of a pool of its network, or of the one that was named, whose network may
    /// be another.
    pub(crate) fn claim_again(&mut self, address: IpAddr, instance: Option<Instance>, session: Seid) {
        let has = |pool: &&mut Pool| pool.index(address).is_some();
        let is_other =
            |pool: &Pool| instance.is_some() && pool.instance.is_some() && pool.instance != instance;
        let pool = self.pools.iter_mut().filter(has).min_by_key(|pool| is_other(pool));
        if let Some((pool, index)) = pool.and_then(|pool| pool.index(address).map(|index| (pool, index))) {
            // Pools may have changed: what somebody else has is the control plane's concern.
            let _ = pool.claim(index, session);
        }
    }

    /// Takes an address back that `session` had, which comes again only after all others.
    pub(crate) fn release(&mut self, address: IpAddr, session: Seid) {
        for pool in &mut self.pools {
            if let Some(index) = pool.index(address) {
                pool.release(index, session);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pools.iter().map(|pool| pool.owners.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, prefix: &str, network_instance: Option<&str>) -> UePool {
        let network_instance = network_instance.map(str::to_owned);
        UePool { name: name.to_owned(), prefix: prefix.parse().unwrap(), network_instance }
    }

    fn any(is_ipv6: bool) -> Choice<'static> {
        Choice { is_ipv6, pool: None, network_instance: None }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn each_address_is_given_once_and_comes_again_last() {
        let mut pools = Pools::new(&[pool("a", "10.60.0.0/29", None)], 0);
        let all: Vec<_> = (0..6).map(|_| pools.allocate(any(false), Seid(1)).unwrap()).collect();
        assert_eq!(all, (1..7).map(|host| IpAddr::from([10, 60, 0, host])).collect::<Vec<_>>());
        assert_eq!(pools.allocate(any(false), Seid(1)), Err(Lack::Exhausted));
        pools.release(all[3], Seid(1));
        pools.release(all[0], Seid(1));
        pools.release(all[0], Seid(1));
        assert_eq!(pools.allocate(any(false), Seid(1)), Ok(all[3]));
        assert_eq!(pools.allocate(any(false), Seid(1)), Ok(all[0]));
        assert_eq!((pools.allocate(any(false), Seid(1)), pools.len()), (Err(Lack::Exhausted), 6));
    }

    #[test]
    fn users_get_prefixes_of_64_bits() {
        let mut pools = Pools::new(&[pool("a", "2001:db8:60::/63", None)], 0);
        assert_eq!(pools.allocate(any(true), Seid(1)), Ok(address("2001:db8:60::")));
        assert_eq!(pools.claim(address("2001:db8:60:1::77"), None, Seid(2)), Ok(true));
        assert_eq!(pools.claim(address("2001:db8:60:1::78"), None, Seid(3)), Err(Lack::Taken));
        assert_eq!(pools.allocate(any(true), Seid(1)), Err(Lack::Exhausted));
        assert_eq!(pools.allocate(any(false), Seid(1)), Err(Lack::NoPool));
    }

    #[test]
    fn a_claimed_address_is_nobody_elses_and_leaves_no_trace() {
        let mut pools = Pools::new(&[pool("a", "10.60.0.0/30", None)], 0);
        for _ in 0..10 {
            assert_eq!(pools.claim(address("10.60.0.2"), None, Seid(1)), Ok(true));
            assert_eq!(pools.claim(address("10.60.0.2"), None, Seid(1)), Ok(false));
            pools.release(address("10.60.0.2"), Seid(1));
        }
        assert_eq!(pools.claim(address("10.61.0.2"), None, Seid(1)), Ok(false));
        assert_eq!(pools.claim(address("10.60.0.1"), None, Seid(1)), Ok(true));
        assert_eq!(pools.allocate(any(false), Seid(2)), Ok(address("10.60.0.2")));
        pools.release(address("10.60.0.2"), Seid(2));
        assert_eq!(pools.claim(address("10.60.0.2"), None, Seid(1)), Ok(true));
        assert_eq!(pools.allocate(any(false), Seid(2)), Err(Lack::Exhausted));
    }

    #[test]
    fn a_pool_is_found_by_its_name_its_network_or_because_it_serves_all() {
        let mut pools = Pools::new(
            &[
                pool("ims", "10.1.0.0/24", Some("ims")),
                pool("all", "10.2.0.0/24", None),
                pool("spare", "10.3.0.0/24", None),
            ],
            0,
        );
        let mut of = |pool: Option<&'static str>, network_instance| {
            let choice = Choice { is_ipv6: false, pool: pool.map(str::as_bytes), network_instance };
            pools.allocate(choice, Seid(1)).map(|address| address.to_string())
        };
        assert_eq!(of(None, Some("ims")), Ok("10.1.0.1".to_owned()));
        assert_eq!(of(None, Some("internet")), Ok("10.2.0.1".to_owned()));
        assert_eq!(of(None, None), Ok("10.2.0.2".to_owned()));
        assert_eq!(of(Some("spare"), Some("ims")), Ok("10.3.0.1".to_owned()));
        assert_eq!(of(Some("none"), None), Err(Lack::UnknownPool));
        let mut pools = Pools::new(&[pool("ims", "10.1.0.0/24", Some("ims"))], 0);
        assert_eq!(pools.allocate(any(false), Seid(1)), Ok(address("10.1.0.1")));
        let internet = Choice { network_instance: Some("internet"), ..any(false) };
        assert_eq!(pools.allocate(internet, Seid(1)), Err(Lack::NoPool));
    }

    #[test]
    fn pools_of_two_networks_may_have_the_same_addresses() {
        let mut pools = Pools::new(
            &[pool("a", "10.60.0.0/30", Some("internet")), pool("b", "10.60.0.0/30", Some("ims"))],
            0,
        );
        let choice = |name| Choice { is_ipv6: false, pool: None, network_instance: Some(name) };
        let first = pools.allocate(choice("internet"), Seid(1));
        assert_eq!((first, pools.allocate(choice("ims"), Seid(2))), (Ok(address("10.60.0.1")), first));
        let ims = Some(Instance::of("ims"));
        assert_eq!(pools.claim(address("10.60.0.1"), ims, Seid(3)), Err(Lack::Taken));
        pools.release(address("10.60.0.1"), Seid(2));
        assert_eq!((pools.claim(address("10.60.0.1"), ims, Seid(3)), pools.len()), (Ok(true), 2));
        let other = Some(Instance::of("internet"));
        assert_eq!(pools.claim(address("10.60.0.1"), other, Seid(3)), Err(Lack::Taken));
    }

    /// A node that lost what it knew gives other addresses than in its former life, and all of them before any comes again.
    #[test]
    fn each_life_begins_elsewhere() {
        let all = |stamp| {
            let mut pools = Pools::new(&[pool("a", "10.60.0.0/24", None)], stamp);
            let all: Vec<_> = (0..254).map(|_| pools.allocate(any(false), Seid(1)).unwrap()).collect();
            assert_eq!(pools.allocate(any(false), Seid(1)), Err(Lack::Exhausted));
            pools.release(all[9], Seid(1));
            assert_eq!(pools.allocate(any(false), Seid(1)), Ok(all[9]));
            // The network's own is nobody's, even if a control plane gave it to a user.
            assert_eq!(pools.claim(address("10.60.0.0"), None, Seid(1)), Ok(true));
            pools.release(address("10.60.0.0"), Seid(1));
            assert_eq!(pools.allocate(any(false), Seid(1)), Err(Lack::Exhausted));
            all
        };
        let (before, after) = (all(0xE000_0001), all(0xE000_0010));
        assert!(before[..50].iter().all(|address| !after[..50].contains(address)));
        for mut lives in [before, after] {
            lives.sort_unstable();
            lives.dedup();
            assert_eq!(lives.len(), 254);
        }
    }
}

//! Users' addresses that we choose (TS 29.244 5.21, feature UEIP): which session has which.

use ipnet::IpNet;
use rules::Seid;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most addresses of one pool.
const LARGEST: u32 = 1 << 24;

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
    /// All are in use.
    Exhausted,
    /// Another session has it.
    Taken,
}

#[derive(Debug)]
struct Pool {
    pool: UePool,
    size: u32,
    /// From here on, none was ever given out.
    fresh: u32,
    /// Given out before `fresh` and free again, the oldest first.
    freed: VecDeque<u32>,
}

/// All pools.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
    owners: HashMap<IpAddr, Seid>,
}

impl Pool {
    fn new(pool: UePool) -> Self {
        let (size, fresh) = match pool.prefix {
            // Neither the network's own address nor its broadcast.
            IpNet::V4(prefix) if prefix.prefix_len() < 31 => (power(32 - prefix.prefix_len()) - 1, 1),
            IpNet::V4(prefix) => (power(32 - prefix.prefix_len()), 0),
            IpNet::V6(prefix) => (power(USER_BITS.saturating_sub(prefix.prefix_len())), 0),
        };
        Self { pool, size: size.min(LARGEST), fresh, freed: VecDeque::new() }
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

    fn take(&mut self, owners: &HashMap<IpAddr, Seid>) -> Option<IpAddr> {
        while self.fresh < self.size {
            let address = self.address(self.fresh);
            self.fresh += 1;
            if !owners.contains_key(&address) {
                return Some(address);
            }
        }
        self.freed.pop_front().map(|index| self.address(index))
    }

    fn serves(&self, choice: &Choice<'_>) -> bool {
        let is_family = matches!(self.pool.prefix, IpNet::V6(_)) == choice.is_ipv6;
        is_family && choice.pool.is_none_or(|name| self.pool.name.as_bytes() == name)
    }
}

const fn power(bits: u8) -> u32 {
    if bits >= 24 { LARGEST } else { 1 << bits }
}

/// What a pool is asked for by: the first address of a user's prefix.
fn key(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) >> USER_BITS << USER_BITS)),
    }
}

impl Pools {
    pub(crate) fn new(pools: &[UePool]) -> Self {
        Self { pools: pools.iter().cloned().map(Pool::new).collect(), owners: HashMap::new() }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// A free address for `session`: of the pool named, else of those of the network, else of those of every network.
    pub(crate) fn allocate(&mut self, choice: Choice<'_>, session: Seid) -> Result<IpAddr, Lack> {
        let of = |instance: Option<&str>| {
            let is_it = move |pool: &&Pool| pool.pool.network_instance.as_deref() == instance;
            self.pools.iter().filter(move |pool| pool.serves(&choice)).any(|pool| is_it(&pool))
        };
        let instance = choice.network_instance.filter(|name| of(Some(name)));
        let is_named = choice.pool.is_some() || (choice.network_instance.is_none() && !of(None));
        let mut candidates = self.pools.iter_mut().filter(|pool| {
            pool.serves(&choice) && (is_named || pool.pool.network_instance.as_deref() == instance)
        });
        let mut lack = Lack::NoPool;
        let found = candidates.find_map(|pool| {
            lack = Lack::Exhausted;
            pool.take(&self.owners)
        });
        let address = found.ok_or(lack)?;
        self.owners.insert(address, session);
        Ok(address)
    }

    /// An address the control plane gives to `session`. If it is of ours, nobody else gets it; whether that is new.
    pub(crate) fn claim(&mut self, address: IpAddr, session: Seid) -> Result<bool, Lack> {
        let address = key(address);
        let Some((pool, index)) =
            self.pools.iter_mut().find_map(|pool| pool.index(address).map(|index| (pool, index)))
        else {
            return Ok(false);
        };
        match self.owners.get(&address) {
            Some(owner) if *owner == session => Ok(false),
            Some(_) => Err(Lack::Taken),
            None => {
                if index < pool.fresh {
                    pool.freed.retain(|freed| *freed != index);
                }
                self.owners.insert(address, session);
                Ok(true)
            }
        }
    }

    /// Takes an address back, which comes again only after all others.
    pub(crate) fn release(&mut self, address: IpAddr) {
        let address = key(address);
        if self.owners.remove(&address).is_none() {
            return;
        }
        let at = self.pools.iter_mut().find_map(|pool| pool.index(address).map(|index| (pool, index)));
        if let Some((pool, index)) = at.filter(|(pool, index)| *index < pool.fresh) {
            pool.freed.push_back(index);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.owners.len()
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
        let mut pools = Pools::new(&[pool("a", "10.60.0.0/29", None)]);
        let all: Vec<_> = (0..6).map(|_| pools.allocate(any(false), Seid(1)).unwrap()).collect();
        assert_eq!(all, (1..7).map(|host| IpAddr::from([10, 60, 0, host])).collect::<Vec<_>>());
        assert_eq!(pools.allocate(any(false), Seid(1)), Err(Lack::Exhausted));
        pools.release(all[3]);
        pools.release(all[0]);
        pools.release(all[0]);
        assert_eq!(pools.allocate(any(false), Seid(1)), Ok(all[3]));
        assert_eq!(pools.allocate(any(false), Seid(1)), Ok(all[0]));
        assert_eq!((pools.allocate(any(false), Seid(1)), pools.len()), (Err(Lack::Exhausted), 6));
    }

    #[test]
    fn users_get_prefixes_of_64_bits() {
        let mut pools = Pools::new(&[pool("a", "2001:db8:60::/63", None)]);
        assert_eq!(pools.allocate(any(true), Seid(1)), Ok(address("2001:db8:60::")));
        assert_eq!(pools.claim(address("2001:db8:60:1::77"), Seid(2)), Ok(true));
        assert_eq!(pools.claim(address("2001:db8:60:1::78"), Seid(3)), Err(Lack::Taken));
        assert_eq!(pools.allocate(any(true), Seid(1)), Err(Lack::Exhausted));
        assert_eq!(pools.allocate(any(false), Seid(1)), Err(Lack::NoPool));
    }

    #[test]
    fn a_claimed_address_is_nobody_elses_and_leaves_no_trace() {
        let mut pools = Pools::new(&[pool("a", "10.60.0.0/30", None)]);
        for _ in 0..10 {
            assert_eq!(pools.claim(address("10.60.0.2"), Seid(1)), Ok(true));
            assert_eq!(pools.claim(address("10.60.0.2"), Seid(1)), Ok(false));
            pools.release(address("10.60.0.2"));
        }
        assert_eq!(pools.claim(address("10.61.0.2"), Seid(1)), Ok(false));
        assert_eq!(pools.claim(address("10.60.0.1"), Seid(1)), Ok(true));
        assert_eq!(pools.allocate(any(false), Seid(2)), Ok(address("10.60.0.2")));
        pools.release(address("10.60.0.2"));
        assert_eq!(pools.claim(address("10.60.0.2"), Seid(1)), Ok(true));
        assert_eq!(pools.allocate(any(false), Seid(2)), Err(Lack::Exhausted));
    }

    #[test]
    fn a_pool_is_found_by_its_name_its_network_or_because_it_serves_all() {
        let mut pools = Pools::new(&[
            pool("ims", "10.1.0.0/24", Some("ims")),
            pool("all", "10.2.0.0/24", None),
            pool("spare", "10.3.0.0/24", None),
        ]);
        let mut of = |pool: Option<&'static str>, network_instance| {
            let choice = Choice { is_ipv6: false, pool: pool.map(str::as_bytes), network_instance };
            pools.allocate(choice, Seid(1)).map(|address| address.to_string())
        };
        assert_eq!(of(None, Some("ims")), Ok("10.1.0.1".to_owned()));
        assert_eq!(of(None, Some("internet")), Ok("10.2.0.1".to_owned()));
        assert_eq!(of(None, None), Ok("10.2.0.2".to_owned()));
        assert_eq!(of(Some("spare"), Some("ims")), Ok("10.3.0.1".to_owned()));
        assert_eq!(of(Some("none"), None), Err(Lack::NoPool));
        let mut pools = Pools::new(&[pool("ims", "10.1.0.0/24", Some("ims"))]);
        assert_eq!(pools.allocate(any(false), Seid(1)), Ok(address("10.1.0.1")));
        let internet = Choice { network_instance: Some("internet"), ..any(false) };
        assert_eq!(pools.allocate(internet, Seid(1)), Err(Lack::NoPool));
    }
}

//! Networks behind users (framed routes, TS 29.244 5.16): whose an address is that is no user's own, by the longest of them.

use super::probing::Full;
use super::session::Key;
use super::table::Table;
use rules::Instance;
use std::ops::RangeInclusive;

/// How many bits of a user's key a network has, and of which family it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Length(u8);

/// All of a prefix: IPv6 has lengths of 0 to 64, and IPv4 those behind.
const IPV6_MAX: u8 = 64;
const IPV4_ZERO: u8 = IPV6_MAX + 1;
const IPV4_MAX: u8 = IPV4_ZERO + 32;

impl Length {
    pub(crate) const fn ipv4(bits: u8) -> Self {
        Self(IPV4_ZERO + if bits < 32 { bits } else { 32 })
    }

    pub(crate) const fn ipv6(bits: u8) -> Self {
        Self(if bits < IPV6_MAX { bits } else { IPV6_MAX })
    }

    /// Of a user's key itself.
    const fn of_user(user: u64) -> Self {
        Self(if user >> 32 == 0 { IPV4_MAX } else { IPV6_MAX })
    }

    /// Of a network of one address, or of one user's prefix.
    const fn is_whole(self) -> bool {
        self.0 == IPV6_MAX || self.0 == IPV4_MAX
    }

    /// The bits of a user's key behind a network of this length.
    const fn rest(self) -> u64 {
        match self.0 {
            IPV4_ZERO..=u8::MAX => (1 << (IPV4_MAX - self.0)) - 1,
            0 => u64::MAX,
            bits => (1 << (IPV6_MAX - bits)) - 1,
        }
    }

    /// The users that a network of these bits has, given as in flows' keys.
    pub(super) const fn users(self, bits: u64) -> RangeInclusive<u64> {
        let last = bits | self.rest();
        if self.0 < IPV4_ZERO { bits..=last } else { bits << 32..=last << 32 }
    }

    /// Whether a network of these bits has a user, given as in a flow's key.
    pub(super) const fn holds(self, bits: u64, user: u64) -> bool {
        let address = if self.0 < IPV4_ZERO { user } else { user >> 32 };
        address & !self.rest() == bits
    }

    /// Lengths of the same family that are shorter, a bit each.
    const fn shorter(self) -> u128 {
        let below = (1 << self.0) - 1;
        if self.0 < IPV4_ZERO { below } else { below & !((1 << IPV4_ZERO) - 1) }
    }
}

/// Networks of users, each with whom it leads to.
pub(crate) struct Framed {
    table: Table,
    /// By length.
    counts: [u32; IPV4_MAX as usize + 1],
    /// Bit n set: there is one of length n.
    lengths: u128,
}

impl Framed {
    /// Of so many networks.
    pub(crate) fn new(limit: usize) -> Self {
        Self { table: Table::new(limit), counts: [0; IPV4_MAX as usize + 1], lengths: 0 }
    }

    pub(crate) fn get(&self, network: (u64, Length, Instance)) -> Option<u32> {
        self.table.get(name(network))
    }

    /// Whom the network leads to that is in this place of the table; `None` behind the last.
    pub(crate) fn value_at(&self, place: usize) -> Option<Option<u32>> {
        self.table.value_at(place)
    }

    /// Networks it can still take.
    pub(crate) fn room(&self) -> usize {
        self.table.room()
    }

    /// Whether there are none.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.lengths == 0
    }

    /// Those that some network has, a bit each.
    #[inline]
    pub(crate) const fn lengths(&self) -> u128 {
        self.lengths
    }

    pub(crate) fn insert(&mut self, network: (u64, Length, Instance), value: u32) -> Result<(), Full> {
        let before = self.table.len();
        self.table.insert(name(network), value)?;
        self.count(network.1, self.table.len() > before, 1);
        Ok(())
    }

    pub(crate) fn remove(&mut self, network: (u64, Length, Instance)) -> bool {
        let was_there = self.table.remove(name(network));
        self.count(network.1, was_there, -1);
        was_there
    }

    fn count(&mut self, length: Length, has_changed: bool, more: i32) {
        let Some(count) = self.counts.get_mut(usize::from(length.0)).filter(|_| has_changed) else { return };
        *count = count.saturating_add_signed(more);
        let bit = 1 << length.0;
        self.lengths = if *count > 0 { self.lengths | bit } else { self.lengths & !bit };
    }
}

/// A network as a name of 64 bits: the bit behind its own is set, and no other. Those of IPv4 have nothing in the upper half;
/// [`network`] leaves out those of IPv6 that might be taken for them.
fn name((bits, length, instance): (u64, Length, Instance)) -> (u64, Instance) {
    (bits | ((length.rest() >> 1) + 1), instance)
}

/// The key of a network, of `bits` of which those behind its length are 0. `None` for those of IPv6 that nobody has: what could
/// be mistaken for IPv4 (RFC 4291 2.5.5), or says something else of us ([`Key::frames`]).
pub(crate) fn network(bits: u64, length: Length, instance: Instance) -> Option<Key> {
    let is_ipv6 = length.0 < IPV4_ZERO;
    let is_odd = is_ipv6 && length.0 >= 16 && bits >> 48 <= 2;
    (!is_odd).then_some(Key::Route(bits, length, instance))
}

/// A network of one address is found as a user's own address is.
pub(crate) const fn found_by(key: Key) -> Key {
    match key {
        Key::Route(bits, length, instance) if length.is_whole() => Key::User(bits, instance),
        key => key,
    }
}

/// How many of these are networks that are not found as a user's own address is.
pub(crate) fn networks(keys: &[Key]) -> usize {
    keys.iter().filter(|key| matches!(found_by(**key), Key::Route(..))).count()
}

/// Networks around a key, the longest first, as far as there are any of such `lengths`. Around tunnels there are none.
pub(crate) fn around(key: Key, lengths: u128) -> impl Iterator<Item = (u64, Length, Instance)> {
    let (bits, length, instance) = match key {
        Key::Route(bits, length, instance) => (bits, length, instance),
        Key::User(user, instance) => (user, Length::of_user(user), instance),
        Key::Tunnel(_) => (0, Length(0), Instance::DEFAULT),
    };
    let mut left = lengths & length.shorter();
    std::iter::from_fn(move || {
        let longest = Length(left.checked_ilog2()? as u8);
        left ^= 1 << longest.0;
        Some((bits & !longest.rest(), longest, instance))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    fn key(address: IpAddr) -> Key {
        Key::User(crate::state::user_key(address).unwrap(), Instance::DEFAULT)
    }

    fn route(text: &str) -> (u64, Length, Instance) {
        let net: ipnet::IpNet = text.parse().unwrap();
        match crate::install::route_key(net, Instance::DEFAULT).unwrap() {
            Key::Route(bits, length, instance) => (bits, length, instance),
            other => panic!("{other:?}"),
        }
    }

    fn longest(framed: &Framed, address: impl Into<IpAddr>) -> Option<u32> {
        around(key(address.into()), framed.lengths()).find_map(|network| framed.get(network))
    }

    #[test]
    fn the_longest_network_around_an_address_leads_and_families_are_apart() {
        let mut framed = Framed::new(8);
        let all =
            ["0.0.0.0/0", "192.168.0.0/16", "192.168.7.0/24", "::/0", "2001:db8::/32", "2001:db8:7::/63"];
        for (text, value) in all.into_iter().zip(0..) {
            framed.insert(route(text), value).ok().unwrap();
        }
        for (address, value) in [("192.168.7.9", 2), ("192.168.8.9", 1), ("9.9.9.9", 0)] {
            assert_eq!(longest(&framed, address.parse::<Ipv4Addr>().unwrap()), Some(value), "{address}");
        }
        for (address, value) in [("2001:db8:7:1::9", 5), ("2001:db8:7:2::9", 4), ("2002::1", 3)] {
            assert_eq!(longest(&framed, address.parse::<Ipv6Addr>().unwrap()), Some(value), "{address}");
        }
        assert!(framed.remove(route("192.168.7.0/24")));
        assert!(!framed.remove(route("192.168.7.0/24")));
        assert_eq!(longest(&framed, Ipv4Addr::new(192, 168, 7, 9)), Some(1));
        assert_eq!(all.iter().filter(|text| framed.remove(route(text))).count(), 5);
        assert!(framed.is_empty());
    }

    #[test]
    fn networks_nobody_has_are_no_keys() {
        for odd in ["::/64", "::/32", "0:1::/48", "0:2::/16"] {
            assert_eq!(crate::install::route_key(odd.parse().unwrap(), Instance::DEFAULT), None, "{odd}");
        }
    }

    proptest! {
        /// No two networks have one name.
        #[test]
        fn a_network_is_found_by_its_own_name_alone(
            nets in proptest::collection::vec((any::<bool>(), 0u8..64, any::<u64>()), 2..40),
        ) {
            let nets = nets.into_iter().filter_map(|(is_ipv4, bits, address)| {
                let (length, address) = match is_ipv4 {
                    true => (Length::ipv4(bits % 32), address >> 32),
                    false => (Length::ipv6(bits), address),
                };
                match network(address & !length.rest(), length, Instance::DEFAULT)? {
                    Key::Route(bits, length, instance) => Some((bits, length, instance)),
                    _ => None,
                }
            });
            let nets: Vec<_> = nets.collect();
            for one in &nets {
                for other in &nets {
                    prop_assert_eq!(one == other, name(*one) == name(*other));
                }
            }
        }
    }
}

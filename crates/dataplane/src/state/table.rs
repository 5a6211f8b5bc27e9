//! A hash table of fixed size from 64-bit keys to 32-bit values.

use super::probing::{Entry, Full, Probing, scatter};
use rules::Instance;

/// What a value is found by: 64 bits, and for users' addresses the network they are unique in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    bits: u64,
    instance: Instance,
}

impl Name {
    /// Where a table has it: a fraction of 2^64.
    #[inline]
    pub(crate) fn home(self) -> u64 {
        scatter(self.bits ^ u64::from(self.instance.digest()) << 48)
    }
}

impl From<u64> for Name {
    #[inline]
    fn from(bits: u64) -> Self {
        Self { bits, instance: Instance::DEFAULT }
    }
}

impl From<(u64, Instance)> for Name {
    #[inline]
    fn from((bits, instance): (u64, Instance)) -> Self {
        Self { bits, instance }
    }
}

/// Never more than three quarters full.
pub(crate) struct Table(Probing<Pair>);

#[derive(Clone, Copy)]
struct Pair {
    key: u64,
    value: u32,
    instance: Instance,
    used: bool,
}

/// Four to a cache line.
const _: () = assert!(size_of::<Pair>() == 16);

impl Pair {
    #[inline]
    const fn name(&self) -> Name {
        Name { bits: self.key, instance: self.instance }
    }
}

impl Entry for Pair {
    const FREE: Self = Self { key: 0, value: 0, instance: Instance::DEFAULT, used: false };
    const SPARE: usize = 3;

    #[inline]
    fn is_free(&self) -> bool {
        !self.used
    }

    #[inline]
    fn home(&self) -> u64 {
        self.name().home()
    }
}

impl Table {
    /// Room for `limit` keys.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Probing::new(limit))
    }

    /// Bytes it takes, with room for `limit` keys.
    pub(crate) const fn bytes(limit: usize) -> usize {
        Probing::<Pair>::bytes(limit)
    }

    /// Asks for the memory that is read first for `key`.
    #[inline]
    pub(crate) fn prefetch(&self, key: impl Into<Name>) {
        self.0.prefetch(key.into().home());
    }

    /// The value of `key`.
    #[inline]
    pub(crate) fn get(&self, key: impl Into<Name>) -> Option<u32> {
        let key = key.into();
        self.0.find(key.home(), |pair| pair.name() == key).map(|pair| pair.value)
    }

    /// Sets the value of `key`.
    pub(crate) fn insert(&mut self, key: impl Into<Name>, value: u32) -> Result<(), Full> {
        let key = key.into();
        let pair = Pair { key: key.bits, value, instance: key.instance, used: true };
        self.0.put(pair, |pair| pair.name() == key)
    }

    /// Forgets `key`; whether it was there.
    pub(crate) fn remove(&mut self, key: impl Into<Name>) -> bool {
        let key = key.into();
        self.0.remove(key.home(), |pair| pair.name() == key)
    }

    /// The value in this place, if it is in use; `None` behind the last.
    pub(crate) fn value_at(&self, place: usize) -> Option<Option<u32>> {
        self.0.at(place).map(|pair| pair.used.then_some(pair.value))
    }

    /// Keys it holds.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keys it can still take.
    pub(crate) fn room(&self) -> usize {
        self.0.room()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Few distinct keys, so that they collide and wrap around the end.
        #[test]
        fn behaves_like_a_hash_map(steps in proptest::collection::vec((any::<bool>(), 0u64..24, any::<u32>()), 0..300)) {
            let mut table = Table::new(16);
            let mut model = HashMap::new();
            for (insert, key, value) in steps {
                if insert {
                    let fits = model.contains_key(&key) || model.len() < 16;
                    prop_assert_eq!(table.insert(key, value).is_ok(), fits);
                    if fits {
                        model.insert(key, value);
                    }
                } else {
                    prop_assert_eq!(table.remove(key), model.remove(&key).is_some());
                }
                prop_assert_eq!(table.len(), model.len());
                for key in 0..24 {
                    prop_assert_eq!(table.get(key), model.get(&key).copied());
                    prop_assert_eq!(table.get((key, Instance::of("other"))), None);
                }
            }
        }
    }

    #[test]
    fn one_address_in_two_networks_is_two_keys() {
        let (mut table, other) = (Table::new(4), Instance::of("other"));
        table.insert(7, 1).ok().unwrap();
        table.insert((7, other), 2).ok().unwrap();
        assert_eq!((table.get(7), table.get((7, other)), table.len()), (Some(1), Some(2), 2));
        assert!(table.remove(7));
        assert_eq!((table.get(7), table.get((7, other))), (None, Some(2)));
    }
}

//! A hash table of fixed size from 64-bit keys to 32-bit values: linear probing, nothing allocated after it was made.

use rules::Instance;

/// What a value is found by: 64 bits, and for users' addresses the network they are unique in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    bits: u64,
    instance: Instance,
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

/// Never more than three quarters full, so a probe ends soon.
pub(crate) struct Table {
    entries: Box<[Entry]>,
    length: usize,
    limit: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    key: u64,
    value: u32,
    instance: Instance,
    used: bool,
}

impl Entry {
    #[inline]
    const fn name(&self) -> Name {
        Name { bits: self.key, instance: self.instance }
    }
}

/// Four to a cache line.
const _: () = assert!(size_of::<Entry>() == 16);

/// The table holds as many keys as it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Table {
    /// Room for `limit` keys.
    pub(crate) fn new(limit: usize) -> Self {
        let empty = Entry { key: 0, value: 0, instance: Instance::DEFAULT, used: false };
        Self { entries: super::memory::filled(limit + limit.div_ceil(3) + 1, empty), length: 0, limit }
    }

    /// The value of `key`.
    #[inline]
    pub(crate) fn get(&self, key: impl Into<Name>) -> Option<u32> {
        let entry = &self.entries[self.find(key.into())];
        entry.used.then_some(entry.value)
    }

    /// Asks for the memory that [`Table::get`] reads first.
    #[inline]
    pub(crate) fn prefetch(&self, key: impl Into<Name>) {
        super::memory::prefetch(&self.entries[self.home(key.into())]);
    }

    /// Sets the value of `key`.
    pub(crate) fn insert(&mut self, key: impl Into<Name>, value: u32) -> Result<(), Full> {
        let key = key.into();
        let at = self.find(key);
        if !self.entries[at].used {
            if self.length == self.limit {
                return Err(Full);
            }
            self.length += 1;
        }
        self.entries[at] = Entry { key: key.bits, value, instance: key.instance, used: true };
        Ok(())
    }

    /// Forgets `key`; whether it was there.
    pub(crate) fn remove(&mut self, key: impl Into<Name>) -> bool {
        let at = self.find(key.into());
        if !self.entries[at].used {
            return false;
        }
        self.length -= 1;
        self.close_gap(at);
        true
    }

    /// The value in this place, if it is in use; `None` behind the last.
    pub(crate) fn value_at(&self, place: usize) -> Option<Option<u32>> {
        self.entries.get(place).map(|entry| entry.used.then_some(entry.value))
    }

    /// Keys it holds.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Keys it can still take.
    pub(crate) fn room(&self) -> usize {
        self.limit - self.length
    }

    /// Where `key` is, or would go.
    #[inline]
    fn find(&self, key: Name) -> usize {
        let mut at = self.home(key);
        while self.entries[at].used && self.entries[at].name() != key {
            at = self.after(at);
        }
        at
    }

    /// Moves entries behind `gap` forward, so that no probe stops too early.
    fn close_gap(&mut self, mut gap: usize) {
        let mut at = self.after(gap);
        while self.entries[at].used {
            let home = self.home(self.entries[at].name());
            if self.distance(home, at) >= self.distance(gap, at) {
                self.entries[gap] = self.entries[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.entries[gap].used = false;
    }

    /// Fibonacci hashing: a product with 2^64 / golden ratio, as a fraction of 2^64, of the table's length.
    #[inline]
    fn home(&self, key: Name) -> usize {
        let bits = key.bits ^ u64::from(key.instance.digest()) << 48;
        let fraction = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(fraction) * self.entries.len() as u128) >> 64) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.entries.len() { 0 } else { at + 1 }
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.entries.len() - from }
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

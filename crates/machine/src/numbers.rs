//! Numbers by keys that are kept elsewhere.

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash};

/// Spreads a digest over the 64 bits that the table takes some of (the golden ratio's fraction, odd).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Numbers by keys: 8 octets each, where a table of keys like a request's has 60, and has to move them when it grows. Whose
/// number it is the caller knows. Keys are others' choice: the digest has a seed.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    seed: RandomState,
    table: HashTable<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    digest: u32,
    number: u32,
}

impl Numbers {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    fn digest(&self, key: &impl Hash) -> u32 {
        (self.seed.hash_one(key) >> 32) as u32
    }

    /// The number of a key, among those that `is_it` knows.
    pub(crate) fn get(&self, key: &impl Hash, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let digest = self.digest(key);
        let entry = self.table.find(spread(digest), |entry| entry.digest == digest && is_it(entry.number));
        entry.map(|entry| entry.number)
    }

    /// A key that has none gets one.
    pub(crate) fn insert(&mut self, key: &impl Hash, number: u32) {
        let digest = self.digest(key);
        self.table.insert_unique(spread(digest), Entry { digest, number }, |entry| spread(entry.digest));
    }

    /// Gives a key another one.
    pub(crate) fn change(&mut self, key: &impl Hash, from: u32, to: u32) {
        let digest = self.digest(key);
        let is_it = |entry: &Entry| entry.digest == digest && entry.number == from;
        self.table.find_mut(spread(digest), is_it).into_iter().for_each(|entry| entry.number = to);
    }

    /// Takes it away.
    pub(crate) fn remove(&mut self, key: &impl Hash, number: u32) {
        let digest = self.digest(key);
        let is_it = |entry: &Entry| entry.digest == digest && entry.number == number;
        if let Ok(entry) = self.table.find_entry(spread(digest), is_it) {
            entry.remove();
        }
    }

    /// Gives memory back where there is room for four times as many.
    pub(crate) fn shrink_to(&mut self, room: usize) {
        if self.table.capacity() > room * 4 {
            self.table.shrink_to(room, |entry| spread(entry.digest));
        }
    }

    /// Numbers there is memory for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.table.capacity()
    }
}

const fn spread(digest: u32) -> u64 {
    (digest as u64).wrapping_mul(SPREAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_numbers_also_where_digests_are_the_same() {
        let mut numbers = Numbers::default();
        // Keys by number.
        let keys: Vec<u64> = (0..100_000).collect();
        let is = |key: u64| move |number: u32| u64::from(number) == key;
        keys.iter().for_each(|key| numbers.insert(key, *key as u32));
        assert!(keys.iter().all(|key| numbers.get(key, is(*key)) == Some(*key as u32)));
        assert_eq!((numbers.len(), numbers.get(&100_000_u64, is(100_000))), (keys.len(), None));
        // Of one digest there are several now.
        numbers.insert(&1_u64, 200_000);
        assert_eq!(numbers.get(&1_u64, is(200_000)), Some(200_000));
        assert_eq!(numbers.get(&1_u64, is(1)), Some(1));
        numbers.change(&1_u64, 200_000, 300_000);
        numbers.remove(&1_u64, 200_000);
        assert_eq!(numbers.get(&1_u64, is(300_000)), Some(300_000));
        numbers.remove(&1_u64, 300_000);
        assert_eq!(numbers.get(&1_u64, |number| number != 1), None);
        numbers.remove(&1_u64, 1);
        assert_eq!((numbers.get(&1_u64, is(1)), numbers.len()), (None, keys.len() - 1));
    }
}

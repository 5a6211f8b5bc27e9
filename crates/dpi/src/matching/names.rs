//! Names of hosts and domains, found by what a host ends with.

use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// No rules.
pub(super) const NONE: u32 = u32::MAX;

/// Whose rules a name leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Those for the host of this very name.
    pub(super) exact: u32,
    /// Those for the hosts below it.
    pub(super) below: u32,
}

impl Default for Entry {
    fn default() -> Self {
        Self { exact: NONE, below: NONE }
    }
}

/// All names that rules name, in lower case.
#[derive(Debug, Default)]
pub(super) struct Names {
    entries: FxHashMap<Box<[u8]>, Entry>,
    /// Most labels of any: longer ends of a host need not be looked up.
    labels_max: usize,
    /// Of which ends of a host need be looked up at all.
    sieve: Sieve,
}

/// A bit for each hash of a name: most ends of a host are no names, and this is small enough to stay in a cache.
#[derive(Debug, Default)]
struct Sieve {
    bits: Box<[u64]>,
}

/// Bits for each name.
const BITS: usize = 16;

impl Sieve {
    fn new<'a>(names: impl ExactSizeIterator<Item = &'a [u8]>) -> Self {
        let words = (names.len() * BITS / 64).next_power_of_two();
        let mut sieve = Self { bits: vec![0; words].into() };
        for name in names {
            let (word, bit) = sieve.place(name);
            if let Some(word) = sieve.bits.get_mut(word) {
                *word |= bit;
            }
        }
        sieve
    }

    #[inline]
    fn may_have(&self, name: &[u8]) -> bool {
        let (word, bit) = self.place(name);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }

    #[inline]
    fn place(&self, name: &[u8]) -> (usize, u64) {
        let hash = FxBuildHasher.hash_one(name);
        // There are as many words as a power of two, or none.
        ((hash >> 6) as usize & self.bits.len().wrapping_sub(1), 1 << (hash & 63))
    }
}

impl Names {
    pub(super) fn entry(&mut self, name: &str) -> &mut Entry {
        self.labels_max = self.labels_max.max(name.split('.').count());
        self.entries.entry(name.as_bytes().into()).or_default()
    }

    /// All names are there: they may be asked for.
    pub(super) fn seal(&mut self) {
        self.sieve = Sieve::new(self.entries.keys().map(|name| &**name));
    }

    fn get(&self, name: &[u8]) -> Option<&Entry> {
        if self.sieve.may_have(name) { self.entries.get(name) } else { None }
    }

    /// Groups of the rules that a host, in lower case, leads to.
    #[inline]
    pub(super) fn groups(&self, host: &[u8]) -> impl Iterator<Item = u32> {
        let exact = self.get(host).map_or(NONE, |entry| entry.exact);
        let dots = memchr::memrchr_iter(b'.', host).take(self.labels_max);
        let ends = dots.filter_map(|at| host.get(at + 1..));
        let below = ends.filter_map(|end| self.get(end)).map(|entry| entry.below);
        std::iter::once(exact).chain(below).filter(|group| *group != NONE)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // Entries with their byte of control, and each name in a block of its own.
        let names: usize = self.entries.keys().map(|name| name.len().next_multiple_of(16)).sum();
        self.entries.capacity() * (size_of::<(Box<[u8]>, Entry)>() + 1) * 8 / 7
            + names
            + size_of_val(&*self.sieve.bits)
    }
}

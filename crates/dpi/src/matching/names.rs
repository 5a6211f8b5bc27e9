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
    /// Once all names are there, those that are too long for `short`.
    entries: FxHashMap<Box<[u8]>, Entry>,
    /// The others.
    short: Short,
    /// How many there are of both.
    count: usize,
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
            let (word, bit) = sieve.place(hash(name));
            if let Some(word) = sieve.bits.get_mut(word) {
                *word |= bit;
            }
        }
        sieve
    }

    #[inline]
    fn may_have(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }

    #[inline]
    fn place(&self, hash: u64) -> (usize, u64) {
        // There are as many words as a power of two, or none.
        ((hash >> 6) as usize & self.bits.len().wrapping_sub(1), 1 << (hash & 63))
    }
}

#[inline]
fn hash(name: &[u8]) -> u64 {
    FxBuildHasher.hash_one(name)
}

/// Bytes of a name that lies in its slot.
const SHORT: usize = 55;

/// A name and its entry: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Slot {
    entry: Entry,
    /// 0 where there is none.
    length: u8,
    name: [u8; SHORT],
}

const _: () = assert!(size_of::<Slot>() == 64, "one cache line a name");
const EMPTY: Slot = Slot { entry: Entry { exact: NONE, below: NONE }, length: 0, name: [0; SHORT] };

/// Names that fit a slot, in a table of linear probing that is never more than half full. A host is found by reading one
/// cache line, mostly.
#[derive(Debug, Default)]
struct Short {
    slots: Box<[Slot]>,
}

impl Short {
    fn new(entries: &FxHashMap<Box<[u8]>, Entry>) -> Self {
        let count = entries.keys().filter(|name| name.len() <= SHORT).count();
        let mut short = Self { slots: vec![EMPTY; count * 2 + 1].into() };
        for (name, entry) in entries {
            short.insert(name, *entry);
        }
        short
    }

    fn insert(&mut self, name: &[u8], entry: Entry) {
        let Some(free) =
            self.way(hash(name)).find(|at| self.slots.get(*at).is_some_and(|slot| slot.length == 0))
        else {
            return;
        };
        if let Some((slot, length)) = self.slots.get_mut(free).zip(u8::try_from(name.len()).ok())
            && let Some(room) = slot.name.get_mut(..name.len())
        {
            room.copy_from_slice(name);
            (slot.entry, slot.length) = (entry, length);
        }
    }

    /// The entry of a name that is no longer than [`SHORT`].
    #[inline]
    fn get(&self, name: &[u8], hash: u64) -> Option<&Entry> {
        let slots = self.way(hash).filter_map(|at| self.slots.get(at));
        let mut taken = slots.take_while(|slot| slot.length > 0);
        taken.find(|slot| slot.name.get(..usize::from(slot.length)) == Some(name)).map(|slot| &slot.entry)
    }

    /// Where a name of this hash may be, in order.
    #[inline]
    fn way(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let slots = self.slots.len();
        let home = ((u128::from(hash) * slots as u128) >> 64) as usize;
        (home..slots).chain(0..home)
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
        self.short = Short::new(&self.entries);
        self.count = self.entries.len();
        self.entries.retain(|name, _| name.len() > SHORT);
        self.entries.shrink_to_fit();
    }

    #[inline]
    fn get(&self, name: &[u8]) -> Option<&Entry> {
        let hash = hash(name);
        match (self.sieve.may_have(hash), name.len() <= SHORT) {
            (false, _) => None,
            (true, true) => self.short.get(name, hash),
            (true, false) => self.entries.get(name),
        }
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
        self.count
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // Entries with their byte of control, and each name in a block of its own.
        let names: usize = self.entries.keys().map(|name| name.len().next_multiple_of(16)).sum();
        self.entries.capacity() * (size_of::<(Box<[u8]>, Entry)>() + 1) * 8 / 7
            + names
            + size_of_val(&*self.sieve.bits)
            + size_of_val(&*self.short.slots)
    }
}

//! Names of hosts and domains, found by what a host ends with.

use super::lead::Lead;
use arrayvec::ArrayVec;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// The groups of a name, while rules are added.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// That of the host of this very name.
    pub(super) exact: Option<u32>,
    /// That of the hosts below it.
    pub(super) below: Option<u32>,
}

/// All names that rules name, in lower case, while rules are added.
#[derive(Debug, Default)]
pub(super) struct DraftNames {
    entries: FxHashMap<Box<[u8]>, Entry>,
}

impl DraftNames {
    pub(super) fn entry(&mut self, name: &str) -> &mut Entry {
        self.entries.entry(name.as_bytes().into()).or_default()
    }
}

/// What a name leads to: for the host of this very name, and for the hosts below it.
#[derive(Clone, Copy, Debug)]
struct Leads {
    exact: Lead,
    below: Lead,
}

impl Leads {
    const NONE: Self = Self { exact: Lead::NONE, below: Lead::NONE };
}

/// All names that rules name, in lower case.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Those that are too long for `short`.
    long: FxHashMap<Box<[u8]>, Leads>,
    /// The others.
    short: Short,
    /// How many there are of both.
    count: usize,
    /// Of the names that are hosts.
    exact: Labels,
    /// Of the names that hosts are below.
    below: Labels,
    /// Of which ends of a host need be looked up at all.
    sieve: Sieve,
}

/// How many labels names have: a bit for each number, and one for all that are higher. Ends of a host that have other
/// numbers need not be looked for.
#[derive(Clone, Copy, Debug, Default)]
struct Labels(u64);

impl Labels {
    #[inline]
    fn bit(count: usize) -> u32 {
        count.min(63) as u32
    }

    fn insert(&mut self, count: usize) {
        self.0 |= 1 << Self::bit(count);
    }

    #[inline]
    fn has(self, count: usize) -> bool {
        self.0 >> Self::bit(count) & 1 != 0
    }

    /// Whether there is this number or a higher one.
    #[inline]
    fn reaches(self, count: usize) -> bool {
        self.0 >> Self::bit(count) != 0
    }
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

/// A name and its leads: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Slot {
    leads: Leads,
    /// 0 where there is none.
    length: u8,
    name: [u8; SHORT],
}

const _: () = assert!(size_of::<Slot>() == 64, "one cache line a name");
const EMPTY: Slot = Slot { leads: Leads::NONE, length: 0, name: [0; SHORT] };

/// Names that fit a slot, in a table of linear probing that is never more than half full. A host is found by reading one
/// cache line, mostly.
#[derive(Debug, Default)]
struct Short {
    slots: Box<[Slot]>,
}

impl Short {
    fn new(leads: &FxHashMap<Box<[u8]>, Leads>) -> Self {
        let count = leads.keys().filter(|name| name.len() <= SHORT).count();
        let mut short = Self { slots: vec![EMPTY; count * 2 + 1].into() };
        for (name, leads) in leads {
            short.insert(name, *leads);
        }
        short
    }

    fn insert(&mut self, name: &[u8], leads: Leads) {
        let Some(free) =
            self.way(hash(name)).find(|at| self.slots.get(*at).is_some_and(|slot| slot.length == 0))
        else {
            return;
        };
        if let Some((slot, length)) = self.slots.get_mut(free).zip(u8::try_from(name.len()).ok())
            && let Some(room) = slot.name.get_mut(..name.len())
        {
            room.copy_from_slice(name);
            (slot.leads, slot.length) = (leads, length);
        }
    }

    /// The leads of a name that is no longer than [`SHORT`].
    #[inline]
    fn get(&self, name: &[u8], hash: u64) -> Option<&Leads> {
        let slots = self.way(hash).filter_map(|at| self.slots.get(at));
        let mut taken = slots.take_while(|slot| slot.length > 0);
        taken.find(|slot| slot.name.get(..usize::from(slot.length)) == Some(name)).map(|slot| &slot.leads)
    }

    /// Where a name of this hash may be, in order.
    #[inline]
    fn way(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let slots = self.slots.len();
        let home = ((u128::from(hash) * slots as u128) >> 64) as usize;
        (home..slots).chain(0..home)
    }
}

/// An end of a host that may be a name.
#[derive(Clone, Copy)]
struct End<'a> {
    name: &'a [u8],
    hash: u64,
    /// It is all of the host.
    is_whole: bool,
}

/// Ends that are looked for at once.
const TOGETHER: usize = 8;

impl Names {
    /// Of what each name's groups have become.
    pub(super) fn new(draft: DraftNames, lead: impl Fn(u32) -> Lead) -> Self {
        let mut names = Self { count: draft.entries.len(), ..Self::default() };
        let lead = |group: Option<u32>| group.map_or(Lead::NONE, &lead);
        for (name, Entry { exact, below }) in draft.entries {
            let labels = name.iter().filter(|byte| **byte == b'.').count() + 1;
            if exact.is_some() {
                names.exact.insert(labels);
            }
            if below.is_some() {
                names.below.insert(labels);
            }
            names.long.insert(name, Leads { exact: lead(exact), below: lead(below) });
        }
        names.sieve = Sieve::new(names.long.keys().map(|name| &**name));
        names.short = Short::new(&names.long);
        names.long.retain(|name, _| name.len() > SHORT);
        names.long.shrink_to_fit();
        names
    }

    /// Calls `found` with what a host, in lower case, leads to.
    #[inline]
    pub(super) fn search(&self, host: &[u8], mut found: impl FnMut(Lead)) {
        let mut ends = ArrayVec::<End<'_>, TOGETHER>::new();
        let mut labels = 1;
        let mut begin = host.len();
        while self.below.reaches(labels) || self.exact.reaches(labels) {
            let dot = memchr::memrchr(b'.', host.get(..begin).unwrap_or_default());
            let is_whole = dot.is_none();
            let lengths = if is_whole { self.exact } else { self.below };
            let name = host.get(dot.map_or(0, |dot| dot + 1)..).unwrap_or_default();
            if lengths.has(labels) {
                if ends.is_full() {
                    self.look_up(&ends, &mut found);
                    ends.clear();
                }
                ends.push(End { name, hash: hash(name), is_whole });
            }
            let Some(dot) = dot else { break };
            (begin, labels) = (dot, labels + 1);
        }
        self.look_up(&ends, &mut found);
    }

    /// What the sieve says of all is read before any of it is looked at: so what is far away comes at the same time.
    #[inline]
    fn look_up(&self, ends: &[End<'_>], found: &mut impl FnMut(Lead)) {
        let bit = |(at, end): (usize, &End<'_>)| u32::from(self.sieve.may_have(end.hash)) << at;
        let mut may_be = ends.iter().enumerate().map(bit).fold(0, |all, bit| all | bit);
        while let Some(end) = ends.get(may_be.trailing_zeros() as usize) {
            may_be &= may_be - 1;
            if let Some(leads) = self.get(end) {
                found(if end.is_whole { leads.exact } else { leads.below });
            }
        }
    }

    #[inline]
    fn get(&self, end: &End<'_>) -> Option<&Leads> {
        if end.name.len() <= SHORT { self.short.get(end.name, end.hash) } else { self.long.get(end.name) }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // Entries with their byte of control, and each name in a block of its own.
        let names: usize = self.long.keys().map(|name| name.len().next_multiple_of(16)).sum();
        self.long.capacity() * (size_of::<(Box<[u8]>, Leads)>() + 1) * 8 / 7
            + names
            + size_of_val(&*self.sieve.bits)
            + size_of_val(&*self.short.slots)
    }
}

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

#[inline]
fn hash(name: &[u8]) -> u64 {
    FxBuildHasher.hash_one(name)
}

/// Bytes of a name that lies in its slot.
const SHORT: usize = 54;

/// A name and its leads: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Slot {
    leads: Leads,
    /// 0 where there is none.
    length: u8,
    /// Names whose home this is lie elsewhere.
    has_more: bool,
    name: [u8; SHORT],
}

const _: () = assert!(size_of::<Slot>() == 64, "one cache line a name");
const EMPTY: Slot = Slot { leads: Leads::NONE, length: 0, has_more: false, name: [0; SHORT] };

/// Names that fit a slot, in a table of linear probing that is never more than half full. A host is found by reading one
/// cache line, mostly: four names of five lie where their hash says, their home, and homes know whether to look further.
#[derive(Debug, Default)]
struct Short {
    slots: Box<[Slot]>,
}

impl Short {
    fn new(leads: &FxHashMap<Box<[u8]>, Leads>) -> Self {
        let count = leads.keys().filter(|name| name.len() <= SHORT).count();
        let mut short = Self { slots: vec![EMPTY; count * 2 + 1].into() };
        // As many as can be come home before others take what is free.
        let mut homeless = vec![];
        for (name, leads) in leads.iter().filter(|(name, _)| name.len() <= SHORT) {
            let hash = hash(name);
            let home = short.home(hash);
            match short.slots.get_mut(home) {
                Some(slot) if slot.length == 0 => slot.fill(name, *leads),
                Some(slot) => {
                    slot.has_more = true;
                    homeless.push((name, hash, *leads));
                }
                None => {}
            }
        }
        for (name, hash, leads) in homeless {
            let free = short.way(hash).find(|at| short.slots.get(*at).is_some_and(|slot| slot.length == 0));
            if let Some(slot) = free.and_then(|free| short.slots.get_mut(free)) {
                slot.fill(name, leads);
            }
        }
        short
    }

    /// Whether the name of an end may be here, by one slot alone and without a branch.
    #[inline]
    fn may_have(&self, end: &End<'_>) -> bool {
        let home = self.slots.get(self.home(end.hash)).unwrap_or(&EMPTY);
        home.has_more | (usize::from(home.length) == end.name.len())
    }

    /// The leads of a name that is no longer than [`SHORT`].
    #[inline]
    fn get(&self, end: &End<'_>) -> Option<&Leads> {
        let slots = self.way(end.hash).filter_map(|at| self.slots.get(at));
        let mut taken = slots.take_while(|slot| slot.length > 0);
        taken.find(|slot| slot.name.get(..usize::from(slot.length)) == Some(end.name)).map(|slot| &slot.leads)
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }

    /// Where a name of this hash may be, in order.
    #[inline]
    fn way(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let (slots, home) = (self.slots.len(), self.home(hash));
        (home..slots).chain(0..home)
    }
}

impl Slot {
    /// With a name that is no longer than [`SHORT`].
    fn fill(&mut self, name: &[u8], leads: Leads) {
        if let Some((room, length)) = self.name.get_mut(..name.len()).zip(u8::try_from(name.len()).ok()) {
            room.copy_from_slice(name);
            (self.leads, self.length) = (leads, length);
        }
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

    /// The home of each is read before any is looked into, so that all come at the same time from far away.
    #[inline]
    fn look_up(&self, ends: &[End<'_>], found: &mut impl FnMut(Lead)) {
        let bit = |(at, end): (usize, &End<'_>)| {
            u32::from(self.short.may_have(end) | (end.name.len() > SHORT)) << at
        };
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
        if end.name.len() <= SHORT { self.short.get(end) } else { self.long.get(end.name) }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // Entries with their byte of control, and each name in a block of its own.
        let names: usize = self.long.keys().map(|name| name.len().next_multiple_of(16)).sum();
        self.long.capacity() * (size_of::<(Box<[u8]>, Leads)>() + 1) * 8 / 7
            + names
            + size_of_val(&*self.short.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Few labels, many of a host, and such that make names too long for a slot, or just not.
    fn name() -> impl Strategy<Value = String> {
        prop_oneof![3 => r"[ab]{1,2}(\.[ab]){0,3}", 1 => r"[ab](\.[ab]){60,80}", 2 => r"a{20,27}(\.[ab]{26}){1,2}"]
    }

    proptest! {
        #[test]
        fn a_host_leads_to_its_name_and_those_it_is_below(
            names in proptest::collection::btree_map(name(), (any::<bool>(), any::<bool>()), 0..60),
            hosts in proptest::collection::vec((r"([ab]{0,2}\.)?", name()), 20),
        ) {
            let numbered: BTreeMap<&String, (u32, (bool, bool))> =
                names.iter().enumerate().map(|(at, (name, which))| (name, (at as u32 * 2, *which))).collect();
            let mut draft = DraftNames::default();
            for (name, (number, (exact, below))) in &numbered {
                *draft.entry(name) = Entry { exact: exact.then_some(*number), below: below.then_some(*number + 1) };
            }
            let index = Names::new(draft, Lead::group);
            prop_assert_eq!(index.len(), names.len());
            let named = names.keys().map(|name| ("a.".to_owned(), name.clone()));
            for (front, end) in hosts.into_iter().chain(named) {
                for host in [format!("{front}{end}"), end] {
                    let mut found = vec![];
                    index.search(host.as_bytes(), |lead| if lead != Lead::NONE { found.push(lead) });
                    found.sort_unstable_by_key(|lead| format!("{lead:?}"));
                    let exact = numbered.iter().filter(|(name, (_, (exact, _)))| *exact && **name == &host);
                    let below = numbered.iter()
                        .filter(|(name, (_, (_, below)))| *below && host.ends_with(&format!(".{name}")));
                    let mut expected: Vec<Lead> = exact.map(|(_, (number, _))| Lead::group(*number))
                        .chain(below.map(|(_, (number, _))| Lead::group(*number + 1))).collect();
                    expected.sort_unstable_by_key(|lead| format!("{lead:?}"));
                    prop_assert_eq!(found, expected, "{}", host);
                }
            }
        }
    }
}

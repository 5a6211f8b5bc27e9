//! A hash table of fixed size to places from what stands there: it has 32 bits of the hash of each name and not the name,
//! so an entry is 8 bytes. Whoever looks for a name says which of the places, mostly one, has it.

use super::probing::{Entry, Full, Probing};
use super::table::Name;

/// Never more than seven eighths full; eight entries are a cache line.
pub(crate) struct Index(Probing<Mark>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// Upper half of the name's home.
    tag: u32,
    place: u32,
}

const _: () = assert!(size_of::<Mark>() == 8);

/// No place.
const NOWHERE: u32 = u32::MAX;

impl Mark {
    #[inline]
    fn new(name: Name, place: u32) -> Self {
        Self { tag: tag(name), place }
    }
}

impl Entry for Mark {
    const FREE: Self = Self { tag: 0, place: NOWHERE };
    const SPARE: usize = 7;

    #[inline]
    fn is_free(&self) -> bool {
        self.place == NOWHERE
    }

    #[inline]
    fn home(&self) -> u64 {
        u64::from(self.tag) << 32
    }
}

#[inline]
fn tag(name: Name) -> u32 {
    (name.home() >> 32) as u32
}

impl Index {
    /// Room for `limit` names.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Probing::new(limit))
    }

    /// Bytes it takes, with room for `limit` names.
    pub(crate) const fn bytes(limit: usize) -> usize {
        Probing::<Mark>::bytes(limit)
    }

    /// The place of a name, which is there if `is_there`.
    #[inline]
    pub(crate) fn get(&self, name: impl Into<Name>, is_there: impl Fn(u32) -> bool) -> Option<u32> {
        let wanted = Mark::new(name.into(), NOWHERE);
        let found = self.0.find(wanted.home(), |mark| mark.tag == wanted.tag && is_there(mark.place));
        found.map(|mark| mark.place)
    }

    /// Asks for the memory that [`Index::get`] reads first.
    #[inline]
    pub(crate) fn prefetch(&self, name: impl Into<Name>) {
        self.0.prefetch(Mark::new(name.into(), NOWHERE).home());
    }

    /// A name leads to a place, to which it did not lead before.
    pub(crate) fn insert(&mut self, name: impl Into<Name>, place: u32) -> Result<(), Full> {
        self.0.put(Mark::new(name.into(), place), |_| false)
    }

    /// A name leads to a place no longer; whether it did. (Names of one hash and one place have the same entry.)
    pub(crate) fn remove(&mut self, name: impl Into<Name>, place: u32) -> bool {
        let wanted = Mark::new(name.into(), place);
        self.0.remove(wanted.home(), |mark| *mark == wanted)
    }

    /// Names it holds.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Names it can still take.
    pub(crate) const fn room(&self) -> usize {
        self.0.room()
    }
}

#[cfg(test)]
mod tests {
    use super::super::probing::gather;
    use super::*;
    use proptest::prelude::*;

    /// Names of which each four have one tag.
    fn name(number: u64) -> u64 {
        gather(((number / 4) << 60) | (number % 4))
    }

    #[test]
    fn names_of_these_tests_share_tags() {
        let tags: Vec<u32> = (0..64).map(|number| tag(name(number).into())).collect();
        assert!(tags.chunks(4).all(|four| four.iter().all(|tag| *tag == four[0])));
        assert_eq!(tags.iter().step_by(4).collect::<std::collections::HashSet<_>>().len(), 16);
    }

    proptest! {
        /// Names with the same tags, in a table that wraps around its end; each place has a name of its own.
        #[test]
        fn behaves_like_places_with_names(steps in proptest::collection::vec((0u32..16, 0u64..64), 0..300)) {
            let mut index = Index::new(12);
            let mut places: [Option<u64>; 16] = [None; 16];
            for (place, number) in steps {
                let slot = place as usize;
                match places[slot] {
                    Some(old) => {
                        prop_assert!(index.remove(name(old), place));
                        prop_assert!(!index.remove(name(old), place));
                        places[slot] = None;
                    }
                    None if places.contains(&Some(number)) => {}
                    None => {
                        let fits = index.room() > 0;
                        prop_assert_eq!(index.insert(name(number), place).is_ok(), fits);
                        places[slot] = fits.then_some(number);
                    }
                }
                prop_assert_eq!(index.len(), places.iter().flatten().count());
                for number in 0..64 {
                    let found = index.get(name(number), |place| places[place as usize] == Some(number));
                    let expected = places.iter().position(|other| *other == Some(number));
                    prop_assert_eq!(found.map(|place| place as usize), expected);
                }
            }
        }
    }
}

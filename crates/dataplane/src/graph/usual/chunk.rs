//! Which packets of a chunk wait at a node.

use std::ops::Range;

/// Packets of a chunk: many enough for misses to overlap, few enough for what came for three of them to be in the L1 cache still.
pub(super) const CHUNK: usize = 12;

/// The packets of a chunk that wait at a node, by their places in the vector.
pub(super) trait Waiting: Sized {
    /// Whether nothing tells a branch which packets these are, so that there is none.
    const IS_MIXED: bool;

    /// None yet of a chunk.
    fn none_of(chunk: Range<usize>) -> Self;

    /// None yet of those that wait here.
    fn none_of_these(&self) -> Self;

    /// Adds one, if it waits.
    fn put(&mut self, place: usize, waits: bool);

    /// Takes one after the other.
    fn for_each(&self, take: impl FnMut(usize));

    /// All of a chunk.
    #[inline(always)]
    fn all_of(chunk: Range<usize>) -> Self {
        let mut all = Self::none_of(chunk.clone());
        chunk.for_each(|place| all.put(place, true));
        all
    }
}

/// Where nearly all go on: a mark for each.
pub(super) struct Marked {
    chunk: Range<usize>,
    waits: [bool; CHUNK],
}

impl Waiting for Marked {
    const IS_MIXED: bool = false;

    #[inline(always)]
    fn none_of(chunk: Range<usize>) -> Self {
        Self { chunk, waits: [false; CHUNK] }
    }

    #[inline(always)]
    fn none_of_these(&self) -> Self {
        Self::none_of(self.chunk.clone())
    }

    #[inline(always)]
    fn put(&mut self, place: usize, waits: bool) {
        self.waits[place - self.chunk.start] = waits;
    }

    #[inline(always)]
    fn for_each(&self, mut take: impl FnMut(usize)) {
        for (place, waits) in self.chunk.clone().zip(self.waits) {
            if waits {
                take(place);
            }
        }
    }
}

/// Where any may go on: a list.
pub(super) struct Listed<T = usize> {
    items: [T; CHUNK],
    count: usize,
}

impl<T: Copy> Listed<T> {
    #[inline(always)]
    pub(super) const fn none(filler: T) -> Self {
        Self { items: [filler; CHUNK], count: 0 }
    }

    /// Adds one, if it belongs here.
    #[inline(always)]
    pub(super) fn add_if(&mut self, belongs: bool, item: T) {
        self.items[self.count] = item;
        self.count += usize::from(belongs);
    }

    #[inline(always)]
    pub(super) fn items(&self) -> &[T] {
        &self.items[..self.count]
    }
}

impl Waiting for Listed {
    const IS_MIXED: bool = true;

    #[inline(always)]
    fn none_of(_: Range<usize>) -> Self {
        Self::none(0)
    }

    #[inline(always)]
    fn none_of_these(&self) -> Self {
        Self::none(0)
    }

    #[inline(always)]
    fn put(&mut self, place: usize, waits: bool) {
        self.add_if(waits, place);
    }

    #[inline(always)]
    fn for_each(&self, take: impl FnMut(usize)) {
        self.items().iter().copied().for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn in_order<W: Waiting>(start: usize, marks: &[bool]) -> (Vec<usize>, Vec<usize>) {
        let chunk = start..start + marks.len();
        let mut waiting = W::none_of(chunk.clone());
        chunk.clone().zip(marks).for_each(|(place, waits)| waiting.put(place, *waits));
        let mut next = waiting.none_of_these();
        waiting.for_each(|place| next.put(place, place.is_multiple_of(2)));
        let places = |waiting: &W| {
            let mut places = vec![];
            waiting.for_each(|place| places.push(place));
            places
        };
        assert_eq!(places(&W::all_of(chunk.clone())), chunk.collect::<Vec<_>>());
        (places(&waiting), places(&next))
    }

    proptest! {
        #[test]
        fn those_that_wait_are_taken_in_order_whichever_way_they_are_noted(
            start in 0..256_usize, marks in proptest::collection::vec(any::<bool>(), 0..=CHUNK),
        ) {
            let expected: Vec<usize> =
                marks.iter().zip(start..).filter(|(waits, _)| **waits).map(|(_, place)| place).collect();
            let even = expected.iter().copied().filter(|place| place % 2 == 0).collect();
            prop_assert_eq!(in_order::<Listed>(start, &marks), (expected.clone(), even));
            prop_assert_eq!(in_order::<Listed>(start, &marks), in_order::<Marked>(start, &marks));
        }
    }
}

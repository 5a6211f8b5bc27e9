//! Which packets of a chunk wait at a node.

use std::ops::Range;

/// Packets of a chunk: many enough for misses to overlap, few enough for what came for three of them to be in the L1 cache still.
pub(super) const CHUNK: usize = 12;

/// The packets of a chunk that wait at a node.
pub(super) trait Waiting: Sized {
    /// Whether nothing tells a branch which packets these are, so that there is none.
    const IS_MIXED: bool;

    /// All of a chunk.
    fn all_of(chunk: Range<usize>) -> Self;

    /// Where the chunk begins in the vector.
    fn start(&self) -> usize;

    /// The one that is taken as the `turn`th, if there are so many, by its place in the chunk.
    fn taken_at(&self, turn: usize) -> Option<usize>;

    /// Says whether one that was taken still waits; behind all that were taken before it.
    fn note(&mut self, place: usize, waits: bool);

    /// Begins to take them.
    fn begin(&mut self) {}

    /// None that was not noted waits any more.
    fn end(&mut self) {}

    /// Takes one after the other, but the first `skipped`: with it, or where it does not wait for itself, comes a packet that
    /// stands `ahead` places further on, by a chunk at least. Those of which `take` says so wait on, as do those that were skipped.
    #[inline(always)]
    fn retain<T>(
        &mut self,
        packets: &mut [T],
        (skipped, ahead): (usize, usize),
        mut take: impl FnMut(Option<&mut T>, Option<(usize, &mut T)>) -> bool,
    ) {
        let start = self.start();
        let Some((_, packets)) = packets.split_at_mut_checked(start) else { return };
        let (these, others) = packets.split_at_mut(CHUNK.min(packets.len()));
        let others = others.get_mut(ahead - CHUNK..).unwrap_or_default();
        self.begin();
        for turn in 0..these.len() {
            let other = others.get_mut(turn);
            let place = self.taken_at(turn);
            let waits = match place {
                Some(_) if turn < skipped => true,
                Some(place) => take(other, these.get_mut(place).map(|packet| (start + place, packet))),
                None => take(other, None),
            };
            if let Some(place) = place {
                self.note(place, waits);
            }
        }
        self.end();
    }

    /// Takes one after the other.
    #[inline(always)]
    fn for_each<T>(&self, packets: &mut [T], mut take: impl FnMut(&mut T)) {
        let Some((_, packets)) = packets.split_at_mut_checked(self.start()) else { return };
        let (these, _) = packets.split_at_mut(CHUNK.min(packets.len()));
        for turn in 0..these.len() {
            if let Some(packet) = self.taken_at(turn).and_then(|place| these.get_mut(place)) {
                take(packet);
            }
        }
    }
}

/// Where nearly all go on: a mark for each.
pub(super) struct Marked {
    start: usize,
    waits: [bool; CHUNK],
}

impl Waiting for Marked {
    const IS_MIXED: bool = false;

    #[inline(always)]
    fn all_of(chunk: Range<usize>) -> Self {
        Self { start: chunk.start, waits: [!chunk.is_empty(); CHUNK] }
    }

    #[inline(always)]
    fn start(&self) -> usize {
        self.start
    }

    #[inline(always)]
    fn taken_at(&self, turn: usize) -> Option<usize> {
        self.waits[turn].then_some(turn)
    }

    #[inline(always)]
    fn note(&mut self, place: usize, waits: bool) {
        self.waits[place] = waits;
    }
}

/// Where any may go on: a list.
pub(super) struct Listed<T = usize> {
    start: usize,
    items: [T; CHUNK],
    count: usize,
    /// Of the list that is being made, in the place of the one that is read.
    noted: usize,
}

impl<T: Copy> Listed<T> {
    #[inline(always)]
    pub(super) const fn none(filler: T) -> Self {
        Self { start: 0, items: [filler; CHUNK], count: 0, noted: 0 }
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
    fn all_of(chunk: Range<usize>) -> Self {
        let mut all = Self { start: chunk.start, ..Self::none(0) };
        (0..chunk.len()).for_each(|place| all.add_if(true, place));
        all
    }

    #[inline(always)]
    fn start(&self) -> usize {
        self.start
    }

    #[inline(always)]
    fn taken_at(&self, turn: usize) -> Option<usize> {
        (turn < self.count).then_some(self.items[turn])
    }

    #[inline(always)]
    fn note(&mut self, place: usize, waits: bool) {
        self.items[self.noted] = place;
        self.noted += usize::from(waits);
    }

    #[inline(always)]
    fn begin(&mut self) {
        self.noted = 0;
    }

    #[inline(always)]
    fn end(&mut self) {
        self.count = self.noted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACKETS: usize = 300;

    /// Places in the vector.
    type Places = Vec<usize>;

    /// Which are taken at each of two nodes, where those that `waits` names go on from the first, and which are taken in
    /// between; and with them, which stand so far ahead.
    fn taken<W: Waiting>(
        chunk: Range<usize>,
        waits: &[bool],
        (skipped, ahead): (usize, usize),
    ) -> ([Places; 3], [Places; 2]) {
        let mut packets: Vec<usize> = (0..PACKETS).collect();
        let (mut own, mut others) = ([vec![], vec![], vec![]], [vec![], vec![]]);
        let mut waiting = W::all_of(chunk.clone());
        waiting.retain(&mut packets, (skipped, ahead), |other, packet| {
            others[0].extend(other.copied());
            packet.is_some_and(|(place, packet)| {
                assert_eq!(place, *packet);
                own[0].push(place);
                waits[place - chunk.start]
            })
        });
        waiting.for_each(&mut packets, |packet| own[1].push(*packet));
        waiting.retain(&mut packets, (0, ahead), |other, packet| {
            others[1].extend(other.copied());
            own[2].extend(packet.map(|(place, _)| place));
            false
        });
        waiting.for_each(&mut packets, |_| panic!("none waits any more"));
        (own, others)
    }

    proptest! {
        #[test]
        fn those_that_wait_are_taken_in_order_whichever_way_they_are_noted(
            start in 0..=PACKETS, waits: [bool; CHUNK], skipped in 0..=CHUNK, ahead in CHUNK..4 * CHUNK,
        ) {
            let end = (start + CHUNK).min(PACKETS);
            let others = |skipped| (start + skipped..end).map(|place| place + ahead).filter(|place| *place < PACKETS).collect();
            let first = (start + skipped..end).collect();
            let goes_on: Places =
                (start..end).filter(|place| *place < start + skipped || waits[place - start]).collect();
            let expected = ([first, goes_on.clone(), goes_on], [others(skipped), others(0)]);
            prop_assert_eq!(taken::<Marked>(start..end, &waits, (skipped, ahead)), expected.clone());
            prop_assert_eq!(taken::<Listed>(start..end, &waits, (skipped, ahead)), expected);
        }

        #[test]
        fn of_no_chunk_none_waits(start in 0..=PACKETS) {
            let mut packets = [(); PACKETS];
            Marked::all_of(start..start).for_each(&mut packets, |()| panic!());
            Listed::all_of(start..start).for_each(&mut packets, |()| panic!());
        }
    }
}

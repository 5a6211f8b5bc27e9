//! Which packets of a chunk wait at a node.

use std::ops::Range;

/// Most packets of a chunk.
const MOST: usize = 12;
/// And fewest.
const FEWEST: usize = 8;
/// Bytes of L1 cache for each packet of a chunk, with those of the chunks before and behind it.
const L1_BYTES: usize = 4096;

/// Packets of a chunk: many enough for misses to overlap, few enough for what came for three of them to be in the L1 cache still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkLength(usize);

impl ChunkLength {
    /// For an L1 cache of so many bytes.
    pub(crate) const fn of(l1: usize) -> Self {
        match l1 / L1_BYTES {
            ..FEWEST => Self(FEWEST),
            length @ FEWEST..=MOST => Self(length),
            _ => Self(MOST),
        }
    }

    /// Packets.
    pub(crate) const fn packets(self) -> usize {
        self.0
    }

    /// So far ahead descriptions of packets are asked for: those before it were as the packets were received.
    pub(crate) const fn described(self) -> usize {
        3 * self.0
    }

    /// So far ahead the data of those that were handed over is: no node before the second reads it.
    pub(crate) const fn read(self) -> usize {
        2 * self.0
    }
}

/// The packets of a chunk that wait at a node.
pub(super) trait Waiting: Sized {
    /// Whether nothing tells a branch which packets these are, so that there is none.
    const IS_MIXED: bool;

    /// All of a chunk, which is as long as it says, or ends with the vector.
    fn all_of(chunk: Range<usize>, length: ChunkLength) -> Self;

    /// Where the chunk begins in the vector, and of how many packets it is.
    fn place(&self) -> (usize, usize);

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
        let (start, length) = self.place();
        let Some((_, packets)) = packets.split_at_mut_checked(start) else { return };
        let (these, others) = packets.split_at_mut(length.min(packets.len()));
        let others = others.get_mut(ahead - length..).unwrap_or_default();
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
        let (start, length) = self.place();
        let Some((_, packets)) = packets.split_at_mut_checked(start) else { return };
        let (these, _) = packets.split_at_mut(length.min(packets.len()));
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
    length: usize,
    waits: [bool; MOST],
}

impl Waiting for Marked {
    const IS_MIXED: bool = false;

    #[inline(always)]
    fn all_of(chunk: Range<usize>, length: ChunkLength) -> Self {
        Self { start: chunk.start, length: length.0, waits: [!chunk.is_empty(); MOST] }
    }

    #[inline(always)]
    fn place(&self) -> (usize, usize) {
        (self.start, self.length)
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
    length: usize,
    items: [T; MOST],
    count: usize,
    /// Of the list that is being made, in the place of the one that is read.
    noted: usize,
}

impl<T: Copy> Listed<T> {
    #[inline(always)]
    pub(super) const fn none(filler: T) -> Self {
        Self { start: 0, length: MOST, items: [filler; MOST], count: 0, noted: 0 }
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
    fn all_of(chunk: Range<usize>, length: ChunkLength) -> Self {
        let mut all = Self { start: chunk.start, length: length.0, ..Self::none(0) };
        (0..chunk.len()).for_each(|place| all.add_if(true, place));
        all
    }

    #[inline(always)]
    fn place(&self) -> (usize, usize) {
        (self.start, self.length)
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
        (chunk, length): (Range<usize>, ChunkLength),
        waits: &[bool],
        (skipped, ahead): (usize, usize),
    ) -> ([Places; 3], [Places; 2]) {
        let mut packets: Vec<usize> = (0..PACKETS).collect();
        let (mut own, mut others) = ([vec![], vec![], vec![]], [vec![], vec![]]);
        let mut waiting = W::all_of(chunk.clone(), length);
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

    /// How long a chunk is, how many of it are skipped, and how far ahead others stand.
    fn lengths() -> impl Strategy<Value = (ChunkLength, usize, usize)> {
        (FEWEST..=MOST).prop_flat_map(|length| (Just(ChunkLength(length)), 0..=length, length..4 * length))
    }

    #[test]
    fn a_chunk_is_as_long_as_its_cache_has_room_for() {
        let lengths = [0, 16, 32, 40, 48, 64].map(|kib| ChunkLength::of(kib << 10).packets());
        assert_eq!(lengths, [8, 8, 8, 10, 12, 12]);
    }

    proptest! {
        #[test]
        fn those_that_wait_are_taken_in_order_whichever_way_they_are_noted(
            start in 0..=PACKETS, waits: [bool; MOST], (length, skipped, ahead) in lengths(),
        ) {
            let end = (start + length.0).min(PACKETS);
            let chunk = || (start..end, length);
            let others = |skipped| (start + skipped..end).map(|place| place + ahead).filter(|place| *place < PACKETS).collect();
            let first = (start + skipped..end).collect();
            let goes_on: Places =
                (start..end).filter(|place| *place < start + skipped || waits[place - start]).collect();
            let expected = ([first, goes_on.clone(), goes_on], [others(skipped), others(0)]);
            prop_assert_eq!(taken::<Marked>(chunk(), &waits, (skipped, ahead)), expected.clone());
            prop_assert_eq!(taken::<Listed>(chunk(), &waits, (skipped, ahead)), expected);
        }

        #[test]
        fn of_no_chunk_none_waits(start in 0..=PACKETS) {
            let mut packets = [(); PACKETS];
            Marked::all_of(start..start, ChunkLength(MOST)).for_each(&mut packets, |()| panic!());
            Listed::all_of(start..start, ChunkLength(MOST)).for_each(&mut packets, |()| panic!());
        }
    }
}

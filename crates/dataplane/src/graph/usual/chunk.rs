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
    /// Rounds behind that of the last chunk, until all packets have been at all nodes.
    const BEHIND: usize;

    /// All of a chunk, which is as long as it says, or ends with the vector.
    fn all_of(chunk: Range<usize>, length: ChunkLength) -> Self;

    /// Takes one after the other, but the first `skipped`: with it, or where none is left, comes one of those that have just
    /// `arrived` behind these, or without such, one that stands a chunk further on. Those of which `take` says so wait on, as do
    /// those that were skipped.
    fn retain<T>(
        &mut self,
        packets: &mut [T],
        others: (usize, Option<&Self>),
        take: impl FnMut(Option<&mut T>, Option<(usize, &mut T)>) -> bool,
    );

    /// Takes one after the other.
    fn for_each<T>(&self, packets: &mut [T], take: impl FnMut(&mut T));

    /// Those that go on together, when others have `arrived` behind these; `None` where they wait for more, unless these are the
    /// last.
    fn join(&mut self, arrived: Self, are_last: bool) -> Option<Self>;
}

/// Where nearly all go on: a mark for each.
pub(super) struct Marked {
    start: usize,
    length: usize,
    waits: [bool; MOST],
}

impl Waiting for Marked {
    const IS_MIXED: bool = false;
    const BEHIND: usize = 2;

    #[inline(always)]
    fn all_of(chunk: Range<usize>, length: ChunkLength) -> Self {
        Self { start: chunk.start, length: length.0, waits: [!chunk.is_empty(); MOST] }
    }

    #[inline(always)]
    fn retain<T>(
        &mut self,
        packets: &mut [T],
        (skipped, arrived): (usize, Option<&Self>),
        mut take: impl FnMut(Option<&mut T>, Option<(usize, &mut T)>) -> bool,
    ) {
        let (start, length) = (self.start, self.length);
        // They are the second chunk behind these.
        let between = if arrived.is_some() { length } else { 0 };
        let Some((_, packets)) = packets.split_at_mut_checked(start) else { return };
        let (these, others) = packets.split_at_mut(length.min(packets.len()));
        let others = others.get_mut(between..).unwrap_or_default();
        for turn in 0..these.len() {
            let other = others.get_mut(turn);
            if !self.waits[turn] {
                take(other, None);
            } else if turn >= skipped {
                self.waits[turn] = take(other, these.get_mut(turn).map(|packet| (start + turn, packet)));
            }
        }
    }

    #[inline(always)]
    fn for_each<T>(&self, packets: &mut [T], mut take: impl FnMut(&mut T)) {
        let Some((_, packets)) = packets.split_at_mut_checked(self.start) else { return };
        let (these, _) = packets.split_at_mut(self.length.min(packets.len()));
        for turn in 0..these.len() {
            if self.waits[turn]
                && let Some(packet) = these.get_mut(turn)
            {
                take(packet);
            }
        }
    }

    #[inline(always)]
    fn join(&mut self, arrived: Self, _: bool) -> Option<Self> {
        Some(arrived)
    }
}

/// Where any may go on: a list of their places. Those that do are joined to whole chunks: what is asked for is waited for once a
/// chunk, however few packets are in it.
pub(super) struct Listed<T = u8> {
    start: usize,
    length: usize,
    items: [T; JOINED],
    count: usize,
}

/// Those that go on from a chunk, behind those that were too few.
const JOINED: usize = 2 * MOST;

impl<T: Copy> Listed<T> {
    #[inline(always)]
    pub(super) const fn none(filler: T) -> Self {
        Self { start: 0, length: MOST, items: [filler; JOINED], count: 0 }
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

    #[inline(always)]
    fn item(&self, turn: usize) -> Option<T> {
        (turn < self.count).then(|| self.items[turn])
    }
}

impl Waiting for Listed {
    const IS_MIXED: bool = true;
    // Behind the last chunk there may be more than one of those that were joined.
    const BEHIND: usize = 3;

    #[inline(always)]
    fn all_of(chunk: Range<usize>, length: ChunkLength) -> Self {
        let mut all = Self { start: chunk.start, length: length.0, ..Self::none(0) };
        chunk.for_each(|place| all.add_if(true, place as u8));
        all
    }

    #[inline(always)]
    fn retain<T>(
        &mut self,
        packets: &mut [T],
        (skipped, arrived): (usize, Option<&Self>),
        mut take: impl FnMut(Option<&mut T>, Option<(usize, &mut T)>) -> bool,
    ) {
        let mut noted = 0;
        for turn in 0..self.length {
            let other = match arrived {
                Some(arrived) => arrived.item(turn).map(usize::from),
                None => Some(self.start + self.length + turn),
            };
            let Some(item) = self.item(turn) else {
                take(other.and_then(|other| packets.get_mut(other)), None);
                continue;
            };
            let (place, behind) = (usize::from(item), usize::from(item) + 1);
            let waits = turn < skipped || {
                let Some((these, others)) = packets.split_at_mut_checked(behind) else { continue };
                let other = other.and_then(|other| others.get_mut(other.checked_sub(behind)?));
                take(other, these.last_mut().map(|packet| (place, packet)))
            };
            self.items[noted] = item;
            noted += usize::from(waits);
        }
        self.count = noted;
    }

    #[inline(always)]
    fn for_each<T>(&self, packets: &mut [T], mut take: impl FnMut(&mut T)) {
        for place in self.items() {
            if let Some(packet) = packets.get_mut(usize::from(*place)) {
                take(packet);
            }
        }
    }

    #[inline(always)]
    fn join(&mut self, arrived: Self, are_last: bool) -> Option<Self> {
        let length = arrived.length;
        arrived.items().iter().for_each(|place| self.add_if(true, *place));
        if self.count < length && !are_last {
            return None;
        }
        let mut chunk = Self { length, ..Self::none(0) };
        let count = self.count.min(length);
        self.items().iter().take(count).for_each(|place| chunk.add_if(true, *place));
        self.items.copy_within(count.., 0);
        self.count -= count;
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACKETS: usize = 200;

    /// Places in the vector.
    type Places = Vec<usize>;

    /// Which are taken at the first of three nodes, and which of those that `waits` names at the last, chunk by chunk, of a vector of
    /// which the first `skipped` are not taken at the first; and which came with them at either.
    fn taken<W: Waiting>(
        waits: &[bool],
        length: ChunkLength,
        skipped: usize,
    ) -> ([Vec<Places>; 2], [Places; 2]) {
        let (mut own, mut others) = ([vec![], vec![]], [vec![], vec![]]);
        let mut packets: Places = (0..waits.len()).collect();
        let none = || W::all_of(0..0, length);
        let (mut due, mut at_second, mut at_last) = (none(), none(), none());
        for start in (0..waits.len() + W::BEHIND * length.0).step_by(length.0) {
            let chunk = start.min(waits.len())..(start + length.0).min(waits.len());
            let handed = skipped.clamp(chunk.start, chunk.end) - chunk.start;
            let mut arrived = W::all_of(chunk, length);
            let mut first = vec![];
            arrived.retain(&mut packets, (handed, None), |other, packet| {
                others[0].extend(other.copied());
                packet.is_some_and(|(place, packet)| {
                    assert_eq!(place, *packet);
                    first.push(place);
                    waits[place]
                })
            });
            own[0].push(first);
            let Some(arrived) = due.join(arrived, start + length.0 >= waits.len()) else { continue };
            at_second.retain(&mut packets, (0, None), |_, packet| packet.is_some());
            let (mut asked, mut last) = (vec![], vec![]);
            at_last.for_each(&mut packets, |packet| asked.push(*packet));
            at_last.retain(&mut packets, (0, Some(&arrived)), |other, packet| {
                others[1].extend(other.copied());
                last.extend(packet.map(|(place, _)| place));
                false
            });
            assert_eq!(asked, last);
            at_last.for_each(&mut packets, |_| panic!("none waits any more"));
            own[1].push(last);
            (at_second, at_last) = (arrived, at_second);
        }
        let left = [due, at_second, at_last].map(|waiting| none_left(&waiting, &mut packets));
        assert_eq!(left, [0; 3]);
        (own, others)
    }

    fn none_left<W: Waiting>(waiting: &W, packets: &mut [usize]) -> usize {
        let mut left = 0;
        waiting.for_each(packets, |_| left += 1);
        left
    }

    #[test]
    fn a_chunk_is_as_long_as_its_cache_has_room_for() {
        let lengths = [0, 16, 32, 40, 48, 64].map(|kib| ChunkLength::of(kib << 10).packets());
        assert_eq!(lengths, [8, 8, 8, 10, 12, 12]);
    }

    proptest! {
        #[test]
        fn all_are_taken_once_and_in_order_whichever_way_they_are_noted(
            waits in proptest::collection::vec(any::<bool>(), 0..=PACKETS), length in FEWEST..=MOST, skipped in 0..=PACKETS,
        ) {
            let (length, skipped) = (ChunkLength(length), skipped.min(waits.len()));
            let first: Places = (skipped..waits.len()).collect();
            let second: Places = (0..waits.len()).filter(|place| *place < skipped || waits[*place]).collect();
            for (own, others) in [taken::<Marked>(&waits, length, skipped), taken::<Listed>(&waits, length, skipped)] {
                prop_assert_eq!(own.each_ref().map(|own| own.concat()), [first.clone(), second.clone()]);
                prop_assert!(own.iter().flatten().all(|chunk| chunk.len() <= length.0));
                let ahead: Places = (skipped..waits.len()).map(|place| place + length.0).filter(|place| *place < waits.len()).collect();
                prop_assert!(others[0].iter().filter(|place| **place >= skipped + length.0).eq(&ahead));
            }
        }

        /// What is asked for beside the last node is what has just come, in its order, and no chunk is shorter than it has to be.
        #[test]
        fn those_that_go_on_are_joined_to_whole_chunks(
            waits in proptest::collection::vec(any::<bool>(), 0..=PACKETS), length in FEWEST..=MOST,
        ) {
            let (own, others) = taken::<Listed>(&waits, ChunkLength(length), 0);
            let chunks: Vec<usize> = own[1].iter().map(Vec::len).filter(|length| *length > 0).collect();
            prop_assert!(chunks.iter().rev().skip(1).all(|chunk| *chunk == length), "{:?}", chunks);
            prop_assert_eq!(&own[1].concat(), &others[1]);
        }

        #[test]
        fn of_no_chunk_none_waits(start in 0..=PACKETS) {
            let mut packets = [(); PACKETS];
            Marked::all_of(start..start, ChunkLength(MOST)).for_each(&mut packets, |()| panic!());
            Listed::all_of(start..start, ChunkLength(MOST)).for_each(&mut packets, |()| panic!());
        }
    }
}

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

/// The packets of a chunk that wait at a node: a mark for each, as nearly all go on.
pub(super) struct Waiting {
    start: usize,
    length: usize,
    waits: [bool; MOST],
}

impl Waiting {
    /// All of a chunk, which is as long as it says, or ends with the vector.
    #[inline(always)]
    pub(super) fn all_of(chunk: Range<usize>, length: ChunkLength) -> Self {
        Self { start: chunk.start, length: length.0, waits: [!chunk.is_empty(); MOST] }
    }

    /// Takes one after the other, but the first `skipped`: with it, or where it is gone, comes one that stands as far on as the
    /// next chunk, or the one behind so many `between`. Those of which `take` says so wait on, as do those that were skipped.
    #[inline(always)]
    pub(super) fn retain<T>(
        &mut self,
        packets: &mut [T],
        (skipped, between): (usize, usize),
        mut take: impl FnMut(Option<&mut T>, Option<(usize, &mut T)>) -> bool,
    ) {
        let (start, length) = (self.start, self.length);
        let Some((_, packets)) = packets.split_at_mut_checked(start) else { return };
        let (these, others) = packets.split_at_mut(length.min(packets.len()));
        let others = others.get_mut(between * length..).unwrap_or_default();
        for turn in 0..these.len() {
            let other = others.get_mut(turn);
            if !self.waits[turn] {
                take(other, None);
            } else if turn >= skipped {
                self.waits[turn] = take(other, these.get_mut(turn).map(|packet| (start + turn, packet)));
            }
        }
    }

    /// Takes one after the other.
    #[inline(always)]
    pub(super) fn for_each<T>(&self, packets: &mut [T], mut take: impl FnMut(&mut T)) {
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
    fn taken(waits: &[bool], length: ChunkLength, skipped: usize) -> ([Vec<Places>; 2], [Places; 2]) {
        let (mut own, mut others) = ([vec![], vec![]], [vec![], vec![]]);
        let mut packets: Places = (0..waits.len()).collect();
        let none = || Waiting::all_of(0..0, length);
        let (mut at_second, mut at_last) = (none(), none());
        for start in (0..waits.len() + 2 * length.0).step_by(length.0) {
            let chunk = start.min(waits.len())..(start + length.0).min(waits.len());
            let handed = skipped.clamp(chunk.start, chunk.end) - chunk.start;
            let mut arrived = Waiting::all_of(chunk, length);
            let mut first = vec![];
            arrived.retain(&mut packets, (handed, 0), |other, packet| {
                others[0].extend(other.copied());
                packet.is_some_and(|(place, packet)| {
                    assert_eq!(place, *packet);
                    first.push(place);
                    waits[place]
                })
            });
            own[0].push(first);
            at_second.retain(&mut packets, (0, 0), |_, packet| packet.is_some());
            let (mut asked, mut last) = (vec![], vec![]);
            at_last.for_each(&mut packets, |packet| asked.push(*packet));
            at_last.retain(&mut packets, (0, 1), |other, packet| {
                others[1].extend(other.copied());
                last.extend(packet.map(|(place, _)| place));
                false
            });
            assert_eq!(asked, last);
            at_last.for_each(&mut packets, |_| panic!("none waits any more"));
            own[1].push(last);
            (at_second, at_last) = (arrived, at_second);
        }
        for waiting in [at_second, at_last] {
            waiting.for_each(&mut packets, |_| panic!("none is left"));
        }
        (own, others)
    }

    #[test]
    fn a_chunk_is_as_long_as_its_cache_has_room_for() {
        let lengths = [0, 16, 32, 40, 48, 64].map(|kib| ChunkLength::of(kib << 10).packets());
        assert_eq!(lengths, [8, 8, 8, 10, 12, 12]);
    }

    proptest! {
        #[test]
        fn all_are_taken_once_and_in_order(
            waits in proptest::collection::vec(any::<bool>(), 0..=PACKETS), length in FEWEST..=MOST, skipped in 0..=PACKETS,
        ) {
            let (length, skipped) = (ChunkLength(length), skipped.min(waits.len()));
            let first: Places = (skipped..waits.len()).collect();
            let second: Places = (0..waits.len()).filter(|place| *place < skipped || waits[*place]).collect();
            let (own, others) = taken(&waits, length, skipped);
            prop_assert_eq!(own.each_ref().map(|own| own.concat()), [first.clone(), second]);
            prop_assert!(own.iter().flatten().all(|chunk| chunk.len() <= length.0));
            // With each comes one of a later chunk, whether it still waits or not.
            let ahead = |chunks: usize, from: usize| (from + chunks * length.0..waits.len()).collect::<Places>();
            prop_assert_eq!(&others[0], &ahead(1, skipped));
            prop_assert!(others[1].ends_with(&ahead(2, 0)));
        }

        #[test]
        fn of_no_chunk_none_waits(start in 0..=PACKETS) {
            Waiting::all_of(start..start, ChunkLength(MOST)).for_each(&mut [(); PACKETS], |()| panic!());
        }
    }
}

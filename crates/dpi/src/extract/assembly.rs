//! Pieces of a stream put together, in whatever order they come.

use super::BYTES_MAX;
use arrayvec::ArrayVec;

/// Most pieces that do not touch each other. Chromium cuts a ClientHello into a dozen.
pub(crate) const PIECES_MAX: usize = 24;

/// More pieces than are kept apart, or one that begins beyond the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// The first [`BYTES_MAX`] bytes of a stream as far as they came.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Assembly {
    /// What is there: from, to; in order, and neither overlapping nor touching.
    pieces: ArrayVec<(u16, u16), PIECES_MAX>,
    /// Last, as most streams say all in one packet, and need none.
    bytes: [u8; BYTES_MAX],
}

impl Assembly {
    /// What stands in front of the bytes.
    pub(super) const HEAD: usize = std::mem::offset_of!(Self, bytes);

    pub(crate) const fn new() -> Self {
        Self { bytes: [0; BYTES_MAX], pieces: ArrayVec::new_const() }
    }

    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Forgets all but the first `length` bytes.
    pub(crate) fn shorten(&mut self, length: usize) {
        self.pieces.retain(|(from, to)| {
            *to = (*to).min(length.min(BYTES_MAX) as u16);
            from < to
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Takes bytes that stand `offset` bytes from the beginning of the stream. Bytes that are there already stay: who
    /// sends something else for the same place changes nothing. What is beyond the memory is left out.
    pub(crate) fn insert(&mut self, offset: usize, data: &[u8]) -> Result<(), NoRoom> {
        let end = offset.saturating_add(data.len()).min(BYTES_MAX);
        if offset >= end {
            return if data.is_empty() { Ok(()) } else { Err(NoRoom) };
        }
        let touches = |&(from, to): &(u16, u16)| usize::from(from) <= end && offset <= usize::from(to);
        if self.pieces.is_full() && !self.pieces.iter().any(touches) {
            return Err(NoRoom);
        }
        self.fill(offset, end, data);
        self.join(offset as u16, end as u16);
        Ok(())
    }

    /// Copies what falls between the pieces.
    fn fill(&mut self, start: usize, end: usize, data: &[u8]) {
        let mut at = start;
        let bytes = &mut self.bytes;
        let mut copy = |from: usize, to: usize| {
            if let (Some(place), Some(data)) = (bytes.get_mut(from..to), data.get(from - start..to - start)) {
                place.copy_from_slice(data);
            }
        };
        for (from, to) in self.pieces.iter().map(|(from, to)| (usize::from(*from), usize::from(*to))) {
            if at < from {
                copy(at, from.min(end));
            }
            at = at.max(to);
            if at >= end {
                return;
            }
        }
        copy(at, end);
    }

    fn join(&mut self, mut start: u16, mut end: u16) {
        self.pieces.retain(|(from, to)| {
            let touches = *from <= end && start <= *to;
            if touches {
                (start, end) = (start.min(*from), end.max(*to));
            }
            !touches
        });
        let place = self.pieces.iter().take_while(|(from, _)| *from < start).count();
        // There is room: either a piece touched, or the list was not full.
        let _ = self.pieces.try_insert(place, (start, end));
    }

    /// How much of the beginning is there without a gap.
    pub(crate) fn length(&self) -> usize {
        self.pieces.first().map_or(0, |(from, to)| if *from == 0 { usize::from(*to) } else { 0 })
    }

    /// What of the beginning is there without a gap.
    pub(crate) fn prefix(&self) -> &[u8] {
        self.bytes.get(..self.length()).unwrap_or_default()
    }

    /// The same, to be changed.
    pub(crate) fn prefix_mut(&mut self) -> &mut [u8] {
        let length = self.length();
        self.bytes.get_mut(..length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a map of bytes, the slow way.
        #[test]
        fn pieces_make_the_whole_and_the_first_copy_stays(
            pieces in proptest::collection::vec((0..4_200_usize, 0..700_usize, any::<u8>()), 1..60),
        ) {
            let mut assembly = Assembly::new();
            let mut slow: Vec<Option<u8>> = vec![None; BYTES_MAX];
            for (offset, length, value) in pieces {
                if assembly.insert(offset, &vec![value; length]).is_err() {
                    prop_assert!(offset >= BYTES_MAX || assembly.pieces.is_full());
                    continue;
                }
                slow.iter_mut().skip(offset).take(length).for_each(|byte| { byte.get_or_insert(value); });
                let expected: Vec<u8> = slow.iter().map_while(|byte| *byte).collect();
                prop_assert_eq!(assembly.prefix(), expected.as_slice());
                let apart = |pair: &[(u16, u16)]| pair[0].1 < pair[1].0;
                prop_assert!(assembly.pieces.windows(2).all(apart), "{:?}", assembly.pieces);
            }
        }
    }

    #[test]
    fn too_many_pieces_are_refused_and_change_nothing() {
        let mut assembly = Assembly::new();
        for number in 1..=PIECES_MAX {
            assembly.insert(number * 10, &[1; 5]).unwrap();
        }
        assert_eq!(assembly.insert(0, &[1; 5]), Err(NoRoom));
        assert_eq!(assembly.insert(BYTES_MAX, &[1]), Err(NoRoom));
        assert!(assembly.prefix().is_empty());
        assembly.insert(0, &[2; 10]).unwrap();
        assert_eq!(assembly.prefix(), [[2; 5], [2; 5], [1; 5]].concat());
    }
}

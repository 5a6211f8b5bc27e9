//! Pieces of a stream put together, in whatever order they come.
//!
//! Where two of them say different things for one place, what Linux gives its programs counts, as most servers run it
//! (`tcp_data_queue`, `tcp_data_queue_ofo`), and RFC 9293 3.10.7.4 leaves it open. What comes in order is taken whole, over what waits
//! there. Of pieces that wait, the one that begins first counts, and of two that begin together the longer one; one that stands within
//! another says nothing.

use super::BYTES_MAX;
use arrayvec::ArrayVec;

/// Most pieces that wait for what stands before them. Chromium cuts a ClientHello into a dozen.
pub(crate) const PIECES_MAX: usize = 19;

/// More pieces than are kept apart, or one that begins beyond the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// From, to.
type Piece = (u16, u16);

/// What waits, and a place for one more, which may join others.
type Waiting = ArrayVec<Piece, { PIECES_MAX + 1 }>;

/// The first [`BYTES_MAX`] bytes of a stream as far as they came.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Assembly {
    /// How much of the beginning is there without a gap.
    length: u16,
    /// Behind a gap, as they came. Both ends rise from one to the next, which may overlap: there the bytes are the first one's.
    waiting: Waiting,
    /// Last, as most streams say all in one packet, and need none.
    bytes: [u8; BYTES_MAX],
}

impl Assembly {
    /// What stands in front of the bytes.
    pub(super) const HEAD: usize = std::mem::offset_of!(Self, bytes);

    pub(crate) const fn new() -> Self {
        Self { bytes: [0; BYTES_MAX], length: 0, waiting: ArrayVec::new_const() }
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
        self.waiting.clear();
    }

    /// Forgets all but the first `length` bytes of the beginning.
    pub(crate) fn shorten(&mut self, length: usize) {
        self.length = self.length.min(length.min(BYTES_MAX) as u16);
        self.waiting.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0 && self.waiting.is_empty()
    }

    /// Takes bytes that stand `offset` bytes from the beginning of the stream. What is beyond the memory is left out.
    pub(crate) fn insert(&mut self, offset: usize, data: &[u8]) -> Result<(), NoRoom> {
        let end = offset.saturating_add(data.len()).min(BYTES_MAX);
        if offset >= end {
            return if data.is_empty() { Ok(()) } else { Err(NoRoom) };
        }
        if offset <= self.length() {
            self.copy((offset, self.length(), end), data);
            self.go_on(end as u16);
            return Ok(());
        }
        let piece = (offset as u16, end as u16);
        let place = self.waiting.iter().take_while(|other| other.0 < piece.0).count();
        let before = place.checked_sub(1).and_then(|before| self.waiting.get(before)).copied();
        let same = self.waiting.get(place).copied().filter(|other| other.0 == piece.0);
        if [before, same].into_iter().flatten().any(|other| piece.1 <= other.1) {
            return Ok(());
        }
        self.copy((offset, before.map_or(0, |before| usize::from(before.1)), end), data);
        self.wait(piece, (place, before))
    }

    /// Of bytes that stand at `from`, copies those from `start` to `end`.
    fn copy(&mut self, (from, start, end): (usize, usize, usize), data: &[u8]) {
        let start = start.max(from);
        let place = self.bytes.get_mut(start..end);
        if let Some((place, data)) = place.zip(data.get(start - from..end - from)) {
            place.copy_from_slice(data);
        }
    }

    /// The beginning is there up to here, and what waits behind it without a gap is part of it.
    fn go_on(&mut self, end: u16) {
        let mut length = self.length.max(end);
        self.waiting.retain(|&mut (from, to)| {
            let is_reached = from <= length;
            if is_reached {
                length = length.max(to);
            }
            !is_reached
        });
        self.length = length;
    }

    /// What stands behind a place that has not been reached stands one byte further in front from now on, and what is there is nowhere.
    pub(crate) fn take_out(&mut self, place: usize) {
        if self.waiting.last().is_some_and(|last| place < usize::from(last.1)) {
            self.bytes.copy_within(place + 1.., place);
        }
        for (from, to) in &mut self.waiting {
            *from -= u16::from(usize::from(*from) > place);
            *to -= u16::from(usize::from(*to) > place);
        }
        self.waiting.retain(|(from, to)| from < to);
        self.go_on(self.length);
    }

    /// Keeps a piece in its place, behind the one before it, which it prolongs where it begins at its end.
    fn wait(&mut self, piece: Piece, (place, before): (usize, Option<Piece>)) -> Result<(), NoRoom> {
        self.waiting.retain(|other| other.0 < piece.0 || piece.1 < other.1);
        if before.is_some_and(|before| before.1 == piece.0) {
            self.waiting.iter_mut().take(place).skip(place - 1).for_each(|before| before.1 = piece.1);
            return Ok(());
        }
        // There is room for one more.
        let _ = self.waiting.try_insert(place, piece);
        if self.waiting.len() <= PIECES_MAX {
            return Ok(());
        }
        self.join();
        if self.waiting.len() <= PIECES_MAX {
            return Ok(());
        }
        // It touches none, so its bytes are in no other's place.
        self.waiting.retain(|other| *other != piece);
        Err(NoRoom)
    }

    /// Of pieces that touch, it is forgotten where they began.
    fn join(&mut self) {
        let mut joined = Waiting::new();
        for piece in &self.waiting {
            match joined.last_mut().filter(|last| piece.0 <= last.1) {
                Some(last) => last.1 = piece.1,
                // Never more than there were.
                None => drop(joined.try_push(*piece)),
            }
        }
        self.waiting = joined;
    }

    /// How much of the beginning is there without a gap.
    pub(crate) fn length(&self) -> usize {
        self.length.into()
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

    /// As Linux has it, the slow way: buffers in the queue as they came, and what programs have been given.
    #[derive(Default)]
    struct Linux {
        queue: Vec<(usize, Vec<u8>)>,
        read: Vec<u8>,
    }

    impl Linux {
        fn insert(&mut self, from: usize, data: &[u8]) {
            let data = &data[..data.len().min(BYTES_MAX.saturating_sub(from))];
            if data.is_empty() {
            } else if from <= self.read.len() {
                self.read_on(from, data);
                for (from, data) in std::mem::take(&mut self.queue) {
                    match from <= self.read.len() {
                        true => self.read_on(from, &data),
                        false => self.queue.push((from, data)),
                    }
                }
            } else {
                self.wait(from, data);
            }
        }

        fn read_on(&mut self, from: usize, data: &[u8]) {
            self.read.extend(data.get(self.read.len() - from..).unwrap_or_default());
        }

        fn wait(&mut self, from: usize, data: &[u8]) {
            let end = |piece: &(usize, Vec<u8>)| piece.0 + piece.1.len();
            let to = from + data.len();
            if self.queue.iter().any(|other| other.0 <= from && to <= end(other)) {
                return;
            }
            self.queue.retain(|other| other.0 < from || end(other) > to);
            // Of several that end there it may be another one that is prolonged, as the kernel's tree has grown: here the last.
            match self.queue.iter_mut().rfind(|other| other.0 < from).filter(|other| end(other) == from) {
                Some(other) => other.1.extend(data),
                None => self.queue.push((from, data.to_vec())),
            }
            self.queue.sort_by_key(|other| other.0);
        }
    }

    proptest! {
        #[test]
        fn pieces_make_what_linux_makes_of_them(
            pieces in proptest::collection::vec((0..60_usize, 1..20_usize, 0..2_usize), 1..PIECES_MAX),
        ) {
            let (mut assembly, mut linux) = (Assembly::new(), Linux::default());
            for (value, (offset, length, far)) in (0..).zip(pieces) {
                // Some at the end of the memory.
                let (offset, data) = (offset + far * (BYTES_MAX - 40), vec![value; length]);
                prop_assert_eq!(assembly.insert(offset, &data).is_err(), offset >= BYTES_MAX);
                linux.insert(offset, &data);
                prop_assert_eq!(assembly.prefix(), linux.read.as_slice());
                let rise = |pair: &[Piece]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
                prop_assert!(assembly.waiting.windows(2).all(rise), "{:?}", assembly.waiting);
            }
        }

        /// However many there are, nothing that was read is read otherwise, and what comes in order is read.
        #[test]
        fn the_beginning_only_grows(
            pieces in proptest::collection::vec((0..4_200_usize, 1..700_usize, any::<u8>()), 1..90),
        ) {
            let mut assembly = Assembly::new();
            for (offset, length, value) in pieces {
                let before = assembly.prefix().to_vec();
                let is_taken = assembly.insert(offset, &vec![value; length]).is_ok();
                prop_assert!(is_taken || offset >= BYTES_MAX || assembly.waiting.len() == PIECES_MAX);
                prop_assert!(assembly.waiting.len() <= PIECES_MAX);
                prop_assert!(assembly.prefix().starts_with(&before));
                let end = (offset + length).min(BYTES_MAX);
                let in_order = offset <= before.len() && before.len() < end;
                prop_assert!(!in_order || assembly.prefix()[before.len()..end].iter().all(|byte| *byte == value));
            }
        }
    }

    #[test]
    fn too_many_pieces_are_refused_and_change_nothing() {
        let mut assembly = Assembly::new();
        for number in 1..=PIECES_MAX {
            assembly.insert(number * 10, &[1; 5]).unwrap();
        }
        assert_eq!(assembly.insert(7, &[1; 2]), Err(NoRoom));
        assert_eq!(assembly.insert(BYTES_MAX, &[1]), Err(NoRoom));
        assert!(assembly.prefix().is_empty());
        // Those that touch are joined instead.
        assembly.insert(7, &[3; 4]).unwrap();
        assembly.insert(0, &[2; 7]).unwrap();
        assert_eq!(assembly.prefix(), [&[2; 7][..], &[3; 4], &[1; 4]].concat());
    }
}

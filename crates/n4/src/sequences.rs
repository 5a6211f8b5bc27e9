//! Numbers of our own requests (TS 29.244 7.2.2.2). A peer takes a request for one that comes again by its number (6.4), and we take a
//! response for that to a request by it: so they do not begin again with a process. Like our SEIDs, they are reserved in the node's
//! record, so many at a time, and the next process begins behind what was reserved. They come round after 16,777,216, which is long after
//! a peer has forgotten the first of them.

use crate::exchange::SEQUENCES;
use crate::node::Node;

/// So many are reserved at a time: nothing is to be kept for each.
const BLOCK: u32 = 1 << 16;

/// Numbers of our requests.
#[derive(Debug)]
pub(crate) struct Sequences {
    last: u32,
    /// Up to here they may have been given out, as far as the next process will know.
    reserved: u32,
}

impl Sequences {
    /// Behind what the process before had reserved. Of one that left no record peers may know requests all the same: by the time, it is
    /// not likely that they are called the same.
    pub(crate) fn new(reserved: Option<u32>, since_1900_ms: u64) -> Self {
        let last = reserved.unwrap_or((since_1900_ms / 64) as u32) % SEQUENCES;
        Self { last, reserved: last }
    }

    fn next(&mut self) -> u32 {
        if self.last == self.reserved {
            self.reserved = (self.last + BLOCK) % SEQUENCES;
        }
        self.last = (self.last + 1) % SEQUENCES;
        self.last
    }

    /// That of our last request.
    pub(crate) const fn last(&self) -> u32 {
        self.last
    }

    /// Up to which they are reserved.
    pub(crate) const fn reserved(&self) -> u32 {
        self.reserved
    }
}

impl Node {
    /// The number of a new request.
    pub(crate) fn new_sequence(&mut self) -> u32 {
        let before = self.sequences.reserved();
        let sequence = self.sequences.next();
        if self.sequences.reserved() != before {
            self.save_node();
        }
        sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_begins_behind_what_the_one_before_had_reserved() {
        let mut first = Sequences::new(None, 64_000);
        assert_eq!((first.next(), first.reserved()), (1_001, 1_000 + BLOCK));
        assert_eq!((1..BLOCK).map(|_| first.next()).last(), Some(1_000 + BLOCK));
        assert_eq!((first.last, first.reserved()), (1_000 + BLOCK, 1_000 + BLOCK));
        assert_eq!((first.next(), first.reserved()), (1_001 + BLOCK, 1_000 + 2 * BLOCK));
        let mut next = Sequences::new(Some(first.reserved()), 64_000);
        assert_eq!(next.next(), 1_001 + 2 * BLOCK);
    }

    #[test]
    fn numbers_have_24_bits_and_come_round() {
        let mut last = Sequences::new(Some(SEQUENCES - 2), 0);
        assert_eq!([last.next(), last.next(), last.next()], [SEQUENCES - 1, 0, 1]);
        assert_eq!(last.reserved(), BLOCK - 2);
    }
}

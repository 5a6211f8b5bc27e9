//! A line of very many.

use std::collections::VecDeque;

/// So many lie together.
const BLOCK: usize = 256;

/// Things in their order, as in a [`VecDeque`]. It grows block by block: what is there is not moved for that, and nobody waits
/// for a million of them to be copied, nor for memory that is twice as much as was asked for.
#[derive(Debug)]
pub(crate) struct Line<T> {
    /// Of the first, some may have gone; of the last, some may be still to come.
    blocks: VecDeque<VecDeque<T>>,
    /// Those that have gone from the first.
    gone: usize,
    length: usize,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { blocks: VecDeque::new(), gone: 0, length: 0 }
    }
}

impl<T> Line<T> {
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push_back(&mut self, one: T) {
        if (self.gone + self.length).is_multiple_of(BLOCK) {
            self.blocks.push_back(VecDeque::with_capacity(BLOCK));
        }
        if let Some(block) = self.blocks.back_mut() {
            block.push_back(one);
            self.length += 1;
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let one = self.blocks.front_mut()?.pop_front()?;
        self.length -= 1;
        self.gone += 1;
        if self.gone == BLOCK {
            self.blocks.pop_front();
            self.gone = 0;
        }
        Some(one)
    }

    pub(crate) fn pop_front_if(&mut self, is_it: impl FnOnce(&T) -> bool) -> Option<T> {
        self.front().filter(|one| is_it(one))?;
        self.pop_front()
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        let (block, place) = self.find(place)?;
        self.blocks.get(block)?.get(place)
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let (block, place) = self.find(place)?;
        self.blocks.get_mut(block)?.get_mut(place)
    }

    /// Its block, and its place there.
    fn find(&self, place: usize) -> Option<(usize, usize)> {
        let slot = self.gone.checked_add(place)?;
        let (block, place) = (slot / BLOCK, slot % BLOCK);
        Some((block, if block == 0 { place - self.gone } else { place }))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }

    /// Blocks there is memory for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.blocks.len() * BLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waves of more and fewer, up to several blocks and down to none.
    #[test]
    fn it_holds_what_a_queue_holds() {
        let (mut line, mut queue, mut next) = (Line::default(), VecDeque::new(), 0_u32);
        for wave in 1..40 {
            for _ in 0..wave * 41 {
                line.push_back(next);
                queue.push_back(next);
                next += 1;
            }
            if let (Some(one), Some(other)) = (line.get_mut(wave), queue.get_mut(wave)) {
                (*one, *other) = (7, 7);
            }
            assert!(line.iter().eq(&queue));
            for place in 0..queue.len() + 2 * BLOCK {
                assert_eq!(line.get(place), queue.get(place), "{place} of {}", queue.len());
            }
            for _ in 0..wave * 37 + usize::from(wave % 5 == 0) * BLOCK * 9 {
                assert_eq!(line.pop_front(), queue.pop_front());
                assert_eq!((line.front(), line.len()), (queue.front(), queue.len()));
            }
            assert!(line.room() < queue.len() + 2 * BLOCK);
        }
        assert_eq!(Line::<u8>::default().pop_front(), None);
        assert_eq!(line.get(usize::MAX), None);
    }

    #[test]
    fn one_is_taken_if_it_is_the_one() {
        let mut line = Line::default();
        line.push_back(1);
        assert_eq!((line.pop_front_if(|one| *one == 2), line.len()), (None, 1));
        assert_eq!((line.pop_front_if(|one| *one == 1), line.len()), (Some(1), 0));
    }
}

//! Which cells are free: runs of 2^class neighbours, each beginning at a multiple of its length, split in halves and put together
//! again (a buddy allocator), so that long sessions find room however many short ones were there before them.

/// Runs are up to 2^15 cells long: as many as the largest session has accounts, and more.
const CLASSES: usize = 16;

/// Of a cell at which no free run begins.
const NOWHERE: u32 = 0;

#[derive(Debug)]
pub(super) struct Runs {
    limit: usize,
    /// Cells from here on were never given out.
    fresh: usize,
    /// The first cells of free runs, by class.
    free: [Vec<u32>; CLASSES],
    /// Where a free run stands in its list, counted from 1, by its first cell.
    listed: Box<[u32]>,
}

impl Runs {
    /// What a cell takes of it at most: its place in lists of all classes, each half as long as the one before, and where it
    /// stands there.
    pub(super) const CELL_BYTES: usize = 3 * size_of::<u32>();

    /// With room for all there can be, so that a worker never allocates.
    pub(super) fn new(limit: usize) -> Self {
        let free = std::array::from_fn(|class| Vec::with_capacity(limit >> class));
        // Zeroed memory, which takes no room before it is written.
        Self { limit, fresh: 0, free, listed: vec![NOWHERE; limit].into() }
    }

    /// How many cells there are.
    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// The first cell of a run; `None` where there is no room.
    pub(super) fn allocate(&mut self, class: u8) -> Option<u32> {
        let given = self.take_free(class).or_else(|| self.take_fresh(class));
        given.or_else(|| {
            // Those at the end may be the other half of what is free.
            self.free_up_to(self.limit);
            self.take_free(class)
        })
    }

    /// Of free runs the shortest that is long enough, split.
    fn take_free(&mut self, class: u8) -> Option<u32> {
        let longer = (class..CLASSES as u8).find(|longer| !self.free[usize::from(*longer)].is_empty())?;
        let base = *self.free[usize::from(longer)].last()?;
        self.unlist(base, longer);
        for half in class..longer {
            self.list(base + (1 << half), half);
        }
        Some(base)
    }

    fn take_fresh(&mut self, class: u8) -> Option<u32> {
        let length = 1 << class;
        let base = self.fresh.next_multiple_of(length);
        if base + length > self.limit {
            return None;
        }
        self.free_up_to(base);
        self.fresh = base + length;
        Some(base as u32)
    }

    /// Cells that were never given out, and are left out now, are free ones.
    fn free_up_to(&mut self, end: usize) {
        while self.fresh < end {
            let aligned = self.fresh.trailing_zeros().min(CLASSES as u32 - 1);
            let class = aligned.min((end - self.fresh).ilog2());
            self.release(self.fresh as u32, class as u8);
            self.fresh += 1 << class;
        }
    }

    /// Takes a run back, and puts it together with its neighbour where that is free, too.
    pub(super) fn release(&mut self, mut base: u32, mut class: u8) {
        while usize::from(class) + 1 < CLASSES {
            let neighbour = base ^ 1 << class;
            if !self.is_listed(neighbour, class) {
                break;
            }
            self.unlist(neighbour, class);
            base = base.min(neighbour);
            class += 1;
        }
        self.list(base, class);
    }

    fn is_listed(&self, base: u32, class: u8) -> bool {
        let at = self.listed.get(base as usize).and_then(|at| at.checked_sub(1));
        at.is_some_and(|at| self.free[usize::from(class)].get(at as usize) == Some(&base))
    }

    fn list(&mut self, base: u32, class: u8) {
        let list = &mut self.free[usize::from(class)];
        list.push(base);
        self.listed[base as usize] = list.len() as u32;
    }

    fn unlist(&mut self, base: u32, class: u8) {
        let list = &mut self.free[usize::from(class)];
        let at = std::mem::replace(&mut self.listed[base as usize], NOWHERE) as usize - 1;
        list.swap_remove(at);
        if let Some(moved) = list.get(at) {
            self.listed[*moved as usize] = at as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 100;

    /// Every cell is in one run that is in use, in one free run, or was never given out.
    fn is_whole(runs: &Runs, used: &[(u32, u8)]) {
        let mut times = [0; LIMIT];
        let free = (0..CLASSES as u8).flat_map(|class| {
            let list = &runs.free[usize::from(class)];
            list.iter().enumerate().map(move |(at, base)| {
                assert_eq!(runs.listed[*base as usize] as usize, at + 1);
                (*base, class)
            })
        });
        for (base, class) in used.iter().copied().chain(free) {
            assert_eq!(base % (1 << class), 0);
            (base..base + (1 << class)).for_each(|cell| times[cell as usize] += 1);
        }
        let expected: Vec<i32> = (0..LIMIT).map(|cell| i32::from(cell < runs.fresh)).collect();
        assert_eq!(times.to_vec(), expected);
    }

    proptest! {
        #[test]
        fn runs_never_overlap_and_none_is_lost(steps in prop::collection::vec((0u8..5, any::<prop::sample::Index>(), any::<bool>()), 1..200)) {
            let (mut runs, mut used) = (Runs::new(LIMIT), vec![]);
            for (class, which, gives_back) in steps {
                if gives_back && !used.is_empty() {
                    let (base, class) = used.swap_remove(which.index(used.len()));
                    runs.release(base, class);
                } else if let Some(base) = runs.allocate(class) {
                    used.push((base, class));
                }
                is_whole(&runs, &used);
            }
            used.drain(..).for_each(|(base, class)| runs.release(base, class));
            is_whole(&runs, &used);
            // Whatever was there before: what 64 cells have in them is one run again.
            prop_assert!(runs.allocate(6).is_some());
        }
    }

    #[test]
    fn where_nothing_is_free_nothing_is_given() {
        let mut runs = Runs::new(3);
        assert_eq!([1, 0, 0, 1].map(|class| runs.allocate(class)), [Some(0), Some(2), None, None]);
        runs.release(0, 1);
        assert_eq!([0, 0, 0].map(|class| runs.allocate(class)), [Some(0), Some(1), None]);
    }
}

//! Where the hot part of sessions lies: runs of cells, each with an account and two steps, so that a plain session is
//! one cell and what a packet needs of it can be asked for at once. Lists of steps that need more than a rate and a count are
//! apart: memory for them is taken when they come.

use super::account::{Account, Count, Rate};
use super::lists::{Lists, WholeStep};
use super::memory::{self, NoMemory};
use super::runs::Runs;
use super::step::{HotStep, StepIndex};
use zerocopy::FromZeros;

/// Steps in a cell.
pub(crate) const STEPS: usize = 2;

/// One account, two steps: two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub(crate) struct Cell {
    pub(crate) account: Account,
    pub(crate) steps: [HotStep; STEPS],
}

const _: () = assert!(size_of::<Cell>() == 128, "two cache lines a plain session");

const EMPTY: Cell = Cell {
    account: Account { rate: super::account::Rate::ZERO, count: super::account::Count::ZERO },
    steps: [HotStep::EMPTY; STEPS],
};

/// Cells that belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellRun {
    pub(crate) base: u32,
    /// The run is 2^class cells long.
    class: u8,
}

/// All cells of a worker. Those that were never in use take no memory, but for as many as there may be sessions: a plain
/// session makes no packet wait for the kernel.
pub(crate) struct Cells {
    /// Has the room for as many as there may be.
    cells: Vec<Cell>,
    /// By step, of those that are long. The kernel gives it as zeros, and takes memory for what is written.
    lists: Vec<Lists>,
    runs: Runs,
    used: usize,
    /// Runs of more than one cell that are in use.
    long: usize,
}

impl CellRun {
    /// Whether a session of so many cells would get a run of this length.
    pub(crate) const fn suits(self, cells: usize) -> bool {
        self.class == class(cells)
    }
}

const fn class(cells: usize) -> u8 {
    cells.next_power_of_two().trailing_zeros() as u8
}

impl Cells {
    const LIST_BYTES: usize = STEPS * size_of::<Lists>();
    /// What a cell takes beside itself as it is used: lists, once both of its steps need them, and where it stands when it is
    /// free.
    pub(crate) const LATER_BYTES: usize = Self::LIST_BYTES + Runs::CELL_BYTES;

    /// `limit` of them, of which the first `ready` take their memory now.
    pub(crate) fn new(limit: usize, ready: usize) -> Result<Self, NoMemory> {
        let mut cells = memory::reserved(limit)?;
        cells.resize(ready.min(limit), EMPTY);
        let lists =
            Lists::new_vec_zeroed(limit * STEPS).map_err(|_| NoMemory { bytes: limit * Self::LIST_BYTES })?;
        Ok(Self { cells, lists, runs: Runs::new(limit), used: 0, long: 0 })
    }

    /// How many there may be.
    pub(crate) const fn limit(&self) -> usize {
        self.runs.limit()
    }

    /// How many are in use.
    pub(crate) const fn used(&self) -> usize {
        self.used
    }

    /// A run of at least so many cells; `None` where there is no room.
    pub(crate) fn allocate(&mut self, cells: usize) -> Option<CellRun> {
        let class = class(cells.max(1));
        let base = self.runs.allocate(class)?;
        let end = base as usize + (1 << class);
        if end > self.cells.len() {
            self.cells.resize(end, EMPTY);
        }
        self.used += 1 << class;
        self.long += usize::from(class > 0);
        Some(CellRun { base, class })
    }

    /// Whether any session has more than one cell, and so steps that are not beside all of their accounts.
    #[inline]
    pub(crate) const fn are_long(&self) -> bool {
        self.long > 0
    }

    /// Takes a run back; nothing refers to its steps any more.
    pub(crate) fn release(&mut self, run: CellRun) {
        self.used -= 1 << run.class;
        self.long -= usize::from(run.class > 0);
        for cell in &mut self.cells[run.base as usize..][..1 << run.class] {
            *cell = EMPTY;
        }
        self.runs.release(run.base, run.class);
    }

    #[inline]
    pub(crate) fn step(&self, index: StepIndex) -> &HotStep {
        &self.cells[index.cell()].steps[index.place()]
    }

    /// Asks for the accounts of a simple step, once the step is there. The one beside it was asked for with it.
    #[inline]
    pub(crate) fn prefetch_accounts(&self, at: StepIndex) {
        let step = self.step(at);
        let base = step.base(at) as usize;
        let counted = base + usize::from(step.counted_at());
        if base != at.cell() {
            memory::prefetch(&self.cells[base].account);
        }
        if counted != at.cell() && counted != base {
            memory::prefetch(&self.cells[counted].account);
        }
    }

    /// A step with its lists.
    #[inline]
    pub(crate) fn whole(&self, index: StepIndex) -> WholeStep {
        let step = *self.step(index);
        WholeStep::of(step, step.lists().unwrap_or_else(|| self.lists[index.bits() as usize]))
    }

    /// Puts a step in its place.
    pub(crate) fn put(&mut self, index: StepIndex, step: &WholeStep) {
        if step.is_long() {
            self.lists[index.bits() as usize] = *step.lists();
        }
        self.cells[index.cell()].steps[index.place()] = step.hot();
    }

    /// What is known of a step's flows holds no longer, but what `generation` says.
    pub(crate) fn renew(&mut self, index: StepIndex, generation: u32) {
        self.cells[index.cell()].steps[index.place()].generation = generation;
    }

    /// The account at a place of a session.
    #[inline]
    pub(crate) fn account(&mut self, base: u32, place: u16) -> &mut Account {
        &mut self.cells[base as usize + usize::from(place)].account
    }

    /// A simple step whose rate and count are of the account beside it, with these: mostly they are.
    #[inline(always)]
    pub(crate) fn with_account(&mut self, at: StepIndex) -> Option<(&HotStep, &mut Rate, &mut Count)> {
        let Cell { account, steps } = self.cells.get_mut(at.cell())?;
        let step = &steps[at.place()];
        step.is_beside_account().then_some((step, &mut account.rate, &mut account.count))
    }

    /// The rate and the count of any simple step at its place. `None` of a step that is not there.
    #[inline(always)]
    pub(crate) fn rate_and_count(
        &mut self,
        at: StepIndex,
        step: &HotStep,
    ) -> Option<(&mut Rate, &mut Count)> {
        let base = step.base(at) as usize;
        match usize::from(step.counted_at()) {
            0 => {
                let Account { rate, count } = &mut self.cells.get_mut(base)?.account;
                Some((rate, count))
            }
            counted => {
                let [base, counted] = self.cells.get_disjoint_mut([base, base + counted]).ok()?;
                Some((&mut base.account.rate, &mut counted.account.count))
            }
        }
    }

    /// The rate of the account at a place of a session.
    pub(crate) fn rate(&self, base: u32, place: u16) -> Rate {
        self.cells[base as usize + usize::from(place)].account.rate
    }

    /// Asks for what a packet of this step will need.
    #[inline]
    pub(crate) fn prefetch(&self, index: StepIndex) {
        let Some(cell) = self.cells.get(index.cell()) else { return };
        memory::prefetch(&cell.steps[index.place()]);
        memory::prefetch(&cell.account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn places() -> impl Strategy<Value = Vec<u16>> {
        proptest::collection::vec(prop_oneof![Just(0), 0..300_u16, any::<u16>()], 0..=3)
    }

    proptest! {
        #[test]
        fn a_step_comes_out_as_it_was_put_in(
            meters in places(), usages in places(), mask: u8, place in 0..2_u32, (more, other) in (places(), 0..2_u32),
        ) {
            let mut cells = Cells::new(1, 1).ok().unwrap();
            let before_qos = mask & ((1 << usages.len()) - 1);
            let step = WholeStep::by_lists(&meters, &usages, before_qos);
            let beside = WholeStep::by_lists(&more, &[], 0);
            let at = StepIndex::new(0, place);
            cells.put(StepIndex::new(0, 1 - place), &beside);
            // What stood there before is no matter.
            cells.put(at, &if other == 0 { WholeStep::EMPTY } else { beside });
            cells.put(at, &step);
            prop_assert_eq!(cells.whole(at), step);
            prop_assert_eq!(cells.whole(StepIndex::new(0, 1 - place)), beside);
            let found = cells.whole(at);
            prop_assert_eq!((found.lists().meters(), found.lists().usages()), (&meters[..], &usages[..]));
            prop_assert_eq!((found.is_metered(), found.is_counted()), (!meters.is_empty(), !usages.is_empty()));
            let early = found.lists().usages_before_qos().count();
            prop_assert_eq!(early, before_qos.count_ones() as usize);
            prop_assert_eq!(early + found.lists().usages_on_leaving().count(), usages.len());
            if !found.is_long() {
                prop_assert!(usages.first().is_none_or(|usage| *usage == found.counted_at()));
            }
        }
    }

    #[test]
    fn cells_beyond_those_of_plain_sessions_take_no_memory_before_they_are_in_use() {
        let mut cells = Cells::new(1 << 20, 4).ok().unwrap();
        assert_eq!((cells.cells.len(), cells.limit(), cells.used()), (4, 1 << 20, 0));
        let (addresses, room) = (cells.cells.as_ptr(), cells.cells.capacity());
        let run = cells.allocate(40).unwrap();
        assert_eq!((cells.cells.len(), cells.used()), (64, 64));
        cells.renew(StepIndex::new(run.base + 39, 1), 7);
        cells.release(run);
        assert_eq!((cells.step(StepIndex::new(run.base + 39, 1)).generation, cells.used()), (0, 0));
        while cells.allocate(64).is_some() {}
        assert_eq!((cells.cells.len(), cells.used()), (1 << 20, 1 << 20));
        assert_eq!(
            (cells.cells.as_ptr(), cells.cells.capacity()),
            (addresses, room),
            "the worker allocates nothing"
        );
    }

    #[test]
    fn more_than_there_are_addresses_for_is_refused() {
        assert_eq!(Cells::new(usize::MAX / 64, 4).err(), Some(NoMemory { bytes: usize::MAX }));
    }
}

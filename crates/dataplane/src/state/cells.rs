//! Where the hot part of sessions lies: runs of cells, each with an account and two steps, so that a plain session is
//! one cell and what a packet needs of it is one line. Lists of steps that need more than a rate and a count are
//! apart: memory for them is taken when they come.

use super::account::{Account, Count, Pace, Tally};
use super::lists::{Lists, WholeStep};
use super::memory::{self, NoMemory};
use super::runs::Runs;
use super::session::{Session, SessionIndex};
use super::step::{HotStep, StepIndex};
use super::usage::counted;
use crate::lasting::{Part, Section, Table};
use dplink::UsageCounts;
use rules::{Direction, Seid, UrrId};
use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::{Ordering, compiler_fence};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Steps in a cell.
pub(crate) const STEPS: usize = 2;
/// Cells of a worker, at most: a flow has so many bits for the one it takes.
pub(crate) const MOST: usize = 1 << 27;

/// A step, and one direction of an account: one cache line. In a cell's first lane that is the uplink, in its second the downlink,
/// and so are the steps, where they can be: then a packet reads and writes this line alone.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Lane {
    pace: Pace,
    tally: Tally,
    step: HotStep,
}

const _: () = assert!(size_of::<Lane>() == 64, "one cache line a direction");

/// One account, two steps.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub(crate) struct Cell {
    lanes: [Lane; STEPS],
}

/// Whose count is in a cell's account, and what its tallies do not hold of it: for who finds the table when this process is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Label {
    /// 0 is nobody's.
    seid: u64,
    urr: u32,
    /// See [`Count::folds`].
    folds: [u16; STEPS],
}

/// The lane of a cell that counts a direction.
const LANES: [Direction; STEPS] = [Direction::Uplink, Direction::Downlink];

const _: () = assert!(size_of::<Cell>() == 128, "two cache lines a plain session");

const EMPTY: Cell = {
    let (pace, tally) = Account::ZERO.way(Direction::Uplink);
    Cell { lanes: [Lane { pace, tally, step: HotStep::EMPTY }; STEPS] }
};

impl Cell {
    fn account(&self, folds: [u16; STEPS]) -> Account {
        Account::of(self.lanes.map(|lane| (lane.pace, lane.tally)), folds)
    }

    fn set_account(&mut self, account: &Account) {
        for (lane, direction) in self.lanes.iter_mut().zip(LANES) {
            (lane.pace, lane.tally) = account.way(direction);
        }
    }
}

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
    cells: Table<Cell>,
    /// By cell.
    labels: Table<Label>,
    /// By cell, whose it is: no packet of a known flow asks.
    owners: Vec<SessionIndex>,
    /// By step, of those that are long. The kernel gives it as zeros, and takes memory for what is written.
    lists: Vec<Lists>,
    runs: Runs,
    used: usize,
    /// Runs of more than one cell that are in use.
    long: usize,
}

impl CellRun {
    const fn range(self) -> Range<usize> {
        self.base as usize..self.base as usize + (1 << self.class)
    }

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
    /// What says whose a cell is, here and in time to come.
    pub(crate) const OWNER_BYTES: usize = size_of::<SessionIndex>() + size_of::<Label>();
    /// What a cell takes beside itself as it is used: lists, once both of its steps need them, and where it stands when it is
    /// free.
    pub(crate) const LATER_BYTES: usize = Self::LIST_BYTES + Runs::CELL_BYTES;

    /// `limit` of them, of which the first `ready` take their memory now; in a section of a file if there is one.
    pub(crate) fn new(limit: usize, ready: usize, section: Option<&Section>) -> Result<Self, NoMemory> {
        let place = |part| section.and_then(|section| section.place(part));
        let (cells, labels) =
            (Table::new(limit, place(Part::Cells))?, Table::new(limit, place(Part::Labels))?);
        let owners = memory::reserved(limit)?;
        let lists =
            Lists::new_vec_zeroed(limit * STEPS).map_err(|_| NoMemory { bytes: limit * Self::LIST_BYTES })?;
        let mut all = Self { cells, labels, owners, lists, runs: Runs::new(limit), used: 0, long: 0 };
        let ready = ready.min(limit);
        if all.grow(ready) { Ok(all) } else { Err(NoMemory { bytes: ready * size_of::<Cell>() }) }
    }

    /// Whether there was the memory for so many.
    fn grow(&mut self, length: usize) -> bool {
        if length > self.owners.len() {
            let has_grown = self.labels.grow(length, Label::default()) && self.cells.grow(length, EMPTY);
            if !has_grown {
                return false;
            }
            self.owners.resize(length, SessionIndex::NONE);
        }
        true
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
        if !self.grow(base as usize + (1 << class)) {
            self.runs.release(base, class);
            return None;
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
        self.unlabel(run);
        self.cells[run.range()].fill(EMPTY);
        self.owners[run.range()].fill(SessionIndex::NONE);
        self.runs.release(run.base, run.class);
    }

    #[inline]
    pub(crate) fn step(&self, index: StepIndex) -> &HotStep {
        &self.cells[index.cell()].lanes[index.place()].step
    }

    /// Whose a step is.
    #[inline]
    pub(crate) fn session(&self, index: StepIndex) -> SessionIndex {
        self.owners[index.cell()]
    }

    /// A run is a session's.
    pub(crate) fn own(&mut self, run: CellRun, session: SessionIndex) {
        self.owners[run.range()].fill(session);
    }

    /// What is counted in a run is nobody's, until it is said again whose: before what it counts becomes another's.
    pub(crate) fn unlabel(&mut self, run: CellRun) {
        self.labels[run.range()].iter_mut().for_each(|label| label.seid = 0);
        compiler_fence(Ordering::SeqCst);
    }

    /// What is counted in a session's run is its URRs'. Whoever finds it so finds the counts, too.
    pub(crate) fn label(&mut self, session: &Session) {
        compiler_fence(Ordering::SeqCst);
        let base = session.run.base as usize;
        for (ledger, place) in session.ledgers() {
            let label = &mut self.labels[base + usize::from(place)];
            label.urr = ledger.urr.0;
            compiler_fence(Ordering::SeqCst);
            label.seid = session.seid.0;
        }
    }

    /// Asks for the accounts of a simple step, once the step is there. The one beside it came with it.
    #[inline]
    pub(crate) fn prefetch_accounts(&self, at: StepIndex, direction: Direction) {
        let step = self.step(at);
        let base = step.base(at) as usize;
        let counted = base + usize::from(step.counted_at());
        if base != at.cell() || direction as usize != at.place() {
            memory::prefetch(&self.cells[base].lanes[direction as usize]);
        }
        if counted != at.cell() && counted != base {
            memory::prefetch(&self.cells[counted].lanes[direction as usize]);
        }
    }

    /// A step with its lists, and whose it is.
    #[inline]
    pub(crate) fn whole(&self, index: StepIndex) -> WholeStep {
        let step = *self.step(index);
        let lists = step.lists().unwrap_or_else(|| self.lists[index.bits() as usize]);
        WholeStep::of(step, lists, self.session(index))
    }

    /// Puts a step in its place.
    pub(crate) fn put(&mut self, index: StepIndex, step: &WholeStep) {
        if step.is_long() {
            self.lists[index.bits() as usize] = *step.lists();
        }
        self.cells[index.cell()].lanes[index.place()].step = step.hot();
    }

    /// What is known of a step's flows holds no longer, but what `generation` says.
    pub(crate) fn renew(&mut self, index: StepIndex, generation: u32) {
        self.cells[index.cell()].lanes[index.place()].step.generation = generation;
    }

    /// The account at a place of a session, as it stands.
    pub(crate) fn account(&self, base: u32, place: u16) -> Account {
        let at = base as usize + usize::from(place);
        self.cells[at].account(self.labels[at].folds)
    }

    /// Puts an account in its place.
    pub(crate) fn put_account(&mut self, (base, place): (u32, u16), account: &Account) {
        let at = base as usize + usize::from(place);
        self.cells[at].set_account(account);
        self.labels[at].folds = account.count.folds();
    }

    /// Changes what was counted in the account at a place of a session.
    pub(crate) fn with_count<T>(
        &mut self,
        (base, place): (u32, u16),
        change: impl FnOnce(&mut Count) -> T,
    ) -> T {
        let mut account = self.account(base, place);
        let outcome = change(&mut account.count);
        self.put_account((base, place), &account);
        outcome
    }

    /// One way of the account at a place of a session.
    #[inline]
    pub(crate) fn way(&mut self, (base, place): (u32, u16), direction: Direction) -> (&mut Pace, &mut Tally) {
        let Lane { pace, tally, .. } =
            &mut self.cells[base as usize + usize::from(place)].lanes[direction as usize];
        (pace, tally)
    }

    /// A simple step whose rate and count are of the account beside it, and on its line, with these: mostly they are.
    #[inline(always)]
    pub(crate) fn with_account(
        &mut self,
        at: StepIndex,
        direction: Direction,
    ) -> Option<(&HotStep, &mut Pace, &mut Tally)> {
        let Lane { pace, tally, step } = &mut self.cells.get_mut(at.cell())?.lanes[at.place()];
        (step.is_beside_account() && at.place() == direction as usize).then_some((&*step, pace, tally))
    }

    /// The rate and the count of any simple step at its place. `None` of a step that is not there.
    #[inline(always)]
    pub(crate) fn rate_and_count(
        &mut self,
        at: StepIndex,
        step: &HotStep,
        direction: Direction,
    ) -> Option<(&mut Pace, &mut Tally)> {
        let base = step.base(at) as usize;
        let way = direction as usize;
        match usize::from(step.counted_at()) {
            0 => {
                let Lane { pace, tally, .. } = &mut self.cells.get_mut(base)?.lanes[way];
                Some((pace, tally))
            }
            counted => {
                let [base, counted] = self.cells.get_disjoint_mut([base, base + counted]).ok()?;
                Some((&mut base.lanes[way].pace, &mut counted.lanes[way].tally))
            }
        }
    }

    /// Asks for what a packet of this step will need, and first.
    #[inline]
    pub(crate) fn prefetch(&self, index: StepIndex) {
        let Some(cell) = self.cells.get(index.cell()) else { return };
        memory::prefetch(&cell.lanes[index.place()]);
    }
}

/// What a label and the octets of its cell tell, if the cell's count is anybody's: at a time `now_ns`.
pub(crate) fn told(label: &Label, cell: &[u8], now_ns: u64) -> Option<(Seid, UsageCounts)> {
    let tally = |lane: usize| {
        let octets = cell.get(lane * size_of::<Lane>() + offset_of!(Lane, tally)..)?;
        Tally::read_from_prefix(octets).ok().map(|(tally, _)| tally)
    };
    let count = Count::of([tally(0)?, tally(1)?], label.folds);
    let counts = counted(UrrId(label.urr), &count, now_ns);
    let is_any = label.seid > 0 && counts.uplink_packets + counts.downlink_packets > 0;
    is_any.then_some((Seid(label.seid), counts))
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
            let mut cells = Cells::new(1, 1, None).ok().unwrap();
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
    fn a_step_is_beside_its_account_on_the_line_of_its_direction_alone() {
        let mut cells = Cells::new(1, 1, None).ok().unwrap();
        let (up, down) = (StepIndex::new(0, 0), StepIndex::new(0, 1));
        for (at, direction) in [(up, Direction::Uplink), (down, Direction::Downlink)] {
            assert!(cells.with_account(at, direction).is_some());
            assert!(cells.with_account(at, direction.opposite()).is_none());
        }
        cells.with_count((0, 0), |count| count.allow(1_000));
        // Two steps of one direction: whichever line they are on, what they use is counted that way.
        for at in [up, down] {
            let step = *cells.step(at);
            let (_, tally) = cells.rate_and_count(at, &step, Direction::Downlink).unwrap();
            assert!(tally.add(100, 0));
        }
        assert_eq!(cells.account(0, 0).count.bytes(), [0, 200]);
    }

    #[test]
    fn a_run_is_whose_it_was_given_to() {
        let mut cells = Cells::new(8, 1, None).ok().unwrap();
        let (one, other) = (cells.allocate(3).unwrap(), cells.allocate(1).unwrap());
        cells.own(one, SessionIndex(7));
        cells.own(other, SessionIndex(8));
        let owners = |cells: &Cells| {
            [one.base, one.base + 3, other.base].map(|cell| cells.session(StepIndex::new(cell, 1)))
        };
        assert_eq!(owners(&cells), [SessionIndex(7), SessionIndex(7), SessionIndex(8)]);
        cells.release(one);
        assert_eq!(owners(&cells), [SessionIndex::NONE, SessionIndex::NONE, SessionIndex(8)]);
    }

    #[test]
    fn cells_beyond_those_of_plain_sessions_take_no_memory_before_they_are_in_use() {
        // Miri takes minutes for more.
        const MANY: usize = if cfg!(miri) { 1 << 10 } else { 1 << 20 };
        let mut cells = Cells::new(MANY, 4, None).ok().unwrap();
        assert_eq!((cells.cells.len(), cells.limit(), cells.used()), (4, MANY, 0));
        let addresses = cells.cells.as_ptr();
        let run = cells.allocate(40).unwrap();
        assert_eq!((cells.cells.len(), cells.used()), (64, 64));
        cells.renew(StepIndex::new(run.base + 39, 1), 7);
        cells.release(run);
        assert_eq!((cells.step(StepIndex::new(run.base + 39, 1)).generation, cells.used()), (0, 0));
        while cells.allocate(64).is_some() {}
        assert_eq!((cells.cells.len(), cells.used()), (MANY, MANY));
        assert_eq!(cells.cells.as_ptr(), addresses, "the worker allocates nothing");
    }

    #[test]
    fn more_than_there_are_addresses_for_is_refused() {
        assert_eq!(Cells::new(usize::MAX / 64, 4, None).err(), Some(NoMemory { bytes: usize::MAX }));
    }
}

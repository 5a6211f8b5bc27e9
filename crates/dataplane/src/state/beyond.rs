//! Where packets go once a quota is used up whose URR has a FAR for that (TS 29.244 5.2.2.2.1 and 7.5.2.4), and what becomes of them.

use super::State;
use super::lists::WholeStep;
use super::session::{step_index, step_place};
use super::step::{Kind, StepIndex};
use rules::Direction;

/// What becomes of a packet by a step, as quotas stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bearing {
    /// It goes on.
    Passes,
    /// It is kept.
    Keeps,
    /// It ends.
    Stops,
    /// It ends, and its sender may be answered.
    Answers,
}

impl State {
    /// What becomes of packets by a step.
    pub(crate) fn bearing(&self, at: StepIndex) -> Bearing {
        let at = match self.sessions.cells.step(at).may_yield() {
            true => self.beyond_quota(at).unwrap_or(at),
            false => at,
        };
        let step = self.sessions.cells.whole(at);
        match step.kind {
            Kind::Drop | Kind::DropAndNotify | Kind::GateClosed => Bearing::Stops,
            Kind::Redirect | Kind::Reset => Bearing::Answers,
            Kind::Keep | Kind::KeepAndNotify => Bearing::Keeps,
            Kind::Plain | Kind::Tunnel | Kind::Enrich => match self.stopped_by((&step, at)) {
                Some(_) => Bearing::Stops,
                None => Bearing::Passes,
            },
        }
    }

    /// Whether the step's URRs let so many bytes pass without anybody having to look.
    #[inline]
    pub(crate) fn has_plenty(
        &mut self,
        (step, at): (&WholeStep, StepIndex),
        (direction, bytes): (Direction, u32),
    ) -> bool {
        let (base, cells) = (step.base(at), &mut self.sessions.cells);
        step.lists().usages().iter().all(|place| cells.way((base, *place), direction).1.left() >= bytes)
    }

    /// Whether a quota of the step's lets nothing pass, and nothing is to be told of that; as its account says, nothing else is read.
    #[inline]
    pub(crate) fn is_stopped(&mut self, (step, at): (&WholeStep, StepIndex), direction: Direction) -> bool {
        let (base, cells) = (step.base(at), &mut self.sessions.cells);
        step.lists().usages().iter().any(|place| cells.way((base, *place), direction).1.is_used_up())
    }

    /// Those of the step's URRs whose quota lets nothing pass, in their order.
    fn used_up(&self, step: &WholeStep) -> impl Iterator<Item = u16> {
        let is_used_up = |place: &u16| {
            let ledger = self.sessions.ledger((step.session, *place));
            ledger.is_some_and(|(ledger, count)| ledger.is_used_up(&count))
        };
        step.lists().usages().iter().copied().filter(is_used_up)
    }

    /// The URR whose quota ends the packets of a step: the first that is used up without a FAR for that, otherwise, unless one
    /// stands in already, the first that is used up.
    pub(crate) fn stopped_by(&self, (step, at): (&WholeStep, StepIndex)) -> Option<u16> {
        let of = if step.stands_in() { self.stood_in_for(at)? } else { at };
        let ends = |usage: &u16| self.stand_in(of, *usage).is_none();
        let other = || self.used_up(step).next().filter(|_| !step.stands_in());
        self.used_up(step).find(ends).or_else(other)
    }

    /// The step that stands in for one that may yield; `None` within the quotas, and where one that is used up has no FAR for that:
    /// it ends packets, wherever others lead them, as each URR does what it says (TS 29.244 5.2.2.2.1), in whichever order they stand.
    #[cold]
    pub(crate) fn beyond_quota(&self, at: StepIndex) -> Option<StepIndex> {
        let step = self.sessions.cells.whole(at);
        let mut first = None;
        for usage in self.used_up(&step) {
            let stand_in = self.stand_in(at, usage)?;
            first = first.or(Some(stand_in));
        }
        first
    }

    /// The step that stands in for another once a quota is used up, that of the URR in this place.
    fn stand_in(&self, at: StepIndex, usage: u16) -> Option<StepIndex> {
        let session = self.sessions.get(self.sessions.cells.session(at))?;
        let base = session.run.base;
        let of = step_place(base, at);
        let mut all = session.beyond().iter();
        let found = all.find(|(other, usages, _)| usize::from(*other) == of && usages.contains(&usage));
        found.map(|(.., place)| step_index(base, usize::from(*place)))
    }

    /// The step of a PDR that another one stands in for, beyond its quota: no two PDRs share what stands in.
    #[cold]
    pub(crate) fn stood_in_for(&self, at: StepIndex) -> Option<StepIndex> {
        let session = self.sessions.get(self.sessions.cells.session(at))?;
        let base = session.run.base;
        let stand_in = step_place(base, at);
        let found = session.beyond().iter().find(|(.., place)| usize::from(*place) == stand_in);
        found.map(|(of, ..)| step_index(base, usize::from(*of)))
    }
}

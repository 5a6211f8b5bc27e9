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
            Kind::Plain | Kind::Tunnel | Kind::Enrich if step.stands_in() => Bearing::Passes,
            Kind::Plain | Kind::Tunnel | Kind::Enrich => match self.used_up(&step) {
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

    /// The first of the step's URRs whose quota lets nothing pass.
    pub(crate) fn used_up(&self, step: &WholeStep) -> Option<u16> {
        let is_used_up = |place: &u16| {
            let ledger = self.sessions.ledger((step.session, *place));
            ledger.is_some_and(|(ledger, count)| ledger.is_used_up(&count))
        };
        step.lists().usages().iter().copied().find(is_used_up)
    }

    /// The step that stands in for one that may yield; `None` within the quotas, and where the first that is used up has
    /// no FAR for that.
    #[cold]
    pub(crate) fn beyond_quota(&self, at: StepIndex) -> Option<StepIndex> {
        let step = self.sessions.cells.whole(at);
        let usage = self.used_up(&step)?;
        let session = self.sessions.get(step.session)?;
        let base = session.run.base;
        let of = step_place(base, at);
        let mut all = session.beyond().iter();
        let stands_in = all.find(|(other, usages, _)| usize::from(*other) == of && usages.contains(&usage));
        stands_in.map(|(.., place)| step_index(base, usize::from(*place)))
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

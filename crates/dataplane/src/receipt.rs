//! What a packet was counted for, so that it can be taken back where it does not leave after all.

use crate::state::{StepIndex, Ticket};
use rules::Direction;

/// Who counted a packet that is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Nobody.
    Nobody,
    /// The URRs of a step.
    Step(StepIndex),
    /// Its flow, which waits to be of an application.
    Flow(Ticket),
}

/// What was counted. It is of use as long as the rules that counted are in force, so whatever changes them or tells of
/// usage first lets out what is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) counted: Counted,
    pub(crate) bytes: u16,
    pub(crate) direction: Direction,
}

const _: () = assert!(size_of::<Receipt>() == 12, "one is noted for every packet that leaves");

impl Receipt {
    /// Nothing.
    pub(crate) const NONE: Self = Self { counted: Counted::Nobody, bytes: 0, direction: Direction::Uplink };
}

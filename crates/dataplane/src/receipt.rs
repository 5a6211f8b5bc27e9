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

/// What was counted: every packet that leaves has one, written where it is counted and copied once. It is of use as long as the
/// rules that counted are in force, so whatever changes them or tells of usage first lets out what is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub(crate) struct Receipt {
    /// The step or ticket, as a number.
    who: u32,
    bytes: u16,
    direction: Direction,
    kind: Kind,
}

const _: () = assert!(size_of::<Receipt>() == 8, "one word");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Nobody,
    Step,
    Flow,
}

impl Receipt {
    /// Nothing.
    pub(crate) const NONE: Self = Self { who: 0, bytes: 0, direction: Direction::Uplink, kind: Kind::Nobody };

    /// The URRs of a step counted so many bytes.
    #[inline(always)]
    pub(crate) const fn of_step(step: StepIndex, direction: Direction, bytes: u16) -> Self {
        Self { who: step.bits(), bytes, direction, kind: Kind::Step }
    }

    /// The same of a flow.
    pub(crate) const fn of_flow(ticket: Ticket, direction: Direction, bytes: u16) -> Self {
        Self { who: ticket.bits(), bytes, direction, kind: Kind::Flow }
    }

    /// Who counted.
    pub(crate) const fn counted(self) -> Counted {
        match self.kind {
            Kind::Nobody => Counted::Nobody,
            Kind::Step => Counted::Step(StepIndex::from_bits(self.who)),
            Kind::Flow => Counted::Flow(Ticket::from_bits(self.who)),
        }
    }

    /// How much.
    pub(crate) const fn bytes(self) -> u32 {
        self.bytes as u32
    }

    /// Which way it went.
    pub(crate) const fn direction(self) -> Direction {
        self.direction
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_receipt_says_what_was_counted(who: u32, bytes: u16, down: bool) {
            let direction = if down { Direction::Downlink } else { Direction::Uplink };
            let (step, ticket) = (StepIndex::from_bits(who), Ticket::from_bits(who));
            let of_step = Receipt::of_step(step, direction, bytes);
            let of_flow = Receipt::of_flow(ticket, direction, bytes);
            prop_assert_eq!((of_step.counted(), of_flow.counted()), (Counted::Step(step), Counted::Flow(ticket)));
            for receipt in [of_step, of_flow] {
                prop_assert_eq!((receipt.direction(), receipt.bytes()), (direction, u32::from(bytes)));
                prop_assert_ne!(receipt, Receipt::NONE);
            }
            prop_assert_eq!((ticket.bits(), step.bits()), (who, who));
        }
    }

    #[test]
    fn none_was_counted_by_nobody() {
        assert_eq!(Receipt::NONE.counted(), Counted::Nobody);
    }
}

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

/// What was counted, in one word: every packet that leaves has one, written where it is counted and copied once. It is of use as
/// long as the rules that counted are in force, so whatever changes them or tells of usage first lets out what is to leave.
///
/// From the lowest bit on: the step or ticket (32), bytes (16), direction (1), who counted (2; none is 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt(u64);

const BYTES_SHIFT: u32 = 32;
const DOWNLINK_SHIFT: u32 = 48;
const DOWNLINK: u64 = (Direction::Downlink as u64) << DOWNLINK_SHIFT;
const _: () = assert!(Direction::Uplink as u64 == 0 && DOWNLINK == 1 << DOWNLINK_SHIFT);
const STEP: u64 = 1 << 49;
const FLOW: u64 = 1 << 50;

impl Receipt {
    /// Nothing.
    pub(crate) const NONE: Self = Self(0);

    /// The URRs of a step counted so many bytes.
    #[inline(always)]
    pub(crate) const fn of_step(step: StepIndex, direction: Direction, bytes: u16) -> Self {
        Self::new(STEP | step.bits() as u64, direction, bytes)
    }

    /// The same of a flow.
    pub(crate) const fn of_flow(ticket: Ticket, direction: Direction, bytes: u16) -> Self {
        Self::new(FLOW | ticket.bits() as u64, direction, bytes)
    }

    #[inline(always)]
    const fn new(who: u64, direction: Direction, bytes: u16) -> Self {
        Self(who | (direction as u64) << DOWNLINK_SHIFT | (bytes as u64) << BYTES_SHIFT)
    }

    /// Who counted.
    pub(crate) const fn counted(self) -> Counted {
        let who = self.0 as u32;
        match self.0 & (STEP | FLOW) {
            STEP => Counted::Step(StepIndex::from_bits(who)),
            FLOW => Counted::Flow(Ticket::from_bits(who)),
            _ => Counted::Nobody,
        }
    }

    /// How much.
    pub(crate) const fn bytes(self) -> u32 {
        (self.0 >> BYTES_SHIFT) as u16 as u32
    }

    /// Which way it went.
    pub(crate) const fn direction(self) -> Direction {
        if self.0 & DOWNLINK == 0 { Direction::Uplink } else { Direction::Downlink }
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

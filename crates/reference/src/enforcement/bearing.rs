//! What becomes of packets by a PDR, whatever they are.

use super::{Session, gate};
use crate::portal;
use rules::{ApplyAction, Direction, Gate, Pdr};

/// What becomes of a packet of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bearing {
    Passes,
    Keeps,
    Stops,
    /// It goes no further, and its sender may hear of it.
    Answers,
}

impl Session {
    /// By the gates, the FAR in force, and the quotas.
    pub(crate) fn bearing(&self, pdr: &Pdr, direction: Direction) -> Bearing {
        if self.qers(pdr).iter().any(|qer| gate(qer, direction) == Gate::Closed) {
            return Bearing::Stops;
        }
        let Some((far, stands_in)) = self.far_for(pdr, None) else { return Bearing::Stops };
        match (far.apply_action, far.forwarding) {
            _ if portal::answers(&far).is_some() => Bearing::Answers,
            (ApplyAction::Buffer, _) => Bearing::Keeps,
            (ApplyAction::Forward, Some(_)) if stands_in || self.exhausted(pdr).is_none() => Bearing::Passes,
            (ApplyAction::Forward | ApplyAction::Drop | ApplyAction::Reset, _) => Bearing::Stops,
        }
    }
}

//! What QERs, URRs and the FAR of a PDR do with a frame: as with a packet, but for what only packets have.

use super::{Marks, Moment, Session, gate};
use crate::meters::Load;
use crate::reason::DropReason;
use rules::{ApplyAction, ForwardingParameters, Gate, Pdr};

#[derive(Clone, Debug)]
pub(crate) enum FrameAction {
    Forward(ForwardingParameters, Marks),
    Buffer,
}

impl Session {
    /// In the order of [`Session::decide`]. A frame is neither copied, answered nor redirected.
    pub(crate) fn decide_frame(
        &mut self,
        pdr: &Pdr,
        load: Load,
        moment: Moment<'_>,
    ) -> Result<FrameAction, DropReason> {
        if self.qers(pdr).iter().any(|qer| gate(qer, load.direction) == Gate::Closed) {
            self.count(pdr, load, |urr| urr.before_qos);
            return Err(DropReason::GateClosed);
        }
        let (far, stands_in) = self.far_for(pdr, None).ok_or(DropReason::FarDrop)?;
        match (far.apply_action, far.forwarding) {
            (ApplyAction::Buffer, _) => {
                self.keep((pdr, &far), load)?;
                Ok(FrameAction::Buffer)
            }
            (ApplyAction::Forward, Some(to)) => {
                self.enforce((pdr, stands_in), load, moment)?;
                Ok(FrameAction::Forward(to, self.marks(pdr, &far)))
            }
            _ => {
                self.count_dropped(&pdr.urrs, load);
                Err(DropReason::FarDrop)
            }
        }
    }
}

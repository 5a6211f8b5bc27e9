//! Requests that are refused as the database takes nothing.

use crate::exchange::Asked;
use crate::few_lines::Often;
use crate::interface::Level;
use crate::node::Node;
use crate::refusal::Refusal;
use machine::Time;
use pfcp::{Body, Cause};
use rules::Seid;

impl Node {
    /// Refuses a request without a look at what is asked for, but by whom.
    pub(crate) fn refuse_unkept(&mut self, asked: &Asked, seid: u64, body: &Body) {
        let cp_seid = match body {
            Body::SessionEstablishmentRequest(request) => Ok(Some(request.cp_f_seid.seid)),
            Body::SessionModificationRequest(_) => self.owned(asked.key.from, Seid(seid)).map(Some),
            _ => Ok(None),
        };
        match cp_seid {
            Ok(cp_seid) => {
                self.note_unkept(asked);
                self.refuse_silently(asked, cp_seid, Refusal::of(Cause::SystemFailure));
            }
            Err(refusal) => self.refuse(asked, None, refusal),
        }
    }

    fn note_unkept(&mut self, asked: &Asked) {
        self.unkept += 1;
        let (from, procedure) = (asked.key.from, asked.procedure);
        let what = procedure.map(|procedure| format!(" {procedure:?}")).unwrap_or_default();
        let text = format!(
            "{from} is refused{what}: the session database takes nothing; so are others until it does"
        );
        self.note_few(Often::Unkept, text);
    }

    /// Says that it is over.
    pub(crate) fn end_unkept(&mut self) {
        if self.unkept_due().is_none() {
            return;
        }
        let refused = std::mem::take(&mut self.unkept);
        self.few_lines.forget(Often::Unkept);
        let text =
            format!("{refused} requests were refused while the session database took nothing; it does again");
        self.note(Level::Info, text);
    }

    /// When that is.
    pub(crate) fn unkept_due(&self) -> Option<Time> {
        (self.unkept > 0 && !self.cannot_keep).then_some(self.now)
    }
}

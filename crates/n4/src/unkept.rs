//! Requests that are refused as the database takes nothing: a disk may be full for hours, and a line about each would fill another.

use crate::exchange::Asked;
use crate::interface::Level;
use crate::node::Node;
use crate::refusal::Refusal;
use machine::Time;
use pfcp::{Body, Cause};
use rules::Seid;
use std::time::Duration;

/// Between two lines about them, but for the first and the last.
const PAUSE: Duration = Duration::from_secs(10);

/// What was said of them since the first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unkept {
    refused: u64,
    /// Of those, the ones in no line yet.
    untold: u64,
    /// When there may be another line.
    again: Time,
}

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

    /// The first is told of at once, the others by their number.
    fn note_unkept(&mut self, asked: &Asked) {
        self.unkept.refused += 1;
        if self.unkept.refused > 1 {
            self.unkept.untold += 1;
            return;
        }
        self.unkept.again = self.now + PAUSE;
        let (from, procedure) = (asked.key.from, asked.procedure);
        let what = procedure.map(|procedure| format!(" {procedure:?}")).unwrap_or_default();
        let text = format!(
            "{from} is refused{what}: the session database takes nothing; so are others until it does"
        );
        self.note(Level::Warning, text);
    }

    /// Tells how many there were since the last line, or that it is over.
    pub(crate) fn sum_up_unkept(&mut self) {
        let Unkept { refused, untold, again } = self.unkept;
        if refused > 0 && !self.cannot_keep {
            self.unkept = Unkept::default();
            let text = format!(
                "{refused} requests were refused while the session database took nothing; it does again"
            );
            self.note(Level::Info, text);
        } else if untold > 0 && again <= self.now {
            self.unkept = Unkept { refused, untold: 0, again: self.now + PAUSE };
            let text = format!("{untold} more requests were refused: the session database takes nothing");
            self.note(Level::Warning, text);
        }
    }

    /// When that is.
    pub(crate) fn unkept_due(&self) -> Option<Time> {
        let Unkept { refused, untold, again } = self.unkept;
        match self.cannot_keep {
            true => (untold > 0).then_some(again),
            false => (refused > 0).then_some(self.now),
        }
    }
}

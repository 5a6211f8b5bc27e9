//! After a load of content rules: sessions that ask for applications are gone through, so that their flows ask anew.

use super::content::Loading;
use super::{Place, Said, State};

/// Nanoseconds from one place for a session to the next: a million take a hundred seconds, and what their flows cost, which are
/// classified anew with their next packets, is spread over these.
const PACE_NS: u64 = 100_000;
/// Places at a turn that comes late.
const AT_ONCE: u32 = 8;

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    place: u32,
    next_ns: u64,
}

impl State {
    /// Puts content rules in force; gives back what is no longer needed.
    pub(crate) fn load(&mut self, loading: Box<Loading>) -> Box<Loading> {
        self.content.loaded_at = self.sessions.generation();
        self.renewal = Some(Renewal { place: 0, next_ns: self.now_ns });
        self.content.load(loading)
    }

    /// What a flow said that was asked about by the content rules before these; `None` of others.
    pub(crate) fn said_before(&self, place: Place<'_>) -> Option<Said> {
        self.flows.said_before(place, self.content.loaded_at)
    }

    /// Goes on where flows are to ask anew, a few sessions a call.
    pub(crate) fn renew_sessions(&mut self) {
        let Some(mut renewal) = self.renewal else { return };
        for _ in 0..AT_ONCE {
            if self.now_ns < renewal.next_ns {
                break;
            }
            if !self.sessions.renew_if(renewal.place, |session| session.looks.application) {
                self.renewal = None;
                return;
            }
            renewal.place += 1;
            renewal.next_ns += PACE_NS;
        }
        renewal.next_ns = renewal.next_ns.max(self.now_ns);
        self.renewal = Some(renewal);
    }
}

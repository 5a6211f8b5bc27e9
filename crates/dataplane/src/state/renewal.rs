//! After a load of content rules: the flow table is gone through, so that flows ask anew.

use super::State;
use super::content::Loading;

/// Nanoseconds until the next place, behind a flow that is to ask anew: a million take 100 seconds, and what they cost, some thousand
/// cycles each way, is spread over these...
const PACE_NS: u64 = 100_000;
/// ... and behind any other place.
const LOOK_NS: u64 = 5_000;
/// Places at a turn that comes late.
const AT_ONCE: u32 = 32;

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    place: usize,
    next_ns: u64,
}

impl State {
    /// Puts content rules in force; gives back what is no longer needed.
    pub(crate) fn load(&mut self, loading: Box<Loading>) -> Box<Loading> {
        // Before there were rules, no flow was found to be of anything.
        self.renewal = self.content.is_loaded().then_some(Renewal { place: 0, next_ns: self.now_ns });
        self.content.load(loading)
    }

    /// Goes on where flows are to ask anew, a few places a call.
    pub(crate) fn renew_flows(&mut self) {
        let Some(mut renewal) = self.renewal else { return };
        for _ in 0..AT_ONCE {
            if self.now_ns < renewal.next_ns {
                break;
            }
            let Some(is_one) = self.flows.ask_anew(renewal.place) else {
                self.renewal = None;
                return;
            };
            renewal.place += 1;
            renewal.next_ns += if is_one { PACE_NS } else { LOOK_NS };
        }
        // What a turn that was late had no time for is later.
        renewal.next_ns = renewal.next_ns.max(self.now_ns);
        self.renewal = Some(renewal);
    }
}

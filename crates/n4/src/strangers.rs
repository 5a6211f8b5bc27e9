//! Refusals of peers that are not associated: whoever can send datagrams could fill the disk with lines about them.

use crate::interface::Level;
use crate::node::Node;
use machine::Time;
use std::net::IpAddr;
use std::time::Duration;

/// Lines about them in a second; the others are counted, in one line.
const LINES: u32 = 10;

/// What was said of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strangers {
    /// In this second.
    second: u64,
    lines: u32,
    /// Refused, and not told one by one.
    untold: u64,
}

impl Node {
    /// Says that a request was refused.
    pub(crate) fn note_refusal(&mut self, from: IpAddr, text: String) {
        if self.peers.speaking_from(from).next().is_none() {
            self.sum_up_strangers();
            if self.strangers.lines >= LINES {
                self.strangers.untold += 1;
                return;
            }
            self.strangers.lines += 1;
        }
        self.note(Level::Warning, text);
    }

    /// In the next second, those that were only counted are told of.
    pub(crate) fn sum_up_strangers(&mut self) {
        let second = self.now.since_zero().as_secs();
        if second == self.strangers.second {
            return;
        }
        let untold = self.strangers.untold;
        self.strangers = Strangers { second, ..Strangers::default() };
        if untold > 0 {
            let text = format!("{untold} more requests of peers that are not associated were refused");
            self.note(Level::Warning, text);
        }
    }

    /// When that is.
    pub(crate) fn strangers_due(&self) -> Option<Time> {
        let next = Time::from_zero(Duration::from_secs(self.strangers.second + 1));
        (self.strangers.untold > 0).then_some(next)
    }
}

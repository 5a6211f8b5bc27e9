//! Refusals of peers that are not associated, or for whom there is no place, and datagrams of those who are not allowed: whoever
//! can send datagrams could fill the disk with lines about them.

use crate::interface::Level;
use crate::node::Node;
use machine::Time;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Lines about them in a second; the others are counted, in one line.
const LINES: u32 = 10;

/// Between lines about control planes for whom there is no place: they ask again and again.
const BETWEEN_NO_PLACE: Duration = Duration::from_secs(10);

/// What was said of them in this second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strangers {
    second: u64,
    refused: Said,
    not_allowed: Said,
}

/// What was said of those for whom there is no place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoPlace {
    /// Nothing is said before then.
    until: Option<Time>,
    /// Not told one by one.
    untold: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Said {
    lines: u32,
    /// Not told one by one.
    untold: u64,
}

impl Said {
    /// Whether there is a line left; what has none is counted.
    const fn has_line(&mut self) -> bool {
        let is_left = self.lines < LINES;
        if is_left {
            self.lines += 1;
        } else {
            self.untold += 1;
        }
        is_left
    }
}

impl Node {
    /// Says that a request was refused.
    pub(crate) fn note_refusal(&mut self, from: IpAddr, text: String) {
        if self.peers.speaking_from(from).next().is_none() {
            self.sum_up_strangers();
            if !self.strangers.refused.has_line() {
                return;
            }
        }
        self.note(Level::Warning, text);
    }

    /// Says that a control plane found no place: the first time, and what there is to say of others later.
    pub(crate) fn note_no_place(&mut self, text: String) {
        self.sum_up_no_place();
        if self.no_place.until.is_some_and(|until| self.now < until) {
            self.no_place.untold += 1;
        } else {
            self.no_place.until = Some(self.now + BETWEEN_NO_PLACE);
            self.note(Level::Warning, text);
        }
    }

    /// Those who were only counted are told of when it is time.
    pub(crate) fn sum_up_no_place(&mut self) {
        if self.no_place_due().is_none_or(|due| self.now < due) {
            return;
        }
        let NoPlace { untold, .. } = std::mem::take(&mut self.no_place);
        self.no_place.until = Some(self.now + BETWEEN_NO_PLACE);
        let text =
            format!("{untold} more set-ups of associations were refused, as there is no place for them");
        self.note(Level::Warning, text);
    }

    /// When that is.
    pub(crate) fn no_place_due(&self) -> Option<Time> {
        self.no_place.until.filter(|_| self.no_place.untold > 0)
    }

    /// Says that somebody is not answered.
    pub(crate) fn note_not_allowed(&mut self, from: SocketAddr) {
        self.sum_up_strangers();
        if self.strangers.not_allowed.has_line() {
            self.note(Level::Warning, format!("{from} is not answered: its address is not allowed"));
        }
    }

    /// In the next second, those that were only counted are told of.
    pub(crate) fn sum_up_strangers(&mut self) {
        let second = self.now.since_zero().as_secs();
        if second == self.strangers.second {
            return;
        }
        let Strangers { refused, not_allowed, .. } = self.strangers;
        self.strangers = Strangers { second, ..Strangers::default() };
        for (untold, what) in [
            (refused.untold, "requests of peers that are not associated were refused"),
            (not_allowed.untold, "datagrams of addresses that are not allowed were dropped"),
        ] {
            if untold > 0 {
                self.note(Level::Warning, format!("{untold} more {what}"));
            }
        }
    }

    /// When that is.
    pub(crate) fn strangers_due(&self) -> Option<Time> {
        let next = Time::from_zero(Duration::from_secs(self.strangers.second + 1));
        let Strangers { refused, not_allowed, .. } = self.strangers;
        (refused.untold + not_allowed.untold > 0).then_some(next)
    }
}

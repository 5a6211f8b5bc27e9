//! Few lines about what may come as often as anybody likes: whoever can send datagrams could fill the disk with them, and a disk that is
//! full may be so for hours.

use crate::interface::Level;
use crate::node::Node;
use crate::refusal::{Procedure, Refusal};
use machine::Time;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What may come so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Often {
    /// Requests of peers that are not associated.
    Refused,
    /// Datagrams of those who are not allowed.
    NotAllowed,
    /// Set-ups by control planes for whom there is no place: they ask again and again.
    NoPlace,
    /// Requests that are refused as the database takes nothing.
    Unkept,
}

impl Often {
    const ALL: [Self; 4] = [Self::Refused, Self::NotAllowed, Self::NoPlace, Self::Unkept];

    /// What became of those that are told of by their number.
    const fn text(self) -> &'static str {
        match self {
            Self::Refused => "requests of peers that are not associated were refused",
            Self::NotAllowed => "datagrams of addresses that are not allowed were dropped",
            Self::NoPlace => "set-ups of associations were refused, as there is no place for them",
            Self::Unkept => "requests were refused: the session database takes nothing",
        }
    }
}

/// Of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FewLines {
    refused: Lines,
    not_allowed: Lines,
    no_place: Lines,
    unkept: Lines,
}

impl Default for FewLines {
    fn default() -> Self {
        let [some, one] = [Lines::new(10, Duration::from_secs(1)), Lines::new(1, Duration::from_secs(10))];
        Self { refused: some, not_allowed: some, no_place: one, unkept: one }
    }
}

impl FewLines {
    const fn of(&mut self, often: Often) -> &mut Lines {
        match often {
            Often::Refused => &mut self.refused,
            Often::NotAllowed => &mut self.not_allowed,
            Often::NoPlace => &mut self.no_place,
            Often::Unkept => &mut self.unkept,
        }
    }

    /// It is over: the next time the first that comes is told of again.
    pub(crate) fn forget(&mut self, often: Often) {
        let lines = self.of(often);
        *lines = Lines::new(lines.most, lines.pause);
    }

    /// When some are to be told of that were only counted.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let Self { refused, not_allowed, no_place, unkept } = self;
        [refused, not_allowed, no_place, unkept].into_iter().filter_map(Lines::due).min()
    }
}

/// Some lines in a while; what has none is counted, and the first line of the next while tells how many there were.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    most: u32,
    pause: Duration,
    /// Of this while: its end, and the lines it has had.
    until: Time,
    said: u32,
    /// What is in no line yet.
    untold: u64,
}

impl Lines {
    pub(crate) const fn new(most: u32, pause: Duration) -> Self {
        Self { most, pause, until: Time::ZERO, said: 0, untold: 0 }
    }

    /// Whether there is a line for one more.
    pub(crate) fn has_line(&mut self, now: Time) -> bool {
        if now >= self.until {
            (self.until, self.said) = (now + self.pause, 0);
        }
        let is_left = self.said < self.most;
        if is_left {
            self.said += 1;
        } else {
            self.untold += 1;
        }
        is_left
    }

    /// How many were only counted, once it is time to tell of them.
    pub(crate) fn sum_up(&mut self, now: Time) -> Option<u64> {
        self.due().filter(|due| now >= *due)?;
        (self.until, self.said) = (now + self.pause, 1);
        Some(std::mem::take(&mut self.untold))
    }

    pub(crate) fn due(&self) -> Option<Time> {
        (self.untold > 0).then_some(self.until)
    }

    /// Whether it is as if none had ever come.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.untold == 0 && now >= self.until
    }
}

impl Node {
    /// Says what comes often, if there is a line for it.
    pub(crate) fn note_few(&mut self, often: Often, text: String) {
        self.sum_up_few();
        if self.few_lines.of(often).has_line(self.now) {
            self.note(Level::Warning, text);
        }
    }

    /// Says that a request was refused: of control planes that are associated by its kind.
    pub(crate) fn note_refusal(
        &mut self,
        (from, procedure): (IpAddr, Procedure),
        refusal: Refusal,
        text: String,
    ) {
        if self.peers.speaking_from(from).next().is_none() {
            return self.note_few(Often::Refused, text);
        }
        self.sum_up_few();
        if self.few_kinds.has_line((from, procedure), refusal, self.now) {
            self.note(Level::Warning, text);
        }
    }

    /// Says that somebody is not answered.
    pub(crate) fn note_not_allowed(&mut self, from: SocketAddr) {
        self.note_few(Often::NotAllowed, format!("{from} is not answered: its address is not allowed"));
    }

    /// Those who were only counted are told of when it is time.
    pub(crate) fn sum_up_few(&mut self) {
        for often in Often::ALL {
            if let Some(untold) = self.few_lines.of(often).sum_up(self.now) {
                self.note(Level::Warning, format!("{untold} more {}", often.text()));
            }
        }
        let told = self.few_kinds.sum_up(self.now);
        told.into_iter().for_each(|text| self.note(Level::Warning, text));
    }
}

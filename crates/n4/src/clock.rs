//! The time of day. All that lasts or waits goes by moments, which begin with the time of day when the database was new and never
//! jump; what is told to others, and what they give as a time of day, goes by the clock as it is now. Moments go on over restarts,
//! for the database knows how far the clock is ahead of them.

use crate::interface::Level;
use crate::node::Node;
use machine::{Clock, Time};
use std::time::Duration;

/// What the clock may differ from what we know of it: what is told of it are seconds.
const STEP_MS: u64 = 500;
/// Sessions looked at in one go after the clock was put right, and the pause before the next ones: of a million sessions, the last
/// is looked at 10 s later.
const LOOKS: usize = 1_000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

impl Node {
    /// The moment: milliseconds since 1900, by a clock that never jumps.
    pub(crate) fn wall_ms(&self) -> u64 {
        self.since_1900_ms + self.now.since_zero().as_millis() as u64
    }

    /// The moment, and how far ahead of it the time of day is.
    pub(crate) fn clock(&self) -> Clock {
        Clock { now_ms: self.wall_ms(), ahead_ms: self.clock_ahead_ms }
    }

    /// When it is that moment.
    pub(crate) fn time_of(&self, moment_ms: u64) -> Time {
        // A millisecond more than has passed is due; a part of one would be looked at over and over.
        Time::from_millis(moment_ms.saturating_sub(self.since_1900_ms))
    }

    /// It is this time of day now. Sessions that wait for one (a monitoring time, a tariff) may have to wait no more.
    pub(crate) fn time_of_day(&mut self, since_1900_ms: u64) {
        let before_ms = self.clock().time_of_day(self.wall_ms());
        if since_1900_ms.abs_diff(before_ms) < STEP_MS {
            return;
        }
        let step_ms = since_1900_ms.cast_signed().saturating_sub(before_ms.cast_signed());
        self.clock_ahead_ms = self.clock_ahead_ms.saturating_add(step_ms);
        self.save_node();
        let text = format!("the clock was changed by {} s", step_ms as f64 / 1_000.0);
        self.note(Level::Info, text);
        self.to_look_at = self.timers.iter().map(|(_, seid)| *seid).collect();
        self.look_again = Some(self.now);
    }

    /// Looks at some of the sessions that may wait for a time of day.
    pub(crate) fn look_at_some(&mut self) {
        if self.look_again.is_none_or(|at| at > self.now) {
            return;
        }
        let left = self.to_look_at.len().saturating_sub(LOOKS);
        for seid in self.to_look_at.split_off(left) {
            self.attend(seid);
            self.sessions.rest(self.wall_ms());
        }
        self.look_again = (left > 0).then(|| self.now + BETWEEN_LOOKS);
    }
}

//! The time of day, beside time that never jumps.

/// A moment, and how much the time of day is ahead of it. Moments are milliseconds since 1900 by a clock that never jumps:
/// all that lasts or waits goes by them. The time of day is the operator's, who may put it right at any time: only what is
/// told to others, and what others give as a time of day, goes by that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The moment, in milliseconds since 1900.
    pub now_ms: u64,
    /// Milliseconds by which the time of day is ahead of moments.
    pub ahead_ms: i64,
}

impl Clock {
    /// A clock that has always been right.
    pub const fn at(now_ms: u64) -> Self {
        Self { now_ms, ahead_ms: 0 }
    }

    /// The time of day of a moment, by the clock as it is now: milliseconds since 1900.
    pub const fn time_of_day(self, moment_ms: u64) -> u64 {
        moment_ms.saturating_add_signed(self.ahead_ms)
    }

    /// The moment of a time of day, by the clock as it is now.
    pub const fn moment(self, time_of_day_ms: u64) -> u64 {
        time_of_day_ms.saturating_add_signed(self.ahead_ms.saturating_neg())
    }
}

//! Monotonic time.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, counted from a zero the runtime chose; never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(Duration);

impl Time {
    /// The runtime's zero.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// So long after the runtime's zero.
    pub const fn from_zero(since: Duration) -> Self {
        Self(since)
    }

    /// Milliseconds after the runtime's zero: short to write in tests.
    pub const fn from_millis(since_ms: u64) -> Self {
        Self(Duration::from_millis(since_ms))
    }

    /// Since the runtime's zero.
    pub const fn since_zero(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}

impl Sub for Time {
    type Output = Duration;

    /// Zero where `earlier` is the later one.
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

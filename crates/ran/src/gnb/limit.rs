//! How often something may be said.

use machine::Time;
use std::time::Duration;

/// Times a [`WINDOW`].
const MOST: u32 = 10;
const WINDOW: Duration = Duration::from_secs(1);

/// At most [`MOST`] a [`WINDOW`]: a flood of packets without a tunnel draws no flood of answers.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    since: Time,
    used: u32,
}

impl RateLimit {
    /// Whether it may be said now; if so, that counts.
    pub(super) fn allows(&mut self, now: Time) -> bool {
        if now - self.since >= WINDOW {
            *self = Self { since: now, used: 0 };
        }
        let allowed = self.used < MOST;
        self.used += u32::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_second_and_no_more() {
        let mut limit = RateLimit::default();
        let allowed =
            |limit: &mut RateLimit, ms| (0..25).filter(|_| limit.allows(Time::from_millis(ms))).count();
        assert_eq!(allowed(&mut limit, 0), 10);
        assert_eq!(allowed(&mut limit, 999), 0);
        assert_eq!(allowed(&mut limit, 1_000), 10);
    }
}

//! How many usage reports a control plane gets in a second: sessions whose thresholds are reached together, or whose periods end
//! together, take turns. What a session uses while it waits for its turn is in the report it waits with.

use crate::node::Node;
use rules::Seid;

/// Turns nobody took for so long may be taken at once.
const BURST_US: u64 = 100_000;

/// The turns of one control plane: a token bucket of which only the next turn is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    next_us: u64,
}

impl Pace {
    /// Of the next turn, in milliseconds; it may have passed.
    fn turn_ms(self, now_ms: u64) -> u64 {
        self.turn_us(now_ms).div_ceil(1_000)
    }

    fn turn_us(self, now_ms: u64) -> u64 {
        self.next_us.max((now_ms * 1_000).saturating_sub(BURST_US))
    }

    /// Of so many in a second.
    fn take(&mut self, now_ms: u64, per_s: u32) {
        self.next_us = self.turn_us(now_ms) + 1_000_000 / u64::from(per_s.max(1));
    }
}

impl Node {
    /// When the next turn of a session's control plane is, in milliseconds; `None` where there is no limit.
    pub(crate) fn turn_ms(&self, seid: Seid, now_ms: u64) -> Option<u64> {
        let is_limited = self.config.usage_reports_per_s > 0;
        let session = self.sessions.get(seid).filter(|_| is_limited)?;
        Some(self.peers.get(&session.record.owner)?.pace.turn_ms(now_ms))
    }

    /// A session has taken that turn.
    pub(crate) fn take_turn(&mut self, seid: Seid, now_ms: u64) {
        let per_s = self.config.usage_reports_per_s;
        let owner = self.sessions.get(seid).map(|session| &session.record.owner);
        if let Some(association) = owner.and_then(|owner| self.peers.get_mut(owner)) {
            self.counters.reports_delayed += u64::from(association.pace.turn_ms(now_ms) > now_ms);
            association.pace.take(now_ms, per_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_turns_are_taken_in_a_second_as_there_are() {
        let mut pace = Pace::default();
        let mut turns = vec![];
        for _ in 0..10_000 {
            turns.push(pace.turn_ms(60_000));
            pace.take(60_000, 500);
        }
        assert_eq!(turns.iter().filter(|turn| **turn <= 60_000).count(), 51, "a tenth of a second's");
        for second in 0..19 {
            let range = 60_001 + second * 1_000..61_001 + second * 1_000;
            assert_eq!(turns.iter().filter(|turn| range.contains(*turn)).count(), 500);
        }
    }
}

//! When a worker without packets rests, and for how long. How it does, [`crate::Rests`] says.

use std::time::Duration;

/// Turns without a packet before a worker rests: until then more packets are likely.
const PATIENCE: u32 = 256;
/// A rest is doubled until it is as long as allowed; the first is this long.
const FIRST: Duration = Duration::from_micros(1);

/// What an idle worker is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Looks again at once: lowest latency, and a CPU that never rests.
    #[default]
    Poll,
    /// Rests in a light sleep of the CPU (WAITPKG or its like, through `rte_power_pause`); where there is none, in short
    /// pauses, which leave a sibling thread of the core more of it.
    Pause,
    /// Sleeps, and leaves the CPU to others.
    Sleep,
    /// Rests in a light sleep of the CPU that a packet for one of its queues ends (`rte_power_monitor`); where CPU or
    /// drivers have none, as [`Idle::Pause`].
    Monitor,
    /// Looks again at once, while its CPU's frequency is low because no packet has come for long. Whoever runs the worker
    /// sees to that; what is here only looks on.
    Scale,
}

impl Idle {
    /// Whether there are times in which it does not look.
    pub const fn rests(self) -> bool {
        !matches!(self, Self::Poll | Self::Scale)
    }
}

/// An idle worker's patience. It belongs to the worker's thread.
#[derive(Clone, Debug)]
pub struct Backoff {
    rests: bool,
    longest: Duration,
    turns: u32,
    rest: Duration,
}

impl Backoff {
    /// No rest is longer than `longest`.
    pub fn new(idle: Idle, longest: Duration) -> Self {
        Self { rests: idle.rests(), longest, turns: 0, rest: FIRST.min(longest) }
    }

    /// After each turn: how long to rest now, if there was nothing to do for a while, neither packets nor orders. Each
    /// rest is twice as long as the one before, up to the longest. Behind an order more may wait, so there is no rest
    /// right after one; but only packets make rests short again: an order can wait for one, and where orders are all
    /// there is to do, rests that begin anew with each cost more of the CPU than what was ordered.
    #[inline]
    pub fn turn(&mut self, packets: usize, orders: usize) -> Option<Duration> {
        if !self.rests {
            return None;
        }
        if packets > 0 {
            (self.turns, self.rest) = (0, FIRST.min(self.longest));
            return None;
        }
        if orders > 0 {
            return None;
        }
        self.turns = self.turns.saturating_add(1);
        (self.turns > PATIENCE).then(|| self.next())
    }

    fn next(&mut self) -> Duration {
        let rest = self.rest;
        self.rest = (rest * 2).min(self.longest);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESTING: [Idle; 3] = [Idle::Pause, Idle::Sleep, Idle::Monitor];

    /// How long turns without anything to do are followed by, in microseconds.
    fn rests(backoff: &mut Backoff, turns: u32) -> Vec<u128> {
        (0..turns).filter_map(|_| backoff.turn(0, 0)).map(|rest| rest.as_micros()).collect()
    }

    #[test]
    fn rests_grow_to_the_longest_and_a_packet_ends_them() {
        for idle in RESTING {
            let mut backoff = Backoff::new(idle, Duration::from_micros(50));
            assert_eq!(rests(&mut backoff, PATIENCE), [], "{idle:?} has no patience");
            assert_eq!(rests(&mut backoff, 9), [1, 2, 4, 8, 16, 32, 50, 50, 50], "{idle:?}");
            assert_eq!(backoff.turn(1, 0), None);
            assert_eq!(rests(&mut backoff, PATIENCE + 2), [1, 2], "{idle:?} begins anew");
        }
    }

    #[test]
    fn no_rest_is_longer_than_allowed_not_even_the_first() {
        let mut backoff = Backoff::new(Idle::Monitor, Duration::from_nanos(700));
        let longest = (0..10 * PATIENCE).filter_map(|_| backoff.turn(0, 0)).max();
        assert_eq!(longest, Some(Duration::from_nanos(700)));
    }

    #[test]
    fn nobody_rests_upon_an_order_and_the_next_rest_is_as_long_as_it_was() {
        for idle in RESTING {
            let mut backoff = Backoff::new(idle, Duration::from_millis(20));
            rests(&mut backoff, PATIENCE + 16);
            assert!((0..100).all(|_| backoff.turn(0, 1).is_none()), "{idle:?}");
            assert_eq!(rests(&mut backoff, 1), [20_000], "{idle:?}");
        }
    }

    #[test]
    fn orders_wait_no_longer_where_packets_come() {
        let mut backoff = Backoff::new(Idle::Sleep, Duration::from_secs(9));
        for _ in 0..10 * PATIENCE {
            assert_eq!([backoff.turn(1, 1), backoff.turn(0, 1), backoff.turn(0, 0)], [None; 3]);
        }
    }

    #[test]
    fn who_looks_on_never_rests() {
        for idle in [Idle::Poll, Idle::Scale] {
            let mut backoff = Backoff::new(idle, Duration::from_secs(9));
            assert_eq!(rests(&mut backoff, 10 * PATIENCE), [], "{idle:?}");
        }
    }
}

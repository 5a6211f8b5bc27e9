//! The clock of a worker that is measured: it runs while the worker does, and stands still between rounds.

use crate::product::NOW_NS;
use std::time::Duration;

/// Between two times the neighbours are met: sooner than a worker asks them.
const MEETING_NS: u64 = 10_000_000_000;

/// Time the worker has run.
#[derive(Debug)]
pub(crate) struct Clock {
    ns_per_cycle: f64,
    /// Cycles run in former rounds.
    cycles: u64,
    /// When this round began, by the time stamp counter.
    since: Option<u64>,
    met_ns: u64,
}

impl Clock {
    /// That of a worker that has just met its neighbours.
    pub(crate) fn new(tsc_hz: u64) -> Self {
        Self { ns_per_cycle: 1e9 / tsc_hz as f64, cycles: 0, since: None, met_ns: NOW_NS }
    }

    /// The time; it runs from now on.
    #[inline]
    pub(crate) fn now_ns(&mut self) -> u64 {
        let now = dpdk::tsc();
        let since = *self.since.get_or_insert(now);
        self.at(self.cycles + now.wrapping_sub(since))
    }

    /// It stands still.
    pub(crate) fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.cycles += dpdk::tsc().wrapping_sub(since);
        }
    }

    /// It goes on by so much, as if it had run.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.cycles += (time.as_nanos() as f64 / self.ns_per_cycle) as u64;
    }

    /// Whether the neighbours are to be met again, which is then noted.
    pub(crate) fn is_time_to_meet(&mut self) -> bool {
        let now_ns = self.at(self.cycles);
        let is_time = now_ns - self.met_ns > MEETING_NS;
        if is_time {
            self.met_ns = now_ns;
        }
        is_time
    }

    fn at(&self, cycles: u64) -> u64 {
        NOW_NS + (cycles as f64 * self.ns_per_cycle) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_still_between_rounds() {
        let mut clock = Clock::new(1_000_000_000);
        let first = clock.now_ns();
        clock.pause();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let second = clock.now_ns();
        assert!(first == NOW_NS && second - first < 10_000_000, "{first} {second}");
        clock.pass(Duration::from_millis(40));
        let third = clock.now_ns();
        clock.pause();
        assert!((40_000_000..50_000_000).contains(&(third - second)), "{second} {third}");
        assert!(!clock.is_time_to_meet());
        clock.cycles = 2 * MEETING_NS;
        assert!(clock.is_time_to_meet() && !clock.is_time_to_meet());
    }
}

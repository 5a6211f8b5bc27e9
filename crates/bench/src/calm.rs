//! Latencies of the packets that came back while both threads ran and the generator kept up: what a packet takes where no hypervisor,
//! kernel or other program has a CPU. What was away is judged by the threads' clocks alone, and whether the generator kept up by when it
//! sent, never by how long packets took.

use crate::gaps::{GAP_US, Gaps};
use hdrhistogram::Histogram;

/// Packets that come back within so long count together, or not at all.
const WINDOW_US: u64 = 1_000;
/// What has piled up while a thread was away is gone after so many times as long, at the highest load (0.9).
const RECOVERY: u64 = 10;

/// Of one trial.
pub(crate) struct Calm<'a> {
    threads: [&'a Gaps; 2],
    /// Cycles.
    window: u64,
    /// Cycles that packets may be sent late.
    patience: u64,
    /// The generator was later in the window that is open.
    is_behind: bool,
    /// Of the window that is open.
    start: u64,
    /// All absences that were seen before it, in cycles.
    seen: u64,
    /// What comes back before is not counted.
    from: u64,
    /// What came back in this window, and in the one before if that may count: a thread notes a turn late that it was away.
    open: Vec<u64>,
    closed: Vec<u64>,
    /// What came back in windows that count.
    latency: Histogram<u64>,
}

impl<'a> Calm<'a> {
    /// From `now` on, for `threads` whose absences are taken by nobody meanwhile; cycles come `hz` a second. Latencies go to
    /// `latency`, which is empty.
    pub(crate) fn new(threads: [&'a Gaps; 2], latency: Histogram<u64>, (now, hz): (u64, u64)) -> Self {
        let [window, patience] = [WINDOW_US, GAP_US].map(|us| hz / 1_000_000 * us);
        let seen = away(threads);
        Self {
            threads,
            window,
            patience,
            is_behind: false,
            start: now,
            seen,
            from: now,
            open: Vec::new(),
            closed: Vec::new(),
            latency,
        }
    }

    /// A packet came back.
    #[inline]
    pub(crate) fn record(&mut self, latency: u64) {
        self.open.push(latency);
    }

    /// A packet is sent so late: what comes back soon has waited for that before the worker had it.
    #[inline]
    pub(crate) fn sent_late(&mut self, lateness: u64) {
        self.is_behind |= lateness > self.patience;
    }

    /// Closes the window that is over. Call it where the calling thread has just noted its own absences.
    #[inline]
    pub(crate) fn look(&mut self, now: u64) {
        if now.wrapping_sub(self.start) >= self.window {
            self.close(now);
        }
    }

    fn close(&mut self, now: u64) {
        let gone = away(self.threads) - self.seen;
        let is_spoilt = std::mem::take(&mut self.is_behind) || gone > 0;
        if is_spoilt {
            self.seen += gone;
            self.from = self.from.max(now + self.window.max(RECOVERY * gone));
            self.closed.clear();
        }
        self.count_closed();
        if !is_spoilt && self.start >= self.from {
            std::mem::swap(&mut self.open, &mut self.closed);
        }
        self.open.clear();
        self.start = now;
    }

    fn count_closed(&mut self) {
        for latency in self.closed.drain(..) {
            self.latency.saturating_record(latency);
        }
    }

    /// What came back in windows that count.
    pub(crate) fn end(mut self, now: u64) -> Histogram<u64> {
        self.close(now);
        self.count_closed();
        self.latency
    }
}

fn away(threads: [&Gaps; 2]) -> u64 {
    threads.map(Gaps::away).iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One cycle a microsecond.
    const HZ: u64 = 1_000_000;

    #[test]
    fn what_came_back_while_a_thread_was_away_or_soon_after_does_not_count() {
        let (worker, generator) = (Gaps::default(), Gaps::default());
        let latency = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        let mut calm = Calm::new([&worker, &generator], latency, (0, HZ));
        let mut watch = worker.watch_from(HZ, 0);
        for now in (0..20_000).step_by(100) {
            // Away from 3,000 to 3,500, in the window that is over at 4,000: what piled up is gone at 10,000.
            if !(3_000..3_500).contains(&now) {
                watch.running(now);
            }
            calm.look(now);
            calm.record(now + 1);
        }
        assert_eq!(empty(&calm.end(20_000)), (2..10).collect::<Vec<_>>(), "and the window before");
    }

    #[test]
    fn what_came_back_while_the_generator_was_late_or_soon_after_does_not_count() {
        let (worker, generator) = (Gaps::default(), Gaps::default());
        let latency = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        let mut calm = Calm::new([&worker, &generator], latency, (0, HZ));
        for now in (0..20_000).step_by(100) {
            calm.look(now);
            // As late as it may be, and later from 5,200 to 7,000.
            calm.sent_late(GAP_US + u64::from((5_200..7_000).contains(&now)));
            calm.record(now + 1);
        }
        assert_eq!(empty(&calm.end(20_000)), (4..8).collect::<Vec<_>>(), "and the window before");
    }

    /// Of 20 windows of a millisecond, those of which nothing counts; a latency is when it was.
    fn empty(latency: &Histogram<u64>) -> Vec<u64> {
        let counted = |from: u64| latency.count_between(from + 1, from + 999);
        (0..20).filter(|window| counted(window * 1_000) == 0).collect()
    }
}

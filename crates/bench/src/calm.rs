//! Latencies of the packets that came back while both threads ran: what a packet takes where no hypervisor, kernel or other program
//! has a CPU. What was away is judged by the threads' clocks alone, never by how long packets took.

use crate::gaps::Gaps;
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
        let window = hz / 1_000_000 * WINDOW_US;
        let seen = away(threads);
        Self { threads, window, start: now, seen, from: now, open: Vec::new(), closed: Vec::new(), latency }
    }

    /// A packet came back.
    #[inline]
    pub(crate) fn record(&mut self, latency: u64) {
        self.open.push(latency);
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
        if gone > 0 {
            self.seen += gone;
            self.from = self.from.max(now + RECOVERY * gone);
            self.closed.clear();
        }
        self.count_closed();
        if gone == 0 && self.start >= self.from {
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
        let latency = calm.end(20_000);
        let counted = |from: u64| latency.count_between(from + 1, from + 999);
        let empty: Vec<_> = (0..20).filter(|window| counted(window * 1_000) == 0).collect();
        assert_eq!(empty, (2..10).collect::<Vec<_>>(), "and the window before");
    }
}

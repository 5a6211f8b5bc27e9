//! Times a polling thread was not running: a hypervisor, the kernel or another program had its CPU.

use std::sync::atomic::{AtomicU64, Ordering};

/// A thread that polls without pause and finds so much time gone was not running meanwhile.
pub(crate) const GAP_US: u64 = 100;
/// Hardly any turn of a worker's takes so long by itself, unless its vector is full: something else had its CPU for a while.
pub(crate) const HELD_US: u64 = 20;

/// Of one thread; any other may read them.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    longest: AtomicU64,
    total: AtomicU64,
    held: AtomicU64,
}

/// What was seen of a thread, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) longest: u64,
    pub(crate) total: u64,
    /// In turns that were held up, but for less than an absence.
    pub(crate) held: u64,
}

/// Watches the calling thread.
pub(crate) struct Watch<'a> {
    gaps: &'a Gaps,
    /// From which on a turn was held up, and from which on the thread was away.
    thresholds: [u64; 2],
    last: u64,
}

impl Gaps {
    /// Watches the calling thread from now on; cycles come `hz` a second.
    pub(crate) fn watch(&self, hz: u64) -> Watch<'_> {
        self.watch_from(hz, dpdk::tsc())
    }

    /// The same, from `now` on.
    pub(crate) const fn watch_from(&self, hz: u64, now: u64) -> Watch<'_> {
        let per_us = hz / 1_000_000;
        Watch { gaps: self, thresholds: [per_us * HELD_US, per_us * GAP_US], last: now }
    }

    /// Cycles of all absences since they were taken.
    pub(crate) fn away(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// What was seen since the last time it was taken.
    pub(crate) fn take(&self) -> Seen {
        Seen {
            longest: self.longest.swap(0, Ordering::Relaxed),
            total: self.total.swap(0, Ordering::Relaxed),
            held: self.held.swap(0, Ordering::Relaxed),
        }
    }
}

impl Watch<'_> {
    /// The thread runs at `now`. Call it every few microseconds.
    #[inline]
    pub(crate) fn running(&mut self, now: u64) {
        let gap = now.wrapping_sub(self.last);
        self.last = now;
        if gap > self.thresholds[0] {
            self.note(gap);
        }
    }

    #[cold]
    fn note(&self, gap: u64) {
        if gap <= self.thresholds[1] {
            self.gaps.held.fetch_add(gap, Ordering::Relaxed);
            return;
        }
        self.gaps.longest.fetch_max(gap, Ordering::Relaxed);
        self.gaps.total.fetch_add(gap, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_absences_are_gaps() {
        let gaps = Gaps::default();
        let mut watch = Watch { gaps: &gaps, thresholds: [60, 100], last: 0 };
        [50, 150, 251, 311, 372, 972].into_iter().for_each(|now| watch.running(now));
        assert_eq!(gaps.take(), Seen { longest: 600, total: 701, held: 161 });
        assert_eq!(gaps.take(), Seen::default());
    }
}

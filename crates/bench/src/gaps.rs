//! Times a polling thread was not running: a hypervisor, the kernel or another program had its CPU.

use std::sync::atomic::{AtomicU64, Ordering};

/// A thread that polls without pause and finds so much time gone was not running meanwhile. A worker's longest turn
/// takes a fifth of it.
pub(crate) const GAP_US: u64 = 100;

/// Of one thread; any other may read them.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    longest: AtomicU64,
    total: AtomicU64,
}

/// What was seen of a thread, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) longest: u64,
    pub(crate) total: u64,
}

/// Watches the calling thread.
pub(crate) struct Watch<'a> {
    gaps: &'a Gaps,
    threshold: u64,
    last: u64,
}

impl Gaps {
    /// Watches the calling thread from now on; cycles come `hz` a second.
    pub(crate) fn watch(&self, hz: u64) -> Watch<'_> {
        self.watch_from(hz, dpdk::tsc())
    }

    /// The same, from `now` on.
    pub(crate) const fn watch_from(&self, hz: u64, now: u64) -> Watch<'_> {
        Watch { gaps: self, threshold: hz / 1_000_000 * GAP_US, last: now }
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
        }
    }
}

impl Watch<'_> {
    /// The thread runs at `now`. Call it every few microseconds.
    #[inline]
    pub(crate) fn running(&mut self, now: u64) {
        let gap = now.wrapping_sub(self.last);
        self.last = now;
        if gap > self.threshold {
            self.note(gap);
        }
    }

    #[cold]
    fn note(&self, gap: u64) {
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
        let mut watch = Watch { gaps: &gaps, threshold: 100, last: 0 };
        [50, 150, 251, 300, 900].into_iter().for_each(|now| watch.running(now));
        assert_eq!(gaps.take(), Seen { longest: 600, total: 701 });
        assert_eq!(gaps.take(), Seen::default());
    }
}

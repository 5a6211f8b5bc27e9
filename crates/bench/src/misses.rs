//! Misses of the last-level cache, where the CPU's counters can be had. Virtual machines mostly have none.

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

/// What a reader must know, where nothing can be counted.
pub(crate) const UNKNOWN: &str =
    "cache misses are not known: this machine has no performance counters, or does not let us read them";

/// A counter of this thread, or none.
pub(crate) struct Misses {
    counter: Option<Counter>,
}

impl Misses {
    /// Stopped, at zero.
    pub(crate) fn new() -> Self {
        Self { counter: Builder::new(Hardware::CACHE_MISSES).build().ok() }
    }

    /// Counts from here on.
    pub(crate) fn resume(&mut self) {
        self.counter.iter_mut().for_each(|counter| _ = counter.enable());
    }

    /// Stops counting.
    pub(crate) fn pause(&mut self) {
        self.counter.iter_mut().for_each(|counter| _ = counter.disable());
    }

    /// For each of so many packets; `None` where nothing can be counted.
    pub(crate) fn per(&mut self, packets: usize) -> Option<f64> {
        let count = self.counter.as_mut()?.read().ok()?;
        Some(crate::spread::rounded(count as f64 / packets.max(1) as f64))
    }
}

//! What the figures were measured on.

use serde::Serialize;

/// One machine and one build.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    /// Of the time stamp counter, in which cycles are counted.
    pub(crate) clock_mhz: u64,
    pub(crate) dpdk: &'static str,
    pub(crate) build: &'static str,
}

pub(crate) fn describe(hz: u64) -> Machine {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Machine {
        cpu: model.map_or("unknown", |(_, name)| name).to_owned(),
        clock_mhz: hz / 1_000_000,
        dpdk: dpdk::VERSION,
        build: if cfg!(debug_assertions) { "debug" } else { "release" },
    }
}

//! What the figures were measured on.

use anyhow::Context;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

/// One machine and one build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Its model.
    pub(crate) cpu: String,
    /// Of the time stamp counter, in which cycles are counted.
    pub(crate) clock_mhz: u64,
    /// CPUs this process may use.
    pub(crate) cores: usize,
    /// Whether another operating system lies below, which may take the CPU away at any time.
    pub(crate) virtualized: bool,
    /// Whether it translates huge pages as small ones, as where that system has its memory in such; `None` if nobody knows.
    #[serde(default)]
    pub(crate) in_small_pages: Option<bool>,
    /// DPDK's release.
    pub(crate) dpdk: String,
    /// "release", "guided release" (`make release`) or "debug".
    pub(crate) build: String,
}

/// Measured once, in no time that is counted.
static IN_SMALL_PAGES: LazyLock<Option<bool>> =
    LazyLock::new(|| host::Translation::measure().map(|translation| translation.is_in_small_pages()));

/// This machine; its time stamp counter runs at `hz`.
pub(crate) fn describe(hz: u64) -> Machine {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.split_once(": "));
    let flags = field("flags").map_or("", |(_, flags)| flags);
    Machine {
        cpu: field("model name").map_or("unknown", |(_, name)| name).to_owned(),
        clock_mhz: hz / 1_000_000,
        cores: cpus().len(),
        virtualized: flags.split(' ').any(|flag| flag == "hypervisor"),
        in_small_pages: *IN_SMALL_PAGES,
        dpdk: dpdk::VERSION.to_owned(),
        build: build().to_owned(),
    }
}

const fn build() -> &'static str {
    match (cfg!(debug_assertions), option_env!("ANCHORLINE_GUIDED")) {
        (true, _) => "debug",
        (false, Some(_)) => "guided release",
        (false, None) => "release",
    }
}

/// CPUs this thread may use.
pub(crate) fn cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return vec![0] };
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

/// Keeps the calling thread on one CPU.
///
/// # Errors
/// Where the kernel refuses.
pub(crate) fn pin(cpu: usize) -> anyhow::Result<()> {
    pin_to(&[cpu])
}

/// Keeps the calling thread, and those it starts, on some CPUs.
///
/// # Errors
/// Where the kernel refuses.
pub(crate) fn pin_to(cpus: &[usize]) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().try_for_each(|cpu| set.set(*cpu))?;
    sched_setaffinity(Pid::from_raw(0), &set).with_context(|| format!("CPUs {cpus:?} cannot be used"))
}

/// Keeps all threads of another process on one CPU.
///
/// # Errors
/// Where the kernel refuses, or there is no such process.
pub(crate) fn pin_process(pid: u32, cpu: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?.file_name().to_string_lossy().parse()?;
        sched_setaffinity(Pid::from_raw(thread), &set)
            .with_context(|| format!("CPU {cpu} cannot be used"))?;
    }
    Ok(())
}

/// Bytes of memory that programs can still get, as the kernel estimates.
///
/// # Errors
/// Where the kernel does not say.
pub(crate) fn available_bytes() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: u64 =
        line.and_then(|line| line.split_whitespace().next()).context("no MemAvailable")?.parse()?;
    Ok(kib << 10)
}

/// The kernel's word on a process' memory, in bytes; "self" is this process.
///
/// # Errors
/// There is no such process.
pub(crate) fn resident_bytes(process: &str) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm"))?;
    let pages: u64 = text.split(' ').nth(1).context("no resident size")?.parse()?;
    Ok(pages * 4_096)
}

/// How long all threads of a process have had a CPU, in nanoseconds.
///
/// # Errors
/// There is no such process.
pub(crate) fn process_cpu_ns(process: u32) -> anyhow::Result<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"))?;
    // A thread may end meanwhile.
    Ok(tasks.filter_map(|task| cpu_ns_of(&task.ok()?.path())).sum())
}

/// How long a thread of this process has had a CPU, in nanoseconds.
///
/// # Errors
/// There is no such thread.
pub(crate) fn thread_cpu_ns(thread: Pid) -> anyhow::Result<u64> {
    cpu_ns_of(Path::new(&format!("/proc/self/task/{thread}"))).context("a thread's CPU time cannot be read")
}

fn cpu_ns_of(task: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

/// How long the calling thread has had a CPU: time in which the kernel gave it to others is not in it.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

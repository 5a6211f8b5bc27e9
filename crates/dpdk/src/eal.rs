//! DPDK's environment (EAL): memory, started once per process.

use crate::error::Error;
use crate::hugepages::{self, Leave};
use crate::numa::Preference;
use crate::threads::WorkerThread;
use crate::{control, cpus, log, quiet, sys};
use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::sync::OnceLock;

/// Whether packet memory comes from huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HugePages {
    /// Free ones, else new ones where we may make them, else ordinary memory.
    #[default]
    Auto,
    /// Free ones or new ones, else an error.
    Require,
    /// Ordinary memory.
    Never,
}

/// How DPDK starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EalConfig {
    /// All the memory DPDK gets, in MB: pools, queues and its own tables. It does not grow.
    pub memory_mb: u32,
    /// Whether from huge pages.
    pub huge_pages: HugePages,
    /// CPUs for DPDK's own helper threads (interrupts, alarms); empty: those of the caller. Workers are not
    /// bound by it: a worker is a thread of the caller, see [`Eal::register_thread`].
    pub cpus: Vec<usize>,
    /// PCI devices that ports may use ("0000:3b:00.0"), with the options for their drivers; empty: PCI is left alone.
    pub pci: Vec<String>,
    /// NUMA nodes that the memory is to be on, each with its part in MB; empty: DPDK's choice. It is heeded where enough huge
    /// pages are free on each; of ordinary pages it says which node DPDK's own tables prefer.
    pub nodes: Vec<(u32, u32)>,
    /// Virtual devices made at the start, as EAL's `--vdev` takes them.
    pub vdevs: Vec<String>,
}

impl Default for EalConfig {
    fn default() -> Self {
        Self {
            memory_mb: 256,
            huge_pages: HugePages::Auto,
            cpus: Vec::new(),
            pci: Vec::new(),
            nodes: Vec::new(),
            vdevs: Vec::new(),
        }
    }
}

/// What packet memory is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Huge pages.
    HugePages {
        /// Memory, in MB.
        memory_mb: u32,
        /// 2 MiB pages made for this process; 0 where enough were free. They are free again when the process
        /// ends, in whatever way.
        reserved_pages: u64,
    },
    /// Ordinary pages, slower where packets come from a cold cache.
    Ordinary {
        /// Memory, in MB.
        memory_mb: u32,
    },
}

/// DPDK, running. There is one in a process, shared by all its threads.
#[derive(Debug)]
pub struct Eal {
    memory: Memory,
    tsc_hz: u64,
    pci: Vec<String>,
    has_nodes: bool,
}

static EAL: OnceLock<Eal> = OnceLock::new();

impl Eal {
    /// Starts DPDK, or returns the one that runs already, whatever its configuration. The calling thread keeps
    /// its CPU affinity and does not become a worker.
    ///
    /// # Errors
    /// [`Error::NoHugePages`] where they are required, [`Error::Start`] when DPDK refuses,
    /// [`Error::Closed`] after [`Eal::cleanup`].
    pub fn init(config: &EalConfig) -> Result<&'static Self, Error> {
        let mut control = control::lock();
        if let Some(eal) = EAL.get() {
            drop(control);
            return control::lock_running().map(|_| eal);
        }
        let eal = start(config)?;
        control.started();
        Ok(EAL.get_or_init(|| eal))
    }

    /// What packet memory is made of.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Whether DPDK has huge pages on the nodes it was to ([`EalConfig::nodes`]), as much as on each.
    pub fn has_nodes(&self) -> bool {
        self.has_nodes
    }

    /// Cycles of [`tsc`](crate::tsc) per second.
    pub fn tsc_hz(&self) -> u64 {
        self.tsc_hz
    }

    /// Makes the calling thread a worker until the guard is dropped: it gets a cache of its own in every pool.
    /// Any thread may receive, send and free packets without; it only costs more.
    ///
    /// # Errors
    /// [`Error::Thread`] when the thread is a worker already or all 127 places are taken, [`Error::Closed`].
    pub fn register_thread(&self) -> Result<WorkerThread, Error> {
        WorkerThread::register()
    }

    /// Shuts DPDK down; it does not start again in this process. Huge pages are the kernel's again when the process
    /// ends, with or without this.
    ///
    /// # Errors
    /// [`Error::InUse`], and no change, while there are ports, pools, packets or workers; [`Error::Closed`].
    pub fn cleanup(&self) -> Result<(), Error> {
        let mut control = control::lock_running()?;
        control.stop()?;
        // SAFETY: the EAL runs and, as `stop` made sure under the lock, nothing made from it exists; from now on
        // every call is refused.
        let (status, log) = log::capture(|| unsafe { sys::rte_eal_cleanup() });
        if status == 0 { Ok(()) } else { Err(Error::Start { reason: log::reason(&log, status) }) }
    }

    /// Whether a PCI device may be used.
    pub(crate) fn allows_pci(&self, address: &str) -> bool {
        self.pci.iter().any(|allowed| allowed.split(',').next() == Some(address))
    }
}

fn start(config: &EalConfig) -> Result<Eal, Error> {
    let huge = config.huge_pages != HugePages::Never;
    let _lock = huge.then(hugepages::lock);
    let leave = choose_memory(config)?;
    let cpus = if config.cpus.is_empty() { cpus::allowed() } else { config.cpus.clone() };
    let has_nodes = leave.is_some() && hugepages::are_free(Path::new(hugepages::NODES), &config.nodes);
    let nodes = if has_nodes { config.nodes.as_slice() } else { &[] };
    let arguments = arguments(config, &cpus, (leave.is_some(), nodes));
    let result = run_init(arguments, cpus, config.nodes.first().map(|(node, _)| *node));
    let memory = memory(config.memory_mb, leave);
    result?;
    quiet::silence();
    // SAFETY: reads a number the EAL, which runs, has measured.
    let tsc_hz = unsafe { sys::rte_get_tsc_hz() };
    Ok(Eal { memory, tsc_hz, pci: config.pci.clone(), has_nodes })
}

/// What was chosen, once it is mapped.
fn memory(memory_mb: u32, leave: Option<Option<Leave>>) -> Memory {
    let Some(leave) = leave else { return Memory::Ordinary { memory_mb } };
    let reserved_pages = leave.as_ref().map_or(0, Leave::pages);
    leave.into_iter().for_each(Leave::give_up);
    Memory::HugePages { memory_mb, reserved_pages }
}

/// `None` for ordinary memory; else huge pages, with leave to take them unless enough are free.
fn choose_memory(config: &EalConfig) -> Result<Option<Option<Leave>>, Error> {
    let sysfs = Path::new(hugepages::SYSFS);
    let wanted = u64::from(config.memory_mb) << 20;
    if config.huge_pages == HugePages::Never {
        return Ok(None);
    }
    let free = hugepages::free_bytes(sysfs);
    if free >= wanted {
        return Ok(Some(None));
    }
    match (hugepages::ask(sysfs, wanted), config.huge_pages) {
        (Some(leave), _) => Ok(Some(Some(leave))),
        (None, HugePages::Require) => {
            Err(Error::NoHugePages { wanted_mb: wanted >> 20, free_mb: free >> 20 })
        }
        (None, _) => Ok(None),
    }
}

fn arguments(config: &EalConfig, cpus: &[usize], (huge, nodes): (bool, &[(u32, u32)])) -> Vec<String> {
    let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let mut arguments = vec!["anchorline".to_owned(), format!("--lcores=0@({})", list.join(","))];
    arguments.push("--no-telemetry".to_owned());
    match nodes {
        [] => arguments.extend(["-m".to_owned(), config.memory_mb.to_string()]),
        nodes => arguments.push(format!("--socket-mem={}", by_node(nodes))),
    }
    if huge {
        // One file for all: virtio-user shares the memory with its other end file by file, 8 at most.
        arguments.extend(["--in-memory".to_owned(), "--single-file-segments".to_owned()]);
    } else {
        arguments.extend(["--no-huge".to_owned(), "--no-shconf".to_owned()]);
    }
    if config.pci.is_empty() {
        arguments.extend(["--no-pci".to_owned(), "--iova-mode=va".to_owned()]);
    }
    arguments.extend(config.pci.iter().flat_map(|address| ["-a".to_owned(), address.clone()]));
    arguments.extend(config.vdevs.iter().map(|vdev| format!("--vdev={vdev}")));
    arguments
}

/// MB of each node from 0 on, as EAL's `--socket-mem` takes them.
fn by_node(nodes: &[(u32, u32)]) -> String {
    let last = nodes.iter().map(|(node, _)| *node).max().unwrap_or(0);
    let part =
        |node| nodes.iter().filter(|(of, _)| *of == node).map(|(_, part)| part).sum::<u32>().to_string();
    (0..=last).map(part).collect::<Vec<_>>().join(",")
}

/// Starts the EAL from a thread that ends with it: the thread it starts from is renamed, bound to CPUs and made
/// a worker, which must not happen to the caller's.
fn run_init(arguments: Vec<String>, cpus: Vec<usize>, node: Option<u32>) -> Result<(), Error> {
    let refused = |reason: String| Error::Start { reason };
    let arguments: Result<Vec<CString>, _> = arguments.into_iter().map(CString::new).collect();
    let arguments = arguments.map_err(|error| refused(error.to_string()))?;
    let thread = std::thread::Builder::new().name("eal-init".to_owned()).spawn(move || {
        cpus::bind(&cpus);
        let _preference = node.and_then(Preference::of);
        log::take_over();
        log::capture(|| rte_eal_init(&arguments))
    });
    let thread = thread.map_err(|error| refused(error.to_string()))?;
    let (error, log) = thread.join().map_err(|_| refused("its thread died".to_owned()))?;
    error.map_or(Ok(()), |error| Err(refused(log::reason(&log, error))))
}

/// The error number, if it fails.
fn rte_eal_init(arguments: &[CString]) -> Option<i32> {
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|text| text.as_ptr().cast_mut()).collect();
    let count = c_int::try_from(pointers.len()).unwrap_or(0);
    pointers.push(std::ptr::null_mut());
    // SAFETY: `pointers` is an argument vector as of main(): `count` texts and a null. EAL reorders the
    // pointers and keeps copies of the texts.
    let status = unsafe { sys::rte_eal_init(count, pointers.as_mut_ptr()) };
    (status < 0).then(log::errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_with_options_may_be_used_by_its_address() {
        let pci = vec!["0000:3b:00.0,safe-mode-support=1".to_owned(), "0000:3b:00.1".to_owned()];
        let eal = Eal { memory: Memory::Ordinary { memory_mb: 1 }, tsc_hz: 1, pci, has_nodes: false };
        for (address, is_allowed) in [("0000:3b:00.0", true), ("0000:3b:00.1", true), ("0000:3b:00.2", false)]
        {
            assert_eq!(eal.allows_pci(address), is_allowed, "{address}");
        }
    }

    #[test]
    fn memory_is_asked_for_by_node_where_it_is_there() {
        let config = EalConfig { memory_mb: 96, ..EalConfig::default() };
        let told = |huge, nodes: &[(u32, u32)]| arguments(&config, &[0], (huge, nodes)).join(" ");
        assert!(told(true, &[]).contains(" -m 96 "), "{}", told(true, &[]));
        let by_node = told(true, &[(2, 64), (0, 32)]);
        assert!(by_node.contains(" --socket-mem=32,0,64 ") && !by_node.contains(" -m "), "{by_node}");
        // DPDK takes no nodes for ordinary pages.
        assert!(told(false, &[]).contains(" -m 96 --no-huge"), "{}", told(false, &[]));
    }
}

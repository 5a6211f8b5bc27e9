//! The processor and how its threads lie.

use crate::{CpuSet, Root};
use serde::Serialize;
use std::collections::BTreeSet;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// The processor, of `/proc/cpuinfo`'s first entry.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cpu {
    /// As `GenuineIntel`.
    pub vendor: Option<String>,
    /// As its maker calls it.
    pub model: Option<String>,
    /// What it can do, in the kernel's words (`sse4_2`).
    pub flags: BTreeSet<String>,
}

impl Cpu {
    pub(super) fn read(root: &Root) -> Self {
        let text = root.text("/proc/cpuinfo").unwrap_or_default();
        let first = text.split("\n\n").next().unwrap_or_default();
        let field = |name: &str| {
            let line =
                first.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        let flags = field("flags").unwrap_or_default();
        Self {
            vendor: field("vendor_id"),
            model: field("model name"),
            flags: flags.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// Whether it can do something.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    /// Why there is nothing that only Intel's processors have.
    pub fn not_intel(&self) -> &'static str {
        match self.vendor {
            Some(_) => "the processor is not Intel's",
            None => "/proc/cpuinfo does not say who made the processor",
        }
    }

    /// Whether Intel made it.
    pub fn is_intel(&self) -> bool {
        self.vendor.as_deref() == Some("GenuineIntel")
    }
}

/// Where a CPU (a hardware thread) is.
#[derive(Clone, Debug, Serialize)]
pub struct CpuPlace {
    /// Its number.
    pub cpu: usize,
    /// Its socket.
    pub package: Option<usize>,
    /// Its core within the socket.
    pub core: Option<usize>,
    /// All threads of its core, itself among them.
    pub siblings: CpuSet,
}

/// A NUMA node.
#[derive(Clone, Debug, Serialize)]
pub struct NumaNode {
    /// Its number.
    pub node: usize,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// To each node in order; 10 is itself.
    pub distances: Vec<u32>,
}

/// How CPUs lie.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Topology {
    /// All that are online.
    pub cpus: Vec<CpuPlace>,
    /// NUMA nodes.
    pub nodes: Vec<NumaNode>,
    /// CPUs the scheduler leaves alone (`isolcpus`, cpuset partitions).
    pub isolated: CpuSet,
    /// CPUs without a periodic tick (`nohz_full`).
    pub tickless: CpuSet,
    /// As `on`, `off`, `notsupported`, `forceoff`.
    pub smt: Option<String>,
    /// Caches of the first CPU: `L1 Data 48K`.
    pub caches: Vec<String>,
}

impl Topology {
    pub(super) fn read(root: &Root) -> Self {
        let set = |path: &str| root.value::<CpuSet>(path).unwrap_or_default();
        let online = set(&format!("{CPUS}/online"));
        Self {
            cpus: online.iter().map(|cpu| place(root, cpu)).collect(),
            nodes: nodes(root),
            isolated: set(&format!("{CPUS}/isolated")),
            tickless: set(&format!("{CPUS}/nohz_full")),
            smt: root.text(&format!("{CPUS}/smt/control")),
            caches: caches(root),
        }
    }

    /// All that are online.
    pub fn online(&self) -> CpuSet {
        self.cpus.iter().map(|place| place.cpu).collect()
    }

    /// Where a CPU is; `None` if it is not online.
    pub fn place(&self, cpu: usize) -> Option<&CpuPlace> {
        self.cpus.iter().find(|place| place.cpu == cpu)
    }

    /// The NUMA node of a CPU.
    pub fn node_of(&self, cpu: usize) -> Option<usize> {
        self.nodes.iter().find(|node| node.cpus.has(cpu)).map(|node| node.node)
    }

    /// All that are online but workers' and, if any are left then, the other threads of their cores.
    pub fn beside(&self, workers: &CpuSet) -> CpuSet {
        let places = workers.iter().filter_map(|cpu| self.place(cpu));
        let of_cores: CpuSet = places.flat_map(|place| place.siblings.iter()).collect();
        let others = self.online().without(workers);
        let apart = others.without(&of_cores);
        if apart.is_empty() { others } else { apart }
    }

    /// Sockets.
    pub fn packages(&self) -> usize {
        self.cpus.iter().filter_map(|place| place.package).collect::<BTreeSet<_>>().len()
    }

    /// Cores, each counted once however many threads it has.
    pub fn cores(&self) -> usize {
        let first = |place: &&CpuPlace| place.siblings.iter().next().is_none_or(|first| first == place.cpu);
        self.cpus.iter().filter(first).count()
    }
}

fn place(root: &Root, cpu: usize) -> CpuPlace {
    let folder = format!("{CPUS}/cpu{cpu}/topology");
    let siblings = root.value(&format!("{folder}/thread_siblings_list"));
    CpuPlace {
        cpu,
        package: root.value(&format!("{folder}/physical_package_id")),
        core: root.value(&format!("{folder}/core_id")),
        siblings: siblings.unwrap_or_else(|| [cpu].into_iter().collect()),
    }
}

fn nodes(root: &Root) -> Vec<NumaNode> {
    let names = root.list(NODES);
    let mut nodes: Vec<NumaNode> = names
        .iter()
        .filter_map(|name| {
            let node = name.strip_prefix("node")?.parse().ok()?;
            let distances = root.text(&format!("{NODES}/{name}/distance")).unwrap_or_default();
            Some(NumaNode {
                node,
                cpus: root.value(&format!("{NODES}/{name}/cpulist")).unwrap_or_default(),
                distances: distances.split_whitespace().filter_map(|part| part.parse().ok()).collect(),
            })
        })
        .collect();
    nodes.sort_by_key(|node| node.node);
    nodes
}

fn caches(root: &Root) -> Vec<String> {
    let folder = format!("{CPUS}/cpu0/cache");
    let indices = root.list(&folder);
    let cache = |index: &String| {
        let part = |name: &str| root.text(&format!("{folder}/{index}/{name}"));
        Some(format!("L{} {} {}", part("level")?, part("type")?, part("size")?))
    };
    indices.iter().filter(|name| name.starts_with("index")).filter_map(cache).collect()
}

//! Which CPUs workers are best given on a host, and why.
//!
//! The policy: the NUMA node that the ports are on; one worker a physical core, unless told otherwise; the first CPU's core, with
//! all its threads, for the kernel, interrupts, the control plane and the data plane's main thread; and of cores that are
//! left, those that were isolated first.

use crate::placement::nic;
use crate::{CpuSet, Facts, Nic, Node};
use serde::Serialize;
use std::collections::BTreeMap;

/// A node has no more (`[dpe] workers`).
const WORKERS_MAX: usize = 32;

/// What is asked for besides the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Workers; as many as the configuration has or, where that says neither how many nor where, as there are cores.
    pub workers: Option<usize>,
    /// Whether all threads of a core get workers.
    pub threads: bool,
}

/// A proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// By worker.
    pub cpus: Vec<usize>,
    /// Those of all that is no worker: no worker's, nor of a worker's core.
    pub housekeeping: CpuSet,
    /// Threads of workers' cores without a worker: nothing should run there.
    pub idle: CpuSet,
    /// The NUMA node it is for; `None` where there is one, or none is shown.
    pub numa_node: Option<usize>,
    /// What speaks for it, and what it does not reach, a sentence each.
    pub why: Vec<String>,
}

/// Cores that workers may have, each with its threads: a worker's first.
type Cores = Vec<Vec<usize>>;

impl Layout {
    /// Proposes one; without a node's configuration, for the cards that DPDK drives, or else all.
    ///
    /// # Errors
    /// Why there is none; this goes on after "because".
    pub fn propose(facts: &Facts, node: Option<&Node>, asked: Asked) -> Result<Self, String> {
        let first = facts.topology.cpus.first().ok_or("/sys/devices/system/cpu/online cannot be read")?;
        let kept = first.siblings.common(&facts.topology.online());
        let home = Home::of(facts, node);
        let cores = cores(facts, home.numa_node, &kept);
        if cores.is_empty() {
            return Err(match home.numa_node {
                Some(number) => format!("node {number} has no core besides that of CPU {}", first.cpu),
                None => format!("all CPUs are of one core, and the kernel needs CPU {}", first.cpu),
            });
        }
        let wanted = asked.workers.or_else(|| node.and_then(told));
        let (cpus, room) = taken(facts, &cores, wanted, asked.threads);
        let mut layout = Self::of(facts, cpus, home.numa_node);
        layout.why.extend(home.why);
        layout.why.push(format!(
            "{} for the kernel, interrupts, the control plane and the data plane's main thread",
            named(&kept, ", as one core,"),
        ));
        layout.why.extend(
            wanted
                .filter(|wanted| *wanted > room)
                .map(|wanted| format!("{wanted} workers are asked for, and there is room for {room}")),
        );
        layout.explain(facts);
        Ok(layout)
    }

    fn of(facts: &Facts, cpus: Vec<usize>, numa_node: Option<usize>) -> Self {
        let topology = &facts.topology;
        let workers: CpuSet = cpus.iter().copied().collect();
        let places = cpus.iter().filter_map(|cpu| topology.place(*cpu));
        let of_cores: CpuSet = places.flat_map(|place| place.siblings.iter()).collect();
        let online = topology.online();
        let idle = of_cores.without(&workers).common(&online);
        let housekeeping = online.without(&workers).without(&idle);
        Self { cpus, housekeeping, idle, numa_node, why: Vec::new() }
    }

    fn explain(&mut self, facts: &Facts) {
        let workers: CpuSet = self.cpus.iter().copied().collect();
        self.why.push(match (self.idle.is_empty(), facts.hides_siblings()) {
            (_, true) => "a virtual machine is not told which of its CPUs share a core".to_owned(),
            (true, _) => "every thread of the workers' cores has a worker".to_owned(),
            (false, _) => {
                format!("each worker has a core; {} to have nothing to do beside them", named(&self.idle, ""))
            }
        });
        let apart: CpuSet = workers.iter().chain(self.idle.iter()).collect();
        let open = apart.without(&facts.topology.isolated);
        self.why.push(match open.is_empty() {
            true => format!("{} isolated", named(&apart, "")),
            false => format!(
                "{} not isolated yet: anchorline tune --workers {workers} writes the kernel's command line out",
 named(&open, "")
            ),
        });
    }

    /// The lines of a configuration, with the reasons before them.
    pub fn toml(&self) -> String {
        let why: String = self.why.iter().map(|why| format!("# {why}\n")).collect();
        let cpus: Vec<String> = self.cpus.iter().map(ToString::to_string).collect();
        format!("{why}[dpe]\nworkers = {}\ncpus = [{}]\n", self.cpus.len(), cpus.join(", "))
    }

    /// What of workers' CPUs that were chosen is not as it would be proposed; `None`: nothing.
    pub fn differs(&self, facts: &Facts, chosen: &[usize]) -> Option<String> {
        let topology = &facts.topology;
        let kept = topology.cpus.first().map(|place| place.siblings.clone()).unwrap_or_default();
        let on_kept = chosen.iter().find(|cpu| kept.has(**cpu));
        let far =
            chosen.iter().find(|cpu| self.numa_node.is_some() && topology.node_of(**cpu) != self.numa_node);
        let shares = |cpu: &&usize| {
            let siblings = topology.place(**cpu).map(|place| place.siblings.clone()).unwrap_or_default();
            chosen.iter().any(|other| other != *cpu && siblings.has(*other))
        };
        let twin = chosen.iter().find(shares).filter(|_| self.cpus.len() >= chosen.len());
        let node = self.numa_node.unwrap_or_default();
        on_kept
            .map(|cpu| format!("the worker on CPU {cpu} is on the core that the kernel does its own work on"))
            .or_else(|| {
                far.map(|cpu| format!("the worker on CPU {cpu} is not on node {node}, as the ports are"))
            })
            .or_else(|| {
                twin.map(|cpu| format!("the worker on CPU {cpu} shares its core, and there are free ones"))
            })
    }
}

/// `CPU 1 is`; of several, with what is said of them together.
fn named(cpus: &CpuSet, together: &str) -> String {
    match cpus.len() {
        1 => format!("CPU {cpus} is"),
        _ => format!("CPUs {cpus} are{together}"),
    }
}

/// How many a configuration says there are. Of one worker without a CPU it may have said nothing.
fn told(node: &Node) -> Option<usize> {
    let count = node.worker_count.max(node.workers.len());
    (count > 1 || !node.workers.is_empty()).then_some(count)
}

/// The workers' CPUs, and how many could be had.
fn taken(facts: &Facts, cores: &Cores, wanted: Option<usize>, threads: bool) -> (Vec<usize>, usize) {
    let isolated = &facts.topology.isolated;
    let is_apart = |core: &&Vec<usize>| core.first().is_some_and(|cpu| isolated.has(*cpu));
    let apart = cores.iter().filter(is_apart).count();
    // Who isolated some has said how many workers' cores there are to be.
    let usual = if apart > 0 { apart } else { cores.len() };
    let most = if threads { cores.iter().map(Vec::len).max().unwrap_or(1) } else { 1 };
    let of_thread = |thread: usize, cores: usize, all: &Cores| -> Vec<usize> {
        all.iter().take(cores).filter_map(|core| core.get(thread).copied()).collect()
    };
    let count = if wanted.is_some() { cores.len() } else { usual };
    let all: Vec<usize> = (0..most).flat_map(|thread| of_thread(thread, count, cores)).collect();
    let room = all.len().min(WORKERS_MAX);
    let cpus = all.into_iter().take(wanted.unwrap_or(room).clamp(1, room)).collect();
    (cpus, room)
}

/// Cores of a NUMA node but the kernel's: those with an isolated thread first, and of each core that thread.
fn cores(facts: &Facts, numa_node: Option<usize>, kept: &CpuSet) -> Cores {
    let topology = &facts.topology;
    let is_here = |cpu: usize| numa_node.is_none() || topology.node_of(cpu) == numa_node;
    let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for place in topology.cpus.iter().filter(|place| is_here(place.cpu) && !kept.has(place.cpu)) {
        let first = place.siblings.iter().next().unwrap_or(place.cpu);
        cores.entry(first).or_default().push(place.cpu);
    }
    let is_open = |cpu: &usize| !topology.isolated.has(*cpu);
    let mut cores: Cores = cores.into_values().collect();
    cores.iter_mut().for_each(|core| core.sort_by_key(|cpu| (is_open(cpu), *cpu)));
    cores.sort_by_key(|core| (core.first().is_some_and(is_open), core.first().copied()));
    cores
}

/// The NUMA node that workers belong on.
struct Home {
    numa_node: Option<usize>,
    why: Vec<String>,
}

impl Home {
    fn of(facts: &Facts, node: Option<&Node>) -> Self {
        if facts.topology.nodes.len() < 2 {
            return Self { numa_node: None, why: Vec::new() };
        }
        let devices = devices(facts, node);
        let count = |number: usize| devices.iter().filter(|(_, other)| *other == number).count();
        // Of several with as many, the first: of equals, `max_by_key` takes the last.
        let numbers = facts.topology.nodes.iter().rev().map(|node| node.node);
        let Some(home) = numbers.max_by_key(|number| count(*number)).filter(|home| count(*home) > 0) else {
            let home = facts.topology.nodes.first().map(|node| node.node);
            let why = "no port's device says its NUMA node: workers on one node at least share its memory";
            return Self { numa_node: home, why: vec![why.to_owned()] };
        };
        let names = |is_wanted: &dyn Fn(usize) -> bool| -> Vec<String> {
            devices.iter().filter(|(_, number)| is_wanted(*number)).map(|(name, _)| name.clone()).collect()
        };
        let (here, away) = (names(&|number| number == home), names(&|number| number != home));
        let mut why = vec![format!("node {home} is that of {}", here.join(", "))];
        if !away.is_empty() {
            why.push(format!(
                "{} is on another node: its packets cross, unless one node of the product runs on each",
                away.join(", ")
            ));
        }
        Self { numa_node: Some(home), why }
    }
}

/// Ports, or cards, each with its NUMA node.
fn devices(facts: &Facts, node: Option<&Node>) -> Vec<(String, usize)> {
    let of_card = |nic: &Nic| Some((nic.address.clone(), nic.numa_node?));
    let Some(node) = node else {
        let ours: Vec<_> = facts.nics.iter().filter(|nic| nic.in_user_space()).filter_map(of_card).collect();
        return if ours.is_empty() { facts.nics.iter().filter_map(of_card).collect() } else { ours };
    };
    let of_port = |port: &crate::NodePort| Some((port.name.clone(), nic(facts, port)?.numa_node?));
    node.ports.iter().filter_map(of_port).collect()
}

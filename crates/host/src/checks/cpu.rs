//! The processor and its threads.

use super::{Check, NO_FIGURE, View, count};
use crate::finding::Outcome;
use crate::{Asked, CpuSet, Layout};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "cpu.model",
        means: "Packets per second scale with the frequency of the cores and their number; everything else on this list is \
                about not losing what this one has.",
        worth: "ZTE UPF: 1.275 Mpps a physical core on 2x Xeon Gold 6230N (24 cores), 1.06 on 2x Platinum 8280 (42 cores, \
                53 % busy), forwarding only, 690-byte packets",
        ask: model,
    },
    Check {
        id: "cpu.flags",
        means: "DPDK needs SSE4.2 and does not start without it. AVX2 and AVX-512 speed up the receive and send paths of \
                drivers; AES and carry-less multiplication read QUIC's first packets; CLFLUSHOPT and CLWB are of no use here.",
        worth: "no published figure for it alone; Samsung's UPF names AVX-512 for receiving and sending",
        ask: flags,
    },
    Check {
        id: "cpu.monitor",
        means: "With WAITPKG (Intel) an idle worker can rest in a light sleep of the core instead of looking without \
                pause, which gives its power to the busy cores: for a time (idle = \"pause\"), or until a packet comes to \
                its queue (\"monitor\"), or to one of several where there is RTM, too. DPDK 22.11 does not use AMD's \
                MONITORX.",
        worth: NO_FIGURE,
        ask: monitor,
    },
    Check {
        id: "cpu.cores",
        means: "A worker runs to completion on a core of its own; control plane, kernel and interrupts need another.",
        worth: "Connectem EPC: linear from 2 to 4 nodes; Chunghwa MEC: 2.08 times one core with 6 queues and cores, less with 7",
        ask: cores,
    },
    Check {
        id: "cpu.threads",
        means: "Two workers on the threads of one core share its caches and ports: more together than one, each slower. A \
                worker's sibling must not run anything else that is busy.",
        worth: "ZTE and Chunghwa ran with hyper-threading on and workers on both threads (24 cores, 48 threads)",
        ask: threads,
    },
    Check {
        id: "cpu.layout",
        means: "Workers on the NUMA node of their ports, one a core, and none on the core of CPU 0, where the kernel does its own \
                work: `anchorline doctor layout` prints the lines of a configuration for that, and why.",
        worth: "ZTE UPF: cores 8 to 19 of each socket of 20 for workers, the others for all else; no figure for it alone",
        ask: layout,
    },
    Check {
        id: "numa.nodes",
        means: "Memory of the other node costs half as much again or more at every access; port, worker and packet memory \
                belong on one node.",
        worth: "the published UPFs run one instance a socket, with the cards of that socket; no figure for crossing",
        ask: numa,
    },
];

fn model(view: &View<'_>) -> Vec<Outcome> {
    let (cpu, topology) = (&view.facts.cpu, &view.facts.topology);
    let Some(model) = &cpu.model else {
        return vec![Outcome::not_here("/proc/cpuinfo does not name a processor")];
    };
    let shape =
        [(topology.packages().max(1), "socket"), (topology.cores(), "core"), (topology.cpus.len(), "thread")];
    let shape = shape.map(|(number, noun)| count(number, noun)).join(", ");
    let caches = match topology.caches.is_empty() {
        true => String::new(),
        false => format!("; {}", topology.caches.join(", ")),
    };
    vec![Outcome::good(format!("{model}; {shape}{caches}"))]
}

fn flags(view: &View<'_>) -> Vec<Outcome> {
    let cpu = &view.facts.cpu;
    if cpu.flags.is_empty() {
        return vec![Outcome::not_here("/proc/cpuinfo lists no flags (not x86, or hidden)")];
    }
    let wanted = [
        ("avx2", "AVX2"),
        ("avx512f", "AVX-512"),
        ("avx512bw", "AVX-512BW"),
        ("aes", "AES"),
        ("pclmulqdq", "PCLMUL"),
    ];
    let (has, lacks): (Vec<_>, Vec<_>) = wanted.iter().partition(|(flag, _)| cpu.has(flag));
    let names =
        |flags: Vec<&(&str, &str)>| flags.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    let (has, lacks) = (names(has), names(lacks));
    vec![match (cpu.has("sse4_2"), lacks.is_empty()) {
        (false, _) => Outcome::problem(
            "no SSE4.2",
            "use another machine, or let the hypervisor pass the host's CPU model",
        ),
        (true, true) => Outcome::good(format!("SSE4.2, {has}")),
        (true, false) if lacks.contains("AES") || lacks.contains("AVX2") => Outcome::warning(
            format!("SSE4.2 and {has}, without {lacks}"),
            "let the hypervisor pass the host's CPU model",
        ),
        (true, false) => Outcome::advice(
            format!("SSE4.2 and {has}, without {lacks}"),
            "nothing: drivers take their AVX2 paths",
        ),
    }]
}

fn monitor(view: &View<'_>) -> Vec<Outcome> {
    let cpu = &view.facts.cpu;
    vec![match (cpu.has("waitpkg"), cpu.has("monitorx")) {
        (true, _) if cpu.has("rtm") => Outcome::good("WAITPKG, and RTM to wait on several queues"),
        (true, _) => Outcome::good("WAITPKG, without RTM to wait on several queues"),
        (false, true) => {
            Outcome::not_here("the CPU has MONITORX in place of WAITPKG, and DPDK 22.11 does not use it")
        }
        (false, false) => Outcome::not_here("the CPU, or the hypervisor, shows neither WAITPKG nor MONITORX"),
    }]
}

fn cores(view: &View<'_>) -> Vec<Outcome> {
    let (cores, cpus) = (view.facts.topology.cores(), view.facts.topology.cpus.len());
    vec![match (cores, cpus) {
        (_, 0) => Outcome::not_here("/sys/devices/system/cpu/online cannot be read"),
        (1, _) => Outcome::warning(
            "one core for the worker and everything else",
            "use a machine with 2 cores or more",
        ),
        (2 | 3, _) => Outcome::advice(
            format!("{cores} cores: one is for the kernel and the control plane, {} for workers", cores - 1),
            "more cores make room for more workers",
        ),
        _ => Outcome::good(format!("{cores} cores")),
    }]
}

fn threads(view: &View<'_>) -> Vec<Outcome> {
    let topology = &view.facts.topology;
    let most = topology.cpus.iter().map(|place| place.siblings.len()).max();
    vec![match (most, topology.smt.as_deref()) {
        (None, _) => Outcome::not_here("/sys/devices/system/cpu cannot be read"),
        (Some(2..), _) => Outcome::good("on: give each worker a core, or both threads of one to two workers"),
        (_, Some("off" | "forceoff")) => Outcome::advice(
            "off",
            "BIOS: Processor Configuration, Hyper-Threading: enabled, as the published measurements had it",
        ),
        _ if view.facts.hides_siblings() => {
            Outcome::not_here("a virtual machine is not told which of its CPUs share a core")
        }
        _ => Outcome::not_here("the processor has one thread a core"),
    }]
}

fn layout(view: &View<'_>) -> Vec<Outcome> {
    let chosen = view.node.map(|node| node.workers.as_slice()).unwrap_or_default();
    let layout = match Layout::propose(view.facts, view.node, Asked::default()) {
        Ok(layout) => layout,
        Err(because) => return vec![Outcome::not_here(because)],
    };
    let cpus: CpuSet = layout.cpus.iter().copied().collect();
    let proposal = match cpus.len() {
        1 => format!("CPU {cpus} for a worker"),
        number => format!("CPUs {cpus} for {number} workers"),
    };
    let (option, nothing) = match view.node {
        Some(_) => (" --config FILE", "workers may run on any CPU"),
        None => ("", "no node is configured"),
    };
    let act = format!("{proposal}: anchorline doctor layout{option} prints the lines, and why");
    vec![match (chosen.is_empty(), layout.differs(view.facts, chosen)) {
        (true, _) => Outcome::advice(nothing, act),
        (false, None) => {
            Outcome::good("the workers' CPUs are on their ports' node and have cores of their own")
        }
        (false, Some(differs)) => Outcome::advice(differs, act),
    }]
}

fn numa(view: &View<'_>) -> Vec<Outcome> {
    let nodes = &view.facts.topology.nodes;
    let shape = |node: &crate::NumaNode| format!("node {}: CPUs {}", node.node, node.cpus);
    vec![match nodes.len() {
        0 => Outcome::not_here("/sys/devices/system/node does not exist"),
        1 => Outcome::good("one node: nothing can be on the wrong one"),
        number => {
            let far = nodes.iter().flat_map(|node| &node.distances).max().copied().unwrap_or(0);
            let all: Vec<String> = nodes.iter().map(shape).collect();
            Outcome::good(format!("{number} nodes, farthest {far} (itself 10); {}", all.join("; ")))
        }
    }]
}

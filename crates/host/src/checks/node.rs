//! What a configuration asks of this host.

use super::idle::idle;
use super::{Check, NO_FIGURE, View};
use crate::finding::Outcome;
use crate::placement::nic;
use crate::{Facts, Node, NodePort, Placement, Tables};
use steer::{Abilities, decide};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "node.workers",
        means: "A worker that is bound to an isolated CPU is neither moved nor interrupted; one that is not shares its CPU \
                with whatever the kernel puts there.",
        worth: "as kernel.isolation",
        ask: |view| of_node(view, workers),
    },
    Check {
        id: "node.siblings",
        means: "What runs on the other thread of a worker's core takes up to half of the core from it.",
        worth: NO_FIGURE,
        ask: |view| of_node(view, siblings),
    },
    Check {
        id: "node.placement",
        means: "Worker, port and packet memory belong on one NUMA node.",
        worth: "as numa.nodes",
        ask: |view| of_node(view, placement),
    },
    Check {
        id: "node.packet-memory",
        means: "Packet memory (memory_mb) comes from free huge pages, or from those the data plane may make; with \
                huge_pages = \"require\" it does not start without. Where there are several NUMA nodes, each port's packets \
                belong on that of its device, and are there if enough pages are free there before the start.",
        worth: "as memory.huge-pages",
        ask: |view| of_node(view, packet_memory),
    },
    Check {
        id: "node.tables",
        means: "Sessions and flows are in memory of their own, taken at the start; that of PDRs beyond two a session is \
                taken as they come. A table that is swapped is lost for packets, and where there is no memory left the \
                kernel ends the data plane.",
        worth: "our own: what is told is the tables' own size",
        ask: |view| of_node(view, tables),
    },
    Check {
        id: "node.ports",
        means: "A port is a device that is there, and that a driver for user space has, or the kernel's interface.",
        worth: NO_FIGURE,
        ask: |view| of_node(view, ports),
    },
    Check {
        id: "node.steering",
        means: "How the packets of a user get to the worker that owns him, port by port.",
        worth: "as nic.steering",
        ask: |view| of_node(view, steering),
    },
    Check {
        id: "node.idle",
        means: "A worker that looks without pause takes a whole CPU at all times; where it does not have one, it takes it \
                from the others. With idle = \"pause\" and \"monitor\" it keeps the CPU and rests in it, with \"scale\" it \
                looks on at a lower frequency: each as far as the CPU, the drivers and the kernel have that.",
        worth: NO_FIGURE,
        ask: |view| of_node(view, idle),
    },
];

fn of_node(view: &View<'_>, ask: fn(&Facts, &Node) -> Vec<Outcome>) -> Vec<Outcome> {
    view.node.map_or_else(Vec::new, |node| ask(view.facts, node))
}

fn workers(facts: &Facts, node: &Node) -> Vec<Outcome> {
    let topology = &facts.topology;
    if topology.cpus.is_empty() {
        return vec![Outcome::not_here("/sys/devices/system/cpu/online cannot be read")];
    }
    if node.workers.is_empty() {
        return vec![Outcome::advice(
            "workers may run on any CPU",
            "name theirs in [dpe], isolated if possible",
        )];
    }
    let one = |cpu: &usize| match (topology.place(*cpu), topology.isolated.has(*cpu)) {
        (None, _) => Outcome::problem(
            format!("CPU {cpu} is not there or not online"),
            format!("name one of {}", topology.online()),
        ),
        (Some(_), true) => Outcome::good(format!("CPU {cpu} is isolated")),
        (Some(_), false) if *cpu == 0 => {
            Outcome::warning("CPU 0 is where the kernel does its own work", "name another CPU")
        }
        (Some(_), false) => Outcome::advice(format!("CPU {cpu} is not isolated"), "as kernel.isolation says"),
    };
    node.workers.iter().map(one).collect()
}

fn siblings(facts: &Facts, node: &Node) -> Vec<Outcome> {
    let one = |cpu: &usize| {
        let siblings = &facts.topology.place(*cpu)?.siblings;
        let others = siblings.iter().filter(|sibling| sibling != cpu);
        let idle = |sibling: &usize| facts.topology.isolated.has(*sibling) && !node.workers.contains(sibling);
        let busy: Vec<String> =
            others.filter(|sibling| !idle(sibling)).map(|sibling| sibling.to_string()).collect();
        Some(match (siblings.len(), busy.is_empty()) {
            (0 | 1, _) if facts.hides_siblings() => {
                Outcome::not_here(format!("a virtual machine is not told what shares the core of CPU {cpu}"))
            }
            (0 | 1, _) => Outcome::good(format!("CPU {cpu} has its core to itself")),
            (_, true) => Outcome::good(format!("nothing is put on the sibling of CPU {cpu}")),
            (_, false) if busy.iter().all(|busy| node.workers.iter().any(|cpu| cpu.to_string() == *busy)) => {
                Outcome::good(format!("CPU {cpu} shares its core with the worker on CPU {}", busy.join(", ")))
            }
            (_, false) => Outcome::warning(
                format!("CPU {cpu} shares its core with CPU {}, which anything may run on", busy.join(", ")),
                format!(
                    "isolate it, or: echo 0 > /sys/devices/system/cpu/cpu{}/online",
                    busy.first().map_or("", |busy| busy)
                ),
            ),
        })
    };
    node.workers.iter().filter_map(one).collect()
}

fn placement(facts: &Facts, node: &Node) -> Vec<Outcome> {
    if facts.topology.nodes.len() < 2 {
        return vec![Outcome::good("there is one NUMA node")];
    }
    let pairs = node.ports.iter().flat_map(|port| node.workers.iter().map(move |cpu| (port, *cpu)));
    let one = |(port, cpu): (&NodePort, usize)| {
        let (of_port, of_cpu) = (nic(facts, port)?.numa_node?, facts.topology.node_of(cpu)?);
        Some(match of_port == of_cpu {
            true => {
                Outcome::good(format!("port {} and the worker on CPU {cpu} are on node {of_port}", port.name))
            }
            false => Outcome::warning(
                format!("port {} is on node {of_port}, the worker on CPU {cpu} on node {of_cpu}", port.name),
                format!("name a CPU of node {of_port}, or run one node of the product a socket"),
            ),
        })
    };
    pairs.filter_map(one).collect()
}

fn packet_memory(facts: &Facts, node: &Node) -> Vec<Outcome> {
    if !node.huge_pages {
        return vec![Outcome::warning("huge_pages = \"never\"", "leave it out, or \"auto\"")];
    }
    let memory_mb = Placement::new(facts, node).memory_mb;
    if memory_mb.is_empty() {
        let (free, held, of_running) = had(facts, None);
        let found = format!("{free} MiB of huge pages are free{of_running}; memory_mb is {}", node.memory_mb);
        return vec![enough(found, free + held >= u64::from(node.memory_mb), node.required)];
    }
    let one = |(number, part): &(usize, u32)| {
        let (free, held, of_running) = had(facts, Some(*number));
        let found = format!(
            "{free} MiB of huge pages are free on node {number}{of_running}, where {part} of memory_mb = {} belong",
            node.memory_mb
        );
        match (free + held >= u64::from(*part), node.required) {
            // DPDK takes pages beyond the kernel's pool on node 0 alone.
            (false, false) if *number > 0 => {
                Outcome::warning(format!("{found}: packets would be in memory of another node"), RESERVE)
            }
            (is_enough, required) => enough(found, is_enough, required),
        }
    };
    memory_mb.iter().map(one).collect()
}

/// MiB of huge pages that are free, and that a data plane has which runs: its next start has them again.
fn had(facts: &Facts, node: Option<usize>) -> (u64, u64, String) {
    let (free, held) = (facts.memory.free_huge_mb(node), facts.memory.held_huge_mb(node));
    let of_running = if held > 0 { format!(" (a data plane that runs has {held})") } else { String::new() };
    (free, held, of_running)
}

const RESERVE: &str = "anchorline tune --config FILE --apply reserves them";

fn enough(found: String, is_enough: bool, required: bool) -> Outcome {
    match (is_enough, required) {
        (true, _) => Outcome::good(found),
        (false, true) => Outcome::problem(format!("{found}, and huge_pages = \"require\""), RESERVE),
        (false, false) => {
            Outcome::advice(format!("{found}: the data plane asks for more at its start"), RESERVE)
        }
    }
}

fn tables(facts: &Facts, node: &Node) -> Vec<Outcome> {
    let Tables { sessions_bytes, flows_bytes, pdrs_bytes, rules_bytes, control_bytes } = node.tables;
    let at_start = sessions_bytes.saturating_add(flows_bytes) >> 20;
    let of_pdrs = pdrs_bytes.saturating_add(rules_bytes) >> 20;
    let of_control = control_bytes >> 20;
    let Some(total_mb) = facts.memory.total_kb.map(|kb| kb >> 10) else {
        return vec![Outcome::not_here("/proc/meminfo cannot be read")];
    };
    let needed = at_start + u64::from(node.memory_mb);
    let full = needed.saturating_add(of_pdrs).saturating_add(of_control);
    let found = format!(
        "{} sessions and {} flows take {at_start} MiB, {} PDRs up to {of_pdrs} MiB more, and the control process {of_control}",
        node.sessions, node.flows, node.pdrs
    );
    let act = "lower sessions, pdrs, flows or memory_mb, or add memory";
    vec![if needed > total_mb {
        Outcome::problem(format!("{found}; with packets {needed} MiB of {total_mb} at the start"), act)
    } else if full > total_mb / 4 * 3 {
        Outcome::warning(format!("{found}; with packets {full} MiB of {total_mb} when all is full"), act)
    } else {
        Outcome::good(format!("{found}, of {total_mb}"))
    }]
}

fn ports(facts: &Facts, node: &Node) -> Vec<Outcome> {
    let one = |port: &NodePort| {
        let name = &port.name;
        match (port.pci(), nic(facts, port)) {
            (None, _) => of_kernel(facts, port),
            (Some(address), None) => Outcome::problem(
                format!("{name}: there is no network card at {address}"),
                "lspci -D | grep Ethernet",
            ),
            (Some(_), Some(nic)) if nic.in_user_space() || nic.family == steer::Family::Mlx5 => {
                Outcome::good(format!(
                    "{name}: {} has {}",
                    nic.driver.as_deref().unwrap_or("nobody"),
                    nic.address
                ))
            }
            (Some(address), Some(nic)) => {
                let has = match nic.driver.as_deref() {
                    Some(driver) => format!("the kernel's driver {driver} has"),
                    None => "no driver has".to_owned(),
                };
                Outcome::problem(
                    format!("{name}: {has} {address}"),
                    format!("dpdk-devbind.py --bind=vfio-pci {address}"),
                )
            }
        }
    };
    node.ports.iter().map(one).collect()
}

/// A port over an interface of the kernel, or over no device at all.
fn of_kernel(facts: &Facts, port: &NodePort) -> Outcome {
    let name = &port.name;
    match port.interface() {
        None => Outcome::good(format!("{name}: {} is no PCI device", port.device)),
        Some(interface) if facts.interfaces.iter().any(|other| other == interface) => {
            Outcome::good(format!("{name}: over the kernel's {interface}"))
        }
        Some(_) if port.makes_its_interface() => {
            Outcome::good(format!("{name}: {} is made at the start", port.device))
        }
        Some(interface) => Outcome::problem(
            format!("{name}: the kernel has no interface {interface} in this network namespace"),
            "run the doctor in the node's network namespace (ip netns exec), or make the interface",
        ),
    }
}

fn steering(facts: &Facts, node: &Node) -> Vec<Outcome> {
    let workers = u16::try_from(node.worker_count.max(1)).unwrap_or(u16::MAX);
    if workers == 1 {
        return vec![Outcome::good("one worker owns every user")];
    }
    let one = |port: &NodePort| {
        let name = &port.name;
        let Some(nic) = nic(facts, port).filter(|_| port.pci().is_some()) else {
            return Outcome::advice(
                format!("{name}: {} does not look into GTP-U; workers hand packets over", port.device),
                "a card that does, for more than one worker",
            );
        };
        let decision = decide(Abilities::of(nic.family, facts.ddp.package(nic), workers), workers);
        match decision.mode {
            steer::Mode::Software => {
                Outcome::advice(format!("{name}: {}", decision.reason), "as nic.steering says")
            }
            _ => Outcome::good(format!("{name}: {}", decision.reason)),
        }
    };
    node.ports.iter().map(one).collect()
}

//! What the machine is and what else runs on it.

use super::{Check, NO_FIGURE, View, count};
use crate::CpuSet;
use crate::finding::Outcome;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "system.machine",
        means: "On a virtual machine somebody else decides when a worker runs, and BIOS settings are the host's.",
        worth: "ZTE ran in virtual machines with virtual functions of the cards: 173 Gb/s on 2x Xeon 6230N",
        ask: machine,
    },
    Check {
        id: "bios.virtualisation",
        means: "The CPU's help for running virtual machines; of use only where the data plane runs in one on this host.",
        worth: "ZTE's BIOS table: virtualisation technology enabled (its UPF ran in virtual machines); no figure for it alone",
        ask: virtualisation,
    },
    Check {
        id: "bios.sub-numa",
        means: "A socket that shows itself as several NUMA nodes (Intel: sub-NUMA clustering, AMD: nodes per socket) has nearer \
                and farther memory, cache and PCIe slots of its own: ports and workers must be placed by them.",
        worth: "Chunghwa's BIOS table: sub-NUMA clustering off; no figure for it alone",
        ask: sub_numa,
    },
    Check {
        id: "system.quota",
        means: "A CPU quota stops a worker that never sleeps for the rest of each period: tens of milliseconds without a packet.",
        worth: NO_FIGURE,
        ask: quota,
    },
    Check {
        id: "system.irqbalance",
        means: "irqbalance moves interrupts to CPUs that look idle, and to those of workers unless it is told not to.",
        worth: NO_FIGURE,
        ask: irqbalance,
    },
    Check {
        id: "system.interrupts",
        means: "An interrupt on a worker's CPU, or on its sibling, takes microseconds and cache lines from it, whoever asked for it.",
        worth: NO_FIGURE,
        ask: interrupts,
    },
];

fn machine(view: &View<'_>) -> Vec<Outcome> {
    let machine = &view.facts.machine;
    let name: Vec<&str> =
        [&machine.maker, &machine.product].iter().filter_map(|part| part.as_deref()).collect();
    let name = if name.is_empty() { "no maker or product is shown".to_owned() } else { name.join(" ") };
    let bios = machine.bios.as_ref().map_or_else(String::new, |version| format!(", BIOS {version}"));
    let inside =
        machine.container.as_ref().map_or_else(String::new, |kind| format!(", inside a container ({kind})"));
    vec![match machine.virtual_machine {
        true => Outcome::advice(
            format!("a virtual machine ({name}{bios}){inside}"),
            "ask its host for pinned CPUs, huge pages, and virtual functions of a card instead of virtio",
        ),
        false => Outcome::good(format!("{name}{bios}{inside}")),
    }]
}

fn virtualisation(view: &View<'_>) -> Vec<Outcome> {
    let (cpu, virtual_machine) = (&view.facts.cpu, view.facts.machine.virtual_machine);
    vec![match (cpu.has("vmx") || cpu.has("svm"), virtual_machine) {
        (true, _) => Outcome::good("on"),
        (false, true) => {
            Outcome::not_here("this is a virtual machine itself, and its host does not pass it on")
        }
        (false, false) => {
            Outcome::not_here("the CPU shows neither vmx nor svm (off in the BIOS, or not there)")
        }
    }]
}

fn sub_numa(view: &View<'_>) -> Vec<Outcome> {
    let topology = &view.facts.topology;
    vec![match (topology.packages(), topology.nodes.len()) {
        (0, _) | (_, 0) => Outcome::not_here("/sys does not show sockets or nodes"),
        _ if view.facts.machine.virtual_machine => Outcome::not_here(
            "this is a virtual machine: its sockets and nodes are what its host made of its own",
        ),
        (sockets, nodes) if nodes > sockets => Outcome::advice(
            format!("{nodes} nodes on {}", count(sockets, "socket")),
            "BIOS: sub-NUMA clustering off (AMD: NPS1), or a node of the product for each NUMA node",
        ),
        _ => Outcome::good("off: a node a socket"),
    }]
}

fn quota(view: &View<'_>) -> Vec<Outcome> {
    vec![match view.facts.machine.quota_millicpus {
        None => Outcome::good("none"),
        Some(limit) => Outcome::warning(
            format!("{}.{:03} CPUs", limit / 1000, limit % 1000),
            "Kubernetes: whole CPUs with request = limit and the static CPU manager, which sets no quota",
        ),
    }]
}

fn irqbalance(view: &View<'_>) -> Vec<Outcome> {
    vec![match view.facts.machine.irqbalance {
        false => Outcome::good("does not run"),
        true => Outcome::advice(
            "runs",
            "IRQBALANCE_BANNED_CPULIST=CPUS in /etc/default/irqbalance (anchorline tune --config FILE --apply sets it)",
        ),
    }]
}

fn interrupts(view: &View<'_>) -> Vec<Outcome> {
    let facts = view.facts;
    let workers = view.workers();
    if facts.interrupts.is_empty() {
        return vec![Outcome::not_here("/proc/irq shows no interrupts")];
    }
    if workers.is_empty() {
        return vec![Outcome::not_here(
            "no CPU is set apart for workers, by the configuration or by isolcpus",
        )];
    }
    let topology = &facts.topology;
    let siblings = topology.online().without(&workers).without(&topology.beside(&workers));
    let astray = |cpus: &CpuSet| {
        let used = facts.interrupts.iter().filter(|interrupt| interrupt.name != "unused");
        used.filter(|interrupt| !interrupt.affinity.common(cpus).is_empty()).count()
    };
    let act = "anchorline tune --config FILE --apply moves them to the other CPUs";
    vec![match (astray(&workers), astray(&siblings)) {
        (0, 0) if siblings.is_empty() => Outcome::good(format!("none may go to CPUs {workers}")),
        (0, 0) => Outcome::good(format!("none may go to CPUs {workers}, nor to their siblings {siblings}")),
        (0, number) => Outcome::advice(
            format!("{} may go to CPUs {siblings}, the siblings of the workers'", count(number, "interrupt")),
            act,
        ),
        (number, _) => Outcome::warning(
            format!("{} may go to the workers' CPUs {workers}", count(number, "interrupt")),
            act,
        ),
    }]
}

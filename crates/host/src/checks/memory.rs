//! Memory.

use super::{Check, NO_FIGURE, View};
use crate::HugePages;
use crate::finding::Outcome;
use crate::node::pages_of_1g;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "memory.huge-pages",
        means: "Packet memory in huge pages: without them, every packet costs the CPU translations of addresses, and PCI \
                cards cannot be used at all unless addresses are virtual (IOMMU).",
        worth: "our own: the bare loop runs at 0.5 to 0.7 of its speed without",
        ask: huge_pages,
    },
    Check {
        id: "memory.huge-1g",
        means: "Pages of 1 GiB keep all packet memory in a few entries of the TLB; they can hardly be had after the start.",
        worth: NO_FIGURE,
        ask: gigabyte,
    },
    Check {
        id: "memory.transparent",
        means: "Tables of flows and sessions ask for huge pages by themselves (madvise). `always` lets the kernel also move \
                pages of others about, at times it chooses; `never` leaves the tables in small pages.",
        worth: NO_FIGURE,
        ask: transparent,
    },
    Check {
        id: "memory.translation",
        means: "A huge page of a virtual machine is one entry of the TLB only where its host has that memory in huge pages, too. \
                Where it has small ones, every 4 KiB of packets, flows and sessions is translated for itself, and a packet waits \
                for that several times: rates fall the more flows and sessions there are.",
        worth: "our own, by this very check on a virtual Zen 4 whose host has small pages: a read of 16.3 ns for 4.4 ns",
        ask: translation,
    },
    Check {
        id: "memory.ksm",
        means: "A kernel that merges same pages writes to page tables behind workers' backs: latency at times nobody chose.",
        worth: NO_FIGURE,
        ask: ksm,
    },
    Check {
        id: "memory.swap",
        means: "A page of the control plane that was swapped out is a session that waits for a disk.",
        worth: NO_FIGURE,
        ask: swap,
    },
    Check {
        id: "memory.numa-balancing",
        means: "The kernel takes pages out of reach to see who asks for them, and moves them: page faults in workers, which \
                are bound to their node anyway.",
        worth: NO_FIGURE,
        ask: balancing,
    },
    Check {
        id: "memory.reporting",
        means: "A virtual machine that reports free memory gives it back to its host, page by page, seconds after it is free: who \
                takes it next waits until the host has found and cleared other pages. The data plane takes its tables at the \
                start; the control plane and its database take memory as sessions come and change.",
        worth: "our own, on a micro virtual machine (`bench pfcp` measures it): 0.6 ms a MiB in its best hour, 4 ms in its worst",
        ask: reporting,
    },
];

fn text(pages: &HugePages) -> String {
    let node = pages.node.map_or_else(String::new, |node| format!(" on node {node}"));
    let size = if pages.size_kb >= 1 << 20 {
        format!("{} GiB", pages.size_kb >> 20)
    } else {
        format!("{} MiB", pages.size_kb >> 10)
    };
    format!("{} of {} x {size} free{node}", pages.free, pages.total)
}

/// Pages of 1 GiB to reserve at the start: as many as `tune` says, and without a configuration some.
fn wanted(view: &View<'_>) -> u64 {
    const SOME: u64 = 4;
    view.node.map_or(SOME, |node| pages_of_1g(node.memory_mb.into()).max(1))
}

fn huge_pages(view: &View<'_>) -> Vec<Outcome> {
    let memory = &view.facts.memory;
    if memory.huge_pages.is_empty() {
        return vec![Outcome::not_here(
            "neither /sys/devices/system/node nor /sys/kernel/mm/hugepages shows any size",
        )];
    }
    let there: Vec<String> = memory.huge_pages.iter().filter(|pages| pages.total > 0).map(text).collect();
    let act = format!(
        "anchorline tune --config FILE --apply, or at start: hugepagesz=1G hugepages={} on the kernel command line",
        wanted(view)
    );
    vec![match (there.is_empty(), memory.free_huge_mb(None)) {
        (true, _) => Outcome::warning(
            "none reserved; the data plane asks for its own when it starts, and may not get them",
            act,
        ),
        (false, 0) if memory.held_huge_mb(None) > 0 => Outcome::good(format!(
            "{}; a data plane that runs has {} MiB",
            there.join(", "),
            memory.held_huge_mb(None)
        )),
        (false, 0) => Outcome::warning(format!("none free: {}", there.join(", ")), act),
        (false, _) => Outcome::good(there.join(", ")),
    }]
}

fn gigabyte(view: &View<'_>) -> Vec<Outcome> {
    let facts = view.facts;
    if !facts.cpu.has("pdpe1gb") {
        return vec![Outcome::not_here("the CPU, or the hypervisor, does not show pages of 1 GiB (pdpe1gb)")];
    }
    let reserved = facts.memory.huge_pages.iter().any(|pages| pages.size_kb == 1 << 20 && pages.total > 0);
    vec![match reserved {
        true => Outcome::good("some are reserved"),
        false => Outcome::advice(
            "the CPU has them; none are reserved",
            format!("kernel command line: default_hugepagesz=1G hugepagesz=1G hugepages={}", wanted(view)),
        ),
    }]
}

fn transparent(view: &View<'_>) -> Vec<Outcome> {
    vec![match view.facts.memory.transparent.as_deref() {
        None => Outcome::not_here("/sys/kernel/mm/transparent_hugepage does not exist"),
        Some("madvise") => Outcome::good("madvise"),
        Some(other) => Outcome::advice(other, "anchorline tune --apply sets madvise"),
    }]
}

fn translation(view: &View<'_>) -> Vec<Outcome> {
    let Some(found) = view.facts.memory.translation else {
        return vec![Outcome::not_here(
            "it is measured on the machine itself, if its kernel gives huge pages for that",
        )];
    };
    let times =
        format!("a read takes {:.1} ns, of lines in 4 KiB each {:.1} ns", found.near_ns, found.far_ns);
    vec![match (found.is_in_small_pages(), view.facts.machine.virtual_machine) {
        (false, _) => Outcome::good(format!("huge pages are translated as such: {times}")),
        (true, true) => Outcome::warning(
            format!("huge pages are translated as small ones, as the host's are: {times}"),
            "ask its host for memory in huge pages (libvirt: <memoryBacking><hugepages/></memoryBacking>)",
        ),
        (true, false) => Outcome::advice(
            format!("reads from many pages are slow, though they are huge: {times}"),
            "measure it again while nothing else runs",
        ),
    }]
}

fn ksm(view: &View<'_>) -> Vec<Outcome> {
    vec![match view.facts.memory.ksm {
        None => Outcome::not_here("the kernel has no /sys/kernel/mm/ksm"),
        Some(1) => Outcome::warning("on", "anchorline tune --apply switches it off"),
        Some(_) => Outcome::good("off"),
    }]
}

fn swap(view: &View<'_>) -> Vec<Outcome> {
    let swaps = &view.facts.memory.swaps;
    vec![match swaps.is_empty() {
        true => Outcome::good("none"),
        false => Outcome::advice(swaps.join(", "), "swapoff -a, if nothing else on this machine needs it"),
    }]
}

fn balancing(view: &View<'_>) -> Vec<Outcome> {
    let many = view.facts.topology.nodes.len() > 1;
    vec![match view.facts.memory.numa_balancing {
        None => Outcome::not_here("the kernel has no /proc/sys/kernel/numa_balancing"),
        Some(0) => Outcome::good("off"),
        Some(_) if !many => Outcome::good("on, without a second node to move pages to"),
        Some(_) => Outcome::warning("on", "anchorline tune --apply switches it off"),
    }]
}

fn reporting(view: &View<'_>) -> Vec<Outcome> {
    vec![match view.facts.memory.reporting {
        None => Outcome::not_here("there is no virtio balloon"),
        Some(false) => Outcome::good("off: memory that was taken once stays"),
        Some(true) => Outcome::advice(
            "free memory is given back to the host (virtio balloon)",
            "ask its host for memory of its own: no balloon, or one without free page reporting",
        ),
    }]
}

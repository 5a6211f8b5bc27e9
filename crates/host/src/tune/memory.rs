//! Huge pages and what the kernel does with memory by itself.

use super::plan::Wanted;
use super::step::{Step, Write};
use crate::HugePages;

pub(super) fn steps(wanted: &Wanted<'_>) -> Vec<Step> {
    let mut steps = huge_pages(wanted);
    steps.push(wanted.set(
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "madvise",
        "flow and session tables ask for huge pages themselves; nobody else's memory is moved about",
    ));
    if wanted.facts.topology.nodes.len() > 1 {
        let why = "pages of workers, bound to their node anyway, are not taken out of reach to be moved";
        steps.push(wanted.set("/proc/sys/kernel/numa_balancing", "0", why));
    }
    if wanted.facts.memory.ksm == Some(1) {
        steps.push(wanted.set(
            "/sys/kernel/mm/ksm/run",
            "0",
            "page tables are not rewritten behind workers' backs",
        ));
    }
    let why = "no watchdog interrupts every CPU";
    steps.push(wanted.set("/proc/sys/kernel/nmi_watchdog", "0", why));
    steps
}

/// Pages of 2 MiB, as many as are missing, on the nodes of the ports; those of a data plane that runs are not. Pages of 1 GiB are had at the start, if at all.
fn huge_pages(wanted: &Wanted<'_>) -> Vec<Step> {
    if wanted.huge_mb == 0 {
        let why = match wanted.shuns_huge_pages {
            true => {
                "the configuration wants none (dpe.huge_pages is \"never\"): change that, or name --huge-mb"
            }
            false => "how many is not said: name a configuration (--config) or --huge-mb",
        };
        return vec![Step::not_here("huge pages", why)];
    }
    wanted.memory_mb.iter().map(|(node, part)| of_node(wanted, *node, *part)).collect()
}

fn of_node(wanted: &Wanted<'_>, node: Option<usize>, wanted_mb: u64) -> Step {
    const SIZE_KB: u64 = 2048;
    let memory = &wanted.facts.memory;
    let (free_mb, held_mb) = (memory.free_huge_mb(node), memory.held_huge_mb(node));
    if free_mb + held_mb >= wanted_mb {
        let place = node.filter(|_| wanted.memory_mb.len() > 1).map(|node| format!(" on node {node}"));
        let place = place.unwrap_or_default();
        let held =
            if held_mb > 0 { format!(", a data plane that runs has {held_mb}") } else { String::new() };
        return Step::done(format!(
            "{free_mb} MiB of huge pages are free{place}{held}, {wanted_mb} are wanted"
        ));
    }
    let here = |pages: &&HugePages| pages.size_kb == SIZE_KB && (pages.node.is_none() || pages.node == node);
    // All of it had better be on another node than nowhere.
    let any = || memory.huge_pages.iter().find(|pages| pages.size_kb == SIZE_KB);
    let any = || (wanted.memory_mb.len() == 1).then(any).flatten();
    let Some(pages) = memory.huge_pages.iter().find(here).or_else(any) else {
        return Step::not_here("huge pages", "the kernel shows none of 2 MiB");
    };
    let folder = match pages.node {
        Some(node) => format!("/sys/devices/system/node/node{node}/hugepages"),
        None => "/sys/kernel/mm/hugepages".to_owned(),
    };
    let missing = (wanted_mb - free_mb - held_mb).div_ceil(SIZE_KB / 1024);
    let path = format!("{folder}/hugepages-{SIZE_KB}kB/nr_hugepages");
    let why = format!("{wanted_mb} MiB of packet memory");
    of_pool(wanted.set(&path, &(pages.total + missing).to_string(), &why), pages)
}

/// The file counts pages beyond the pool, too, but what is written there is the pool's size, and the kernel takes those into the pool before
/// it makes others (`set_max_huge_pages`). So as many more are free when the missing are added to all; what was before is the pool alone.
fn of_pool(step: Step, pages: &HugePages) -> Step {
    match step {
        Step::Write(write) if pages.surplus > 0 => {
            let now = format!("{}\n", pages.total.saturating_sub(pages.surplus));
            Step::Write(Write { now, ..write })
        }
        other => other,
    }
}

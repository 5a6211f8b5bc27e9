//! Huge pages and what the kernel does with memory by itself.

use super::plan::Wanted;
use super::step::Step;

pub(super) fn steps(wanted: &Wanted<'_>) -> Vec<Step> {
    let mut steps = vec![huge_pages(wanted)];
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

/// Pages of 2 MiB, as many as are missing, on the node of the ports. Pages of 1 GiB are had at the start, if at all.
fn huge_pages(wanted: &Wanted<'_>) -> Step {
    const SIZE_KB: u64 = 2048;
    let memory = &wanted.facts.memory;
    let free_mb = memory.free_huge_mb(wanted.node);
    if wanted.huge_mb == 0 {
        return Step::not_here(
            "huge pages",
            "how many is not said: name a configuration (--config) or --huge-mb",
        );
    }
    if free_mb >= wanted.huge_mb {
        return Step::done(format!("{free_mb} MiB of huge pages are free, {} are wanted", wanted.huge_mb));
    }
    let here = |pages: &&crate::HugePages| {
        pages.size_kb == SIZE_KB && (pages.node.is_none() || pages.node == wanted.node)
    };
    let any = || memory.huge_pages.iter().find(|pages| pages.size_kb == SIZE_KB);
    let Some(pages) = memory.huge_pages.iter().find(here).or_else(any) else {
        return Step::not_here("huge pages", "the kernel shows none of 2 MiB");
    };
    let folder = match pages.node {
        Some(node) => format!("/sys/devices/system/node/node{node}/hugepages"),
        None => "/sys/kernel/mm/hugepages".to_owned(),
    };
    let missing = (wanted.huge_mb - free_mb).div_ceil(SIZE_KB / 1024);
    let path = format!("{folder}/hugepages-{SIZE_KB}kB/nr_hugepages");
    wanted.set(
        &path,
        &(pages.total + missing).to_string(),
        &format!("{} MiB of packet memory", wanted.huge_mb),
    )
}

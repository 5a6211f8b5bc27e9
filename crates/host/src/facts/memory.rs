//! Huge pages, and what the kernel does with memory behind a program's back.

use super::held::{self, HeldPages};
use crate::{Root, Translation};
use serde::Serialize;

/// Huge pages of one size on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// The NUMA node; `None` where the kernel does not tell them apart.
    pub node: Option<usize>,
    /// Size of one, in KiB.
    pub size_kb: u64,
    /// How many there are.
    pub total: u64,
    /// How many of them are beyond the kernel's pool, and gone with the process that has them.
    pub surplus: u64,
    /// How many nobody has.
    pub free: u64,
}

/// Memory.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Memory {
    /// All of it, in KiB.
    pub total_kb: Option<u64>,
    /// By node and size.
    pub huge_pages: Vec<HugePages>,
    /// What data planes that run have of them.
    pub held: Vec<HeldPages>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub transparent: Option<String>,
    /// Whether same pages are merged (KSM): 0, 1 or 2.
    pub ksm: Option<u32>,
    /// Swap areas in use.
    pub swaps: Vec<String>,
    /// Whether the kernel moves pages between nodes by itself: 0 or more.
    pub numa_balancing: Option<u32>,
    /// Whether free memory is given back to the host (VIRTIO_BALLOON_F_REPORTING); `None` without a virtio balloon.
    pub reporting: Option<bool>,
    /// What was measured of huge pages; no file says it, so it is not read with the others.
    pub translation: Option<Translation>,
}

/// The bit of VIRTIO_BALLOON_F_REPORTING (virtio 1.2, 5.5.3).
const REPORTING: usize = 5;

impl Memory {
    pub(super) fn read(root: &Root) -> Self {
        let swaps = root.text("/proc/swaps").unwrap_or_default();
        Self {
            total_kb: total(root),
            huge_pages: huge_pages(root),
            held: held::read(root),
            transparent: root.choice("/sys/kernel/mm/transparent_hugepage/enabled"),
            ksm: root.value("/sys/kernel/mm/ksm/run"),
            swaps: swaps
                .lines()
                .skip(1)
                .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
                .collect(),
            numa_balancing: root.value("/proc/sys/kernel/numa_balancing"),
            reporting: reporting(root),
            translation: None,
        }
    }

    /// Free huge pages in MiB, of one node or of all.
    pub fn free_huge_mb(&self, node: Option<usize>) -> u64 {
        let here = |pages: &&HugePages| node.is_none() || pages.node.is_none() || pages.node == node;
        self.huge_pages.iter().filter(here).map(|pages| pages.free.saturating_mul(pages.size_kb) / 1024).sum()
    }

    /// Huge pages that data planes have which run, in MiB, of one node or of all.
    pub fn held_huge_mb(&self, node: Option<usize>) -> u64 {
        let is_one = self.huge_pages.iter().all(|pages| pages.node.is_none_or(|node| node == 0));
        let here = |held: &&HeldPages| node.is_none() || held.node == node || (held.node.is_none() && is_one);
        self.held.iter().filter(here).map(|held| held.kb).sum::<u64>() / 1024
    }
}

fn total(root: &Root) -> Option<u64> {
    let text = root.text("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What driver and host agreed on: a text of a digit for each bit, the lowest first.
fn reporting(root: &Root) -> Option<bool> {
    let driver = "/sys/bus/virtio/drivers/virtio_balloon";
    let devices = root.list(driver).into_iter().filter(|name| name.starts_with("virtio"));
    let agreed = |device: String| root.text(&format!("{driver}/{device}/features"));
    devices
        .filter_map(agreed)
        .map(|bits| bits.as_bytes().get(REPORTING) == Some(&b'1'))
        .reduce(|one, other| one || other)
}

fn huge_pages(root: &Root) -> Vec<HugePages> {
    let nodes = "/sys/devices/system/node";
    let numbered = |name: &String| Some((name.strip_prefix("node")?.parse::<usize>().ok()?, name.clone()));
    let of_nodes: Vec<HugePages> = root
        .list(nodes)
        .iter()
        .filter_map(numbered)
        .flat_map(|(node, name)| sizes(root, &format!("{nodes}/{name}/hugepages"), Some(node)))
        .collect();
    if of_nodes.is_empty() { sizes(root, "/sys/kernel/mm/hugepages", None) } else { of_nodes }
}

fn sizes(root: &Root, folder: &str, node: Option<usize>) -> Vec<HugePages> {
    let size = |name: &String| {
        let size_kb = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let number = |file: &str| root.value(&format!("{folder}/{name}/{file}")).unwrap_or(0);
        let (total, free) = (number("nr_hugepages"), number("free_hugepages"));
        Some(HugePages { node, size_kb, total, surplus: number("surplus_hugepages"), free })
    };
    root.list(folder).iter().filter_map(size).collect()
}

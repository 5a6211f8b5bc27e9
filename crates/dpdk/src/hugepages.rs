//! Huge pages: how much is free, and leave to take more for this process alone.
//!
//! More are not put into the kernel's pool, where they would stay when this process is killed, but taken beyond it: while
//! DPDK maps its memory the kernel's overcommit limit is raised. Pages beyond the pool are free again with the process;
//! killed in that moment, it leaves the limit raised, once, but no page.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

/// Where the kernel keeps them, a folder per page size.
pub(crate) const SYSFS: &str = "/sys/kernel/mm/hugepages";

/// Where it keeps those of each NUMA node.
pub(crate) const NODES: &str = "/sys/devices/system/node";

/// The size taken beyond the pool: the one every x86-64 and arm64 (4 KiB granule) machine can make at run time.
const PAGE_KB: u64 = 2048;

/// How long another process may hold [`lock`] before we go on without.
const PATIENCE: Duration = Duration::from_secs(15);

/// Leave to take huge pages beyond the pool, until it is given up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leave {
    pages: u64,
    raised: u64,
    limit: PathBuf,
}

impl Leave {
    /// How many pages, of 2 MiB.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Lowers the kernel's limit again; pages taken meanwhile stay until the process ends.
    pub(crate) fn give_up(self) {
        if let Some(now) = number(&self.limit) {
            _ = fs::write(&self.limit, now.saturating_sub(self.raised).to_string());
        }
    }
}

/// Keeps other processes of ours from counting and taking pages at the same time, while it is open. It is the root
/// folder that is locked: network namespaces have a sysfs each.
pub(crate) fn lock() -> Option<File> {
    let file = File::open("/").ok()?;
    let start = Instant::now();
    while file.try_lock().is_err() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    Some(file)
}

/// Memory in free huge pages of all sizes, in bytes.
pub(crate) fn free_bytes(sysfs: &Path) -> u64 {
    let sizes = fs::read_dir(sysfs).into_iter().flatten().flatten();
    sizes
        .filter_map(|entry| {
            let name = entry.file_name();
            let size_kb: u64 = name.to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            let free = number(&entry.path().join("free_hugepages"))?;
            let reserved = number(&entry.path().join("resv_hugepages")).unwrap_or(0);
            Some(free.saturating_sub(reserved) * size_kb * 1024)
        })
        .sum()
}

/// Whether each of these NUMA nodes has so many MB in free huge pages; of no nodes, no.
pub(crate) fn are_free(nodes: &Path, wanted_mb: &[(u32, u32)]) -> bool {
    let free = |node: &u32| free_bytes(&nodes.join(format!("node{node}/hugepages")));
    !wanted_mb.is_empty() && wanted_mb.iter().all(|(node, part)| free(node) >= u64::from(*part) << 20)
}

/// Asks for `bytes` of huge pages; `None`, and no change, without the right or the memory.
pub(crate) fn ask(sysfs: &Path, bytes: u64) -> Option<Leave> {
    let leave = raise(sysfs, bytes)?;
    if can_map(bytes) {
        return Some(leave);
    }
    leave.give_up();
    None
}

/// The kernel's limit counts all pages beyond the pool, those of others too.
fn raise(sysfs: &Path, bytes: u64) -> Option<Leave> {
    let folder = sysfs.join(format!("hugepages-{PAGE_KB}kB"));
    let limit = folder.join("nr_overcommit_hugepages");
    let (before, taken) = (number(&limit)?, number(&folder.join("surplus_hugepages"))?);
    let pages = bytes.div_ceil(PAGE_KB * 1024);
    let wanted = before.max(taken + pages);
    fs::write(&limit, wanted.to_string()).ok()?;
    Some(Leave { pages, raised: wanted - before, limit })
}

/// Whether the kernel has that much: it sets pages aside when they are mapped, before they are touched.
fn can_map(bytes: u64) -> bool {
    let Ok(length) = usize::try_from(bytes.next_multiple_of(PAGE_KB * 1024)) else { return false };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
    // SAFETY: a new mapping at an address of the kernel's choice, which nobody uses, and its removal.
    unsafe {
        let address = libc::mmap(ptr::null_mut(), length, libc::PROT_READ, flags, -1, 0);
        address != libc::MAP_FAILED && libc::munmap(address, length) == 0
    }
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysfs(figures: [(&str, u64); 3]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let size = root.path().join("hugepages-2048kB");
        fs::create_dir(&size).unwrap();
        for (name, number) in figures {
            fs::write(size.join(name), format!("{number}\n")).unwrap();
        }
        root
    }

    #[test]
    fn free_pages_are_counted_in_bytes() {
        let root = sysfs([("free_hugepages", 3), ("resv_hugepages", 1), ("nr_hugepages", 3)]);
        assert_eq!(free_bytes(root.path()), 4 << 20);
        assert_eq!(free_bytes(Path::new("/nowhere")), 0);
    }

    #[test]
    fn nodes_have_free_pages_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        for (node, free) in [(0, 3), (1, 1)] {
            let size = root.path().join(format!("node{node}/hugepages/hugepages-2048kB"));
            fs::create_dir_all(&size).unwrap();
            fs::write(size.join("free_hugepages"), format!("{free}\n")).unwrap();
        }
        for (wanted, expected) in [
            (&[(0, 6), (1, 2)][..], true),
            (&[(0, 4)], true),
            (&[(0, 6), (1, 3)], false),
            (&[(2, 1)], false),
            (&[], false),
        ] {
            assert_eq!(are_free(root.path(), wanted), expected, "{wanted:?}");
        }
    }

    #[test]
    fn the_limit_is_raised_above_what_others_took_and_lowered_again() {
        for (before, taken, raised) in [(0, 0, 2), (4, 3, 5), (9, 3, 9)] {
            let root = sysfs([("nr_overcommit_hugepages", before), ("surplus_hugepages", taken), ("x", 0)]);
            let limit = root.path().join("hugepages-2048kB/nr_overcommit_hugepages");
            let leave = raise(root.path(), (2 << 20) + 1).unwrap();
            assert_eq!((leave.pages(), number(&limit)), (2, Some(raised)));
            leave.give_up();
            assert_eq!(number(&limit), Some(before));
        }
    }

    #[test]
    fn without_the_kernel_or_the_memory_there_is_no_leave() {
        assert_eq!(raise(Path::new("/nowhere"), 1), None);
        assert!(!can_map(1 << 50));
    }
}

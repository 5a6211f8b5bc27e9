//! NUMA nodes: which one memory is to come from, and which one it came from.

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::marker::PhantomData;
use std::ptr;

/// Nodes that a mask has room for: as many as the kernel can be built for.
const NODES_MAX: usize = 1024;
const WORD_BITS: usize = c_ulong::BITS as usize;

/// As the kernel counts them: one more than it reads.
const MASK_BITS: c_ulong = NODES_MAX as c_ulong + 1;

/// A bit for each node.
type Mask = [c_ulong; NODES_MAX / WORD_BITS];

/// Which nodes the kernel takes memory from for a thread.
#[derive(Clone, Copy, Debug)]
struct Policy {
    mode: c_int,
    nodes: Mask,
}

impl Policy {
    /// The calling thread's; `None` where the kernel knows no nodes.
    fn now() -> Option<Self> {
        let mut policy = Self { mode: 0, nodes: Mask::default() };
        // SAFETY: the kernel writes one number and a mask of as many bits as are said, and reads no address.
        let status = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut policy.mode,
                policy.nodes.as_mut_ptr(),
                MASK_BITS,
                ptr::null_mut::<c_void>(),
                0 as c_ulong,
            )
        };
        (status == 0).then_some(policy)
    }

    /// Memory of one node, and of others where it has none left.
    fn preferring(node: u32) -> Option<Self> {
        let mut nodes = Mask::default();
        let node = usize::try_from(node).ok()?;
        *nodes.get_mut(node / WORD_BITS)? |= 1 << (node % WORD_BITS);
        Some(Self { mode: libc::MPOL_PREFERRED, nodes })
    }

    /// Makes it the calling thread's.
    fn apply(&self) -> bool {
        // SAFETY: the kernel reads a mask of as many bits as are said; what memory comes from which node no program can tell
        // by what it reads.
        let status: c_long = unsafe {
            libc::syscall(libc::SYS_set_mempolicy, c_long::from(self.mode), self.nodes.as_ptr(), MASK_BITS)
        };
        status == 0
    }
}

/// While it lives, memory that the thread is the first to touch comes from one node, as long as that has any. Threads that it
/// starts meanwhile inherit that.
#[must_use = "memory comes from the node only while this lives"]
#[derive(Debug)]
pub struct Preference {
    before: Policy,
    on_this_thread: PhantomData<*const ()>,
}

impl Preference {
    /// For the calling thread; `None`, and no change, where there is no such node, or the kernel knows none.
    pub fn of(node: u32) -> Option<Self> {
        let before = Policy::now()?;
        Policy::preferring(node)?.apply().then_some(Self { before, on_this_thread: PhantomData })
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        self.before.apply();
    }
}

/// The nodes that pages are on, ascending, each once. Addresses that nobody has touched yet are on none; nothing where the
/// kernel does not say.
pub(crate) fn of_pages(places: &[*mut c_void]) -> Vec<u32> {
    let mut nodes: Vec<c_int> = vec![-1; places.len()];
    // SAFETY: without new nodes the call moves nothing: it reads as many addresses as are said, which it looks up and does not
    // follow, and writes a number for each.
    let status = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0 as c_long,
            places.len() as c_ulong,
            places.as_ptr(),
            ptr::null::<c_int>(),
            nodes.as_mut_ptr(),
            0 as c_long,
        )
    };
    if status != 0 {
        return Vec::new();
    }
    let mut nodes: Vec<u32> = nodes.into_iter().filter_map(|node| u32::try_from(node).ok()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that has memory; none where the kernel knows no nodes.
    fn some_node() -> Option<u32> {
        let mut memory = vec![1_u8; 1 << 20];
        of_pages(&[memory.as_mut_ptr().cast()]).first().copied()
    }

    #[test]
    fn a_preference_is_the_threads_while_it_lives() {
        let Some(node) = some_node() else { return };
        let before = Policy::now().unwrap();
        let preference = Preference::of(node).unwrap();
        let now = Policy::now().unwrap();
        assert_eq!((now.mode, now.nodes), (libc::MPOL_PREFERRED, Policy::preferring(node).unwrap().nodes));
        let inner = Preference::of(node).unwrap();
        drop(inner);
        assert_eq!(Policy::now().unwrap().mode, libc::MPOL_PREFERRED, "that of before comes back");
        let of_other = std::thread::spawn(|| Policy::now().unwrap().mode).join().unwrap();
        assert_eq!(of_other, libc::MPOL_PREFERRED, "threads inherit it");
        drop(preference);
        assert_eq!(Policy::now().unwrap().mode, before.mode);
    }

    #[test]
    fn a_node_that_is_not_there_changes_nothing() {
        let Some(before) = Policy::now() else { return };
        for node in [NODES_MAX as u32 - 1, NODES_MAX as u32, u32::MAX] {
            assert!(Preference::of(node).is_none(), "{node}");
        }
        assert_eq!(Policy::now().unwrap().mode, before.mode);
    }

    #[test]
    fn pages_that_nobody_touched_are_on_no_node() {
        let Some(node) = some_node() else { return };
        let mut touched = vec![1_u8; 64 << 10];
        let mut places: Vec<*mut c_void> =
            touched.chunks_mut(4096).map(|page| page.as_mut_ptr().cast()).collect();
        assert_eq!(of_pages(&places), [node], "on a machine of one node all are on that");
        places.push(ptr::without_provenance_mut(1 << 30));
        assert_eq!(of_pages(&places), [node]);
        assert_eq!(of_pages(&[ptr::null_mut()]), []);
    }
}

//! Names of hosts and domains, found by what a host ends with.

use rustc_hash::FxHashMap;

/// No rules.
pub(super) const NONE: u32 = u32::MAX;

/// Whose rules a name leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Those for the host of this very name.
    pub(super) exact: u32,
    /// Those for the hosts below it.
    pub(super) below: u32,
}

impl Default for Entry {
    fn default() -> Self {
        Self { exact: NONE, below: NONE }
    }
}

/// All names that rules name, in lower case.
#[derive(Debug, Default)]
pub(super) struct Names {
    entries: FxHashMap<Box<[u8]>, Entry>,
    /// Most labels of any: longer ends of a host need not be looked up.
    labels_max: usize,
}

impl Names {
    pub(super) fn entry(&mut self, name: &str) -> &mut Entry {
        self.labels_max = self.labels_max.max(name.split('.').count());
        self.entries.entry(name.as_bytes().into()).or_default()
    }

    /// Groups of the rules that a host, in lower case, leads to.
    #[inline]
    pub(super) fn groups(&self, host: &[u8]) -> impl Iterator<Item = u32> {
        let exact = self.entries.get(host).map_or(NONE, |entry| entry.exact);
        let dots = memchr::memrchr_iter(b'.', host).take(self.labels_max);
        let ends = dots.filter_map(|at| host.get(at + 1..));
        let below = ends.filter_map(|end| self.entries.get(end)).map(|entry| entry.below);
        std::iter::once(exact).chain(below).filter(|group| *group != NONE)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // Entries with their byte of control, and each name in a block of its own.
        let names: usize = self.entries.keys().map(|name| name.len().next_multiple_of(16)).sum();
        self.entries.capacity() * (size_of::<(Box<[u8]>, Entry)>() + 1) * 8 / 7 + names
    }
}

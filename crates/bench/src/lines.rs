//! Tables of cache lines in huge pages.

use anyhow::Context;
use memmap2::{Advice, MmapMut};
use zerocopy::FromBytes;

/// One cache line.
pub(crate) type Line = [u64; 8];

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// Lines, in huge pages where the kernel has any: random packets are served a third slower without.
pub(crate) struct Lines {
    memory: MmapMut,
    count: usize,
}

impl Lines {
    /// So many.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(crate) fn new(count: u32) -> anyhow::Result<Self> {
        let count = count as usize;
        let bytes = (count * size_of::<Line>()).next_multiple_of(HUGE_PAGE);
        let mut memory = MmapMut::map_anon(bytes).context("no memory for a yardstick")?;
        // A kernel without huge pages refuses: it is slower then.
        let _ = memory.advise(Advice::HugePage);
        // Touched now, or the kernel would lend them page by page while we measure.
        memory.fill(1);
        Ok(Self { memory, count })
    }

    /// All of them.
    pub(crate) fn get(&mut self) -> &mut [Line] {
        let lines = <[Line]>::mut_from_bytes(&mut self.memory).unwrap_or_default();
        lines.get_mut(..self.count).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_asked_for() {
        let mut lines = Lines::new(40_000).unwrap();
        assert_eq!(lines.get().len(), 40_000);
    }
}

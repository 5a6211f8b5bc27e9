//! What a huge page is worth: in a virtual machine it is one entry of the TLB only where its host has that memory in huge pages, too.
//! Nothing says whether it has; so it is measured, by how long reads take that lie far apart.

use memmap2::{Advice, MmapMut};
use serde::Serialize;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Reads one behind the other: more lines than a second TLB has entries, and not more than a second cache has room for.
const READS: usize = 6_144;
/// Apart: in a small page each.
const SMALL_PAGE: usize = 4_096;
const LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;
/// Pages are huge where they begin as such, so there is one more of them.
const BYTES: usize = READS * SMALL_PAGE + HUGE_PAGE;
/// The quickest of so many passes counts: other programs only add.
const PASSES: usize = 16;
/// Reads apart take so many times as long where each of them has to be translated.
const TRANSLATED: f64 = 2.0;

/// Nanoseconds of one read that waits for the one before it, of memory that lies in huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Translation {
    /// Of lines side by side.
    pub near_ns: f64,
    /// Of as many lines, in a small page each.
    pub far_ns: f64,
}

impl Translation {
    /// Measures it on this machine, in some milliseconds; `None` where the kernel gives no huge pages for it.
    pub fn measure() -> Option<Self> {
        let before = huge_bytes()?;
        let mut memory = MmapMut::map_anon(BYTES).ok()?;
        memory.advise(Advice::HugePage).ok()?;
        let start = memory.as_ptr().addr().next_multiple_of(HUGE_PAGE) - memory.as_ptr().addr();
        let memory = memory.get_mut(start..)?;
        memory.fill(0);
        if huge_bytes()? < before + READS * SMALL_PAGE {
            return None;
        }
        let near = quickest(memory, |place| place * LINE)?;
        let far = quickest(memory, |place| place * SMALL_PAGE + line_of(place))?;
        let of_one = |all: Duration| all.as_nanos() as f64 / READS as f64;
        Some(Self { near_ns: of_one(near), far_ns: of_one(far) })
    }

    /// Whether huge pages are translated in small ones.
    pub fn is_in_small_pages(&self) -> bool {
        self.far_ns > self.near_ns * TRANSLATED
    }
}

/// Transparent huge pages of this process.
fn huge_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib << 10)
}

/// Another line of each page, as the same one of all would meet in a few places of a cache.
const fn line_of(place: usize) -> usize {
    (place.wrapping_mul(0x9e37_79b9) >> 7) % (SMALL_PAGE / LINE) * LINE
}

/// The quickest pass over all places, from each to the one that it names.
fn quickest(memory: &mut [u8], offset: impl Fn(usize) -> usize) -> Option<Duration> {
    let order = shuffled();
    let next = order.iter().cycle().skip(1);
    for (place, next) in order.iter().zip(next) {
        let at = offset(*place);
        let word: &mut [u8; 4] = memory.get_mut(at..)?.first_chunk_mut()?;
        *word = u32::try_from(offset(*next)).ok()?.to_le_bytes();
    }
    let pass = || {
        let (start, mut at) = (Instant::now(), offset(*order.first()?));
        for _ in 0..READS {
            at = u32::from_le_bytes(*memory.get(at..)?.first_chunk()?) as usize;
        }
        black_box(at);
        Some(start.elapsed())
    };
    (0..PASSES).map(|_| pass()).min()?
}

/// All places in an order that no prefetcher foresees, always the same.
fn shuffled() -> Vec<usize> {
    let mut order: Vec<usize> = (0..READS).collect();
    let mut state = 1_u64;
    for last in (1..READS).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_reads_every_place_once() {
        let mut memory = vec![0; READS * LINE];
        quickest(&mut memory, |place| place * LINE).unwrap();
        let (mut at, mut seen) = (0, std::collections::BTreeSet::new());
        while seen.insert(at) {
            at = u32::from_le_bytes(*memory[at..].first_chunk().unwrap()) as usize;
        }
        assert_eq!((seen.len(), at), (READS, 0));
        let lines: std::collections::BTreeSet<usize> = (0..READS).map(line_of).collect();
        assert_eq!(lines.len(), SMALL_PAGE / LINE);
    }

    #[test]
    fn what_is_measured_here_is_a_time() {
        // Where the kernel has no huge pages to give, there is nothing to say.
        let Some(found) = Translation::measure() else { return };
        assert!(found.near_ns > 0.1 && found.far_ns > found.near_ns * 0.5, "{found:?}");
        assert!(found.near_ns < 1_000.0, "{found:?}");
    }
}

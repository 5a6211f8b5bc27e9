//! What memory costs that a process takes: on a virtual machine whose host has to find it first, many times what it costs where it is.

use memmap2::MmapMut;
use std::io;
use std::time::{Duration, Instant};

/// More than what is left of other programs' last seconds.
const BYTES: usize = 256 << 20;
const PAGE: usize = 4_096;

/// Time a MiB takes, page by page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstTouch {
    /// Of memory that was free, for long or not.
    pub(crate) first: Duration,
    /// Of memory that was given back to the kernel right before.
    pub(crate) again: Duration,
}

impl FirstTouch {
    /// Takes memory, gives it back, and takes it again.
    ///
    /// # Errors
    /// There is not so much.
    pub(crate) fn measure() -> io::Result<Self> {
        Ok(Self { first: taken(BYTES)?, again: taken(BYTES)? })
    }

    /// For people.
    pub(crate) fn text(self) -> String {
        format!(
            "memory that a process takes costs it {} us a MiB here, and {} us where it was given back to the kernel right before \
             (`anchorline doctor explain memory.reporting`)",
            self.first.as_micros(),
            self.again.as_micros()
        )
    }
}

fn taken(bytes: usize) -> io::Result<Duration> {
    let start = Instant::now();
    let mut memory = MmapMut::map_anon(bytes)?;
    memory.iter_mut().step_by(PAGE).for_each(|octet| *octet = 1);
    Ok(start.elapsed() / (bytes >> 20) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_taken() {
        // No kernel clears 200 GB a second; an area that nobody touches takes a tenth of that.
        assert!(taken(64 << 20).unwrap() > Duration::from_micros(5));
    }
}

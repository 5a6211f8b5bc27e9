//! Ctrl-C and SIGTERM: whoever waits in the laboratory stops waiting, and everything is cleaned up on the way out.

use anyhow::{Result, bail};
use nix::sys::signal::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

/// The number of the last signal that asked us to stop; 0 before.
static CAUGHT: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// How often a waiting thread looks up.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// From here on SIGINT, SIGTERM and SIGHUP do not end this process but fail the next [`check`].
///
/// # Errors
/// Where the kernel refuses the handlers.
pub fn watch() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_usize(signal, Arc::clone(&CAUGHT), signal.try_into()?)?;
    }
    Ok(())
}

/// Which signal asked us to stop.
pub fn caught() -> Option<Signal> {
    i32::try_from(CAUGHT.load(Ordering::Relaxed)).ok()?.try_into().ok()
}

/// # Errors
/// Where a signal asked us to stop.
pub fn check() -> Result<()> {
    match caught() {
        Some(signal) => bail!("interrupted by {signal}"),
        None => Ok(()),
    }
}

/// Sleeps, but not through an interruption.
///
/// # Errors
/// Where a signal asked us to stop.
pub fn pause(length: Duration) -> Result<()> {
    let end = Instant::now() + length;
    while Instant::now() < end {
        check()?;
        thread::sleep(TICK.min(end.saturating_duration_since(Instant::now())));
    }
    check()
}

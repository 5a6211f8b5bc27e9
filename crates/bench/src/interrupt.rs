//! Ctrl-C and SIGTERM: measurements stop where they are, and what they have is said.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// What a shell says of a process that Ctrl-C ended.
const EXIT_CODE: i32 = 130;

/// From here on the first signal only asks us to stop; the second ends the process.
///
/// # Errors
/// Where the kernel refuses the handlers.
pub(crate) fn watch() -> anyhow::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset.
        flag::register_conditional_shutdown(signal, EXIT_CODE, Arc::clone(&ASKED))?;
        flag::register(signal, Arc::clone(&ASKED))?;
    }
    Ok(())
}

/// Whether a signal asked us to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

//! Ctrl-C and SIGTERM: measurements stop where they are, and what they have is said.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// What a shell says of a process that Ctrl-C ended.
const EXIT_CODE: i32 = 130;
/// A signal that follows this much later is meant: some senders send one twice.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a waiting thread looks up.
const TICK: Duration = Duration::from_millis(200);

/// From here on the first signal only asks us to stop; one that comes later ends the process.
///
/// # Errors
/// Where the kernel refuses the handlers or a thread.
pub(crate) fn watch() -> anyhow::Result<()> {
    let impatient = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, EXIT_CODE, Arc::clone(&impatient))?;
        flag::register(signal, Arc::clone(&ASKED))?;
    }
    let body = move || {
        while !asked() {
            thread::sleep(TICK);
        }
        thread::sleep(PATIENCE);
        impatient.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("interrupt".to_owned()).spawn(body)?;
    Ok(())
}

/// Whether a signal asked us to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

//! DPDK's log: warnings go to stderr, or where the program says, and what it says while it does something for us goes into our errors.

use crate::sys;
use std::ffi::{CStr, c_char};
use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Longest text kept of one operation, in bytes.
const LIMIT: usize = 16 * 1024;

/// What an operation has logged, by weight.
#[derive(Default)]
struct Captured {
    errors: String,
    warnings: String,
}

/// That of the running operation; `None` while there is none.
static CAPTURED: Mutex<Option<Captured>> = Mutex::new(None);

/// Who passes on what nobody captures.
static OUTPUT: OnceLock<fn(&[u8])> = OnceLock::new();

/// Has `output` pass on what DPDK warns of at any time, from whatever thread, in place of stderr; the first to ask has it.
pub fn log_to(output: fn(&[u8])) {
    let _ = OUTPUT.set(output);
}

fn captured() -> MutexGuard<'static, Option<Captured>> {
    CAPTURED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes DPDK's log over, warnings and worse. Without the memory for it DPDK keeps its own way.
pub(crate) fn take_over() {
    // SAFETY: `sink` lives as long as the program and has the signature the shim calls it with; neither call
    // asks that the EAL runs.
    unsafe {
        sys::anchorline_log_to(Some(sink));
        sys::rte_log_set_global_level(sys::RTE_LOG_WARNING);
    }
}

extern "C" fn sink(text: *const c_char, length: usize, level: u32) {
    // SAFETY: the shim hands over what stdio wrote: `length` bytes, valid during the call.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    match captured().as_mut() {
        Some(captured) if level > sys::RTE_LOG_ERR => keep(&mut captured.warnings, bytes),
        Some(captured) => keep(&mut captured.errors, bytes),
        None => match OUTPUT.get() {
            Some(output) => output(bytes),
            None => _ = std::io::stderr().write_all(bytes),
        },
    }
}

fn keep(text: &mut String, bytes: &[u8]) {
    if text.len() + bytes.len() <= LIMIT {
        text.push_str(&String::from_utf8_lossy(bytes));
    }
}

/// Runs an operation and returns with its result what it logged, errors first. What is logged by an operation that
/// succeeds is about what this machine lacks and nobody asked for. One at a time: the caller holds the control lock.
pub(crate) fn capture<T>(operation: impl FnOnce() -> T) -> (T, String) {
    *captured() = Some(Captured::default());
    let result = operation();
    let log = captured().take().unwrap_or_default();
    (result, log.errors + &log.warnings)
}

/// The line that says why: the first that is not EAL's general complaint; else the error number's meaning, but
/// for -1, which drivers return for whatever they do not like.
pub(crate) fn reason(log: &str, error: i32) -> String {
    const GENERAL: [&str; 3] = ["Driver cannot attach", "Failed to attach", "failed to initialize"];
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = lines.find(|line| !GENERAL.iter().any(|general| line.contains(general)));
    match telling {
        Some(line) => line.trim_end_matches(['.', '!']).to_owned(),
        None if error == -1 => "its driver does not say why; check its arguments".to_owned(),
        None => meaning(error),
    }
}

/// What an error number of DPDK or the kernel, of either sign, means.
pub(crate) fn meaning(error: i32) -> String {
    // SAFETY: DPDK returns a text of this thread, or a constant one; it is copied before the next call.
    let text = unsafe { CStr::from_ptr(sys::rte_strerror(error.saturating_abs())) };
    text.to_string_lossy().into_owned()
}

/// DPDK's error number of this thread.
pub(crate) fn errno() -> i32 {
    // SAFETY: reads a thread-local.
    unsafe { sys::anchorline_errno() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_first_telling_line() {
        let log = "EAL: Driver cannot attach the device (net_x0)\n rte_pmd(): no such thing.\nEAL: more\n";
        assert_eq!(reason(log, -1), "rte_pmd(): no such thing");
    }

    #[test]
    fn without_a_telling_line_the_error_number_speaks() {
        assert_eq!(reason("", -libc::ENOMEM), "Cannot allocate memory");
        assert_eq!(reason("EAL: Failed to attach device\n", libc::ENODEV), "No such device");
        assert_eq!(reason("", -1), "its driver does not say why; check its arguments");
    }
}

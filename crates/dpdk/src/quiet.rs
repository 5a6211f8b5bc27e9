//! Libraries that drivers bring along and that print by themselves.

use std::ffi::{CStr, c_void};
use std::ptr;

/// Libraries of the AF_XDP driver, each with its function that takes the place of its printing; null stops it.
/// What fails there fails in the driver too, which says so.
const TALKERS: [(&CStr, &CStr); 2] =
    [(c"libbpf.so.1", c"libbpf_set_print"), (c"libxdp.so.1", c"libxdp_set_print")];

/// Silences those that are loaded.
pub(crate) fn silence() {
    TALKERS.iter().for_each(|(library, function)| silence_one(library, function));
}

fn silence_one(library: &CStr, function: &CStr) {
    // SAFETY: only asks for what is loaded already; the texts are read during the calls. The handle stays open,
    // so that the function stays there.
    let address = unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if handle.is_null() { ptr::null_mut() } else { libc::dlsym(handle, function.as_ptr()) }
    };
    if address.is_null() {
        return;
    }
    // SAFETY: both functions take a pointer to a function, or null, and return the one before, since they exist.
    unsafe {
        let set_print: extern "C" fn(*const c_void) -> *const c_void = std::mem::transmute(address);
        set_print(ptr::null());
    }
}

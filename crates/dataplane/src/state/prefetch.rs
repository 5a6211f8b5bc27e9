//! Asks the CPU for memory that will be read soon. The one unsafe room of this crate; its invariant is that a prefetch
//! never faults and changes nothing a program can see.
#![allow(unsafe_code)]

/// Asks for the first cache line of `value`.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the address is that of a valid reference; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            std::ptr::from_ref(value).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

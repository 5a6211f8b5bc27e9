//! The CPU's cycle counter and its cache hints.

/// The time stamp counter: cycles since some start, at a constant rate ([`Eal::tsc_hz`](crate::Eal::tsc_hz)).
#[inline]
pub fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction, and Linux allows it.
    let now = unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    let now = {
        let count: u64;
        // SAFETY: Linux allows reading the virtual counter; it touches no memory.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    };
    now
}

/// Asks the CPU for the first cache line of `bytes`, to be read soon. It changes nothing but speed.
#[inline]
pub fn prefetch_read(bytes: &[u8]) {
    prefetch(bytes.as_ptr());
}

/// The same of what will be written: a line that another CPU has changed comes to be this one's at once, and not with the
/// first write, which would wait for it.
#[inline]
pub(crate) fn prefetch_write(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address; every x86-64 CPU has this one, or takes it for none.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, readonly));
    }
}

/// The same by address, which need not be valid: a hint never faults.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; it touches no register or memory the compiler knows of.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly));
    }
}

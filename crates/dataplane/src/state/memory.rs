//! Advice about memory, to the CPU and to the kernel. An unsafe room of this crate; its invariant is that advice changes
//! nothing a program can see.
#![allow(unsafe_code)]

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks the CPU for the first cache line of `value`, which will be read soon. It never faults.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    ask(std::ptr::from_ref(value).cast());
}

/// Asks for all lines of a value.
#[inline(always)]
pub(crate) fn prefetch_all<T>(value: &T) {
    prefetch_first(value, size_of::<T>());
}

/// Asks for the lines that its first bytes are in, of a value that begins with one.
#[inline(always)]
pub(crate) fn prefetch_first<T>(value: &T, bytes: usize) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    (0..bytes.min(size_of::<T>())).step_by(LINE).for_each(|at| ask(first.wrapping_add(at)));
}

#[inline(always)]
fn ask(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: whatever the address, asking for it never faults; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = address;
}

/// The same where it will be written: another CPU that has the line gives it up at once, and not when it is written.
#[inline(always)]
pub(crate) fn prefetch_write<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the address is that of a valid reference; every x86-64 CPU has the instruction, or takes it for none.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) std::ptr::from_ref(value), options(nostack, readonly, preserves_flags));
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = value;
}

/// A table of `length` entries alike, in huge pages where the kernel has some: tables that are read at random lose more
/// time to the translation of addresses than to memory itself, most of all in virtual machines.
pub(crate) fn filled<T: Clone>(length: usize, value: T) -> Box<[T]> {
    let mut table = Vec::with_capacity(length);
    advise_huge(table.spare_capacity_mut());
    table.resize(length, value);
    table.into()
}

/// The same of entries that cannot be copied.
pub(crate) fn filled_with<T>(length: usize, value: impl FnMut() -> T) -> Box<[T]> {
    let mut table = Vec::with_capacity(length);
    advise_huge(table.spare_capacity_mut());
    table.resize_with(length, value);
    table.into()
}

/// The machine has not so much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory {
    pub(crate) bytes: usize,
}

/// An empty table that will not hold more than `limit` entries: addresses are set aside for all of them, and memory is
/// taken as entries come.
pub(crate) fn reserved<T>(limit: usize) -> Result<Vec<T>, NoMemory> {
    let mut table = Vec::new();
    let bytes = limit.saturating_mul(size_of::<T>());
    table.try_reserve_exact(limit).map_err(|_| NoMemory { bytes })?;
    advise_huge(table.spare_capacity_mut());
    Ok(table)
}

/// Below this, huge pages are not worth asking for.
const WORTH_BYTES: usize = 4 << 20;

fn advise_huge<T>(memory: &mut [T]) {
    advise_huge_at(memory.as_mut_ptr().addr(), size_of_val(memory));
}

/// The same of memory at an address. Whether it has huge pages is the kernel's to say, and in a file that of its file system, too.
pub(crate) fn advise_huge_at(address: usize, bytes: usize) {
    // Miri knows no advice.
    if bytes < WORTH_BYTES || cfg!(miri) {
        return;
    }
    let page = 4096;
    let start = address.next_multiple_of(page);
    let end = (address + bytes) / page * page;
    // SAFETY: the advice leaves contents alone, whosever they are. A kernel that does not take it answers with an error, which changes
    // nothing either.
    unsafe {
        libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_HUGEPAGE);
    }
}

//! How large the first cache of the CPU is.

/// Of a CPU that does not say.
const UNKNOWN: usize = 32 << 10;

/// Bytes of the first cache of data, as the CPU says it, or in a virtual machine what it is told to say.
#[cfg(target_arch = "x86_64")]
pub(crate) fn data_bytes() -> usize {
    use raw_cpuid::{CacheParameter, CacheType, CpuId};
    let caches = CpuId::new().get_cache_parameters().into_iter().flatten();
    let is_first = |cache: &CacheParameter| cache.level() == 1 && cache.cache_type() == CacheType::Data;
    let bytes = |cache: CacheParameter| {
        cache.associativity() * cache.physical_line_partitions() * cache.coherency_line_size() * cache.sets()
    };
    caches.filter(is_first).map(bytes).find(|bytes| *bytes > 0).unwrap_or(UNKNOWN)
}

/// The same of others, which are not asked.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const fn data_bytes() -> usize {
    UNKNOWN
}

//! What matters of the CPU: how large its first cache is.

/// Of a CPU that does not say.
const UNKNOWN: usize = 32 << 10;

/// Bytes of the first cache of data, as the CPU says it, or in a virtual machine what it is told to say.
#[cfg(target_arch = "x86_64")]
pub(crate) fn l1_data_bytes() -> usize {
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
pub(crate) const fn l1_data_bytes() -> usize {
    UNKNOWN
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// As the kernel tells it, of each CPU: they need not be alike.
    fn told() -> Vec<usize> {
        let said = |cache: &Path, what: &str| std::fs::read_to_string(cache.join(what)).unwrap_or_default();
        let cpus = (0..1_024).map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cache"));
        let caches =
            cpus.flat_map(|cpu| (0..4).map(move |index| Path::new(&cpu).join(format!("index{index}"))));
        let of_data =
            caches.filter(|cache| said(cache, "level").trim() == "1" && said(cache, "type").trim() == "Data");
        let kib = of_data.filter_map(|cache| said(&cache, "size").trim().strip_suffix('K')?.parse().ok());
        kib.map(|kib: usize| kib << 10).collect()
    }

    #[test]
    fn the_cpu_says_of_its_first_cache_what_the_kernel_does() {
        let told = told();
        assert!(told.is_empty() || told.contains(&super::l1_data_bytes()), "{told:?}");
    }
}

//! What the tests share: one DPDK per process, without huge pages unless the test started it with.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say plainly what they expect")]

pub mod namespace;
pub mod traffic;

use anchorline_dpdk::{Eal, EalConfig, HugePages, Mempool, MempoolConfig, Port, PortConfig};

/// Memory of a test's DPDK.
pub const MEMORY_MB: u32 = 128;

/// The process's DPDK.
pub fn eal() -> &'static Eal {
    Eal::init(&EalConfig { memory_mb: MEMORY_MB, huge_pages: HugePages::Never, ..EalConfig::default() })
        .unwrap()
}

/// A pool of 1023 packets.
pub fn pool() -> Mempool {
    Mempool::new(eal(), MempoolConfig { capacity: 8191, cache: 64, ..MempoolConfig::default() }).unwrap()
}

/// A port of one queue each way.
pub fn open(device: &str, pool: &Mempool) -> Port {
    Port::open(eal(), &PortConfig::new(device), pool).unwrap_or_else(|error| panic!("{error}"))
}

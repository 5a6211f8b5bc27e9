//! DPDK ends once nobody uses it, and not before. One test: it ends it for the whole process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use anchorline_dpdk::{Eal, EalConfig, Error, Memory, Mempool, MempoolConfig};
use common::{MEMORY_MB, eal, open, pool};

#[test]
fn dpdk_ends_once_nobody_uses_it() {
    let (eal, pool) = (eal(), pool());
    assert_eq!(eal.memory(), Memory::Ordinary { memory_mb: MEMORY_MB });
    let port = open("net_null0", &pool);
    let worker = eal.register_thread().unwrap();
    assert_eq!(eal.cleanup(), Err(Error::InUse { ports: 1, pools: 1, workers: 1 }));
    drop((port, worker));
    let packet = pool.alloc().unwrap();
    drop(pool);
    assert_eq!(eal.cleanup(), Err(Error::InUse { ports: 0, pools: 1, workers: 0 }));
    drop(packet);
    assert_eq!(eal.cleanup(), Ok(()));
    assert_eq!(eal.cleanup(), Err(Error::Closed));
    assert_eq!(Eal::init(&EalConfig::default()).unwrap_err(), Error::Closed);
    assert_eq!(Mempool::new(eal, MempoolConfig::default()).unwrap_err(), Error::Closed);
}

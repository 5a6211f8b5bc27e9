//! Every refusal is one sentence that says what to do.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use anchorline_dpdk::{Mempool, MempoolConfig, Port, PortConfig};
use common::{eal, pool};

fn refusal(config: &PortConfig) -> String {
    Port::open(eal(), config, &pool()).unwrap_err().to_string()
}

#[test]
fn a_missing_interface_is_named() {
    for driver in ["net_af_packet9", "net_af_xdp9", "net_pcap9"] {
        let sentence = refusal(&PortConfig::new(&format!("{driver},iface=nowhere0")));
        assert!(sentence.starts_with("interface nowhere0 does not exist;"), "{sentence}");
    }
}

#[test]
fn an_unknown_driver_is_named() {
    let sentence = refusal(&PortConfig::new("net_nonsense7,iface=lo"));
    assert!(sentence.starts_with("no DPDK driver is called \"net_nonsense\""), "{sentence}");
}

#[test]
fn a_pci_device_must_be_announced() {
    let sentence = refusal(&PortConfig::new("0000:ff:1f.7"));
    assert!(sentence.contains("name it in the start configuration"), "{sentence}");
}

#[test]
fn too_many_queues_are_refused() {
    let sentence = refusal(&PortConfig { rx_queues: 5000, ..PortConfig::new("net_null8") });
    assert!(sentence.contains("has at most 1024 receive"), "{sentence}");
    let sentence = refusal(&PortConfig { tx_queues: 0, ..PortConfig::new("net_null8") });
    assert!(sentence.contains("configure 1 to that many"), "{sentence}");
}

#[test]
fn an_mtu_beyond_the_pool_is_refused() {
    let sentence = refusal(&PortConfig { mtu: 9000, ..PortConfig::new("net_null7") });
    assert!(sentence.starts_with("an MTU of 9000 bytes does not fit"), "{sentence}");
}

#[test]
fn bad_arguments_are_told_in_the_drivers_words() {
    let sentence = refusal(&PortConfig::new("net_null6,nonsense=1"));
    println!("{sentence}");
    assert!(sentence.starts_with("device \"net_null6,nonsense=1\" cannot be attached: "), "{sentence}");
}

#[test]
fn a_pool_beyond_memory_is_refused() {
    let config = MempoolConfig { capacity: 10_000_000, ..MempoolConfig::default() };
    let sentence = Mempool::new(eal(), config).unwrap_err().to_string();
    println!("{sentence}");
    assert!(sentence.starts_with("a pool of 10000000 packets"), "{sentence}");
}

#[test]
fn a_pool_of_nothing_or_with_too_large_a_cache_is_refused() {
    for (capacity, cache) in [(0, 0), (1000, 513), (100, 90)] {
        let config = MempoolConfig { capacity, cache, ..MempoolConfig::default() };
        let sentence = Mempool::new(eal(), config).unwrap_err().to_string();
        assert!(sentence.contains("caches of at most 512"), "{sentence}");
    }
}

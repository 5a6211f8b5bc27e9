//! A PCI device that was announced but is not there.
#![allow(clippy::unwrap_used, reason = "tests speak plainly")]

use anchorline_dpdk::{Eal, EalConfig, HugePages, Mempool, MempoolConfig, Port, PortConfig};

#[test]
fn an_absent_pci_device_is_told() {
    const ABSENT: &str = "0000:ff:1f.7";
    let config = EalConfig {
        memory_mb: 64,
        huge_pages: HugePages::Never,
        pci: vec![ABSENT.to_owned()],
        ..EalConfig::default()
    };
    let eal = Eal::init(&config).unwrap();
    let pool = Mempool::new(eal, MempoolConfig { capacity: 1023, ..MempoolConfig::default() }).unwrap();
    let sentence = Port::open(eal, &PortConfig::new(ABSENT), &pool).unwrap_err().to_string();
    println!("{sentence}");
    assert!(sentence.starts_with("PCI device 0000:ff:1f.7 does not exist"), "{sentence}");
}

//! What a port's device can do.

use crate::sys::{self, rte_eth_dev_info};
use std::ffi::CStr;

/// A checksum per protocol that the device computes or checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksums {
    /// IPv4 header.
    pub ipv4: bool,
    /// UDP.
    pub udp: bool,
    /// TCP.
    pub tcp: bool,
    /// SCTP.
    pub sctp: bool,
}

/// What the device's hash can spread packets over queues by; all false without such a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RssTypes {
    /// IPv4 addresses.
    pub ipv4: bool,
    /// IPv6 addresses.
    pub ipv6: bool,
    /// UDP ports.
    pub udp: bool,
    /// TCP ports.
    pub tcp: bool,
    /// SCTP ports.
    pub sctp: bool,
    /// GTP-U TEID.
    pub gtpu: bool,
    /// All of them, as DPDK's `RTE_ETH_RSS_*` bits.
    pub bits: u64,
}

/// What a port's device can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// DPDK's driver.
    pub driver: String,
    /// What its firmware calls itself, where the driver says.
    pub firmware: Option<String>,
    /// The device's address.
    pub mac: [u8; 6],
    /// Receive queues it has.
    pub max_rx_queues: u16,
    /// Transmit queues it has.
    pub max_tx_queues: u16,
    /// Smallest MTU, in bytes.
    pub min_mtu: u16,
    /// Largest MTU, in bytes.
    pub max_mtu: u16,
    /// What its hash spreads by.
    pub rss: RssTypes,
    /// Octets of its hash's key; 0 without one.
    pub hash_key_bytes: u8,
    /// Entries of the table from hash to queue.
    pub rss_table_size: u16,
    /// Checksums it checks on receipt.
    pub rx_checksums: Checksums,
    /// Checksums it computes on sending.
    pub tx_checksums: Checksums,
}

impl RssTypes {
    fn new(bits: u64) -> Self {
        let has = |wanted| bits & wanted != 0;
        Self {
            ipv4: has(sys::ANCHORLINE_RSS_IPV4),
            ipv6: has(sys::ANCHORLINE_RSS_IPV6),
            udp: has(sys::ANCHORLINE_RSS_UDP),
            tcp: has(sys::ANCHORLINE_RSS_TCP),
            sctp: has(sys::ANCHORLINE_RSS_SCTP),
            gtpu: has(sys::ANCHORLINE_RSS_GTPU),
            bits,
        }
    }
}

impl Capabilities {
    /// # Safety
    /// `info` is as `rte_eth_dev_info_get` filled it.
    pub(crate) unsafe fn new(info: &rte_eth_dev_info, (mac, firmware): ([u8; 6], Option<String>)) -> Self {
        // SAFETY: the driver's name is null or a text in the driver's memory; it is copied.
        let driver = (!info.driver_name.is_null()).then(|| unsafe { CStr::from_ptr(info.driver_name) });
        Self {
            driver: driver.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            firmware,
            mac,
            max_rx_queues: info.max_rx_queues,
            max_tx_queues: info.max_tx_queues,
            min_mtu: info.min_mtu,
            max_mtu: info.max_mtu,
            rss: RssTypes::new(info.flow_type_rss_offloads),
            hash_key_bytes: info.hash_key_size,
            rss_table_size: info.reta_size,
            rx_checksums: rx_checksums(info.rx_offload_capa),
            tx_checksums: tx_checksums(info.tx_offload_capa),
        }
    }
}

fn rx_checksums(bits: u64) -> Checksums {
    Checksums {
        ipv4: bits & sys::ANCHORLINE_RX_IPV4_CKSUM != 0,
        udp: bits & sys::ANCHORLINE_RX_UDP_CKSUM != 0,
        tcp: bits & sys::ANCHORLINE_RX_TCP_CKSUM != 0,
        sctp: bits & sys::ANCHORLINE_RX_SCTP_CKSUM != 0,
    }
}

fn tx_checksums(bits: u64) -> Checksums {
    Checksums {
        ipv4: bits & sys::ANCHORLINE_TX_IPV4_CKSUM != 0,
        udp: bits & sys::ANCHORLINE_TX_UDP_CKSUM != 0,
        tcp: bits & sys::ANCHORLINE_TX_TCP_CKSUM != 0,
        sctp: bits & sys::ANCHORLINE_TX_SCTP_CKSUM != 0,
    }
}

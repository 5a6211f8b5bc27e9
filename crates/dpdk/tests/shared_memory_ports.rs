//! Ports that another process, or here the same, shares memory with.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use anchorline_dpdk::{CpuRests, Manner, Port, PortConfig, Rests};
use common::traffic::{close_memif, exchange, exchange_long};
use common::{eal, open, pool};
use std::time::{Duration, Instant};

#[test]
fn memif_carries_packets() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("memif.sock");
    let pool = pool();
    let device = |n, role| format!("net_memif{n},role={role},socket={},socket-abstract=no", socket.display());
    let (mut a, mut b) = (open(&device(0, "server"), &pool), open(&device(1, "client"), &pool));
    exchange(&pool, &mut a, &mut b, 8);
    close_memif(a, b);
    assert_eq!(pool.in_use(), 0);
}

/// The driver says 1,500 of itself; users' packets of that length come in tunnels.
#[test]
fn memif_carries_what_packets_have_room_for() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("long.sock");
    let pool = pool();
    let config = |n, role, mtu| {
        let device = format!("net_memif{n},role={role},socket={},socket-abstract=no", socket.display());
        PortConfig { mtu, ..PortConfig::new(&device) }
    };
    let open = |n, role| Port::open(eal(), &config(n, role, 2_026), &pool).unwrap();
    let (mut a, mut b) = (open(2, "server"), open(3, "client"));
    exchange_long(&pool, [&mut a, &mut b], 14 + 2 * 4 + 2_026);
    let error = Port::open(eal(), &config(4, "client,id=1", 2_027), &pool).unwrap_err();
    assert!(error.to_string().ends_with(" to 2026 bytes do"), "{error}");
    close_memif(a, b);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn virtio_user_carries_packets_to_vhost() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("vhost.sock");
    let pool = pool();
    let mut vhost = open(&format!("net_vhost0,iface={}", socket.display()), &pool);
    let mut virtio = open(&format!("net_virtio_user0,path={}", socket.display()), &pool);
    exchange(&pool, &mut vhost, &mut virtio, 8);
    drop((virtio, vhost));
    assert_eq!(pool.in_use(), 0);
}

/// Drivers of two kinds: those that tell where the next packet is written, and those that do not.
#[test]
fn a_queue_says_whether_it_can_be_waited_on() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("monitored.sock");
    let pool = pool();
    let mut vhost = open(&format!("net_vhost1,iface={}", socket.display()), &pool);
    let mut virtio = open(&format!("net_virtio_user1,path={}", socket.display()), &pool);
    assert_eq!(virtio.take_rx_queues()[0].can_be_waited_on(), Ok(()));
    let mut null = open("net_null1", &pool);
    let error = null.take_rx_queues()[0].can_be_waited_on().unwrap_err().to_string();
    assert!(error.starts_with("device \"net_null1\" cannot be waited on: "), "{error}");
    // A rest that cannot wait for a packet is a rest all the same, on any CPU, and has an end.
    let queues = vhost.take_rx_queues();
    let start = Instant::now();
    Rests::new(Manner::Monitor, eal().tsc_hz()).rest(Duration::from_millis(20), queues.iter());
    let took = start.elapsed();
    let can = CpuRests::here().monitor && queues[0].can_be_waited_on().is_ok();
    assert!(took < Duration::from_secs(5) && (can || took >= Duration::from_millis(15)), "{took:?}");
    drop((queues, virtio, vhost, null));
    assert_eq!(pool.in_use(), 0);
}

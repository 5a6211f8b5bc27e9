//! Ports without a kernel or a wire: the null device, rings and the loopback.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use anchorline_dpdk::{Error, Mbuf, Port, PortConfig};
use common::traffic::{receive, send_all};
use common::{eal, open, pool};
use packet::Buffer;

#[test]
fn a_null_port_conserves_packets() {
    let pool = pool();
    let mut port = Port::open(eal(), &PortConfig::new("net_null0"), &pool).unwrap();
    let (mut rx, mut tx) = (port.take_rx_queues(), port.take_tx_queues());
    let mut packets = Vec::with_capacity(64);
    for _ in 0..1000 {
        assert_eq!(rx[0].receive(&mut packets, 64), 64);
        assert_eq!(tx[0].send(&mut packets), 64);
        assert!(packets.is_empty());
    }
    assert_eq!(pool.in_use(), 0);
    let stats = port.stats().unwrap();
    assert_eq!((stats.rx_packets, stats.tx_packets), (64_000, 64_000));
    let counter = port.counter();
    // Other tests do something about their ports meanwhile.
    let counted = std::iter::repeat_with(|| counter.stats()).find(Option::is_some);
    assert_eq!(counted.flatten(), Some(stats));
}

#[test]
fn receiving_stops_at_the_limit_and_keeps_what_was_there() {
    let pool = pool();
    let mut port = Port::open(eal(), &PortConfig::new("net_null1"), &pool).unwrap();
    let mut rx = port.take_rx_queues();
    let mut packets = vec![pool.packet(b"first").unwrap()];
    assert_eq!(rx[0].receive(&mut packets, 7), 7);
    assert_eq!((packets.len(), packets[0].data()), (8, &b"first"[..]));
    assert_eq!(rx[0].receive(&mut packets, 0), 0);
    Mbuf::free_all(&mut packets);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_loopback_carries_packets_intact_and_in_order() {
    let pool = pool();
    let (mut a, mut b) = Port::loopback(eal(), &pool, 2, 256).unwrap();
    let (mut tx, mut rx) = (a.take_tx_queues(), b.take_rx_queues());
    for queue in 0..2 {
        let mut packets: Vec<Mbuf> = (0..200u8).map(|n| pool.packet(&[n; 60]).unwrap()).collect();
        send_all(&mut tx[queue], &mut packets);
        let received = receive(&mut rx[queue], 200, |_| true);
        let numbers: Vec<u8> = received.iter().map(|packet| packet.data()[59]).collect();
        assert_eq!(numbers, (0..200).collect::<Vec<u8>>());
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn what_a_full_queue_does_not_take_stays_in_order() {
    let pool = pool();
    let (mut a, mut b) = Port::loopback(eal(), &pool, 1, 8).unwrap();
    let (mut tx, mut rx) = (a.take_tx_queues(), b.take_rx_queues());
    let mut packets: Vec<Mbuf> = (0..20u8).map(|n| pool.packet(&[n]).unwrap()).collect();
    assert_eq!(tx[0].send(&mut packets), 8);
    assert_eq!(
        packets.iter().map(|packet| packet.data()[0]).collect::<Vec<_>>(),
        (8..20).collect::<Vec<_>>()
    );
    assert_eq!(tx[0].send(&mut packets), 0);
    let received = receive(&mut rx[0], 8, |_| true);
    assert_eq!(
        received.iter().map(|packet| packet.data()[0]).collect::<Vec<_>>(),
        (0..8).collect::<Vec<_>>()
    );
}

#[test]
fn packets_that_wait_in_a_closed_loopback_go_home() {
    let pool = pool();
    let (mut a, b) = Port::loopback(eal(), &pool, 1, 64).unwrap();
    let mut packets = Vec::new();
    pool.alloc_bulk(&mut packets, 32).unwrap();
    assert_eq!(a.take_tx_queues()[0].send(&mut packets), 32);
    drop((a, b));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_ring_port_receives_what_it_sends() {
    let pool = pool();
    let mut port = Port::open(eal(), &PortConfig::new("net_ring0"), &pool).unwrap();
    let mut packets = vec![pool.packet(b"echo").unwrap()];
    send_all(&mut port.take_tx_queues()[0], &mut packets);
    let received = receive(&mut port.take_rx_queues()[0], 1, |_| true);
    assert_eq!(received[0].data(), b"echo");
}

#[test]
fn a_device_opens_again_once_it_is_closed() {
    let pool = pool();
    let config = PortConfig::new("net_null2");
    let port = Port::open(eal(), &config, &pool).unwrap();
    assert_eq!(
        Port::open(eal(), &config, &pool).unwrap_err(),
        Error::AlreadyOpen { device: "net_null2".into() }
    );
    drop(port);
    Port::open(eal(), &config, &pool).unwrap();
}

#[test]
fn limits_beyond_reason_do_no_harm() {
    let pool = pool();
    let mut port = open("net_null3", &pool);
    let mut packets = Vec::new();
    let received = port.take_rx_queues()[0].receive(&mut packets, usize::MAX);
    assert_eq!(received, packets.len());
    assert!(pool.alloc_bulk(&mut packets, usize::MAX).is_none());
}

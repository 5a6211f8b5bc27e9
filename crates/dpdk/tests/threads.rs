//! Threads of ours as workers, and packets that change threads.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use anchorline_dpdk::{Error, Mbuf, Port};
use common::{eal, pool};
use packet::Buffer;
use std::fs;
use std::thread;

const PACKETS: u32 = 200_000;

fn affinity() -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap().to_owned()
}

#[test]
fn starting_leaves_the_thread_its_cpus() {
    let before = affinity();
    let worker = eal().register_thread().unwrap();
    assert_eq!(affinity(), before);
    drop(worker);
    assert_eq!(affinity(), before);
}

#[test]
fn a_thread_is_a_worker_once_at_a_time() {
    let worker = eal().register_thread().unwrap();
    assert!(matches!(eal().register_thread().unwrap_err(), Error::Thread { .. }));
    drop(worker);
    eal().register_thread().map(drop).unwrap();
}

#[test]
fn two_workers_pass_packets_through_a_loopback() {
    let pool = pool();
    let (mut a, mut b) = Port::loopback(eal(), &pool, 1, 512).unwrap();
    let (mut tx, mut rx) = (a.take_tx_queues().remove(0), b.take_rx_queues().remove(0));
    let source = pool.clone();
    let sender = thread::spawn(move || {
        let _worker = eal().register_thread().unwrap();
        let mut packets: Vec<Mbuf> = Vec::new();
        for number in 0..PACKETS {
            packets.extend(source.packet(&number.to_be_bytes()));
            while packets.len() > 63 {
                tx.send(&mut packets);
            }
        }
        while !packets.is_empty() {
            tx.send(&mut packets);
        }
    });
    let receiver = thread::spawn(move || {
        let _worker = eal().register_thread().unwrap();
        let (mut packets, mut numbers) = (Vec::with_capacity(64), Vec::new());
        while numbers.len() < usize::try_from(PACKETS).unwrap() {
            rx.receive(&mut packets, 64);
            numbers
                .extend(packets.iter().map(|packet| u32::from_be_bytes(packet.data().try_into().unwrap())));
            Mbuf::free_all(&mut packets);
        }
        numbers
    });
    sender.join().unwrap();
    assert!(receiver.join().unwrap().into_iter().eq(0..PACKETS));
    assert_eq!(pool.in_use(), 0);
}

//! What one thread gets through each kind of port: packets of 64 and 1400 bytes from one to another and on, in
//! vectors of 64, on huge and on ordinary pages. As root: `cargo run --release -p anchorline-dpdk --example ports`
#![allow(clippy::unwrap_used, clippy::panic, reason = "it measures or says why it cannot")]

#[path = "../tests/common/mod.rs"]
mod common;

use anchorline_dpdk::{Eal, EalConfig, HugePages, Mbuf, Port, RxQueue, TxQueue};
use common::namespace::{in_namespace, quiet, veth};
use common::traffic::{close_memif, frame, is_ours, wait_for_links};
use common::{open, pool};
use packet::Buffer;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long each pair runs.
const TIME: Duration = Duration::from_millis(700);

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("huge") => measure(HugePages::Require),
        Some("ordinary") => measure(HugePages::Never),
        // DPDK starts once per process: one process each.
        _ => ["huge", "ordinary"].iter().for_each(|memory| {
            println!("{memory} pages: Mpackets/s received and percent lost, of 64 | 1400 bytes");
            Command::new(std::env::current_exe().unwrap()).arg(memory).status().unwrap();
        }),
    }
}

fn measure(huge_pages: HugePages) {
    match Eal::init(&EalConfig { memory_mb: 256, huge_pages, ..EalConfig::default() }) {
        Ok(eal) => {
            let _worker = eal.register_thread().unwrap();
            pair("ring", |pool| Port::loopback(eal, pool, 1, 1024).unwrap());
        }
        Err(error) => return println!("  {error}"),
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = |name: &str| folder.path().join(name).display().to_string();
    pair("memif", |pool| {
        let device =
            |n, role| format!("net_memif{n},role={role},socket={},socket-abstract=no", socket("memif"));
        (open(&device(0, "server"), pool), open(&device(1, "client"), pool))
    });
    pair("vhost - virtio_user", |pool| {
        let device = |driver: &str, key: &str| format!("{driver},{key}={}", socket("vhost"));
        (open(&device("net_vhost0", "iface"), pool), open(&device("net_virtio_user0", "path"), pool))
    });
    in_namespace(kernel_pairs);
}

fn kernel_pairs() {
    veth("p0", "p1");
    pair("af_packet - af_packet over veth", |pool| {
        (open("net_af_packet0,iface=p0", pool), open("net_af_packet1,iface=p1", pool))
    });
    pair("tap - af_packet", |pool| {
        let tap = open("net_tap0,iface=t0", pool);
        quiet("t0");
        (tap, open("net_af_packet2,iface=t0", pool))
    });
    veth("x0", "x1");
    pair("af_xdp - af_xdp over veth, copy mode", |pool| {
        (open("net_af_xdp0,iface=x0", pool), open("net_af_xdp1,iface=x1", pool))
    });
}

fn pair(what: &str, open: impl FnOnce(&anchorline_dpdk::Mempool) -> (Port, Port)) {
    let pool = pool();
    let (mut a, mut b) = open(&pool);
    wait_for_links([&a, &b]);
    let (mut a_tx, mut b_rx) = (a.take_tx_queues().remove(0), b.take_rx_queues().remove(0));
    let (mut a_rx, mut b_tx) = (a.take_rx_queues().remove(0), b.take_tx_queues().remove(0));
    // memif sends once its peer has looked.
    a_rx.receive(&mut Vec::new(), 64);
    b_tx.send(&mut Vec::new());
    let results: Vec<String> = [64, 1400]
        .iter()
        .map(|length| {
            let (received, lost) = run(&pool, (&mut a_tx, &mut b_rx), *length);
            format!("{received:6.3} {lost:5.1} %")
        })
        .collect();
    println!("  {}  {what}", results.join(" | "));
    drop((a_rx, a_tx, b_rx, b_tx));
    close_memif(a, b);
}

/// Mpackets/s received, and percent lost of what the device took.
fn run(pool: &anchorline_dpdk::Mempool, (tx, rx): (&mut TxQueue, &mut RxQueue), length: usize) -> (f64, f64) {
    let frame = frame(1, length);
    let (mut out, mut back) = (Vec::with_capacity(64), Vec::with_capacity(64));
    let (mut sent, mut received, start) = (0, 0, Instant::now());
    while start.elapsed() < TIME {
        if out.is_empty() && pool.alloc_bulk(&mut out, 64).is_some() {
            out.iter_mut().for_each(|packet| packet.append(length).unwrap().copy_from_slice(&frame));
        }
        sent += tx.send(&mut out);
        rx.receive(&mut back, 64);
        received += back.iter().filter(|packet| is_ours(packet)).count();
        Mbuf::free_all(&mut back);
    }
    let rate = received as f64 / start.elapsed().as_secs_f64() / 1e6;
    while start.elapsed() < TIME + Duration::from_millis(50) {
        rx.receive(&mut back, 64);
        received += back.iter().filter(|packet| is_ours(packet)).count();
        Mbuf::free_all(&mut back);
    }
    (rate, 100.0 * (1.0 - received as f64 / sent as f64))
}

//! The floor under everything: CPU cycles per packet of receiving, freeing and sending with nothing in between, with
//! and without huge pages. `cargo run --release -p anchorline-dpdk --example floor`

use anchorline_dpdk::{
    Eal, EalConfig, HugePages, Mbuf, Memory, Mempool, MempoolConfig, Port, PortConfig, tsc,
};
use packet::Buffer;
use std::error::Error;
use std::process::{Command, ExitCode};

/// Packets per vector.
const VECTOR: usize = 64;
/// Vectors per round, and rounds, of which the fastest counts: the machine is shared.
const VECTORS: usize = 20_000;
const ROUNDS: usize = 15;

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("huge") => measure(HugePages::Require),
        Some("ordinary") => measure(HugePages::Never),
        _ => return both(),
    };
    result.map_or_else(
        |error| {
            println!("  {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// DPDK starts once per process: one process each.
fn both() -> ExitCode {
    for memory in ["huge", "ordinary"] {
        println!("{memory} pages, cycles per packet, vectors of {VECTOR}:");
        let exe = std::env::current_exe().unwrap_or_default();
        if let Err(error) = Command::new(exe).arg(memory).status() {
            println!("  {error}");
        }
    }
    ExitCode::SUCCESS
}

fn measure(huge_pages: HugePages) -> Result<(), Box<dyn Error>> {
    let eal = Eal::init(&EalConfig { memory_mb: 256, huge_pages, ..EalConfig::default() })?;
    if let Memory::HugePages { reserved_pages, .. } = eal.memory() {
        println!("  ({reserved_pages} huge pages made for this, free again when it ends)");
    }
    without_worker(eal)?;
    let worker = eal.register_thread()?;
    as_worker(eal)?;
    drop(worker);
    Ok(eal.cleanup()?)
}

fn without_worker(eal: &Eal) -> Result<(), Box<dyn Error>> {
    let pool = Mempool::new(eal, MempoolConfig::default())?;
    let mut port = Port::open(eal, &PortConfig::new("net_null0"), &pool)?;
    let (mut rx, mut tx) = (port.take_rx_queues().remove(0), port.take_tx_queues().remove(0));
    report("receive, send; no worker", |packets| {
        rx.receive(packets, VECTOR);
        tx.send(packets);
    });
    Ok(())
}

fn as_worker(eal: &Eal) -> Result<(), Box<dyn Error>> {
    let pool = Mempool::new(eal, MempoolConfig::default())?;
    let mut port = Port::open(eal, &PortConfig::new("net_null0"), &pool)?;
    let (mut rx, mut tx) = (port.take_rx_queues().remove(0), port.take_tx_queues().remove(0));
    report("receive, send", |packets| {
        rx.receive(packets, VECTOR);
        tx.send(packets);
    });
    report("receive, free", |packets| {
        rx.receive(packets, VECTOR);
        Mbuf::free_all(packets);
    });
    report("receive, free one by one", |packets| {
        rx.receive(packets, VECTOR);
        packets.clear();
    });
    report("receive, touch the first bytes, send", |packets| {
        rx.receive(packets, VECTOR);
        packets.iter().for_each(Buffer::prefetch_data);
        for packet in packets.iter_mut() {
            packet.data_mut().first_chunk_mut::<8>().into_iter().for_each(|head| head[0] ^= 1);
        }
        tx.send(packets);
    });
    through_many(eal, &pool)
}

/// A ring that holds the whole pool: every packet comes out of a cold cache, as from a NIC.
fn through_many(eal: &Eal, pool: &Mempool) -> Result<(), Box<dyn Error>> {
    let (mut a, mut b) = Port::loopback(eal, pool, 1, 8191)?;
    let (mut tx, mut rx) = (a.take_tx_queues().remove(0), b.take_rx_queues().remove(0));
    let mut packets = Vec::new();
    pool.alloc_bulk(&mut packets, 7000).ok_or("the pool is empty")?;
    packets.iter_mut().for_each(|packet| _ = packet.append(64));
    tx.send(&mut packets);
    report("7000 packets in a ring, touched", |packets| {
        rx.receive(packets, VECTOR);
        packets.iter().for_each(Mbuf::prefetch);
        packets.iter().for_each(Buffer::prefetch_data);
        for packet in packets.iter_mut() {
            packet.data_mut().first_chunk_mut::<8>().into_iter().for_each(|head| head[0] ^= 1);
        }
        tx.send(packets);
    });
    Ok(())
}

fn report(what: &str, mut vector: impl FnMut(&mut Vec<Mbuf>)) {
    let mut packets = Vec::with_capacity(VECTOR);
    let mut fastest = u64::MAX;
    for _ in 0..ROUNDS {
        let start = tsc();
        for _ in 0..VECTORS {
            vector(&mut packets);
            packets.clear();
        }
        fastest = fastest.min(tsc() - start);
    }
    println!("  {:6.1}  {what}", fastest as f64 / (VECTORS * VECTOR) as f64);
}

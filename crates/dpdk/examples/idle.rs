//! What it costs in latency, and saves in CPU time, that an idle worker rests: one packet at a time comes to a worker on
//! a CPU of its own, some hundred microseconds apart.
//!
//! `cargo run --release -p anchorline-dpdk --example idle`

use anchorline_dpdk::{Backoff, Eal, EalConfig, Idle, Mempool, MempoolConfig, Port, RxQueue, TxQueue, tsc};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use packet::Buffer;
use std::error::Error;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Packets of each way to be idle.
const PACKETS: u32 = 2_000;
/// Between two packets, in microseconds: from this, changing by up to as much again.
const GAP_US: u64 = 300;
/// The longest rests that are tried, in microseconds.
const LONGEST_US: [u64; 3] = [10, 50, 250];

fn main() -> Result<(), Box<dyn Error>> {
    let eal = Eal::init(&EalConfig { memory_mb: 128, ..EalConfig::default() })?;
    match anchorline_dpdk::light_sleep() {
        Ok(()) => println!("this CPU has a light sleep (WAITPKG or its like)"),
        Err(why) => println!("light sleep: {why}; `pause` repeats the PAUSE instruction"),
    }
    println!(
        "{:<8} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "idle", "longest us", "p50 us", "p90", "p99", "most", "CPU %"
    );
    let pool = Mempool::new(eal, MempoolConfig::default())?;
    one(eal, &pool, (Idle::Poll, 0))?;
    for longest_us in LONGEST_US {
        one(eal, &pool, (Idle::Pause, longest_us))?;
        one(eal, &pool, (Idle::Sleep, longest_us))?;
    }
    Ok(())
}

fn one(eal: &'static Eal, pool: &Mempool, (idle, longest_us): (Idle, u64)) -> Result<(), Box<dyn Error>> {
    let (mut near, mut far) = Port::loopback(eal, pool, 1, 1_023)?;
    let (mut tx, rx) = (near.take_tx_queues().remove(0), far.take_rx_queues().remove(0));
    let cpus = cpus();
    let backoff = Backoff::new(idle, Duration::from_micros(longest_us), eal.tsc_hz());
    let (tell, ready) = mpsc::channel();
    let cpu = cpus.last().copied();
    let worker = std::thread::spawn(move || {
        let pinned = pin(cpu);
        anchorline_dpdk::wake_on_time();
        // The sender waits for this: what it sends before the worker looks would count as waiting.
        let _ = tell.send(pinned);
        work(rx, backoff)
    });
    ready.recv()??;
    pin(cpus.first().copied())?;
    send(pool, &mut tx, eal.tsc_hz());
    let (mut waits, busy) = worker.join().map_err(|_| "the worker panicked")?;
    waits.sort_unstable();
    let us = |share: f64| {
        let at = ((waits.len() - 1) as f64 * share) as usize;
        waits.get(at).map_or(f64::NAN, |wait| *wait as f64 * 1e6 / eal.tsc_hz() as f64)
    };
    pin_to(&cpus)?;
    println!(
        "{:<8} {longest_us:>10} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.0}",
        format!("{idle:?}").to_lowercase(),
        us(0.5),
        us(0.9),
        us(0.99),
        us(1.0),
        busy * 100.0
    );
    Ok(())
}

/// Cycles from each packet's leaving to its being received, and the share of a CPU it took to wait for them.
fn work(mut rx: RxQueue, mut backoff: Backoff) -> (Vec<u64>, f64) {
    let (mut waits, mut packets) = (Vec::new(), Vec::with_capacity(64));
    let (start, busy) = (Instant::now(), cpu_time());
    while waits.len() < PACKETS as usize {
        let received = rx.receive(&mut packets, 64);
        let now = tsc();
        let sent = packets.iter().filter_map(|packet| packet.data().first_chunk());
        waits.extend(sent.map(|sent| now.saturating_sub(u64::from_le_bytes(*sent))));
        packets.clear();
        backoff.turn(received, 0);
    }
    (waits, (cpu_time() - busy).as_secs_f64() / start.elapsed().as_secs_f64())
}

fn send(pool: &Mempool, tx: &mut TxQueue, hz: u64) {
    let mut packets = Vec::new();
    for number in 0..u64::from(PACKETS) {
        // Any order will do that does not keep in step with the rests.
        let gap_us = GAP_US + number * 7_919 % GAP_US;
        let due = tsc() + gap_us * hz / 1_000_000;
        while tsc() < due {
            std::hint::spin_loop();
        }
        packets.extend(pool.packet(&tsc().to_le_bytes()));
        tx.send(&mut packets);
    }
}

fn cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return vec![] };
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

fn pin(cpu: Option<usize>) -> nix::Result<()> {
    cpu.map_or(Ok(()), |cpu| pin_to(&[cpu]))
}

fn pin_to(cpus: &[usize]) -> nix::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().try_for_each(|cpu| set.set(*cpu))?;
    sched_setaffinity(Pid::from_raw(0), &set)
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

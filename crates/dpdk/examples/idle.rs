//! What it costs in latency, and saves in CPU time, that an idle worker rests: one packet at a time comes to a worker on
//! a CPU of its own, some hundred microseconds apart. What there is not on this machine is said and left out. A wait for
//! a packet is measured on a ring in memory, if DPDK's driver for those tells where the next one is written, and lower
//! frequencies with packets that come after a calm. What they save in power a meter has to tell: CPU time is all the same
//! to a CPU that rests lightly.
//!
//! `cargo run --release -p anchorline-dpdk --example idle`

use anchorline_dpdk::{
    Backoff, Choice, CpuRests, Eal, EalConfig, Idle, Mempool, MempoolConfig, Port, Rests, RxQueue, TxQueue,
    tsc,
};
use host::{Ceiling, Facts, Pace, Root};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use packet::Buffer;
use std::error::Error;
use std::iter;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How packets come: so many, and so many microseconds between two, changing by up to as much again.
#[derive(Clone, Copy)]
struct Load {
    packets: u32,
    gap_us: u64,
}

const USUAL: Load = Load { packets: 2_000, gap_us: 300 };
/// After each packet the frequency has time to go down.
const RARE: Load = Load { packets: 200, gap_us: 40_000 };
/// When it does.
const CALM: Duration = Duration::from_millis(20);
/// The longest rests that are tried, in microseconds.
const LONGEST_US: [u64; 3] = [10, 50, 250];

/// What a worker does while no packet waits.
struct Way {
    name: &'static str,
    idle: Idle,
    longest_us: u64,
    pace: Option<Pace<Ceiling>>,
}

impl Way {
    fn new(name: &'static str, idle: Idle, longest_us: u64) -> Self {
        Self { name, idle, longest_us, pace: None }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let eal = Eal::init(&EalConfig { memory_mb: 128, ..EalConfig::default() })?;
    println!(
        "{:<8} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "idle", "longest us", "p50 us", "p90", "p99", "most", "CPU %"
    );
    let pool = Mempool::new(eal, MempoolConfig::default())?;
    one(eal, &pool, (Way::new("poll", Idle::Poll, 0), USUAL))?;
    for longest_us in LONGEST_US {
        one(eal, &pool, (Way::new("pause", Idle::Pause, longest_us), USUAL))?;
        one(eal, &pool, (Way::new("sleep", Idle::Sleep, longest_us), USUAL))?;
        one(eal, &pool, (Way::new("monitor", Idle::Monitor, longest_us), USUAL))?;
    }
    println!("\none packet every {} to {} ms:", RARE.gap_us / 1_000, RARE.gap_us / 500);
    one(eal, &pool, (Way::new("poll", Idle::Poll, 0), RARE))?;
    match ceiling() {
        Err(why) => println!("scale: not available here, because {why}"),
        Ok(ceiling) => {
            let pace = Some(Pace::new(ceiling, CALM));
            one(eal, &pool, (Way { pace, ..Way::new("scale", Idle::Scale, 0) }, RARE))?;
        }
    }
    Ok(())
}

/// Of the worker's CPU.
fn ceiling() -> Result<Ceiling, String> {
    let root = Root::system();
    let cpu = cpus().last().copied().ok_or("no CPU is known")?;
    Ceiling::of(&root, &Facts::read(&root).power, cpu, &std::env::temp_dir())
}

fn one(eal: &'static Eal, pool: &Mempool, (way, load): (Way, Load)) -> Result<(), Box<dyn Error>> {
    let (mut near, mut far) = Port::loopback(eal, pool, 1, 1_023)?;
    let (mut tx, rx) = (near.take_tx_queues().remove(0), far.take_rx_queues().remove(0));
    let (name, longest_us) = (way.name, way.longest_us);
    let Choice { manner, lacks } = Choice::of(way.idle, CpuRests::here(), &[rx.can_be_waited_on()]);
    if let Some(why) = lacks.as_ref().filter(|_| LONGEST_US.first() == Some(&longest_us)) {
        println!("{name}: {why}; in its place the worker {}", manner.does());
    }
    // What there is instead of a wait for packets has a line of its own.
    if lacks.is_some() && way.idle == Idle::Monitor {
        return Ok(());
    }
    let cpus = cpus();
    let (tell, ready) = mpsc::channel();
    let cpu = cpus.last().copied();
    let rests = Rests::new(manner, eal.tsc_hz());
    let worker = std::thread::spawn(move || {
        // A wait for packets is for registered threads alone.
        let registered = eal.register_thread();
        let pinned = pin(cpu);
        anchorline_dpdk::wake_on_time();
        // The sender waits for this: what it sends before the worker looks would count as waiting.
        let _ = tell.send(pinned);
        registered.map(|_worker| work(rx, (way, rests), load.packets))
    });
    ready.recv()??;
    pin(cpus.first().copied())?;
    send(pool, &mut tx, (load, eal.tsc_hz()));
    let (mut waits, busy) = worker.join().map_err(|_| "the worker panicked")??;
    waits.sort_unstable();
    let us = |share: f64| {
        let at = ((waits.len() - 1) as f64 * share) as usize;
        waits.get(at).map_or(f64::NAN, |wait| *wait as f64 * 1e6 / eal.tsc_hz() as f64)
    };
    pin_to(&cpus)?;
    println!(
        "{name:<8} {longest_us:>10} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.0}",
        us(0.5),
        us(0.9),
        us(0.99),
        us(1.0),
        busy * 100.0
    );
    Ok(())
}

/// Cycles from each packet's leaving to its being received, and the share of a CPU it took to wait for them.
fn work(mut rx: RxQueue, (mut way, rests): (Way, Rests), count: u32) -> (Vec<u64>, f64) {
    let mut backoff = Backoff::new(way.idle, Duration::from_micros(way.longest_us));
    let (mut waits, mut packets) = (Vec::new(), Vec::with_capacity(64));
    let (start, busy) = (Instant::now(), cpu_time());
    while waits.len() < count as usize {
        let received = rx.receive(&mut packets, 64);
        let now = tsc();
        let sent = packets.iter().filter_map(|packet| packet.data().first_chunk());
        waits.extend(sent.map(|sent| now.saturating_sub(u64::from_le_bytes(*sent))));
        packets.clear();
        if let Some(pace) = &mut way.pace
            && let Err(error) = pace.turn(start.elapsed().as_nanos() as u64, received > 0)
        {
            eprintln!("scale: {error}");
        }
        if let Some(rest) = backoff.turn(received, 0) {
            rests.rest(rest, iter::once(&rx));
        }
    }
    (waits, (cpu_time() - busy).as_secs_f64() / start.elapsed().as_secs_f64())
}

fn send(pool: &Mempool, tx: &mut TxQueue, (load, hz): (Load, u64)) {
    let mut packets = Vec::new();
    for number in 0..u64::from(load.packets) {
        // Any order will do that does not keep in step with the rests.
        let gap_us = load.gap_us + number * 7_919 % load.gap_us;
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

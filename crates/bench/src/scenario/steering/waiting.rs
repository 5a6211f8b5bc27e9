//! How long packets are under way below the full rate: open loop, each packet from the moment it was due.
//!
//! There is no CPU for a generator of its own: the workers that a card brings packets to take those that are due
//! before each turn. They lie in memory, so it costs them little, and the same in all modes.

use super::formation::{Formation, Grounds, done};
use super::team::{Team, together};
use crate::dock::{Dock, Ledger};
use crate::meter::Rack;
use crate::nic::Nic;
use crate::product::NOW_NS;
use crate::report::Latency;
use crate::setup::{N3, N6};
use anyhow::{Context, ensure};
use dataplane::Worker;
use dpdk::Mbuf;
use hdrhistogram::Histogram;
use packet::Buffer;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Packets of one run.
const PACKETS: usize = 32_768;
/// Where a frame keeps its number.
const TAIL: usize = 8;
/// Between laying out and the first packet, so that all workers are there.
const LEAD_IN_US: u64 = 50;
/// A worker that was away for longer was interrupted by other programs, and the run does not count.
const AWAY_US: u64 = 100;
/// A run takes no longer, or something is stuck.
const PATIENCE: Duration = Duration::from_secs(20);
/// Latencies above this count as this.
const LONGEST_S: u64 = 1;

/// What is due at one worker: number, port and packet.
type Due = VecDeque<(usize, usize, Mbuf)>;

/// One worker's part of a run.
#[derive(Default)]
struct Part {
    /// Cycles that packets were under way.
    waits: Vec<u64>,
    /// The packets, to be used again.
    back: Vec<Mbuf>,
    was_away: bool,
}

/// When packets are due, in cycles.
#[derive(Clone, Copy)]
struct Schedule {
    start: u64,
    interval: f64,
}

impl Schedule {
    fn time_of(&self, number: usize) -> u64 {
        self.start + (number as f64 * self.interval) as u64
    }
}

/// Offers `pps` packets a second, again and again for so long; returns the latency of runs in which nobody was away, and
/// how many were and were not.
///
/// # Errors
/// Packets that are missing; no run that counts.
pub(super) fn measure(
    team: &Team<'_>,
    formation: &mut Formation,
    rack: &mut Rack,
    (pps, duration): (f64, Duration),
) -> anyhow::Result<(Latency, [u32; 2])> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, team.hz * LONGEST_S, 3)?;
    let mut runs = [0, 0];
    let Formation { workers, grounds: Grounds { docks, ledger, nic, .. }, .. } = formation;
    let due: Vec<Mutex<Due>> = docks.iter().map(|_| Mutex::default()).collect();
    let schedule = Mutex::new(Schedule { start: 0, interval: team.hz as f64 / pps });
    let (start, most) = (Instant::now(), duration * 4);
    let work = |at: usize, worker: &mut Worker<Dock>| {
        let schedule = *schedule.lock().map_err(|_| anyhow::anyhow!("the schedule is gone"))?;
        let mut due =
            due.get(at).context("no such worker")?.lock().map_err(|_| anyhow::anyhow!("no packets"))?;
        let docks = docks.get(at).context("no such worker")?;
        Run { schedule, docks, ledger, hz: team.hz }.work(at, worker, &mut due)
    };
    together(team, workers, work, |step| {
        lay(&due, nic, rack)?;
        ledger.expect(PACKETS);
        if let Ok(mut schedule) = schedule.lock() {
            schedule.start = dpdk::tsc() + team.hz / 1_000_000 * LEAD_IN_US;
        }
        let parts = step()?;
        let was_away = parts.iter().any(|part| part.was_away);
        let mut back = 0;
        for part in parts {
            back += part.back.len();
            part.back.into_iter().for_each(|mbuf| rack.put(mbuf));
            if !was_away {
                part.waits.into_iter().for_each(|wait| histogram.saturating_record(wait));
            }
        }
        runs[usize::from(!was_away)] += 1;
        ensure!(back == PACKETS, "{PACKETS} packets went in and {back} came out");
        let elapsed = start.elapsed();
        Ok(elapsed >= most || (elapsed >= duration && runs[1] > 0))
    })?;
    ensure!(!histogram.is_empty(), "other programs took the CPUs in all {} runs", runs[0]);
    Ok((Latency::of(&histogram, team.hz as f64 / 1e6), runs))
}

fn lay(due: &[Mutex<Due>], nic: &Nic, rack: &mut Rack) -> anyhow::Result<()> {
    for number in 0..PACKETS {
        let (mut mbuf, up) = rack.next()?;
        let (worker, port) = (nic.queue(mbuf.data(), up), if up { N3 } else { N6 });
        let tail = mbuf.data_mut().last_chunk_mut::<TAIL>().context("a frame is too short")?;
        *tail = (number as u64).to_le_bytes();
        let queue = due.get(worker).context("no such queue")?;
        queue.lock().map_err(|_| anyhow::anyhow!("a worker panicked"))?.push_back((number, port, mbuf));
    }
    Ok(())
}

/// What one worker needs in a run.
struct Run<'a> {
    schedule: Schedule,
    docks: &'a [Dock; 2],
    ledger: &'a Ledger,
    hz: u64,
}

impl Run<'_> {
    fn work(&self, at: usize, worker: &mut Worker<Dock>, due: &mut Due) -> anyhow::Result<Part> {
        let mut part = Part::default();
        let (patience, away) = (Instant::now(), self.hz / 1_000_000 * AWAY_US);
        let (mut before, mut looks) = (dpdk::tsc(), 0u32);
        loop {
            let now = dpdk::tsc();
            part.was_away |= now > self.schedule.start && now.wrapping_sub(before) > away;
            before = now;
            self.release(due, now);
            if worker.turn(NOW_NS) > 0 {
                self.collect(&mut part)?;
                self.ledger.give(at, done(worker));
            } else if due.is_empty() && self.ledger.sums().1 >= self.ledger.expected() {
                return Ok(part);
            }
            looks = looks.wrapping_add(1);
            ensure!(!looks.is_multiple_of(1 << 20) || patience.elapsed() < PATIENCE, "a run does not end");
        }
    }

    /// What is due lies before the ports.
    fn release(&self, due: &mut Due, now: u64) {
        while due.front().is_some_and(|(number, ..)| self.schedule.time_of(*number) <= now) {
            let Some((_, port, mbuf)) = due.pop_front() else { return };
            if let Some(dock) = self.docks.get(port) {
                dock.quay().inbox.push_back(mbuf);
            }
        }
    }

    fn collect(&self, part: &mut Part) -> anyhow::Result<()> {
        let now = dpdk::tsc();
        for dock in self.docks {
            for mbuf in dock.quay().outbox.drain(..) {
                let tail = mbuf.data().last_chunk::<TAIL>().context("a packet came out cut short")?;
                let due = self.schedule.time_of(u64::from_le_bytes(*tail) as usize);
                part.waits.push(now.saturating_sub(due));
                part.back.push(mbuf);
            }
        }
        Ok(())
    }
}

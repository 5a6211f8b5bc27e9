//! `scaling`: one worker, two, and so on up to the CPUs there are; nothing shared, each behind a queue of its own.

use super::forward::Runnable;
use crate::contest::{Field, RUNNERS, Runner, Score};
use crate::crew::{Crew, Stints, guarded};
use crate::meter::Rack;
use crate::nic::{Hash, Nic};
use crate::plan::Plan;
use crate::product::{Memory, Population, Product};
use crate::replay::Replay;
use crate::report::Report;
use crate::spread::{Spread, rounded};
use crate::{contest, interrupt, machine};
use anyhow::{Context, anyhow};
use dpdk::Mempool;
use std::sync::mpsc;
use std::thread;

/// Packets in the pool of each worker.
const PACKETS: u32 = 65_535;

/// Memory of one worker: its pool, its sessions and those of the yardstick, with room to spare.
const WORKER_BYTES: u64 = 512 << 20;

/// Where one worker works.
struct Seat<'a> {
    memory: &'a Memory,
    pool: &'a Mempool,
    crew: &'a Crew,
    /// Of all workers together.
    plan: &'a Plan,
    nic: Nic,
    queue: usize,
    cpu: usize,
}

/// What one worker brings home.
struct Share {
    stints: Stints,
    report: Report,
}

/// A point for one worker, two, four and so on, and for as many as there are CPUs, as far as memory goes.
///
/// # Errors
/// Those of any worker.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let cpus = machine::cpus();
    let fitting = machine::available_bytes()? / WORKER_BYTES;
    let most = cpus.len().min(usize::try_from(fitting)?).max(1);
    let memory = Memory::new(most, PACKETS)?;
    let machine = machine::describe(memory.eal.tsc_hz());
    let sizes = sizes(most);
    let part = plan.for_one_of(sizes.len());
    let mut points: Vec<Report> = Vec::new();
    for workers in sizes {
        let spinner = contest::spinner(format!("{workers} workers"));
        match team(&memory, &part, &cpus[..workers]) {
            Err(_) if interrupt::asked() => break,
            point => points.push(point?),
        }
        spinner.finish_and_clear();
    }
    points.iter_mut().for_each(|point| point.machine = machine.clone());
    let mut whole = points.last().cloned().context("interrupted before there was anything to measure")?;
    whole.interrupted = interrupt::asked();
    whole.compared = points.iter().map(|point| point.compared).sum();
    whole.notes.extend(speedups(&points));
    if most < cpus.len() {
        whole.notes.push(format!("memory is enough for {most} workers, not for the {} CPUs", cpus.len()));
    }
    whole.points = points;
    Ok(whole)
}

/// Powers of two, and the most.
fn sizes(most: usize) -> Vec<usize> {
    let doubled = |workers: &usize| workers.checked_mul(2).filter(|next| *next < most);
    let mut sizes: Vec<usize> = std::iter::successors(Some(1), doubled).collect();
    if most > 1 {
        sizes.push(most);
    }
    sizes
}

fn speedups(points: &[Report]) -> Vec<String> {
    let total = |report: &Report, mpps: Option<f64>| f64::from(report.workers) * mpps.unwrap_or_default();
    let over_one = |point: &Report, pick: fn(&Report) -> Option<f64>| {
        let one = points.first().map_or(0.0, |one| total(one, pick(one)));
        total(point, pick(point)) / one
    };
    let say = |point: &Report| {
        format!(
            "{} workers carry {:.2} times as much as one; the bare loop {:.2} times",
            point.workers,
            over_one(point, |point| point.mpps_per_core),
            over_one(point, |point| point.bare_mpps_per_core),
        )
    };
    points.iter().skip(1).map(say).collect()
}

/// One worker on each of the CPUs.
fn team(memory: &Memory, plan: &Plan, cpus: &[usize]) -> anyhow::Result<Report> {
    let crew = Crew::new(cpus.len(), plan.duration);
    let nic = Nic::new(Hash::Inner, cpus.len());
    let seats = cpus.iter().zip(&memory.pools).enumerate().map(|(queue, (cpu, pool))| {
        let (crew, nic, cpu) = (&crew, nic.clone(), *cpu);
        Seat { memory, pool, crew, plan, nic, queue, cpu }
    });
    let shares = thread::scope(|scope| -> anyhow::Result<Vec<anyhow::Result<Share>>> {
        // They begin when all are there: one that could not be started would be waited for.
        let (mut starts, mut threads) = (Vec::new(), Vec::new());
        for seat in seats {
            let (start, started) = mpsc::channel::<()>();
            let name = format!("worker-{}", seat.queue);
            let body = move || {
                started.recv()?;
                seat.work()
            };
            threads.push(thread::Builder::new().name(name).spawn_scoped(scope, body)?);
            starts.push(start);
        }
        starts.iter().try_for_each(|start| start.send(()))?;
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("a worker panicked")))
        };
        Ok(threads.into_iter().map(join).collect())
    })?;
    combine(plan, &shares.into_iter().collect::<anyhow::Result<Vec<Share>>>()?, memory)
}

impl Seat<'_> {
    /// Whatever fails here, the others must not wait for us in vain: the crew is told.
    fn work(&self) -> anyhow::Result<Share> {
        let thread = machine::pin(self.cpu).and_then(|()| Ok(self.memory.eal.register_thread()?));
        let ready = thread.and_then(|thread| Ok((thread, guarded(|| self.runnable())?)));
        let (_thread, mut runnable) = match ready {
            Ok(ready) => ready,
            Err(error) => {
                self.crew.work::<Runnable>(&mut Err(anyhow!("not ready")));
                return Err(error);
            }
        };
        let mut field = guarded(|| self.field(&mut runnable));
        let stints = self.crew.work(&mut field);
        let compared = field?.sampler.compared();
        let hz = self.memory.eal.tsc_hz();
        let mut report = Report::new("scaling", self.plan, machine::describe(hz));
        let packets = stints.of[Runner::Product as usize].iter().map(|stint| stint.laid.packets).sum();
        runnable.account(&mut report, packets)?;
        report.compared = compared;
        Ok(Share { stints, report })
    }

    fn runnable(&self) -> anyhow::Result<Runnable> {
        let mut ports = [Replay::new(self.pool), Replay::new(self.pool)];
        let share = Some((self.nic.clone(), self.queue));
        let (sessions, pdrs) = (self.plan.profile.subscribers, self.plan.pdrs);
        let population =
            Population { sessions, pdrs, flows: self.plan.profile.flows, services: false, share };
        let product = Product::new(ports.clone(), &mut ports, self.pool, &population)?;
        Ok(Runnable::new(product, ports, self.memory.eal.tsc_hz()))
    }

    fn field<'b>(&self, runnable: &'b mut Runnable) -> anyhow::Result<Field<'b, Runnable>> {
        let workers = self.crew.workers();
        let rack = Rack::new(self.pool, self.plan)?.behind(self.nic.clone(), self.queue, workers);
        let ports = runnable.ports.clone();
        // The yardsticks have a line for each session and flow that comes to this worker.
        let own = self.plan.share_of_one(workers);
        let mut field = Field::with_rack((rack, self.pool), &own, ports, runnable)?;
        field.warm_up()?;
        field.product.warm();
        Ok(field)
    }
}

/// The figures of all workers together, for each of their cores.
fn combine(plan: &Plan, shares: &[Share], memory: &Memory) -> anyhow::Result<Report> {
    let first = shares.first().context("no worker")?;
    let mut score = Score::default();
    for runner in RUNNERS {
        let rounds = shares.iter().map(|share| share.stints.of[runner as usize].len()).min().unwrap_or(0);
        let times: Vec<f64> = (0..rounds).filter_map(|round| round_ns(shares, runner, round)).collect();
        let chunk = times.len().div_ceil(plan.trials as usize).max(1);
        let trials = times.chunks(chunk).filter_map(Spread::of).map(|trial| trial.median);
        score.times_ns[runner as usize] = trials.collect();
    }
    let cpu_shares = shares.iter().map(|share| share.stints.cpu_share);
    score.cpu_share = cpu_shares.fold(1.0, f64::min);
    let product = |share: &Share| share.stints.of[Runner::Product as usize].clone();
    let packets = |share: &Share| -> usize { product(share).iter().map(|stint| stint.laid.packets).sum() };
    score.laid = shares.iter().flat_map(product).fold(score.laid, |laid, stint| laid.and(stint.laid));
    // Nodes are those of the first.
    score.took = product(first).iter().fold(score.took, |took, stint| took.and(stint.took));
    let mut report = first.report.clone();
    report.score(&score, memory);
    report.workers = shares.len() as u32;
    report.compared = shares.iter().map(|share| share.report.compared).sum();
    let most = shares.iter().map(packets).max().unwrap_or(0) * shares.len();
    let surplus = rounded(most as f64 / score.laid.packets.max(1) as f64) - 1.0;
    report.notes = vec![format!(
        "a card's hash of the inner address (Toeplitz) spreads the packets; the busiest worker gets {:.1} % more than its share; nodes are those of worker 0",
        surplus * 100.0,
    )];
    Ok(report)
}

/// Nanoseconds for each packet, of each core: the slowest worker is waited for.
fn round_ns(shares: &[Share], runner: Runner, round: usize) -> Option<f64> {
    let stints = || shares.iter().filter_map(|share| share.stints.of[runner as usize].get(round));
    let longest = stints().map(|stint| stint.took.cpu).max()?;
    let packets: usize = stints().map(|stint| stint.laid.packets).sum();
    Some(longest.as_nanos() as f64 * shares.len() as f64 / packets.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::sizes;

    #[test]
    fn the_most_is_always_among_them() {
        for (most, expected) in [
            (1, vec![1]),
            (2, vec![1, 2]),
            (3, vec![1, 2, 3]),
            (8, vec![1, 2, 4, 8]),
            (12, vec![1, 2, 4, 8, 12]),
        ] {
            assert_eq!(sizes(most), expected);
        }
    }
}

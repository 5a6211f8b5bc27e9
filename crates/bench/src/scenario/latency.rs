//! `latency`: the rate without loss, and how long packets take at shares of it.

mod loads;

use crate::beside::Beside;
use crate::contest::Score;
use crate::gaps::GAP_US;
use crate::generator::Generator;
use crate::link::{DEPTH, End, pair};
use crate::meter::Rack;
use crate::plan::Plan;
use crate::product::{Memory, Population, Product, memory_use};
use crate::report::{Load, Report, nodes};
use crate::search::{Bench, Found};
use crate::spread::{Spread, rounded};
use crate::stand_in::StandIn;
use crate::station::Station;
use crate::{contest, interrupt, machine};
use anyhow::{Context, bail};
use dataplane::Counters;
use dpdk::Mempool;
use loads::{Loads, as_load};
use std::time::Duration;

/// Packets of each pool.
const PACKETS: u32 = 32_767;
/// Pools: the generator's, the worker's and the yardsticks'.
const POOLS: usize = 3;
/// A search that finds nothing at all counts as this, beside the bare loop.
const RATE_MIN_MPPS: f64 = 1e-3;
/// The load whose latency stands for the whole.
const USUAL: f64 = 0.5;
/// Of the duration, for the searches; the rest is for the loads.
const SEARCH_SHARE: f64 = 0.55;
/// Of the duration, for the yardsticks: a stretch after each search.
const YARDSTICK_SHARE: f64 = 0.1;
/// Trials of one search, the first and those that are repeated included, on average.
const TRIALS_OF_SEARCH: u32 = 9;
/// No trial is longer.
const LONGEST_TRIAL: Duration = Duration::from_secs(10);
/// How long packets take at most that nobody waits for any more.
const SETTLE: Duration = Duration::from_millis(50);

/// Measures.
///
/// # Errors
/// One CPU alone; sessions not taken; packets wrong; books that do not balance.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let cpus = machine::cpus();
    let [generator, worker, ..] = cpus.as_slice() else {
        bail!("latency needs two CPUs, one for the generator and one for the worker; one can be used here");
    };
    let memory = Memory::new(POOLS, PACKETS)?;
    let mut report = Report::new("latency", plan, machine::describe(memory.eal.tsc_hz()));
    machine::pin(*generator)?;
    let _thread = memory.eal.register_thread()?;
    let before = machine::resident_bytes("self")?;
    let (mut bench, counted) = set_up(&memory, plan, *worker)?;
    report.memory = memory_use(before, &plan.profile)?;
    let (rates, score) = search(&mut bench, plan, memory.pools.last().context("no pool was made")?)?;
    let zero_loss = Spread::of(&rates).context("interrupted before a rate was found")?;
    let searched = std::mem::take(&mut bench.found);
    report.trials = rates.len() as u32;
    report.set_rate(zero_loss.median);
    report.cycles_per_packet = Some(rounded(bench.hz as f64 / zero_loss.median / 1e6));
    report.compare(&score, bench.hz);
    // As fast as it was ever seen to keep up: searches that were disturbed found less.
    let pace = bench.hz as f64 / (zero_loss.max * 1e6);
    let pool = memory.pools.get(1).context("no pool was made")?;
    let mut stand_in = StandIn::start((memory.eal, pool), *worker, (plan, pace))?;
    let length = plan.duration.mul_f64(1.0 - SEARCH_SHARE - YARDSTICK_SHARE);
    let (points, of_loads) =
        Loads { bench: &mut bench, stand_in: &mut stand_in, turns: plan.trials }.all(length, &report)?;
    report.points = points;
    stand_in.stop()?;
    if searched.generator_bound {
        // What was found is the generator's rate; `zero_loss_mpps` says how far it got.
        report.has_no_rate();
    }
    let usual = report.points.iter().find(|point| point.load.as_ref().is_some_and(|load| load.load == USUAL));
    report.latency_us = usual.and_then(|point| point.latency_us);
    let waits =
        usual.and_then(|point| point.load.as_ref()).map(|load| load.waits.clone()).unwrap_or_default();
    let whole = as_load(USUAL, searched.and(of_loads), bench.hz);
    report.load = Some(Load { zero_loss_mpps: Some(zero_loss), waits, ..whole });
    report.loss = Some(0.0);
    report.interrupted = interrupt::asked();
    account(&mut report, bench, &counted)?;
    report.notes = remarks(&report);
    Ok(report)
}

fn set_up(memory: &Memory, plan: &Plan, cpu: usize) -> anyhow::Result<(Bench, Counters)> {
    let [theirs, ours, _] = memory.pools.as_slice() else { bail!("{POOLS} pools are needed") };
    let (n3, far_n3) = pair(memory.eal, ours)?;
    let (n6, far_n6) = pair(memory.eal, ours)?;
    let mut far: [End; 2] = [far_n3, far_n6];
    let population = Population {
        sessions: plan.profile.subscribers,
        pdrs: plan.pdrs,
        flows: plan.profile.flows,
        services: false,
        share: None,
    };
    let product = Product::new([n3, n6], &mut far, theirs, &population)?;
    let counted = product.worker.counters().clone();
    let hz = memory.eal.tsc_hz();
    let generator = Generator::new(far, theirs, plan, hz)?;
    let station = Station::start(memory.eal, product, cpu)?;
    Ok((Bench { generator, station, hz, found: Found::default() }, counted))
}

/// The rates found, and their times beside the yardsticks', which run between the searches where the generator does.
fn search(bench: &mut Bench, plan: &Plan, pool: &Mempool) -> anyhow::Result<(Vec<f64>, Score)> {
    let length = plan.duration.mul_f64(SEARCH_SHARE) / (plan.trials * TRIALS_OF_SEARCH);
    let bar = contest::progress(plan.duration, "searching the rate without loss");
    let mut rates = Vec::new();
    let mut rack = Rack::new(pool, plan)?;
    let mut beside = Beside::new(plan, pool, &mut rack)?;
    for search in 0..plan.trials {
        if interrupt::asked() {
            break;
        }
        rates.push(rounded(bench.zero_loss(length.min(LONGEST_TRIAL))? / 1e6));
        beside.stretch(&mut rack, plan.duration.mul_f64(YARDSTICK_SHARE) / plan.trials)?;
        bar.set_position(u64::from(search + 1) * (length * TRIALS_OF_SEARCH).as_millis() as u64);
    }
    bar.finish_and_clear();
    let score = beside.score(&rates.iter().map(|mpps| 1e3 / mpps.max(RATE_MIN_MPPS)).collect::<Vec<f64>>());
    Ok((rates, score))
}

/// Stops the worker, and compares its books with the generator's.
///
/// # Errors
/// A packet is on one side only.
fn account(report: &mut Report, mut bench: Bench, before: &Counters) -> anyhow::Result<()> {
    // What is under way comes through before the worker stops.
    std::thread::sleep(SETTLE);
    bench.generator.empty()?;
    let product = bench.station.stop()?;
    bench.generator.empty()?;
    let (books, before_books) = (product.worker.books(), before.books());
    let (received, sent) = (books.received - before_books.received, books.sent - before_books.sent);
    let generator = &bench.generator;
    if !books.balanced() || received != generator.given || sent != generator.back {
        bail!(
            "the books do not balance: the generator sent {} and got back {}, the worker says {books:?}, before {before_books:?}",
            generator.given,
            generator.back,
        );
    }
    report.balanced = true;
    report.points.iter_mut().for_each(|point| point.balanced = true);
    report.compared = generator.sampler.compared();
    report.nodes = nodes(product.worker.counters(), before);
    Ok(())
}

/// What a reader must know.
fn remarks(report: &Report) -> Vec<String> {
    let Some(load) = &report.load else { return vec![] };
    let mut notes = vec![
        format!(
            "one thread generates and receives, one works; between them are rings of {DEPTH} packets; latency is from \
             when a packet was due to when the generator had it back, its own polling included"
        ),
        "rate without loss: halving, 8 trials a search, not one packet lost in a trial".to_owned(),
        "floor and bare loop run on the generator's CPU, between the searches, over packets of the same traffic; the ratio \
         is the rate without loss over the bare loop's: it has the rings and the search in it"
            .to_owned(),
    ];
    if load.generator_bound {
        notes.push(
            "the generator was the bottleneck: the engine can do more than the rate that was reached, which is therefore \
             not given for the engine's; latencies of loads the generator could not offer are not given either"
                .to_owned(),
        );
    }
    if load.worker_away.max(load.generator_away) > 0.0 {
        notes.push(format!(
            "the threads were not always running: the worker was away for {:.1} % of the time, {:.0} us at the longest, \
             the generator for {:.1} %, {:.0} us; absences of less than {GAP_US} us do not count; {} trials with loss \
             and such an absence were repeated",
            load.worker_away * 100.0,
            load.worker_gap_us,
            load.generator_away * 100.0,
            load.generator_gap_us,
            load.void_trials,
        ));
    }
    notes
}

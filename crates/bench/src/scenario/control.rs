//! `control`: what changes of sessions cost the worker that forwards meanwhile.
//!
//! Rounds without changes and rounds with them take turns. Orders are given before a round, not timed; the worker obeys
//! them in it, as it would those of a control side on another CPU. In further rounds each turn of the worker is timed,
//! and orders are given between turns, as they come: by so much longer a packet may wait.

use super::forward::{PACKETS, Runnable, stage};
use crate::contest::{Field, Runner, Score, progress};
use crate::interrupt;
use crate::machine::cpu_time;
use crate::plan::Plan;
use crate::product::Memory;
use crate::report::{Control, Report, TurnLengths};
use crate::spread::{Spread, middle, rounded};
use anyhow::Context;
use hdrhistogram::Histogram;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::time::{Duration, Instant};

/// Changes a second of time the worker runs.
const CHANGES_PER_S: u32 = 10_000;

/// Nanoseconds a packet, by trial, without changes; of yardsticks and worker with them.
#[derive(Default)]
struct Times {
    quiet: Vec<f64>,
    score: Score,
    /// How long turns took, by trial: without changes, and with them.
    turns: [Vec<TurnLengths>; 2],
}

/// How long turns of the worker took in a trial, in nanoseconds: without changes, and with them.
type Turns = [Histogram<u64>; 2];

/// Digits of a turn's length that count.
const DIGITS: u8 = 3;

/// Who runs in turns, and whether sessions change meanwhile.
const TURNS: [(Runner, bool); 4] =
    [(Runner::Floor, false), (Runner::Bare, false), (Runner::Product, false), (Runner::Product, true)];

/// Measures.
///
/// # Errors
/// Sessions or changes that are not taken, packets that are missing or wrong.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let memory = Memory::new(1, PACKETS)?;
    let _thread = memory.eal.register_thread()?;
    let (mut report, mut runnable) = stage((&memory, memory.pool()?), plan, "control")?;
    let ports = runnable.ports.clone();
    let mut field = Field::new(memory.pool()?, plan, ports, &mut runnable)?;
    field.warm_up()?;
    field.product.warm();
    let mut changer = Changer::new(plan)?;
    let times = changer.take_turns(&mut field, plan)?;
    report.compared = field.sampler.compared();
    let packets = changer.packets;
    runnable.account(&mut report, packets)?;
    let changed = &times.score.times_ns[Runner::Product as usize];
    let ratios: Vec<f64> = times.quiet.iter().zip(changed).map(|(quiet, changed)| quiet / changed).collect();
    let ratio_to_quiet = Spread::of(&ratios).context("interrupted before there was anything to report")?;
    report.score(&times.score, &memory);
    report.control = Some(control(ratio_to_quiet, &times.turns).context("no turn was timed")?);
    report.notes.push(
        "the rate, and its ratio to the bare loop, are those of rounds with changes; nodes are those of all rounds"
            .to_owned(),
    );
    report.notes.push("any of the subscribers' sessions is changed, most of which are idle".to_owned());
    Ok(report)
}

fn control(ratio_to_quiet: Spread, [quiet, changed]: &[Vec<TurnLengths>; 2]) -> Option<Control> {
    let longer: Vec<f64> =
        changed.iter().zip(quiet).map(|(one, other)| one.p99_9_us - other.p99_9_us).collect();
    Some(Control {
        changes_per_s: CHANGES_PER_S,
        ratio_to_quiet,
        quiet_turn: middle(quiet, |turn| turn.p99_9_us)?,
        changed_turn: middle(changed, |turn| turn.p99_9_us)?,
        longer_p99_9_us: Spread::of(&longer),
    })
}

fn lengths(turns: &Histogram<u64>) -> TurnLengths {
    let us = |quantile| rounded(turns.value_at_quantile(quantile) as f64 / 1e3);
    TurnLengths { p50_us: us(0.5), p99_us: us(0.99), p99_9_us: us(0.999) }
}

/// Changes any session, whichever: most are idle, as in a network.
struct Changer {
    random: Pcg64,
    sessions: u32,
    pdrs: u32,
    /// Of the session changed last.
    revision: u64,
    /// Time run with changes that were not given yet.
    owed: Duration,
    packets: usize,
    turns: Turns,
}

impl Changer {
    fn new(plan: &Plan) -> anyhow::Result<Self> {
        Ok(Self {
            random: Pcg64::seed_from_u64(plan.seed),
            sessions: plan.profile.subscribers,
            pdrs: plan.pdrs,
            revision: 1,
            owed: Duration::ZERO,
            packets: 0,
            turns: [Histogram::new(DIGITS)?, Histogram::new(DIGITS)?],
        })
    }

    fn take_turns(&mut self, field: &mut Field<'_, Runnable>, plan: &Plan) -> anyhow::Result<Times> {
        let bar = progress(plan.duration, "rounds without changes and with them");
        let (mut times, start, busy) = (Times::default(), Instant::now(), cpu_time());
        for _ in 0..plan.trials {
            let [floor, bare, quiet, changed] = self.trial(field, (plan.trial(), &mut times.score))?;
            let median = |rounds: &[f64]| Spread::of(rounds).map(|spread| spread.median);
            times.quiet.extend(median(&quiet));
            for (all, turns) in times.turns.iter_mut().zip(&mut self.turns) {
                all.push(lengths(turns));
                turns.clear();
            }
            for (all, one) in times.score.times_ns.iter_mut().zip([floor, bare, changed]) {
                all.extend(median(&one));
            }
            bar.set_position(start.elapsed().as_millis() as u64);
            if interrupt::asked() {
                break;
            }
        }
        let busy = cpu_time().saturating_sub(busy);
        times.score.cpu_share = rounded(busy.as_secs_f64() / start.elapsed().as_secs_f64());
        times.score.interrupted = interrupt::asked();
        bar.finish_and_clear();
        Ok(times)
    }

    /// Nanoseconds a packet of every round of the yardsticks, of the worker without changes and with them.
    fn trial(
        &mut self,
        field: &mut Field<'_, Runnable>,
        (length, score): (Duration, &mut Score),
    ) -> anyhow::Result<[Vec<f64>; 4]> {
        let (mut times, start): ([Vec<f64>; 4], _) = (Default::default(), Instant::now());
        while start.elapsed() < length && !interrupt::asked() {
            for (turn, times) in TURNS.into_iter().zip(&mut times) {
                let (runner, with) = turn;
                if with {
                    self.change(field.product)?;
                }
                let (run, took) = field.round(runner)?;
                if runner == Runner::Product {
                    (score.laid, score.took) = (score.laid.and(run), score.took.and(took));
                    self.packets += run.packets;
                }
                self.owed += if with { took.cpu } else { Duration::ZERO };
                times.push(took.cpu.as_nanos() as f64 / run.packets.max(1) as f64);
            }
            for with in [false, true] {
                self.time_turns(field, with)?;
            }
        }
        Ok(times)
    }

    /// A round of the worker, each turn of which is timed; with changes, those are given between turns.
    fn time_turns(&mut self, field: &mut Field<'_, Runnable>, with: bool) -> anyhow::Result<()> {
        let laid = field.lay(Runner::Product)?;
        while let Some(took) = field.product.turn() {
            let [quiet, changed] = &mut self.turns;
            let lengths = if with { changed } else { quiet };
            lengths.record(took.as_nanos() as u64)?;
            if with {
                self.owed += took;
                self.change(field.product)?;
            }
        }
        self.packets += laid.packets;
        field.take_back(Runner::Product, laid)
    }

    /// Orders the changes that the rounds so far have earned; the worker will obey them.
    fn change(&mut self, runnable: &mut Runnable) -> anyhow::Result<()> {
        runnable.product.settled()?;
        let each = Duration::from_secs(1) / CHANGES_PER_S;
        while let Some(owed) = self.owed.checked_sub(each) {
            self.owed = owed;
            self.revision += 1;
            let number = self.random.random_range(0..self.sessions.max(1));
            runnable.product.change(number, self.revision, self.pdrs)?;
        }
        Ok(())
    }
}

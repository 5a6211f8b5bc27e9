//! Floor, bare loop and product in turns, in one process, over the same packets.

use crate::expected;
use crate::interrupt;
use crate::machine::cpu_time;
use crate::meter::{Laid, Rack, Took, timed};
use crate::plan::Plan;
use crate::replay::Replay;
use crate::sample::Sampler;
use crate::setup::PDRS_MIN;
use crate::spread::{Spread, rounded};
use crate::yardstick::Yardstick;
use dpdk::Mempool;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Who runs, in the order they run in.
pub(crate) const RUNNERS: [Runner; 3] = [Runner::Floor, Runner::Bare, Runner::Product];

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// The port and the packets alone.
    Floor,
    /// And the memory a user plane cannot avoid.
    Bare,
    /// The shipped worker.
    Product,
}

/// Rounds the yardsticks run before any is counted: their memory is touched then.
const WARM_UP: u32 = 8;
/// What runs the packets that lie before the ports.
pub(crate) trait Worker {
    /// Runs all of them.
    fn run(&mut self);

    /// Whatever must be done between rounds.
    ///
    /// # Errors
    /// It could not be done.
    fn rest(&mut self, pool: &Mempool) -> anyhow::Result<()>;
}

/// Everything a round needs.
pub(crate) struct Field<'a, W> {
    pub(crate) ports: [Replay; 2],
    pub(crate) rack: Rack,
    pub(crate) yardstick: Yardstick,
    pub(crate) product: &'a mut W,
    pub(crate) sampler: Sampler,
    pub(crate) pool: Mempool,
}

impl<'a, W: Worker> Field<'a, W> {
    /// With all packets of a pool.
    ///
    /// # Errors
    /// The pool is in use, or there is no memory for the yardsticks.
    pub(crate) fn new(
        pool: &Mempool,
        plan: &Plan,
        ports: [Replay; 2],
        product: &'a mut W,
    ) -> anyhow::Result<Self> {
        let rack = Rack::new(pool, plan)?;
        Self::with_rack((rack, pool), plan, ports, product)
    }

    /// With packets that are laid out in another way.
    ///
    /// # Errors
    /// There is no memory for the yardsticks.
    pub(crate) fn with_rack(
        (rack, pool): (Rack, &Mempool),
        plan: &Plan,
        ports: [Replay; 2],
        product: &'a mut W,
    ) -> anyhow::Result<Self> {
        // Services change nothing about what becomes of a packet.
        let pdrs = if plan.services { PDRS_MIN } else { plan.pdrs };
        let sampler = Sampler::new(expected::reference(pdrs)?);
        let (yardstick, pool) = (Yardstick::new(plan)?, pool.clone());
        Ok(Self { ports, rack, yardstick, product, sampler, pool })
    }

    /// One round; returns what was run and what it took.
    ///
    /// # Errors
    /// Packets that are missing or wrong.
    pub(crate) fn round(&mut self, runner: Runner) -> anyhow::Result<(Laid, Took)> {
        let laid = self.lay(runner)?;
        let took = timed(|| self.run(runner));
        self.take_back(runner, laid)?;
        Ok((laid, took))
    }

    /// Its first part: packets lie before the ports.
    pub(crate) fn lay(&mut self, runner: Runner) -> anyhow::Result<Laid> {
        let sampler = (runner == Runner::Product).then_some(&mut self.sampler);
        self.rack.lay(&self.ports, sampler)
    }

    /// Its second part, which is timed.
    pub(crate) fn run(&mut self, runner: Runner) {
        match runner {
            Runner::Floor => self.yardstick.floor(&mut self.ports),
            Runner::Bare => self.yardstick.bare(&mut self.ports),
            Runner::Product => self.product.run(),
        }
    }

    /// Its third part: packets are counted and compared.
    pub(crate) fn take_back(&mut self, runner: Runner, laid: Laid) -> anyhow::Result<()> {
        let sampler = (runner == Runner::Product).then_some(&mut self.sampler);
        self.rack.take_back(&self.ports, laid, sampler)?;
        match runner {
            Runner::Product => self.product.rest(&self.pool),
            _ => Ok(()),
        }
    }

    /// Runs until every memory was touched and the product has met every flow each way: one that remembers flows is
    /// not measured before.
    ///
    /// # Errors
    /// Those of a round.
    pub(crate) fn warm_up(&mut self) -> anyhow::Result<()> {
        for _ in 0..WARM_UP {
            for runner in RUNNERS {
                self.round(runner)?;
            }
        }
        self.rack.meet();
        while self.rack.is_meeting() && !interrupt::asked() {
            self.round(Runner::Product)?;
        }
        Ok(())
    }

    /// Runs one trial: rounds of each runner in turns, one of each at least.
    ///
    /// # Errors
    /// Those of a round.
    pub(crate) fn trial(&mut self, plan: &Plan, score: &mut Score) -> anyhow::Result<()> {
        let (start, busy) = (Instant::now(), cpu_time());
        let mut times_ns: [Vec<f64>; 3] = Default::default();
        while times_ns[0].is_empty() || (start.elapsed() < plan.trial() && !interrupt::asked()) {
            for runner in RUNNERS {
                let (run, took) = self.round(runner)?;
                times_ns[runner as usize].push(took.cpu.as_nanos() as f64 / run.packets.max(1) as f64);
                if runner == Runner::Product {
                    score.laid = score.laid.and(run);
                    score.took = score.took.and(took);
                }
            }
        }
        score.add(&times_ns, (start.elapsed(), cpu_time() - busy));
        Ok(())
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    /// Nanoseconds of CPU time per packet of each runner, one value for each trial.
    pub(crate) times_ns: [Vec<f64>; 3],
    /// What the product ran.
    pub(crate) laid: Laid,
    /// What that took.
    pub(crate) took: Took,
    /// How long the trials took, and how long the measuring thread had a CPU meanwhile.
    pub(crate) lasted: Duration,
    pub(crate) busy: Duration,
    /// The share of the one in the other.
    pub(crate) cpu_share: f64,
    /// Not all trials were done.
    pub(crate) interrupted: bool,
}

impl Score {
    /// Adds a trial: nanoseconds per packet of every round of each runner; how long it took, and how much of that on a CPU.
    fn add(&mut self, rounds: &[Vec<f64>; 3], (lasted, busy): (Duration, Duration)) {
        for (all, rounds) in self.times_ns.iter_mut().zip(rounds) {
            all.extend(Spread::of(rounds).map(|spread| spread.median));
        }
        self.lasted += lasted;
        self.busy += busy;
        self.cpu_share = rounded(self.busy.as_secs_f64() / self.lasted.as_secs_f64());
    }

    /// Of a runner, in cycles per packet where `hz` make a second.
    pub(crate) fn spread(&self, runner: Runner, hz: u64) -> Spread {
        let cycles = self.times_ns[runner as usize].iter().map(|time_ns| time_ns * hz as f64 / 1e9);
        Spread::of(&cycles.collect::<Vec<_>>()).unwrap_or_default()
    }

    /// Product over bare loop, trial by trial: 1 would be logic that costs nothing.
    pub(crate) fn ratio(&self) -> Spread {
        let [_, bare, product] = &self.times_ns;
        let ratios: Vec<f64> = bare.iter().zip(product).map(|(bare, product)| bare / product).collect();
        Spread::of(&ratios).unwrap_or_default()
    }
}

/// Runs all trials after warming up; `warm` is called between the two. A trial's figure is the median of its rounds.
///
/// # Errors
/// Packets that are missing or wrong.
pub(crate) fn contest<W: Worker>(
    field: &mut Field<'_, W>,
    plan: &Plan,
    warm: impl FnOnce(&mut W),
    label: &'static str,
) -> anyhow::Result<Score> {
    let bar = progress(plan.duration, label);
    field.warm_up()?;
    warm(field.product);
    let mut score = Score::default();
    for _ in 0..plan.trials {
        score.interrupted = interrupt::asked();
        if score.interrupted {
            break;
        }
        field.trial(plan, &mut score)?;
        bar.set_position(score.lasted.as_millis() as u64);
    }
    bar.finish_and_clear();
    Ok(score)
}

/// A bar for something that takes about this long.
pub(crate) fn progress(duration: Duration, label: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {eta}");
    let bar = ProgressBar::new(duration.as_millis() as u64).with_message(label);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A sign of life for something of which nobody knows how long it takes.
pub(crate) fn spinner(label: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(label);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

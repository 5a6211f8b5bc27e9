//! `forward`: users' packets through session, PDR, QER gate and FAR, up and down.

use crate::clock::Clock;
use crate::contest::{Field, Worker, contest};
use crate::machine::{self, cpu_time};
use crate::misses::Misses;
use crate::plan::Plan;
use crate::product::{Memory, Population, Product, memory_use};
use crate::replay::Replay;
use crate::report::{Report, nodes};
use crate::setup::{self, Refusal};
use anyhow::bail;
use dataplane::Counters;
use dpdk::Mempool;
use std::time::Duration;

/// Packets in the pool: far more than are on their way, so that each is a stranger to the caches.
pub(crate) const PACKETS: u32 = 131_071;

/// The worker and its ports, which are empty when it has run.
pub(crate) struct Runnable {
    pub(crate) product: Product<Replay>,
    pub(crate) ports: [Replay; 2],
    misses: Misses,
    clock: Clock,
    /// When the measurement began.
    counted: Counters,
}

impl Worker for Runnable {
    fn run(&mut self) {
        self.misses.resume();
        while self.ports.iter().any(|port| !port.wire.borrow().inbox.is_empty()) {
            self.product.worker.turn(self.clock.now_ns());
        }
        self.misses.pause();
        self.clock.pause();
    }

    fn rest(&mut self, pool: &Mempool) -> anyhow::Result<()> {
        self.keep_company(pool)
    }
}

impl Runnable {
    pub(crate) fn new(product: Product<Replay>, ports: [Replay; 2], tsc_hz: u64) -> Self {
        let counted = product.worker.counters().clone();
        Self { product, ports, misses: Misses::new(), clock: Clock::new(tsc_hz), counted }
    }

    /// Runs one turn; the time it had a CPU, or `None` where nothing has come.
    pub(crate) fn turn(&mut self) -> Option<Duration> {
        if self.ports.iter().all(|port| port.wire.borrow().inbox.is_empty()) {
            return None;
        }
        let (now_ns, begun) = (self.clock.now_ns(), cpu_time());
        self.product.worker.turn(now_ns);
        let took = cpu_time().saturating_sub(begun);
        self.clock.pause();
        Some(took)
    }

    /// Lets the neighbours say that they are still there, before the worker asks them.
    ///
    /// # Errors
    /// There is no packet for that.
    pub(crate) fn keep_company(&mut self, pool: &Mempool) -> anyhow::Result<()> {
        if self.clock.is_time_to_meet() {
            self.product.meet_again(&mut self.ports, (pool, self.clock.now_ns()))?;
            self.clock.pause();
        }
        Ok(())
    }

    /// Between rounds, as [`Product::hear_out`].
    pub(crate) fn hear_out(&mut self) {
        self.product.hear_out(self.clock.now_ns());
        self.clock.pause();
    }

    /// The rules of all sessions refuse their users' packets from now on, by this revision.
    ///
    /// # Errors
    /// A session that is not taken; an interruption.
    pub(crate) fn refuse(
        &mut self,
        refusal: Refusal,
        (population, revision): (&Population, u64),
    ) -> anyhow::Result<()> {
        let now_ns = self.clock.now_ns();
        // However long it takes to order them all, no time passes.
        self.clock.pause();
        self.product.put_all(population, (revision, now_ns), |rules| setup::refuse(refusal, rules))
    }

    /// Time passes in which nothing comes.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.clock.pass(time);
    }

    /// What was before does not count.
    pub(crate) fn warm(&mut self) {
        self.counted = self.product.worker.counters().clone();
        self.misses = Misses::new();
    }

    /// Adds to the report what the worker counted while it ran `packets`.
    ///
    /// # Errors
    /// It has not sent all it received, or has dropped any: no packet of a measurement may end anywhere else.
    pub(crate) fn account(&mut self, report: &mut Report, packets: usize) -> anyhow::Result<()> {
        let (books, before) = (self.product.worker.books(), self.counted.books());
        let sent = books.sent - before.sent;
        if !books.balanced() || sent != packets as u64 || books.dropped != before.dropped {
            bail!("the books do not balance over {packets} packets: {books:?}, before {before:?}");
        }
        report.loss = Some(0.0);
        report.balanced = true;
        report.nodes = nodes(self.product.worker.counters(), &self.counted);
        report.cache_misses_per_packet = self.misses.per(packets);
        Ok(())
    }
}

/// Measures.
///
/// # Errors
/// Sessions that are not taken, packets that are missing or wrong.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let memory = Memory::new(1, PACKETS)?;
    let _thread = memory.eal.register_thread()?;
    let pool = memory.pool()?;
    let (mut report, mut runnable) = stage((&memory, pool), plan, "forward")?;
    let ports = runnable.ports.clone();
    let mut field = Field::new(pool, plan, ports, &mut runnable)?;
    let score = contest(&mut field, plan, Runnable::warm, "forward, bare and floor in turns")?;
    report.compared = field.sampler.compared();
    runnable.account(&mut report, score.laid.packets)?;
    report.score(&score, &memory);
    Ok(report)
}

/// A report without figures, and what they are measured on, with packets of a pool.
///
/// # Errors
/// Sessions that are not taken.
pub(crate) fn stage(
    (memory, pool): (&Memory, &Mempool),
    plan: &Plan,
    scenario: &str,
) -> anyhow::Result<(Report, Runnable)> {
    let before = machine::resident_bytes("self")?;
    let runnable = worker((memory, pool), &population(plan))?;
    let mut report = Report::new(scenario, plan, machine::describe(memory.eal.tsc_hz()));
    report.memory = memory_use(before, &plan.profile)?;
    Ok((report, runnable))
}

/// A worker with these sessions and packets of a pool.
///
/// # Errors
/// Sessions that are not taken.
pub(crate) fn worker(
    (memory, pool): (&Memory, &Mempool),
    population: &Population,
) -> anyhow::Result<Runnable> {
    let mut ports = [Replay::new(pool), Replay::new(pool)];
    let product = Product::new(ports.clone(), &mut ports, pool, population)?;
    Ok(Runnable::new(product, ports, memory.eal.tsc_hz()))
}

/// The sessions of one worker.
pub(crate) fn population(plan: &Plan) -> Population {
    Population {
        sessions: plan.profile.subscribers,
        pdrs: plan.pdrs,
        flows: plan.profile.flows,
        services: plan.services,
        share: None,
    }
}

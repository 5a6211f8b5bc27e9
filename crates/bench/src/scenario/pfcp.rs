//! `pfcp`: how fast sessions are set up, changed and ended, over UDP, by the shipped node with its database.

mod growth;

use crate::control::{Bare, Client, Node, Tally, Turn, WINDOW, deletion, establishment, modification};
use crate::first_touch::FirstTouch;
use crate::plan::Plan;
use crate::product::tsc_hz;
use crate::report::{Latency, PfcpCost, PfcpCosts, PfcpRates, Report};
use crate::spread::{Spread, rounded};
use crate::{contest, interrupt, machine};
use anyhow::Context;
use growth::{LastToFirst, Step};
use hdrhistogram::Histogram;
use pfcp::Message;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Sessions of the first step, which tells how many fit into the time.
const TRY: u32 = 200;
/// A client that is busy for more of the time is the bottleneck.
const CLIENT_BUSY: f64 = 0.95;
/// Sessions of a step of growth: these, or fewer where that makes fewer steps than so many.
const STEP: u32 = 100_000;
const STEPS: u32 = 10;
/// Establishments between two turns of the yardstick: little enough that the machine is as fast in both.
const BETWEEN: u32 = 5_000;
/// Requests of a turn of the yardstick, and for each establishment where it takes turns with them.
const BARE: u32 = 20_000;
const BARE_SHARE: f64 = 0.5;
/// Of the duration: establishments; the rest is for modifications and deletions.
const ESTABLISHING: f64 = 0.4;

/// Measures.
///
/// # Errors
/// The node does not start or does not answer.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let mut report = Report::new("pfcp", plan, machine::describe(tsc_hz()?));
    let cpus = machine::cpus();
    let (first, last) = (cpus.first().context("no CPU")?, cpus.last().context("no CPU")?);
    let memory = FirstTouch::measure().context("there is no memory")?;
    machine::pin(*first)?;
    let node = Node::start(plan.profile.subscribers)?;
    machine::pin(*last)?;
    // The control process has a CPU of its own, as the data path has in service.
    machine::pin_process(node.dpe, *last)?;
    let mut client = Client::associate(node.address)?;
    let mut bare = Bare::start(*first)?;
    let spinner = contest::spinner("sessions over PFCP".to_owned());
    let run = Run { node: &node, client: &mut client, bare: &mut bare, plan, beside: Beside::default() };
    let rates = run.run()?;
    spinner.finish_and_clear();
    report.sessions = client.seids.len() as u32;
    report.active = 0;
    report.flows = 0;
    report.interrupted = interrupt::asked();
    report.balanced = rates.failures == 0;
    report.notes = remarks(cpus.len(), rates.client_busy);
    report.notes.push(memory.text());
    report.pfcp = Some(rates);
    Ok(report)
}

fn remarks(cpus: usize, client_busy: f64) -> Vec<String> {
    let place = if cpus > 1 {
        "the control process has a CPU of its own, client and data plane share another"
    } else {
        "all share one CPU"
    };
    let mut notes = vec![
        format!(
            "one control plane over UDP on the loopback, {WINDOW} requests under way at once; {place}; each request is \
             applied by the data plane and written to the database before it is answered"
        ),
        "a session: a PDR and a FAR each way, a QER, a URR, its tunnel chosen by the user plane; the modification gives it \
         its downlink tunnel"
            .to_owned(),
        "CPU time is that of all threads of a process, in user mode and in the kernel; an answer's time is that from its request, as \
         first sent, and mostly waiting for those before it"
            .to_owned(),
        "bytes of a session are what the two processes grew by, tables made at the start not included".to_owned(),
        "bare is the same client with a thread that answers at once, without having read the request, on the control process's CPU; \
         no packets of users are sent"
            .to_owned(),
        format!(
            "the last third of the establishments is held against the first by the control process's CPU time, over that of a \
             bare answer of the same moments ({BARE_SHARE} for each session, in turns of {BETWEEN} sessions): by the clock, it \
             is as much the machine that is measured"
        ),
    ];
    if client_busy > CLIENT_BUSY {
        notes.push("the client was the bottleneck: the node can do more than the rates given".to_owned());
    }
    notes
}

/// Sessions, and how many of them make a part.
type Parts = (Range<u32>, u32);

/// Of the control plane engine and of the data plane engine.
fn since(after: [u64; 2], before: [u64; 2]) -> [u64; 2] {
    [0, 1].map(|at| after[at].saturating_sub(before[at]))
}

/// Of nanoseconds.
fn latency(waits: &Histogram<u64>) -> Latency {
    Latency::of(waits, 1e3)
}

/// Time of the yardstick, in which the client does not ask the node, and how long the client had a CPU in it.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    elapsed: Duration,
    busy: Duration,
}

struct Run<'a> {
    node: &'a Node,
    client: &'a mut Client,
    bare: &'a mut Bare,
    plan: &'a Plan,
    beside: Beside,
}

impl Run<'_> {
    fn run(mut self) -> anyhow::Result<PfcpRates> {
        let start = (Instant::now(), machine::cpu_time());
        let before = self.resident()?;
        let sessions = self.fitting()?;
        // Or its own table grows in the time of others.
        self.client.seids.reserve(sessions as usize);
        let step = sessions.div_ceil(STEPS).clamp(1, STEP);
        let mut bare = vec![self.bare_turn(BARE)?.rate];
        let (steps, establishment_cost) = self.grow((TRY..sessions, step))?;
        let last_to_first = LastToFirst::of(&steps);
        let after = self.resident()?;
        bare.push(self.bare_turn(BARE)?.rate);
        let known = |client: &Client, number: u32| client.seids.get(&number).copied();
        let all = (0..sessions, sessions.div_ceil(self.plan.trials).max(1));
        let (modifications, modification_cost) =
            self.phase(all.clone(), |client, number| Some(modification(number, known(client, number)?)))?;
        let (deletions, deletion_cost) =
            self.phase(all, |client, number| Some(deletion(known(client, number)?)))?;
        bare.push(self.bare_turn(BARE)?.rate);
        let there = (self.client.seids.len() as u64).max(1);
        let [cpe, dpe] = [0, 1].map(|at| after[at].saturating_sub(before[at]) / there);
        let Tally { failures, retransmissions, .. } = self.client.tally;
        Ok(PfcpRates {
            establishments_per_s: Spread::of(&steps.iter().map(Step::rate).collect::<Vec<_>>()),
            modifications_per_s: Spread::of(&modifications),
            deletions_per_s: Spread::of(&deletions),
            bare_per_s: Spread::of(&bare),
            last_to_first_cpu: last_to_first.map(|it| it.cpu),
            last_to_first_wall: last_to_first.map(|it| it.wall),
            growth: steps.iter().map(Step::told).collect(),
            cost: PfcpCosts {
                establishment: establishment_cost,
                modification: modification_cost,
                deletion: deletion_cost,
            },
            bytes_per_session: cpe + dpe,
            cpe_bytes_per_session: cpe,
            dpe_bytes_per_session: dpe,
            window: WINDOW as u32,
            retransmissions,
            failures,
            client_busy: self.client_busy(start),
        })
    }

    /// A turn of the yardstick, of so many requests.
    fn bare_turn(&mut self, requests: u32) -> anyhow::Result<Turn> {
        let (start, busy) = (Instant::now(), machine::cpu_time());
        let turn = self.bare.turn(requests)?;
        self.beside.elapsed += start.elapsed();
        self.beside.busy += machine::cpu_time().saturating_sub(busy);
        Ok(turn)
    }

    /// Since then, the share of the time with the node in which the client had work to do.
    fn client_busy(&self, (start, busy): (Instant, Duration)) -> f64 {
        let busy = machine::cpu_time().saturating_sub(busy).saturating_sub(self.beside.busy);
        let elapsed = start.elapsed().saturating_sub(self.beside.elapsed);
        rounded(busy.as_secs_f64() / elapsed.as_secs_f64())
    }

    /// Sessions that can be established in the time for it; those of the plan at most. The first are established here.
    fn fitting(&mut self) -> anyhow::Result<u32> {
        let start = Instant::now();
        self.client.all(0..TRY, |_, number| Some(establishment(number)))?;
        let each = start.elapsed().as_secs_f64() / f64::from(TRY);
        let fit = (self.plan.duration.as_secs_f64() * ESTABLISHING / each) as u32;
        let (least, most) = (TRY + self.plan.trials, self.plan.profile.subscribers);
        Ok(if self.plan.every_session { most.max(least) } else { fit.clamp(least, most.max(least)) })
    }

    /// Establishes sessions, in steps of so many each, in turns with the yardstick; fewer where it was interrupted. And what one
    /// costs.
    fn grow(&mut self, (sessions, part): Parts) -> anyhow::Result<(Vec<Step>, PfcpCost)> {
        self.client.waits.reset();
        let (mut steps, mut total) = (Vec::new(), [0; 2]);
        let before = self.client.tally.answered;
        for from in sessions.clone().step_by(part as usize) {
            let to = (from + part).min(sessions.end);
            let mut step = Step::default();
            for from in (from..to).step_by(BETWEEN as usize).take_while(|_| !interrupt::asked()) {
                let taken = self.take_turns(from..(from + BETWEEN).min(to), &mut step)?;
                total.iter_mut().zip(taken).for_each(|(total, ns)| *total += ns);
            }
            if !interrupt::asked() {
                steps.push(step);
            }
        }
        let answered = self.client.tally.answered - before;
        Ok((steps, self.cost(total, answered)))
    }

    /// Establishes sessions of a step, and lets the yardstick have its turn. How long the two processes had CPUs meanwhile:
    /// what they do behind their answers is of them, too.
    fn take_turns(&mut self, sessions: Range<u32>, step: &mut Step) -> anyhow::Result<[u64; 2]> {
        let (before, answered) = (self.cpu_ns()?, self.client.tally.answered);
        let rate = self.client.all(sessions.clone(), |_, number| Some(establishment(number)))?;
        let answered = (self.client.tally.answered - answered) as u32;
        let bare = (f64::from(sessions.end - sessions.start) * BARE_SHARE).ceil() as u32;
        step.bare(bare, self.bare_turn(bare)?);
        let taken = since(self.cpu_ns()?, before);
        step.established(sessions.end, (answered, rate), taken[0]);
        Ok(taken)
    }

    /// What a request costs of these, for which the two processes had CPUs for so long.
    fn cost(&self, cpu_ns: [u64; 2], answered: u64) -> PfcpCost {
        let [cpe_us, dpe_us] = cpu_ns.map(|ns| rounded(ns as f64 / answered.max(1) as f64 / 1e3));
        PfcpCost { cpe_us, dpe_us, answer_us: Some(latency(&self.client.waits)) }
    }

    /// The rates of the sessions' parts, of so many each, and what a request costs; fewer where it was interrupted.
    fn phase(
        &mut self,
        (sessions, part): Parts,
        request: impl Fn(&Client, u32) -> Option<Message>,
    ) -> anyhow::Result<(Vec<f64>, PfcpCost)> {
        let (before, answered) = (self.cpu_ns()?, self.client.tally.answered);
        self.client.waits.reset();
        let mut rates = Vec::new();
        for from in sessions.clone().step_by(part as usize) {
            if !interrupt::asked() {
                let rate = self.client.all(from..(from + part).min(sessions.end), &request)?;
                rates.push(rounded(rate));
            }
        }
        let (taken, answered) = (since(self.cpu_ns()?, before), self.client.tally.answered - answered);
        Ok((rates, self.cost(taken, answered)))
    }

    /// Of the control plane engine and of the data plane engine.
    fn cpu_ns(&self) -> anyhow::Result<[u64; 2]> {
        Ok([machine::process_cpu_ns(self.node.cpe)?, machine::process_cpu_ns(self.node.dpe)?])
    }

    /// Of the control plane engine and of the data plane engine, in bytes.
    fn resident(&self) -> anyhow::Result<[u64; 2]> {
        let of = |pid: u32| machine::resident_bytes(&pid.to_string());
        Ok([of(self.node.cpe)?, of(self.node.dpe)?])
    }
}

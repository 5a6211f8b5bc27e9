//! `pfcp`: how fast sessions are set up, changed and ended, over UDP, by the shipped node with its database.

use crate::control::{Bare, Client, Node, Tally, WINDOW, deletion, establishment, modification};
use crate::first_touch::FirstTouch;
use crate::plan::Plan;
use crate::product::tsc_hz;
use crate::report::{Latency, PfcpCost, PfcpCosts, PfcpGrowth, PfcpRates, Report};
use crate::spread::{Spread, rounded};
use crate::{contest, interrupt, machine};
use anyhow::Context;
use hdrhistogram::Histogram;
use pfcp::Message;
use std::ops::Range;
use std::time::Instant;

/// Sessions of the first step, which tells how many fit into the time.
const TRY: u32 = 200;
/// A client that is busy for more of the time is the bottleneck.
const CLIENT_BUSY: f64 = 0.95;
/// Sessions of a step of growth: these, or fewer where that makes fewer steps than so many.
const STEP: u32 = 100_000;
const STEPS: u32 = 10;
/// Requests of a turn of the yardstick.
const BARE: u32 = 20_000;
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
    let (start, busy) = (Instant::now(), machine::cpu_time());
    let mut rates = Run { node: &node, client: &mut client, bare: &mut bare, plan }.run()?;
    let busy = machine::cpu_time().saturating_sub(busy);
    rates.client_busy = rounded(busy.as_secs_f64() / start.elapsed().as_secs_f64());
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
    ];
    if client_busy > CLIENT_BUSY {
        notes.push("the client was the bottleneck: the node can do more than the rates given".to_owned());
    }
    notes
}

/// Sessions, and how many of them make a part.
type Parts = (Range<u32>, u32);

/// What rates mean by the sessions that were there.
fn growth((sessions, part): Parts, rates: &[f64]) -> Vec<PfcpGrowth> {
    let ends = sessions.clone().step_by(part as usize).map(|from| (from + part).min(sessions.end));
    let step = |(sessions, rate): (u32, &f64)| PfcpGrowth { sessions, establishments_per_s: *rate };
    ends.zip(rates).map(step).collect()
}

/// The rate over the last third of the steps by that over the first third: what keeps one of them waiting counts.
fn last_to_first(growth: &[PfcpGrowth]) -> Option<f64> {
    let starts = std::iter::once(TRY).chain(growth.iter().map(|step| step.sessions));
    let steps =
        starts.zip(growth).map(|(from, step)| (f64::from(step.sessions - from), step.establishments_per_s));
    let steps: Vec<(f64, f64)> = steps.collect();
    let third = (steps.len() / 3).max(1);
    let behind = steps.len().checked_sub(third).filter(|before| *before > 0)?;
    Some(rounded(rate(steps.get(behind..)?) / rate(steps.get(..third)?)))
}

/// Of steps, each a number of sessions and its rate.
fn rate(steps: &[(f64, f64)]) -> f64 {
    let sessions: f64 = steps.iter().map(|(sessions, _)| sessions).sum();
    sessions / steps.iter().map(|(sessions, rate)| sessions / rate).sum::<f64>()
}

/// Of nanoseconds.
fn latency(waits: &Histogram<u64>) -> Latency {
    let us = |ns: u64| rounded(ns as f64 / 1e3);
    let at = |quantile| us(waits.value_at_quantile(quantile));
    Latency { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: us(waits.max()) }
}

struct Run<'a> {
    node: &'a Node,
    client: &'a mut Client,
    bare: &'a mut Bare,
    plan: &'a Plan,
}

impl Run<'_> {
    fn run(mut self) -> anyhow::Result<PfcpRates> {
        let before = self.resident()?;
        let sessions = self.fitting()?;
        // Or its own table grows in the time of others.
        self.client.seids.reserve(sessions as usize);
        let step = sessions.div_ceil(STEPS).clamp(1, STEP);
        let mut bare = vec![self.bare.rate(BARE)?];
        let (rates, establishment_cost) =
            self.phase((TRY..sessions, step), |_, number| Some(establishment(number)))?;
        let growth = growth((TRY..sessions, step), &rates);
        let establishments = Spread::of(&rates);
        let after = self.resident()?;
        bare.push(self.bare.rate(BARE)?);
        let known = |client: &Client, number: u32| client.seids.get(&number).copied();
        let all = (0..sessions, sessions.div_ceil(self.plan.trials).max(1));
        let (modifications, modification_cost) =
            self.phase(all.clone(), |client, number| Some(modification(number, known(client, number)?)))?;
        let (deletions, deletion_cost) =
            self.phase(all, |client, number| Some(deletion(known(client, number)?)))?;
        bare.push(self.bare.rate(BARE)?);
        let there = (self.client.seids.len() as u64).max(1);
        let [cpe, dpe] = [0, 1].map(|at| after[at].saturating_sub(before[at]) / there);
        let Tally { failures, retransmissions, .. } = self.client.tally;
        Ok(PfcpRates {
            establishments_per_s: establishments,
            modifications_per_s: Spread::of(&modifications),
            deletions_per_s: Spread::of(&deletions),
            bare_per_s: Spread::of(&bare),
            last_to_first: last_to_first(&growth),
            growth,
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
            client_busy: 0.0,
        })
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
        let answered = (self.client.tally.answered - answered).max(1);
        let us =
            |after: u64, before: u64| rounded(after.saturating_sub(before) as f64 / answered as f64 / 1e3);
        let after = self.cpu_ns()?;
        let (cpe_us, dpe_us) = (us(after[0], before[0]), us(after[1], before[1]));
        let cost = PfcpCost { cpe_us, dpe_us, answer_us: Some(latency(&self.client.waits)) };
        Ok((rates, cost))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(steps: &[(u32, f64)]) -> Option<f64> {
        let step = |(sessions, establishments_per_s): &(u32, f64)| PfcpGrowth {
            sessions: *sessions,
            establishments_per_s: *establishments_per_s,
        };
        last_to_first(&steps.iter().map(step).collect::<Vec<_>>())
    }

    #[test]
    fn rates_are_told_by_the_sessions_there_were() {
        let told = growth((TRY..2_500, 1_000), &[3.0, 2.0, 1.0]);
        let told: Vec<_> = told.iter().map(|step| (step.sessions, step.establishments_per_s)).collect();
        assert_eq!(told, [(1_200, 3.0), (2_200, 2.0), (2_500, 1.0)]);
    }

    #[test]
    fn the_last_third_is_compared_with_the_first() {
        assert_eq!(of(&[(1_200, 4.0), (2_200, 3.0)]), Some(0.75));
        let steps = [8.0, 4.0, 9.0, 9.0, 3.0, 1.0];
        let steps: Vec<_> = (1..).zip(steps).map(|(number, rate)| (TRY + number * 1_000, rate)).collect();
        // 2,000 in 375 s, and in 1,333 s.
        assert_eq!(of(&steps), Some(0.281));
        // Of three steps one is a third.
        assert_eq!(of(&[(TRY + 300, 2.0), (TRY + 600, 2.0), (TRY + 700, 1.0)]), Some(0.5));
        assert_eq!(of(&[(1_200, 4.0)]), None);
        assert_eq!(of(&[]), None);
    }
}

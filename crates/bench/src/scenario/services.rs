//! `services`: what it costs to know what flows are about, and to bill each service on its own.
//!
//! Two workers have the same users: the sessions of one have two PDRs, those of the other PDRs for services besides, and
//! content rules. Both are given the same packets, of flows that begin, say what they are about and end, in turns.

use super::first_packets;
use super::forward::{PACKETS, Runnable, population};
use crate::contest::{Field, Runner, Score, Worker, progress, spinner};
use crate::interrupt;
use crate::machine;
use crate::meter::Rack;
use crate::plan::Plan;
use crate::product::{Memory, Population};
use crate::replay::Replay;
use crate::report::{AtFlowRate, Report, Services};
use crate::setup::{ENDPOINTS, PDRS_MIN};
use crate::spread::{Spread, rounded};
use anyhow::{Context, bail};
use dataplane::ContentCounts;
use dpdk::Mempool;
use indicatif::ProgressBar;
use std::time::Instant;
use traffic::{Flows, Profile, catalogue, openings};

/// Flows a worker remembers for each that is open: those that ended stay until they are old, as in a network.
const ROOM: u32 = 2;
/// Numbers of content rules that are measured before the one that is asked for.
const POINTS: [u32; 4] = [0, 100, 1_000, 10_000];
/// PDRs of a session, unless told: the usual two, and five services up and down.
pub(crate) const SERVICE_PDRS: u32 = PDRS_MIN + 10;
/// Share of the packets that open flows.
pub(crate) const SERVICE_OPENING: f64 = 0.10;
/// New flows a second that are asked of a worker. At 10 Mpps a tenth of the packets opens twice as many.
const FLOWS_PER_S: f64 = 100_000.0;
/// Packets before a point is measured, for each flow that is open: rules have changed, and flows are looked at anew.
const SETTLING: usize = 2;
/// One round of each runner at least, of the yardsticks too.
const SETTLING_TURN: u32 = 10;
/// Pools: of the worker without services, of the one with them, and of the yardsticks.
pub(super) const POOLS: usize = 3;

/// Measures over the number of content rules.
///
/// # Errors
/// Sessions or rules that are not taken, packets that are missing or wrong.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let memory = Memory::new(POOLS, PACKETS)?;
    let _thread = memory.eal.register_thread()?;
    let (points, at_flow_rate) = points(&memory, plan, ("services", Some(FLOWS_PER_S)))?;
    let last = points.last().cloned().context("nothing was measured")?;
    let services = last.services.clone().map(|services| Services { at_flow_rate, ..services });
    let mut report = Report { points, services, ..last };
    report.notes = notes(plan, &report.points);
    if !interrupt::asked() {
        report.classification = Some(first_packets::measure(plan)?);
    }
    report.interrupted = interrupt::asked();
    Ok(report)
}

/// The same sessions with PDRs for services, and flows that say what they are about.
pub(super) fn with_services(plan: &Plan) -> Plan {
    let profile = Profile { opening: SERVICE_OPENING, ..plan.profile };
    Plan { profile, pdrs: SERVICE_PDRS, services: true, ..plan.clone() }
}

/// A point for each number of content rules up to the plan's; and where so many new flows a second are asked for, the last one anew with
/// about as many.
///
/// # Errors
/// Sessions or rules that are not taken, packets that are missing or wrong; an interruption before there is a point.
pub(super) fn points(
    memory: &Memory,
    plan: &Plan,
    (scenario, flows_per_s): (&str, Option<f64>),
) -> anyhow::Result<(Vec<Report>, Option<AtFlowRate>)> {
    let plain = Plan { pdrs: PDRS_MIN, services: false, ..plan.clone() };
    let pools = memory.pools.get(..POOLS);
    let Some([first, second, third]) = pools else { bail!("{POOLS} pools were asked for") };
    let mut one = worker(memory, first, &plain)?;
    let mut other = worker(memory, second, plan)?;
    let mut idle = Idle;
    let (one_ports, other_ports) = (one.ports.clone(), other.ports.clone());
    let mut trio = Trio {
        plain: field((first, one_ports), &plain, &mut one)?,
        services: field((second, other_ports), plan, &mut other)?,
        yard: field((third, [Replay::new(third), Replay::new(third)]), &plain, &mut idle)?,
    };
    trio.fill(plan)?;
    let mut sizes: Vec<u32> = POINTS.into_iter().filter(|rules| *rules < plan.rules).collect();
    sizes.push(plan.rules);
    let part = plan.for_one_of(sizes.len());
    let mut points = vec![];
    for rules in sizes {
        match trio.point(memory, &Plan { rules, ..part.clone() }, scenario) {
            Err(_) if interrupt::asked() && !points.is_empty() => break,
            point => points.push(point?),
        }
        if interrupt::asked() {
            break;
        }
    }
    let last = points.last().zip(flows_per_s).filter(|_| !interrupt::asked());
    let at_flow_rate =
        match last.and_then(|(last, asked)| Some((last.services.as_ref()?.flows_per_s(), asked))) {
            Some((flows, asked)) if flows > asked => Some(trio.at_flow_rate(memory, &part, asked / flows)?),
            _ => None,
        };
    Ok((points, at_flow_rate))
}

/// What a reader must know of the points.
pub(super) fn notes(plan: &Plan, points: &[Report]) -> Vec<String> {
    let opening = plan.profile.opening * 100.0;
    let mut notes = vec![
        format!(
            "{opening:.0} % of the packets open flows: handshakes, first payloads, lookups; the others follow"
        ),
        format!(
            "a session has PDRs for {} of {} services, each with a URR",
            plan.pdrs.saturating_sub(PDRS_MIN) / 2,
            catalogue::SERVICES
        ),
        format!(
            "both workers' flow tables have room for {ROOM} flows for each that is open: ended ones stay until they are old"
        ),
        format!(
            "{} flows open at the same time, as in a network, where answers take milliseconds",
            openings(plan.profile.flows)
        ),
        "`forward` here is a worker whose sessions know of no services, over the same packets in turns"
            .to_owned(),
    ];
    notes.extend(flatness(points));
    notes
}

/// How much the number of rules matters: their cost must not grow with it.
fn flatness(points: &[Report]) -> Option<String> {
    let of = |point: &Report| Some((point.rules, point.services.as_ref()?.ratio_to_forward.median));
    let mut with_rules = points.iter().filter_map(of).filter(|(rules, _)| *rules > 0);
    let ((fewest, first), (most, last)) = (with_rules.next()?, with_rules.next_back()?);
    let none = points.iter().filter_map(of).find(|(rules, _)| *rules == 0);
    let change = |from: f64| (last / from - 1.0) * 100.0;
    let beside_none = none
        .map_or(String::new(), |(_, ratio)| format!(", and by {:+.1} % from that with none", change(ratio)));
    Some(format!(
        "the rate with {most} content rules, beside that of `forward` in the same turns, differs by {:+.1} % from that with \
         {fewest}{beside_none}; the more rules there are, the more flows turn out to be of an application",
        change(first)
    ))
}

fn worker(memory: &Memory, pool: &Mempool, plan: &Plan) -> anyhow::Result<Runnable> {
    let population = Population { flows: plan.profile.flows.saturating_mul(ROOM), ..population(plan) };
    super::forward::worker((memory, pool), &population)
}

fn field<'a, W: Worker>(
    (pool, ports): (&Mempool, [Replay; 2]),
    plan: &Plan,
    worker: &'a mut W,
) -> anyhow::Result<Field<'a, W>> {
    let flows = Flows::new(&plan.profile, ENDPOINTS, plan.seed)?.headers_only();
    let rack = Rack::new(pool, plan)?.living(flows);
    Field::with_rack((rack, pool), plan, ports, worker)
}

/// In the place of a worker beside the yardsticks.
struct Idle;

impl Worker for Idle {
    fn run(&mut self) {}

    fn rest(&mut self, _: &Mempool) -> anyhow::Result<()> {
        Ok(())
    }
}

/// The two workers and the yardsticks, each with the same stream of packets, so that none misses the beginning of a flow.
struct Trio<'a> {
    plain: Field<'a, Runnable>,
    services: Field<'a, Runnable>,
    yard: Field<'a, Idle>,
}

/// What both have done.
#[derive(Default)]
struct Scores {
    plain: Score,
    services: Score,
}

impl Trio<'_> {
    /// Opens as many flows as the profile says, and lets both know them.
    fn fill(&mut self, plan: &Plan) -> anyhow::Result<()> {
        fill(&mut self.plain, Runner::Product, plan)?;
        fill(&mut self.services, Runner::Product, plan)?;
        fill(&mut self.yard, Runner::Floor, plan)
    }

    /// With so many rules.
    fn point(&mut self, memory: &Memory, plan: &Plan, scenario: &str) -> anyhow::Result<Report> {
        self.services.product.product.load(plan.rules)?;
        self.settle(plan)?;
        self.plain.product.warm();
        self.services.product.warm();
        let (before, mut scores) = (self.counts(), Scores::default());
        let bar = progress(plan.duration, "forwarding and services in turns");
        let start = Instant::now();
        for _ in 0..plan.trials {
            self.turn(plan, &mut scores)?;
            bar.set_position(start.elapsed().as_millis() as u64);
            if interrupt::asked() {
                break;
            }
        }
        bar.finish_and_clear();
        let mut report = Report::new(scenario, plan, machine::describe(memory.eal.tsc_hz()));
        self.plain.product.account(&mut report, scores.plain.laid.packets)?;
        let forward_nodes = std::mem::take(&mut report.nodes);
        self.services.product.account(&mut report, scores.services.laid.packets)?;
        report.compared = self.plain.sampler.compared() + self.services.sampler.compared();
        scores.services.interrupted = interrupt::asked();
        scores.services.cpu_share = rounded(scores.services.took.share(memory.eal.tsc_hz()));
        let services = compared(&scores, (before, self.counts()))?;
        report.services = Some(Services { forward_nodes, ..services });
        report.score(&scores.services, memory);
        Ok(report)
    }

    /// With all rules and fewer flows that open. They are some more a second than `share` of what they were, as the rate grows.
    fn at_flow_rate(&mut self, memory: &Memory, plan: &Plan, share: f64) -> anyhow::Result<AtFlowRate> {
        let opening_share = plan.profile.opening * share;
        let flows = [self.plain.rack.flows(), self.services.rack.flows(), self.yard.rack.flows()];
        flows.into_iter().flatten().for_each(|flows| flows.set_opening(opening_share));
        let point = self.point(memory, plan, "services")?;
        let services = point.services.as_ref().context("nothing was measured")?;
        Ok(AtFlowRate {
            flows_per_s: services.flows_per_s(),
            opening_share: rounded(opening_share),
            mpps_per_core: point.mpps_per_core,
            ratio_to_forward: services.ratio_to_forward,
        })
    }

    /// Runs until both have met most of the flows that are open under the rules in force now.
    fn settle(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let spinner = spinner(format!("flows meet {} content rules", plan.rules));
        let mut packets = 0;
        while packets < plan.profile.flows as usize * SETTLING && !interrupt::asked() {
            self.plain.round(Runner::Product)?;
            packets += self.services.round(Runner::Product)?.0.packets;
        }
        self.turn(&Plan { duration: plan.duration / SETTLING_TURN, ..plan.clone() }, &mut Scores::default())?;
        spinner.finish_and_clear();
        Ok(())
    }

    fn counts(&self) -> ContentCounts {
        self.services.product.product.worker.content_counts()
    }

    /// A trial: floor, bare loop and both workers in turns.
    fn turn(&mut self, plan: &Plan, scores: &mut Scores) -> anyhow::Result<()> {
        let (mut rounds, start): ([Vec<f64>; 4], _) = (Default::default(), Instant::now());
        while start.elapsed() < plan.trial() && !interrupt::asked() {
            for runner in [Runner::Floor, Runner::Bare] {
                rounds[runner as usize].push(round(&mut self.yard, runner, &mut Score::default())?);
            }
            let product = Runner::Product;
            rounds[product as usize].push(round(&mut self.services, product, &mut scores.services)?);
            rounds[3].push(round(&mut self.plain, product, &mut scores.plain)?);
        }
        let median = |rounds: &Vec<f64>| Spread::of(rounds).map(|spread| spread.median);
        for (all, rounds) in scores.services.times_ns.iter_mut().zip(&rounds) {
            all.extend(median(rounds));
        }
        scores.plain.times_ns[Runner::Product as usize].extend(median(&rounds[3]));
        Ok(())
    }
}

/// Opens as many flows as the profile says, while a runner takes the packets.
fn fill<W: Worker>(field: &mut Field<'_, W>, runner: Runner, plan: &Plan) -> anyhow::Result<()> {
    let Some(flows) = field.rack.flows() else { return Ok(()) };
    let limit = flows.limit();
    flows.set_opening(1.0);
    let bar = ProgressBar::new(u64::from(limit)).with_message("flows");
    while let Some(open) = field.rack.flows().map(|flows| flows.open()).filter(|open| *open < limit)
        && !interrupt::asked()
    {
        field.round(runner)?;
        bar.set_position(u64::from(open));
    }
    bar.finish_and_clear();
    if let Some(flows) = field.rack.flows() {
        flows.set_opening(plan.profile.opening);
    }
    Ok(())
}

/// Nanoseconds a packet of one round.
fn round<W: Worker>(field: &mut Field<'_, W>, runner: Runner, score: &mut Score) -> anyhow::Result<f64> {
    let (laid, took) = field.round(runner)?;
    if runner == Runner::Product {
        (score.laid, score.took) = (score.laid.and(laid), score.took.and(took));
    }
    Ok(took.cpu.as_nanos() as f64 / laid.packets.max(1) as f64)
}

fn compared(scores: &Scores, (before, after): (ContentCounts, ContentCounts)) -> anyhow::Result<Services> {
    let product = Runner::Product as usize;
    let (plain, services) = (&scores.plain.times_ns[product], &scores.services.times_ns[product]);
    let ratios: Vec<f64> = plain.iter().zip(services).map(|(plain, services)| plain / services).collect();
    let forward = Spread::of(plain).context("interrupted before there was anything to report")?;
    let seconds = scores.services.took.cpu.as_secs_f64().max(f64::MIN_POSITIVE);
    Ok(Services {
        ratio_to_forward: Spread::of(&ratios).unwrap_or_default(),
        forward_mpps_per_core: rounded(1e3 / forward.median),
        forward_nodes: vec![],
        detected_flows_per_s: rounded((after.detected - before.detected) as f64 / seconds),
        undetected_flows_per_s: rounded((after.undetected - before.undetected) as f64 / seconds),
        displaced_flows: after.displaced - before.displaced,
        at_flow_rate: None,
    })
}

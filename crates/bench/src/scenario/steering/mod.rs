//! `steering`: what it costs to bring packets to the workers that own their users, and what a card that does it saves.
//!
//! The same engine runs behind a model of a card in each mode, the modes in turns: by the users' addresses (inner hash), by
//! TEIDs that are chosen to lead to the same workers,
//! by the outermost addresses of tunnels from 1, 4 or 64 gNBs, by one queue, and by one queue with a worker that does
//! nothing but distribute, as systems did before cards could. Inner hash runs with one worker, two, and so on up to the CPUs
//! there are, a queue for each.

mod bare;
mod classes;
mod formation;
mod rounds;
mod sizes;
mod team;
mod waiting;

use crate::beside::Beside;
use crate::expected;
use crate::meter::Rack;
use crate::plan::Plan;
use crate::product::Memory;
use crate::report::{Report, Steering, nodes};
use crate::sample::Sampler;
use crate::spread::{Spread, rounded};
use crate::{compared, contest, interrupt, machine};
use anyhow::{Context, bail};
use bare::BareTeam;
use classes::Overload;
use dataplane::Counters;
use dpdk::Mempool;
use formation::{Case, Formation, Mode};
use rounds::{Round, Tools};
use std::time::Duration;
use team::Team;

/// Packets in the pool.
const PACKETS: u32 = 65_535;
/// Of the duration, for rounds at the full rate; the rest is for latency.
const ROUNDS_SHARE: f64 = 0.7;
/// Of a case's turn, for the bare hand-over.
const BARE_SHARE: f64 = 0.2;
/// Of the duration, for overload, beyond the rest.
const OVERLOAD_SHARE: f64 = 0.1;
/// Loads at which latency is measured, as shares of what the slowest mode carries.
const LOADS: [f64; 3] = [0.3, 0.5, 0.7];

/// One case, and what was found.
struct Entry {
    formation: Formation,
    /// Nanoseconds for each packet, by trial: of all workers together, and of the slowest for each core.
    work_ns: Vec<f64>,
    core_ns: Vec<f64>,
    /// Of each worker, by trial.
    worker_ns: Vec<Vec<f64>>,
    bare: BareTeam,
    /// Nanoseconds of the bare hand-over for each packet, by trial, of all workers together.
    bare_ns: Vec<f64>,
    handed_share: f64,
    /// Of the last worker, when its flows had been met.
    counted: Option<Counters>,
}

/// Measures all modes.
///
/// # Errors
/// One CPU alone; packets missing or wrong, or at a worker that does not own them.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let cpus = machine::cpus();
    let [first, _, ..] = cpus.as_slice() else {
        bail!("steering needs two CPUs, one for each of two workers; one can be used here");
    };
    let memory = Memory::new(1, PACKETS)?;
    let hz = memory.eal.tsc_hz();
    // Before this thread is left one CPU of them.
    let described = machine::describe(hz);
    machine::pin(*first)?;
    let _thread = memory.eal.register_thread()?;
    let team = Team { eal: memory.eal, cpus: &cpus, hz };
    let mut entries = Vec::new();
    let spinner = contest::spinner("sessions of all modes".to_owned());
    for case in cases(team.workers()) {
        let formation = Formation::new(case, plan, memory.pool()?)?;
        entries.push(Entry::new(formation, memory.pool()?));
    }
    spinner.finish_and_clear();
    let sampler = Sampler::new(expected::reference(plan.pdrs)?);
    let mut tools = Tools { rack: Rack::new(memory.pool()?, plan)?, sampler, bytes: 0, packets: 0 };
    // The bare loop is one worker's: it has the lines of that worker's users.
    let share = plan.share_of_one(team.workers());
    let mut beside = Beside::new(&share, memory.pool()?, &mut tools.rack)?;
    trials(&team, plan, &mut entries, (&mut tools, &mut beside))?;
    let mut report = Report::new("steering", plan, described);
    report.compare(&beside.score(&[]), hz);
    report.mean_bytes = rounded(tools.bytes as f64 / tools.packets.max(1) as f64);
    (report.balanced, report.loss) = (true, Some(0.0));
    let mut points: Vec<Report> =
        entries.iter().map(|entry| point(&report, entry, &entries, (hz, &beside))).collect();
    latencies(&team, plan, (&mut entries, &mut tools.rack), &mut points)?;
    points.extend(sizes::measure(&team, (plan, &report), entries, (&mut tools, &mut beside))?);
    overload(&team, plan, (&mut tools.rack, memory.pool()?), &mut points)?;
    (report.interrupted, report.compared) = (interrupt::asked(), tools.sampler.compared());
    Ok(whole(report, points))
}

/// Engines with all sessions: each case has workers of its own.
pub(super) fn engines() -> u64 {
    cases(team::most(&machine::cpus())).len() as u64
}

/// Inner hash with all workers, with one, two and so on; then all workers in each other mode.
fn cases(workers: usize) -> Vec<Case> {
    let case = |mode, gnbs, workers| Case { mode, gnbs, workers };
    let fewer = (1..workers).map(|workers| case(Mode::Inner, 1, workers));
    let others = [
        case(Mode::Teid, 1, workers),
        case(Mode::OneQueue, 1, workers),
        case(Mode::Distributor, 1, workers),
        case(Mode::Outer, 1, workers),
        case(Mode::Outer, 4, workers),
        case(Mode::Outer, 64, workers),
    ];
    std::iter::once(case(Mode::Inner, 1, workers)).chain(fewer).chain(others).collect()
}

/// Every case in every trial, one after the other.
fn trials(
    team: &Team<'_>,
    plan: &Plan,
    entries: &mut [Entry],
    (tools, beside): (&mut Tools, &mut Beside),
) -> anyhow::Result<()> {
    // The yardsticks have a turn as long as a case's.
    let length = plan.trial().mul_f64(ROUNDS_SHARE / (entries.len() + 1) as f64);
    let bar = contest::progress(plan.duration.mul_f64(ROUNDS_SHARE), "yardsticks and all modes in turns");
    for trial in 0..plan.trials {
        if interrupt::asked() && trial > 0 {
            break;
        }
        tools.rack.set_gnbs(1);
        beside.stretch(&mut tools.rack, length)?;
        for entry in &mut *entries {
            if interrupt::asked() && trial == 0 {
                bail!("interrupted before there was anything to compare");
            }
            tools.rack.set_gnbs(entry.formation.case.gnbs);
            let (rounds, handed_share) =
                rounds::run(team, &mut entry.formation, tools, length.mul_f64(1.0 - BARE_SHARE))?;
            entry.take(&rounds).context("no round was measured")?;
            entry.counted = entry
                .counted
                .take()
                .or_else(|| entry.formation.workers.last().map(|worker| worker.counters().clone()));
            entry.handed_share = handed_share;
            let bare = entry.bare.run(team, tools, length.mul_f64(BARE_SHARE))?;
            entry.bare_ns.push(of_rounds(&bare, |round| round.busy_ns.iter().sum()).context("no round")?);
            bar.inc(length.as_millis() as u64);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

impl Entry {
    fn new(formation: Formation, pool: &Mempool) -> Self {
        let bare = BareTeam::new(formation.case, pool);
        let (work_ns, core_ns, worker_ns, bare_ns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { formation, work_ns, core_ns, worker_ns, bare, bare_ns, handed_share: 0.0, counted: None }
    }

    /// Medians of a trial's rounds.
    fn take(&mut self, rounds: &[Round]) -> Option<()> {
        let workers = self.formation.case.workers;
        self.work_ns.push(of_rounds(rounds, |round| round.busy_ns.iter().sum())?);
        let slowest = |round: &Round| round.busy_ns.iter().copied().fold(0.0, f64::max);
        self.core_ns.push(of_rounds(rounds, |round| slowest(round) * workers as f64)?);
        let one = |at: usize| of_rounds(rounds, |round| round.busy_ns.get(at).copied().unwrap_or_default());
        self.worker_ns.push((0..workers).map(one).collect::<Option<_>>()?);
        Some(())
    }

    /// What all workers together carry over what those of another case do, by trial.
    fn times(&self, other: &Self) -> Option<Spread> {
        let workers = self.formation.case.workers as f64 / other.formation.case.workers as f64;
        let in_turns = other.core_ns.iter().zip(&self.core_ns).map(|(other, ours)| workers * other / ours);
        Spread::of(&in_turns.collect::<Vec<f64>>())
    }

    /// What handing one packet over adds to the same without, in the quietest trial of both: other programs only add.
    fn extra(&self, inner: &Self, of: fn(&Self) -> &[f64]) -> Option<f64> {
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        (self.handed_share > 0.0).then(|| (least(of(self)) - least(of(inner))) / self.handed_share)
    }
}

/// The median over rounds of nanoseconds for each packet.
fn of_rounds(rounds: &[Round], ns: impl Fn(&Round) -> f64) -> Option<f64> {
    let values: Vec<f64> = rounds.iter().map(|round| ns(round) / round.packets.max(1) as f64).collect();
    Spread::of(&values).map(|spread| spread.median)
}

fn median(values: &[f64]) -> f64 {
    Spread::of(values).map_or(0.0, |spread| spread.median)
}

/// What was found about a case, beside inner hash with as many workers, which is the first.
fn point(report: &Report, entry: &Entry, entries: &[Entry], (hz, beside): (u64, &Beside)) -> Report {
    let cycles = |ns: f64| ns * hz as f64 / 1e9;
    let Case { mode, gnbs, workers } = entry.formation.case;
    let inner = entries.first().unwrap_or(entry);
    let in_turns = inner.core_ns.iter().zip(&entry.core_ns).map(|(inner, ours)| inner / ours);
    let ratio = Spread::of(&in_turns.collect::<Vec<f64>>());
    let is_compared = entry.handed_share > 0.0;
    let alone = entries.iter().find(|entry| entry.formation.case.workers == 1);
    let times_one = alone.filter(|_| mode == Mode::Inner).and_then(|alone| entry.times(alone));
    let of_worker = |at: usize| {
        let values: Vec<f64> = entry.worker_ns.iter().filter_map(|trial| trial.get(at).copied()).collect();
        rounded(cycles(median(&values)))
    };
    let mut point = report.clone();
    point.workers = workers as u32;
    point.trials = entry.work_ns.len() as u32;
    point.set_rate(1e3 / median(&entry.core_ns));
    point.cycles_per_packet = Some(rounded(cycles(median(&entry.core_ns))));
    point.compare(&beside.score(&entry.core_ns), hz);
    let last = entry.formation.workers.last().zip(entry.counted.as_ref());
    point.nodes = last.map(|(worker, before)| nodes(worker.counters(), before)).unwrap_or_default();
    let work: Vec<f64> = entry.work_ns.iter().map(|ns| cycles(*ns)).collect();
    point.steering = Some(Steering {
        mode: mode.name().to_owned(),
        gnbs,
        handed_share: rounded(entry.handed_share),
        worker_cycles: (0..workers).map(of_worker).collect(),
        work_cycles: Spread::of(&work),
        ratio_to_inner: ratio,
        times_one,
        handoff_cycles: entry.extra(inner, |entry| &entry.work_ns).map(|ns| rounded(cycles(ns))),
        handoff_floor_cycles: entry.extra(inner, |entry| &entry.bare_ns).map(|ns| rounded(cycles(ns))),
        ratio_shared_out: is_compared.then(|| rounded(median(&inner.work_ns) / median(&entry.work_ns))),
        offered_mpps: None,
        by_class: vec![],
    });
    point
}

/// More than one worker carries: of which some is urgent, to a card that sorts it and to one that does not, and most of it one user's.
fn overload(
    team: &Team<'_>,
    plan: &Plan,
    (rack, pool): (&mut Rack, &Mempool),
    points: &mut Vec<Report>,
) -> anyhow::Result<()> {
    let one = points.iter().find(|point| point.workers == 1).cloned().context("no row of one worker")?;
    let Some(mpps) = one.mpps_per_core.filter(|_| !interrupt::asked()) else { return Ok(()) };
    rack.set_gnbs(1);
    let mut formation = Formation::new(Case { mode: Mode::Classes, gnbs: 1, workers: 1 }, plan, pool)?;
    let offered = mpps * classes::OVERLOAD;
    let length = plan.duration.mul_f64(OVERLOAD_SHARE / 3.0).max(Duration::from_millis(50));
    for overload in Overload::ALL {
        let found = classes::measure(team, &mut formation, (rack, pool), (offered * 1e6, overload, length));
        let (fates, note) = match found {
            Ok((fates, [void, counted])) => {
                (fates, format!("{counted} runs counted, in {void} another program had the CPU"))
            }
            Err(error) => (vec![], format!("{error:#}")),
        };
        let mut point = untimed(one.clone(), offered, &note);
        if let Some(steering) = &mut point.steering {
            (steering.mode, steering.by_class) = (overload.mode().to_owned(), fates);
        }
        points.push(point);
    }
    Ok(())
}

/// Latency of inner hash, of hand-off and of a distributor, at the same rates.
fn latencies(
    team: &Team<'_>,
    plan: &Plan,
    (entries, rack): (&mut [Entry], &mut Rack),
    points: &mut Vec<Report>,
) -> anyhow::Result<()> {
    let slowest = |point: &Report| point.mpps_per_core.map(|mpps| mpps * f64::from(point.workers));
    let least = points.iter().filter(|point| point.workers > 1).filter_map(slowest).fold(f64::MAX, f64::min);
    let chosen: Vec<usize> = (0..entries.len())
        .filter(|at| entries.get(*at).is_some_and(|entry| is_timed(entry.formation.case)))
        .collect();
    let length = plan.duration.mul_f64((1.0 - ROUNDS_SHARE) / (chosen.len().max(1) * LOADS.len()) as f64);
    for (load, at) in LOADS.into_iter().flat_map(|load| chosen.iter().map(move |at| (load, *at))) {
        let (Some(entry), Some(found)) = (entries.get_mut(at), points.get(at).cloned()) else { continue };
        if interrupt::asked() {
            break;
        }
        rack.set_gnbs(1);
        let offered = (least * 1e6 * load, length.max(Duration::from_millis(50)));
        match waiting::measure(team, &mut entry.formation, rack, offered) {
            Ok((latency, [void, counted])) => {
                points.push(timed(found, (latency, least * load), (void, counted)))
            }
            Err(error) => points.push(untimed(found, least * load, &format!("{error:#}"))),
        }
    }
    Ok(())
}

fn is_timed(case: Case) -> bool {
    case.workers > 1
        && (matches!(case.mode, Mode::Inner | Mode::Distributor)
            || case == Case { gnbs: 1, ..case } && case.mode == Mode::Outer)
}

fn timed(
    found: Report,
    (latency, mpps): (crate::report::Latency, f64),
    (void, counted): (u32, u32),
) -> Report {
    let mut point =
        untimed(found, mpps, &format!("{counted} runs counted, in {void} another program had a CPU"));
    point.latency_us = Some(latency);
    point
}

fn untimed(mut point: Report, mpps: f64, note: &str) -> Report {
    if let Some(steering) = &mut point.steering {
        steering.offered_mpps = Some(rounded(mpps));
    }
    point.has_no_rate();
    point.notes = vec![note.to_owned()];
    point
}

/// The first point, inner hash, stands for the whole.
fn whole(mut report: Report, points: Vec<Report>) -> Report {
    if let Some(first) = points.first() {
        (report.workers, report.trials) = (first.workers, first.trials);
        (report.mpps_per_core, report.gbps_per_core) = (first.mpps_per_core, first.gbps_per_core);
        (report.cycles_per_packet, report.steering) = (first.cycles_per_packet, first.steering.clone());
        (report.ratio, report.spread) = (first.ratio, first.spread);
    }
    report.notes = vec![
        "the card is a model: it costs nothing, and packets lie in memory".to_owned(),
        "rates are those of the slowest worker for each core; busy time is CPU time without turns in which nothing came"
            .to_owned(),
        "floor and bare loop run on the first worker's CPU, a turn in each trial, with the lines of one worker's share of \
         users and flows"
            .to_owned(),
    ];
    report.points = points;
    report.over_workers = compared::over_workers(&report);
    report.published = compared::published(&report);
    report
}

#[cfg(test)]
mod tests {
    use super::{Case, Mode, cases};

    #[test]
    fn inner_hash_has_every_number_of_workers_and_all_of_them_first() {
        for (workers, expected) in [(2, vec![2, 1]), (3, vec![3, 1, 2]), (5, vec![5, 1, 2, 3, 4])] {
            let (inner, others): (Vec<Case>, Vec<Case>) =
                cases(workers).into_iter().partition(|case| case.mode == Mode::Inner);
            assert_eq!(inner.iter().map(|case| case.workers).collect::<Vec<usize>>(), expected);
            assert!(others.len() == 6 && others.iter().all(|case| case.workers == workers));
        }
    }
}

//! What is to be changed.

use super::step::{Step, Write, chosen};
use super::{frequency, interrupts, memory, speed_select, start};
use crate::{CpuSet, Facts, Node, Placement, Root};
use std::fmt::Write as _;

/// What is asked for besides the configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// CPUs of the workers; those of the configuration, else the isolated ones, if empty.
    pub workers: CpuSet,
    /// Huge pages wanted, in MiB; the configuration's packet memory if 0.
    pub huge_mb: u64,
    /// Whether SST-BF is switched on, which changes guaranteed frequencies of all cores.
    pub base_frequency: bool,
}

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Its steps, in the order in which they are taken.
    pub steps: Vec<Step>,
}

/// What the parts of a plan are made from.
pub(super) struct Wanted<'a> {
    pub(super) root: &'a Root,
    pub(super) facts: &'a Facts,
    /// CPUs of the workers; may be empty.
    pub(super) workers: CpuSet,
    /// All others that are online, without the other threads of the workers' cores if there are any besides.
    pub(super) others: CpuSet,
    pub(super) huge_mb: u64,
    /// A node is configured, and has its packet memory from ordinary pages.
    pub(super) shuns_huge_pages: bool,
    /// NUMA nodes that packet memory belongs on, each with its part of it, in MiB; `None`: any.
    pub(super) memory_mb: Vec<(Option<usize>, u64)>,
    pub(super) base_frequency: bool,
}

impl Wanted<'_> {
    /// The workers' CPUs, and the other threads of their cores if the rest of the machine has CPUs besides.
    pub(super) fn apart(&self) -> CpuSet {
        self.facts.topology.online().without(&self.others)
    }

    /// Sets a file to a value, unless it says so already; the third is why it cannot be had if the file is not there.
    pub(super) fn set(&self, path: &str, then: &str, why: &str) -> Step {
        match self.root.read(path) {
            Err(absent) => Step::not_here(path, format!("the file {}", absent.why)),
            Ok(now) if chosen(path, &now) == then => Step::done(format!("{path} is {then}")),
            Ok(now) => Step::Write(Write {
                path: path.to_owned(),
                now,
                then: then.to_owned(),
                why: why.to_owned(),
                refusal: None,
                owner: None,
            }),
        }
    }
}

/// Plans what makes a host better for a node, and says what cannot be had. Nothing is changed.
///
/// # Errors
/// Names workers' CPUs that are not there, with those that are.
pub fn plan(root: &Root, facts: &Facts, node: Option<&Node>, options: &Options) -> Result<Plan, String> {
    let workers = workers(facts, node, options)?;
    let wanted = wanted((root, facts), node, options, workers);
    let parts = [memory::steps, interrupts::steps, frequency::steps, speed_select::steps, start::steps];
    Ok(Plan { steps: parts.iter().flat_map(|part| part(&wanted)).collect() })
}

/// Those that were named, all of them: a plan for fewer would look like the one that was asked for. Isolated ones may be
/// offline, and where no CPU is shown none is known to be missing.
fn workers(facts: &Facts, node: Option<&Node>, options: &Options) -> Result<CpuSet, String> {
    let configured: CpuSet = node.map(|node| node.workers.iter().copied().collect()).unwrap_or_default();
    let online = facts.topology.online();
    let named = [&options.workers, &configured].into_iter().find(|cpus| !cpus.is_empty());
    let Some(named) = named else { return Ok(facts.topology.isolated.common(&online)) };
    let absent = named.without(&online);
    match (online.is_empty(), absent.len()) {
        (true, _) => Ok(CpuSet::default()),
        (_, 0) => Ok(named.clone()),
        (_, 1) => Err(format!("CPU {absent} is not there or not online: name workers' CPUs of {online}")),
        _ => Err(format!("CPUs {absent} are not there or not online: name workers' CPUs of {online}")),
    }
}

fn wanted<'a>(
    (root, facts): (&'a Root, &'a Facts),
    node: Option<&Node>,
    options: &Options,
    workers: CpuSet,
) -> Wanted<'a> {
    let memory_mb = node.filter(|node| node.huge_pages).map_or(0, |node| u64::from(node.memory_mb));
    let huge_mb = if options.huge_mb > 0 { options.huge_mb } else { memory_mb };
    Wanted {
        root,
        facts,
        others: facts.topology.beside(&workers),
        memory_mb: memory_places(facts, node, &workers, huge_mb),
        workers,
        huge_mb,
        shuns_huge_pages: node.is_some_and(|node| !node.huge_pages),
        base_frequency: options.base_frequency,
    }
}

/// As the data plane will have it, else beside the first port, or the first worker.
fn memory_places(
    facts: &Facts,
    node: Option<&Node>,
    workers: &CpuSet,
    huge_mb: u64,
) -> Vec<(Option<usize>, u64)> {
    let placement = |node: &Node| {
        let memory_mb = u32::try_from(huge_mb).unwrap_or(u32::MAX);
        Placement::new(facts, &Node { memory_mb, ..node.clone() })
    };
    let placement = node.map(placement).unwrap_or_default();
    if placement.memory_mb.is_empty() {
        let of_port = placement.devices.iter().copied().flatten().next();
        let beside = of_port.or_else(|| facts.topology.node_of(workers.iter().next()?));
        return vec![(beside, huge_mb)];
    }
    placement.memory_mb.into_iter().map(|(number, part)| (Some(number), part.into())).collect()
}

impl Plan {
    /// Steps that change something.
    pub fn changes(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Write(_) | Step::Run(_))).count()
    }

    /// For people, as a difference: what is now with `-`, what will be with `+`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.steps.iter().for_each(|step| show(step, &mut text));
        text
    }
}

fn show(step: &Step, text: &mut String) {
    let _ = match step {
        Step::Write(write) => {
            let may = |refusal: &String| format!(" (left alone if the kernel refuses: then {refusal})");
            let may = write.refusal.as_ref().map(may).unwrap_or_default();
            let (path, why, now, then) =
                (&write.path, &write.why, chosen(&write.path, &write.now), &write.then);
            let _ = writeln!(text, "{path}: {why}{may}");
            lines(text, '-', now, then);
            lines(text, '+', then, now);
            Ok(())
        }
        Step::Run(command) => {
            writeln!(
                text,
                "{}\n$ {}\nundone by: {}",
                command.why,
                command.words.join(" "),
                command.undo.join(" ")
            )
        }
        Step::Done(what) => writeln!(text, "= {what}"),
        Step::Advice { what, why } => writeln!(text, "by hand: {what}\n  {why}"),
        Step::NotHere { what, because } => writeln!(text, "{what}: not available here, because {because}"),
    };
}

/// Lines of one text that are not in the other.
fn lines(text: &mut String, sign: char, of: &str, other: &str) {
    for line in of.lines().filter(|line| other.lines().all(|there| there != *line)) {
        let _ = writeln!(text, "{sign} {line}");
    }
}

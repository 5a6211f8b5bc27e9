//! The workers: how many, where they run, and which of them only distribute.

use super::values::{Balance, Idle, Workers};
use config::{Refusal, Spanned};

/// `[dpe]` `workers`, `cpus`, `distributors` and `balance`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CrewSettings {
    pub(crate) workers: usize,
    /// The first so many own no session.
    pub(crate) distributors: usize,
    /// By worker; empty, where they may run on any.
    pub(crate) cpus: Vec<usize>,
    /// What is done so that they are equally busy.
    pub(crate) balance: dataplane::Balance,
}

/// Whether what is said of workers fits together.
pub(super) fn check(
    (workers, balance): (Workers, Balance),
    cpus: Option<&Spanned<Vec<usize>>>,
    distributors: Option<&Spanned<usize>>,
) -> Result<CrewSettings, Refusal> {
    let workers = workers.0;
    if let Some(refused) = cpus.filter(|cpus| cpus.get_ref().len() != workers) {
        return Err(Refusal::of(refused, format!("there is one CPU for each of the {workers} workers")));
    }
    if let Some(refused) = cpus.filter(|cpus| has_twins(cpus.get_ref())) {
        return Err(Refusal::of(refused, "two workers on one CPU wait for each other"));
    }
    if let Some(refused) = distributors.filter(|distributors| *distributors.get_ref() >= workers) {
        return Err(Refusal::of(refused, "one worker at least has to own sessions"));
    }
    Ok(CrewSettings {
        workers,
        distributors: distributors.map_or(0, |distributors| *distributors.get_ref()),
        cpus: cpus.map(|cpus| cpus.get_ref().clone()).unwrap_or_default(),
        balance: balance.into(),
    })
}

/// What CPU a worker runs on is known only if it is named.
pub(super) fn idle(idle: Option<Spanned<Idle>>, crew: &CrewSettings) -> Result<dpdk::Idle, Refusal> {
    match idle {
        Some(scale) if matches!(scale.get_ref(), Idle::Scale) && crew.cpus.is_empty() => {
            Err(Refusal::of(&scale, "workers' CPUs are named (cpus) where their frequencies are lowered"))
        }
        idle => Ok(idle.map(Spanned::into_inner).unwrap_or_default().into()),
    }
}

fn has_twins(cpus: &[usize]) -> bool {
    cpus.iter().enumerate().any(|(at, cpu)| cpus.iter().take(at).any(|other| other == cpu))
}

//! Workers on threads and CPUs of their own, in step with the first, which leads.

use crate::crew::{Crew, guarded};
use crate::machine;
use anyhow::{Context, anyhow};
use dpdk::Eal;
use std::cell::Cell;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Most workers: every case has its own, with all its sessions.
const WORKERS_MAX: usize = 8;

/// Where workers run. The caller's thread is the first's, and registered.
pub(super) struct Team<'a> {
    pub(super) eal: &'static Eal,
    pub(super) cpus: &'a [usize],
    pub(super) hz: u64,
}

impl Team<'_> {
    /// Workers there are at most: a CPU for each.
    pub(super) fn workers(&self) -> usize {
        most(self.cpus)
    }
}

/// Workers there are at most on these CPUs.
pub(super) fn most(cpus: &[usize]) -> usize {
    cpus.len().min(WORKERS_MAX)
}

/// Runs steps until the leader says that it was the last. In each, all workers do `work` at once; `lead` prepares it,
/// calls for it, which yields what each worker's work gave, and sees to what is left.
///
/// # Errors
/// Those of any.
pub(super) fn together<T: Send + Default, H: Send>(
    team: &Team<'_>,
    workers: &mut [H],
    work: impl Fn(usize, &mut H) -> anyhow::Result<T> + Sync,
    mut lead: impl FnMut(&mut dyn FnMut() -> anyhow::Result<Vec<T>>) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let crew = Crew::new(workers.len(), Duration::ZERO);
    let found: Vec<Mutex<anyhow::Result<T>>> = workers.iter().map(|_| Mutex::new(Ok(T::default()))).collect();
    let (first, others) = workers.split_first_mut().context("no worker")?;
    let one = |at: usize, worker: &mut H| {
        let done = guarded(|| work(at, worker));
        if let Some(Ok(mut slot)) = found.get(at).map(Mutex::lock) {
            *slot = done;
        }
    };
    thread::scope(|scope| {
        let (crew, one) = (&crew, &one);
        let mut threads = Vec::new();
        for ((at, worker), cpu) in (1..).zip(others).zip(team.cpus.iter().skip(1)) {
            let (eal, cpu) = (team.eal, *cpu);
            let body = move || {
                let ready = machine::pin(cpu).and_then(|()| Ok(eal.register_thread()?));
                while !crew.is_over(ready.is_err()) {
                    crew.meet();
                    one(at, worker);
                    crew.meet();
                }
                ready.map(drop)
            };
            threads.push(thread::Builder::new().spawn_scoped(scope, body)?);
        }
        let mut outcome = Ok(false);
        while !crew.is_over(!matches!(outcome, Ok(false))) {
            let has_run = Cell::new(false);
            let mut step = || {
                has_run.set(true);
                crew.meet();
                one(0, first);
                crew.meet();
                found.iter().map(take).collect::<anyhow::Result<Vec<T>>>()
            };
            outcome = lead(&mut step);
            if !has_run.get() {
                // The others wait for it all the same; there is nothing for them to do.
                let _ = step();
            }
        }
        let joined =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("it panicked"))));
        joined.collect::<anyhow::Result<Vec<()>>>().context("a worker could not run")?;
        outcome.map(drop)
    })
}

fn take<T: Default>(slot: &Mutex<anyhow::Result<T>>) -> anyhow::Result<T> {
    match slot.lock() {
        Ok(mut slot) => std::mem::replace(&mut *slot, Ok(T::default())),
        Err(_) => Err(anyhow!("a worker panicked")),
    }
}

//! The worker's thread.

use super::ports::Port;
use crate::settings::{DpeSettings, Idle};
use anyhow::Context;
use dataplane::Worker;
use dpdk::Eal;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Turns without a packet before a worker that may sleep does.
const PATIENCE: u32 = 256;
/// How long it sleeps.
const NAP: Duration = Duration::from_micros(50);

/// A worker under way.
pub(crate) struct Running {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    died: tokio::sync::Mutex<oneshot::Receiver<()>>,
}

impl Running {
    /// Starts the worker on a thread of its own, on the CPU the configuration names, if it names one.
    pub(crate) fn start(eal: &'static Eal, worker: Worker<Port>, dpe: &DpeSettings) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (alive, died) = oneshot::channel();
        let (idle, cpu, told) = (dpe.idle, dpe.cpu, stop.clone());
        let body = move || {
            // Dropped when the thread ends, in whatever way.
            let _alive = alive;
            if let Err(error) = prepare(eal, cpu).map(|_worker| work(worker, idle, &told)) {
                tracing::error!("{error:#}");
            }
        };
        let thread = thread::Builder::new().name("worker-0".to_owned()).spawn(body)?;
        Ok(Self { thread, stop, died: tokio::sync::Mutex::new(died) })
    }

    /// Returns when the worker has stopped without being told to.
    pub(crate) async fn died(&self) {
        let _ = (&mut *self.died.lock().await).await;
    }

    /// Ends the worker between two turns.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the worker panicked"))
    }
}

fn prepare(eal: &Eal, cpu: Option<usize>) -> anyhow::Result<dpdk::WorkerThread> {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).with_context(|| {
            format!("dpe.cpu = {cpu}: the worker cannot run there; name a CPU this process may use")
        })?;
    }
    Ok(eal.register_thread()?)
}

fn work(mut worker: Worker<Port>, idle: Idle, stop: &AtomicBool) {
    let zero = Instant::now();
    let mut idle_turns = 0u32;
    while !stop.load(Ordering::Relaxed) {
        let now_ns = zero.elapsed().as_nanos() as u64;
        let received = worker.turn(now_ns);
        idle_turns = if received > 0 { 0 } else { idle_turns.saturating_add(1) };
        if idle == Idle::Sleep && idle_turns > PATIENCE {
            thread::sleep(NAP);
        }
    }
}

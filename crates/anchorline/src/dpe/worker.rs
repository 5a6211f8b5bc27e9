//! The workers' threads.

use super::idle::{Idling, Patience};
use super::ports::Port;
use crate::settings::Settings;
use anyhow::Context;
use dataplane::{LearnedFlow, Worker};
use dpdk::Eal;
use dplink::WorkerIdle;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::sync::mpsc;

/// The workers under way.
pub(crate) struct Running {
    threads: Vec<JoinHandle<Vec<LearnedFlow>>>,
    idle: Vec<WorkerIdle>,
    stop: Arc<AtomicBool>,
    died: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

/// What all workers are told.
#[derive(Clone)]
struct Told {
    stop: Arc<AtomicBool>,
    /// They have one time.
    zero: Instant,
}

impl Running {
    /// Starts each worker on a thread of its own, on the CPU the configuration names, if it names any.
    pub(crate) fn start(
        eal: &'static Eal,
        mut workers: Vec<Worker<Port>>,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, died) = mpsc::channel(workers.len().max(1));
        let told = Told { stop: stop.clone(), zero: Instant::now() };
        let idling = Idling::here(settings, eal);
        let (patient, idle): (Vec<_>, Vec<_>) =
            workers.iter().enumerate().map(|(number, worker)| idling.of(number, worker)).unzip();
        idling.say(&idle);
        workers.first_mut().into_iter().for_each(Worker::announce);
        // Where one cannot be started, those before it end with this.
        let died = tokio::sync::Mutex::new(died);
        let mut running = Self { threads: Vec::new(), idle: idling.told(idle), stop, died };
        for (number, (worker, patience)) in workers.into_iter().zip(patient).enumerate() {
            let (cpu, told, tell) = (settings.dpe.crew.cpus.get(number).copied(), told.clone(), tell.clone());
            let body = move || {
                prepare(eal, cpu).map(|_worker| work(worker, patience, &told)).unwrap_or_else(|error| {
                    tracing::error!("{error:#}");
                    vec![]
                })
            };
            let guarded = move || {
                // Told when the thread ends, in whatever way.
                let _ending = Ending(tell);
                body()
            };
            running.threads.push(thread::Builder::new().name(format!("worker-{number}")).spawn(guarded)?);
        }
        Ok(running)
    }

    /// What each does while no packet waits.
    pub(crate) fn idle(&self) -> &[WorkerIdle] {
        &self.idle
    }

    /// Returns when a worker has stopped without being told to.
    pub(crate) async fn died(&self) {
        let _ = self.died.lock().await.recv().await;
    }

    /// Ends the workers between two turns; flows that they knew to be of some application.
    pub(crate) fn stop(mut self) -> anyhow::Result<Vec<LearnedFlow>> {
        self.stop.store(true, Ordering::Relaxed);
        let joined: Vec<_> = self.threads.drain(..).map(JoinHandle::join).collect();
        let flows: Result<Vec<_>, _> = joined.into_iter().collect();
        flows.map(|flows| flows.concat()).map_err(|_| anyhow::anyhow!("a worker panicked"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Says so when it goes.
struct Ending(mpsc::Sender<()>);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

fn prepare(eal: &Eal, cpu: Option<usize>) -> anyhow::Result<dpdk::WorkerThread> {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).with_context(|| {
            format!("dpe.cpus: no worker can run on CPU {cpu}; name CPUs this process may use")
        })?;
    }
    Ok(eal.register_thread()?)
}

/// Turns until it is told to stop; flows that are known to be of some application then.
fn work(mut worker: Worker<Port>, mut patience: Patience, told: &Told) -> Vec<LearnedFlow> {
    dpdk::wake_on_time();
    while !told.stop.load(Ordering::Relaxed) {
        let now_ns = told.zero.elapsed().as_nanos() as u64;
        let received = worker.turn(now_ns);
        patience.turn(&worker, now_ns, received);
    }
    worker.learned()
}

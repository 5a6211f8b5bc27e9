//! A thread on a CPU of its own that polls without pause, as `anchorline dpe` runs a worker.

use crate::gaps::Gaps;
use crate::link::End;
use crate::machine;
use crate::product::{NOW_NS, Product};
use anyhow::{Context, anyhow};
use dpdk::Eal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// What it does in one turn.
pub(crate) trait Turn: Send + 'static {
    /// So long after the thread began.
    fn turn(&mut self, since_ns: u64);
}

impl Turn for Product<End> {
    fn turn(&mut self, since_ns: u64) {
        self.worker.turn(NOW_NS + since_ns);
    }
}

/// A thread under way.
pub(crate) struct Station<T> {
    thread: JoinHandle<anyhow::Result<T>>,
    orders: Arc<Orders>,
    /// When it was not running.
    pub(crate) gaps: Arc<Gaps>,
}

/// What the thread is told.
#[derive(Default)]
struct Orders {
    stop: AtomicBool,
    /// It is not to have its CPU.
    rest: AtomicBool,
}

impl<T: Turn> Station<T> {
    /// Starts it on `cpu`.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn start(eal: &'static Eal, work: T, cpu: usize) -> anyhow::Result<Self> {
        let (orders, gaps) = (Arc::new(Orders::default()), Arc::new(Gaps::default()));
        let (told, seen) = (orders.clone(), gaps.clone());
        let body = move || {
            machine::pin(cpu)?;
            let _worker = eal.register_thread()?;
            Ok(poll(work, &told, &seen, eal.tsc_hz()))
        };
        let thread = thread::Builder::new().name("worker-0".to_owned()).spawn(body)?;
        Ok(Self { thread, orders, gaps })
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Has it give up its CPU, between two turns, or take it again.
    pub(crate) fn rest(&self, rests: bool) {
        self.orders.rest.store(rests, Ordering::Relaxed);
        self.thread.thread().unpark();
    }

    /// Ends it between two turns, and gives back what it worked with.
    ///
    /// # Errors
    /// It broke.
    pub(crate) fn stop(self) -> anyhow::Result<T> {
        self.orders.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().map_err(|_| anyhow!("the worker panicked"))?.context("the worker could not run")
    }
}

fn poll<T: Turn>(mut work: T, orders: &Orders, gaps: &Gaps, hz: u64) -> T {
    let zero = Instant::now();
    let mut watch = gaps.watch(hz);
    while !orders.stop.load(Ordering::Relaxed) {
        if orders.rest.load(Ordering::Relaxed) {
            thread::park();
            watch = gaps.watch(hz);
            continue;
        }
        work.turn(zero.elapsed().as_nanos() as u64);
        watch.running(dpdk::tsc());
    }
    work
}

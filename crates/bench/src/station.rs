//! The worker on a thread and a CPU of its own, as `anchorline dpe` runs it: it polls without pause.

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

/// A worker under way.
pub(crate) struct Station {
    thread: JoinHandle<anyhow::Result<Product<End>>>,
    stop: Arc<AtomicBool>,
    /// When it was not running.
    pub(crate) gaps: Arc<Gaps>,
}

impl Station {
    /// Starts it on `cpu`.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn start(eal: &'static Eal, product: Product<End>, cpu: usize) -> anyhow::Result<Self> {
        let (stop, gaps) = (Arc::new(AtomicBool::new(false)), Arc::new(Gaps::default()));
        let (told, seen) = (stop.clone(), gaps.clone());
        let body = move || {
            machine::pin(cpu)?;
            let _worker = eal.register_thread()?;
            Ok(work(product, &told, &seen, eal.tsc_hz()))
        };
        let thread = thread::Builder::new().name("worker-0".to_owned()).spawn(body)?;
        Ok(Self { thread, stop, gaps })
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Ends it between two turns, and gives back what it worked with.
    ///
    /// # Errors
    /// It broke.
    pub(crate) fn stop(self) -> anyhow::Result<Product<End>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the worker panicked"))?.context("the worker could not run")
    }
}

fn work(mut product: Product<End>, stop: &AtomicBool, gaps: &Gaps, hz: u64) -> Product<End> {
    let zero = Instant::now();
    let mut watch = gaps.watch(hz);
    while !stop.load(Ordering::Relaxed) {
        product.worker.turn(NOW_NS + zero.elapsed().as_nanos() as u64);
        watch.running(dpdk::tsc());
    }
    product
}

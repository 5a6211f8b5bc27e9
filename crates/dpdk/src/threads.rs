//! Threads of ours as workers of DPDK.

use crate::error::Error;
use crate::{control, log, sys};
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// Whether this thread has a guard: DPDK takes a second registration and forgets both with the first guard.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread is a worker while this lives. It stays on its thread.
#[must_use = "the thread is a worker only while the guard lives"]
#[derive(Debug)]
pub struct WorkerThread {
    on_this_thread: PhantomData<*const ()>,
}

impl WorkerThread {
    pub(crate) fn register() -> Result<Self, Error> {
        let mut control = control::lock_running()?;
        if IS_WORKER.get() {
            return Err(Error::Thread { reason: "it is one already".to_owned() });
        }
        // SAFETY: the EAL runs.
        let (status, log) = log::capture(|| unsafe { sys::rte_thread_register() });
        if status != 0 {
            return Err(Error::Thread { reason: log::reason(&log, log::errno()) });
        }
        IS_WORKER.set(true);
        control.worker_registered();
        Ok(Self { on_this_thread: PhantomData })
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        let mut control = control::lock();
        // SAFETY: the guard cannot leave the thread that registered, and the EAL is not shut down while it lives.
        unsafe { sys::rte_thread_unregister() };
        IS_WORKER.set(false);
        control.worker_left();
    }
}

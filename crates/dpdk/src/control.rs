//! What DPDK does for us outside the packet path, one at a time, and who still uses it.

use crate::error::Error;
use crate::sys;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A dropped pool that packets may still come home to.
struct Retired(NonNull<sys::rte_mempool>);

// SAFETY: DPDK's pools may be used and freed from any thread.
unsafe impl Send for Retired {}

/// Who uses DPDK.
pub(crate) struct Control {
    running: bool,
    ports: usize,
    pools: usize,
    workers: usize,
    retired: Vec<Retired>,
}

static CONTROL: Mutex<Control> =
    Mutex::new(Control { running: false, ports: 0, pools: 0, workers: 0, retired: Vec::new() });

/// The lock every call outside the packet path is made under: DPDK's control functions are not thread-safe.
pub(crate) fn lock() -> MutexGuard<'static, Control> {
    CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same for a thread that must not wait: `None` while another has it.
pub(crate) fn try_lock() -> Option<MutexGuard<'static, Control>> {
    match CONTROL.try_lock() {
        Ok(control) => Some(control),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The same, refused unless DPDK runs.
///
/// # Errors
/// [`Error::Closed`].
pub(crate) fn lock_running() -> Result<MutexGuard<'static, Control>, Error> {
    let control = lock();
    if control.running { Ok(control) } else { Err(Error::Closed) }
}

impl Control {
    pub(crate) fn started(&mut self) {
        self.running = true;
    }

    pub(crate) fn port_opened(&mut self) {
        self.ports += 1;
    }

    pub(crate) fn port_closed(&mut self) {
        self.ports = self.ports.saturating_sub(1);
        self.sweep();
    }

    pub(crate) fn worker_registered(&mut self) {
        self.workers += 1;
    }

    pub(crate) fn worker_left(&mut self) {
        self.workers = self.workers.saturating_sub(1);
        self.sweep();
    }

    pub(crate) fn pool_made(&mut self) {
        self.pools += 1;
    }

    /// Takes a pool nobody can allocate from any more; it is freed once every packet is back.
    pub(crate) fn retire(&mut self, pool: NonNull<sys::rte_mempool>) {
        self.retired.push(Retired(pool));
        self.sweep();
    }

    /// Frees the retired pools that are whole again. A worker may be in the last instructions of putting a
    /// packet into its cache while the pool already counts as whole, so this waits until no worker is left;
    /// other threads have no cache, and their last write to a pool is the one that makes it whole.
    pub(crate) fn sweep(&mut self) {
        if self.workers > 0 {
            return;
        }
        let before = self.retired.len();
        self.retired.retain(|pool| {
            // SAFETY: a retired pool is valid until it is freed here.
            let whole = unsafe { sys::rte_mempool_in_use_count(pool.0.as_ptr()) } == 0;
            if whole {
                // SAFETY: no handle, no port and no packet refers to the pool, and no thread is inside it
                // (see above); it leaves the list, so it is freed once.
                unsafe { sys::rte_mempool_free(pool.0.as_ptr()) };
            }
            !whole
        });
        self.pools = self.pools.saturating_sub(before - self.retired.len());
    }

    /// Marks DPDK as shut down, unless somebody uses it.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        self.sweep();
        if self.ports + self.pools + self.workers > 0 {
            return Err(Error::InUse { ports: self.ports, pools: self.pools, workers: self.workers });
        }
        self.running = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_must_not_wait_does_not() {
        let held = lock();
        let other = std::thread::spawn(|| try_lock().is_some()).join();
        assert_eq!(other.ok(), Some(false));
        drop(held);
    }
}

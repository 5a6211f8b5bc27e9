//! Two ports joined in memory: each receives what the other sends. For tests and measurements.

use crate::eal::Eal;
use crate::error::Error;
use crate::ethdev::{Errno, Ethdev};
use crate::mempool::Mempool;
use crate::port::{Port, PortConfig};
use crate::{control, log, sys};
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Numbers loopbacks: names of DPDK's objects are unique in a process.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A ring in each direction per queue, freed with what waits in them.
#[derive(Debug)]
pub(crate) struct Rings {
    there: Vec<NonNull<sys::rte_ring>>,
    back: Vec<NonNull<sys::rte_ring>>,
}

// SAFETY: DPDK's rings may be used and freed from any thread; these are only freed here.
unsafe impl Send for Rings {}
// SAFETY: there is nothing to do with a shared one.
unsafe impl Sync for Rings {}

impl Drop for Rings {
    fn drop(&mut self) {
        for ring in self.there.iter().chain(&self.back) {
            // SAFETY: the ports that used the ring are removed; the packets in it are nobody else's; the EAL runs,
            // for this happens under the control lock, before the last port counts as closed.
            unsafe {
                sys::anchorline_ring_drain(ring.as_ptr());
                sys::rte_ring_free(ring.as_ptr());
            }
        }
    }
}

impl Port {
    /// Two ports with `queues` queues each way (at most 16): queue `i` of one receives what queue `i` of the
    /// other sends. `depth` packets wait in each.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory or with too many queues, [`Error::Closed`].
    pub fn loopback(_eal: &Eal, pool: &Mempool, queues: u16, depth: u16) -> Result<(Self, Self), Error> {
        let mut control = control::lock_running()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let config = |end: char| PortConfig {
            rx_queues: queues,
            tx_queues: queues,
            ..PortConfig::new(&format!("loopback{number}{end}"))
        };
        let (a, b) = (config('a'), config('b'));
        let rings = Arc::new(rings(&a, depth)?);
        let first = attach(&a, &rings.back, &rings.there)?;
        let first = Self::start(first, &a, pool, Some(rings.clone())).inspect(|_| control.port_opened())?;
        let second = attach(&b, &rings.there, &rings.back)
            .and_then(|second| Self::start(second, &b, pool, Some(rings)))
            .inspect(|_| control.port_opened());
        // The first port closes itself when it is dropped, for which it takes the lock.
        drop(control);
        second.map(|second| (first, second))
    }
}

fn rings(config: &PortConfig, depth: u16) -> Result<Rings, Error> {
    let mut rings = Rings { there: Vec::new(), back: Vec::new() };
    for queue in 0..config.rx_queues {
        rings.there.push(ring(&config.device, &format!("{}t{queue}", config.device), depth)?);
        rings.back.push(ring(&config.device, &format!("{}b{queue}", config.device), depth)?);
    }
    Ok(rings)
}

fn ring(device: &str, name: &str, depth: u16) -> Result<NonNull<sys::rte_ring>, Error> {
    let refused = |reason| Error::Device { device: device.to_owned(), action: "made", reason };
    let name = CString::new(name).map_err(|error| refused(error.to_string()))?;
    let create = || {
        // SAFETY: the EAL runs; DPDK copies the name. -1 is any socket.
        unsafe { sys::rte_ring_create(name.as_ptr(), depth.into(), -1, sys::ANCHORLINE_RING_EXACT) }
    };
    let (ring, log) = log::capture(create);
    NonNull::new(ring).ok_or_else(|| refused(log::reason(&log, log::errno())))
}

fn attach(
    config: &PortConfig,
    rx: &[NonNull<sys::rte_ring>],
    tx: &[NonNull<sys::rte_ring>],
) -> Result<Ethdev, Error> {
    let refused = |reason| Error::Device { device: config.device.clone(), action: "made", reason };
    let name = CString::new(config.device.as_str()).map_err(|error| refused(error.to_string()))?;
    let count = u32::from(config.rx_queues);
    let attach = || {
        // SAFETY: the EAL runs; DPDK copies the name and the `count` pointers to rings, which outlive the port.
        unsafe {
            sys::rte_eth_from_rings(name.as_ptr(), rx.as_ptr().cast(), count, tx.as_ptr().cast(), count, 0)
        }
    };
    let (port, log) = log::capture(attach);
    let port = u16::try_from(port).map_err(|_| Errno(log::errno()));
    port.map(Ethdev).map_err(|Errno(error)| refused(log::reason(&log, error)))
}

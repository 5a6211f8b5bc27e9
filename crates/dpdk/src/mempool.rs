//! Pools of packet buffers.

use crate::eal::Eal;
use crate::error::Error;
use crate::mbuf::Mbuf;
use crate::numa::{self, Preference};
use crate::{control, log, sys};
use packet::Buffer;
use std::ffi::{CString, c_int};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Packets a worker's cache holds at most.
const MAX_CACHE: u32 = sys::RTE_MEMPOOL_CACHE_MAX_SIZE;

/// Packets looked at to see on which nodes all are.
const SAMPLES: u32 = 64;

/// DPDK's word for whichever node.
const ANY_NODE: c_int = -1;

/// How a pool is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MempoolConfig {
    /// Packets it holds. 2^n - 1 wastes no memory.
    pub capacity: u32,
    /// Packets each worker thread keeps for itself, at most 512 and two thirds of the capacity.
    pub cache: u32,
    /// Bytes of each packet, headroom of 128 bytes included.
    pub data_room_bytes: u16,
    /// The NUMA node its packets are to be on; `None`: any. Where that has no memory left they are on another, see
    /// [`Mempool::nodes`].
    pub node: Option<u32>,
}

impl Default for MempoolConfig {
    /// 8191 packets of up to 2048 bytes, 18 MB.
    fn default() -> Self {
        Self { capacity: 8191, cache: 256, data_room_bytes: 2048 + 128, node: None }
    }
}

/// The pool itself: retired with its last handle.
#[derive(Debug)]
struct Pool {
    raw: NonNull<sys::rte_mempool>,
    config: MempoolConfig,
}

// SAFETY: DPDK's pools may be used from any thread; worker threads each have their own cache in it.
unsafe impl Send for Pool {}
// SAFETY: as above; made without the single-producer and single-consumer flags.
unsafe impl Sync for Pool {}

impl Drop for Pool {
    fn drop(&mut self) {
        control::lock().retire(self.raw);
    }
}

/// A pool of packet buffers. Its handles are shared between threads by cloning; the memory is freed when the last
/// handle, port and packet of it are gone.
#[derive(Clone, Debug)]
pub struct Mempool {
    pool: Arc<Pool>,
}

impl Mempool {
    /// Makes a pool.
    ///
    /// # Errors
    /// [`Error::PoolShape`], [`Error::Pool`] without the memory, [`Error::Closed`].
    pub fn new(_eal: &Eal, config: MempoolConfig) -> Result<Self, Error> {
        let MempoolConfig { capacity, cache, data_room_bytes: room_bytes, node } = config;
        if capacity == 0 || cache > MAX_CACHE || u64::from(cache) * 3 > u64::from(capacity) * 2 {
            return Err(Error::PoolShape { capacity, cache });
        }
        let mut control = control::lock_running()?;
        control.sweep();
        // Memory of ordinary pages is where it is touched first; DPDK knows the nodes of huge pages alone.
        let _preference = node.and_then(Preference::of);
        let wanted = node.and_then(|node| c_int::try_from(node).ok()).unwrap_or(ANY_NODE);
        let make = || {
            let made = create(&config, wanted);
            made.or_else(|| (wanted != ANY_NODE).then(|| create(&config, ANY_NODE)).flatten())
        };
        let (raw, log) = log::capture(make);
        let reason = || log::reason(&log, log::errno());
        let raw = raw.ok_or_else(|| Error::Pool { capacity, room_bytes, reason: reason() })?;
        control.pool_made();
        Ok(Self { pool: Arc::new(Pool { raw, config }) })
    }

    /// An empty packet; `None` when all are in use.
    pub fn alloc(&self) -> Option<Mbuf> {
        let mut raw = ptr::null_mut();
        // SAFETY: the pool is valid, and there is room for the one pointer asked for.
        let status = unsafe { sys::anchorline_alloc_bulk(self.as_ptr(), &raw mut raw, 1) };
        // SAFETY: with status 0 it points to a packet nobody else has.
        (status == 0).then_some(raw).and_then(|raw| unsafe { Mbuf::from_raw(raw) })
    }

    /// Appends `count` empty packets, in one call; `None`, and no change, when there are fewer.
    pub fn alloc_bulk(&self, packets: &mut Vec<Mbuf>, count: usize) -> Option<()> {
        let asked = u32::try_from(count).ok().filter(|asked| *asked <= self.capacity())?;
        packets.reserve(count);
        let free = packets.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: the pool is valid, and `free` has room for the pointers asked for, which `Mbuf` is laid out as.
        let status = unsafe { sys::anchorline_alloc_bulk(self.as_ptr(), free, asked) };
        if status != 0 {
            return None;
        }
        // SAFETY: with status 0 that many packets, which nobody else has, were written behind the last.
        unsafe { packets.set_len(packets.len() + count) };
        Some(())
    }

    /// A packet of these bytes; `None` when all are in use or the bytes do not fit.
    pub fn packet(&self, bytes: &[u8]) -> Option<Mbuf> {
        let mut packet = self.alloc()?;
        packet.append(bytes.len())?.copy_from_slice(bytes);
        Some(packet)
    }

    /// Packets it holds.
    pub fn capacity(&self) -> u32 {
        self.pool.config.capacity
    }

    /// Bytes of each packet, headroom included.
    pub fn data_room_bytes(&self) -> u16 {
        self.pool.config.data_room_bytes
    }

    /// The NUMA nodes that its packets are on, ascending, as the kernel says of some of them; nothing where it does not.
    pub fn nodes(&self) -> Vec<u32> {
        let mut places = vec![ptr::null_mut(); SAMPLES as usize];
        // SAFETY: the pool is valid, and there is room for as many pointers as are said.
        let found = unsafe { sys::anchorline_pool_sample(self.as_ptr(), places.as_mut_ptr(), SAMPLES) };
        places.truncate(usize::try_from(found).unwrap_or(0));
        numa::of_pages(&places)
    }

    /// Packets that are out: held by threads, queues and devices. It costs a look into every cache.
    pub fn in_use(&self) -> u32 {
        // SAFETY: the pool is valid.
        unsafe { sys::rte_mempool_in_use_count(self.as_ptr()) }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::rte_mempool {
        self.pool.raw.as_ptr()
    }
}

fn create(config: &MempoolConfig, node: c_int) -> Option<NonNull<sys::rte_mempool>> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = CString::new(format!("packets{}", COUNT.fetch_add(1, Ordering::Relaxed))).ok()?;
    let MempoolConfig { capacity, cache, data_room_bytes, .. } = *config;
    // SAFETY: the EAL runs, as the caller's control lock says; DPDK copies the name.
    NonNull::new(unsafe {
        sys::anchorline_pool_create(name.as_ptr(), capacity, cache, data_room_bytes, node)
    })
}

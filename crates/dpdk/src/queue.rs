//! Queues: packets in and out, a vector at a time, one call into DPDK each.

use crate::error::Error;
use crate::ethdev::Errno;
use crate::mbuf::Mbuf;
use crate::port::OpenPort;
use crate::setup::attempt;
use crate::{control, sys};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

/// Receives from one queue of a port. It belongs to one thread at a time.
#[derive(Debug)]
pub struct RxQueue {
    port: u16,
    queue: u16,
    open: Arc<OpenPort>,
    not_sync: PhantomData<Cell<()>>,
}

impl RxQueue {
    pub(crate) fn new(open: &Arc<OpenPort>, queue: u16) -> Self {
        Self { port: open.ethdev.0, queue, open: open.clone(), not_sync: PhantomData }
    }

    /// Its number at the port, from 0.
    pub fn index(&self) -> u16 {
        self.queue
    }

    /// Whether its driver tells where the next packet is written, so that [`crate::Rests`] can wait for that.
    ///
    /// # Errors
    /// [`Error::Device`] where it does not.
    pub fn can_be_waited_on(&self) -> Result<(), Error> {
        let _control = control::lock();
        attempt(self.open.device(), "waited on", || {
            // SAFETY: the queue is set up while `open` lives, and its one owner, who alone moves the place on, is here.
            match unsafe { sys::anchorline_can_monitor(self.number()) } {
                0 => Ok(()),
                error => Err(Errno(error)),
            }
        })
    }

    const fn number(&self) -> sys::anchorline_queue {
        sys::anchorline_queue { port: self.port, queue: self.queue }
    }

    /// Appends the packets that wait, at most `limit` (and 65535), and returns how many. It allocates only where the
    /// vector lacks the capacity.
    #[inline]
    pub fn receive(&mut self, packets: &mut Vec<Mbuf>, limit: usize) -> usize {
        let limit = u16::try_from(limit).unwrap_or(u16::MAX);
        packets.reserve(limit.into());
        let free = packets.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: the queue is set up and its port runs while `open` lives; only this queue's one owner is here;
        // `free` has room for `limit` pointers, which `Mbuf` is laid out as.
        let received = usize::from(unsafe { sys::anchorline_rx_burst(self.port, self.queue, free, limit) });
        // SAFETY: that many packets were written behind the last, each ours alone.
        unsafe { packets.set_len(packets.len() + received) };
        received
    }
}

/// Queues that are waited on at once, at most.
pub(crate) const WAITED_ON_MAX: usize = sys::ANCHORLINE_MONITOR_MAX as usize;

/// Waits until a packet comes to one of these queues, and until a time at the latest; it may end sooner without either.
/// Returns at once where that cannot be done, and says so.
pub(crate) fn wait<'q>(queues: impl Iterator<Item = &'q RxQueue>, until_tsc: u64) -> bool {
    let mut numbers = [sys::anchorline_queue { port: 0, queue: 0 }; WAITED_ON_MAX];
    let mut count: u32 = 0;
    for queue in queues {
        let Some(place) = numbers.get_mut(count as usize) else { return false };
        *place = queue.number();
        count += 1;
    }
    // SAFETY: so many numbers are there. Their queues are set up while they are borrowed, and nobody receives from them
    // meanwhile: a queue is not shared between threads. DPDK refuses where the CPU has no such wait.
    unsafe { sys::anchorline_monitor(numbers.as_ptr(), count, until_tsc) == 0 }
}

/// Sends to one queue of a port. It belongs to one thread at a time.
#[derive(Debug)]
pub struct TxQueue {
    port: u16,
    queue: u16,
    _open: Arc<OpenPort>,
    not_sync: PhantomData<Cell<()>>,
}

impl TxQueue {
    pub(crate) fn new(open: &Arc<OpenPort>, queue: u16) -> Self {
        Self { port: open.ethdev.0, queue, _open: open.clone(), not_sync: PhantomData }
    }

    /// Its number at the port, from 0.
    pub fn index(&self) -> u16 {
        self.queue
    }

    /// Sends from the front what the device takes and returns how many; the rest stays, in order. Packets in pieces
    /// ([`Mbuf::is_contiguous`]) are for devices in software only.
    #[inline]
    pub fn send(&mut self, packets: &mut Vec<Mbuf>) -> usize {
        let held = packets.len();
        let count = u16::try_from(held).unwrap_or(u16::MAX);
        let first = packets.as_mut_ptr();
        // SAFETY: the queue is set up and its port runs while `_open` lives; only this queue's one owner is here.
        // The vector gives its packets up before the device takes them, and takes the rest, which the device left
        // alone, back at its front. `Mbuf` is laid out as a pointer.
        unsafe {
            packets.set_len(0);
            let sent = usize::from(sys::anchorline_tx_burst(self.port, self.queue, first.cast(), count));
            if sent < held {
                ptr::copy(first.add(sent), first, held - sent);
                packets.set_len(held - sent);
            }
            sent
        }
    }
}

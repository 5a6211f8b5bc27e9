//! Queues: packets in and out, a vector at a time, one call into DPDK each.

use crate::mbuf::Mbuf;
use crate::port::OpenPort;
use crate::sys;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

/// Receives from one queue of a port. It belongs to one thread at a time.
#[derive(Debug)]
pub struct RxQueue {
    port: u16,
    queue: u16,
    _open: Arc<OpenPort>,
    not_sync: PhantomData<Cell<()>>,
}

impl RxQueue {
    pub(crate) fn new(open: &Arc<OpenPort>, queue: u16) -> Self {
        Self { port: open.ethdev.0, queue, _open: open.clone(), not_sync: PhantomData }
    }

    /// Its number at the port, from 0.
    pub fn index(&self) -> u16 {
        self.queue
    }

    /// Appends the packets that wait, at most `limit` (and 65535), and returns how many. It allocates only where the
    /// vector lacks the capacity.
    #[inline]
    pub fn receive(&mut self, packets: &mut Vec<Mbuf>, limit: usize) -> usize {
        let limit = u16::try_from(limit).unwrap_or(u16::MAX);
        packets.reserve(limit.into());
        let free = packets.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: the queue is set up and its port runs while `_open` lives; only this queue's one owner is here;
        // `free` has room for `limit` pointers, which `Mbuf` is laid out as.
        let received = usize::from(unsafe { sys::anchorline_rx_burst(self.port, self.queue, free, limit) });
        // SAFETY: that many packets were written behind the last, each ours alone.
        unsafe { packets.set_len(packets.len() + received) };
        received
    }
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

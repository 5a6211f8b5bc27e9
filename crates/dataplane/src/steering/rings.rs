//! Packets between workers: a ring from each to each, filled and emptied in vectors.

use super::post::pairs;
use crate::frame::{Packet, VECTOR};
use rtrb::{Consumer, Producer, RingBuffer};

/// Packets on their way from one worker to another: four vectors, so that a worker that is away for some turns loses
/// none, and one that cannot keep up does not make packets old.
pub(crate) const DEPTH: usize = 4 * VECTOR;

/// A worker's ends of the rings, by worker; `None` towards itself.
pub(crate) struct Handoff<B> {
    to: Vec<Option<Lane<B>>>,
    from: Vec<Option<Consumer<Packet<B>>>>,
    waits: bool,
}

/// To one worker: the ring, and what goes into it at the end of the vector.
struct Lane<B> {
    ring: Producer<Packet<B>>,
    out: Vec<Packet<B>>,
}

/// The ends of so many workers.
pub(crate) fn handoffs<B>(workers: usize) -> Vec<Handoff<B>> {
    let empty = || Handoff { to: Vec::new(), from: Vec::new(), waits: false };
    let mut ends: Vec<Handoff<B>> = (0..workers).map(|_| empty()).collect();
    for (giver, taker) in pairs(workers) {
        let (to, from) = match giver == taker {
            true => (None, None),
            false => {
                let (ring, from) = RingBuffer::new(DEPTH);
                (Some(Lane { ring, out: Vec::with_capacity(VECTOR) }), Some(from))
            }
        };
        ends[giver].to.push(to);
        ends[taker].from.push(from);
    }
    ends
}

impl<B> Handoff<B> {
    /// Puts a packet among those for a worker; gives it back where there is no such worker.
    #[inline]
    pub(crate) fn put(&mut self, worker: u8, packet: Packet<B>) -> Result<(), Packet<B>> {
        match self.to.get_mut(usize::from(worker)) {
            Some(Some(lane)) => {
                lane.out.push(packet);
                self.waits = true;
                Ok(())
            }
            _ => Err(packet),
        }
    }

    /// Whether any packet waits for [`Handoff::send`].
    #[inline]
    pub(crate) const fn waits(&self) -> bool {
        self.waits
    }

    /// Puts what waits into the rings; returns how many packets went. What finds no room goes to `left`.
    pub(crate) fn send(&mut self, left: &mut Vec<Packet<B>>) -> u64 {
        self.waits = false;
        let mut sent = 0;
        for lane in self.to.iter_mut().flatten() {
            let room = lane.ring.slots().min(lane.out.len());
            if let Ok(chunk) = lane.ring.write_chunk_uninit(room) {
                sent += chunk.fill_from_iter(lane.out.drain(..room)) as u64;
            }
            left.append(&mut lane.out);
        }
        sent
    }

    /// How many workers there are, this one included.
    pub(crate) fn workers(&self) -> usize {
        self.from.len()
    }

    /// Takes up to a vector of the packets that a worker handed over; returns how many.
    pub(crate) fn take(&mut self, worker: usize, into: &mut Vec<Packet<B>>) -> usize {
        let Some(Some(from)) = self.from.get_mut(worker) else { return 0 };
        let count = from.slots().min(VECTOR);
        match from.read_chunk(count) {
            Ok(chunk) => {
                into.extend(chunk);
                count
            }
            Err(_) => 0,
        }
    }
}

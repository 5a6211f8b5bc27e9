//! Ports of several workers in threads of their own, and what is before and behind them.

use dpdk::{Mbuf, Mempool};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Both directions of one worker's part of a port. Locked by the worker for a vector, by the measurement between rounds.
#[derive(Default)]
pub(crate) struct Quay {
    /// To be received.
    pub(crate) inbox: VecDeque<Mbuf>,
    /// To be received first, where the card sorts packets.
    pub(crate) urgent: VecDeque<Mbuf>,
    /// Sent.
    pub(crate) outbox: Vec<Mbuf>,
}

/// How many packets are under way, written by each worker for itself.
pub(crate) struct Ledger {
    taken: Vec<Count>,
    given: Vec<Count>,
    /// Packets that will have gone out when all that were laid out have.
    expected: Count,
}

/// On a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Count(AtomicUsize);

impl Ledger {
    pub(crate) fn new(workers: usize) -> Self {
        let counts = || (0..workers).map(|_| Count::default()).collect();
        Self { taken: counts(), given: counts(), expected: Count::default() }
    }

    /// Packets of all workers that came in, and went out.
    pub(crate) fn sums(&self) -> (usize, usize) {
        let sum = |counts: &[Count]| counts.iter().map(|count| count.0.load(Ordering::Acquire)).sum();
        // What went out was taken before.
        let given = sum(&self.given);
        (sum(&self.taken), given)
    }

    /// So many more are laid out, and nothing is under way.
    pub(crate) fn expect(&self, packets: usize) {
        let (_, given) = self.sums();
        self.expected.0.store(given + packets, Ordering::Release);
    }

    /// A worker has done with so many packets, and nothing is under way.
    pub(crate) fn level(&self, worker: usize, packets: usize) {
        self.give(worker, packets);
        if let Some(count) = self.taken.get(worker) {
            count.0.store(packets, Ordering::Release);
        }
    }

    /// Packets that will have gone out.
    pub(crate) fn expected(&self) -> usize {
        self.expected.0.load(Ordering::Acquire)
    }

    /// A worker has done with so many packets in all.
    pub(crate) fn give(&self, worker: usize, packets: usize) {
        if let Some(count) = self.given.get(worker) {
            count.0.store(packets, Ordering::Release);
        }
    }

    fn take(&self, worker: usize, packets: usize) {
        if let Some(count) = self.taken.get(worker) {
            count.0.store(count.0.load(Ordering::Relaxed) + packets, Ordering::Release);
        }
    }
}

/// One worker's part of a port.
#[derive(Clone)]
pub(crate) struct Dock {
    quay: Arc<Mutex<Quay>>,
    pool: Mempool,
    ledger: Arc<Ledger>,
    worker: usize,
    /// Packets of all workers under way at most: a queue that fills stops the sender, and no ring overflows.
    window: usize,
    sorted: bool,
}

impl Dock {
    pub(crate) fn new(pool: &Mempool, ledger: &Arc<Ledger>, worker: usize, window: usize) -> Self {
        Self {
            quay: Arc::default(),
            pool: pool.clone(),
            ledger: ledger.clone(),
            worker,
            window,
            sorted: false,
        }
    }

    /// With a queue for urgent packets.
    pub(crate) fn sorted(self) -> Self {
        Self { sorted: true, ..self }
    }

    pub(crate) fn quay(&self) -> MutexGuard<'_, Quay> {
        self.quay.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl dataplane::Port for Dock {
    type Buffer = Mbuf;

    fn receive(&mut self, into: &mut Vec<Mbuf>, limit: usize) -> usize {
        let mut quay = self.quay();
        if quay.inbox.is_empty() {
            return 0;
        }
        let (taken, given) = self.ledger.sums();
        let room = (self.window + given).saturating_sub(taken).min(limit);
        let received = room.min(quay.inbox.len());
        into.extend(quay.inbox.drain(..received));
        self.ledger.take(self.worker, received);
        received
    }

    fn classes(&self) -> usize {
        usize::from(self.sorted)
    }

    fn receive_class(&mut self, _: usize, into: &mut Vec<Mbuf>, limit: usize) -> usize {
        let mut quay = self.quay();
        let received = limit.min(quay.urgent.len());
        into.extend(quay.urgent.drain(..received));
        self.ledger.take(self.worker, received);
        received
    }

    fn send(&mut self, from: &mut Vec<Mbuf>) -> usize {
        let count = from.len();
        self.quay().outbox.append(from);
        count
    }

    fn allocate(&mut self) -> Option<Mbuf> {
        self.pool.alloc()
    }
}

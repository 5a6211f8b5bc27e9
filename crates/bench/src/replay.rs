//! A port that replays packets from memory: what a worker receives is there already, what it sends is kept.

use dpdk::{Mbuf, Mempool};
use std::cell::RefCell;
use std::rc::Rc;

/// Both directions of a port, seen from outside.
#[derive(Default)]
pub(crate) struct Wire {
    /// To be received, last first.
    pub(crate) inbox: Vec<Mbuf>,
    /// Sent.
    pub(crate) outbox: Vec<Mbuf>,
}

/// The port itself. Its burst is a move of pointers: what it costs is what the floor yardstick shows.
#[derive(Clone)]
pub(crate) struct Replay {
    pub(crate) wire: Rc<RefCell<Wire>>,
    pool: Mempool,
}

impl Replay {
    pub(crate) fn new(pool: &Mempool) -> Self {
        Self { wire: Rc::default(), pool: pool.clone() }
    }
}

impl dataplane::Port for Replay {
    type Buffer = Mbuf;

    fn receive(&mut self, into: &mut Vec<Mbuf>, limit: usize) -> usize {
        let inbox = &mut self.wire.borrow_mut().inbox;
        let rest = inbox.len().saturating_sub(limit);
        let before = into.len();
        into.extend(inbox.drain(rest..));
        into.len() - before
    }

    fn send(&mut self, from: &mut Vec<Mbuf>) -> usize {
        let count = from.len();
        self.wire.borrow_mut().outbox.append(from);
        count
    }

    fn allocate(&mut self) -> Option<Mbuf> {
        self.pool.alloc()
    }
}

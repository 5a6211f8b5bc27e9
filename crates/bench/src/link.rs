//! Two ports of DPDK joined in memory, one end of each for the worker and one for the generator.

use crate::product::Outside;
use anyhow::Context;
use dpdk::{Eal, Mbuf, Mempool, RxQueue, TxQueue};

/// Packets that wait in each direction at most: the largest ring that drivers of network cards have.
pub(crate) const DEPTH: u16 = 4_096;

/// One end.
pub(crate) struct End {
    pub(crate) rx: RxQueue,
    pub(crate) tx: TxQueue,
    pool: Mempool,
    /// Closed with the end.
    _port: dpdk::Port,
}

/// Both ends of one link: the worker's, then the generator's.
///
/// # Errors
/// DPDK lacks the memory.
pub(crate) fn pair(eal: &Eal, pool: &Mempool) -> anyhow::Result<(End, End)> {
    let (ours, theirs) = dpdk::Port::loopback(eal, pool, 1, DEPTH)?;
    Ok((End::new(ours, pool)?, End::new(theirs, pool)?))
}

impl End {
    fn new(mut port: dpdk::Port, pool: &Mempool) -> anyhow::Result<Self> {
        let rx = port.take_rx_queues().pop().context("a port without a queue")?;
        let tx = port.take_tx_queues().pop().context("a port without a queue")?;
        Ok(Self { rx, tx, pool: pool.clone(), _port: port })
    }
}

impl dataplane::Port for End {
    type Buffer = Mbuf;

    fn receive(&mut self, into: &mut Vec<Mbuf>, limit: usize) -> usize {
        self.rx.receive(into, limit)
    }

    fn send(&mut self, from: &mut Vec<Mbuf>) -> usize {
        self.tx.send(from)
    }

    fn allocate(&mut self) -> Option<Mbuf> {
        self.pool.alloc()
    }
}

/// The generator's ends.
impl Outside for [End; 2] {
    fn give(&mut self, port: usize, packet: Mbuf) {
        if let Some(end) = self.get_mut(port) {
            end.tx.send(&mut vec![packet]);
        }
    }

    fn clear(&mut self) {
        let mut packets = Vec::new();
        for end in self {
            while end.rx.receive(&mut packets, 64) > 0 {
                packets.clear();
            }
        }
    }
}

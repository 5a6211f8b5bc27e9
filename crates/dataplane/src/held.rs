//! Packets waiting for the Ethernet address of their next hop.

use crate::frame::NextHop;
use crate::receipt::Receipt;

/// A packet waits no longer.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Neighbours that may have packets waiting at once, each up to its limit.
const NEIGHBOURS: usize = 64;

/// In the order they came.
pub(crate) struct Held<B> {
    packets: Vec<Waiting<B>>,
    per_neighbour: usize,
}

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Waiting<B> {
    next_hop: NextHop,
    since_ns: u64,
    pub(crate) buffer: B,
    /// What it will be counted for.
    pub(crate) receipt: Receipt,
}

impl<B> Held<B> {
    pub(crate) fn new(per_neighbour: usize) -> Self {
        Self { packets: Vec::with_capacity(per_neighbour * NEIGHBOURS), per_neighbour }
    }

    /// Keeps a packet; gives it back where too many wait.
    pub(crate) fn keep(
        &mut self,
        next_hop: NextHop,
        (buffer, receipt): (B, Receipt),
        now_ns: u64,
    ) -> Result<(), (B, Receipt)> {
        let waiting = self.packets.iter().filter(|packet| packet.next_hop == next_hop).count();
        if waiting >= self.per_neighbour || self.packets.len() == self.packets.capacity() {
            return Err((buffer, receipt));
        }
        self.packets.push(Waiting { next_hop, since_ns: now_ns, buffer, receipt });
        Ok(())
    }

    /// The packets that waited for `next_hop`, oldest first.
    pub(crate) fn release(&mut self, next_hop: NextHop) -> impl Iterator<Item = Waiting<B>> {
        self.packets.extract_if(.., move |packet| packet.next_hop == next_hop)
    }

    /// The oldest packet, if it has waited too long.
    pub(crate) fn next_late(&mut self, now_ns: u64) -> Option<Waiting<B>> {
        let oldest = self.packets.first()?;
        (now_ns.saturating_sub(oldest.since_ns) > PATIENCE_NS).then(|| self.packets.remove(0))
    }

    /// What they will be counted for.
    pub(crate) fn receipts(&mut self) -> impl Iterator<Item = &mut Receipt> {
        self.packets.iter_mut().map(|packet| &mut packet.receipt)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn hop(last: u8) -> NextHop {
        NextHop::new(0, Ipv4Addr::new(10, 0, 0, last))
    }

    fn packet(name: char) -> (char, Receipt) {
        (name, Receipt::NONE)
    }

    #[test]
    fn packets_leave_in_the_order_they_came() {
        let mut held = Held::new(2);
        assert_eq!(held.keep(hop(1), packet('a'), 0), Ok(()));
        assert_eq!(held.keep(hop(2), packet('b'), 0), Ok(()));
        assert_eq!(held.keep(hop(1), packet('c'), 0), Ok(()));
        assert_eq!(held.keep(hop(1), packet('d'), 0), Err(packet('d')));
        assert_eq!(held.release(hop(1)).map(|packet| packet.buffer).collect::<String>(), "ac");
        assert_eq!(held.len(), 1);
    }

    #[test]
    fn no_packet_waits_for_ever() {
        let mut held = Held::new(2);
        held.keep(hop(1), packet('a'), 0).unwrap();
        held.keep(hop(1), packet('b'), 10).unwrap();
        let mut late = || held.next_late(PATIENCE_NS + 1).map(|packet| packet.buffer);
        assert_eq!([late(), late()], [Some('a'), None]);
        assert_eq!(held.len(), 1);
    }
}

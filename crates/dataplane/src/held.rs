//! Packets waiting for the Ethernet address of their next hop.

use crate::frame::NextHop;

/// A packet waits no longer.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Neighbours that may have packets waiting at once, each up to its limit.
const NEIGHBOURS: usize = 64;

/// In the order they came.
pub(crate) struct Held<B> {
    packets: Vec<Waiting<B>>,
    per_neighbour: usize,
}

struct Waiting<B> {
    next_hop: NextHop,
    since_ns: u64,
    buffer: B,
}

impl<B> Held<B> {
    pub(crate) fn new(per_neighbour: usize) -> Self {
        Self { packets: Vec::with_capacity(per_neighbour * NEIGHBOURS), per_neighbour }
    }

    /// Keeps a packet; gives it back where too many wait.
    pub(crate) fn keep(&mut self, next_hop: NextHop, buffer: B, now_ns: u64) -> Result<(), B> {
        let waiting = self.packets.iter().filter(|packet| packet.next_hop == next_hop).count();
        if waiting >= self.per_neighbour || self.packets.len() == self.packets.capacity() {
            return Err(buffer);
        }
        self.packets.push(Waiting { next_hop, since_ns: now_ns, buffer });
        Ok(())
    }

    /// The packets that waited for `next_hop`, oldest first.
    pub(crate) fn release(&mut self, next_hop: NextHop) -> impl Iterator<Item = B> {
        self.packets.extract_if(.., move |packet| packet.next_hop == next_hop).map(|packet| packet.buffer)
    }

    /// The packets that waited too long.
    pub(crate) fn expire(&mut self, now_ns: u64) -> impl Iterator<Item = B> {
        let late = move |packet: &mut Waiting<B>| now_ns.saturating_sub(packet.since_ns) > PATIENCE_NS;
        self.packets.extract_if(.., late).map(|packet| packet.buffer)
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

    #[test]
    fn packets_leave_in_the_order_they_came() {
        let mut held = Held::new(2);
        assert_eq!(held.keep(hop(1), 'a', 0), Ok(()));
        assert_eq!(held.keep(hop(2), 'b', 0), Ok(()));
        assert_eq!(held.keep(hop(1), 'c', 0), Ok(()));
        assert_eq!(held.keep(hop(1), 'd', 0), Err('d'));
        assert_eq!(held.release(hop(1)).collect::<String>(), "ac");
        assert_eq!(held.len(), 1);
    }

    #[test]
    fn no_packet_waits_for_ever() {
        let mut held = Held::new(2);
        held.keep(hop(1), 'a', 0).unwrap();
        held.keep(hop(1), 'b', 10).unwrap();
        assert_eq!(held.expire(PATIENCE_NS + 1).collect::<String>(), "a");
        assert_eq!(held.len(), 1);
    }
}

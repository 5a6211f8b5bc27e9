//! How the usual packet leaves: the headers that were made for one before it, as long as nothing they say has changed.

use super::neighbours::Neighbours;
use crate::config::PortConfig;
use crate::frame::{NextHop, PortIndex};
use packet::ethernet;

/// Headers made before, `H`, and how long they may be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit<H> {
    pub(crate) headers: H,
    pub(crate) port: PortIndex,
    /// Bytes of IP that pass there.
    pub(crate) mtu: u16,
    /// Until when the next hop's Ethernet address is taken for fresh.
    until_ns: u64,
    /// As [`Neighbours::changes`] was.
    changes: u64,
}

impl<H> Exit<H> {
    /// With the headers that `make` puts together behind an Ethernet header; `None` while the next hop is not known.
    pub(crate) fn new(
        (neighbours, now_ns): (&Neighbours, u64),
        (next_hop, port): (NextHop, &PortConfig),
        make: impl FnOnce(ethernet::Header) -> H,
    ) -> Option<Self> {
        let (mac, until_ns) = neighbours.fresh(next_hop, now_ns)?;
        let headers = make(ethernet::Header::new(mac, port.mac, ethernet::IPV4));
        let changes = neighbours.changes();
        Some(Self { headers, port: next_hop.port, mtu: port.mtu, until_ns, changes })
    }

    /// On a way that no more passes.
    pub(crate) fn at_most(self, mtu: u16) -> Self {
        Self { mtu: self.mtu.min(mtu), ..self }
    }

    /// Whether they are still right.
    #[inline(always)]
    pub(crate) fn holds(&self, neighbours: &Neighbours, now_ns: u64) -> bool {
        now_ns < self.until_ns && self.changes == neighbours.changes()
    }
}

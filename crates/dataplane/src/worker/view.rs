//! What of a worker can be seen from outside, and what tests see and set.

use super::Worker;
use crate::counters::Counters;
#[cfg(test)]
use crate::frame::PortIndex;
use crate::lasting::LearnedFlow;
use crate::port::Port;
use crate::state::ContentCounts;
#[cfg(test)]
use packet::Buffer;
#[cfg(test)]
use std::net::IpAddr;

impl<P: Port> Worker<P> {
    /// Orders that the last turn obeyed: as long as there are any, more may wait behind them.
    pub fn obeyed(&self) -> usize {
        self.obeyed
    }

    /// What this worker has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What content rules have found out.
    pub fn content_counts(&self) -> ContentCounts {
        self.state.content.counts()
    }

    /// Flows that are known to be of some application, for the next life of the engine.
    pub fn learned(&self) -> Vec<LearnedFlow> {
        self.state.flows.learned(self.state.now_ns).collect()
    }

    /// What this worker's books say now.
    pub fn books(&self) -> dplink::Books {
        dplink::Books { held: self.held() as u64, ..self.counters.books() }
    }

    /// Packets that wait here for something.
    pub(super) fn held(&self) -> usize {
        let gathered = self.state.fragments.waiting() as usize;
        self.held.len() + self.kept.len() + self.awaited.len() + gathered
    }

    /// Packets that may go their way at once, without more memory for it.
    #[cfg(test)]
    pub(crate) fn room_to_resume(&self) -> usize {
        self.resumed.capacity()
    }

    /// Packets that may wait for their next hop, leave at once, and be freed at once, without more memory for it.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        let lanes = self.lanes.iter().map(|lane| lane.out.capacity() + lane.receipts.capacity());
        self.held.room() + lanes.sum::<usize>() + self.trash.capacity()
    }

    /// The packets that wait for the Ethernet address of their next hop.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &[u8]> {
        self.held.waiting().map(Buffer::data)
    }

    /// Flows it knows.
    #[cfg(test)]
    pub(crate) fn flows(&self) -> usize {
        self.state.flows.len()
    }

    /// Makes a neighbour known, as if it had answered.
    #[cfg(test)]
    pub(crate) fn know(
        &mut self,
        port: PortIndex,
        mac: packet::ethernet::MacAddress,
        address: impl Into<IpAddr>,
    ) {
        let next_hop = crate::frame::NextHop::new(port, address);
        let neighbours = &mut self.state.neighbours;
        neighbours.find(next_hop, self.state.now_ns);
        neighbours.learn(next_hop, mac, self.state.now_ns);
        neighbours.requests.clear();
        neighbours.learnt.clear();
        neighbours.heard.clear();
    }
}

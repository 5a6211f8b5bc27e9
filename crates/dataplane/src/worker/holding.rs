//! Packets that wait for the Ethernet address of their next hop. While they do they are counted nowhere, and once they leave
//! they are; only what their flow has taken down, which waits to be of an application, stays with it.

use super::Worker;
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::held::Waiting;
use crate::nodes;
use crate::port::Port;
use crate::receipt::{Counted, Receipt};
use crate::state::{Lookup, SessionIndex};
use packet::{Buffer, ethernet};

impl<P: Port> Worker<P> {
    pub(super) fn hold(&mut self, packet: Packet<P::Buffer>) {
        let receipt = packet.meta.receipt();
        if matches!(receipt.counted, Counted::Step(_)) {
            self.state.take_back(receipt);
        }
        let kept = self.held.keep(packet.meta.next_hop, (packet.buffer, receipt), self.state.now_ns);
        if let Err((buffer, receipt)) = kept {
            self.lose_held(buffer, receipt);
        }
    }

    /// Drops a packet that waited, or was to.
    fn lose_held(&mut self, buffer: P::Buffer, receipt: Receipt) {
        if matches!(receipt.counted, Counted::Flow(_)) {
            self.state.take_back(receipt);
        }
        self.discard(buffer, DropReason::NeighbourUnresolved);
    }

    pub(super) fn release_held(&mut self) {
        for next_hop in std::mem::take(&mut self.state.neighbours.learnt) {
            let Lookup::Known(mac) = self.state.neighbours.find(next_hop, self.state.now_ns) else {
                continue;
            };
            let ours = self.state.ports.get(next_hop.port).mac;
            for Waiting { mut buffer, receipt, .. } in self.held.release(next_hop) {
                let header = ethernet::Header::new(mac, ours, nodes::ethertype(buffer.data()));
                match nodes::push_ethernet(&mut buffer, header) {
                    Some(()) => {
                        self.state.count_again(receipt);
                        self.lanes[usize::from(next_hop.port)].push(buffer, receipt);
                    }
                    None => {
                        self.counters.count_drops(DropReason::NoHeadroom, 1);
                        self.trash.push(buffer);
                    }
                }
            }
        }
    }

    /// Drops what has waited too long.
    pub(super) fn expire_held(&mut self) {
        while let Some(Waiting { buffer, receipt, .. }) = self.held.next_late(self.state.now_ns) {
            self.lose_held(buffer, receipt);
        }
    }

    /// The rules of a session change, or it goes: what waits is counted by those that let it pass, as if it left now. Should
    /// it be dropped in the end, it stays counted.
    pub(super) fn settle_held(&mut self, session: SessionIndex) {
        for receipt in self.held.receipts() {
            if self.state.is_of(*receipt, session) {
                self.state.count_again(*receipt);
                *receipt = Receipt::NONE;
            }
        }
    }
}

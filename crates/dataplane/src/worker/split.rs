//! Splits packets that are too long for their way, where their senders allow it (RFC 791 3.2).

use super::Worker;
use crate::counters::DropReason;
use crate::frame::{Meta, Packet, VECTOR};
use crate::nodes;
use crate::port::Port;
use packet::Buffer;
use packet::fragment::Split;

impl<P: Port> Worker<P> {
    /// Puts the fragments of a packet among those that still have to run, and frees the packet; drops it where there is
    /// no room for all of them.
    pub(super) fn split(&mut self, packet: Packet<P::Buffer>) {
        let before = self.rest.parts.len();
        match self.fragment(&packet) {
            Some(()) => {
                let parts = self.rest.parts.len() - before;
                self.counters.created += parts as u64 - 1;
                self.trash.push(packet.buffer);
            }
            None => {
                self.rest.parts.truncate(before);
                self.discard(packet.buffer, DropReason::MtuExceeded);
            }
        }
    }

    /// `None`, and perhaps some fragments, where room or memory is used up.
    fn fragment(&mut self, packet: &Packet<P::Buffer>) -> Option<()> {
        let mtu = nodes::path_mtu(&self.state, packet)?;
        let split = Split::plan(packet.buffer.data(), mtu.into()).ok()?;
        if self.rest.parts.len() + split.count() > VECTOR {
            return None;
        }
        for number in 0..split.count() {
            let mut buffer = self.lanes.first_mut()?.port.allocate()?;
            split.write_to(number, &mut buffer)?;
            let bytes = u16::try_from(buffer.data().len()).ok()?;
            self.rest.parts.push(Packet { buffer, meta: Meta { bytes, ..packet.meta } });
        }
        Some(())
    }
}

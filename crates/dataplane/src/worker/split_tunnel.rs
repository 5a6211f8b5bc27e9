//! Splits our own datagrams that are too long for the port they leave by, or a link behind it (RFC 791 3.2, RFC 8200 4.5).

use super::Worker;
use super::rest::PARTS;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet};
use crate::nodes;
use crate::port::Port;
use crate::receipt::Receipt;
use packet::fragment::{Split, Split6};
use packet::{Buffer, ipv4};

impl<P: Port> Worker<P> {
    /// Puts the fragments of a tunnel's datagram among those that still have to leave, and frees the packet; drops it where
    /// there is no room for all of them.
    pub(super) fn split_tunnel(&mut self, mut packet: Packet<P::Buffer>) {
        let before = self.rest.pieces.len();
        match self.split_datagram(&mut packet) {
            Ok(()) => {
                let pieces = self.rest.pieces.len() - before;
                self.counters.created += pieces as u64 - 1;
                self.trash.push(packet.buffer);
            }
            Err(reason) => {
                self.rest.pieces.truncate(before);
                self.note_part(&packet.meta, Fate::Drop(reason));
                self.lose(packet, reason);
            }
        }
    }

    fn split_datagram(&mut self, packet: &mut Packet<P::Buffer>) -> Result<(), DropReason> {
        let to = nodes::destination(packet.buffer.data()).ok_or(DropReason::MtuExceeded)?;
        let mtu = usize::from(self.state.passes(packet.meta.next_hop.port, to));
        let identification = self.state.next_identification();
        let datagram = packet.buffer.data_mut();
        if datagram.first().is_some_and(|first| first >> 4 == 6) {
            let split = Split6::plan(datagram, mtu, identification).ok_or(DropReason::MtuExceeded)?;
            return self.pieces(&packet.meta, split.count(), |number, buffer| split.write_to(number, buffer));
        }
        ipv4::allow_fragments(datagram, identification as u16).ok_or(DropReason::MtuExceeded)?;
        let split = Split::plan(datagram, mtu).map_err(|_| DropReason::MtuExceeded)?;
        self.pieces(&packet.meta, split.count(), |number, buffer| split.write_to(number, buffer))
    }

    /// Makes so many pieces. Ports take packets from the front, so where any is lost the last is, and that one has the receipt.
    fn pieces(
        &mut self,
        meta: &Meta,
        count: usize,
        write: impl Fn(usize, &mut P::Buffer) -> Option<()>,
    ) -> Result<(), DropReason> {
        if self.rest.pieces.len() + count > PARTS {
            return Err(DropReason::NotSplit);
        }
        for number in 0..count {
            let memory = self.lanes.first_mut().and_then(|lane| lane.port.allocate());
            let mut buffer = memory.ok_or(DropReason::NotSplit)?;
            write(number, &mut buffer).ok_or(DropReason::NotSplit)?;
            let receipt = if number + 1 == count { meta.receipt } else { Receipt::NONE };
            self.rest.pieces.push(Packet { buffer, meta: Meta { receipt, ..*meta } });
        }
        Ok(())
    }
}

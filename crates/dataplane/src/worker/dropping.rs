//! Packets that are dropped: counted by reason, and given back to their pools many at a time.

use super::{TRASH_ROOM, Worker};
use crate::counters::DropReason;
use crate::frame::{Meta, Packet};
use crate::port::Port;
use crate::receipt::Receipt;
use packet::Buffer;
use std::vec::Drain;

impl<P: Port> Worker<P> {
    /// Drops a packet that was not counted.
    pub(super) fn discard(&mut self, buffer: P::Buffer, reason: DropReason) {
        self.counters.count_drops(reason, 1);
        self.make_trash_room(1);
        self.trash.push(buffer);
    }

    /// Drops a packet that may have been counted.
    pub(super) fn lose(&mut self, packet: Packet<P::Buffer>, reason: DropReason) {
        self.take_back(&packet.meta, reason);
        self.discard(packet.buffer, reason);
    }

    /// Drops the first `count`, all for one reason: who floods us must not cost more than who uses us, so none is taken by value
    /// through a function, where it would be copied whole.
    #[inline(always)]
    pub(super) fn lose_all(
        &mut self,
        packets: &mut Drain<'_, Packet<P::Buffer>>,
        count: usize,
        reason: DropReason,
    ) {
        for packet in packets.as_slice().iter().take(count) {
            self.take_back(&packet.meta, reason);
        }
        self.counters.count_drops(reason, count as u64);
        self.make_trash_room(count);
        self.trash.extend(packets.by_ref().take(count).map(|packet| packet.buffer));
    }

    #[inline(always)]
    fn take_back(&mut self, meta: &Meta, reason: DropReason) {
        if meta.receipt != Receipt::NONE {
            self.state.take_back(meta.receipt);
        }
        if reason == DropReason::FarDrop {
            self.tell_dropped(meta);
        }
    }

    /// For so many, a vector at most.
    #[inline(always)]
    pub(super) fn make_trash_room(&mut self, count: usize) {
        if self.trash.len() + count > TRASH_ROOM {
            P::Buffer::free_all(&mut self.trash);
        }
    }
}

//! Splits packets that are too long for their way, where their senders allow it (RFC 791 3.2).

use super::Worker;
use super::rest::PARTS;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet};
use crate::nodes;
use crate::port::Port;
use packet::Buffer;
use packet::fragment::Split;

/// Flows of which packets of the vector at hand were split, by some bits of their hashes: what came behind those stays behind them.
pub(super) struct SplitFlows(u64);

impl SplitFlows {
    pub(super) const NONE: Self = Self(0);

    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.0 == 0
    }

    const fn of(meta: &Meta) -> u64 {
        1 << (meta.hash % 64)
    }

    /// Notes a packet that is to be split.
    pub(super) const fn note(&mut self, meta: &Meta) {
        if matches!(meta.fate, Fate::Split | Fate::SplitTunnel) {
            self.0 |= Self::of(meta);
        }
    }

    /// Whether a packet would overtake one. Those that are split themselves leave in order.
    pub(super) const fn overtaken_by(&self, meta: &Meta) -> bool {
        self.0 & Self::of(meta) != 0 && !matches!(meta.fate, Fate::Split | Fate::SplitTunnel)
    }
}

impl<P: Port> Worker<P> {
    /// Puts the fragments of a packet among those that still have to run, and frees the packet; drops it where there is
    /// no room for all of them.
    pub(super) fn split(&mut self, packet: Packet<P::Buffer>) {
        let before = self.rest.parts.len();
        match self.fragment(&packet) {
            Ok(()) => {
                let parts = self.rest.parts.len() - before;
                self.counters.created += parts as u64 - 1;
                self.trash.push(packet.buffer);
            }
            Err(reason) => {
                self.rest.parts.truncate(before);
                self.note_part(&packet.meta, Fate::Drop(reason));
                self.discard(packet.buffer, reason);
            }
        }
    }

    /// An error, and perhaps some fragments, where it cannot be split, or room or memory is used up.
    fn fragment(&mut self, packet: &Packet<P::Buffer>) -> Result<(), DropReason> {
        let mtu = nodes::path_mtu(&self.state, packet).ok_or(DropReason::MtuExceeded)?;
        let planned = Split::plan(packet.buffer.data(), mtu.into());
        let split = planned.map_err(|_| DropReason::MtuExceeded)?;
        if self.rest.parts.len() + split.count() > PARTS {
            return Err(DropReason::NotSplit);
        }
        (0..split.count())
            .try_for_each(|number| self.part(packet, &split, number))
            .ok_or(DropReason::NotSplit)
    }

    fn part(&mut self, packet: &Packet<P::Buffer>, split: &Split<'_>, number: usize) -> Option<()> {
        let mut buffer = self.lanes.first_mut()?.port.allocate()?;
        split.write_to(number, &mut buffer)?;
        let bytes = u16::try_from(buffer.data().len()).ok()?;
        // What stood in front of the packet is not in front of its parts.
        let marks = packet.meta.marks.relaying(false);
        self.rest.parts.push(Packet { buffer, meta: Meta { bytes, marks, ..packet.meta } });
        Some(())
    }
}

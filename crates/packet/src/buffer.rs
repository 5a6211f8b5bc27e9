//! The one thing the data path asks of a packet buffer.

use std::ops::Range;

/// Bytes a received packet can grow by at its front (DPDK's default headroom).
pub const HEADROOM: usize = 128;

/// A packet in one contiguous piece, with room to grow at both ends. It is owned: dropping it frees it.
pub trait Buffer: Sized {
    /// The packet.
    fn data(&self) -> &[u8];

    /// The packet.
    fn data_mut(&mut self) -> &mut [u8];

    /// Whether the packet lies in one piece, as all else here promises; one that does not is to be dropped unread.
    fn is_contiguous(&self) -> bool {
        true
    }

    /// Grows the packet by `n` bytes at the front and returns the packet, its first `n` bytes undefined.
    /// `None`, and no change, without the room.
    fn prepend(&mut self, n: usize) -> Option<&mut [u8]>;

    /// Grows the packet by `n` bytes at the end and returns the packet, its last `n` bytes undefined.
    /// `None`, and no change, without the room.
    fn append(&mut self, n: usize) -> Option<&mut [u8]>;

    /// Removes `n` bytes from the front; `None`, and no change, where the packet is shorter.
    fn trim_front(&mut self, n: usize) -> Option<()>;

    /// Cuts the packet to `length` bytes; `None`, and no change, where it is shorter.
    fn truncate(&mut self, length: usize) -> Option<()>;

    /// Leaves `length` bytes from `start` on; `None`, and perhaps a part of it, where the packet is shorter.
    fn keep(&mut self, start: usize, length: usize) -> Option<()> {
        self.trim_front(start)?;
        self.truncate(length)
    }

    /// Asks the CPU for the packet's first bytes, which will be read soon. Changes nothing but speed.
    fn prefetch_data(&self) {}

    /// The same of one cache line less: of a packet in no tunnel, all headers stand in the first.
    fn prefetch_front(&self) {}

    /// Asks the CPU for the buffer's own description, which everything else needs first.
    fn prefetch(&self) {}

    /// Asks the CPU for the room in front of the packet, which headers will be written to.
    fn prefetch_headroom(&self) {}

    /// Frees many at once.
    fn free_all(buffers: &mut Vec<Self>) {
        buffers.clear();
    }
}

/// A buffer on the heap, for tests, simulation and the slow reference of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapBuffer {
    room: Vec<u8>,
    packet: Range<usize>,
    in_pieces: bool,
}

impl HeapBuffer {
    /// Room behind a packet, like that of a 2 KiB mbuf holding a full frame.
    const TAILROOM: usize = 512;

    /// A packet of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self::with_headroom(bytes, HEADROOM)
    }

    /// A packet of these bytes that can grow by `headroom` bytes at its front.
    pub fn with_headroom(bytes: &[u8], headroom: usize) -> Self {
        let end = headroom + bytes.len();
        let mut room = vec![0; end + Self::TAILROOM];
        if let Some(packet) = room.get_mut(headroom..end) {
            packet.copy_from_slice(bytes);
        }
        Self { room, packet: headroom..end, in_pieces: false }
    }

    /// What is seen of a packet that lies in several pieces: the first.
    pub fn in_pieces(bytes: &[u8]) -> Self {
        Self { in_pieces: true, ..Self::new(bytes) }
    }
}

impl Buffer for HeapBuffer {
    fn data(&self) -> &[u8] {
        self.room.get(self.packet.clone()).unwrap_or_default()
    }

    fn data_mut(&mut self) -> &mut [u8] {
        self.room.get_mut(self.packet.clone()).unwrap_or_default()
    }

    fn is_contiguous(&self) -> bool {
        !self.in_pieces
    }

    fn prepend(&mut self, n: usize) -> Option<&mut [u8]> {
        self.packet.start = self.packet.start.checked_sub(n)?;
        Some(self.data_mut())
    }

    fn append(&mut self, n: usize) -> Option<&mut [u8]> {
        let end = self.packet.end.checked_add(n).filter(|end| *end <= self.room.len() && !self.in_pieces)?;
        self.packet.end = end;
        Some(self.data_mut())
    }

    fn trim_front(&mut self, n: usize) -> Option<()> {
        self.packet.start = self.packet.start.checked_add(n).filter(|start| *start <= self.packet.end)?;
        Some(())
    }

    fn truncate(&mut self, length: usize) -> Option<()> {
        let end = self.packet.start.checked_add(length);
        let end = end.filter(|end| *end <= self.packet.end && !self.in_pieces)?;
        self.packet.end = end;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_grows_and_shrinks_at_both_ends() {
        let mut buffer = HeapBuffer::new(&[1, 2, 3]);
        buffer.prepend(1).unwrap()[0] = 0;
        buffer.append(1).unwrap()[4] = 4;
        assert_eq!(buffer.data(), [0, 1, 2, 3, 4]);
        buffer.trim_front(2).unwrap();
        buffer.truncate(2).unwrap();
        assert_eq!(buffer.data(), [2, 3]);
    }

    #[test]
    fn room_that_is_not_there_changes_nothing() {
        let mut buffer = HeapBuffer::new(&[1, 2, 3]);
        assert!(buffer.prepend(HEADROOM + 1).is_none());
        assert!(buffer.append(HeapBuffer::TAILROOM + 1).is_none());
        assert!(buffer.trim_front(4).is_none());
        assert!(buffer.truncate(4).is_none());
        assert_eq!(buffer.data(), [1, 2, 3]);
    }
}

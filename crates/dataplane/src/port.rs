//! What a worker asks of a port.

use packet::Buffer;

/// One queue pair of a port, owned by one worker.
pub trait Port {
    /// The buffers it gives and takes.
    type Buffer: Buffer;

    /// Appends up to `limit` received packets; returns how many.
    fn receive(&mut self, into: &mut Vec<Self::Buffer>, limit: usize) -> usize;

    /// Takes packets from the front of `from` until the port is full; returns how many.
    fn send(&mut self, from: &mut Vec<Self::Buffer>) -> usize;

    /// An empty buffer; `None` where memory is used up.
    fn allocate(&mut self) -> Option<Self::Buffer>;

    /// Packets the device lost before anybody could receive them, since it was opened; 0 where it does not count.
    fn missed(&self) -> u64 {
        0
    }

    /// Whether the packet lies in one piece, as [`Buffer`] promises; one that does not is dropped unread.
    fn is_contiguous(buffer: &Self::Buffer) -> bool;
}

//! What a worker asks of a port.

use packet::Buffer;

/// Most classes of one port that have queues of their own, besides the rest: so many that each is sure of its share of every
/// turn (`worker/receive.rs`), and that a counter for each is not too many.
pub const CLASSES_MAX: usize = 3;

/// One queue pair of a port, owned by one worker; or several queues to receive by, where the device sorts packets into
/// classes.
pub trait Port {
    /// The buffers it gives and takes.
    type Buffer: Buffer;

    /// Appends up to `limit` received packets, of those that are in no class; returns how many.
    fn receive(&mut self, into: &mut Vec<Self::Buffer>, limit: usize) -> usize;

    /// Classes whose packets wait in queues of their own, at most [`CLASSES_MAX`].
    fn classes(&self) -> usize {
        0
    }

    /// Appends up to `limit` received packets of a class, 0 being the most urgent; returns how many.
    fn receive_class(&mut self, _class: usize, _into: &mut Vec<Self::Buffer>, _limit: usize) -> usize {
        0
    }

    /// Takes packets from the front of `from` until the port is full; returns how many.
    fn send(&mut self, from: &mut Vec<Self::Buffer>) -> usize;

    /// An empty buffer; `None` where memory is used up.
    fn allocate(&mut self) -> Option<Self::Buffer>;

    /// Packets the device lost before anybody could receive them, since it was opened; 0 where it does not count.
    fn missed(&self) -> u64 {
        0
    }
}

//! The far end of a port, in memory.

use dataplane::Port;
use packet::{Buffer, HeapBuffer};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Room of an empty buffer: a whole frame and more.
const ROOM: usize = 2_048;

/// A port of the worker, and what is plugged into it: both ends share it.
#[derive(Clone, Default)]
pub struct Wire(Rc<RefCell<Ends>>);

#[derive(Default)]
struct Ends {
    to_worker: VecDeque<HeapBuffer>,
    from_worker: Vec<Vec<u8>>,
}

impl Wire {
    /// A frame arrives at the port.
    pub(crate) fn arrive(&self, frame: &[u8]) {
        self.0.borrow_mut().to_worker.push_back(HeapBuffer::new(frame));
    }

    /// Takes the frames that left by the port.
    pub(crate) fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.borrow_mut().from_worker)
    }
}

impl Port for Wire {
    type Buffer = HeapBuffer;

    fn receive(&mut self, into: &mut Vec<HeapBuffer>, limit: usize) -> usize {
        let mut ends = self.0.borrow_mut();
        let count = limit.min(ends.to_worker.len());
        into.extend(ends.to_worker.drain(..count));
        count
    }

    fn send(&mut self, from: &mut Vec<HeapBuffer>) -> usize {
        let count = from.len();
        self.0.borrow_mut().from_worker.extend(from.drain(..).map(|buffer| buffer.data().to_vec()));
        count
    }

    fn allocate(&mut self) -> Option<HeapBuffer> {
        let mut buffer = HeapBuffer::new(&[0; ROOM]);
        buffer.truncate(0)?;
        Some(buffer)
    }
}

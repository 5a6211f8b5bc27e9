//! The wires of the workers' ports, whose buffers have as much room as a driver gives.

use crate::port::Port;
use packet::{Buffer, HeapBuffer};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// More than the longest frame has: damage may double one of a port for 9,000.
const ROOM: usize = 20_480;

/// What is on its way to the worker, and what came from it.
type OnTheWay = (VecDeque<HeapBuffer>, Vec<Vec<u8>>);

/// Both ends of a wire.
#[derive(Clone, Default)]
pub(super) struct Wire(pub(super) Rc<RefCell<OnTheWay>>);

impl Port for Wire {
    type Buffer = HeapBuffer;

    fn receive(&mut self, into: &mut Vec<HeapBuffer>, limit: usize) -> usize {
        let waiting = &mut self.0.borrow_mut().0;
        let count = limit.min(waiting.len());
        into.extend(waiting.drain(..count));
        count
    }

    fn send(&mut self, from: &mut Vec<HeapBuffer>) -> usize {
        let sent = &mut self.0.borrow_mut().1;
        sent.extend(from.iter().map(|buffer| buffer.data().to_vec()));
        from.drain(..).count()
    }

    fn allocate(&mut self) -> Option<HeapBuffer> {
        Some(roomy(&[]))
    }
}

/// As much room as the port's driver gives, whatever the frame: some become longer.
pub(super) fn roomy(frame: &[u8]) -> HeapBuffer {
    let mut bytes = frame.to_vec();
    bytes.resize(ROOM.max(frame.len()), 0);
    let mut buffer = HeapBuffer::new(&bytes);
    buffer.truncate(frame.len()).unwrap();
    buffer
}

//! A wire whose stations answer whoever asks for their Ethernet addresses, or no packet would leave by a port.

use dataplane::Port;
use packet::{Buffer, HeapBuffer, checksum};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Octets of the longest frame, as of a driver's buffers.
const ROOM: usize = 9_216;
const STATION: [u8; 6] = [2, 0, 0, 0, 9, 9];

/// What is on its way to the worker, and what came from it.
#[derive(Clone, Default)]
pub struct Wire(Rc<RefCell<VecDeque<HeapBuffer>>>);

impl Wire {
    pub fn put(&self, frame: &[u8]) {
        self.0.borrow_mut().push_back(roomy(frame));
    }
}

impl Port for Wire {
    type Buffer = HeapBuffer;

    fn receive(&mut self, into: &mut Vec<HeapBuffer>, limit: usize) -> usize {
        let mut waiting = self.0.borrow_mut();
        let count = limit.min(waiting.len());
        into.extend(waiting.drain(..count));
        count
    }

    fn send(&mut self, from: &mut Vec<HeapBuffer>) -> usize {
        let count = from.len();
        for buffer in from.drain(..) {
            assert!(buffer.data().len() <= ROOM);
            if let Some(answer) = answer(buffer.data()) {
                self.put(&answer);
            }
        }
        count
    }

    fn allocate(&mut self) -> Option<HeapBuffer> {
        Some(roomy(&[]))
    }
}

fn roomy(frame: &[u8]) -> HeapBuffer {
    let mut bytes = frame.to_vec();
    bytes.resize(ROOM.max(frame.len()), 0);
    let mut buffer = HeapBuffer::new(&bytes);
    buffer.truncate(frame.len());
    buffer
}

/// What the station that is asked for says, in the asker's VLAN.
fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let tag = if frame.get(12..14) == Some(&[0x81, 0]) { 4 } else { 0 };
    let ethernet = [frame.get(6..12)?, &STATION, frame.get(12..14 + tag)?].concat();
    let packet = frame.get(14 + tag..)?;
    match frame.get(12 + tag..14 + tag)? {
        [0x08, 0x06] if packet.get(7) == Some(&1) => {
            let (asker, asked) = (packet.get(8..18)?, packet.get(24..28)?);
            Some([&ethernet, &packet[..6], &[0, 2], &STATION, asked, asker].concat())
        }
        [0x86, 0xdd] if packet.get(6) == Some(&58) && packet.get(40) == Some(&135) => {
            let (asker, asked) = (packet.get(8..24)?, packet.get(48..64)?);
            let mut told = [&[136, 0, 0, 0, 0x60, 0, 0, 0][..], asked, &[2, 1], &STATION].concat();
            let pseudo = [asked, asker, &[0, 0, 0, 32, 0, 0, 0, 58]].concat();
            let sum = checksum::of(&[&pseudo[..], &told].concat());
            told[2..4].copy_from_slice(&sum.to_be_bytes());
            Some([&ethernet, &[0x60, 0, 0, 0, 0, 32, 58, 255][..], asked, asker, &told].concat())
        }
        _ => None,
    }
}

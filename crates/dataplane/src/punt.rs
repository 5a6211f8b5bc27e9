//! What is addressed to a port and nobody here speaks, on its way to the kernel, and what the kernel sends by a port, on its
//! way there. Frames are copied into rings of octets: buffers stay with their worker, and the control side has none.
//!
//! Each worker has a ring to the control side; what comes from there goes through one ring to the first worker, which has a
//! queue of every port to send by.

use crate::config::PortConfig;
use crate::frame::PortIndex;
use rtrb::chunks::ReadChunk;
use rtrb::{Consumer, Producer, RingBuffer};

/// Octets of a ring: more than 150 frames of 1,500, which is what may come at once while the control side does something else.
const RING: usize = 1 << 18;
/// In front of each frame: its port, and its length.
const HEAD: usize = 3;
/// Octets of the longest frame of any port: an MTU of 9,600, the header and two tags.
const LONGEST: usize = 9_600 + 14 + 8;

/// The control side's end.
pub struct Punts {
    from_workers: Vec<Consumer<u8>>,
    to_port: Producer<u8>,
    frame: Vec<u8>,
}

/// A worker's end.
pub(crate) struct KernelSide {
    to_kernel: Producer<u8>,
    /// Of the first worker.
    from_kernel: Option<Consumer<u8>>,
}

/// Rings for so many workers, if any port has something to do with the kernel.
pub(crate) fn rings(ports: &[PortConfig], workers: usize) -> Option<(Punts, Vec<KernelSide>)> {
    ports.iter().any(|port| port.punt.is_some()).then(|| {
        let (to_port, from_kernel) = RingBuffer::new(RING);
        let (mut from_kernel, mut from_workers) = (Some(from_kernel), Vec::new());
        let side = |_| {
            let (to_kernel, from_worker) = RingBuffer::new(RING);
            from_workers.push(from_worker);
            KernelSide { to_kernel, from_kernel: from_kernel.take() }
        };
        let sides = (0..workers).map(side).collect();
        (Punts { from_workers, to_port, frame: Vec::with_capacity(LONGEST) }, sides)
    })
}

impl Punts {
    /// Gives away up to so many frames of each worker, each with its port's place in the configuration; returns how many.
    pub fn take(&mut self, limit: usize, mut give: impl FnMut(usize, &[u8])) -> usize {
        let mut taken = 0;
        for ring in &mut self.from_workers {
            for _ in 0..limit {
                let Some(waiting) = Waiting::first(ring) else { break };
                let (front, back) = waiting.frame();
                self.frame.clear();
                self.frame.extend_from_slice(front);
                self.frame.extend_from_slice(back);
                give(waiting.port.into(), &self.frame);
                waiting.taken();
                taken += 1;
            }
        }
        taken
    }

    /// Whether a frame of any length would be taken by [`Punts::send`].
    pub fn has_room(&self) -> bool {
        self.to_port.slots() >= HEAD + LONGEST
    }

    /// Lets a frame leave by the port at this place of the configuration, as it is; `false` where there is no room for it.
    pub fn send(&mut self, port: usize, frame: &[u8]) -> bool {
        PortIndex::try_from(port).is_ok_and(|port| put(&mut self.to_port, port, frame))
    }
}

impl KernelSide {
    /// Lets the kernel have a copy of a frame; `false` where there is no room for it.
    pub(crate) fn give(&mut self, port: PortIndex, frame: &[u8]) -> bool {
        put(&mut self.to_kernel, port, frame)
    }

    /// The frame of the kernel that waits for longest.
    pub(crate) fn first(&mut self) -> Option<Waiting<'_>> {
        Waiting::first(self.from_kernel.as_mut()?)
    }

    /// Whether the kernel wants something sent.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.from_kernel.as_ref().is_some_and(|ring| !ring.is_empty())
    }
}

/// A frame in a ring; it stays there unless it is taken.
pub(crate) struct Waiting<'a> {
    pub(crate) port: PortIndex,
    chunk: ReadChunk<'a, u8>,
}

impl<'a> Waiting<'a> {
    fn first(ring: &'a mut Consumer<u8>) -> Option<Self> {
        let head = ring.read_chunk(HEAD).ok()?;
        let (front, back) = head.as_slices();
        let mut octets = front.iter().chain(back).copied();
        let (port, low, high) = (octets.next()?, octets.next()?, octets.next()?);
        // What is behind its head may still be on its way.
        let chunk = ring.read_chunk(HEAD + usize::from(u16::from_le_bytes([low, high]))).ok()?;
        Some(Self { port, chunk })
    }

    /// In two pieces, of which the second is empty but at the ring's end.
    pub(crate) fn frame(&self) -> (&[u8], &[u8]) {
        let (front, back) = self.chunk.as_slices();
        let of_back = HEAD.saturating_sub(front.len());
        (front.get(HEAD..).unwrap_or_default(), back.get(of_back..).unwrap_or_default())
    }

    pub(crate) fn taken(self) {
        self.chunk.commit_all();
    }
}

fn put(ring: &mut Producer<u8>, port: PortIndex, frame: &[u8]) -> bool {
    let Ok(length) = u16::try_from(frame.len()) else { return false };
    let [low, high] = length.to_le_bytes();
    ring.slots() >= HEAD + frame.len()
        && ring.push_entire_slice(&[port, low, high]).is_ok()
        && ring.push_entire_slice(frame).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::config;

    fn punting() -> Vec<PortConfig> {
        let mut ports = config().ports;
        ports[0].punt = Some("n3-host".to_owned());
        ports
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_often_the_ring_goes_round() {
        let (mut punts, mut sides) = rings(&punting(), 2).unwrap();
        for number in 0..2_000_usize {
            let frame = vec![number as u8; 60 + number % 1_400];
            assert!(sides[number % 2].give(1, &frame));
            let mut seen = Vec::new();
            assert_eq!(punts.take(8, |port, frame| seen.push((port, frame.to_vec()))), 1);
            assert_eq!(seen, [(1, frame.clone())]);
            assert!(punts.send(0, &frame));
            assert!(sides[1].first().is_none() && sides[0].is_waited_for());
            let waiting = sides[0].first().unwrap();
            assert_eq!((waiting.port, [waiting.frame().0, waiting.frame().1].concat()), (0, frame));
            waiting.taken();
        }
    }

    #[test]
    fn a_full_ring_takes_no_part_of_a_frame() {
        let (mut punts, mut sides) = rings(&punting(), 1).unwrap();
        let taken = (0..1_000).take_while(|_| sides[0].give(0, &[7; 1_500])).count();
        assert_eq!(taken, RING / (HEAD + 1_500));
        let whole = |_: usize, frame: &[u8]| assert_eq!(frame, [7; 1_500]);
        // No more than so many at once.
        assert_eq!((punts.take(100, whole), punts.take(1_000, whole)), (100, taken - 100));
        assert!(sides[0].give(0, &[7; 1_500]) && punts.take(1, whole) == 1);
        while punts.has_room() {
            assert!(punts.send(0, &[1; LONGEST]));
        }
        assert!(rings(&config().ports, 1).is_none(), "there is nothing without a port that punts");
    }
}

//! Packets between workers: a ring from each to each, filled and emptied in vectors.

use super::past_caches;
use super::post::pairs;
use crate::frame::{FlowMarks, Meta, Packet, PortIndex, VECTOR};
use crate::side::Side;
use crate::state::{FlowKey, prefetch, prefetch_write};
use rtrb::chunks::WriteChunkUninit;
use rtrb::{Consumer, Producer, RingBuffer};

/// Packets on their way from one worker to another: four vectors, so that a worker that is away for some turns loses
/// none, and one that cannot keep up does not make packets old.
const DEPTH: usize = 4 * VECTOR;

/// As how often a packet counts as handed on that was kept for a sleeping user, and goes with its session to another
/// worker: nobody hands it on from there.
pub(crate) const GIVEN: u8 = 128;
/// How many of them find room, if nothing else is on the way.
pub(crate) const GIVEN_MAX: usize = DEPTH;

/// A packet and what its next worker cannot read from it: one cache line, since lines are what it costs to hand over.
#[repr(align(64))]
pub(crate) struct Handed<B> {
    pub(crate) buffer: B,
    key: FlowKey,
    teid: u32,
    bytes: u16,
    port: PortIndex,
    outer: u8,
    qfi: u8,
    marks: FlowMarks,
    traffic_class: u8,
    fragment: bool,
    handed: u8,
    loops: u8,
    copied: bool,
}

const _: () = assert!(size_of::<Handed<usize>>() == 64, "a line");

impl<B> Handed<B> {
    #[inline(always)]
    fn new(packet: Packet<B>) -> Self {
        let Packet { buffer, meta } = packet;
        let Meta {
            key,
            teid,
            bytes,
            port,
            outer,
            qfi,
            marks,
            traffic_class,
            fragment,
            handed,
            loops,
            copied,
            ..
        } = meta;
        Self {
            buffer,
            key,
            teid,
            bytes,
            port,
            outer,
            qfi,
            marks,
            traffic_class,
            fragment,
            handed: handed + 1,
            loops,
            copied,
        }
    }

    /// Where it came in.
    pub(crate) const fn port(&self) -> PortIndex {
        self.port
    }

    /// As it was before `flow`: `from` is the side of its port, `hash` that of its key.
    #[inline]
    pub(crate) fn packet(self, from: Side, hash: impl FnOnce(&FlowKey) -> u64) -> Packet<B> {
        let Self {
            buffer,
            key,
            teid,
            bytes,
            port,
            outer,
            qfi,
            marks,
            traffic_class,
            fragment,
            handed,
            loops,
            copied,
        } = self;
        let hash = hash(&key);
        let meta = Meta::new(port, from);
        Packet {
            buffer,
            meta: Meta {
                key,
                hash,
                teid,
                bytes,
                outer,
                qfi,
                marks,
                traffic_class,
                fragment,
                handed,
                loops,
                copied,
                ..meta
            },
        }
    }
}

/// A worker's ends of the rings, by worker; `None` towards itself.
pub(crate) struct Handoff<B> {
    to: Vec<Option<Lane<B>>>,
    from: Vec<Option<Inlet<B>>>,
    /// Whose packets were taken first.
    turn: usize,
    waits: bool,
    writes_past_caches: bool,
}

/// From one worker. Like [`Lane`] on lines of its own: the ends remember what they saw of each other.
#[repr(align(128))]
struct Inlet<B>(Consumer<Handed<B>>);

/// To one worker: the ring, and what goes into it at the end of the vector.
#[repr(align(128))]
struct Lane<B> {
    ring: Producer<Handed<B>>,
    out: Vec<Handed<B>>,
}

/// The ends of so many workers, and whether what goes into the rings is written past the caches.
pub(crate) fn handoffs<B>(workers: usize, writes_past_caches: bool) -> Vec<Handoff<B>> {
    let empty = || Handoff { to: Vec::new(), from: Vec::new(), turn: 0, waits: false, writes_past_caches };
    let mut ends: Vec<Handoff<B>> = (0..workers).map(|_| empty()).collect();
    for (giver, taker) in pairs(workers) {
        let (to, from) = match giver == taker {
            true => (None, None),
            false => {
                let (ring, from) = RingBuffer::new(DEPTH);
                (Some(Lane { ring, out: Vec::with_capacity(VECTOR) }), Some(Inlet(from)))
            }
        };
        ends[giver].to.push(to);
        ends[taker].from.push(from);
    }
    ends
}

impl<B> Handoff<B> {
    /// Puts a packet among those for a worker; gives it back where there is no such worker.
    #[inline]
    pub(crate) fn put(&mut self, worker: u8, packet: Packet<B>) -> Result<(), Packet<B>> {
        match self.to.get_mut(usize::from(worker)) {
            Some(Some(lane)) => {
                lane.out.push(Handed::new(packet));
                self.waits = true;
                Ok(())
            }
            _ => Err(packet),
        }
    }

    /// Puts packets among those for a worker; false, and none taken, where there is no such worker.
    #[inline(always)]
    pub(crate) fn put_all(&mut self, worker: u8, packets: impl Iterator<Item = Packet<B>>) -> bool {
        let Some(Some(lane)) = self.to.get_mut(usize::from(worker)) else { return false };
        lane.out.extend(packets.map(Handed::new));
        self.waits = true;
        true
    }

    /// Whether any packet waits for [`Handoff::send`].
    #[inline]
    pub(crate) const fn waits(&self) -> bool {
        self.waits
    }

    /// Puts what waits into the rings; returns how many packets went. What finds no room goes to `left`.
    pub(crate) fn send(&mut self, left: &mut Vec<Handed<B>>) -> u64 {
        self.waits = false;
        let mut sent = 0;
        for lane in self.to.iter_mut().flatten() {
            let room = lane.ring.slots().min(lane.out.len());
            if let Ok(chunk) = lane.ring.write_chunk_uninit(room) {
                let filled = match self.writes_past_caches {
                    true => past_caches::fill(chunk, &mut lane.out),
                    false => fill(chunk, &mut lane.out),
                };
                sent += filled as u64;
            }
            left.append(&mut lane.out);
        }
        sent
    }

    /// How many workers there are.
    pub(crate) const fn workers(&self) -> usize {
        self.from.len()
    }

    /// How many packets another worker has handed over that were not taken yet.
    pub(crate) fn waiting(&self, from: usize) -> usize {
        self.from.get(from).and_then(Option::as_ref).map_or(0, |inlet| inlet.0.slots())
    }

    /// Whether another worker has handed over anything that was not taken yet.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.from.iter().flatten().any(|inlet| !inlet.0.is_empty())
    }

    /// Takes up to so many packets of one other worker.
    pub(crate) fn take_of(&mut self, from: usize, limit: usize, into: impl FnMut(Handed<B>)) -> usize {
        let inlet = self.from.get_mut(from).and_then(Option::as_mut);
        inlet.map_or(0, |inlet| take_from(&mut inlet.0, limit, into))
    }

    /// Takes up to so many packets that others handed over, beginning with another of them each time; returns how many.
    pub(crate) fn take(&mut self, limit: usize, mut into: impl FnMut(Handed<B>)) -> usize {
        let workers = self.from.len();
        self.turn = if self.turn + 1 < workers { self.turn + 1 } else { 0 };
        let mut room = limit;
        for at in (self.turn..workers).chain(0..self.turn) {
            if let Some(Some(Inlet(from))) = self.from.get_mut(at) {
                room -= take_from(from, room, &mut into);
            }
        }
        limit - room
    }
}

/// Moves as many as the chunk has slots into it.
fn fill<T>(mut chunk: WriteChunkUninit<'_, T>, values: &mut Vec<T>) -> usize {
    // The taker has read these lines when they were filled before, and has to give them up.
    let (first, second) = chunk.as_mut_slices();
    first.iter().chain(second.iter()).for_each(prefetch_write);
    let count = chunk.len().min(values.len());
    chunk.fill_from_iter(values.drain(..count))
}

fn take_from<B>(from: &mut Consumer<Handed<B>>, limit: usize, into: impl FnMut(Handed<B>)) -> usize {
    let count = from.slots().min(limit);
    match from.read_chunk(count) {
        Ok(chunk) => {
            // They lie in the other's cache: asked for all at once, they come one behind the other.
            let (first, second) = chunk.as_slices();
            first.iter().chain(second).for_each(prefetch);
            chunk.into_iter().for_each(into);
            count
        }
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Interface;
    use std::thread;

    /// Where more is handed over than fits a vector, nobody's packets wait for another's for ever.
    #[test]
    fn every_giver_has_its_turn() {
        let mut ends = handoffs::<u32>(3, false);
        let side = Side::of(Interface::Access);
        for (giver, end) in ends.iter_mut().enumerate().skip(1) {
            for number in 0..4 {
                let packet = Packet { buffer: giver as u32 * 10 + number, meta: Meta::new(0, side) };
                end.put(0, packet).ok().unwrap();
            }
            assert_eq!(end.send(&mut Vec::new()), 4);
        }
        let mut take = |limit| {
            let mut taken = Vec::new();
            assert_eq!(ends[0].take(limit, |handed| taken.push(handed.buffer)), taken.len());
            taken
        };
        assert_eq!((take(3), take(3)), (vec![10, 11, 12], vec![20, 21, 22]));
        assert_eq!((take(9), take(9)), (vec![13, 23], vec![]));
    }

    #[test]
    fn a_worker_hands_to_the_others_many_at_once_and_never_to_itself() {
        let mut ends = handoffs::<u32>(2, true);
        let (mut taker, mut giver) = (ends.pop().unwrap(), ends.pop().unwrap());
        let packet = |buffer| Packet { buffer, meta: Meta::new(0, Side::of(Interface::Access)) };
        let mut packets = (0..5).map(packet);
        assert!(!giver.put_all(0, packets.by_ref()) && !giver.put_all(2, packets.by_ref()) && !giver.waits());
        giver.put(1, packets.next().unwrap()).ok().unwrap();
        assert!(giver.put_all(1, packets) && giver.waits());
        assert_eq!(giver.send(&mut Vec::new()), 5);
        let mut taken = Vec::new();
        taker.take(VECTOR, |handed| taken.push(handed.buffer));
        assert_eq!(taken, [0, 1, 2, 3, 4]);
    }

    /// What Miri is to look at: two threads, a ring between them, everything given away and taken once.
    #[test]
    fn what_one_thread_gives_another_takes_in_order() {
        [false, true].into_iter().for_each(give_and_take);
    }

    fn give_and_take(writes_past_caches: bool) {
        const PACKETS: u32 = if cfg!(miri) { 300 } else { 100_000 };
        let mut ends = handoffs::<Box<u32>>(2, writes_past_caches);
        let (mut taker, mut giver) = (ends.pop().unwrap(), ends.pop().unwrap());
        let side = Side::of(Interface::Access);
        let giving = thread::spawn(move || {
            let (mut sent, mut left, mut number) = (0, Vec::new(), 0);
            while sent < u64::from(PACKETS) {
                for _ in 0..VECTOR.min((PACKETS - number) as usize) {
                    let meta = Meta { teid: number, ..Meta::new(0, side) };
                    giver.put(1, Packet { buffer: Box::new(number), meta }).ok().unwrap();
                    number += 1;
                }
                sent += giver.send(&mut left);
                // What found no room is given again, in its order.
                while !left.is_empty() {
                    for handed in left.drain(..) {
                        let Packet { buffer, meta } = handed.packet(side, |_| 0);
                        giver.put(1, Packet { buffer, meta: Meta { handed: 0, ..meta } }).ok().unwrap();
                    }
                    thread::yield_now();
                    sent += giver.send(&mut left);
                }
            }
        });
        let mut expected = 0;
        while expected < PACKETS {
            let took = taker.take(VECTOR, |handed| {
                let packet = handed.packet(side, |_| 0);
                assert_eq!((*packet.buffer, packet.meta.teid), (expected, expected));
                expected += 1;
            });
            if took == 0 {
                thread::yield_now();
            }
        }
        giving.join().unwrap();
    }
}

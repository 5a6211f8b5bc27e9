//! Packets between workers: a ring from each to each, filled and emptied in vectors.

use super::post::pairs;
use crate::frame::{FlowMarks, Meta, Packet, PortIndex, VECTOR};
use crate::side::Side;
use crate::state::{FlowKey, prefetch, prefetch_write};
use rtrb::chunks::ReadChunk;
use rtrb::{Consumer, Producer, RingBuffer};

/// Packets on their way from one worker to another: four vectors, so that a worker that is away for some turns loses
/// none, and one that cannot keep up does not make packets old.
const DEPTH: usize = 4 * VECTOR;

/// As how often a packet counts as handed on that was kept for a sleeping user, and goes with its session to another
/// worker: nobody hands it on from there.
pub(crate) const GIVEN: u8 = 128;
/// How many of them find room, if nothing else is on the way.
pub(crate) const GIVEN_MAX: usize = DEPTH;

/// A packet as it came in at a port: nobody has read more of it than whose it is.
#[derive(Debug)]
pub(crate) struct Unread<B> {
    pub(crate) buffer: B,
    pub(crate) port: PortIndex,
}

/// A packet that was read, and what its next worker cannot read from it: one cache line, since lines are what it costs to hand over.
#[repr(align(64))]
pub(crate) struct Handed<B> {
    pub(crate) buffer: B,
    key: FlowKey,
    teid: u32,
    bytes: u16,
    /// How many unread ones were handed over before it, as far as these octets say.
    after: u16,
    port: PortIndex,
    outer: u8,
    qfi: u8,
    marks: FlowMarks,
    traffic_class: u8,
    handed: u8,
    loops: u8,
    flags: u8,
}

/// It is a fragment, the first one or another.
const FRAGMENT: u8 = 1;
/// Copies have been made of it.
const COPIED: u8 = 2;

const _: () = assert!(size_of::<Handed<usize>>() == 64, "a line");

impl<B> Handed<B> {
    /// `after` so many unread ones.
    #[inline(always)]
    fn new(packet: Packet<B>, after: u16) -> Self {
        let Packet { buffer, meta } = packet;
        let Meta { key, teid, bytes, port, outer, qfi, marks, traffic_class, handed, loops, .. } = meta;
        let flags = (u8::from(meta.fragment) * FRAGMENT) | (u8::from(meta.copied) * COPIED);
        let handed = handed + 1;
        Self { buffer, key, teid, bytes, after, port, outer, qfi, marks, traffic_class, handed, loops, flags }
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
            handed,
            loops,
            flags,
            ..
        } = self;
        let (fragment, copied) = (flags & FRAGMENT != 0, flags & COPIED != 0);
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
    /// What came in at a port, by whose it is; this worker's own, too.
    sorted: Vec<Vec<Unread<B>>>,
    /// Whose packets were taken first.
    turn: usize,
    waits: bool,
}

/// From one worker. Like [`Lane`] on lines of its own: the ends remember what they saw of each other.
#[repr(align(128))]
struct Inlet<B> {
    unread: Consumer<Unread<B>>,
    read: Consumer<Handed<B>>,
    /// How many unread ones were taken, as [`Handed::after`].
    taken: u16,
}

/// To one worker: the rings, and what goes into that of read ones at the end of the vector.
#[repr(align(128))]
struct Lane<B> {
    unread: Producer<Unread<B>>,
    read: Producer<Handed<B>>,
    out: Vec<Handed<B>>,
    /// How many unread ones have gone, as [`Handed::after`].
    sent: u16,
}

/// The ends of so many workers.
pub(crate) fn handoffs<B>(workers: usize) -> Vec<Handoff<B>> {
    let sorted = || (0..workers).map(|_| Vec::with_capacity(VECTOR)).collect();
    let empty = || Handoff { to: Vec::new(), from: Vec::new(), sorted: sorted(), turn: 0, waits: false };
    let mut ends: Vec<Handoff<B>> = (0..workers).map(|_| empty()).collect();
    for (giver, taker) in pairs(workers) {
        let (to, from) = match giver == taker {
            true => (None, None),
            false => {
                let (to, from) = lane();
                (Some(to), Some(from))
            }
        };
        ends[giver].to.push(to);
        ends[taker].from.push(from);
    }
    ends
}

fn lane<B>() -> (Lane<B>, Inlet<B>) {
    let ((to_unread, unread), (to_read, read)) = (RingBuffer::new(DEPTH), RingBuffer::new(DEPTH));
    let lane = Lane { unread: to_unread, read: to_read, out: Vec::with_capacity(VECTOR), sent: 0 };
    (lane, Inlet { unread, read, taken: 0 })
}

impl<B> Handoff<B> {
    /// Puts a packet among those for a worker; gives it back where there is no such worker.
    #[inline]
    pub(crate) fn put(&mut self, worker: u8, packet: Packet<B>) -> Result<(), Packet<B>> {
        match self.to.get_mut(usize::from(worker)) {
            Some(Some(lane)) => {
                lane.out.push(Handed::new(packet, lane.sent));
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
        lane.out.extend(packets.map(|packet| Handed::new(packet, lane.sent)));
        self.waits = true;
        true
    }

    /// Whether any packet waits for [`Handoff::send`].
    #[inline]
    pub(crate) const fn waits(&self) -> bool {
        self.waits
    }

    /// Puts what waits into the rings; returns how many packets went. What finds no room goes to `left`.
    pub(crate) fn send(&mut self, left: &mut Vec<B>) -> u64 {
        self.waits = false;
        let mut sent = 0;
        for lane in self.to.iter_mut().flatten() {
            sent += fill(&mut lane.read, &mut lane.out);
            left.extend(lane.out.drain(..).map(|handed| handed.buffer));
        }
        sent as u64
    }

    /// Where what came in at a port is put, by whose it is.
    #[inline]
    pub(crate) fn sorted(&mut self) -> &mut [Vec<Unread<B>>] {
        &mut self.sorted
    }

    /// Puts what was sorted into the rings, but this worker's own; returns how many packets went. What finds no room goes to `left`.
    pub(crate) fn send_sorted(&mut self, left: &mut Vec<Unread<B>>) -> u64 {
        let mut all = 0;
        for (lane, sorted) in self.to.iter_mut().zip(&mut self.sorted) {
            let Some(lane) = lane else { continue };
            let sent = fill(&mut lane.unread, sorted);
            lane.sent = lane.sent.wrapping_add(sent as u16);
            all += sent;
            left.append(sorted);
        }
        all as u64
    }

    /// How many workers there are.
    pub(crate) const fn workers(&self) -> usize {
        self.from.len()
    }

    /// How many packets another worker has handed over that were not taken yet.
    pub(crate) fn waiting(&self, from: usize) -> usize {
        self.from.get(from).and_then(Option::as_ref).map_or(0, Inlet::waiting)
    }

    /// Whether another worker has handed over anything that was not taken yet.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.from.iter().flatten().any(|inlet| inlet.waiting() > 0)
    }

    /// Takes up to so many read packets of one other worker that are due; returns how many.
    pub(crate) fn take_read_of(&mut self, from: usize, limit: usize, into: impl FnMut(Handed<B>)) -> usize {
        self.inlet(from).map_or(0, |inlet| inlet.take_read(limit, into))
    }

    /// The same of unread ones, which is to come behind.
    pub(crate) fn take_unread_of(&mut self, from: usize, limit: usize, into: impl FnMut(Unread<B>)) -> usize {
        self.inlet(from).map_or(0, |inlet| inlet.take_unread(limit, into))
    }

    fn inlet(&mut self, from: usize) -> Option<&mut Inlet<B>> {
        self.from.get_mut(from)?.as_mut()
    }

    /// Takes up to so many read packets that others handed over, beginning with another of them each time; returns how many.
    pub(crate) fn take_read(&mut self, limit: usize, mut into: impl FnMut(Handed<B>)) -> usize {
        self.turn = if self.turn + 1 < self.from.len() { self.turn + 1 } else { 0 };
        self.take(limit, |inlet, room| inlet.take_read(room, &mut into))
    }

    /// The same of unread ones, beginning with the same worker: what was handed over behind read ones waits until these were taken.
    pub(crate) fn take_unread(&mut self, limit: usize, mut into: impl FnMut(Unread<B>)) -> usize {
        self.take(limit, |inlet, room| inlet.take_unread(room, &mut into))
    }

    #[inline]
    fn take(&mut self, limit: usize, mut take: impl FnMut(&mut Inlet<B>, usize) -> usize) -> usize {
        let mut room = limit;
        for at in (self.turn..self.from.len()).chain(0..self.turn) {
            if let Some(inlet) = self.inlet(at) {
                room -= take(inlet, room);
            }
        }
        limit - room
    }
}

impl<B> Inlet<B> {
    fn waiting(&self) -> usize {
        self.unread.slots() + self.read.slots()
    }

    /// Takes read ones that come after no unread one that is still to be taken.
    #[inline]
    fn take_read(&mut self, limit: usize, into: impl FnMut(Handed<B>)) -> usize {
        let Ok(chunk) = self.read.read_chunk(self.read.slots().min(limit)) else { return 0 };
        ask_for(&chunk);
        let (first, second) = chunk.as_slices();
        let is_due = |handed: &&Handed<B>| handed.after == self.taken;
        let count = first.iter().chain(second).take_while(is_due).count();
        chunk.into_iter().take(count).for_each(into);
        count
    }

    /// Takes unread ones up to the next read one. That is looked for last: whatever was handed over before these can be seen then.
    #[inline]
    fn take_unread(&mut self, limit: usize, into: impl FnMut(Unread<B>)) -> usize {
        let slots = self.unread.slots().min(limit);
        let due = self.read.peek().map_or(slots, |next| next.after.wrapping_sub(self.taken).into());
        let Ok(chunk) = self.unread.read_chunk(slots.min(due)) else { return 0 };
        let count = chunk.len();
        ask_for(&chunk);
        chunk.into_iter().for_each(into);
        self.taken = self.taken.wrapping_add(count as u16);
        count
    }
}

/// They lie in the other's cache: asked for all at once, they come one behind the other.
#[inline]
fn ask_for<T>(chunk: &ReadChunk<'_, T>) {
    let (first, second) = chunk.as_slices();
    first.iter().chain(second).for_each(prefetch);
}

/// Moves as many into a ring as there is room for, the first ones first; returns how many.
fn fill<T>(ring: &mut Producer<T>, values: &mut Vec<T>) -> usize {
    let count = ring.slots().min(values.len());
    let Ok(mut chunk) = ring.write_chunk_uninit(count) else { return 0 };
    // The taker has read these lines when they were filled before, and has to give them up.
    let (first, second) = chunk.as_mut_slices();
    first.iter().chain(second.iter()).for_each(prefetch_write);
    chunk.fill_from_iter(values.drain(..count))
}

#[cfg(test)]
mod tests;

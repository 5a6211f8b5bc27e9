//! The flow table: which step of which session a packet takes, without asking the rules again.
//!
//! It is a cache of verdicts, never the only place of anything: what does not fit, or was written under older rules, is
//! classified again. An entry is one cache line. A flow may stand in any of the [`WAYS`] places of its group; when all
//! are taken, one gives way that has had no packet for long, first of all those of users who have more than their share.
//! So a full table costs time, and loses nothing.

use super::flow_key::FlowKey;
use super::memory;
use super::share::give_way;
use super::step::StepIndex;
use rules::Direction;

/// Places a flow may stand in.
const WAYS: usize = 8;
/// Nanoseconds per tick, as a shift: about a second.
const TICK_SHIFT: u32 = 30;

/// One flow, both directions. Fits a cache line, exactly.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    key: FlowKey,
    /// Of the rules the verdicts were reached under.
    generation: u32,
    /// By [`Direction`].
    steps: [StepIndex; 2],
    /// QFI and port each verdict is for.
    arrivals: [u16; 2],
    /// Tick of the last packet.
    seen: u16,
    /// Traffic class each verdict is for.
    classes: [u8; 2],
    /// Whether the rules look at it.
    class_matters: bool,
    _spare: [u8; 3],
}

const _: () = assert!(size_of::<Flow>() == 64, "one cache line a flow");

/// What a verdict was reached for besides the key: packets that differ in any of it are classified anew. (So are those
/// of another tunnel: the step itself tells which one its packets come in.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Circumstances {
    /// QFI in the low octet, port in the high one.
    pub(crate) arrival: u16,
    pub(crate) class: u8,
}

const EMPTY: Flow = Flow {
    key: FlowKey::NONE,
    generation: 0,
    steps: [StepIndex::NONE; 2],
    arrivals: [0; 2],
    seen: 0,
    classes: [0; 2],
    class_matters: false,
    _spare: [0; 3],
};

/// All flows of a worker.
pub(crate) struct Flows {
    entries: Box<[Flow]>,
    /// A few bits of each entry's hash, so that a look at one word tells which entry of a group to read.
    tags: Box<[Tags]>,
    mask: usize,
    seed: u64,
    live: usize,
    swept: usize,
}

/// Tags of a group's entries; 0 where there is no flow.
type Tags = [u8; WAYS];

impl Flows {
    /// Room for `limit` flows, or a few more.
    pub(crate) fn new(limit: usize, seed: u64) -> Self {
        let groups = limit.div_ceil(WAYS).next_power_of_two();
        let (entries, tags) = (memory::filled(groups * WAYS, EMPTY), memory::filled(groups, [0; WAYS]));
        Self { entries, tags, mask: groups - 1, seed, live: 0, swept: 0 }
    }

    /// The hash of a key in this table.
    #[inline]
    pub(crate) fn hash(&self, key: &FlowKey) -> u64 {
        key.hash(self.seed)
    }

    /// Asks for what tells where a flow stands.
    #[inline]
    pub(crate) fn prefetch_tags(&self, hash: u64) {
        memory::prefetch(&self.tags[self.group(hash)]);
    }

    /// Asks for the flow, if it seems to be there.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        let group = self.group(hash);
        if let Some(way) = candidates(self.tags[group], tag(hash)).next() {
            memory::prefetch(&self.entries[group * WAYS + way]);
        }
    }

    /// The step a packet takes, and the generation of the rules that said so; `None` where nobody knows. Notes that a
    /// packet came.
    #[inline]
    pub(crate) fn find(&mut self, place: Place<'_>, now_ns: u64) -> Option<(StepIndex, u32)> {
        let direction = place.direction;
        let at = self.search(place)?;
        let flow = &mut self.entries[at];
        flow.seen = tick(now_ns);
        let step = flow.steps[direction as usize];
        let known = step != StepIndex::NONE && flow.fits(place.circumstances, direction);
        known.then_some((step, flow.generation))
    }

    /// Writes a verdict down, in the place of an older flow if need be.
    pub(crate) fn learn(&mut self, place: Place<'_>, verdict: Verdict, now_ns: u64) {
        let direction = place.direction;
        let at = self.search(place).unwrap_or_else(|| self.make_room(place, tick(now_ns)));
        let flow = &mut self.entries[at];
        if flow.key != *place.key {
            self.live += usize::from(flow.key == FlowKey::NONE);
            *flow = Flow { key: *place.key, ..EMPTY };
            self.tags[at / WAYS][at % WAYS] = tag(place.hash);
        }
        if flow.generation != verdict.generation {
            flow.steps = [StepIndex::NONE; 2];
            flow.generation = verdict.generation;
            flow.class_matters = verdict.class_matters;
        }
        flow.seen = tick(now_ns);
        flow.steps[direction as usize] = verdict.step;
        flow.classes[direction as usize] = place.circumstances.class;
        flow.arrivals[direction as usize] = place.circumstances.arrival;
    }

    /// Forgets flows that had no packet for `age_ns`, looking at `count` entries, so that nobody ever waits for it.
    pub(crate) fn sweep(&mut self, count: usize, now_ns: u64, age_ns: u64) {
        let (now, age) = (tick(now_ns), tick(age_ns));
        for _ in 0..count.min(self.entries.len()) {
            self.swept = (self.swept + 1) % self.entries.len();
            let flow = &mut self.entries[self.swept];
            if flow.key != FlowKey::NONE && now.wrapping_sub(flow.seen) > age {
                *flow = EMPTY;
                self.tags[self.swept / WAYS][self.swept % WAYS] = 0;
                self.live -= 1;
            }
        }
    }

    /// Flows it knows.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    #[inline]
    fn group(&self, hash: u64) -> usize {
        hash as usize & self.mask
    }

    #[inline]
    fn search(&self, place: Place<'_>) -> Option<usize> {
        let group = self.group(place.hash);
        candidates(self.tags[group], tag(place.hash))
            .map(|way| group * WAYS + way)
            .find(|at| self.entries[*at].key == *place.key)
    }

    /// A free place of the flow's group, or the one that has to give way.
    fn make_room(&self, place: Place<'_>, now: u16) -> usize {
        let group = self.group(place.hash);
        // The tags alone tell of a free place; only where there is none are the flows themselves read.
        if let Some(way) = self.tags[group].iter().position(|tag| *tag == 0) {
            return group * WAYS + way;
        }
        let entry = |way: usize| &self.entries[group * WAYS + way];
        let idle = |way: usize| now.wrapping_sub(entry(way).seen);
        group * WAYS + give_way::<WAYS>(place.key.user(), |way| entry(way).key.user(), idle)
    }
}

/// Never 0, and of bits that do not choose the group.
#[inline]
const fn tag(hash: u64) -> u8 {
    (hash >> 56) as u8 | 1
}

/// The ways whose tag is `tag`.
#[inline]
fn candidates(tags: Tags, tag: u8) -> impl Iterator<Item = usize> {
    // All eight octets compared at once; an octet of the difference is 0 where they agree. A borrow can show agreement
    // where there is none, above one where there is: the key is compared anyway.
    let difference = u64::from_le_bytes(tags) ^ u64::from_le_bytes([tag; WAYS]);
    let mut agree = difference.wrapping_sub(0x0101_0101_0101_0101) & !difference & 0x8080_8080_8080_8080;
    std::iter::from_fn(move || {
        let way = (agree != 0).then(|| agree.trailing_zeros() as usize / 8);
        agree &= agree.wrapping_sub(1);
        way
    })
}

/// What is to be done with a flow's packets of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) step: StepIndex,
    /// Of the session's rules that said so.
    pub(crate) generation: u32,
    /// Whether they look at the traffic class.
    pub(crate) class_matters: bool,
}

/// Where a packet's flow would be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) key: &'a FlowKey,
    pub(crate) hash: u64,
    pub(crate) direction: Direction,
    pub(crate) circumstances: Circumstances,
}

impl Flow {
    #[inline]
    fn fits(&self, other: Circumstances, direction: Direction) -> bool {
        self.arrivals[direction as usize] == other.arrival
            && (!self.class_matters || self.classes[direction as usize] == other.class)
    }
}

#[inline]
const fn tick(ns: u64) -> u16 {
    (ns >> TICK_SHIFT) as u16
}

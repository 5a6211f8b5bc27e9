//! The flow table: which step of which session a packet takes, without asking the rules again.
//!
//! It is a cache of verdicts: what does not fit, or was written under older rules, is classified again. One thing stands
//! here alone, of what application a flow is, which its first packets said: so connections of which that is known are
//! remembered for as long as they may be silent, and give way later than others. Most flows take half a cache line, others one
//! ([`packed`]). A flow may stand in any of the [`WAYS`] places of its block; where all are taken, in any of a second one; and
//! where these are, too, one of its block moves to its own other block, or gives way: one that has had no packet for long, first of all those of
//! users who have more than their share. So a full table costs time, and of flows that were silent for long, what they are
//! of. A block says whether any of its flows stands elsewhere, so the second one is looked at for few packets, and for none of
//! flows in their own.
//!
//! Where the entries lie is said in [`super::blocks`].

mod entry;
mod packed;
mod room;
mod said;
#[cfg(test)]
mod tests;

use entry::Flow;
pub(crate) use entry::{Beginning, Circumstances};
pub(super) use packed::{Half, Packed};
pub(crate) use said::Said;

use super::NoMemory;
use super::blocks::{self, At, Block, Blocks, FlowLine, Look, WAYS};
use super::flow_key::FlowKey;
use super::step::StepIndex;
use crate::content::Detected;
use crate::lasting::{LearnedFlow, Section};
use packed::Found;
use rules::Direction;

/// Places of a block that are taken on average, where the table holds as many flows of half a line as it was made for: of 100, four
/// then stand in their second block.
const FILL: usize = 27;
/// A connection whose application is known gives way as a flow that has been silent for an eighth of the time.
const KEPT_SHIFT: u32 = 3;
/// The bits of a hash that choose the second block begin so far behind those that choose the first.
const SECOND_SHIFT: u32 = 16;
/// Nanoseconds per tick, as a shift: about a second.
const TICK_SHIFT: u32 = 30;

/// For how long flows without packets are remembered, in nanoseconds; ticks are of 16 bits, so 18 hours at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ages {
    pub(crate) flow_ns: u64,
    /// Of connections over TCP of which it is known of what application they are.
    pub(crate) connection_ns: u64,
}

/// All flows of a worker.
pub(crate) struct Flows {
    blocks: Blocks,
    seed: u64,
    live: usize,
    /// Places these take.
    taken: usize,
    swept: usize,
    /// Blocks before this one have been passed on by [`Flows::applications`], which is about to go on.
    passed_on: usize,
}

/// Bytes of a worker's table for `limit` flows of TCP or UDP over IPv4, which it takes whole when it starts; most others, of IPv6
/// all, count twice.
pub const fn flow_table_bytes(limit: usize) -> usize {
    Blocks::bytes(blocks_for(limit))
}

/// Blocks of a worker's table for so many.
pub(crate) const fn blocks_for(limit: usize) -> usize {
    limit.div_ceil(FILL) + 1
}

impl Flows {
    /// Room for `limit` flows that take half a line; in a section of a file where flows lie in that.
    pub(crate) fn new(limit: usize, seed: u64, section: Option<&Section>) -> Result<Self, NoMemory> {
        let blocks = Blocks::new(blocks_for(limit), section)?;
        Ok(Self { blocks, seed, live: 0, taken: 0, swept: 0, passed_on: 0 })
    }

    /// The hash of a key in this table.
    #[inline]
    pub(crate) fn hash(&self, key: &FlowKey) -> u64 {
        key.hash(self.seed)
    }

    /// Asks for what tells where a flow stands, and says where that is.
    #[inline]
    pub(crate) fn prefetch_tags(&self, hash: u64) -> FlowLine {
        self.blocks.prefetch_tags(self.block(hash))
    }

    /// Asks for the flow, if it seems to be there, and says where; `tags` is what [`Flows::prefetch_tags`] said.
    #[inline]
    pub(crate) fn look(&self, hash: u64, tags: FlowLine) -> FlowLine {
        match self.blocks.look(tags, tag(hash)) {
            Look::At(line) => line,
            Look::Away => self.blocks.prefetch_tags(self.second(hash)).as_second(),
            Look::Absent => FlowLine::NONE,
        }
    }

    /// As [`Flows::look`], of one of which that said where else it may stand.
    #[inline(always)]
    pub(crate) fn look_again(&self, hash: u64, line: FlowLine) -> FlowLine {
        line.second().map_or(line, |tags| self.look_elsewhere(hash, tags))
    }

    #[cold]
    #[inline(never)]
    fn look_elsewhere(&self, hash: u64, tags: FlowLine) -> FlowLine {
        match self.blocks.look(tags, tag(hash)) {
            Look::At(line) => line,
            Look::Away | Look::Absent => FlowLine::NONE,
        }
    }

    /// Asks for the place that a flow would get which is not there, if one is free.
    #[inline]
    pub(crate) fn prefetch_room(&self, hash: u64) {
        if let Some(at) = self.blocks.free(self.block(hash), true) {
            self.blocks.prefetch_to_write(at);
        }
    }

    /// The step a packet takes, and the generation of the rules that said so; `None` where nobody knows. Notes that a
    /// packet came. What `begins` with it is asked where that matters, and
    /// whether a request does.
    #[inline]
    pub(crate) fn find(
        &mut self,
        place: Place<'_>,
        now_ns: u64,
        begins: impl Fn(bool) -> Beginning,
    ) -> Option<(StepIndex, u32)> {
        if let Some(half) = self.blocks.foreseen(place.likely)
            && half.is(place.key)
        {
            // A line that is only read need not be written back.
            if half.seen != tick(now_ns) {
                half.seen = tick(now_ns);
            }
            match half.step(place, &begins) {
                Found::Step(step, generation) => return Some((step, generation)),
                Found::Nothing => return None,
                Found::More => {}
            }
        }
        self.find_closely(place, now_ns, begins)
    }

    /// The same of a flow that takes a whole line, that looks at more than its key, or that is not where it seemed to be.
    #[inline(never)]
    fn find_closely(
        &mut self,
        place: Place<'_>,
        now_ns: u64,
        begins: impl Fn(bool) -> Beginning,
    ) -> Option<(StepIndex, u32)> {
        let at = self.blocks.place_of(place.likely).filter(|at| self.blocks.get(*at).is(place.key));
        let at = at.or_else(|| self.search(place))?;
        let before = self.blocks.get(at).flow();
        let mut flow = Flow { seen: tick(now_ns), ..before };
        let step = flow.steps[place.direction as usize];
        let known = step != StepIndex::NONE && flow.fits(place.circumstances, place.direction, begins);
        if flow != before {
            self.rewrite(at, &flow);
        }
        known.then_some((step, flow.generation))
    }

    /// Writes down what became of a flow that needs no more room by that.
    fn rewrite(&mut self, at: At, flow: &Flow) {
        let has_rest = self.blocks.half(at).has_rest();
        self.blocks.put(at, &if has_rest { Packed::whole(flow) } else { Packed::new(flow) });
    }

    /// Writes a verdict down, in the place of an older flow if need be.
    pub(crate) fn learn(&mut self, place: Place<'_>, verdict: Verdict, now_ns: u64) {
        let direction = place.direction;
        let at = self.search(place);
        let known = at.map(|at| self.blocks.get(at).flow());
        let mut flow = known.unwrap_or(Flow { key: *place.key, ..Flow::EMPTY });
        if flow.generation != verdict.generation {
            flow.steps = [StepIndex::NONE; 2];
            flow.generation = verdict.generation;
        }
        if verdict.detected != Detected::NOT_YET && verdict.detected != flow.detected {
            // The other direction went by what the flow was before.
            flow.steps = [StepIndex::NONE; 2];
            flow.detected = verdict.detected;
        }
        flow.look_besides(verdict.class_matters);
        flow.seen = tick(now_ns);
        flow.steps[direction as usize] = verdict.step;
        flow.classes[direction as usize] = place.circumstances.class;
        flow.arrivals[direction as usize] = place.circumstances.arrival;
        self.write(at, place, &flow);
    }

    /// Writes a flow where it stands, if it does and has room enough there; else where there is room. One of a known application stays
    /// where it is, and without verdicts, while that is passed on: it might go where that has been done.
    fn write(&mut self, at: Option<At>, place: Place<'_>, flow: &Flow) {
        let packed = Packed::new(flow);
        let Some(at) = at else { return self.enter(place, &packed) };
        let has_rest = self.blocks.half(at).has_rest();
        if has_rest != packed.is_half() {
            self.blocks.put(at, &packed);
        } else if has_rest {
            self.blocks.put(at, &Packed::whole(flow));
        } else if self.passed_on > 0 && flow.detected != Detected::NOT_YET {
            self.rewrite(at, &flow.without_verdicts());
        } else {
            self.forget(at);
            self.enter(place, &packed);
        }
    }

    /// Of what application a flow was found to be, whatever rules are in force now.
    pub(crate) fn detected(&self, place: Place<'_>) -> Detected {
        let found = self.search(place);
        found.map_or(Detected::NOT_YET, |at| self.blocks.half(at).detected())
    }

    /// Notes what a flow said of which it is known of what application it is.
    pub(crate) fn say(&mut self, place: Place<'_>, said: Said) {
        self.change(place, |flow| flow.say(said));
    }

    /// Has the flow at the place of this number ask anew, with its next packet, of what application it is, if it is known what it said;
    /// whether that was so. `None` behind the last place.
    pub(super) fn ask_anew(&mut self, number: usize) -> Option<bool> {
        let (block, way) = (number / WAYS, number % WAYS);
        let at = (block < self.blocks.len()).then(|| blocks::place(block, way))?;
        if !self.blocks.is_taken(at) {
            return Some(false);
        }
        let mut flow = self.blocks.get(at).flow();
        let asks = flow.ask_anew();
        self.rewrite(at, &flow);
        Some(asks)
    }

    /// What a flow said that is to ask anew; `None` of others.
    pub(crate) fn asks_anew(&self, place: Place<'_>) -> Option<Said> {
        self.blocks.get(self.search(place)?).flow().asks_anew()
    }

    /// A connection has begun anew: of what application it was says nothing of what it is.
    pub(crate) fn begin_anew(&mut self, place: Place<'_>) {
        self.change(place, Flow::begin_anew);
    }

    /// Changes what is known of a flow, if it is there, to what needs no more room.
    fn change(&mut self, place: Place<'_>, change: impl FnOnce(&mut Flow)) {
        if let Some(at) = self.search(place) {
            let mut flow = self.blocks.get(at).flow();
            change(&mut flow);
            self.rewrite(at, &flow);
        }
    }

    /// Forgets flows that had no packet for so long, looking at `count` entries, so that nobody ever waits for it.
    pub(crate) fn sweep(&mut self, count: usize, now_ns: u64, ages: Ages) {
        let now = tick(now_ns);
        let (other, connection) = (tick(ages.flow_ns), tick(ages.connection_ns.max(ages.flow_ns)));
        for _ in 0..count {
            self.swept = (self.swept + 1) % (self.blocks.len() * WAYS);
            let at = blocks::place(self.swept / WAYS, self.swept % WAYS);
            if !self.blocks.is_taken(at) {
                continue;
            }
            let flow = self.blocks.get(at).flow();
            let age = if flow.is_known_connection() { connection } else { other };
            if now.wrapping_sub(flow.seen) > age {
                self.forget(at);
            }
        }
    }

    /// Passes on of what application flows are, of so many blocks from one on; `None` behind the last. What is known when the first
    /// block is asked for is passed on once at least, whatever comes in between.
    pub(super) fn applications(
        &mut self,
        from: usize,
        count: usize,
        mut tell: impl FnMut(&FlowKey, Detected),
    ) -> Option<usize> {
        let until = (from + count).min(self.blocks.len());
        for block in from..until {
            for at in self.blocks.taken(block) {
                let flow = self.blocks.get(at).flow();
                if flow.detected != Detected::NOT_YET {
                    tell(&flow.key, flow.detected);
                }
            }
        }
        let next = (until < self.blocks.len()).then_some(until);
        self.passed_on = next.unwrap_or_default();
        next
    }

    /// Flows of some application, for the next life of the engine, where sessions between tunnels of this node have other places.
    pub(crate) fn learned(&self, now_ns: u64) -> impl Iterator<Item = LearnedFlow> {
        let all = (0..self.blocks.len()).flat_map(|block| self.blocks.taken(block));
        all.filter_map(move |at| learned(&self.blocks.get(at), now_ns))
    }

    /// A flow was found to be of an application in a former life of the engine. With its next packet it asks the rules of this one, if it is
    /// known what it said.
    pub(super) fn inherit(&mut self, LearnedFlow { key, detected, said, .. }: LearnedFlow, now_ns: u64) {
        self.learn_application(&key, detected, now_ns);
        self.say(self.place_of(&key), said);
    }

    /// A flow waits that may have been here before: what it was then may be over.
    pub(super) fn forget_application(&mut self, key: &FlowKey) {
        self.begin_anew(self.place_of(key));
    }

    fn place_of<'a>(&self, key: &'a FlowKey) -> Place<'a> {
        let (hash, direction) = (self.hash(key), Direction::Uplink);
        Place { key, hash, likely: FlowLine::NONE, direction, circumstances: Circumstances::default() }
    }

    /// A flow was found to be of an application elsewhere.
    pub(super) fn learn_application(&mut self, key: &FlowKey, detected: Detected, now_ns: u64) {
        let place = self.place_of(key);
        let verdict = Verdict { step: StepIndex::NONE, generation: 0, class_matters: false, detected };
        self.learn(place, verdict, now_ns);
        self.say(place, Said::UNKNOWN);
    }

    /// Flows it knows.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    #[inline]
    fn block(&self, hash: u64) -> usize {
        (((hash >> 32) * self.blocks.len() as u64) >> 32) as usize
    }

    /// The block of a flow whose own one is full: by bits that do not choose that one, unless there are very many.
    #[inline]
    fn second(&self, hash: u64) -> usize {
        self.block(hash << SECOND_SHIFT)
    }

    #[inline]
    fn search(&self, place: Place<'_>) -> Option<At> {
        let block = self.block(place.hash);
        let found = self.search_in(block, place);
        if found.is_none() && self.blocks.has_away(block) {
            return self.search_in(self.second(place.hash), place);
        }
        found
    }

    #[inline]
    fn search_in(&self, block: usize, place: Place<'_>) -> Option<At> {
        let places = self.blocks.tags(block).places_of(tag(place.hash));
        places.map(|half| At { block, half }).find(|at| self.blocks.get(*at).is(place.key))
    }

    /// A flow that is not there gets a place.
    fn enter(&mut self, place: Place<'_>, packed: &Packed) {
        let at = self.make_room(place, packed);
        let own = self.block(place.hash);
        if at.block != own {
            self.blocks.send_away(own);
        }
        self.blocks.enter(at, tag(place.hash), packed);
        self.live += 1;
        self.taken += packed.places();
    }

    /// The flow at a place is there no longer.
    fn forget(&mut self, at: At) {
        let packed = self.blocks.clear(at);
        let own = self.block(self.hash(&packed.flow().key));
        if at.block != own {
            self.blocks.lose_away(own);
        }
        self.live -= 1;
        self.taken -= packed.places();
    }
}

impl Block {
    /// [`Flows::learned`] of a life that was killed, of the block at this place of a table.
    pub(crate) fn learned(&self, place: usize, now_ns: u64) -> impl Iterator<Item = LearnedFlow> {
        self.all(place).filter_map(move |packed| learned(&packed, now_ns))
    }
}

/// What the next life of the engine hears of a flow, if that is of some application.
fn learned(packed: &Packed, now_ns: u64) -> Option<LearnedFlow> {
    let flow = packed.flow();
    let is_lasting = flow.detected.is_of_some() && !flow.key.is_between();
    is_lasting.then(|| LearnedFlow {
        key: flow.key,
        detected: flow.detected,
        said: flow.said(),
        age: tick(now_ns).wrapping_sub(flow.seen),
        unused: [0; 2],
    })
}

/// Never [`Tags::FREE`], and of bits that do not choose the block.
#[inline]
const fn tag(hash: u64) -> u16 {
    hash as u16 | 1
}

/// What is to be done with a flow's packets of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) step: StepIndex,
    /// Of the session's rules that said so.
    pub(crate) generation: u32,
    /// Whether they look at the traffic class.
    pub(crate) class_matters: bool,
    /// Of what application the flow was found to be.
    pub(crate) detected: Detected,
}

/// Where a packet's flow would be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) key: &'a FlowKey,
    pub(crate) hash: u64,
    pub(crate) likely: FlowLine,
    pub(crate) direction: Direction,
    pub(crate) circumstances: Circumstances,
}

#[inline]
const fn tick(ns: u64) -> u16 {
    (ns >> TICK_SHIFT) as u16
}

//! Where flows lie in memory: in blocks of a quarter of a page, each with a line of tags that tells where in it a flow stands.
//!
//! A line is two places. Most flows take one, others both. Tables read at random lose most of their time to the translation of
//! addresses, so a flow and its tag are in one page. The line of tags is another one in each block: at the same place in all
//! blocks, tags would share few sets of the L1 cache.

use super::flows::{Half, Packed};
use super::memory::{self, NoMemory};
use super::tags::{TAGS, Tags};
use crate::lasting::{Part, Section, Table};
use zerocopy::{FromBytes, IntoBytes};

/// Lines of a block, one of which is the tags'.
const LINES: usize = 16;
/// Places of a line.
const HALVES: usize = 2;
/// Places of a block, with those of the tags' line.
const PLACES: usize = LINES * HALVES;
/// Places a flow may stand in.
pub(super) const WAYS: usize = PLACES - HALVES;
/// Blocks of a page.
const PER_PAGE: usize = 4;
/// The tag of a place that belongs to the flow before it.
const TAKEN: u16 = 2;
/// The first tag that stands for the tags' own line counts the flows that stand elsewhere, so that it is neither a flow's tag, which is odd,
/// nor that of a free place.
const NONE_AWAY: u16 = 2;
const ONE_AWAY: u16 = 2;

/// A place of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) block: usize,
    /// In the block; none of the tags' two.
    pub(super) half: usize,
}

/// A place as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowLine(u32);

impl FlowLine {
    /// No place.
    pub(crate) const NONE: Self = Self(u32::MAX);
    /// Of a line of tags that may tell where a flow stands which the tags of its own block do not.
    const SECOND: u32 = 1 << 31;

    /// That of tags of a second block.
    pub(super) const fn as_second(self) -> Self {
        Self(self.0 | Self::SECOND)
    }

    /// The tags of a second block, if it is that.
    #[inline(always)]
    pub(super) const fn second(self) -> Option<Self> {
        if self.0 & Self::SECOND != 0 && self.0 != Self::NONE.0 {
            Some(Self(self.0 & !Self::SECOND))
        } else {
            None
        }
    }
}

/// What the tags of a block say of a flow.
pub(super) enum Look {
    /// It seems to be there.
    At(FlowLine),
    /// It is not, but some that belong there are elsewhere.
    Away,
    /// It is not.
    Absent,
}

/// Two flows, one, or the tags.
#[derive(Clone, Copy, FromBytes, IntoBytes)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Flows that stand together.
#[derive(Clone, Copy, FromBytes, IntoBytes)]
#[repr(C, align(1024))]
pub(crate) struct Block {
    lines: [Line; LINES],
}

const _: () =
    assert!(size_of::<Block>() == 1024 && TAGS == PLACES, "a quarter of a page, and a tag for every place");
const _: () = assert!(size_of::<[Half; HALVES]>() == size_of::<Line>(), "two flows a line");

impl Block {
    /// What stands where, in the block at this place of a table.
    #[inline]
    fn tags(&self, place: usize) -> &Tags {
        zerocopy::transmute_ref!(&self.lines[tags_line(place)].0)
    }

    #[inline]
    fn line(&self, half: usize) -> &[Half; HALVES] {
        zerocopy::transmute_ref!(&self.lines[half / HALVES].0)
    }

    /// What stands at a place of it where a flow begins.
    #[inline]
    fn get(&self, half: usize) -> Packed {
        let line = self.line(half);
        Packed::of(line[half % HALVES], line[1])
    }

    /// All flows in the block at this place of a table.
    pub(super) fn all(&self, place: usize) -> impl Iterator<Item = Packed> {
        self.tags(place).taken().map(|half| self.get(half))
    }
}

/// All of them.
pub(super) struct Blocks {
    blocks: Table<Block>,
}

impl Blocks {
    /// So many, in which nothing stands; in a section of a file where flows lie in that.
    pub(super) fn new(count: usize, section: Option<&Section>) -> Result<Self, NoMemory> {
        let mut table = Table::new(count, section.and_then(|section| section.place(Part::Flows)))?;
        if !table.grow(count, Block { lines: [Line([0; 8]); LINES] }) {
            return Err(NoMemory { bytes: Self::bytes(count) });
        }
        let mut blocks = Self { blocks: table };
        for block in 0..count {
            let own = tags_line(block) * HALVES;
            blocks.tags_mut(block).set(own, NONE_AWAY);
            blocks.tags_mut(block).set(own + 1, TAKEN);
        }
        Ok(blocks)
    }

    /// Bytes of so many.
    pub(super) const fn bytes(count: usize) -> usize {
        count * size_of::<Block>()
    }

    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// What stands where in a block.
    #[inline]
    pub(super) fn tags(&self, block: usize) -> &Tags {
        self.blocks[block].tags(block)
    }

    /// Whether flows that belong into a block, which was full, stand in others.
    #[inline]
    pub(super) fn has_away(&self, block: usize) -> bool {
        self.away(block) != NONE_AWAY
    }

    #[inline]
    fn away(&self, block: usize) -> u16 {
        self.tags(block).get(tags_line(block) * HALVES)
    }

    /// A flow that belongs into a block stands in another one.
    pub(super) fn send_away(&mut self, block: usize) {
        let away = self.away(block);
        self.tags_mut(block).set(tags_line(block) * HALVES, away + ONE_AWAY);
    }

    /// Such a flow is forgotten.
    pub(super) fn lose_away(&mut self, block: usize) {
        let away = self.away(block);
        self.tags_mut(block).set(tags_line(block) * HALVES, away - ONE_AWAY);
    }

    /// Whether as many are away as can be counted.
    pub(super) fn is_away_full(&self, block: usize) -> bool {
        self.away(block) >= u16::MAX - ONE_AWAY
    }

    /// The first half of what stands at a place; where nothing does, it is that of no flow.
    #[inline]
    pub(super) fn half(&self, at: At) -> &Half {
        &self.line(at)[at.half % HALVES]
    }

    /// What stands at a place where a flow begins.
    #[inline]
    pub(super) fn get(&self, at: At) -> Packed {
        self.blocks[at.block].get(at.half)
    }

    /// Puts a flow at a place, over what stands there, of as many halves.
    pub(super) fn put(&mut self, at: At, packed: &Packed) {
        debug_assert!(!self.is_taken(at) || self.get(at).is_half() == packed.is_half(), "as many halves");
        let line = self.line_mut(at);
        match packed.halves() {
            (half, None) => line[at.half % HALVES] = half,
            (half, Some(rest)) => *line = [half, rest],
        }
    }

    /// Puts a flow in a free place, and its tag.
    pub(super) fn enter(&mut self, at: At, tag: u16, packed: &Packed) {
        self.put(at, packed);
        self.tags_mut(at.block).set(at.half, tag);
        if !packed.is_half() {
            self.tags_mut(at.block).set(at.half + 1, TAKEN);
        }
    }

    /// Frees the place of a flow, or both; says what stood there.
    pub(super) fn clear(&mut self, at: At) -> Packed {
        let packed = self.get(at);
        let halves = if packed.is_half() { 1 } else { HALVES };
        for half in at.half..at.half + halves {
            self.line_mut(at)[half % HALVES] = Half::EMPTY;
            self.tags_mut(at.block).set(half, Tags::FREE);
        }
        packed
    }

    #[inline]
    fn line(&self, at: At) -> &[Half; HALVES] {
        self.blocks[at.block].line(at.half)
    }

    #[inline]
    fn line_mut(&mut self, at: At) -> &mut [Half; HALVES] {
        zerocopy::transmute_mut!(&mut self.blocks[at.block].lines[at.half / HALVES].0)
    }

    /// A free place of a block for a flow that takes one, or both of a line: the tags alone tell. One is taken of a line that is
    /// taken by half, if there is such, so that whole ones are left.
    #[inline]
    pub(super) fn free(&self, block: usize, takes_one: bool) -> Option<At> {
        let (lines, halves) = self.free_places(block);
        let half = match (takes_one, halves) {
            (true, 1..) => halves.trailing_zeros(),
            _ => lines.trailing_zeros(),
        };
        (half < PLACES as u32).then_some(At { block, half: half as usize })
    }

    /// The first places of lines of a block that are free, and those places that are free alone on theirs: a bit for each.
    #[inline]
    fn free_places(&self, block: usize) -> (u32, u32) {
        let free = self.tags(block).mask_of(Tags::FREE);
        let lines = free & free >> 1 & EVEN;
        (lines, free & !(lines | lines << 1))
    }

    /// Has the flows of two lines of a block that are free by half stand on one; says where the other is. `None` where there are not
    /// two such.
    pub(super) fn join(&mut self, block: usize) -> Option<At> {
        let (_, halves) = self.free_places(block);
        let others = halves & halves.wrapping_sub(1);
        let (to, from) = (halves.trailing_zeros() as usize, (others.trailing_zeros() ^ 1) as usize);
        if others == 0 {
            return None;
        }
        let tag = self.tags(block).get(from);
        let moved = self.clear(At { block, half: from });
        self.enter(At { block, half: to }, tag, &moved);
        Some(At { block, half: from & !1 })
    }

    /// The places of a block where flows stand.
    pub(super) fn taken(&self, block: usize) -> impl Iterator<Item = At> + use<> {
        self.tags(block).taken().map(move |half| At { block, half })
    }

    /// Whether a flow stands at a place, or begins there.
    #[inline]
    pub(super) fn is_taken(&self, at: At) -> bool {
        self.tags(at.block).get(at.half) & 1 == 1
    }

    /// Asks for the tags of a block; says where they are.
    #[inline]
    pub(super) fn prefetch_tags(&self, block: usize) -> FlowLine {
        memory::prefetch(self.tags(block));
        FlowLine((block * PLACES + tags_line(block) * HALVES) as u32)
    }

    /// Asks for the first flow with this tag in a block, by the line of the block's tags; says where it is.
    #[inline(always)]
    pub(super) fn look(&self, tags: FlowLine, tag: u16) -> Look {
        let at = tags.0 as usize;
        let Some(block) = self.blocks.get(at / PLACES) else { return Look::Absent };
        let own: &Tags = zerocopy::transmute_ref!(&block.lines[at % PLACES / HALVES].0);
        match own.places_of(tag).next() {
            Some(half) => {
                memory::prefetch(&block.lines[half / HALVES]);
                Look::At(FlowLine((at - at % PLACES + half) as u32))
            }
            None if own.get(at % PLACES) != NONE_AWAY => Look::Away,
            None => Look::Absent,
        }
    }

    /// What stands at a place that was foreseen; which lines are tags never changes, so it is none of these.
    #[inline]
    pub(super) fn foreseen(&mut self, line: FlowLine) -> Option<&mut Half> {
        let at = line.0 as usize;
        let block = self.blocks.get_mut(at / PLACES)?;
        let halves: &mut [Half; HALVES] = zerocopy::transmute_mut!(&mut block.lines[at % PLACES / HALVES].0);
        Some(&mut halves[at % HALVES])
    }

    /// The place itself.
    pub(super) fn place_of(&self, line: FlowLine) -> Option<At> {
        let (block, half) = (line.0 as usize / PLACES, line.0 as usize % PLACES);
        (block < self.len()).then_some(At { block, half }).filter(|at| self.is_taken(*at))
    }

    /// Asks for a place that a flow will be written to.
    #[inline]
    pub(super) fn prefetch_to_write(&self, at: At) {
        memory::prefetch_write(self.half(at));
    }

    fn tags_mut(&mut self, block: usize) -> &mut Tags {
        zerocopy::transmute_mut!(&mut self.blocks[block].lines[tags_line(block)].0)
    }
}

/// Of the bits of places, the first of each line.
const EVEN: u32 = u32::MAX / 3;

/// Four blocks are a page: over 64 blocks, tags are in all the lines that a page has.
#[inline]
const fn tags_line(block: usize) -> usize {
    block / PER_PAGE % LINES
}

/// The `way`th place of a block, of [`WAYS`]: those behind the tags, and then those before them.
#[inline]
pub(super) const fn place(block: usize, way: usize) -> At {
    At { block, half: ((tags_line(block) + 1) * HALVES + way) % PLACES }
}

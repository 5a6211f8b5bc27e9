//! Where flows lie in memory: in blocks of half a page, each with a line of tags that tells where in it a flow stands.
//!
//! Tables read at random lose most of their time to the translation of addresses, so a flow and its tag are in one page.
//! The line of tags is another one in each block: at the same place in all blocks, tags would share two sets of the L1
//! cache.

use super::flows::Flow;
use super::memory;
use super::tags::{TAGS, Tags};

/// Lines of a block, one of which is the tags'.
const LINES: usize = 32;
/// Places a flow may stand in: a line of tags has one tag too many, where flows are counted that stand elsewhere.
pub(super) const WAYS: usize = LINES - 1;
/// What is counted there, so that it is neither a flow's tag, which is odd, nor that of a free place.
const NONE_AWAY: u16 = 2;
const ONE_AWAY: u16 = 2;

/// A place of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) block: usize,
    pub(super) way: usize,
}

/// A place as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowLine(u32);

impl FlowLine {
    /// No place.
    pub(crate) const NONE: Self = Self(u32::MAX);

    const fn new(at: At) -> Self {
        Self((at.block * LINES + line(at)) as u32)
    }
}

/// A flow, or the tags.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Flows that stand together.
#[derive(Clone, Copy)]
#[repr(C, align(2048))]
struct Block {
    lines: [Line; LINES],
}

const _: () = assert!(size_of::<Block>() == 2048 && TAGS == LINES, "half a page, and a tag for every line");
const _: () = assert!(size_of::<Flow>() == 64, "one cache line a flow");

/// All of them.
pub(super) struct Blocks {
    blocks: Box<[Block]>,
}

impl Blocks {
    /// So many, in which nothing stands.
    pub(super) fn new(count: usize) -> Self {
        let empty = Block { lines: [Line([0; 8]); LINES] };
        let mut blocks = Self { blocks: memory::filled(count, empty) };
        (0..count).for_each(|block| blocks.tags_mut(block).set(WAYS, NONE_AWAY));
        blocks
    }

    /// Bytes of so many.
    pub(super) const fn bytes(count: usize) -> usize {
        count * size_of::<Block>()
    }

    /// How many there are.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.blocks.len()
    }

    /// What stands where in a block.
    #[inline]
    pub(super) fn tags(&self, block: usize) -> &Tags {
        zerocopy::transmute_ref!(&self.blocks[block].lines[tags_line(block)].0)
    }

    /// Whether flows that belong into a block, which was full, stand in others.
    #[inline]
    pub(super) fn has_away(&self, block: usize) -> bool {
        Self::says_away(self.tags(block))
    }

    /// Whether these tags say so.
    #[inline]
    pub(super) fn says_away(tags: &Tags) -> bool {
        tags.get(WAYS) != NONE_AWAY
    }

    /// A flow that belongs into a block stands in another one.
    pub(super) fn send_away(&mut self, block: usize) {
        let away = self.tags(block).get(WAYS);
        self.tags_mut(block).set(WAYS, away + ONE_AWAY);
    }

    /// Such a flow is forgotten.
    pub(super) fn lose_away(&mut self, block: usize) {
        let away = self.tags(block).get(WAYS);
        self.tags_mut(block).set(WAYS, away - ONE_AWAY);
    }

    /// Whether as many are away as can be counted.
    pub(super) fn is_away_full(&self, block: usize) -> bool {
        self.tags(block).get(WAYS) >= u16::MAX - ONE_AWAY
    }

    /// The flow at a place; what nobody put there is all zero.
    #[inline]
    pub(super) fn flow(&self, at: At) -> &Flow {
        zerocopy::transmute_ref!(&self.blocks[at.block].lines[line(at)].0)
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn flow_mut(&mut self, at: At) -> &mut Flow {
        zerocopy::transmute_mut!(&mut self.blocks[at.block].lines[line(at)].0)
    }

    /// Puts a flow in a place, and its tag.
    pub(super) fn put(&mut self, at: At, tag: u16, flow: Flow) {
        *self.flow_mut(at) = flow;
        self.tags_mut(at.block).set(at.way, tag);
    }

    /// Asks for the tags of a block; says where they are.
    #[inline]
    pub(super) fn prefetch_tags(&self, block: usize) -> FlowLine {
        memory::prefetch(self.tags(block));
        FlowLine((block * LINES + tags_line(block)) as u32)
    }

    /// The block and tags of a tags' line.
    #[inline]
    pub(super) fn tags_of_line(&self, line: FlowLine) -> Option<(usize, &Tags)> {
        let at = line.0 as usize;
        let block = self.blocks.get(at / LINES)?;
        Some((at / LINES, zerocopy::transmute_ref!(&block.lines[at % LINES].0)))
    }

    /// Asks for a flow; says where it is.
    #[inline]
    pub(super) fn prefetch(&self, at: At) -> FlowLine {
        memory::prefetch(self.flow(at));
        FlowLine::new(at)
    }

    /// The flow of a line; which lines are tags never changes, so it is no tags' line.
    #[inline]
    pub(super) fn flow_of_line(&mut self, line: FlowLine) -> Option<&mut Flow> {
        let at = line.0 as usize;
        let block = self.blocks.get_mut(at / LINES)?;
        Some(zerocopy::transmute_mut!(&mut block.lines[at % LINES].0))
    }

    /// Asks for a place that a flow will be written to.
    #[inline]
    pub(super) fn prefetch_to_write(&self, at: At) {
        memory::prefetch_write(self.flow(at));
    }

    fn tags_mut(&mut self, block: usize) -> &mut Tags {
        zerocopy::transmute_mut!(&mut self.blocks[block].lines[tags_line(block)].0)
    }
}

/// Two blocks are a page: over 64 blocks, tags are in all the lines that a page has.
#[inline]
const fn tags_line(block: usize) -> usize {
    block / 2 % LINES
}

/// The lines behind the tags', and then those before them.
#[inline]
const fn line(at: At) -> usize {
    (tags_line(at.block) + 1 + at.way) % LINES
}

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
/// Lines a flow may stand in.
pub(super) const WAYS: usize = LINES - 1;
/// The tag that stands for the tags' own line counts the flows that stand elsewhere, so that it is neither a flow's tag, which is odd,
/// nor that of a free place.
const NONE_AWAY: u16 = 2;
const ONE_AWAY: u16 = 2;

/// A place of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) block: usize,
    /// In the block; not the tags' one.
    pub(super) line: usize,
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
        (0..count).for_each(|block| blocks.tags_mut(block).set(tags_line(block), NONE_AWAY));
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
        self.away(block) != NONE_AWAY
    }

    #[inline]
    fn away(&self, block: usize) -> u16 {
        self.tags(block).get(tags_line(block))
    }

    /// A flow that belongs into a block stands in another one.
    pub(super) fn send_away(&mut self, block: usize) {
        let away = self.away(block);
        self.tags_mut(block).set(tags_line(block), away + ONE_AWAY);
    }

    /// Such a flow is forgotten.
    pub(super) fn lose_away(&mut self, block: usize) {
        let away = self.away(block);
        self.tags_mut(block).set(tags_line(block), away - ONE_AWAY);
    }

    /// Whether as many are away as can be counted.
    pub(super) fn is_away_full(&self, block: usize) -> bool {
        self.away(block) >= u16::MAX - ONE_AWAY
    }

    /// The flow at a place; what nobody put there is all zero.
    #[inline]
    pub(super) fn flow(&self, at: At) -> &Flow {
        zerocopy::transmute_ref!(&self.blocks[at.block].lines[at.line].0)
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn flow_mut(&mut self, at: At) -> &mut Flow {
        zerocopy::transmute_mut!(&mut self.blocks[at.block].lines[at.line].0)
    }

    /// Puts a flow in a place, and its tag.
    pub(super) fn put(&mut self, at: At, tag: u16, flow: Flow) {
        *self.flow_mut(at) = flow;
        self.tags_mut(at.block).set(at.line, tag);
    }

    /// Asks for the tags of a block; says where they are.
    #[inline]
    pub(super) fn prefetch_tags(&self, block: usize) -> FlowLine {
        memory::prefetch(self.tags(block));
        FlowLine((block * LINES + tags_line(block)) as u32)
    }

    /// Asks for the first flow with this tag in a block, by the line of the block's tags; says where it is.
    #[inline(always)]
    pub(super) fn look(&self, tags: FlowLine, tag: u16) -> Look {
        let at = tags.0 as usize;
        let Some(block) = self.blocks.get(at / LINES) else { return Look::Absent };
        let own: &Tags = zerocopy::transmute_ref!(&block.lines[at % LINES].0);
        match own.places_of(tag).next() {
            Some(line) => {
                memory::prefetch(&block.lines[line]);
                Look::At(FlowLine((at - at % LINES + line) as u32))
            }
            None if own.get(at % LINES) != NONE_AWAY => Look::Away,
            None => Look::Absent,
        }
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

/// The `way`th place of a block, of [`WAYS`]: those behind the tags, and then those before them.
#[inline]
pub(super) const fn place(block: usize, way: usize) -> At {
    At { block, line: (tags_line(block) + 1 + way) % LINES }
}

//! Which filters can match, from one search in each dimension.
//!
//! A dimension is a field of packets, cut into intervals in which the same filters match. Each interval has a row of
//! bits, one for each filter in the order of precedence. The rows that a packet's fields lead to, ANDed, leave the
//! filters that can match. The scheme is the bit vectors of Lakshman and Stiliadis (SIGCOMM 1998); that the first word
//! of a row sums up the others is Baboescu and Varghese's (SIGCOMM 2001).

use super::field::{Field, Narrow, Wide};
use crate::compile::Arrival;

/// Bits in a row at most: the words of 64 bits that the 64 bits of its first word tell of.
pub(super) const MAX_BITS: usize = 64 * 64;

/// Fields that packets can be told apart by.
const MAX_DIMENSIONS: usize = Narrow::ALL.len() + Wide::ALL.len();

/// One filter of one matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its place among all matchers.
    pub(super) matcher: u16,
    /// Its place among the matcher's filters; 0 for a matcher without.
    pub(super) filter: u16,
}

/// One field of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dimension<F: Field> {
    pub(super) field: F,
    /// Where each interval starts; the first at 0, the others behind.
    pub(super) starts: Box<[F::Key]>,
    /// The row of each interval.
    pub(super) rows: Box<[u16]>,
}

/// What the filters of one session look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) narrow: Box<[Dimension<Narrow>]>,
    pub(super) wide: Box<[Dimension<Wide>]>,
    /// Rows, one after the other. The first word of a row tells which others are not 0: bit n, the word after the nth.
    pub(super) bits: Box<[u64]>,
    /// The length of a row.
    pub(super) row_words: usize,
    /// In order of precedence.
    pub(super) entries: Box<[Entry]>,
    /// Entries for each bit of a row.
    pub(super) group: usize,
    pub(super) looks_at_traffic_class: bool,
    pub(super) looks_at_flow_label: bool,
}

impl<F: Field> Dimension<F> {
    /// `None` where the field says nothing of the packet.
    #[inline]
    fn row(&self, packet: &Arrival) -> Option<u16> {
        let key = self.field.key(packet)?;
        let interval = self.starts.partition_point(|start| *start <= key);
        self.rows.get(interval.checked_sub(1)?).copied()
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.starts) + size_of_val(&*self.rows)
    }
}

impl Index {
    /// The first entry that can match and that `confirm` takes.
    pub(super) fn first(&self, packet: &Arrival, confirm: impl Fn(&Entry) -> Option<usize>) -> Option<usize> {
        let mut rows = [&[][..]; MAX_DIMENSIONS];
        let narrow = self.narrow.iter().filter_map(|dimension| dimension.row(packet));
        let wide = self.wide.iter().filter_map(|dimension| dimension.row(packet));
        let count =
            rows.iter_mut().zip(narrow.chain(wide)).map(|(place, row)| *place = self.row(row)).count();
        let rows = rows.get(..count)?;
        ones(all_of(rows, 0))
            .flat_map(|word| ones(all_of(rows, word + 1)).map(move |bit| word * 64 + bit))
            .find_map(|group| {
                let entries = self.entries.get(group * self.group..)?;
                entries.iter().take(self.group).find_map(&confirm)
            })
    }

    #[inline]
    fn row(&self, row: u16) -> &[u64] {
        let start = usize::from(row) * self.row_words;
        self.bits.get(start..start + self.row_words).unwrap_or_default()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.narrow.iter().map(Dimension::heap_bytes).sum::<usize>()
            + self.wide.iter().map(Dimension::heap_bytes).sum::<usize>()
            + size_of_val(&*self.bits)
            + size_of_val(&*self.entries)
    }
}

/// One word of all rows, ANDed.
#[inline]
fn all_of(rows: &[&[u64]], word: usize) -> u64 {
    rows.iter().fold(u64::MAX, |all, row| all & row.get(word).copied().unwrap_or_default())
}

/// The places of the bits that are set, from the lowest.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit as usize)
    })
}

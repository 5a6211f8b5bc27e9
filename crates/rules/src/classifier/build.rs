//! Makes an [`Index`] of matchers, within a fixed amount of memory.

use super::field::{ANY, Field, Narrow, Span, Wide};
use super::index::{Dimension, Entry, Index, MAX_BITS};
use super::matcher::{Filter, Matcher};
use std::collections::HashMap;

/// Words that all rows of an index have together at most: 1 MiB. Where that is too little, neighbouring intervals
/// share a row, which then names filters that cannot match, too.
const MAX_ROW_WORDS: usize = 1 << 17;

/// 2^64 over the golden ratio, odd.
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

pub(super) fn index(matchers: &[Matcher]) -> Index {
    let entries: Box<[Entry]> =
        matchers.iter().zip(0..).flat_map(|(matcher, at)| entries(matcher, at)).collect();
    let all = Filters { matchers, entries: &entries };
    let (narrow, wide) = (all.cuts::<Narrow>(), all.cuts::<Wide>());
    let sizes: Vec<usize> =
        narrow.iter().map(Cuts::intervals).chain(wide.iter().map(Cuts::intervals)).collect();
    let group = entries.len().div_ceil(MAX_BITS);
    let mut rows = Rows::new(entries.len().div_ceil(group));
    let most = share(rows.limit(), sizes);
    let narrow = narrow.into_iter().map(|cuts| rows.dimension(cuts.grouped(group), most)).collect();
    let wide = wide.into_iter().map(|cuts| rows.dimension(cuts.grouped(group), most)).collect();
    let any_filter = |has: fn(&Filter) -> bool| matchers.iter().flat_map(Matcher::filters).any(has);
    Index {
        narrow,
        wide,
        row_words: rows.row_words(),
        bits: rows.bits.into(),
        group,
        looks_at_traffic_class: any_filter(|filter| filter.traffic_class.is_some()),
        looks_at_flow_label: any_filter(|filter| filter.flow_label.is_some()),
        entries,
    }
}

fn entries(matcher: &Matcher, at: u16) -> impl Iterator<Item = Entry> + use<> {
    (0_u16..).take(matcher.filters().len().max(1)).map(move |filter| Entry { matcher: at, filter })
}

/// How many intervals a dimension may have, so that all of `sizes`, those below cut down to it, stay in `limit`.
fn share(limit: usize, mut sizes: Vec<usize>) -> usize {
    sizes.sort_unstable();
    let (mut left, mut others) = (limit, sizes.len());
    for size in sizes {
        if size > left / others {
            return (left / others).max(2);
        }
        left -= size;
        others -= 1;
    }
    limit
}

/// All filters of a session.
struct Filters<'a> {
    matchers: &'a [Matcher],
    entries: &'a [Entry],
}

/// A number at which an entry begins or ceases to match.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    at: u128,
    /// The entry's place, then the group's.
    place: usize,
    begins: bool,
}

/// Where a field of packets is to be cut.
struct Cuts<F> {
    field: F,
    /// Sorted.
    cuts: Vec<Cut>,
    /// For each place, how many entries match anything there.
    everywhere: Vec<u32>,
}

impl Filters<'_> {
    /// Those of all fields that any filter looks at.
    fn cuts<F: Field>(&self) -> Vec<Cuts<F>> {
        F::ALL.iter().map(|field| self.cuts_of(*field)).filter(|cuts| !cuts.is_idle()).collect()
    }

    fn cuts_of<F: Field>(&self, field: F) -> Cuts<F> {
        let mut cuts = Cuts { field, cuts: vec![], everywhere: vec![0; self.entries.len()] };
        let mut spans = vec![];
        for (entry, place) in self.entries.iter().zip(0..) {
            let Some(matcher) = self.matchers.get(usize::from(entry.matcher)) else { continue };
            let filter = matcher.filters().get(usize::from(entry.filter));
            field.spans(matcher, filter, &mut spans);
            cuts.add(place, spans.drain(..));
        }
        cuts.cuts.sort_unstable();
        cuts
    }
}

impl<F> Cuts<F> {
    fn add(&mut self, place: usize, spans: impl Iterator<Item = Span>) {
        for (first, last) in spans {
            if (first, last) != ANY {
                self.cuts.push(Cut { at: first, place, begins: true });
                self.cuts.extend(last.checked_add(1).map(|at| Cut { at, place, begins: false }));
            } else if let Some(everywhere) = self.everywhere.get_mut(place) {
                *everywhere += 1;
            }
        }
    }

    /// The same with `group` places for one.
    fn grouped(mut self, group: usize) -> Self {
        self.cuts.iter_mut().for_each(|cut| cut.place /= group);
        self.everywhere = self.everywhere.chunks(group).map(|places| places.iter().sum()).collect();
        self
    }

    /// Whether every packet gets the same row, of all ones.
    fn is_idle(&self) -> bool {
        self.cuts.is_empty() && self.everywhere.iter().all(|entries| *entries > 0)
    }

    /// At most: a cut starts one, and so does 0.
    fn intervals(&self) -> usize {
        let places = self.cuts.chunk_by(|one, next| one.at == next.at).count();
        places + 1
    }
}

/// The rows of an index while it is made; equal ones are kept once, unless their hashes collide.
struct Rows {
    /// In a row, without the one that sums up the others.
    words: usize,
    bits: Vec<u64>,
    next: u16,
    by_hash: HashMap<u64, u16>,
}

impl Rows {
    fn new(groups: usize) -> Self {
        Self { words: groups.div_ceil(64), bits: vec![], next: 0, by_hash: HashMap::new() }
    }

    /// How many rows there may be.
    fn limit(&self) -> usize {
        (MAX_ROW_WORDS / self.row_words()).min(usize::from(u16::MAX))
    }

    fn row_words(&self) -> usize {
        self.words + 1
    }

    fn row(&mut self, row: &[u64]) -> u16 {
        // Fast and easily made to collide: that costs memory, of which there is enough for rows that all differ.
        let hash =
            row.iter().fold(0, |hash: u64, word| (hash.rotate_left(5) ^ word).wrapping_mul(HASH_FACTOR));
        match self.by_hash.get(&hash) {
            Some(known) if self.at(*known) == Some(row) => *known,
            _ => {
                let place = self.next;
                self.bits.push(sum_up(row));
                self.bits.extend_from_slice(row);
                self.by_hash.insert(hash, place);
                self.next = place.saturating_add(1);
                place
            }
        }
    }

    fn at(&self, row: u16) -> Option<&[u64]> {
        let start = usize::from(row) * self.row_words() + 1;
        self.bits.get(start..start + self.words)
    }

    /// Cuts a field into `most` intervals or fewer.
    fn dimension<F: Field>(&mut self, cuts: Cuts<F>, most: usize) -> Dimension<F> {
        let together = (cuts.intervals() - 1).div_ceil((most - 1).max(1)).max(1);
        let mut sweep = Sweep::new(self.words, cuts.everywhere);
        let (mut starts, mut rows) = (vec![], vec![]);
        let places: Vec<&[Cut]> = cuts.cuts.chunk_by(|one, next| one.at == next.at).collect();
        let (mut start, mut places) = (0, places.chunks(together));
        loop {
            let row = self.row(&sweep.row);
            if rows.last() != Some(&row) {
                rows.push(row);
                starts.extend(F::Key::try_from(start).ok());
            }
            let Some(next) = places.next() else { break };
            start = next.first().and_then(|place| place.first()).map_or(start, |cut| cut.at);
            sweep.pass(next);
        }
        Dimension { field: cuts.field, starts: starts.into(), rows: rows.into() }
    }
}

/// Bit n: the nth word is not 0.
fn sum_up(row: &[u64]) -> u64 {
    row.iter().zip(0..64).fold(0, |sum, (word, place)| sum | u64::from(*word != 0) << place)
}

/// Which groups match as one goes from 0 upwards.
struct Sweep {
    /// For each group, how many of its entries match here.
    entries: Vec<u32>,
    /// The groups that match here.
    here: Vec<u64>,
    /// The groups that match somewhere since the last interval began.
    row: Vec<u64>,
}

impl Sweep {
    fn new(words: usize, entries: Vec<u32>) -> Self {
        let mut here = vec![0; words];
        for (group, _) in entries.iter().enumerate().filter(|(_, entries)| **entries > 0) {
            set(&mut here, group, true);
        }
        Self { entries, row: here.clone(), here }
    }

    /// Goes over cuts that begin one interval together.
    fn pass(&mut self, places: &[&[Cut]]) {
        for (place, number) in places.iter().zip(0..) {
            for cut in *place {
                self.cut(cut);
            }
            match number {
                0 => self.row.clone_from(&self.here),
                _ => self.row.iter_mut().zip(&self.here).for_each(|(row, here)| *row |= here),
            }
        }
    }

    fn cut(&mut self, cut: &Cut) {
        let Some(entries) = self.entries.get_mut(cut.place) else { return };
        *entries = if cut.begins { *entries + 1 } else { entries.saturating_sub(1) };
        set(&mut self.here, cut.place, *entries > 0);
    }
}

fn set(bits: &mut [u64], place: usize, value: bool) {
    if let Some(word) = bits.get_mut(place / 64) {
        let bit = 1 << (place % 64);
        *word = if value { *word | bit } else { *word & !bit };
    }
}

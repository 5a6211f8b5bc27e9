//! Finds the first PDR a packet matches.
//!
//! A session of few filters is searched from the first PDR to the last. A user can make every packet go through the
//! classifier, by using every 5-tuple but once, so a session of many has an [`Index`] besides, which finds the
//! few filters that can match without looking at the others.

mod build;
mod field;
mod index;
mod matcher;
mod mismatch;
#[cfg(test)]
mod tests;

use crate::check::Checked;
use crate::compile::Arrival;
use crate::intent::Pdr;
use index::{Entry, Index};
use matcher::{Filter, Matcher};
use smallvec::SmallVec;

pub use mismatch::{FilterMismatch, Mismatch};

/// Up to so many filters and port ranges (PDRs without filters count as one) are searched one after the other: an index
/// would take more memory and save little.
const FEW: usize = 48;

/// All PDIs of a session, in the order they are to be tried. It takes 32 bytes for each PDR of no more than a
/// tunnel, an address and a QFI, and [`Classifier::MAX_BYTES`] at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classifier {
    /// In place, of a session of two: a new flow then waits for memory once less.
    matchers: SmallVec<[Matcher; 2]>,
    /// `None` where the filters are few.
    index: Option<Box<Index>>,
}

impl Classifier {
    /// No session's classifier allocates more, whatever its rules (that [`limits`](crate::limits) allow).
    pub const MAX_BYTES: usize = 2 << 20;

    /// Of PDRs in the order they are to be tried.
    pub(crate) fn new(pdrs: &[&Pdr], checked: &Checked<'_>) -> Self {
        let matchers: SmallVec<[Matcher; 2]> =
            pdrs.iter().map(|pdr| Matcher::new(&pdr.pdi, checked)).collect();
        let steps: usize = matchers.iter().map(Matcher::steps).sum();
        let index = (steps > FEW).then(|| Box::new(build::index(&matchers)));
        Self { matchers, index }
    }

    /// The place of the first PDR that matches.
    #[inline]
    pub fn find(&self, packet: &Arrival) -> Option<usize> {
        match &self.index {
            None => self.matchers.iter().position(|matcher| matcher.matches(packet)),
            Some(index) => index.first(packet, |entry| self.confirm(entry, packet)),
        }
    }

    /// The index names what can match; the matcher alone knows what does.
    fn confirm(&self, entry: &Entry, packet: &Arrival) -> Option<usize> {
        let place = usize::from(entry.matcher);
        let matches = self.matchers.get(place)?.matches_by(entry.filter, packet);
        matches.then_some(place)
    }

    /// Whether two packets of one 5-tuple, tunnel and QFI can match different PDRs by their traffic class.
    pub fn looks_at_traffic_class(&self) -> bool {
        match &self.index {
            Some(index) => index.looks_at_traffic_class,
            None => self.filters().any(|filter| filter.traffic_class.is_some()),
        }
    }

    /// As [`Classifier::looks_at_traffic_class`], by their flow label.
    pub fn looks_at_flow_label(&self) -> bool {
        match &self.index {
            Some(index) => index.looks_at_flow_label,
            None => self.filters().any(|filter| filter.flow_label.is_some()),
        }
    }

    /// Whether any PDR is of an application.
    #[inline]
    pub fn looks_at_application(&self) -> bool {
        match &self.index {
            Some(index) => index.looks_at_application,
            None => self.matchers.iter().any(|matcher| matcher.application().is_some()),
        }
    }

    /// Bytes allocated, without what the allocator adds.
    pub fn heap_bytes(&self) -> usize {
        let index = self.index.as_ref().map_or(0, |index| size_of::<Index>() + index.heap_bytes());
        let matchers = if self.matchers.spilled() { size_of_val(&*self.matchers) } else { 0 };
        matchers + self.matchers.iter().map(Matcher::heap_bytes).sum::<usize>() + index
    }

    fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.matchers.iter().flat_map(Matcher::filters)
    }
}

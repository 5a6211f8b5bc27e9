//! Finds the first PDR a packet matches.
//!
//! A session of few filters is searched from the first PDR to the last. A user can make every packet go through the
//! classifier, by using every 5-tuple but once, so a session of many has an [`Index`] besides, which finds the
//! few filters that can match without looking at the others.

mod build;
mod ethernet;
mod field;
mod index;
mod matcher;
mod mismatch;
#[cfg(test)]
mod tests;

use crate::check::Checked;
use crate::compile::{Application, Arrival};
use crate::ids::{ApplicationId, ApplicationTag};
use crate::intent::Pdr;
use index::{Entry, Index};
use matcher::{Filter, Matcher};
use smallvec::SmallVec;

pub use ethernet::{EthernetClassifier, FrameArrival, FrameTag};
pub use mismatch::{FilterMismatch, Mismatch};

/// Up to so many filters and port ranges (PDRs without filters count as one) are searched one after the other: an index
/// would take more memory and save little.
const FEW: usize = 48;
/// PDRs of a session with applications whose applications are found without another look into memory.
const SOME: usize = 12;

/// All PDIs of a session, in the order they are to be tried. It takes 32 bytes for each PDR of no more than a
/// tunnel, an address and a QFI, and [`Classifier::MAX_BYTES`] at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classifier {
    /// In place, of a session of two: a new flow then waits for memory once less.
    matchers: SmallVec<[Matcher; 2]>,
    /// `None` where the filters are few and none is of an application.
    more: Option<Box<More>>,
}

/// What few sessions have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct More {
    /// The application of each PDI that is of one; empty where none is. By itself, so that those of other applications
    /// are passed over without a look at them.
    applications: SmallVec<[Option<ApplicationTag>; SOME]>,
    /// `None` where the filters are few.
    index: Option<Index>,
}

/// What any PDR of a session looks at besides what all packets of a flow have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// Two packets of one 5-tuple, tunnel and QFI can match different PDRs by their traffic class.
    pub traffic_class: bool,
    /// By their flow label.
    pub flow_label: bool,
    /// A PDR is of an application.
    pub application: bool,
}

impl Classifier {
    /// No session's classifier allocates more, whatever its rules (that [`limits`](crate::limits) allow).
    pub const MAX_BYTES: usize = 2 << 20;

    /// Of PDRs in the order they are to be tried.
    pub(crate) fn new(pdrs: &[&Pdr], checked: &Checked<'_>) -> Self {
        let matchers: SmallVec<[Matcher; 2]> =
            pdrs.iter().map(|pdr| Matcher::new(&pdr.pdi, checked)).collect();
        let steps: usize = matchers.iter().map(Matcher::steps).sum();
        let index = (steps > FEW).then(|| build::index(&matchers));
        let application = |pdr: &&Pdr| pdr.pdi.application.as_ref().map(ApplicationId::tag);
        let any = pdrs.iter().any(|pdr| pdr.pdi.application.is_some());
        let applications = pdrs.iter().map(application).take(if any { pdrs.len() } else { 0 }).collect();
        let more = (any || index.is_some()).then(|| Box::new(More { index, applications }));
        Self { matchers, more }
    }

    /// The place of the first PDR that matches.
    #[inline]
    pub fn find(&self, packet: &Arrival) -> Option<usize> {
        let Some(more) = &self.more else {
            return self.matchers.iter().position(|matcher| matcher.matches(packet));
        };
        match &more.index {
            Some(index) => index.first(packet, |entry| self.confirm(entry, packet)),
            None => {
                let mut all = self.matchers.iter().zip(more.applications.iter());
                all.position(|(matcher, wanted)| {
                    is_of(*wanted, packet.application) && matcher.matches(packet)
                })
            }
        }
    }

    /// Reads what [`Classifier::find`] will read first, so that it waits for memory before others do. What it returns
    /// means nothing.
    #[inline]
    pub fn touch(&self) -> usize {
        let Some(more) = &self.more else { return 0 };
        let applications = more.applications.iter().step_by(8).filter(|application| application.is_some());
        let few = if more.index.is_some() { 0 } else { FEW };
        let matchers = self.matchers.iter().take(few).step_by(2).filter(|matcher| matcher.ue_ipv4.is_some());
        applications.count() + matchers.count()
    }

    #[inline]
    fn is_of(&self, place: usize, application: Application) -> bool {
        let wanted = self.more.as_ref().and_then(|more| more.applications.get(place).copied().flatten());
        is_of(wanted, application)
    }

    /// The index names what can match; the matcher alone knows what does.
    fn confirm(&self, entry: &Entry, packet: &Arrival) -> Option<usize> {
        let place = usize::from(entry.matcher);
        let matches = self.is_of(place, packet.application)
            && self.matchers.get(place)?.matches_by(entry.filter, packet);
        matches.then_some(place)
    }

    /// What any PDR looks at. It reads all there is: ask once, and remember.
    pub fn looks(&self) -> Looks {
        let any = |looks: fn(&Filter) -> bool| self.filters().any(looks);
        let application = self.more.as_ref().is_some_and(|more| !more.applications.is_empty());
        let (traffic_class, flow_label) = match self.index() {
            Some(index) => (index.looks_at_traffic_class, index.looks_at_flow_label),
            None => (any(|filter| filter.traffic_class.is_some()), any(|filter| filter.flow_label.is_some())),
        };
        Looks { traffic_class, flow_label, application }
    }

    /// Bytes allocated, without what the allocator adds.
    pub fn heap_bytes(&self) -> usize {
        let index = self.index().map_or(0, Index::heap_bytes);
        let applications =
            |more: &More| if more.applications.spilled() { size_of_val(&*more.applications) } else { 0 };
        let more = self.more.as_ref().map_or(0, |more| size_of::<More>() + applications(more));
        let matchers = if self.matchers.spilled() { size_of_val(&*self.matchers) } else { 0 };
        matchers + self.matchers.iter().map(Matcher::heap_bytes).sum::<usize>() + index + more
    }

    fn index(&self) -> Option<&Index> {
        self.more.as_ref()?.index.as_ref()
    }

    fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.matchers.iter().flat_map(Matcher::filters)
    }
}

/// Whether a packet of this application may match a PDI that wants that one.
#[inline]
fn is_of(wanted: Option<ApplicationTag>, application: Application) -> bool {
    wanted.is_none_or(|wanted| match application {
        Application::None => false,
        Application::Of(application) => application == wanted,
        Application::Any => true,
    })
}

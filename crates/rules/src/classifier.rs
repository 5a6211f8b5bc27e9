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
use crate::ids::{ApplicationId, ApplicationTag, PdrId};
use crate::intent::Pdr;
use crate::list::Mostly2;
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classifier {
    /// In place, of a session of two: a new flow then waits for memory once less.
    matchers: Mostly2<Matcher>,
    /// `None` where each PDR has a matcher and a step of its own, the filters are few, and none is of an application.
    more: Option<Box<More>>,
}

/// What few sessions have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct More {
    /// By PDR, in the order they are to be tried.
    lines: SmallVec<[Line; SOME]>,
    /// `None` where the filters are few.
    index: Option<Box<Index>>,
}

/// A PDR. By itself, so that those of other applications are passed over without a look at their matchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    application: Option<ApplicationTag>,
    /// PDRs that differ in nothing but their application share one.
    matcher: u16,
    step: u16,
    pdr: PdrId,
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

    /// Of PDRs in the order they are to be tried, each of which leads to the step of its place.
    pub(crate) fn new(pdrs: &[&Pdr], checked: &Checked<'_>) -> Self {
        let mut matchers: Mostly2<Matcher> = pdrs.iter().map(|pdr| Matcher::new(&pdr.pdi, checked)).collect();
        let steps: usize = matchers.iter().map(Matcher::steps).sum();
        let index = (steps > FEW).then(|| Box::new(build::index(&matchers)));
        let has_applications = pdrs.iter().any(|pdr| pdr.pdi.application.is_some());
        if index.is_none() && !has_applications {
            return Self { matchers, more: None };
        }
        let mut lines: SmallVec<[Line; SOME]> = pdrs.iter().zip(0..).map(Line::new).collect();
        if index.is_none() {
            matchers = share(&matchers, &mut lines);
        }
        Self { matchers, more: Some(Box::new(More { lines, index })) }
    }

    /// From now on, PDRs lead to these steps, in the order they are tried.
    pub fn lead_to(&mut self, steps: &[(PdrId, u16)]) {
        let matchers = self.matchers.len();
        let more = self.more.get_or_insert_with(|| {
            let line = |matcher| Line { application: None, matcher, step: matcher, pdr: PdrId(0) };
            Box::new(More { lines: (0..).take(matchers).map(line).collect(), index: None })
        });
        for (line, (pdr, step)) in more.lines.iter_mut().zip(steps) {
            (line.pdr, line.step) = (*pdr, *step);
        }
    }

    /// The place of the first PDR that matches, in the order they are tried.
    #[inline]
    pub fn find(&self, packet: &Arrival) -> Option<usize> {
        self.find_where(packet, |_| true)
    }

    /// The place of the first PDR that matches and whose place is wanted, in the order they are tried.
    #[inline]
    pub fn find_where(&self, packet: &Arrival, is_wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let Some(more) = &self.more else {
            let mut all = self.matchers.iter().enumerate();
            return all.position(|(place, matcher)| matcher.matches(packet) && is_wanted(place));
        };
        match &more.index {
            Some(index) => {
                index.first(packet, |entry| self.confirm(entry, packet).filter(|place| is_wanted(*place)))
            }
            None => more.lines.iter().enumerate().position(|(place, line)| {
                is_of(line.application, packet.application)
                    && self.matcher(line).is_some_and(|matcher| matcher.matches(packet))
                    && is_wanted(place)
            }),
        }
    }

    /// The step that the PDR at a place leads to.
    #[inline]
    pub fn step(&self, place: usize) -> usize {
        self.line(place).map_or(place, |line| line.step.into())
    }

    /// The PDR at a place; `None` where its step, which is no other's, tells.
    pub fn pdr(&self, place: usize) -> Option<PdrId> {
        self.line(place).map(|line| line.pdr)
    }

    /// Reads what [`Classifier::find`] will read first, so that it waits for memory before others do. What it returns
    /// means nothing.
    #[inline]
    pub fn touch(&self) -> usize {
        let Some(more) = &self.more else { return 0 };
        let few = if more.index.is_some() { 0 } else { FEW };
        more.lines.iter().take(few).step_by(4).filter(|line| line.application.is_some()).count()
    }

    #[inline]
    fn line(&self, place: usize) -> Option<&Line> {
        self.more.as_ref()?.lines.get(place)
    }

    #[inline]
    fn matcher(&self, line: &Line) -> Option<&Matcher> {
        self.matchers.get(usize::from(line.matcher))
    }

    /// The matcher of the PDR at a place.
    fn matcher_of(&self, place: usize) -> Option<&Matcher> {
        self.line(place).map_or(self.matchers.get(place), |line| self.matcher(line))
    }

    #[inline]
    fn is_of(&self, place: usize, application: Application) -> bool {
        is_of(self.line(place).and_then(|line| line.application), application)
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
        let is_of_one = |more: &More| more.lines.iter().any(|line| line.application.is_some());
        let application = self.more.as_deref().is_some_and(is_of_one);
        let (traffic_class, flow_label) = match self.index() {
            Some(index) => (index.looks_at_traffic_class, index.looks_at_flow_label),
            None => (any(|filter| filter.traffic_class.is_some()), any(|filter| filter.flow_label.is_some())),
        };
        Looks { traffic_class, flow_label, application }
    }

    /// Bytes allocated, without what the allocator adds.
    pub fn heap_bytes(&self) -> usize {
        let index = self.index().map_or(0, |index| size_of::<Index>() + index.heap_bytes());
        let lines = |more: &More| if more.lines.spilled() { size_of_val(&*more.lines) } else { 0 };
        let more = self.more.as_ref().map_or(0, |more| size_of::<More>() + lines(more));
        self.matchers.heap_bytes()
            + self.matchers.iter().map(Matcher::heap_bytes).sum::<usize>()
            + index
            + more
    }

    fn index(&self) -> Option<&Index> {
        self.more.as_ref()?.index.as_deref()
    }

    fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.matchers.iter().flat_map(Matcher::filters)
    }
}

impl Line {
    /// The PDR at a place, with a matcher and a step of its own.
    fn new((pdr, place): (&&Pdr, u16)) -> Self {
        let application = pdr.pdi.application.as_ref().map(ApplicationId::tag);
        Self { application, matcher: place, step: place, pdr: pdr.id }
    }
}

/// Each matcher once. Only for a few.
fn share(matchers: &[Matcher], lines: &mut [Line]) -> Mostly2<Matcher> {
    let mut shared: Vec<Matcher> = Vec::new();
    for (matcher, line) in matchers.iter().zip(lines) {
        let known = shared.iter().position(|other| other == matcher);
        let place = known.unwrap_or(shared.len());
        if known.is_none() {
            shared.push(matcher.clone());
        }
        line.matcher = u16::try_from(place).unwrap_or(u16::MAX);
    }
    shared.into()
}

/// Whether a packet of this application may match a PDI that wants that one.
#[inline]
fn is_of(wanted: Option<ApplicationTag>, application: Application) -> bool {
    wanted.is_none_or(|wanted| match application {
        Application::None => false,
        Application::Of(application) => application == wanted,
        Application::Charged(application, charged) => application == Some(wanted) || charged == wanted,
        Application::Any => true,
    })
}

//! What few FARs ask for: copies, and what is done to requests, as the packet path does it.

use super::State;
use super::session::step_place;
use super::step::StepIndex;
use rules::{Forward, RedirectAddresses};
use std::sync::Arc;

/// What few steps have.
#[derive(Debug)]
pub(crate) struct Extra {
    /// Copies to send besides.
    pub(crate) duplicates: Box<[Forward]>,
    /// What is done to requests, or to addresses.
    pub(crate) treatment: Option<Treatment>,
}

impl Extra {
    pub(super) fn heap_bytes(&self) -> usize {
        let text = match &self.treatment {
            None | Some(Treatment::Readdress(_)) => 0,
            Some(Treatment::Answer(text)) => text.len(),
            Some(Treatment::Enrich(text)) => text.len(),
        };
        size_of_val(&*self.duplicates) + text
    }
}

/// One of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// This is the answer, in HTTP/1.1, status line and all.
    Answer(Box<[u8]>),
    /// This goes in front of the first field, line end and all.
    Enrich(Arc<[u8]>),
    /// What the user sends goes there.
    Readdress(RedirectAddresses),
}

impl Treatment {
    /// `None` for one that needs no text.
    pub(crate) fn of(treatment: &rules::Treatment) -> Option<Self> {
        match treatment {
            rules::Treatment::Portal(url) => Some(Self::Answer(found(url).into_bytes().into())),
            rules::Treatment::Readdress(to) => Some(Self::Readdress(*to)),
            rules::Treatment::Enrich(field) => {
                let line = format!("{}: {}\r\n", field.name(), field.value());
                Some(Self::Enrich(line.into_bytes().into()))
            }
            rules::Treatment::Reset => None,
        }
    }
}

/// RFC 9110 15.4.3. Nobody may keep it: the portal is for now, and the page is what it was.
fn found(url: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {url}\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    )
}

impl State {
    /// What a step does that others do not.
    pub(crate) fn extra(&self, at: StepIndex) -> Option<&Extra> {
        let session = self.sessions.get(self.sessions.cells.session(at))?;
        let place = step_place(session.run.base, at);
        let found = session.extras().binary_search_by_key(&place, |(of, _)| usize::from(*of)).ok()?;
        session.extras().get(found).map(|(_, extra)| extra)
    }

    /// What a step answers instead of forwarding.
    pub(crate) fn portal(&self, at: StepIndex) -> Option<&[u8]> {
        match self.extra(at)?.treatment.as_ref()? {
            Treatment::Answer(answer) => Some(answer),
            Treatment::Enrich(_) | Treatment::Readdress(_) => None,
        }
    }

    /// Where packets of a step go in the place of where they are sent.
    pub(crate) fn readdress(&self, at: StepIndex) -> Option<RedirectAddresses> {
        match self.extra(at)?.treatment.as_ref()? {
            Treatment::Readdress(to) => Some(*to),
            Treatment::Answer(_) | Treatment::Enrich(_) => None,
        }
    }
}

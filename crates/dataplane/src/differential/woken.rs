//! Of which users' packets the control plane hears, that they are kept (TS 29.244 5.2.3.1, NOCP).

use dplink::{Event, Notice};
use reference::Reference;
use rules::{PdrId, Seid};
use std::collections::{BTreeMap, BTreeSet};

/// Of so many PDRs of a session it hears.
const PDRS: usize = 8;

/// What it has heard, by session, since that got its rules.
#[derive(Default)]
pub(super) struct Woken {
    told: BTreeMap<Seid, BTreeSet<PdrId>>,
    /// How many PDRs it has heard of in all.
    pub(super) count: usize,
}

impl Woken {
    pub(super) fn note<'a>(&mut self, notices: impl IntoIterator<Item = &'a Notice>) {
        for notice in notices {
            if let Notice::Event(Event::DownlinkData { session, pdr, .. }) = notice {
                self.count += usize::from(self.told.entry(*session).or_default().insert(*pdr));
            }
        }
    }

    /// A session is about to get other rules: all has been told that had to be, and nothing that nobody wants to hear.
    pub(super) fn close(&mut self, session: Seid, reference: &Reference) {
        let told = self.told.remove(&session).unwrap_or_default();
        let (must, may) = reference.woken(session);
        let is_told = must.iter().all(|pdr| told.contains(pdr)) || must.len() >= PDRS;
        let is_wanted = told.iter().all(|pdr| may.contains(pdr));
        assert!(is_told && is_wanted, "{session}: {told:?} where {must:?} must be told, and {may:?} may be");
    }
}

//! Another table of predefined rules while there are sessions: those that activate what has changed are told the data plane anew.
//!
//! By portions, as after the data plane has come back: control planes must hear of us meanwhile. Whoever is not attended to yet
//! goes by the old table, and a request about it by the new one. A process that ends amid that has lost nothing, as the next one
//! tells the data plane of all sessions.

use super::{Predefined, check};
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::sessions::Session;
use machine::Time;
use rules::Seid;
use std::collections::BTreeSet;
use std::time::Duration;

/// Sessions looked at in one go, and the pause before the next ones.
const PORTION: usize = 64;
const BETWEEN_PORTIONS: Duration = Duration::from_millis(1);

/// Sessions that have yet to be looked at, for which names, and when the next are.
#[derive(Debug, Default)]
pub(crate) struct Renewal {
    names: BTreeSet<String>,
    sessions: std::vec::IntoIter<Seid>,
    at: Option<Time>,
}

impl Renewal {
    pub(crate) const fn next_due(&self) -> Option<Time> {
        self.at
    }
}

impl Node {
    /// Another table of predefined rules holds from now on. Sessions follow within some seconds; what they do meanwhile is
    /// counted as ever. Control planes are told where it makes the feature ADPDP come or go. What is to be done.
    pub fn put_predefined(&mut self, table: Predefined, now: Time) -> Vec<Output> {
        self.now = self.now.max(now);
        let mut names = self.config.predefined.changed(&table);
        self.config.predefined = table;
        self.find_outdated();
        self.tell_capabilities();
        if !names.is_empty() {
            // Those of the last change that nobody has got to know yet are among them.
            names.append(&mut self.renewal.names);
            let sessions = self.sessions.all().into_iter();
            self.renewal = Renewal { names, sessions, at: Some(self.now) };
        }
        std::mem::take(&mut self.out)
    }

    /// Sessions that have yet to be looked at since predefined rules were changed.
    pub fn unrenewed(&self) -> usize {
        self.renewal.sessions.len()
    }

    /// Looks at some of them.
    pub(crate) fn renew_some(&mut self) {
        if self.renewal.at.is_none_or(|at| at > self.now) {
            return;
        }
        for _ in 0..PORTION {
            let Some(seid) = self.renewal.sessions.next() else {
                return self.renewal = Renewal::default();
            };
            self.renew(seid);
            // One after the other: all of them awake would be many times as large.
            self.sessions.rest(self.wall_ms());
        }
        self.renewal.at = Some(self.now + BETWEEN_PORTIONS);
    }

    fn renew(&mut self, seid: Seid) {
        let names = &self.renewal.names;
        let activates = |session: &Session| {
            let mut all = session.record.extras.iter().flat_map(|extras| &extras.predefined);
            all.any(|(_, active)| active.iter().any(|name| names.contains(name)))
        };
        if !self.sessions.look(seid, activates) {
            return;
        }
        if let Some(why) = self.unfit(seid) {
            let text = format!("session {seid} keeps the predefined rules it had: {why}");
            return self.note(Level::Warning, text);
        }
        self.restore_meters(seid);
        self.put_again(seid);
    }

    /// Why the data plane could not run a session with the table as it is.
    fn unfit(&self, seid: Seid) -> Option<String> {
        let record = &self.sessions.get(seid)?.record;
        let checked = check(&record.rules, record.extras.as_deref()?, &self.config.predefined);
        let is_too_long = || self.desired_of(seid).is_some_and(|desired| !desired.fits());
        match checked {
            Err(error) => Some(error.to_string()),
            Ok(()) => is_too_long().then(|| "they would be more than it can be told of".to_owned()),
        }
    }
}

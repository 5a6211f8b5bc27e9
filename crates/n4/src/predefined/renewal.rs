//! Another table of predefined rules while there are sessions: those that activate what has changed are told the data plane anew.
//!
//! By portions, as after the data plane has come back: control planes must hear of us meanwhile. Whoever is not attended to yet
//! goes by the old table, and a request about it by the new one. What names stand for is in the database once the data plane has
//! been told of all, and until then, that it is not settled. So a process that starts with other names than that, as it has another
//! configuration or the one before ended amid it, begins here.

use super::told::{Changed, changed, unsettled};
use super::{Predefined, check};
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::sessions::Session;
use charging::Conditions;
use machine::Time;
use rules::Seid;
use session::ToldRecord;
use std::time::Duration;

/// Sessions looked at in one go, and the pause before the next ones.
const PORTION: usize = 64;
const BETWEEN_PORTIONS: Duration = Duration::from_millis(1);

/// Sessions that have yet to be looked at, for which names, and when the next are.
#[derive(Debug, Default)]
pub(crate) struct Renewal {
    names: Changed,
    sessions: std::vec::IntoIter<Seid>,
    /// Nothing is done while the data plane is away, or is told of all sessions.
    at: Option<Time>,
    is_in_step: bool,
    /// All have been looked at, and what the data plane was asked is being answered.
    is_ending: bool,
}

impl Renewal {
    /// What a start begins with: names that stand for something else than the data plane was told.
    pub(crate) fn after(told: &[ToldRecord], table: &Predefined) -> Self {
        Self { names: changed(told, &table.told()), ..Self::default() }
    }

    pub(crate) const fn next_due(&self) -> Option<Time> {
        self.at
    }

    /// Whether a session activates what has changed, and if so, whether it brings other QERs.
    fn concerns(&self, session: &Session) -> Option<bool> {
        let activated = session.record.extras.iter().flat_map(|extras| &extras.predefined);
        let names = activated.flat_map(|(_, names)| names);
        names.filter_map(|name| self.names.get(name)).copied().reduce(|one, other| one || other)
    }
}

impl Node {
    /// Another table of predefined rules holds from now on. Sessions follow within some seconds; what they do meanwhile is
    /// counted as ever. Control planes are told where it makes the feature ADPDP come or go. What is to be done.
    pub fn put_predefined(&mut self, table: Predefined, now: Time) -> Vec<Output> {
        self.now = self.now.max(now);
        let names = changed(&self.config.predefined.told(), &table.told());
        self.config.predefined = table;
        self.find_outdated();
        self.tell_capabilities();
        if !names.is_empty() {
            if self.renewal.is_ending {
                self.renewal.names.clear();
            }
            // Those of the last change that nobody has got to know yet stay among them.
            for (name, brings_qers) in names {
                *self.renewal.names.entry(name).or_default() |= brings_qers;
            }
            self.renew_all();
        }
        std::mem::take(&mut self.out)
    }

    /// Sessions that have yet to be looked at since predefined rules were changed.
    pub fn unrenewed(&self) -> usize {
        self.renewal.sessions.len()
    }

    /// Begins with the first session, if anything has changed.
    pub(crate) fn renew_all(&mut self) {
        if self.renewal.names.is_empty() {
            return;
        }
        self.renewal.sessions = self.sessions.all().into_iter();
        self.renewal.is_ending = false;
        self.renewal.at = self.renewal.is_in_step.then_some(self.now);
        match self.unrenewed() {
            0 => self.renewed(),
            // Until all have been told, nobody knows by which table a session goes: the next table may be the one before.
            _ => {
                let told = unsettled(self.config.predefined.told(), &self.renewal.names);
                self.out.push(Output::SaveTold(told));
            }
        }
    }

    /// The data plane has been told of all sessions: it does what it is told and asked from now on in that order.
    pub(crate) fn in_step(&mut self) {
        self.renewal.is_in_step = true;
        self.renewal.at = (!self.renewal.names.is_empty()).then_some(self.now);
    }

    /// The data plane is gone. What it has not answered it may not have been told.
    pub(crate) fn out_of_step(&mut self) {
        self.renewal.is_in_step = false;
        if self.renewal.is_ending {
            self.renew_all();
        }
        self.renewal.at = None;
    }

    /// Looks at some of them.
    pub(crate) fn renew_some(&mut self) {
        if self.renewal.at.is_none_or(|at| at > self.now) {
            return;
        }
        for _ in 0..PORTION {
            let Some(seid) = self.renewal.sessions.next() else { return self.end_renewal() };
            self.renew(seid);
            // One after the other: all of them awake would be many times as large.
            self.sessions.rest(self.wall_ms());
        }
        self.renewal.at = Some(self.now + BETWEEN_PORTIONS);
    }

    fn end_renewal(&mut self) {
        if !self.renewal.is_ending {
            self.renewal.is_ending = true;
            return self.renewal.at = Some(self.now + self.config.apply_timeout);
        }
        self.renewed();
    }

    fn renewed(&mut self) {
        self.renewal = Renewal { is_in_step: self.renewal.is_in_step, ..Renewal::default() };
        self.out.push(Output::SaveTold(self.config.predefined.told()));
    }

    /// Whether the data plane will be told of a session anyway.
    pub(crate) fn is_to_be_renewed(&self, seid: Seid) -> bool {
        !self.renewal.names.is_empty()
            && self.sessions.look(seid, |session| self.renewal.concerns(session).is_some())
    }

    fn renew(&mut self, seid: Seid) {
        let concerned = self.sessions.peek(seid, |session| self.renewal.concerns(session));
        let Some(brings_qers) = concerned.flatten() else { return };
        if let Some(why) = self.unfit(seid) {
            let text = format!("session {seid} keeps the predefined rules it had: {why}");
            return self.note(Level::Warning, text);
        }
        // What a rule is for or does is what its usage is charged for, as its rates are: usage before and after is told apart
        // (TS 32.298: qoSChange, configurationChange of ServiceConditionChange).
        let condition = if brings_qers { Conditions::QOS_CHANGE } else { Conditions::CONFIGURATION_CHANGE };
        if let Some(session) = self.sessions.get_mut(seid) {
            session.changing.next = session.changing.next.and(condition);
        }
        self.add_meters(seid);
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

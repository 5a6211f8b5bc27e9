//! Sessions that we end: those that a data plane does not take back after it was restarted, as it has less room than before, and
//! those of control planes that we took leave of. What they used is told (TS 29.244 7.5.8.1). That they are over is not: the
//! flag for it (PSDBU) belongs to enhanced association release, of which we say that we cannot do it (EPFAR, 5.18.2); who asks
//! for such a session does not find it.

use crate::asking::Telling;
use crate::deletion::former;
use crate::exchange::Purpose;
use crate::interface::{Level, Output};
use crate::metering::of_usage;
use crate::node::Node;
use crate::sessions::Session;
use crate::usage;
use machine::Time;
use pfcp::{Body, UsageReport};
use rules::Seid;
use session::UsageRecord;
use std::collections::{BTreeMap, BTreeSet};

/// At most all sessions there are.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Those that leave is taken of, by owners, whose last counts are to come, and until when these are waited for.
    parting: BTreeMap<String, BTreeSet<Seid>>,
    parting_until: Option<Time>,
    /// Those that are over, by the owners that are to be told.
    untold: BTreeMap<String, BTreeSet<Seid>>,
    /// When they are told, if there was no room for it.
    again: Option<Time>,
}

impl Losses {
    /// The data plane has it.
    pub(crate) fn held(&mut self, seid: Seid) {
        for untold in self.untold.values_mut() {
            untold.remove(&seid);
        }
    }

    /// Whoever was silent is not any more.
    pub(crate) const fn try_again(&mut self, now: Time) {
        self.again = Some(now);
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        let again = self.again.filter(|_| !self.untold.is_empty());
        let late = self.parting_until.filter(|_| !self.parting.is_empty());
        again.into_iter().chain(late).min()
    }

    /// Whether there is nothing to tell an owner.
    pub(crate) fn are_told(&self, owner: &str) -> bool {
        !self.parting.contains_key(owner) && !self.untold.contains_key(owner)
    }

    /// It is associated no more. Of how many sessions it has not been told.
    pub(crate) fn forget(&mut self, owner: &str) -> usize {
        let left = [self.parting.remove(owner), self.untold.remove(owner)];
        left.iter().flatten().map(BTreeSet::len).sum()
    }

    /// The last counts have come; whether they were waited for.
    fn part(&mut self, owner: &str, seid: Seid) -> bool {
        let Some(parting) = self.parting.get_mut(owner) else { return false };
        let is_parting = parting.remove(&seid);
        if parting.is_empty() {
            self.parting.remove(owner);
        }
        if is_parting {
            self.untold.entry(owner.to_owned()).or_default().insert(seid);
        }
        is_parting
    }

    /// Counts that have not come in time are not waited for any more.
    fn part_late(&mut self, now: Time) {
        if self.parting_until.is_some_and(|until| until <= now) {
            for (owner, parting) in std::mem::take(&mut self.parting) {
                self.untold.entry(owner).or_default().extend(parting);
            }
        }
    }
}

impl Node {
    /// The data plane refuses a session. If it holds an older revision of it, that stays in force.
    pub(crate) fn not_taken_back(&mut self, seid: Seid) {
        let Some(session) = self.sessions.get_mut(seid) else { return };
        if std::mem::take(&mut session.is_missing) && session.is_established() {
            let owner = session.record.owner.clone();
            self.losses.untold.entry(owner).or_default().insert(seid);
            let text = format!("session {seid} is over: the data plane does not take it back");
            self.note(Level::Warning, text);
            self.tell_losses();
        }
    }

    /// Parts with a session that measures something: the data plane lets it go and tells its last counts. Others are only dropped, and
    /// all are where nobody would hear of them.
    /// Whether the data plane is told.
    pub(crate) fn part_with(&mut self, seid: Seid, owner: &str) -> bool {
        let measures = |session: &Session| session.is_established() && !session.record.rules.urrs.is_empty();
        if self.is_out_of_reach(owner) || !self.sessions.look(seid, measures) {
            return false;
        }
        self.out.push(Output::Delete(seid));
        self.losses.parting.entry(owner.to_owned()).or_default().insert(seid);
        self.peers.get_mut(owner).into_iter().for_each(|association| association.parted += 1);
        self.losses.parting_until = Some(self.now + self.config.apply_timeout);
        true
    }

    /// The data plane has let a session go that is there.
    pub(crate) fn parted(&mut self, seid: Seid) {
        if self.losses.parting.is_empty() {
            return;
        }
        let owner = self.sessions.get(seid).map(|session| session.record.owner.clone());
        if owner.is_some_and(|owner| self.losses.part(&owner, seid)) {
            self.tell_losses();
            self.end_associations();
        }
    }

    /// Tells each owner of as many as there is room for, and those who do not answer later.
    pub(crate) fn tell_losses(&mut self) {
        self.losses.part_late(self.now);
        self.losses.again = None;
        let owners: Vec<String> = self.losses.untold.keys().cloned().collect();
        owners.into_iter().for_each(|owner| self.tell_losses_to(&owner));
    }

    fn tell_losses_to(&mut self, owner: &str) {
        while let Some(seid) = self.losses.untold.get(owner).and_then(|untold| untold.first().copied()) {
            match self.tell_loss(seid) {
                Telling::UnderWay => {}
                Telling::NoRoom => {
                    return self.losses.again = Some(self.now + self.config.report_interval);
                }
                Telling::Silent => return,
            }
            if let Some(untold) = self.losses.untold.get_mut(owner) {
                untold.remove(&seid);
            }
            self.is_told_after(seid);
            self.drop_session(seid);
            self.sessions.rest(self.wall_ms());
        }
        self.losses.untold.remove(owner);
    }

    /// What is not to be told is as good as told.
    fn tell_loss(&mut self, seid: Seid) -> Telling {
        let clock = self.clock();
        let Some(session) = self.sessions.get(seid) else { return Telling::UnderWay };
        let mut record = session.record.clone();
        let mut usage_reports = untold(&record.usage, session.reporting.is_some());
        usage_reports.extend(usage::tell_all(&mut record, clock));
        let count = usage_reports.len() as u64;
        if usage_reports.is_empty() {
            return Telling::UnderWay;
        }
        let (former, told) = (former(&record), self.looks_after(seid));
        let further = usage::split(&mut usage_reports, true);
        // It goes on when the session is gone.
        let purpose = Purpose::After(seid, former.clone());
        let telling = self.tell_owner(seid, purpose, of_usage(usage_reports));
        if telling == Telling::UnderWay {
            self.counters.usage_reports += count;
            further.into_iter().for_each(|reports| self.tell_after((seid, &former), told, reports));
        }
        telling
    }
}

/// Of a request that we made.
fn reports_of(bytes: &[u8]) -> Vec<UsageReport> {
    match pfcp::decode(bytes).map(|message| message.body) {
        Ok(Body::SessionReportRequest(request)) => request.usage_reports,
        _ => vec![],
    }
}

/// What was told once and waits to be told again, and what an answer had no room for. A report on its way comes by itself.
pub(crate) fn untold(usage: &UsageRecord, is_reporting: bool) -> Vec<UsageReport> {
    let unconfirmed = usage.unconfirmed.iter().filter(|_| !is_reporting);
    unconfirmed.chain(&usage.further).flat_map(|bytes| reports_of(bytes)).collect()
}

//! Sessions that a data plane does not take back after it was restarted, as it has less room than before. They are over: their
//! control planes are told so, and what they used (TS 29.244 7.5.8.1; PSDBU, if they know it: 5.18.2).

use crate::asking::Telling;
use crate::exchange::Purpose;
use crate::interface::Level;
use crate::node::Node;
use crate::usage;
use machine::Time;
use pfcp::{Body, CpFeature, ReportType, SessionReportRequest, UsageReport, flags};
use rules::Seid;
use session::UsageRecord;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// At most all sessions there are.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Sessions of which this life of the data plane has said nothing yet.
    missing: HashSet<Seid>,
    /// Those it refused, by the owners that are to be told.
    untold: BTreeMap<String, BTreeSet<Seid>>,
    /// When they are told, if there was no room for it.
    again: Option<Time>,
}

impl Losses {
    pub(crate) fn missing(&mut self, seid: Seid) {
        self.missing.insert(seid);
    }

    /// The data plane has it.
    pub(crate) fn held(&mut self, seid: Seid) {
        self.missing.remove(&seid);
        for untold in self.untold.values_mut() {
            untold.remove(&seid);
        }
    }

    /// Whoever was silent is not any more.
    pub(crate) const fn try_again(&mut self, now: Time) {
        self.again = Some(now);
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        self.again.filter(|_| !self.untold.is_empty())
    }
}

impl Node {
    /// The data plane refuses a session. If it holds an older revision of it, that stays in force.
    pub(crate) fn not_taken_back(&mut self, seid: Seid) {
        let session = self.sessions.get(seid).filter(|session| session.is_established());
        let owner = session.map(|session| session.record.owner.clone());
        let is_missing = self.losses.missing.remove(&seid);
        if let Some(owner) = owner.filter(|_| is_missing) {
            self.losses.untold.entry(owner).or_default().insert(seid);
            self.tell_losses();
        }
    }

    /// Tells each owner of as many as there is room for, and those who do not answer later.
    pub(crate) fn tell_losses(&mut self) {
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
        // A report on its way comes by itself.
        let mut usage_reports = if session.is_reporting { vec![] } else { unconfirmed(&record.usage) };
        usage_reports.extend(usage::tell_all(&mut record, clock));
        let used = if usage_reports.is_empty() { 0 } else { ReportType::USAR };
        let told = usage_reports.len() as u64;
        // Others do not know what that flag means. They hear what was used, and that there is no session when they ask for it.
        let hears_of_ends = self.peers.get(&record.owner).is_some_and(|owner| owner.has(CpFeature::Epfar));
        if !hears_of_ends && usage_reports.is_empty() {
            return Telling::UnderWay;
        }
        let ends = if hears_of_ends { ReportType::UISR } else { 0 };
        let request = SessionReportRequest {
            report_type: ReportType(ends | used),
            usage_reports,
            pfcpsrreq_flags: hears_of_ends.then_some(flags::PFCPSRREQ_PSDBU),
            ..SessionReportRequest::default()
        };
        let telling = self.tell_owner(seid, Purpose::Report(seid), request);
        if telling == Telling::UnderWay {
            self.counters.usage_reports += told;
            self.note(
                Level::Warning,
                format!("session {seid} is over: the data plane does not take it back"),
            );
        }
        telling
    }
}

/// Of a request that we made.
pub(crate) fn reports_of(bytes: &[u8]) -> Vec<UsageReport> {
    match pfcp::decode(bytes).map(|message| message.body) {
        Ok(Body::SessionReportRequest(request)) => request.usage_reports,
        _ => vec![],
    }
}

/// What was told once and waits to be told again.
fn unconfirmed(usage: &UsageRecord) -> Vec<UsageReport> {
    usage.unconfirmed.iter().chain(&usage.further).flat_map(|bytes| reports_of(bytes)).collect()
}

//! What the workers have reported: who listens is told, and what is known of a session follows.

use super::hand::Hand;
use super::known::{Known, known_as};
use super::merge::Counted;
use super::placement::Owner;
use super::{Engine, merge};
use crate::state::{MACS_PER_SESSION, Removal, Used};
use crate::worker::{Order, Query, Report};
use dplink::{Notice, UsageCause};
use rules::Seid;

impl Engine {
    /// What the workers have reported since the last call. `uptime_ms` goes into statistics.
    pub fn poll(&mut self, uptime_ms: u64) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.now_ms = uptime_ms;
        for worker in 0..self.hands.len() {
            self.hands.iter_mut().skip(worker).take(1).for_each(Hand::push);
            while let Some(report) = self.hands.get_mut(worker).and_then(Hand::report) {
                match report {
                    Report::Listed(listing) => notices.extend(self.listed(worker, listing)),
                    Report::Moved(leg, parcel) => {
                        notices.extend(self.moved(leg, parcel));
                        notices.extend(self.go_on());
                    }
                    Report::Busy(told) => self.heard(worker, told),
                    Report::Ending { is_quiet } => self.ends(worker, is_quiet),
                    report => notices.extend(self.digest(worker, report, uptime_ms)),
                }
            }
        }
        self.look_at_loads(uptime_ms);
        notices.extend(self.begin_move());
        notices
    }

    fn digest(&mut self, worker: usize, report: Report, uptime_ms: u64) -> Option<Notice> {
        Some(match report {
            Report::Installed { seid, revision, installed } => {
                let known = self.known.get(seid).unwrap_or_default();
                self.known.set(seid, Known { applied: known_as(revision), ..known });
                self.placement.applied(seid, revision);
                self.heaps.applied(seid, known.ordered == known_as(revision));
                self.leave(seid, installed.spent.session.as_ref());
                Notice::Applied { session: seid, revision, removed: installed.spent.removed }
            }
            Report::Refused { installation, refusal } => {
                let (session, revision) = (installation.seid, installation.revision);
                self.placement.refused(session, revision);
                self.forget_order(session, revision);
                Notice::Refused { session, revision, cause: refusal.cause(), reason: refusal.to_string() }
            }
            Report::Removed(removal) => {
                let Removal { seid, usage, .. } = *removal;
                self.forget_session(seid);
                Notice::Removed { session: seid, usage }
            }
            Report::Queried(query) => {
                let Query { seid, token, counts, .. } = *query;
                let cause = if self.is_last(token) { UsageCause::End } else { UsageCause::Query(token) };
                Notice::Usage { session: seid, cause, counts }
            }
            Report::Used(Used { seid, cause: Some(cause), counts }) => {
                Notice::Usage { session: seid, cause, counts: vec![counts] }
            }
            Report::Used(Used { seid, cause: None, counts }) => return self.told_unasked(seid, counts),
            Report::Interim(interim) => return self.interim_told(worker, interim),
            Report::Counted { counters, sessions } => {
                return self.counted(worker, (counters, sessions), uptime_ms);
            }
            Report::Loaded { revision, .. } => {
                self.loads.answer(Some(revision), worker, ())?;
                let rules = self.content.as_ref().map_or(0, |rules| rules.rules() as u64);
                Notice::ContentLoaded { revision, rules }
            }
            Report::Event(event) => Notice::Event(event),
            Report::MacsChanged(seid) => {
                let macs = Vec::with_capacity(MACS_PER_SESSION);
                self.order(worker as Owner, Order::Macs(seid, macs));
                return None;
            }
            Report::Macs(session, macs) => Notice::Macs { session, macs },
            Report::Done => return None,
            Report::Listed(_) | Report::Moved(..) | Report::Busy(_) | Report::Ending { .. } => return None,
            Report::Traced(tracer) => return self.traced(worker, *tracer?),
            Report::Explained(explain) => {
                let token = explain.token;
                let answer = explain.into_explanation((&self.ports, &self.policies), self.content.as_deref());
                let answers = self.explanations.answer(Some(token), worker, answer)?;
                Notice::Explanation { token, explanation: Box::new(merge::explanation(answers)?) }
            }
        })
    }

    /// Statistics, once all workers have counted.
    fn counted(&mut self, worker: usize, counted: Counted, uptime_ms: u64) -> Option<Notice> {
        let counted = self.counts.answer(None, worker, counted)?;
        let mut statistics = merge::statistics((&self.ports, &self.spread), &counted, uptime_ms);
        for (number, worker) in statistics.workers.iter_mut().enumerate() {
            worker.busy_permille = self.placement.loads.permille(number);
        }
        Some(Notice::Statistics(statistics))
    }

    /// The session is gone, unless it was ordered anew meanwhile.
    fn forget_session(&mut self, seid: Seid) {
        let Some(known) = self.known.get(seid) else { return };
        self.now_known(seid, Known { applied: None, ..known });
    }

    /// The session stays as it was: in its older revision, or not at all.
    fn forget_order(&mut self, seid: Seid, revision: u64) {
        let Some(known) = self.known.get(seid) else { return };
        let is_last = known.ordered == known_as(revision);
        if is_last {
            self.heaps.refused(seid);
        }
        let ordered = if is_last { known.applied } else { known.ordered };
        self.now_known(seid, Known { ordered, ..known });
    }

    /// Of a session that is not wanted, nothing has to be known.
    fn now_known(&mut self, seid: Seid, known: Known) {
        match known.ordered {
            Some(_) => self.known.set(seid, known),
            None => {
                self.known.remove(seid);
                self.heaps.left(seid);
                self.placement.left(seid, known.owner);
                self.ended(seid);
            }
        }
    }
}

//! What the data plane is told, and what becomes of a request when it obeys, refuses or says nothing.

use crate::exchange::Asked;
use crate::interface::{Level, Output};
use crate::modification::modified;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::sessions::{Pending, Session, Work, desired};
use dplink::{Event, Notice};
use pfcp::Cause;
use rules::{Rules, Seid};

impl Node {
    pub(crate) fn data_path(&mut self, notice: &Notice) {
        match notice {
            Notice::Applied { session, revision } => self.applied(*session, *revision),
            Notice::Refused { session, revision, reason } => {
                self.note(Level::Warning, format!("the data plane refuses session {session}: {reason}"));
                self.fail(*session, Some(*revision));
            }
            Notice::Removed { session } => self.removed(*session),
            Notice::Event(Event::ErrorIndication { teid, peer }) => self.error_indication(*teid, *peer),
            Notice::Hello { .. } | Notice::Resynced { .. } | Notice::Statistics(_) => {}
        }
    }

    /// Orders the data plane to do what a request asks of a session; the answer waits for its word.
    pub(crate) fn order(&mut self, seid: Seid, asked: &Asked, mut work: Work) {
        let deadline = self.now + self.config.apply_timeout;
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let revision = session.next_revision();
        let order = match &mut work {
            Work::Establish(_) => {
                session.record.revision = revision;
                Output::Put(desired(&session.record))
            }
            Work::Modify(next, _) => {
                next.revision = revision;
                Output::Put(desired(next))
            }
            Work::Delete => Output::Delete(seid),
        };
        session.pending = Some(Pending { asked: *asked, revision, work });
        self.deadlines.push_back((deadline, seid, revision));
        self.out.push(order);
    }

    fn applied(&mut self, seid: Seid, revision: u64) {
        let is_it =
            |pending: &mut Pending| pending.revision == revision && !matches!(pending.work, Work::Delete);
        let session = self.sessions.get_mut(seid);
        let Some(pending) = session.and_then(|session| session.pending.take_if(is_it)) else { return };
        self.commit(seid, &pending);
        self.go_on(seid);
    }

    fn commit(&mut self, seid: Seid, pending: &Pending) {
        let before = match &pending.work {
            Work::Establish(_) => Rules::default(),
            Work::Modify(next, _) => {
                self.sessions.replace_record((**next).clone()).map(|r| r.rules).unwrap_or_default()
            }
            Work::Delete => return,
        };
        let Some(record) = self.sessions.get(seid).map(|session| session.record.clone()) else { return };
        self.tunnels.release_unused(&before, &record.rules);
        self.reports.reindex(seid, &before, &record.rules);
        let cp_seid = Some(record.cp_f_seid.seid);
        self.out.push(Output::SaveSession(record));
        match pending.work {
            Work::Establish(_) => self.accept(&pending.asked, cp_seid, self.established(seid, pending)),
            _ => self.accept(&pending.asked, cp_seid, modified(pending)),
        }
    }

    /// The request under way fails, and the session is what it was before it: the data plane is told so anew, as it
    /// may have obeyed after all. `revision` tells which request is meant, if only one is.
    pub(crate) fn fail(&mut self, seid: Seid, revision: Option<u64>) {
        let is_it = |pending: &mut Pending| revision.is_none_or(|revision| pending.revision == revision);
        let session = self.sessions.get_mut(seid);
        let Some(pending) = session.and_then(|session| session.pending.take_if(is_it)) else { return };
        let cp_seid = self.sessions.get(seid).map(|session| session.record.cp_f_seid.seid);
        match &pending.work {
            Work::Establish(_) => self.undo_establishment(seid),
            Work::Modify(_, taken) => {
                taken.teids.iter().for_each(|teid| self.tunnels.release(*teid));
                self.put_back(seid);
            }
            Work::Delete => self.put_back(seid),
        }
        self.refuse(&pending.asked, cp_seid, Refusal::of(Cause::SystemFailure));
        self.go_on(seid);
    }

    fn undo_establishment(&mut self, seid: Seid) {
        let Some(Session { record, waiting, .. }) = self.sessions.remove(seid) else { return };
        self.tunnels.release_unused(&record.rules, &Rules::default());
        self.out.push(Output::Delete(seid));
        self.refuse_waiting(waiting.into_iter().map(|(asked, _)| asked), record.cp_f_seid.seid);
    }

    fn put_back(&mut self, seid: Seid) {
        let Some(session) = self.sessions.get_mut(seid) else { return };
        session.record.revision = session.next_revision();
        let record = session.record.clone();
        self.out.push(Output::Put(desired(&record)));
        self.out.push(Output::SaveSession(record));
    }

    /// Takes up what waited for the session, until something is under way again.
    fn go_on(&mut self, seid: Seid) {
        while let Some(session) = self.sessions.get_mut(seid).filter(|session| session.pending.is_none()) {
            let Some((asked, body)) = session.waiting.pop_front() else { return };
            self.session_request(&asked, seid, &body);
        }
    }

    /// Requests whose data plane is late.
    pub(crate) fn fail_late(&mut self) {
        while let Some((deadline, seid, revision)) = self.deadlines.front().copied() {
            if deadline > self.now {
                return;
            }
            self.deadlines.pop_front();
            self.fail_if_late(seid, revision);
        }
    }

    fn fail_if_late(&mut self, seid: Seid, revision: u64) {
        let pending = self.sessions.get(seid).and_then(|session| session.pending.as_ref());
        if pending.is_some_and(|pending| pending.revision == revision) {
            self.note(Level::Warning, format!("the data plane is silent about session {seid}"));
            self.fail(seid, Some(revision));
        }
    }

    /// What is under way may never be done.
    pub(crate) fn data_path_lost(&mut self) {
        self.note(
            Level::Warning,
            "the data plane is lost: what it has not confirmed is taken back".to_owned(),
        );
        self.sessions.pending().into_iter().for_each(|seid| self.fail(seid, None));
    }
}

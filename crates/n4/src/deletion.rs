//! Session Deletion (TS 29.244 6.3.4), and sessions that go without being asked about.

use crate::exchange::{Asked, Former, Purpose, answer_to};
use crate::interface::{Level, Output, saved};
use crate::late::Told;
use crate::load::Pressure;
use crate::losses::untold;
use crate::metering::of_usage;
use crate::node::Node;
use crate::offline;
use crate::refusal::Refusal;
use crate::sessions::{Pending, Session, Work};
use crate::usage;
use dplink::UsageCounts;
use pfcp::{Cause, CpFeature, Message, SessionDeletionResponse, SessionReportRequest, UsageReport};
use rules::{Rules, Seid};
use session::{AnswerKind, SessionRecord, UsageRecord};

impl Node {
    pub(crate) fn delete(&mut self, asked: &Asked, seid: Seid) {
        self.order(seid, asked, Work::Delete);
    }

    /// The data plane has removed it, and tells the last counts.
    pub(crate) fn removed(&mut self, seid: Seid, counts: &[UsageCounts]) {
        let now = self.wall_ms();
        self.endings.gone(seid, (self.config.limits.portion, self.now));
        if self.left(seid, counts) || self.counts_come_late(seid, counts) {
            return;
        }
        let Some(session) = self.sessions.get_mut(seid) else { return };
        offline::hear_last(&mut session.record.charging, counts, now);
        usage::hear(&mut session.record.usage, &session.record.rules, counts, now);
        usage::begin_anew(&mut session.record.usage);
        offline::begin_anew(&mut session.record.charging);
        match session.pending.as_mut().filter(|pending| matches!(pending.work, Work::Delete)) {
            Some(pending) => {
                pending.applied = Some(vec![]);
                // Where the answer waits for that of a report, nobody else has these counts if the process ends meanwhile.
                if session.reporting.is_some() {
                    session.save();
                }
                self.forget_when_told(seid);
            }
            // It came too late, and was taken back.
            None => {
                if !counts.is_empty() {
                    session.save();
                }
                self.parted(seid);
            }
        }
    }

    /// Answers a deletion that the data plane has carried out, unless a usage report is on its way. That one may have been heard: told
    /// in the answer, too, it would be billed twice by whoever only adds up what comes. And it may not: left to its request, it would be
    /// lost, as with our answer the control plane forgets the session, and what it is to hear of it is in the answer (TS 29.244 6.3.4,
    /// 7.5.7.1). So its answer is waited for, which is mostly there in no time, and no longer than the data plane. Then it is told in the answer to
    /// the deletion under the number that it has (UR-SEQN, 8.2.71), by which one that was heard after all can be known.
    pub(crate) fn forget_when_told(&mut self, seid: Seid) {
        let is_done =
            |pending: &mut Box<Pending>| matches!(pending.work, Work::Delete) && pending.applied.is_some();
        let session = self.sessions.get_mut(seid).filter(|session| session.reporting.is_none());
        if let Some(pending) = session.and_then(|session| session.pending.take_if(is_done)) {
            self.forget(seid, &pending);
        }
    }

    /// Answers a deletion by the counts that are known, and by what was told before and not confirmed.
    pub(crate) fn forget(&mut self, seid: Seid, pending: &Pending) {
        let told = self.looks_after(seid);
        let Some(mut session) = self.take_session(seid) else { return };
        self.unschedule(seid, &session);
        let mut usage_reports: Vec<UsageReport> = untold(&session.record.usage, false);
        let before = usage_reports.len();
        usage_reports.extend(usage::tell_all(&mut session.record, self.clock()));
        self.counters.usage_reports += (usage_reports.len() - before) as u64;
        self.charge_last(&mut session.record, charging::Cause::NormalRelease);
        self.release_all(&session.record);
        self.reports.reindex(seid, &session.record.rules, &Rules::default());
        let former = former(&session.record);
        let cp_seid = former.name.seid;
        let tells_usage = !usage_reports.is_empty();
        let knows = self.peers.get(&former.owner).is_some_and(|owner| owner.has(CpFeature::Ardr));
        let further = usage::split_answer(&mut usage_reports, knows);
        let is_late = pending.applied.is_none() && !session.record.rules.urrs.is_empty();
        let late = if is_late && knows { session.record.rules.urrs.len() } else { 0 };
        if is_late {
            self.await_counts(&session.record, told, knows);
        }
        let Pressure { load, overload } = self.pressure(pending.asked.key.from.ip());
        let response = SessionDeletionResponse {
            cause: Cause::RequestAccepted,
            offending_ie: None,
            usage_reports,
            load,
            overload,
            carried: usage::information(&further, late),
        };
        let bytes = answer_to(&pending.asked, Some(cp_seid), response);
        match tells_usage {
            true => self.keep_answer(session.record, &pending.asked, &bytes),
            false => self.out.push(Output::EraseSession(seid)),
        }
        self.counters.accepted += 1;
        self.answer_bytes(&pending.asked, bytes);
        self.refuse_waiting(session.waiting.into_asked(), cp_seid);
        further.into_iter().for_each(|reports| self.tell_after((seid, &former), told, reports));
    }

    /// What the answer to a deletion had no room for, or came too late for. The session is gone: this is asked for as often as
    /// requests are, and not across a restart. It is in its owner's share of the table, as if the session were there. Who has given its name
    /// to another session has forgotten this one, and would take it for that one's.
    pub(crate) fn tell_after(
        &mut self,
        (seid, former): (Seid, &Former),
        told: Told,
        reports: Vec<UsageReport>,
    ) {
        let Some((to, cp_seid, old_cp_f_seid)) = told else { return };
        if self.is_given_anew(seid, former) {
            self.counters.reports_held_back += 1;
            let text = format!("the last usage of session {seid} is not told: another one has its name");
            return self.note(Level::Warning, text);
        }
        let request = SessionReportRequest { old_cp_f_seid, ..of_usage(reports) };
        let purpose = Purpose::After(seid, former.clone());
        if !self.ask(to, purpose, |sequence| Message::session(cp_seid, sequence, request)) {
            self.counters.reports_held_back += 1;
            let text = format!("the last usage of session {seid} is more than there is room to tell at once");
            self.note(Level::Warning, text);
        }
    }

    /// The last counts are in this answer and nowhere else: as long as it may be asked for again, it outlives the
    /// process in the place of the session.
    fn keep_answer(&mut self, record: SessionRecord, asked: &Asked, bytes: &[u8]) {
        let answer =
            Some(self.answer_record((asked, bytes), AnswerKind::Whole, (record.seid, record.cp_f_seid.seid)));
        let usage = UsageRecord { answer, is_over: true, ..UsageRecord::default() };
        if self.over.len() >= self.config.limits.answers {
            let oldest = self.over.pop_front().map(|(_, seid)| Output::EraseSession(seid));
            self.out.extend(oldest);
        }
        self.over.push_back((self.now + self.config.answer_lifetime, record.seid));
        let record =
            SessionRecord { rules: Rules::default().into(), usage, extras: None, charging: None, ..record };
        self.out.push(saved(&record));
    }

    /// Answers nobody asks for any more.
    pub(crate) fn erase_old(&mut self) {
        while let Some((_, seid)) = self.over.pop_front_if(|(until, _)| *until <= self.now) {
            self.out.push(Output::EraseSession(seid));
        }
    }

    /// It is there no more.
    pub(crate) fn take_session(&mut self, seid: Seid) -> Option<Session> {
        self.endings.forget(seid);
        self.sessions.remove(seid)
    }

    /// Removes a session its owner no longer has. The data plane is told, not waited for.
    pub(crate) fn drop_session(&mut self, seid: Seid) {
        self.drop_session_by(seid, Cause::SystemFailure);
    }

    /// The same; the cause is for who is establishing it.
    pub(crate) fn drop_session_by(&mut self, seid: Seid, cause: Cause) {
        self.stays_or_is_gone(seid);
        let Some(session) = self.take_session(seid) else { return };
        let replaced = session.replaces().to_vec();
        self.unschedule(seid, &session);
        self.release_all(&session.record);
        self.reports.reindex(seid, &session.record.rules, &Rules::default());
        self.out.push(Output::Delete(seid));
        let cp_seid = session.record.cp_f_seid.seid;
        let is_established = session.is_established();
        if !is_established || !self.charge_when_removed(session.record) {
            self.out.push(Output::EraseSession(seid));
        }
        let own = session.pending.filter(|pending| !matches!(pending.work, Work::Yield));
        if let Some(asked) = own.map(|pending| self.give_back(seid, &pending)) {
            let cause = if is_established { Cause::SessionContextNotFound } else { cause };
            self.refuse(&asked, Some(cp_seid), Refusal::of(cause));
        }
        self.refuse_waiting(session.waiting.into_asked(), cp_seid);
        // Whoever is gone for its owner leaves nobody to come back.
        replaced.into_iter().for_each(|seid| self.drop_session_by(seid, cause));
    }

    /// What an unfinished request took is free again.
    fn give_back(&mut self, seid: Seid, pending: &Pending) -> Asked {
        self.release_taken(seid, pending);
        pending.asked
    }

    pub(crate) fn release_taken(&mut self, seid: Seid, pending: &Pending) {
        let f_teids = pending.taken().into_iter().flat_map(|taken| &taken.f_teids);
        f_teids.for_each(|f_teid| self.tunnels.release(*f_teid, seid));
        let addresses = pending.taken().into_iter().flat_map(|taken| &taken.addresses);
        addresses.for_each(|address| self.pools.release(*address, seid));
    }

    /// What a session had is free again.
    pub(crate) fn release_all(&mut self, record: &SessionRecord) {
        record.f_teids().for_each(|f_teid| self.tunnels.release(f_teid, record.seid));
        let addresses = record.extras.iter().flat_map(|extras| &extras.addresses);
        addresses.for_each(|address| self.pools.release(*address, record.seid));
    }

    pub(crate) fn refuse_waiting(&mut self, waiting: impl Iterator<Item = Asked>, cp_seid: u64) {
        for asked in waiting {
            self.refuse(&asked, Some(cp_seid), Refusal::of(Cause::SessionContextNotFound));
        }
    }

    pub(crate) fn drop_sessions_of(&mut self, node_id: &str) {
        let mut all = self.sessions.all_of(node_id);
        // One that is being deleted may have lost its name to another already.
        let is_its =
            |seid: &Seid| self.sessions.get(*seid).is_some_and(|session| session.record.owner == node_id);
        all.extend(self.sessions.pending().into_iter().filter(is_its));
        all.into_iter().for_each(|seid| self.drop_session_by(seid, Cause::NoEstablishedPfcpAssociation));
    }
}

/// How it is known once it is gone.
pub(crate) fn former(record: &SessionRecord) -> Former {
    Former { owner: record.owner.clone(), name: record.cp_f_seid }
}

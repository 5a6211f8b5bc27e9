//! What the data plane is told, and what becomes of a request when it obeys, refuses or says nothing.

use crate::asked_first::tell;
use crate::config::Config;
use crate::exchange::{Asked, answer_to};
use crate::interface::{Level, Output};
use crate::load::Pressure;
use crate::metering::of_usage;
use crate::node::Node;
use crate::offline;
use crate::paging::Paging;
use crate::refusal::Refusal;
use crate::sessions::{Modifying, Pending, Session, Work, desired};
use crate::translate::Taken;
use crate::usage;
use crate::user_index::Place;
use dplink::{Desired, Event, Notice, RefusalCause, UsageCounts};
use pfcp::{Cause, FailedRuleId, Message, SessionModificationResponse, UsageReport};
use rules::{FTeid, Pdr, PdrId, Rules, Seid};
use session::{AnswerKind, SessionRecord};
use std::net::IpAddr;
use std::sync::Arc;

impl Node {
    pub(crate) fn data_path(&mut self, notice: &Notice) {
        match notice {
            Notice::Hello { epoch, .. } => self.data_path_found(*epoch),
            Notice::Applied { session, revision, removed } => self.applied(*session, *revision, removed),
            Notice::Refused { session, revision, cause, reason } => {
                self.note(Level::Warning, format!("the data plane refuses session {session}: {reason}"));
                let refusal = self.refused(*session, *cause);
                self.fail_by(*session, Some(*revision), refusal);
                self.not_taken_back(*session);
            }
            Notice::Removed { session, usage } => self.removed(*session, usage),
            Notice::Usage { session, cause, counts } => self.usage_told(*session, *cause, counts),
            Notice::InterimUsage { counts } => self.interim_told(counts),
            Notice::FormerUsage { epoch, counts } => self.former_told(*epoch, counts),
            Notice::Macs { session, macs } => self.macs_told(*session, macs),
            Notice::Event(Event::ErrorIndication { teid, peer, towards }) => {
                self.error_indication((*teid, *peer), *towards);
            }
            Notice::Event(Event::Path { side, remote, failed }) => {
                self.user_plane_path((*side, *remote), !failed);
            }
            Notice::Event(Event::PeerRestarted { remote, .. }) => self.user_plane_restart(*remote),
            Notice::Event(Event::DownlinkData { session, pdr, qfi, traffic_class }) => {
                self.downlink_data(*session, *pdr, (*qfi, *traffic_class));
            }
            Notice::Resynced { .. } => self.in_step(),
            Notice::Leaving => self.plane_leaves = true,
            Notice::ContentLoaded { .. }
            | Notice::ContentRefused { .. }
            | Notice::Statistics(_)
            | Notice::Peers { .. }
            | Notice::Trace { .. }
            | Notice::Explanation { .. }
            | Notice::Placed { .. }
            | Notice::Balance { .. }
            | Notice::Evening { .. }
            | Notice::Farewell => {}
        }
    }

    /// Orders the data plane to do what a request asks of a session; the answer waits for its word.
    pub(crate) fn order(&mut self, seid: Seid, asked: &Asked, mut work: Work) {
        let deadline = self.now + self.config.apply_timeout;
        let Some(session) = self.sessions.get_mut(seid) else { return };
        if self.epoch.is_some()
            && let Work::Modify(next, modifying) = &work
            && changes_nothing(session, (next, modifying), &self.config)
        {
            return self.order_nothing(seid, asked, work);
        }
        let revision = session.next_revision();
        let order = match &mut work {
            Work::Establish(..) => {
                session.record.revision = revision;
                Output::Put(desired((&session.record, &session.paging), &self.config))
            }
            Work::Modify(next, modifying) => {
                next.revision = revision;
                Output::Put(modified((next, &session.paging), modifying, &self.config))
            }
            Work::Delete | Work::Yield => Output::Delete(seid),
        };
        // The link to the data plane is everybody's.
        let is_too_long = matches!(&order, Output::Put(desired) if !desired.fits());
        // URRs that go are asked about before they are gone.
        self.order_query(seid, &mut work);
        let is_there = self.epoch.is_some();
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let mut pending = Pending { asked: *asked, revision, work, applied: None };
        let waits = pending.waits_for_counts(is_there && !session.is_missing);
        session.pending = Some(Box::new(pending));
        if is_too_long {
            return self.fail_as_too_long(seid, revision);
        }
        self.deadlines.push_back((deadline, seid, revision));
        self.out.extend((!waits).then_some(order));
    }

    /// What changes no rule is not put in force anew: packets that wait for a next hop are counted once they leave or not, as if
    /// nobody had asked, and no flow is classified again.
    fn order_nothing(&mut self, seid: Seid, asked: &Asked, mut work: Work) {
        self.order_query(seid, &mut work);
        let deadline = self.now + self.config.apply_timeout;
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let revision = session.record.revision;
        if let Work::Modify(next, _) = &mut work {
            next.revision = revision;
        }
        session.pending = Some(Box::new(Pending { asked: *asked, revision, work, applied: Some(vec![]) }));
        self.deadlines.push_back((deadline, seid, revision));
        self.complete(seid);
    }

    fn applied(&mut self, seid: Seid, revision: u64, removed: &[UsageCounts]) {
        let now_ms = self.wall_ms();
        self.confirmed = Some(self.now);
        self.losses.held(seid);
        let Some(session) = self.sessions.get_mut(seid) else { return };
        session.is_missing = false;
        let is_it = |pending: &&mut Box<Pending>| {
            pending.revision == revision && !matches!(pending.work, Work::Delete | Work::Yield)
        };
        match session.pending.as_mut().filter(is_it) {
            Some(pending) => pending.applied = Some(removed.to_vec()),
            // A change that came too late and was taken back: what it removed counts anew from there, and nobody
            // else has these counts any more.
            None if !removed.is_empty() => {
                let SessionRecord { usage, rules, charging, .. } = &mut session.record;
                usage::hear_last(usage, rules, removed, now_ms);
                offline::hear_last(charging, removed, now_ms);
                session.save();
                return self.retire_gone(seid, removed);
            }
            None => return,
        }
        self.complete(seid);
    }

    /// Answers the request under way, once the data plane has said all that the answer needs.
    pub(crate) fn complete(&mut self, seid: Seid) {
        let session = self.sessions.get_mut(seid);
        let done = session.and_then(|session| session.pending.take_if(|pending| pending.is_done()));
        let Some(pending) = done else { return };
        self.commit(seid, *pending);
        self.go_on(seid);
        self.attend(seid);
    }

    fn commit(&mut self, seid: Seid, pending: Pending) {
        let Pending { asked, work, applied, .. } = pending;
        match work {
            Work::Establish(taken, replaced) => {
                replaced.into_iter().for_each(|old| self.drop_session(old));
                self.commit_establishment(seid, &asked, &taken);
            }
            Work::Modify(next, modifying) => {
                modifying.replaced.iter().for_each(|old| self.drop_session(*old));
                let counts = applied.as_deref().unwrap_or_default();
                self.commit_modification(*next, &modifying, (&asked, counts));
            }
            Work::Delete | Work::Yield => {}
        }
    }

    fn commit_establishment(&mut self, seid: Seid, asked: &Asked, taken: &Taken) {
        self.begin_charging(seid);
        let Some(session) = self.sessions.get_mut(seid) else { return };
        self.reports.reindex(seid, &Rules::default(), &session.record.rules);
        let cp_seid = session.record.cp_f_seid.seid;
        let response = self.established(seid, asked, taken);
        let bytes = answer_to(asked, Some(cp_seid), response);
        let answer = self.answer_record((asked, &bytes), AnswerKind::Established, (seid, cp_seid));
        if let Some(session) = self.sessions.get_mut(seid) {
            session.record.usage.answer = Some(answer);
            session.save();
        }
        self.counters.accepted += 1;
        self.answer_bytes(asked, bytes);
    }

    /// The usage is that of now, not of when the request came. What the answer tells of it is kept with the session,
    /// as is the answer: should it come to be asked again by a peer that missed it, it must not be worked out anew.
    fn commit_modification(
        &mut self,
        mut next: SessionRecord,
        modifying: &Modifying,
        (asked, counts): (&Asked, &[UsageCounts]),
    ) {
        let clock = self.clock();
        let now_ms = clock.now_ms;
        let Some(session) = self.sessions.get_mut(next.seid) else { return };
        usage::hear(&mut session.record.usage, &session.record.rules, counts, now_ms);
        offline::hear_last(&mut session.record.charging, counts, now_ms);
        let charged = self.before_change(next.seid, &next);
        let Some(session) = self.sessions.get_mut(next.seid) else { return };
        let f_teids: Vec<FTeid> = session.record.f_teids().collect();
        let addresses = [addresses_of(&session.record), &modifying.taken.addresses].concat();
        let before = Arc::clone(&session.record.rules);
        next.usage = std::mem::take(&mut session.record.usage);
        next.charging = session.record.charging.take();
        let mut usage_reports = tell(&mut next, &before, modifying, clock);
        let given = (&modifying.taken.given[..], modifying.silence);
        usage::apply(&mut next.usage, (&before, &next.rules), given, clock);
        session.paging.retain((&before, &next.rules));
        if modifying.drop_buffered {
            session.paging.begin_anew(0);
        }
        let closed = self.after_change(&mut next, charged);
        self.tunnels.release_unused(f_teids, &next);
        self.release_addresses(&addresses, &next);
        self.reports.reindex(next.seid, &before, &next.rules);
        self.counters.usage_reports += usage_reports.len() as u64;
        self.counters.accepted += 1;
        let pressure = self.pressure(asked.key.from.ip());
        let cp_seid = next.cp_f_seid.seid;
        let further = usage::split_answer(&mut usage_reports, true);
        let carried = usage::information(&further, 0);
        let requests = further.into_iter().map(|reports| Message::session(cp_seid, 0, of_usage(reports)));
        next.usage.further.extend(requests.map(|request| pfcp::encode(&request)));
        let accepted =
            SessionModificationResponse { carried, ..accepted(modifying, usage_reports, pressure) };
        let bytes = answer_to(asked, Some(cp_seid), accepted);
        next.usage.answer =
            Some(self.answer_record((asked, &bytes), AnswerKind::Modified, (next.seid, cp_seid)));
        let seid = next.seid;
        self.sessions.replace_record(next);
        self.sessions.get_mut(seid).into_iter().for_each(Session::save);
        closed.into_iter().for_each(|cdr| self.charge(cdr));
        self.answer_bytes(asked, bytes);
    }

    /// Of these a session keeps those it still has.
    fn release_addresses(&mut self, addresses: &[IpAddr], next: &SessionRecord) {
        let kept = addresses_of(next);
        let gone = addresses.iter().filter(|address| !kept.contains(address));
        gone.for_each(|address| self.pools.release(*address, next.seid));
    }

    /// The request under way fails, and the session is what it was before it: the data plane is told so anew, as it
    /// may have obeyed after all. A deletion does not fail: no control plane asks for it again, and the user's address would
    /// be taken for ever. What is known of its usage must do. `revision` tells which request is meant, if only one is.
    pub(crate) fn fail(&mut self, seid: Seid, revision: Option<u64>) {
        self.fail_by(seid, revision, Refusal::of(Cause::SystemFailure));
    }

    pub(crate) fn fail_by(&mut self, seid: Seid, revision: Option<u64>, refusal: Refusal) {
        // What gives way comes back with the failure of what it gives way to.
        let is_it = |pending: &mut Box<Pending>| {
            revision.is_none_or(|revision| pending.revision == revision)
                && !matches!(pending.work, Work::Yield)
        };
        let session = self.sessions.get_mut(seid);
        let Some(pending) = session.and_then(|session| session.pending.take_if(is_it)) else { return };
        if matches!(pending.work, Work::Delete) {
            return self.forget(seid, &pending);
        }
        let cp_seid = self.sessions.get(seid).map(|session| session.record.cp_f_seid.seid);
        match &pending.work {
            Work::Establish(_, replaced) => {
                self.undo_establishment(seid);
                replaced.iter().for_each(|old| self.come_back(*old));
            }
            Work::Modify(_, modifying) => {
                self.release_taken(seid, &pending);
                modifying.replaced.iter().for_each(|old| self.come_back(*old));
                self.put_again(seid);
            }
            Work::Delete | Work::Yield => {}
        }
        self.refuse(&pending.asked, cp_seid, refusal);
        self.go_on(seid);
        self.attend(seid);
    }

    fn undo_establishment(&mut self, seid: Seid) {
        let Some(session) = self.take_session(seid) else { return };
        self.unschedule(seid, &session);
        let Session { record, waiting, .. } = session;
        self.release_all(&record);
        self.out.push(Output::Delete(seid));
        self.refuse_waiting(waiting.into_asked(), record.cp_f_seid.seid);
    }

    /// Takes up what waited for the session, until something is under way again.
    pub(crate) fn go_on(&mut self, seid: Seid) {
        if self.sessions.get(seid).is_some_and(|session| session.put_again) {
            self.put_again(seid);
        }
        while let Some(session) = self.sessions.get_mut(seid).filter(|session| session.pending.is_none()) {
            let Some((asked, body)) = session.waiting.pop() else { return };
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
        if self.sessions.awaits(seid, revision) {
            // Else it is a report that nobody has answered.
            if !self.sessions.look(seid, Session::has_been_deleted) {
                self.note(Level::Warning, format!("the data plane is silent about session {seid}"));
            }
            self.fail_by(seid, Some(revision), Refusal::of(self.cause_of_lateness()));
        }
    }
}

impl Node {
    /// What a control plane is told of the data plane's reason (TS 29.244 8.2.1): of what another session has, the PDR that
    /// asks for it (7.5.3.1, Failed Rule ID).
    fn refused(&self, seid: Seid, cause: RefusalCause) -> Refusal {
        match cause {
            RefusalCause::Taken => self.taken_by_another(seid),
            RefusalCause::Full => Refusal::of(Cause::NoResourcesAvailable),
            RefusalCause::Unfit => Refusal::of(Cause::SystemFailure),
        }
    }

    fn taken_by_another(&self, seid: Seid) -> Refusal {
        let refusal = Refusal::of(Cause::RuleCreationModificationFailure);
        let Some(session) = self.sessions.get(seid) else { return refusal };
        let rules = match session.pending.as_deref() {
            Some(Pending { work: Work::Modify(next, _), .. }) => &next.rules,
            _ => &session.record.rules,
        };
        let is_taken = |place: &Place| self.sessions.at(*place).is_some_and(|other| other != seid);
        let asks = |pdr: &Pdr| Place::of_pdi(&pdr.pdi).find(is_taken).map(|place| (pdr.id, place.ie()));
        match rules.pdrs.iter().find_map(asks) {
            Some((PdrId(pdr), ie)) => {
                let failed_rule_id = Some(FailedRuleId::Pdr(pdr));
                Refusal { offending_ie: Some(ie), failed_rule_id, ..refusal }
            }
            None => refusal,
        }
    }
}

/// Users' addresses of our pools that a session has.
fn addresses_of(record: &SessionRecord) -> &[IpAddr] {
    record.extras.as_ref().map_or(&[], |extras| &extras.addresses)
}

/// Whether the data plane has all that a modification asks of it.
fn changes_nothing(
    session: &Session,
    (next, modifying): (&SessionRecord, &Modifying),
    config: &Config,
) -> bool {
    let Session { record, paging, .. } = session;
    let is_in_force = !session.is_missing && !session.put_again && modifying.replaced.is_empty();
    is_in_force && next.rules == record.rules && {
        let revision = record.revision;
        let then = Desired { revision, ..modified((next, paging), modifying, config) };
        then == desired((record, paging), config)
    }
}

/// What the data plane is told of a modification: the session as it will be, and what is done but once.
pub(crate) fn modified(next: (&SessionRecord, &Paging), modifying: &Modifying, config: &Config) -> Desired {
    let (end_markers, drop_buffered) = (modifying.taken.end_markers.clone(), modifying.drop_buffered);
    Desired { end_markers, drop_buffered, ..desired(next, config) }
}

fn accepted(
    modifying: &Modifying,
    usage_reports: Vec<UsageReport>,
    Pressure { load, overload }: Pressure,
) -> SessionModificationResponse {
    SessionModificationResponse {
        cause: Cause::RequestAccepted,
        offending_ie: None,
        created_pdrs: modifying.taken.created_pdrs.clone(),
        failed_rule_id: None,
        usage_reports,
        created_traffic_endpoints: modifying.taken.created_endpoints.clone(),
        load,
        overload,
        carried: vec![],
    }
}

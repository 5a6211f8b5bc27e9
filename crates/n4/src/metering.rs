//! Usage between the data plane, the session's record and the control plane. What decides is in `usage`.

use crate::asking::Telling;
use crate::exchange::{Purpose, Subject};
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::offline::{self, Looked};
use crate::sessions::{Session, Work, desired};
use crate::usage::{self, Circumstances, Step};
use dplink::{UsageCause, UsageCounts};
use machine::Time;
use pfcp::{
    Body, Cause, Message, ReportType, SessionReportRequest, UsageReport, UsageReportTrigger as Trigger,
};
use rules::{SeenMac, Seid, Triggers, UrrId};
use session::SessionRecord;
use std::net::SocketAddr;
use std::time::Duration;

/// A usage report nobody answers is sent again after an interval, then after two, four..., and then always after so many
/// doublings.
const MOST_DOUBLINGS: u8 = 5;

impl Node {
    /// When a session is attended to next.
    pub(crate) fn wake(&mut self, seid: Seid, at: Option<Time>) {
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let old = std::mem::replace(&mut session.timer, at);
        if let Some(old) = old {
            self.timers.remove(&(old, seid));
        }
        self.timers.extend(at.map(|at| (at, seid)));
    }

    pub(crate) fn unschedule(&mut self, seid: Seid, session: &Session) {
        if let Some(at) = session.timer {
            self.timers.remove(&(at, seid));
        }
        self.requests.forget(&session.record.owner, seid);
        // Its name may be another's next, for whom what comes again would be taken. What a deletion is answered with is told there.
        self.requests.finish_all(Subject::Session(seid));
    }

    pub(crate) fn attend_due(&mut self) {
        while let Some((_, seid)) = self.timers.first().copied().filter(|(at, _)| *at <= self.now) {
            self.wake(seid, None);
            self.attend(seid);
        }
    }

    /// Does what is due about a session, and sees to it that it is attended to again.
    pub(crate) fn attend(&mut self, seid: Seid) {
        let (began_ms, clock) = (self.since_1900_ms, self.clock());
        let now_ms = clock.now_ms;
        let over = self.end_buffering(seid, now_ms);
        let paging = self.page(seid, now_ms);
        // A report that is sent during a deletion would cross its answer, which tells it.
        if !self.sessions.get(seid).is_some_and(Session::is_being_deleted) {
            self.report_further(seid);
            self.report_again(seid, now_ms);
        }
        let interval_ms = self.config.report_interval.as_millis() as u64;
        let apart_ms = self.config.reports_apart.as_millis() as u64;
        let can_ask = self.epoch.is_some();
        let back_by_ms = self.lost_ms + self.config.apply_timeout.as_millis() as u64;
        let turn_ms = self.turn_ms(seid, now_ms);
        let Some(session) = self.sessions.get_mut(seid) else { return };
        if session.pending.as_ref().is_some_and(|pending| !matches!(pending.work, Work::Modify(..))) {
            return;
        }
        let can_look = can_ask || back_by_ms > now_ms;
        let refreshes = session.meter.refresh_ms.is_some_and(|refresh| refresh <= now_ms);
        let Looked { mut asks, next_ms: charging, closed, is_changed } =
            offline::look(&mut session.record, self.config.charging.as_ref(), (began_ms, clock), can_look);
        asks.extend(offline::own_meters(&session.record).filter(|_| refreshes));
        let SessionRecord { usage, rules, .. } = &mut session.record;
        let can_report = usage.unconfirmed.is_none();
        let when = Circumstances { clock, can_ask, back_by_ms, can_report, interval_ms, apart_ms, turn_ms };
        let plan = session.meter.plan(usage, (rules, &asks), when);
        if is_changed {
            session.save();
        }
        if plan.takes_turn {
            self.take_turn(seid, now_ms);
        }
        self.charge_partial(seid, closed);
        plan.steps.into_iter().for_each(|step| self.take(seid, step));
        if plan.rules_changed {
            self.put_again(seid);
        }
        let silence = self.report_silence_again(seid, now_ms);
        let confirming = self.reports_again_at(seid);
        // Never at once: what was found due now has been done.
        let next = [plan.next_ms, over, paging, confirming, charging, silence].into_iter().flatten().min();
        let soonest = self.now + Duration::from_millis(1);
        self.wake(seid, next.map(|next| self.time_of(next).max(soonest)));
        self.attend_answer(seid);
    }

    /// A question to the data plane has a last moment, too.
    fn attend_answer(&mut self, seid: Seid) {
        let Some(session) = self.sessions.get(seid) else { return };
        let Some(until) = session.meter.until_ms().map(|until| self.time_of(until)) else { return };
        let at = session.timer.map_or(until, |timer| timer.min(until));
        self.wake(seid, Some(at));
    }

    fn take(&mut self, seid: Seid, step: Step) {
        match step {
            Step::Ask { urrs, is_reported } => self.ask_for_usage(seid, urrs, (is_reported, is_reported)),
            Step::Begin { urrs } => self.ask_for_usage(seid, urrs, (false, true)),
            Step::Report(reports) => self.report_usage(seid, reports),
            Step::Silence => self.report_silence(seid, 1),
        }
    }

    /// To report what is answered or only to know; and whether thresholds begin anew.
    fn ask_for_usage(&mut self, session: Seid, urrs: Vec<UrrId>, (reports, is_reported): (bool, bool)) {
        self.token += 1;
        let (token, wait_ms) = (self.token, self.config.apply_timeout.as_millis() as u64);
        let until_ms = self.wall_ms() + wait_ms;
        if let Some(known) = self.sessions.get_mut(session) {
            known.meter.asks(token, until_ms, reports);
            self.out.push(Output::QueryUsage { session, urrs, token, is_reported });
        }
    }

    /// The record holds the report before it is sent, until it is confirmed.
    fn report_usage(&mut self, seid: Seid, usage_reports: Vec<UsageReport>) {
        self.counters.usage_reports += usage_reports.len() as u64;
        let request = of_usage(usage_reports);
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let message = Message::session(session.record.cp_f_seid.seid, 0, request.clone());
        session.record.usage.unconfirmed = Some(pfcp::encode(&message));
        session.save();
        self.send_usage(seid, request);
    }

    fn send_usage(&mut self, seid: Seid, request: SessionReportRequest) {
        let telling = self.tell_owner(seid, Purpose::Usage(seid), request);
        // Without room for it now, it is tried again soon; while its owner does not answer, not before it does.
        let soon_ms = self.wall_ms() + self.config.report_interval.as_millis() as u64;
        if let Some(session) = self.sessions.get_mut(seid) {
            session.reporting = session.reporting.filter(|_| telling == Telling::UnderWay);
            session.report_again_ms = if telling == Telling::Silent { 0 } else { soon_ms };
        }
    }

    /// What an answer had no room for is next, once nothing else is under way.
    fn report_further(&mut self, seid: Seid) {
        let waits = |session: &&mut Session| {
            session.record.usage.unconfirmed.is_none() && !session.record.usage.further.is_empty()
        };
        if let Some(session) = self.sessions.get_mut(seid).filter(waits) {
            session.record.usage.unconfirmed = Some(session.record.usage.further.remove(0));
            (session.reporting, session.report_again_ms) = (None, 0);
            session.save();
        }
    }

    /// Sends the unconfirmed report again if it is time.
    fn report_again(&mut self, seid: Seid, now_ms: u64) {
        let session = self.sessions.get(seid).filter(|session| session.reporting.is_none());
        let due = session.filter(|session| session.report_again_ms <= now_ms);
        let Some(unconfirmed) = due.and_then(|session| session.record.usage.unconfirmed.clone()) else {
            return;
        };
        match pfcp::decode(&unconfirmed).map(|message| message.body) {
            Ok(Body::SessionReportRequest(request)) => self.send_usage(seid, request),
            _ => self.confirm(seid),
        }
    }

    /// When the unconfirmed report is sent again.
    fn reports_again_at(&self, seid: Seid) -> Option<u64> {
        let session = self.sessions.get(seid).filter(|session| session.reporting.is_none())?;
        let waits = session.record.usage.unconfirmed.is_some() && session.report_again_ms > 0;
        waits.then_some(session.report_again_ms)
    }

    /// It was asked often enough for now; the report waits, the longer the more often nobody wanted it.
    pub(crate) fn usage_unconfirmed(&mut self, seid: Seid) {
        let (now_ms, interval_ms) = (self.wall_ms(), self.config.heartbeat_interval.as_millis() as u64);
        let Some(session) = self.sessions.get_mut(seid) else { return };
        session.report_again_ms = now_ms + (interval_ms << session.unheard);
        session.unheard = (session.unheard + 1).min(MOST_DOUBLINGS);
        session.reporting = None;
        self.forget_when_told(seid);
        self.attend(seid);
    }

    /// A control plane that cannot take it now hears it again; one that wants none of it does not.
    pub(crate) fn usage_answered(&mut self, seid: Seid, from: SocketAddr, cause: Cause) {
        // One that restarted and has not associated yet will say what becomes of the session.
        let cannot = [
            Cause::PfcpEntityInCongestion,
            Cause::NoResourcesAvailable,
            Cause::SystemFailure,
            Cause::NoEstablishedPfcpAssociation,
        ];
        if cannot.contains(&cause) {
            return self.usage_unconfirmed(seid);
        }
        if !cause.is_accepted() {
            let number = cause.number();
            self.note(
                Level::Warning,
                format!("{from} refuses a usage report of session {seid}: cause {number}"),
            );
        }
        self.confirm(seid);
        self.forget_when_told(seid);
        self.attend(seid);
    }

    fn confirm(&mut self, seid: Seid) {
        let Some(session) = self.sessions.get_mut(seid) else { return };
        (session.reporting, session.unheard) = (None, 0);
        session.record.usage.unconfirmed = None;
        if session.is_established() {
            session.save();
        }
    }

    /// The data plane tells what a session has used.
    pub(crate) fn usage_told(&mut self, seid: Seid, cause: UsageCause, counts: &[UsageCounts]) {
        let now_ms = self.wall_ms();
        let Some(session) = self.sessions.get_mut(seid) else { return };
        hear(session, counts, now_ms);
        let Session { record, meter, .. } = session;
        let mut saves = false;
        let (wanted, trigger) = match cause {
            UsageCause::Query(token) => return self.query_answered(seid, token),
            // Nobody will be able to ask for it.
            UsageCause::End => return session.save(),
            UsageCause::VolumeThreshold => (Triggers::VOLUME_THRESHOLD, Trigger::VOLTH),
            UsageCause::VolumeQuota => {
                usage::hear_spent(&mut record.usage, counts);
                (Triggers::VOLUME_QUOTA, Trigger::VOLQU)
            }
            UsageCause::DroppedDownlink => (Triggers::DROPPED_DOWNLINK, Trigger::DROTH),
            UsageCause::StartOfTraffic(start) => {
                saves = record.rules.urrs.iter().any(|urr| urr.methods.event || urr.methods.duration);
                let of_it = counts.iter().map(|counts| counts.urr);
                of_it.for_each(|urr| usage::hear_start(record, urr, start.as_ref(), &self.config));
                (Triggers::START_OF_TRAFFIC, Trigger::START)
            }
        };
        for counts in counts {
            meter.triggered(&mut record.usage, &record.rules, (counts.urr, wanted, trigger));
        }
        // An event has a time, which the data plane does not tell again to who comes in our place; and so has the first packet.
        if saves && session.is_established() {
            session.save();
        }
        self.attend(seid);
    }

    /// The data plane tells what sessions have used so far, which nobody has asked for: that is what is known of them should it die. It
    /// is kept in memory alone, as the data plane tells it again to who comes in our place.
    pub(crate) fn interim_told(&mut self, told: &[(Seid, UsageCounts)]) {
        let now_ms = self.wall_ms();
        for of_one in told.chunk_by(|(one, _), (next, _)| one == next) {
            let Some((seid, _)) = of_one.first() else { continue };
            let Some(session) = self.sessions.get_mut(*seid) else { continue };
            of_one.iter().for_each(|(_, counts)| hear(session, std::slice::from_ref(counts), now_ms));
            // What is waited for may be another moment now: traffic that had stopped goes on.
            self.attend(*seid);
            // One after the other: all of them awake would be many times as large.
            self.sessions.rest(now_ms);
        }
    }

    /// A data plane that was killed left behind what sessions had used then. Nobody tells it again once we have confirmed that: it is in
    /// the database as soon as the sessions rest. They are attended to when the next life of it greets. It is the life that we knew
    /// last, if we knew any: what one before that has counted was told before, or is too late.
    pub(crate) fn former_told(&mut self, epoch: u64, told: &[(Seid, UsageCounts)]) {
        if self.sessions.life().is_some_and(|known| known != epoch) {
            return;
        }
        let now_ms = self.wall_ms();
        for of_one in told.chunk_by(|(one, _), (next, _)| one == next) {
            let Some((seid, _)) = of_one.first() else { continue };
            let Some(session) = self.sessions.get_mut(*seid) else { continue };
            session.counted_by(epoch);
            let SessionRecord { usage, rules, charging, .. } = &mut session.record;
            for (_, counts) in of_one {
                usage::hear_former(usage, rules, counts, now_ms);
                offline::hear_former(charging, counts, now_ms);
            }
            session.is_to_be_kept = session.is_established();
            self.sessions.rest(now_ms);
        }
    }

    /// The data plane tells which MAC addresses a session's frames come from.
    pub(crate) fn macs_told(&mut self, seid: Seid, macs: &[SeenMac]) {
        if let Some(session) = self.sessions.get_mut(seid) {
            usage::hear_macs(&mut session.record.usage, macs);
            self.attend(seid);
        }
    }

    fn query_answered(&mut self, seid: Seid, token: u64) {
        let now_ms = self.wall_ms();
        if self.close_changed(seid, Some(token)) {
            return;
        }
        let Some(session) = self.sessions.get_mut(seid) else { return };
        if let Some(query) = session.pending.as_mut().and_then(|pending| pending.is_query(token)) {
            query.is_answered = true;
            self.order_asked(seid);
            return self.complete(seid);
        }
        if session.meter.answered(&session.record.usage, token, now_ms) {
            self.attend(seid);
        }
    }

    /// Tells the data plane anew what it should do for a session: at once, or when what is pending is over.
    pub(crate) fn put_again(&mut self, seid: Seid) {
        let Some(session) = self.sessions.get_mut(seid) else { return };
        session.put_again = session.pending.is_some();
        if !session.put_again {
            self.ask_before_put(seid);
            let Some(session) = self.sessions.get_mut(seid) else { return };
            session.record.revision = session.next_revision();
            let drop_buffered = std::mem::take(&mut session.paging.drop_buffered);
            let buffering_over = std::mem::take(&mut session.paging.over);
            let put = dplink::Desired {
                drop_buffered,
                buffering_over,
                ..desired((&session.record, &session.paging), &self.config)
            };
            session.save();
            self.out.push(Output::Put(put));
        }
    }
}

/// What was counted is known of a session from now on.
fn hear(session: &mut Session, counts: &[UsageCounts], now_ms: u64) {
    let SessionRecord { usage, rules, charging, .. } = &mut session.record;
    usage::hear(usage, rules, counts, now_ms);
    offline::hear(charging, counts, now_ms);
}

/// A request that tells what was used.
pub(crate) fn of_usage(usage_reports: Vec<UsageReport>) -> SessionReportRequest {
    let report_type = ReportType(ReportType::USAR);
    SessionReportRequest { report_type, usage_reports, ..SessionReportRequest::default() }
}

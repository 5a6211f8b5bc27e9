//! When records are closed: times, changes, ends.

use super::{Charging, meters, rule_change, subject};
use crate::config::Config;
use crate::interface::{Level, Output, saved};
use crate::node::Node;
use crate::predefined;
use crate::usage::wanted;
use charging::{Cause, Cdr, Conditions, Reading};
use machine::{Clock, Time};
use rules::{PdrId, Qer, QerId, Rules, Seid, UrrId};
use session::{SessionRecord, UsageRecord};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A record that is due waits so long for the data plane's counts; then what is known must do.
const PATIENCE_MS: u64 = 60_000;

/// What a look at a session's charging found.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Only the data plane knows: ask it about these.
    pub(crate) asks: Vec<UrrId>,
    /// When to look again.
    pub(crate) next_ms: Option<u64>,
    /// Records that were closed.
    pub(crate) closed: Vec<Cdr>,
    /// The account is another one without that.
    pub(crate) is_changed: bool,
}

/// What charging knows of a session before it changes.
#[derive(Debug, Default)]
pub(crate) struct Before {
    readings: Vec<Reading>,
    closed: Vec<Cdr>,
    rules: Arc<Rules>,
}

/// Our own meters: after the data plane has come back, they are asked about, too.
pub(crate) fn own_meters(record: &SessionRecord) -> impl Iterator<Item = UrrId> {
    record.charging.iter().flat_map(|charged| &charged.own).map(|meter| meter.urr)
}

/// Looks whether something is due. Beside what is due at a moment, a record may have become full: then others have counted, too, and what
/// they have is of this record. `began_ms`: when this process did.
pub(crate) fn look(
    record: &mut SessionRecord,
    charging: Option<&Charging>,
    (began_ms, clock): (u64, Clock),
    can_ask: bool,
) -> Looked {
    let Some(charging) = charging else { return look_at_former(record, (began_ms, clock.now_ms), can_ask) };
    let Some(due_ms) = record.charging.as_ref().map(|it| it.account.next_due_ms(&charging.policy, clock))
    else {
        return Looked::default();
    };
    let readings = meters::readings(record, Some(charging));
    let account = record.charging.as_ref().map(|it| &it.account);
    let is_full = account.is_some_and(|account| account.is_full(&readings, &charging.policy));
    let due_ms = if is_full { meters::last_heard_ms(record) } else { due_ms };
    if due_ms <= clock.now_ms && can_ask && clock.now_ms < due_ms + PATIENCE_MS {
        let late = meters::unheard(record, Some(charging), due_ms);
        if !late.is_empty() {
            // All of them at one moment: what was heard of some since would make the others late again.
            let asks = if is_full { meters::unheard(record, Some(charging), u64::MAX) } else { late };
            return Looked { asks, next_ms: Some(due_ms + PATIENCE_MS), ..Looked::default() };
        }
    }
    let Some(charged) = &mut record.charging else { return Looked::default() };
    let before = charged.account.course();
    let closed = charged.account.attend(&readings, &charging.policy, clock);
    let is_changed = charged.account.course() != before;
    let next_ms = Some(charged.account.next_due_ms(&charging.policy, clock));
    Looked { asks: vec![], next_ms, closed, is_changed }
}

/// A session that was charged when the operator wanted that: its last record is of all that was used until this process began, which the
/// data plane is asked about once it is there, and has told of our own meters when it took them away.
fn look_at_former(record: &mut SessionRecord, (began_ms, now_ms): (u64, u64), can_ask: bool) -> Looked {
    let until_ms = began_ms + PATIENCE_MS;
    let unheard = meters::unheard(record, None, began_ms);
    if now_ms < until_ms && !unheard.is_empty() {
        let asks = if can_ask { unheard } else { vec![] };
        return Looked { asks, next_ms: Some(until_ms), ..Looked::default() };
    }
    let readings = meters::readings(record, None);
    let last = record.charging.take();
    let closed = last.map(|mut it| it.account.end(&readings, Cause::ManagementIntervention, now_ms));
    Looked { closed: closed.unwrap_or_default(), ..Looked::default() }
}

/// What a modification changes of the conditions a session is charged under.
fn conditions(before: &SessionRecord, after: &SessionRecord, config: &Config) -> Conditions {
    let mut conditions = Conditions::default();
    let rated = |record: &SessionRecord| predefined::with_qer(record.extras.as_deref(), &config.predefined);
    let changes_qos = changes_qers(&before.rules, &after.rules)
        || moves_to_other_qers(&before.rules, &after.rules)
        || rated(before) != rated(after);
    if changes_qos {
        conditions = conditions.and(Conditions::QOS_CHANGE);
    }
    if rule_change::is_one(before, after, config) {
        conditions = conditions.and(Conditions::RULE_CHANGE);
    }
    let charged = before.charging.as_ref();
    let old = charged.map(|it| &it.account.session().serving_nodes[..]).unwrap_or_default();
    let new = subject::serving_nodes(&after.rules);
    // A user who falls asleep has not moved; one who wakes up has, if that is elsewhere.
    if old != new && !old.is_empty() && !new.is_empty() {
        conditions = conditions.and(Conditions::SERVING_NODE_CHANGE);
    }
    conditions
}

/// Whether a QER that stays is another than it was, wherever it stands: control planes create again what is there. One that comes
/// or goes is a change to the PDRs that name it.
fn changes_qers(before: &Rules, after: &Rules) -> bool {
    if before.qers == after.qers {
        return false;
    }
    let qers: BTreeMap<QerId, &Qer> = before.qers.iter().map(|qer| (qer.id, qer)).collect();
    after.qers.iter().any(|qer| qers.get(&qer.id).is_some_and(|old| *old != qer))
}

/// Whether a PDR that stays goes by other QERs.
fn moves_to_other_qers(before: &Rules, after: &Rules) -> bool {
    let qers: BTreeMap<PdrId, &[QerId]> = before.pdrs.iter().map(|pdr| (pdr.id, &*pdr.qers)).collect();
    after.pdrs.iter().any(|pdr| qers.get(&pdr.id).is_some_and(|qers| **qers != *pdr.qers))
}

impl Node {
    /// Closes a record: it gets its number, and is saved with the session's account.
    pub(crate) fn charge(&mut self, cdr: Cdr) {
        let clock = self.clock();
        self.last_cdr += 1;
        self.counters.cdrs += 1;
        self.out.push(Output::SaveCdr(Box::new(Cdr { serial: self.last_cdr, ..cdr.told_by(clock) })));
    }

    /// Records of a session that goes on.
    pub(crate) fn charge_partial(&mut self, seid: Seid, cdrs: Vec<Cdr>) {
        if cdrs.is_empty() {
            return;
        }
        if let Some(session) = self.sessions.get_mut(seid) {
            session.save();
        }
        cdrs.into_iter().for_each(|cdr| self.charge(cdr));
    }

    /// A session that its owner is told of.
    pub(crate) fn begin_charging(&mut self, seid: Seid) {
        let now_ms = self.wall_ms();
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let needed = meters::needed(&session.record, &self.config);
        meters::add_own(&mut session.record, &needed, now_ms);
        let readings = meters::readings(&session.record, self.config.charging.as_ref());
        let charged = session.record.charging.iter_mut();
        charged.for_each(|it| it.account.set_meters(&readings, now_ms));
    }

    /// Counts as of just before the change are asked for where it changes charging conditions: the data plane does one
    /// after the other.
    pub(crate) fn ask_before_change(&mut self, seid: Seid, after: &SessionRecord) {
        let Some(charging) = &self.config.charging else { return };
        let Some(session) = self.sessions.get(seid).filter(|it| it.record.charging.is_some()) else { return };
        if conditions(&session.record, after, &self.config).is_empty() {
            return;
        }
        let urrs = meters::unheard(&session.record, Some(charging), u64::MAX);
        if !urrs.is_empty() {
            self.token += 1;
            let token = self.token;
            self.out.push(Output::QueryUsage { session: seid, urrs, token, is_reported: false });
        }
    }

    /// The session as it was, for the last time: what changes charging conditions closes containers.
    pub(crate) fn before_change(&mut self, seid: Seid, after: &SessionRecord) -> Before {
        let now_ms = self.wall_ms();
        let session = self.sessions.get_mut(seid).filter(|session| session.record.charging.is_some());
        let (Some(charging), Some(session)) = (&self.config.charging, session) else {
            return Before::default();
        };
        let record = &mut session.record;
        let readings = meters::readings(record, Some(charging));
        let conditions = conditions(record, after, &self.config);
        let charged = record.charging.as_mut().filter(|_| !conditions.is_empty());
        let closed = charged.map(|it| it.account.change(&readings, conditions, (&charging.policy, now_ms)));
        let rules = Arc::clone(&record.rules);
        Before { readings, closed: closed.unwrap_or_default(), rules }
    }

    /// The session as it is now: meters that are no more are charged, new ones begin.
    pub(crate) fn after_change(&self, record: &mut SessionRecord, before: Before) -> Vec<Cdr> {
        meters::meet(record, &self.config, (&before.rules, self.wall_ms()));
        let _ = self.go_on_charging(record, &before.readings);
        before.closed
    }

    /// Nothing, where nothing is charged. `last` is what meters said before.
    fn go_on_charging(&self, record: &mut SessionRecord, last: &[Reading]) -> Option<()> {
        let charging = self.config.charging.as_ref()?;
        record.charging.as_ref()?;
        let now_ms = self.wall_ms();
        // Of meters that go with a table of predefined rules that the data plane may not have been told of, it has not told the last.
        let is_told_anew = self.is_to_be_renewed(record.seid)
            || self.sessions.get(record.seid).is_some_and(|session| session.put_again);
        let stays = |urr: UrrId| is_told_anew && meters::is_own(urr);
        let in_force: Vec<u32> = wanted(record, &self.config).urrs.iter().map(|urr| urr.id.0).collect();
        let is_gone = |reading: &&Reading| !in_force.contains(&reading.meter) && !stays(UrrId(reading.meter));
        let gone: Vec<Reading> = last.iter().filter(is_gone).copied().collect();
        record.charging.as_mut()?.account.retire(&gone, now_ms);
        let needed = meters::needed(record, &self.config);
        meters::add_own(record, &needed, now_ms);
        record.charging.as_mut()?.own.retain(|meter| needed.contains(&meter.urr) || stays(meter.urr));
        let readings = meters::readings(record, Some(charging));
        let mut session = record.charging.as_ref()?.account.session().clone();
        subject::describe(&mut session, record);
        let account = &mut record.charging.as_mut()?.account;
        account.set_meters(&readings, now_ms);
        account.tell(session);
        Some(())
    }

    /// The last record of a session whose last counts were told, or will never be.
    pub(crate) fn charge_last(&mut self, record: &mut SessionRecord, cause: Cause) {
        let readings = meters::readings(record, self.config.charging.as_ref());
        if let Some(mut charged) = record.charging.take() {
            let cdrs = charged.account.end(&readings, cause, self.wall_ms());
            cdrs.into_iter().for_each(|cdr| self.charge(cdr));
        }
    }

    /// A session that goes without being asked about is charged when the data plane has told its last counts, or when it
    /// does not. Until then the database keeps what is charged; who asks for the session does not find it.
    pub(crate) fn charge_when_removed(&mut self, record: SessionRecord) -> bool {
        if record.charging.is_none() {
            return false;
        }
        let seid = record.seid;
        let until = self.now + self.config.apply_timeout;
        let usage = UsageRecord { is_over: true, answer: None, ..record.usage };
        let record = SessionRecord { usage, ..record };
        self.out.push(saved(&record));
        self.leaving.insert(seid, Box::new(record));
        self.leaving_until.push_back((until, seid));
        true
    }

    /// The last counts of a session that is gone. Whether it was one.
    pub(crate) fn left(&mut self, seid: Seid, counts: &[dplink::UsageCounts]) -> bool {
        let Some(mut record) = self.leaving.remove(&seid) else { return false };
        let now_ms = self.wall_ms();
        let SessionRecord { usage, rules, charging, .. } = &mut *record;
        crate::usage::hear(usage, rules, counts, now_ms);
        meters::hear(charging, counts, now_ms);
        self.charge_last(&mut record, Cause::AbnormalRelease);
        self.out.push(Output::EraseSession(seid));
        true
    }

    /// Sessions that are gone and whose last counts did not come: what is known must do.
    pub(crate) fn charge_late(&mut self) {
        while let Some((_, seid)) = self.leaving_until.pop_front_if(|(until, _)| *until <= self.now) {
            if self.left(seid, &[]) {
                let text = format!("the data plane has not told the last counts of session {seid}");
                self.note(Level::Warning, text);
            }
        }
    }

    /// When that is looked at next.
    pub(crate) fn leaving_due(&self) -> Option<Time> {
        self.leaving_until.front().map(|(until, _)| *until)
    }

    /// The operator may have changed what is charged under which key: the data plane then needs other meters, and is told, unless it
    /// will be anyway.
    pub(crate) fn restore_meters(&mut self, seid: Seid) {
        if self.add_meters(seid) && !self.is_to_be_renewed(seid) {
            self.put_again(seid);
        }
    }

    /// Adds the meters that a session needs now. Those it has are charged as before, until their last counts have come. Whether
    /// the data plane needs to be told.
    pub(crate) fn add_meters(&mut self, seid: Seid) -> bool {
        let now_ms = self.wall_ms();
        let Some(session) = self.sessions.get_mut(seid) else { return false };
        let needed = meters::needed(&session.record, &self.config);
        let own: Vec<UrrId> = own_meters(&session.record).collect();
        meters::add_own(&mut session.record, &needed, now_ms);
        let is_as_before = own.iter().all(|urr| needed.contains(urr)) && own.len() == needed.len();
        session.record.charging.is_some() && !is_as_before
    }

    /// A session of the database that was leaving has left. One that was there before the operator wanted sessions charged is not charged.
    pub(crate) fn restore_charging(&mut self, record: &mut SessionRecord) {
        if record.usage.is_over && record.charging.is_some() {
            self.charge_last(record, Cause::AbnormalRelease);
            self.out.push(match record.usage.answer {
                None => Output::EraseSession(record.seid),
                Some(_) => saved(record),
            });
        }
    }
}

//! A session's next step: look, ask, report, wait.

use super::due::{Found, Look, missed};
use super::tell::tell;
use super::wanted::grant;
use super::{SILENCE, events, macs, ms};
use crate::silence::Again;
use machine::Clock;
use pfcp::{Message, SessionReportRequest, UsageReport, UsageReportTrigger as Trigger};
use rules::{Rules, Triggers, Urr, UrrId, limits};
use session::{UrrUsage, UsageRecord};
use std::collections::BTreeSet;

/// Triggers that let a user wait, or that come once: reported at once.
const URGENT: u32 = Trigger::VOLQU | Trigger::TIMQU | Trigger::EVEQU | Trigger::START;

/// Triggers that may wait for the control plane's turn.
const PATIENT: u32 = Trigger::PERIO | Trigger::VOLTH | Trigger::TIMTH | Trigger::EVETH | Trigger::LIUSA;

/// A turn that was not taken for so long, as nothing could be told then, has passed.
const TURN_MS: u64 = 1_000;

/// Octets of reports from which on the rest waits for the next request: with one more report of usual length, that is no more
/// than a packet carries. One request could not carry all that a session may have to tell (TS 29.244 7.2.2.1).
const ROOM: usize = 1_100;

/// The data plane may have nothing to tell: it is not asked again at once.
const BETWEEN_LOOKS_MS: u64 = 100;

/// What is under way about a session's usage. It need not outlive the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meter {
    /// Due URRs whose counts are as of their trigger: they need not be asked for.
    told: BTreeSet<UrrId>,
    asked: Option<Asked>,
    /// No report before.
    report_from_ms: u64,
    /// The turn that was taken, until its report is sent; 0 for none.
    turn_ms: u64,
    /// The data plane left a question unanswered: none before.
    ask_from_ms: u64,
    /// It was looked lately: not again before.
    look_from_ms: u64,
    /// When to ask about everything: notices may have been lost.
    pub(crate) refresh_ms: Option<u64>,
    /// The control plane has not heard that the user is silent.
    pub(crate) silence_again: Option<Again>,
}

/// A question to the data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    token: u64,
    until_ms: u64,
    /// To report what it answers; else only to know.
    is_reported: bool,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask the data plane about these, then say so by [`Meter::asks`].
    Ask { urrs: Vec<UrrId>, is_reported: bool },
    /// The same, to know and not to report; their thresholds begin anew.
    Begin { urrs: Vec<UrrId> },
    /// Send these.
    Report(Vec<UsageReport>),
    /// Tell that the user is silent.
    Silence,
}

/// What is to be done now, and when to come again.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    when: Circumstances,
    /// Only the data plane knows about these.
    unknown: Vec<UrrId>,
    /// And of these, the thresholds begin anew.
    anew: Vec<UrrId>,
    pub(crate) steps: Vec<Step>,
    pub(crate) next_ms: Option<u64>,
    /// The data plane needs other rules.
    pub(crate) rules_changed: bool,
    /// The control plane's next turn is taken.
    pub(crate) takes_turn: bool,
}

impl Plan {
    const fn new(when: Circumstances) -> Self {
        Self {
            when,
            unknown: vec![],
            anew: vec![],
            steps: vec![],
            next_ms: None,
            rules_changed: false,
            takes_turn: false,
        }
    }

    fn come_again(&mut self, at_ms: u64) {
        self.next_ms = Some(self.next_ms.map_or(at_ms, |next| next.min(at_ms)));
    }

    fn add(&mut self, urr: UrrId, found: Found) {
        self.unknown.extend(found.asks.then_some(urr));
        self.anew.extend(found.begins_anew.then_some(urr));
        found.next_ms.into_iter().for_each(|next| self.come_again(next));
        self.rules_changed |= found.rules_changed;
    }
}

/// What a plan depends on beside the session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    pub(crate) clock: Clock,
    /// The data plane is there.
    pub(crate) can_ask: bool,
    /// If it is not, it may be by then.
    pub(crate) back_by_ms: u64,
    /// A report may be sent: none is on its way.
    pub(crate) can_report: bool,
    /// Before who has not answered is asked again.
    pub(crate) interval_ms: u64,
    /// Between two reports of a session.
    pub(crate) apart_ms: u64,
    /// The control plane's next turn; `None`: whenever.
    pub(crate) turn_ms: Option<u64>,
}

/// What a trigger of the data plane means to who asked for such. Of a URR that no packets pass for, it tells of those that come.
fn meant(usage: &UrrUsage, rule: &Urr, (wanted, trigger): (Triggers, u32)) -> u32 {
    match (trigger, usage.is_blocked) {
        (Trigger::VOLQU, _) if usage.spent_grant != Some(grant(usage, rule)) => 0,
        // All that has crossed it was told when something else was.
        (Trigger::VOLTH, _) if usage.known.counts == usage.reported.counts => 0,
        (Trigger::START, _) | (_, false) => trigger * u32::from(rule.triggers.contains(wanted)),
        (Trigger::VOLQU, true) => missed(usage, rule),
        (_, true) => 0,
    }
}

impl Meter {
    /// The data plane tells of a trigger itself, with the counts of that moment. A trigger nobody asked for is
    /// nothing.
    pub(crate) fn triggered(
        &mut self,
        record: &mut UsageRecord,
        rules: &Rules,
        (urr, wanted, trigger): (UrrId, Triggers, u32),
    ) {
        let mut pairs = record.urrs.iter_mut().zip(&rules.urrs);
        let Some((usage, rule)) = pairs.find(|(usage, _)| usage.urr == urr) else { return };
        let once = Trigger::VOLQU | Trigger::TIMQU | Trigger::EVEQU | Trigger::START;
        let triggers = meant(usage, rule, (wanted, trigger)) & !(usage.fired & once);
        if triggers != 0 {
            usage.fired |= triggers & once;
            usage.due |= triggers;
            self.told.insert(urr);
        }
    }

    /// A question was asked.
    pub(crate) fn asks(&mut self, token: u64, until_ms: u64, is_reported: bool) {
        self.asked = Some(Asked { token, until_ms, is_reported });
    }

    /// Whether this answers the question; what was asked to be reported can be, now.
    pub(crate) fn answered(&mut self, record: &UsageRecord, token: u64, now_ms: u64) -> bool {
        let Some(asked) = self.asked.take_if(|asked| asked.token == token) else { return false };
        self.look_from_ms = now_ms + BETWEEN_LOOKS_MS;
        if asked.is_reported {
            self.told.extend(due(record));
        }
        true
    }

    /// Until when an answer is waited for.
    pub(crate) fn until_ms(&self) -> Option<u64> {
        self.asked.as_ref().map(|asked| asked.until_ms)
    }

    /// Moments that have passed mean nothing any more.
    pub(crate) fn pass(&mut self, now_ms: u64) {
        for from_ms in [&mut self.report_from_ms, &mut self.ask_from_ms, &mut self.look_from_ms] {
            *from_ms = if *from_ms > now_ms { *from_ms } else { 0 };
        }
    }

    /// The data plane is gone, and its answers with it.
    pub(crate) fn lost(&mut self) {
        self.asked = None;
    }

    /// A question nobody answered: what is known must do.
    fn give_up_asking(&mut self, record: &UsageRecord, now_ms: u64, wait_ms: u64) {
        if let Some(asked) = self.asked.take_if(|asked| asked.until_ms <= now_ms) {
            self.ask_from_ms = now_ms + wait_ms.max(1_000);
            if asked.is_reported {
                self.told.extend(due(record));
            }
        }
    }

    /// What to do about a session now.
    /// `asks` is what charging wants to know.
    pub(crate) fn plan(
        &mut self,
        record: &mut UsageRecord,
        (rules, asks): (&Rules, &[UrrId]),
        when: Circumstances,
    ) -> Plan {
        let now = when.clock.now_ms;
        let mut plan = Plan::new(when);
        self.give_up_asking(record, now, when.interval_ms);
        for (usage, urr) in record.urrs.iter_mut().zip(&rules.urrs) {
            plan.add(urr.id, Look::at(usage, urr, when.clock, when.can_ask));
        }
        macs::look(record, rules);
        silence(record, rules, &mut plan);
        if self.refresh_ms.is_some_and(|refresh| refresh <= now) && when.can_ask {
            self.refresh_ms = None;
            plan.unknown = record.urrs.iter().map(|usage| usage.urr).collect();
        }
        plan.unknown.extend(asks.iter().filter(|_| when.can_ask));
        self.refresh_ms.into_iter().for_each(|refresh| plan.come_again(refresh));
        self.report(record, rules, &mut plan);
        self.look(&mut plan);
        plan
    }

    /// One report at a time, and not too often: what comes meanwhile goes into the next.
    fn report(&mut self, record: &mut UsageRecord, rules: &Rules, plan: &mut Plan) {
        let when = plan.when;
        let urgent = record.urrs.iter().any(|usage| usage.due & URGENT != 0);
        if due(record).next().is_none() || !when.can_report {
            return;
        }
        if self.report_from_ms > when.clock.now_ms && !urgent {
            return plan.come_again(self.report_from_ms);
        }
        if !when.can_ask && when.back_by_ms > when.clock.now_ms {
            return plan.come_again(when.back_by_ms);
        }
        let is_patient = record.urrs.iter().all(|usage| usage.due & !PATIENT == 0);
        if is_patient && self.waits_for_turn(plan) {
            return;
        }
        link(record, rules);
        let unasked: Vec<UrrId> = due(record).filter(|urr| !self.told.contains(urr)).collect();
        if when.can_ask && !unasked.is_empty() && self.ask_from_ms <= when.clock.now_ms {
            match &self.asked {
                Some(asked) => plan.come_again(asked.until_ms),
                None => plan.steps.push(Step::Ask { urrs: unasked, is_reported: true }),
            }
            return;
        }
        self.turn_ms = 0;
        let reports = tell_due(record, rules, when.clock);
        let left: BTreeSet<UrrId> = due(record).collect();
        self.told.retain(|urr| left.contains(urr));
        // What found no room goes as soon as this has been taken.
        self.report_from_ms = when.clock.now_ms + if left.is_empty() { when.apart_ms } else { 0 };
        plan.steps.push(Step::Report(reports));
    }

    /// Many sessions may have something to tell at once: each waits for a turn of its own, and tells all there is then.
    fn waits_for_turn(&mut self, plan: &mut Plan) -> bool {
        let Some(next_ms) = plan.when.turn_ms else { return false };
        let now_ms = plan.when.clock.now_ms;
        if self.turn_ms + TURN_MS < now_ms {
            self.turn_ms = next_ms;
            plan.takes_turn = true;
        }
        let waits = self.turn_ms > now_ms;
        if waits {
            plan.come_again(self.turn_ms);
        }
        waits
    }

    /// Asks about what is not known, unless something is asked already.
    fn look(&self, plan: &mut Plan) {
        let (urrs, now_ms) = (std::mem::take(&mut plan.unknown), plan.when.clock.now_ms);
        let from_ms = self.ask_from_ms.max(self.look_from_ms);
        let is_asking = plan.steps.iter().any(|step| matches!(step, Step::Ask { .. }));
        match &self.asked {
            Some(asked) => plan.come_again(asked.until_ms),
            None if urrs.is_empty() || is_asking => {}
            None if from_ms > now_ms => plan.come_again(from_ms),
            None if !plan.anew.is_empty() => {
                plan.steps.push(Step::Begin { urrs: std::mem::take(&mut plan.anew) });
            }
            None => plan.steps.push(Step::Ask { urrs, is_reported: false }),
        }
    }
}

/// The user may be silent for as long as the control plane wants to know.
fn silence(record: &mut UsageRecord, rules: &Rules, plan: &mut Plan) {
    let (now_ms, can_ask) = (plan.when.clock.now_ms, plan.when.can_ask);
    let Some(inactivity) = &mut record.inactivity else { return };
    let from = if inactivity.is_reported { inactivity.heard_ms } else { inactivity.active_ms };
    let silent_at = from + ms(inactivity.timer_s);
    if silent_at > now_ms {
        plan.come_again(silent_at);
    } else if inactivity.heard_ms < silent_at {
        if can_ask {
            let mut others = instead_of_ours(rules);
            others.retain(|urr| !plan.unknown.contains(urr));
            plan.unknown.push(SILENCE);
            plan.unknown.extend(others);
        }
    } else if !inactivity.is_reported {
        inactivity.is_reported = true;
        plan.steps.push(Step::Silence);
        plan.come_again(now_ms + ms(inactivity.timer_s));
    }
}

/// URRs of PDRs that may have no room for ours, of which a meter for charging may have taken the last.
fn instead_of_ours(rules: &Rules) -> BTreeSet<UrrId> {
    let full = rules.pdrs.iter().filter(|pdr| pdr.urrs.len() + 1 >= limits::URRS_PER_PDR);
    full.flat_map(|pdr| pdr.urrs.iter().copied()).collect()
}

fn due(record: &UsageRecord) -> impl Iterator<Item = UrrId> {
    record.urrs.iter().filter(|usage| usage.due != 0).map(|usage| usage.urr)
}

/// URRs that are to report when one of these does (TS 29.244 5.2.2.4), and those that are to when they do.
pub(crate) fn linked(rules: &Rules, reporting: &BTreeSet<UrrId>) -> Vec<UrrId> {
    let mut all = reporting.clone();
    loop {
        let is_linked = |urr: &&Urr| {
            urr.triggers.contains(Triggers::LINKED_USAGE)
                && urr.linked.iter().any(|other| all.contains(other))
        };
        let found: Vec<UrrId> = rules.urrs.iter().filter(is_linked).map(|urr| urr.id).collect();
        let known = all.len();
        all.extend(&found);
        if all.len() == known {
            return found;
        }
    }
}

fn link(record: &mut UsageRecord, rules: &Rules) {
    let linked = linked(rules, &due(record).collect());
    for usage in record.urrs.iter_mut().filter(|usage| linked.contains(&usage.urr)) {
        usage.due |= Trigger::LIUSA;
    }
}

/// As many as one request has room for, those first that a user waits for; the others stay due.
fn tell_due(record: &mut UsageRecord, rules: &Rules, clock: Clock) -> Vec<UsageReport> {
    let UsageRecord { urrs, macs, starts, .. } = record;
    let mut reports = vec![];
    let mut octets = 0;
    for is_urgent in [true, false] {
        let meant = |usage: &UrrUsage| usage.due != 0 && (usage.due & URGENT != 0) == is_urgent;
        for (usage, urr) in urrs.iter_mut().zip(&rules.urrs).filter(|(usage, _)| meant(usage)) {
            if octets + events::octets(usage) >= ROOM {
                return reports;
            }
            let triggers = usage.due;
            let next = tell((usage, macs, starts), urr, (triggers, None), clock);
            octets += octets_of(&next);
            reports.extend(next);
        }
    }
    reports
}

/// In a request. It is encoded for this alone; most sessions have few URRs.
pub(super) fn octets_of(reports: &[UsageReport]) -> usize {
    let usage_reports = reports.to_vec();
    let request = SessionReportRequest { usage_reports, ..SessionReportRequest::default() };
    pfcp::encode(&Message::session(0, 0, request)).len()
}

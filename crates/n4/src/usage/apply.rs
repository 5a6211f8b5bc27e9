//! What a modification gives and takes.

use super::account::elapse;
use super::due::{has_quota, is_held, is_time_spent};
use super::{events, macs, monitoring};
use machine::Clock;
use pfcp::UsageReportTrigger as Trigger;
use rules::{Methods, Rules, Triggers, Urr, UrrId};
use session::{Counts, Inactivity, UrrUsage, UsageRecord, Used};
use std::collections::BTreeSet;

/// What a request gives a URR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) urr: UrrId,
    /// The URR itself.
    pub(crate) is_new: bool,
    /// MNOP, where told.
    pub(crate) tells_packets: Option<bool>,
    /// RADI, where told.
    pub(crate) names_only: Option<bool>,
    /// A volume quota.
    pub(crate) volume_quota: bool,
    /// A time quota.
    pub(crate) time_quota: bool,
    /// An event quota.
    pub(crate) event_quota: bool,
    /// Times for its quota.
    pub(crate) validity: bool,
    /// Thresholds, which hold at once.
    pub(crate) threshold: bool,
    /// A monitoring time.
    pub(crate) monitoring_time: bool,
    /// More of them.
    pub(crate) additional_monitoring: bool,
    /// A measurement period, which begins.
    pub(crate) period: bool,
}

impl Given {
    /// Of any kind.
    const fn gives_quota(&self) -> bool {
        self.volume_quota || self.time_quota || self.event_quota
    }

    /// Limits of volume, which count from the last report.
    pub(crate) const fn begins_volumes(&self) -> bool {
        self.volume_quota || self.threshold || self.monitoring_time
    }
}

/// The URRs that go with a change; one may come again at once.
pub(crate) fn removed<'a>(
    before: &'a Rules,
    after: &'a Rules,
    given: &'a [Given],
) -> impl Iterator<Item = UrrId> + 'a {
    let is_new = |id: UrrId| given.iter().any(|given| given.is_new && given.urr == id);
    let stays = move |id: UrrId| after.urrs.iter().any(|urr| urr.id == id) && !is_new(id);
    before.urrs.iter().map(|urr| urr.id).filter(move |id| !stays(*id))
}

/// The URRs that stay, of which a PDR made use before a change and none does after it (TS 29.244 8.2.41, TERMR).
pub(crate) fn parted(before: &Rules, after: &Rules, given: &[Given]) -> Vec<UrrId> {
    let named = |rules: &Rules| rules.pdrs.iter().flat_map(|pdr| pdr.urrs.iter().copied()).collect();
    let are_same = before.pdrs.len() == after.pdrs.len()
        && before.pdrs.iter().zip(&after.pdrs).all(|(before, after)| before.urrs == after.urrs);
    if are_same {
        return vec![];
    }
    let (before_it, after_it): (BTreeSet<UrrId>, BTreeSet<UrrId>) = (named(before), named(after));
    let gone: BTreeSet<UrrId> = removed(before, after, given).collect();
    before_it.difference(&after_it).filter(|id| !gone.contains(id)).copied().collect()
}

/// The URRs that stay, of which volume is measured from a change on, and those of which time is that only the data plane knows of: they
/// count from what it has counted then.
pub(crate) fn beginning(
    (before, after): (&Rules, &Rules),
    (given, record): (&[Given], &UsageRecord),
) -> (Vec<UrrId>, Vec<UrrId>) {
    let (mut volume, mut time) = (vec![], vec![]);
    for (usage, urr) in record.urrs.iter().zip(&before.urrs) {
        let is_new = given.iter().any(|given| given.is_new && given.urr == urr.id);
        let then = after.urrs.iter().find(|then| then.id == urr.id && !is_new);
        let begun = then.map(|then| begun(urr.methods, then.methods, usage.formerly)).unwrap_or_default();
        if begun.volume {
            volume.push(urr.id);
        } else if begun.duration && urr.inactivity_detection_time_s.is_some() {
            time.push(urr.id);
        }
    }
    (volume, time)
}

/// Usage as it is after a change that is made now: in the order of the rules after it. `silence` is a new inactivity timer,
/// 0 for none.
pub(crate) fn apply(
    record: &mut UsageRecord,
    (before, after): (&Rules, &Rules),
    (given, silence): (&[Given], Option<u32>),
    clock: Clock,
) {
    let now = clock.now_ms;
    record.urrs.iter_mut().zip(&before.urrs).for_each(|(usage, urr)| pass(usage, (urr, after), now));
    for (usage, urr) in record.urrs.iter_mut().zip(&before.urrs) {
        let then = after.urrs.iter().find(|then| then.id == urr.id);
        then.into_iter().for_each(|then| change_methods(usage, (urr.methods, then.methods), now));
    }
    let old = std::mem::take(&mut record.urrs);
    let of = |id: UrrId| old.iter().find(|usage| usage.urr == id);
    record.urrs =
        after.urrs.iter().map(|urr| of(urr.id).cloned().unwrap_or_else(|| fresh(urr, now))).collect();
    let is_new = |id: UrrId| given.iter().any(|given| given.is_new && given.urr == id);
    let stays = |id| after.urrs.iter().any(|urr| urr.id == id) && !is_new(id);
    macs::forget(record, stays);
    let all = record.urrs.iter().zip(&after.urrs);
    let told_later: Vec<UrrId> =
        all.filter(|(usage, urr)| has_start(usage, urr)).map(|(_, urr)| urr.id).collect();
    record.starts.retain(|start| stays(start.urr) || told_later.contains(&start.urr));
    for given in given {
        let of_it = record.urrs.iter_mut().zip(&after.urrs).filter(|(usage, _)| usage.urr == given.urr);
        of_it.for_each(|(usage, urr)| give(usage, urr, given, clock));
    }
    record.urrs.iter_mut().zip(&after.urrs).for_each(|(usage, urr)| release(usage, urr, now));
    if let Some(timer_s) = silence {
        let timer = Inactivity { timer_s, active_ms: now, heard_ms: now, is_reported: false };
        record.inactivity = Some(timer).filter(|timer| timer.timer_s > 0);
    }
}

/// Time has passed under the rules before, and packets may have gone by the FAR of a quota that is used up. From now on time may go on
/// without packets, too: then what did not count does not count now.
fn pass(usage: &mut UrrUsage, (urr, after): (&Urr, &Rules), now: u64) {
    elapse(usage, urr, now);
    let is_over = usage.is_blocked || usage.fired & Trigger::VOLQU != 0;
    usage.went_by_far |= is_over && urr.quota_far.is_some();
    let goes_on = |it: &Urr| it.id == urr.id && it.inactivity_detection_time_s.is_none();
    if urr.inactivity_detection_time_s.is_some() && after.urrs.iter().any(goes_on) {
        (usage.known.at_ms, usage.active_ms) = (now, 0);
    }
}

fn fresh(urr: &Urr, now: u64) -> UrrUsage {
    let start = Used { at_ms: now, ..Used::default() };
    UrrUsage {
        urr: urr.id,
        known: start,
        reported: start,
        granted: start,
        period_ms: now,
        heard_ms: now,
        is_running: urr.immediate_start,
        ..UrrUsage::default()
    }
}

fn give(usage: &mut UrrUsage, urr: &Urr, given: &Given, clock: Clock) {
    let now = clock.now_ms;
    if given.is_new {
        begin(usage, urr, now);
    }
    usage.tells_packets = given.tells_packets.unwrap_or(usage.tells_packets);
    usage.names_only = given.names_only.unwrap_or(usage.names_only);
    if given.threshold || given.monitoring_time || given.gives_quota() {
        usage.subsequent_from = None;
    }
    monitoring::free(usage, urr, (given.volume_quota, given.time_quota, given.event_quota));
    if given.volume_quota {
        usage.granted.counts = usage.reported.counts;
        // What goes by the FAR of a quota that is used up, as to where there is more, takes nothing of the next one, whatever has
        // become of the FAR.
        usage.is_grant_unplaced = std::mem::take(&mut usage.went_by_far);
        // The data plane may have told of a start that missed the quota before.
        usage.uses_awaited = usage.uses_awaited.wrapping_add(u32::from(!usage.is_in_use));
        usage.fired &= !Trigger::VOLQU;
    }
    if given.time_quota {
        usage.granted.duration_ms = usage.reported.duration_ms;
        usage.fired &= !Trigger::TIMQU;
    }
    if given.event_quota {
        usage.granted.events = usage.reported.events;
        usage.fired &= !Trigger::EVEQU;
    }
    if given.gives_quota() || given.validity {
        usage.granted.at_ms = now;
        // Times alone let nothing pass that waits for a quota, which is told already.
        let ends = given.gives_quota() || !is_held(usage);
        usage.fired &= if ends { !(Trigger::QUHTI | Trigger::QUVTI) } else { !0 };
    }
    if given.period {
        usage.period_ms = now;
    }
    if given.is_new || given.monitoring_time || given.additional_monitoring {
        monitoring::give(usage, urr, clock);
    }
}

/// What is measured from now on that was not, unless the next report tells of it anyway.
const fn begun(before: Methods, after: Methods, formerly: Methods) -> Methods {
    Methods {
        volume: after.volume && !before.volume && !formerly.volume,
        duration: after.duration && !before.duration && !formerly.duration,
        event: after.event && !before.event && !formerly.event,
    }
}

/// What is measured no longer is told once more, and what is measured from now on from now on.
fn change_methods(usage: &mut UrrUsage, (before, after): (Methods, Methods), now: u64) {
    let begun = begun(before, after, usage.formerly);
    if begun.volume {
        usage.reported.counts = usage.known.counts;
    }
    if begun.duration {
        usage.reported.duration_ms = usage.known.duration_ms;
    }
    if begun.event {
        usage.reported.events = usage.known.events;
    }
    if after.event && !before.event {
        usage.events_from_ms = now;
    }
    // A use of what is not measured is none, and its next packet is the first where it is measured again.
    usage.is_in_use &= after.event;
    usage.formerly.event |= before.event && !after.event;
    usage.formerly.volume |= before.volume && !after.volume;
    usage.formerly.duration |= before.duration && !after.duration;
}

/// Who has no quota any more is not held up for want of one; and time that is to run at once waits for no packet from now on
/// (TS 29.244 8.2.68, ISTM).
fn release(usage: &mut UrrUsage, urr: &Urr, now: u64) {
    if usage.is_blocked && !is_held_up(usage, urr) {
        usage.unblock();
        usage.fired &= !Trigger::QUHTI;
    }
    if urr.immediate_start && !usage.is_running {
        usage.is_running = true;
        usage.known.at_ms = now;
    }
}

/// Whether any is left of the quotas whose end has stopped packets.
fn is_held_up(usage: &UrrUsage, urr: &Urr) -> bool {
    if !is_held(usage) {
        return is_time_spent(usage, urr) || events::are_spent(usage, urr);
    }
    let is_holding = usage.fired & Trigger::QUHTI != 0 && urr.quota_holding_time_s.is_some();
    is_holding || has_quota(usage, urr)
}

/// A start that nobody was told of, and of which this URR tells.
fn has_start(usage: &UrrUsage, urr: &Urr) -> bool {
    usage.due & Trigger::START != 0 && urr.triggers.contains(Triggers::START_OF_TRAFFIC)
}

/// A URR in the place of one of the same ID goes on with the counts of the data plane, which does not tell them apart, and
/// tells of the start for which there was no room when the other one went.
fn begin(usage: &mut UrrUsage, urr: &Urr, now: u64) {
    let at = Used { at_ms: now, ..usage.known };
    let (due, stops) = if has_start(usage, urr) { (Trigger::START, usage.stops) } else { (0, 0) };
    let (base, active_ms, spent_grant) = (usage.base, usage.active_ms, usage.spent_grant);
    let uses_awaited = usage.uses_awaited.wrapping_add(1);
    let events_from_ms = if at.counts == Counts::default() { 0 } else { now };
    let counted = UrrUsage {
        base,
        active_ms,
        spent_grant,
        uses_awaited,
        events_from_ms,
        known: at,
        reported: at,
        granted: at,
        ..fresh(urr, now)
    };
    *usage = UrrUsage { due, fired: due, stops, ..counted };
}

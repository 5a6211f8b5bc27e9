//! Which triggers of a URR have come (TS 29.244 5.2.2.2 and 5.2.2.3).

use super::account::elapse;
use super::monitoring::{self, InForce, Threshold, in_force};
use super::wanted::own_grant;
use super::{events, moment, ms};
use machine::Clock;
use pfcp::UsageReportTrigger as Trigger;
use rules::{Triggers, Urr, Volume};
use session::{Counts, UrrUsage, Used};

/// Gaps shorter than this are not looked for.
const SHORTEST_GAP_MS: u64 = 1_000;

/// Traffic has stopped that had no packet for so long, unless the URR's inactivity detection time says otherwise. The
/// specification leaves it to us (TS 29.244 8.2.19, STOPT).
const STOP_MS: u64 = 60_000;

/// What a look at a URR found, beside the triggers noted in its usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Only the data plane knows: ask it.
    pub(super) asks: bool,
    /// And there a volume threshold begins anew.
    pub(super) begins_anew: bool,
    /// When to look again.
    pub(super) next_ms: Option<u64>,
    /// The data plane needs other rules from now on.
    pub(super) rules_changed: bool,
}

/// One URR and its usage at a moment.
pub(super) struct Look<'a> {
    usage: &'a mut UrrUsage,
    urr: &'a Urr,
    now: u64,
    clock: Clock,
    /// The data plane can be asked; if not, what only it knows waits until it is there again.
    can_ask: bool,
    found: Found,
}

impl<'a> Look<'a> {
    pub(super) fn at(usage: &'a mut UrrUsage, urr: &'a Urr, clock: Clock, can_ask: bool) -> Found {
        let now = clock.now_ms;
        elapse(usage, urr, now);
        let mut look = Look { usage, urr, now, clock, can_ask, found: Found::default() };
        look.monitoring_times();
        look.period();
        look.quota_times();
        look.stop_of_traffic();
        let in_force = in_force(look.usage, look.urr);
        look.time_threshold(in_force.time_threshold_s);
        look.time_quota(in_force.time_quota_s);
        look.events(in_force);
        look.volumes(in_force);
        look.found
    }

    fn wants(&self, trigger: Triggers) -> bool {
        self.urr.triggers.contains(trigger)
    }

    /// Whether a moment has come; if not, it is looked at again then.
    fn has_come(&mut self, moment_ms: u64) -> bool {
        let has_come = moment_ms <= self.now;
        if !has_come {
            self.found.next_ms = Some(self.found.next_ms.map_or(moment_ms, |next| next.min(moment_ms)));
        }
        has_come
    }

    /// As [`Look::has_come`], where what matters is only known once the data plane was heard at or after the moment.
    fn is_known_at(&mut self, moment_ms: u64) -> bool {
        if !self.has_come(moment_ms) {
            return false;
        }
        let is_known = self.usage.heard_ms >= moment_ms;
        self.found.asks |= !is_known && self.can_ask;
        is_known
    }

    /// What was used before and after each is told apart (TS 29.244 5.2.2.2.1).
    fn monitoring_times(&mut self) {
        for _ in 0..monitoring::MOST {
            let Some(next) = monitoring::next(self.usage, self.urr, self.clock) else { return };
            if !self.is_known_at(moment(next.time, self.clock)) {
                // It may be of the same size as the one before, which the data plane would take for the same.
                self.found.begins_anew = self.found.asks && next.volume_threshold.is_some();
                return;
            }
            monitoring::pass(self.usage, self.urr, next);
            self.found.rules_changed = true;
        }
    }

    fn period(&mut self) {
        let period = self.urr.measurement_period_s.filter(|_| self.wants(Triggers::PERIODIC)).map_or(0, ms);
        if period == 0 {
            return;
        }
        let elapsed = self.now.saturating_sub(self.usage.period_ms) / period;
        if elapsed > 0 {
            self.usage.period_ms += elapsed * period;
            self.usage.due |= Trigger::PERIO;
        }
        self.has_come(self.usage.period_ms + period);
    }

    fn quota_times(&mut self) {
        let granted = self.usage.granted.at_ms;
        if let Some(validity) = self.once(Triggers::QUOTA_VALIDITY_TIME, self.urr.quota_validity_time_s)
            && self.has_come(granted + validity)
        {
            self.fire(Trigger::QUVTI);
            // What is no longer valid lets nothing pass (TS 29.244 5.2.2.2.1).
            self.block_if(has_quota(self.usage, self.urr));
        }
        if let Some(holding) = self.once(Triggers::QUOTA_HOLDING_TIME, self.urr.quota_holding_time_s)
            && !self.usage.is_blocked
            && self.is_known_at(self.usage.last_packet_ms.unwrap_or(0).max(granted) + holding)
        {
            self.fire(Trigger::QUHTI);
            // Packets do not pass before the next quota comes (TS 29.244 7.5.2.4).
            self.block_if(true);
        }
    }

    fn block_if(&mut self, is_over: bool) {
        if is_over && !self.usage.is_blocked {
            self.usage.is_blocked = true;
            self.found.rules_changed = true;
        }
    }

    /// Traffic that stops may start again, which only the data plane sees at once.
    fn stop_of_traffic(&mut self) {
        let is_told = self.wants(Triggers::STOP_OF_TRAFFIC) && self.usage.fired & Trigger::STOPT == 0;
        let waits = is_told || self.usage.is_in_use;
        let Some(last) = self.usage.last_packet_ms.filter(|_| waits) else { return };
        let gap = self.urr.inactivity_detection_time_s.map_or(STOP_MS, ms).max(SHORTEST_GAP_MS);
        if !self.is_known_at(last + gap) {
            return;
        }
        if is_told {
            self.fire(Trigger::STOPT);
            self.usage.fired &= !Trigger::START;
            self.usage.stops = self.usage.stops.wrapping_add(1);
        }
        events::stop(self.usage);
        self.found.rules_changed = true;
    }

    /// A time that is waited for, unless it has come already.
    fn once(&self, trigger: Triggers, seconds: Option<u32>) -> Option<u64> {
        let reported = if trigger == Triggers::QUOTA_HOLDING_TIME { Trigger::QUHTI } else { Trigger::QUVTI };
        let waits = self.wants(trigger) && self.usage.fired & reported == 0;
        seconds.filter(|_| waits).map(ms)
    }

    fn fire(&mut self, trigger: u32) {
        self.usage.fired |= trigger;
        self.usage.due |= trigger;
    }

    fn time_threshold(&mut self, threshold: Threshold<u32>) {
        let Some(limit) = threshold.limit.filter(|_| self.wants(Triggers::TIME_THRESHOLD)) else { return };
        if self.is_used_up(ms(limit), threshold.since(self.usage)) {
            self.usage.due |= Trigger::TIMTH;
        }
    }

    /// Without quota packets do not pass, which the data plane must be told. The end of one of nothing is told once a packet comes.
    fn time_quota(&mut self, seconds: Option<u32>) {
        let Some(limit) = seconds.filter(|_| !self.usage.is_blocked) else { return };
        if self.is_used_up(ms(limit), self.usage.granted) {
            self.usage.is_blocked = true;
            self.found.rules_changed = true;
            let is_told = limit > 0 && self.wants(Triggers::TIME_QUOTA);
            self.usage.due |= if is_told { Trigger::TIMQU } else { 0 };
        }
    }

    /// As for time; but a use is not cut short by its own end of the quota.
    fn events(&mut self, in_force: InForce) {
        let mut threshold = in_force.event_threshold;
        threshold.limit = threshold.limit.filter(|_| self.wants(Triggers::EVENT_THRESHOLD));
        if events::are_due(self.usage, threshold) {
            self.usage.due |= Trigger::EVETH;
        }
        let Some(quota) = in_force.event_quota else { return };
        let is_told = quota > 0 && self.wants(Triggers::EVENT_QUOTA);
        if is_told && self.usage.fired & Trigger::EVEQU == 0 && events::are_as_many(self.usage, quota) {
            self.fire(Trigger::EVEQU);
        }
        if !self.usage.is_blocked && events::are_spent(self.usage, self.urr) {
            self.usage.is_blocked = true;
            self.found.rules_changed = true;
        }
    }

    /// Whether so much time counted since then. While time does not run, or stops without packets, only the data
    /// plane knows whether it went on.
    fn is_used_up(&mut self, limit_ms: u64, since: Used) -> bool {
        let used = self.usage.known.duration_ms.saturating_sub(since.duration_ms);
        let Some(left) = limit_ms.checked_sub(used).filter(|left| *left > 0) else { return true };
        if self.urr.inactive {
            return false;
        }
        let heard = self.usage.heard_ms;
        match (self.usage.is_running, self.urr.inactivity_detection_time_s) {
            (true, None) => self.has_come(self.now + left),
            (true, Some(gap)) => self.is_known_at(heard + self.soonest(left, ms(gap))),
            (false, _) => self.is_known_at(heard.max(since.at_ms) + left),
        };
        false
    }

    /// How long after the data plane was heard so much more may have counted at the soonest. While there are no packets, that is not looked
    /// for all the time.
    fn soonest(&self, left_ms: u64, gap_ms: u64) -> u64 {
        let is_silent = self.usage.last_packet_ms.is_none_or(|last| last + gap_ms <= self.usage.heard_ms);
        if is_silent { left_ms.max(SHORTEST_GAP_MS) } else { left_ms }
    }

    /// The data plane tells of these itself; but what it told may have been lost with this process or the link.
    fn volumes(&mut self, in_force: InForce) {
        let known = self.usage.known.counts;
        let threshold = in_force.volume_threshold.limit.filter(|_| self.wants(Triggers::VOLUME_THRESHOLD));
        let since = in_force.volume_threshold.since(self.usage);
        if threshold.is_some_and(|limit| is_reached(limit, known - since.counts)) {
            self.usage.due |= Trigger::VOLTH;
        }
        let quota = in_force.volume_quota.filter(|_| self.wants(Triggers::VOLUME_QUOTA)).map(of_something);
        let usage = &self.usage;
        // Before its place is known, only the data plane can say.
        let is_used_up = |limit| !usage.is_grant_unplaced && is_reached(limit, known - usage.granted.counts);
        let is_told = quota.is_some() && usage.spent_grant == Some(own_grant(usage, self.urr));
        if usage.fired & Trigger::VOLQU == 0 && (is_told || quota.is_some_and(is_used_up)) {
            self.fire(Trigger::VOLQU);
        }
    }
}

/// Whether none pass as none came for too long, or as the quota is no longer valid, and not only because time or events are used up:
/// any quota ends that.
pub(super) const fn is_held(usage: &UrrUsage) -> bool {
    usage.is_blocked && usage.fired & (Trigger::QUHTI | Trigger::QUVTI) != 0
}

/// Whether the quotas that were given are no longer valid.
pub(super) const fn is_invalid(usage: &UrrUsage) -> bool {
    usage.is_blocked && usage.fired & Trigger::QUVTI != 0
}

/// Whether a quota of any kind is in force.
pub(super) fn has_quota(usage: &UrrUsage, urr: &Urr) -> bool {
    let in_force = in_force(usage, urr);
    in_force.volume_quota.is_some() || in_force.time_quota_s.is_some() || in_force.event_quota.is_some()
}

/// The triggers of a packet that there was no quota for, while none passes: of quotas of nothing, as no use has ended them. Their end
/// is told with the first packet that misses them, for only then is there anything to ask for.
pub(super) fn missed(usage: &UrrUsage, urr: &Urr) -> u32 {
    let InForce { volume_quota, time_quota_s, event_quota, .. } = in_force(usage, urr);
    let is_nothing = volume_quota.is_some_and(|quota| is_reached(quota, Counts::default()));
    let wants = |trigger, is_missed| is_missed && urr.triggers.contains(trigger);
    let volume = if wants(Triggers::VOLUME_QUOTA, is_nothing) { Trigger::VOLQU } else { 0 };
    let time = if wants(Triggers::TIME_QUOTA, time_quota_s == Some(0)) { Trigger::TIMQU } else { 0 };
    let events = if wants(Triggers::EVENT_QUOTA, event_quota == Some(0)) { Trigger::EVEQU } else { 0 };
    volume | time | events
}

/// Whether the time quota in force is used up.
pub(super) fn is_time_spent(usage: &UrrUsage, urr: &Urr) -> bool {
    let used = usage.known.duration_ms.saturating_sub(usage.granted.duration_ms);
    in_force(usage, urr).time_quota_s.is_some_and(|limit| used >= ms(limit))
}

/// Of a quota, the volumes that may be used.
fn of_something(quota: Volume) -> Volume {
    let some = |octets: Option<u64>| octets.filter(|octets| *octets > 0);
    Volume { total: some(quota.total), uplink: some(quota.uplink), downlink: some(quota.downlink) }
}

fn is_reached(limit: Volume, used: Counts) -> bool {
    let reached = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
    reached(limit.uplink, used.uplink_bytes)
        || reached(limit.downlink, used.downlink_bytes)
        || reached(limit.total, used.uplink_bytes.saturating_add(used.downlink_bytes))
}

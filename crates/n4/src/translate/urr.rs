//! URRs, and what a request gives them: a quota, another threshold, another monitoring time.

use super::Translator;
use crate::refusal::Refusal;
use crate::support;
use crate::usage::Given;
use pfcp::{
    AdditionalMonitoringTime, Cause, CreateUrr, DroppedTraffic, FailedRuleId, ReportingTriggers, UpdateUrr,
    Volumes, flags, ie,
};
use rules::{
    DroppedDownlink, FarId, Methods, Monitoring, Rules, Since, Triggers, Urr, UrrId, UrrUpdate, Volume,
    limits,
};

impl Translator<'_> {
    pub(super) fn urr(&mut self, urr: &CreateUrr) -> Result<Urr, Refusal> {
        let id = UrrId(urr.urr_id);
        let information = urr.measurement_information.unwrap_or(0);
        let tells_packets = Some(information & flags::MEASUREMENT_MNOP != 0);
        let names_only = Some(information & flags::MEASUREMENT_RADI != 0);
        self.taken.given.push(Given { urr: id, is_new: true, tells_packets, names_only, ..Given::default() });
        Ok(Urr {
            id,
            methods: methods(urr.measurement_method),
            triggers: triggers(&urr.reporting_triggers)?,
            measurement_period_s: urr.measurement_period,
            volume_threshold: urr.volume_threshold.map(threshold),
            volume_quota: urr.volume_quota.map(volume),
            threshold_since: Since::default(),
            quota_since: None,
            quota_grant: 1,
            starts_awaited: 0,
            time_threshold_s: nonzero(urr.time_threshold),
            time_quota_s: urr.time_quota,
            event_threshold: nonzero(urr.event_threshold),
            event_quota: urr.event_quota,
            quota_holding_time_s: nonzero(urr.quota_holding_time),
            quota_validity_time_s: nonzero(urr.quota_validity_time),
            dropped_downlink: urr.dropped_dl_traffic_threshold.map(dropped),
            inactivity_detection_time_s: nonzero(urr.inactivity_detection_time),
            monitoring_time: urr.monitoring_time,
            subsequent_volume_threshold: urr.subsequent_volume_threshold.map(threshold),
            subsequent_time_threshold_s: nonzero(urr.subsequent_time_threshold),
            subsequent_volume_quota: urr.subsequent_volume_quota.map(volume),
            subsequent_time_quota_s: urr.subsequent_time_quota,
            subsequent_event_threshold: nonzero(urr.subsequent_event_threshold),
            subsequent_event_quota: urr.subsequent_event_quota,
            additional_monitoring: additional(&urr.additional_monitoring_times, id)?,
            linked: urr.linked_urr_ids.iter().copied().map(UrrId).collect(),
            before_qos: information & flags::MEASUREMENT_MBQE != 0,
            inactive: information & flags::MEASUREMENT_INAM != 0,
            immediate_start: information & flags::MEASUREMENT_ISTM != 0,
            ethernet_inactivity_s: nonzero(urr.ethernet_inactivity_timer),
            quota_far: urr.quota_far_id.map(FarId),
        })
    }

    pub(super) fn urr_update(&mut self, update: &UpdateUrr) -> Result<UrrUpdate, Refusal> {
        let id = UrrId(update.urr_id);
        let bit = |bit: u8| update.measurement_information.map(|bits| bits & bit != 0);
        let told = (bit(flags::MEASUREMENT_MNOP), bit(flags::MEASUREMENT_RADI));
        self.taken.given.push(given(update, told));
        let times = &update.additional_monitoring_times;
        let names_times = !times.is_empty() || update.removes(ie::ADDITIONAL_MONITORING_TIME);
        let names_linked = !update.linked_urr_ids.is_empty() || update.removes(ie::LINKED_URR_ID);
        let field = Field(update);
        Ok(UrrUpdate {
            id,
            methods: update.measurement_method.map(methods),
            triggers: update.reporting_triggers.as_ref().map(triggers).transpose()?,
            measurement_period_s: field.number(update.measurement_period, ie::MEASUREMENT_PERIOD),
            volume_threshold: field.volume(update.volume_threshold.map(threshold), ie::VOLUME_THRESHOLD),
            volume_quota: field.volume(update.volume_quota.map(volume), ie::VOLUME_QUOTA),
            time_threshold_s: field.nonzero(update.time_threshold, ie::TIME_THRESHOLD),
            time_quota_s: field.number(update.time_quota, ie::TIME_QUOTA),
            event_threshold: field.nonzero(update.event_threshold, ie::EVENT_THRESHOLD),
            event_quota: field.number(update.event_quota, ie::EVENT_QUOTA),
            quota_holding_time_s: field.nonzero(update.quota_holding_time, ie::QUOTA_HOLDING_TIME),
            quota_validity_time_s: field.nonzero(update.quota_validity_time, ie::QUOTA_VALIDITY_TIME),
            dropped_downlink: update
                .dropped_dl_traffic_threshold
                .map(|threshold| Some(dropped(threshold)))
                .or(update.removes(ie::DROPPED_DL_TRAFFIC_THRESHOLD).then_some(None)),
            inactivity_detection_time_s: field
                .nonzero(update.inactivity_detection_time, ie::INACTIVITY_DETECTION_TIME),
            monitoring_time: field.number(update.monitoring_time, ie::MONITORING_TIME),
            subsequent_volume_threshold: field
                .volume(update.subsequent_volume_threshold.map(threshold), ie::SUBSEQUENT_VOLUME_THRESHOLD),
            subsequent_time_threshold_s: field
                .nonzero(update.subsequent_time_threshold, ie::SUBSEQUENT_TIME_THRESHOLD),
            subsequent_volume_quota: field
                .volume(update.subsequent_volume_quota.map(volume), ie::SUBSEQUENT_VOLUME_QUOTA),
            subsequent_time_quota_s: field.number(update.subsequent_time_quota, ie::SUBSEQUENT_TIME_QUOTA),
            subsequent_event_threshold: field
                .nonzero(update.subsequent_event_threshold, ie::SUBSEQUENT_EVENT_THRESHOLD),
            subsequent_event_quota: field.number(update.subsequent_event_quota, ie::SUBSEQUENT_EVENT_QUOTA),
            additional_monitoring: names_times.then(|| additional(times, id)).transpose()?,
            linked: names_linked.then(|| update.linked_urr_ids.iter().copied().map(UrrId).collect()),
            before_qos: bit(flags::MEASUREMENT_MBQE),
            inactive: bit(flags::MEASUREMENT_INAM),
            immediate_start: bit(flags::MEASUREMENT_ISTM),
            ethernet_inactivity_s: field
                .nonzero(update.ethernet_inactivity_timer, ie::ETHERNET_INACTIVITY_TIMER),
            quota_far: update
                .quota_far_id
                .map(|far| Some(FarId(far)))
                .or(update.removes(ie::FAR_ID).then_some(None)),
        })
    }
}

/// A URR that an update leaves with periodic reports and no period (TS 29.244 7.5.2.4: the period is there if PERIO is set).
pub(super) fn check_periods(updates: &[UpdateUrr], rules: &Rules) -> Result<(), Refusal> {
    let is_updated = |urr: &Urr| updates.iter().any(|update| update.urr_id == urr.id.0);
    let has_none =
        |urr: &Urr| urr.triggers.contains(Triggers::PERIODIC) && urr.measurement_period_s.is_none();
    match rules.urrs.iter().any(|urr| has_none(urr) && is_updated(urr)) {
        true => Err(Refusal::blaming(Cause::ConditionalIeMissing, ie::MEASUREMENT_PERIOD)),
        false => Ok(()),
    }
}

fn given(update: &UpdateUrr, (tells_packets, names_only): (Option<bool>, Option<bool>)) -> Given {
    Given {
        urr: UrrId(update.urr_id),
        is_new: false,
        tells_packets,
        names_only,
        volume_quota: update.volume_quota.is_some(),
        time_quota: update.time_quota.is_some(),
        event_quota: update.event_quota.is_some(),
        validity: update.quota_validity_time.is_some() || update.quota_holding_time.is_some(),
        threshold: update.volume_threshold.is_some()
            || update.time_threshold.is_some()
            || update.event_threshold.is_some(),
        monitoring_time: update.monitoring_time.is_some(),
        additional_monitoring: !update.additional_monitoring_times.is_empty(),
        period: update.measurement_period.is_some(),
    }
}

/// Several may be there, in any order (TS 29.244 7.5.2.4).
fn additional(times: &[AdditionalMonitoringTime], urr: UrrId) -> Result<Vec<Monitoring>, Refusal> {
    if times.len() > limits::ADDITIONAL_MONITORING_TIMES {
        let failed_rule_id = Some(FailedRuleId::Urr(urr.0));
        let refusal = Refusal::blaming(Cause::NoResourcesAvailable, ie::ADDITIONAL_MONITORING_TIME);
        return Err(Refusal { failed_rule_id, ..refusal });
    }
    let monitoring = |it: &AdditionalMonitoringTime| Monitoring {
        time: it.monitoring_time,
        volume_threshold: it.subsequent_volume_threshold.map(threshold),
        time_threshold_s: nonzero(it.subsequent_time_threshold),
        volume_quota: it.subsequent_volume_quota.map(volume),
        time_quota_s: it.subsequent_time_quota,
        event_threshold: nonzero(it.subsequent_event_threshold.or(it.event_threshold)),
        event_quota: it.subsequent_event_quota.or(it.event_quota),
    };
    Ok(times.iter().map(monitoring).collect())
}

/// What an update says of one field: a value, none any more, or nothing.
struct Field<'a>(&'a UpdateUrr);

impl Field<'_> {
    fn number(&self, value: Option<u32>, ie: u16) -> Option<Option<u32>> {
        value.map(Some).or_else(|| self.0.removes(ie).then_some(None))
    }

    /// As for volumes.
    fn nonzero(&self, value: Option<u32>, ie: u16) -> Option<Option<u32>> {
        self.number(value, ie).map(nonzero)
    }

    fn volume(&self, value: Option<Volume>, ie: u16) -> Option<Option<Volume>> {
        value.map(Some).or_else(|| self.0.removes(ie).then_some(None))
    }
}

const fn methods(bits: u8) -> Methods {
    Methods {
        duration: bits & flags::METHOD_DURAT != 0,
        volume: bits & flags::METHOD_VOLUM != 0,
        event: bits & flags::METHOD_EVENT != 0,
    }
}

fn triggers(triggers: &ReportingTriggers) -> Result<Triggers, Refusal> {
    match triggers.bits() & !support::TRIGGERS {
        0 => Ok(Triggers(triggers.bits())),
        _ => Err(Refusal::unsupported(ie::REPORTING_TRIGGERS)),
    }
}

const fn volume(volumes: Volumes) -> Volume {
    Volume { total: volumes.total, uplink: volumes.uplink, downlink: volumes.downlink }
}

/// A threshold of nothing is none: it would be crossed by every packet.
fn threshold(volumes: Volumes) -> Volume {
    let some = |octets: Option<u64>| octets.filter(|octets| *octets > 0);
    Volume { total: some(volumes.total), uplink: some(volumes.uplink), downlink: some(volumes.downlink) }
}

/// As for volumes.
fn dropped(threshold: DroppedTraffic) -> DroppedDownlink {
    let some = |count: Option<u64>| count.filter(|count| *count > 0);
    DroppedDownlink { packets: some(threshold.packets), bytes: some(threshold.bytes) }
}

/// As for volumes.
fn nonzero(seconds: Option<u32>) -> Option<u32> {
    seconds.filter(|seconds| *seconds > 0)
}

//! Usage Reporting Rules: what is counted, and when a control plane wants to hear of it (TS 29.244 5.2.2).

use crate::ids::{FarId, UrrId};
use serde::{Deserialize, Serialize};

/// What a URR measures (TS 29.244 8.2.40).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Methods {
    /// DURAT.
    pub duration: bool,
    /// VOLUM.
    pub volume: bool,
    /// EVENT: starts of traffic.
    pub event: bool,
}

/// Reporting triggers (TS 29.244 8.2.19): bit n is bit n % 8 + 1 of octet 5 + n / 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Triggers(pub u32);

impl Triggers {
    /// PERIO: every measurement period.
    pub const PERIODIC: Self = Self(1);
    /// VOLTH.
    pub const VOLUME_THRESHOLD: Self = Self(1 << 1);
    /// TIMTH.
    pub const TIME_THRESHOLD: Self = Self(1 << 2);
    /// QUHTI: no traffic for the quota holding time.
    pub const QUOTA_HOLDING_TIME: Self = Self(1 << 3);
    /// START of traffic.
    pub const START_OF_TRAFFIC: Self = Self(1 << 4);
    /// STOPT: the application's traffic ended.
    pub const STOP_OF_TRAFFIC: Self = Self(1 << 5);
    /// DROTH: dropped downlink traffic.
    pub const DROPPED_DOWNLINK: Self = Self(1 << 6);
    /// LIUSA: a linked URR reported.
    pub const LINKED_USAGE: Self = Self(1 << 7);
    /// VOLQU.
    pub const VOLUME_QUOTA: Self = Self(1 << 8);
    /// TIMQU.
    pub const TIME_QUOTA: Self = Self(1 << 9);
    /// ENVCL: closing an envelope.
    pub const ENVELOPE_CLOSURE: Self = Self(1 << 10);
    /// MACAR: MAC addresses of the user were detected, or are no longer in use.
    pub const MAC_ADDRESSES: Self = Self(1 << 11);
    /// EVETH.
    pub const EVENT_THRESHOLD: Self = Self(1 << 12);
    /// EVEQU.
    pub const EVENT_QUOTA: Self = Self(1 << 13);
    /// QUVTI: the quota's validity time ended.
    pub const QUOTA_VALIDITY_TIME: Self = Self(1 << 15);

    /// Whether all of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Bytes of users' IP packets; what is absent is without limit (TS 29.244 8.2.13, 8.2.50).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Both ways together.
    pub total: Option<u64>,
    /// From the user.
    pub uplink: Option<u64>,
    /// To the user.
    pub downlink: Option<u64>,
}

/// Dropped downlink traffic worth a report (TS 29.244 8.2.49).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedDownlink {
    /// DLPA.
    pub packets: Option<u64>,
    /// DLBY.
    pub bytes: Option<u64>,
}

/// A monitoring time, and what holds from it on; of what is absent, what is left of the one before (TS 29.244 7.5.2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitoring {
    /// The time, in seconds since 1900.
    pub time: u32,
    /// Report after so much.
    pub volume_threshold: Option<Volume>,
    /// Report after so long.
    pub time_threshold_s: Option<u32>,
    /// Packets pass until so much has been used.
    pub volume_quota: Option<Volume>,
    /// Packets pass for so long.
    pub time_quota_s: Option<u32>,
    /// Report after so many.
    pub event_threshold: Option<u32>,
    /// Packets pass until so many events are over.
    pub event_quota: Option<u32>,
}

/// Where in the data plane's counts of a URR a limit begins, in bytes; negative where that was before these counts began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Since {
    /// From the user.
    pub uplink: i64,
    /// To the user.
    pub downlink: i64,
}

/// Usage Reporting Rule (TS 29.244 7.5.2.4). The data plane counts bytes and packets, and enforces volume thresholds
/// and quotas; what depends on time is the control engine's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Urr {
    /// Unique in the session.
    pub id: UrrId,
    /// What is measured.
    pub methods: Methods,
    /// When to report.
    pub triggers: Triggers,
    /// Between periodic reports.
    pub measurement_period_s: Option<u32>,
    /// Report after so much, again and again.
    pub volume_threshold: Option<Volume>,
    /// From where the threshold counts, until the data plane has told that it was reached.
    pub threshold_since: Since,
    /// Packets pass until so much has been used.
    pub volume_quota: Option<Volume>,
    /// From where the quota counts; `None` from where it is put in force.
    pub quota_since: Option<Since>,
    /// Grows whenever the control plane gives a quota, even one of the same size: that is another one.
    /// [`Rules::change`](crate::Rules::change) sees to it.
    pub quota_grant: u32,
    /// Grows whenever the start of traffic is waited for anew: the next packet is told of as the first was.
    pub starts_awaited: u32,
    /// Report after so long.
    pub time_threshold_s: Option<u32>,
    /// Packets pass for so long.
    pub time_quota_s: Option<u32>,
    /// Report after so many events, again and again.
    pub event_threshold: Option<u32>,
    /// Packets pass until so many events are over, of those since the quota was given.
    pub event_quota: Option<u32>,
    /// How long a quota is held without traffic.
    pub quota_holding_time_s: Option<u32>,
    /// The end of the quota's validity.
    pub quota_validity_time_s: Option<u32>,
    /// Report when so much downlink traffic was dropped.
    pub dropped_downlink: Option<DroppedDownlink>,
    /// Time without packets that does not count as duration.
    pub inactivity_detection_time_s: Option<u32>,
    /// When other thresholds begin to hold, in seconds since 1900.
    pub monitoring_time: Option<u32>,
    /// From the monitoring time on.
    pub subsequent_volume_threshold: Option<Volume>,
    /// From the monitoring time on.
    pub subsequent_time_threshold_s: Option<u32>,
    /// From the monitoring time on.
    pub subsequent_volume_quota: Option<Volume>,
    /// From the monitoring time on.
    pub subsequent_time_quota_s: Option<u32>,
    /// From the monitoring time on.
    pub subsequent_event_threshold: Option<u32>,
    /// From the monitoring time on.
    pub subsequent_event_quota: Option<u32>,
    /// More monitoring times, in any order. At most
    /// [`limits::ADDITIONAL_MONITORING_TIMES`](crate::limits::ADDITIONAL_MONITORING_TIMES).
    pub additional_monitoring: Vec<Monitoring>,
    /// When one of these reports, so does this one. At most [`limits::LINKED_URRS`](crate::limits::LINKED_URRS).
    pub linked: Vec<UrrId>,
    /// MBQE: count before QoS enforcement, not after it.
    pub before_qos: bool,
    /// INAM: do not measure for now.
    pub inactive: bool,
    /// ISTM: time runs from the rule's creation, not from its first packet.
    pub immediate_start: bool,
    /// A MAC address without frames for so long is no longer in use (TS 29.244 8.2.105).
    pub ethernet_inactivity_s: Option<u32>,
    /// What becomes of packets once the quota is used up: what this FAR says, by the QERs of the packet's PDR; `None`
    /// drops them.
    pub quota_far: Option<FarId>,
}

impl Urr {
    /// All its monitoring times, in any order.
    pub fn monitoring(&self) -> impl Iterator<Item = Monitoring> {
        let first = self.monitoring_time.map(|time| Monitoring {
            time,
            volume_threshold: self.subsequent_volume_threshold,
            time_threshold_s: self.subsequent_time_threshold_s,
            volume_quota: self.subsequent_volume_quota,
            time_quota_s: self.subsequent_time_quota_s,
            event_threshold: self.subsequent_event_threshold,
            event_quota: self.subsequent_event_quota,
        });
        first.into_iter().chain(self.additional_monitoring.iter().copied())
    }
}

//! What a session has used, and what of it has been told: kept with the session, so that a restart neither tells
//! twice nor forgets. Moments are milliseconds since 1900.

use rules::{Methods, SeenMac, UrrId};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::ops::{Add, Sub};

/// Bytes and packets of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// From the user.
    pub uplink_bytes: u64,
    /// To the user.
    pub downlink_bytes: u64,
    /// From the user.
    pub uplink_packets: u64,
    /// To the user.
    pub downlink_packets: u64,
}

impl Counts {
    fn with(self, other: Self, operation: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            uplink_bytes: operation(self.uplink_bytes, other.uplink_bytes),
            downlink_bytes: operation(self.downlink_bytes, other.downlink_bytes),
            uplink_packets: operation(self.uplink_packets, other.uplink_packets),
            downlink_packets: operation(self.downlink_packets, other.downlink_packets),
        }
    }

    /// Of each count the greater.
    pub fn max(self, other: Self) -> Self {
        self.with(other, Ord::max)
    }

    /// Whether no count is below the other's.
    pub const fn is_at_least(self, other: Self) -> bool {
        self.uplink_bytes >= other.uplink_bytes
            && self.downlink_bytes >= other.downlink_bytes
            && self.uplink_packets >= other.uplink_packets
            && self.downlink_packets >= other.downlink_packets
    }

    /// Whether some count is above the other's, and none below it.
    pub fn is_more_than(self, other: Self) -> bool {
        self.is_at_least(other) && self != other
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }
}

impl Sub for Counts {
    type Output = Self;

    /// Zero where the other counts more.
    fn sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

/// Everything used up to some moment since a URR was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Bytes and packets.
    pub counts: Counts,
    /// Time that counts, in milliseconds.
    pub duration_ms: u64,
    /// Uses of the service that have begun, where they are measured.
    pub events: u32,
    /// The moment.
    pub at_ms: u64,
}

/// What had been used at a monitoring time that has passed, while no report has told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitored {
    /// The time of day it was, in seconds since 1900.
    pub time: u32,
    /// What had been used then.
    pub used: Used,
    /// When the first packet came that no report has told of, since the monitoring time before.
    pub first_packet_ms: Option<u64>,
    /// When the last packet before it came.
    pub last_packet_ms: Option<u64>,
}

/// One URR of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrrUsage {
    /// The rule.
    pub urr: UrrId,
    /// MNOP: reports tell packets, too.
    pub tells_packets: bool,
    /// RADI: reports tell no more of an application than its name.
    pub names_only: bool,
    /// All that is known; its moment is up to when time has been counted.
    pub known: Used,
    /// Of the known counts, those of the data plane's former lives, or from before it forgot the session.
    pub base: Counts,
    /// Of what is known, what reports have told.
    pub reported: Used,
    /// From where the quotas count: what reports had told when they were given, or what had been used at a monitoring time.
    pub granted: Used,
    /// The volume quota counts from where the data plane put it in force, which is not heard yet.
    pub is_grant_unplaced: bool,
    /// The volume quota is used up, and since then there was a FAR by which packets may have gone.
    pub went_by_far: bool,
    /// The quota that the data plane told last to be used up, as it numbers them: it may be one that is not in force here yet.
    pub spent_grant: Option<u32>,
    /// Monitoring times that have passed since the last report, in order.
    pub monitored: Vec<Monitored>,
    /// UR-SEQN of the next report.
    pub sequence: u32,
    /// When the present measurement period began.
    pub period_ms: u64,
    /// Time with traffic that the data plane told of last, in its present life; none without an inactivity detection time.
    pub active_ms: u64,
    /// When the data plane last told counts.
    pub heard_ms: u64,
    /// Time runs: the first packet has come, or none is waited for.
    pub is_running: bool,
    /// When the first packet came.
    pub first_packet_ms: Option<u64>,
    /// When the last packet came.
    pub last_packet_ms: Option<u64>,
    /// When the first packet came that no report has told of, after the last monitoring time that has passed.
    pub first_untold_ms: Option<u64>,
    /// Usage report triggers due (TS 29.244 8.2.41).
    pub due: u32,
    /// Usage report triggers that come but once until a new quota or packet.
    pub fired: u32,
    /// Times its traffic stopped: the next start is told.
    pub stops: u32,
    /// The monitoring time that has passed last.
    pub passed_monitoring_time: Option<u32>,
    /// Subsequent thresholds and quotas hold: those of the monitoring times from this one to the one that has passed last.
    pub subsequent_from: Option<u32>,
    /// When the events came that no report has told of, in order; of more than there is room for, the first ones.
    pub event_times: Vec<u64>,
    /// Where events are measured only since some moment: packets before it are of none.
    pub events_from_ms: u64,
    /// The use that came last is not over.
    pub is_in_use: bool,
    /// Grows whenever the data plane is to tell of the beginning of a use anew.
    pub uses_awaited: u32,
    /// No packets pass: the quota of time or of events is used up, or the quotas were not used for too long, or are no longer valid.
    pub is_blocked: bool,
    /// What was measured since the last report and is no longer: the next one tells it, too.
    pub formerly: Methods,
}

impl UrrUsage {
    /// Packets pass again, if they did not.
    pub fn unblock(&mut self) {
        if std::mem::take(&mut self.is_blocked) {
            // A start that missed the quota was told of, and was no use.
            self.uses_awaited = self.uses_awaited.wrapping_add(1);
        }
    }
}

/// When a control plane wants to know that a user is silent (TS 29.244 5.11.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inactivity {
    /// After so long.
    pub timer_s: u32,
    /// When the user was last heard of.
    pub active_ms: u64,
    /// When the data plane last told.
    pub heard_ms: u64,
    /// It knows.
    pub is_reported: bool,
}

/// MAC addresses of an Ethernet PDU session, each list in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MacRecord {
    /// As the data plane told last.
    pub known: Vec<SeenMac>,
    /// By URR, what reports have told; of others, nothing.
    pub told: Vec<ToldMacs>,
}

/// MAC addresses a control plane knows of by a URR.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldMacs {
    /// The rule.
    pub urr: UrrId,
    /// The addresses.
    pub macs: Vec<SeenMac>,
}

/// Traffic of an application that has started, by the URR that found it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecord {
    /// The rule.
    pub urr: UrrId,
    /// Of the rule's starts, which: [`UrrUsage::stops`] then.
    pub number: u32,
    /// The application.
    pub application: String,
    /// The flow of its first packet, as an IPFilterRule.
    pub flow: String,
    /// The user's address, where the PDR that found it does not say.
    pub ue: Option<IpAddr>,
    /// The network of that address, where it has a name.
    pub network: Option<String>,
    /// The control plane knows this start by its number.
    pub is_told: bool,
}

/// Of which kind an answer is that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerKind {
    /// Nothing of it is known otherwise.
    Whole,
    /// An establishment was accepted.
    Established,
    /// A modification was accepted.
    Modified,
}

/// The answer to the request that changed a session last, or ended it: carried out again, the request would do something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// Who asked.
    pub to: SocketAddr,
    /// The sequence number of the request.
    pub sequence: u32,
    /// Of the request's octets.
    pub digest: u64,
    /// When it was answered.
    pub at_ms: u64,
    /// The message priority of both.
    pub priority: Option<u8>,
    /// What the octets follow.
    pub kind: AnswerKind,
    /// The answer's octets behind what its kind always says.
    pub octets: Vec<u8>,
}

/// All of a session's usage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRecord {
    /// The life of the data plane that counts; 0 before it was known.
    pub epoch: u64,
    /// By URR.
    pub urrs: Vec<UrrUsage>,
    /// Where the control plane wants to know of silence.
    pub inactivity: Option<Inactivity>,
    /// MAC addresses of the user, once any were heard of: of few sessions.
    pub macs: Option<Box<MacRecord>>,
    /// Applications whose traffic has started, one by URR at most.
    pub starts: Vec<StartRecord>,
    /// A report the control plane has not confirmed, as it was sent; there is at most one.
    pub unconfirmed: Option<Vec<u8>>,
    /// Reports that an answer had no room for, as they will be sent, one after the other once there is none unconfirmed.
    pub further: Vec<Vec<u8>>,
    /// The last answer that told of a change or of the end.
    pub answer: Option<Box<AnswerRecord>>,
    /// The session is over: nothing is left of it but that answer.
    pub is_over: bool,
}

//! A closed charging data record, whatever it will be written as.

use crate::user::User;
use machine::Clock;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What usage is charged under (TS 32.299 7.2: Rating-Group and Service-Identifier).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The rating group.
    pub rating_group: u32,
    /// The service within it, if it is told apart.
    pub service_id: Option<u32>,
}

/// Why a container was closed: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions(pub u16);

impl Conditions {
    /// Rates, gates or marks of a rule changed.
    pub const QOS_CHANGE: Self = Self(1);
    /// The user's tunnel leads elsewhere.
    pub const SERVING_NODE_CHANGE: Self = Self(1 << 1);
    /// A tariff time.
    pub const TARIFF_SWITCH: Self = Self(1 << 2);
    /// What was charged is no longer measured.
    pub const SERVICE_STOP: Self = Self(1 << 3);
    /// The session ended.
    pub const SESSION_END: Self = Self(1 << 4);
    /// The record is as long as it may be.
    pub const TIME_LIMIT: Self = Self(1 << 5);
    /// The record holds as much as it may.
    pub const VOLUME_LIMIT: Self = Self(1 << 6);
    /// The record has as many containers as it may.
    pub const MAX_CHANGES: Self = Self(1 << 7);
    /// The session ended without being asked to.
    pub const ABNORMAL: Self = Self(1 << 8);
    /// The operator.
    pub const MANAGEMENT: Self = Self(1 << 9);
    /// The operator has changed what a rule is for or does, but for its QoS.
    pub const CONFIGURATION_CHANGE: Self = Self(1 << 10);
    /// The control plane has changed what a rule is for or does, but for its QoS.
    pub const RULE_CHANGE: Self = Self(1 << 11);

    /// All, each with the name it has in JSON.
    pub const NAMES: [(Self, &'static str); 12] = [
        (Self::QOS_CHANGE, "qos_change"),
        (Self::SERVING_NODE_CHANGE, "serving_node_change"),
        (Self::TARIFF_SWITCH, "tariff_switch"),
        (Self::SERVICE_STOP, "service_stop"),
        (Self::SESSION_END, "session_end"),
        (Self::TIME_LIMIT, "time_limit"),
        (Self::VOLUME_LIMIT, "volume_limit"),
        (Self::MAX_CHANGES, "max_changes"),
        (Self::ABNORMAL, "abnormal_release"),
        (Self::MANAGEMENT, "management_intervention"),
        (Self::CONFIGURATION_CHANGE, "configuration_change"),
        (Self::RULE_CHANGE, "rule_change"),
    ];

    /// Whether all of `other` are in it.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names of what is in it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter_map(move |(one, name)| self.contains(one).then_some(name))
    }
}

/// Why a record was closed (TS 32.298 5.1.2.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The session ended as it should.
    NormalRelease,
    /// It ended otherwise.
    AbnormalRelease,
    /// Too many bytes for one record.
    VolumeLimit,
    /// Too long for one record.
    TimeLimit,
    /// Too many containers for one record.
    MaxChangeConditions,
    /// The operator.
    ManagementIntervention,
}

impl Cause {
    /// Its number in the `CauseForRecClosing` of TS 32.298.
    pub const fn number(self) -> u8 {
        match self {
            Self::NormalRelease => 0,
            Self::AbnormalRelease => 4,
            Self::VolumeLimit => 16,
            Self::TimeLimit => 17,
            Self::MaxChangeConditions => 19,
            Self::ManagementIntervention => 20,
        }
    }

    /// What its last containers are closed for.
    pub const fn condition(self) -> Conditions {
        match self {
            Self::NormalRelease => Conditions::SESSION_END,
            Self::AbnormalRelease => Conditions::ABNORMAL,
            Self::VolumeLimit => Conditions::VOLUME_LIMIT,
            Self::TimeLimit => Conditions::TIME_LIMIT,
            Self::MaxChangeConditions => Conditions::MAX_CHANGES,
            Self::ManagementIntervention => Conditions::MANAGEMENT,
        }
    }

    /// Whether the session goes on in another record.
    pub const fn is_partial(self) -> bool {
        !matches!(self, Self::NormalRelease | Self::AbnormalRelease | Self::ManagementIntervention)
    }
}

/// What was used under one key between two changes of charging conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// What it is charged under.
    pub key: Key,
    /// Counts the session's containers, from 1.
    pub sequence: u32,
    /// Bytes of users' IP packets from the user.
    pub uplink_bytes: u64,
    /// Bytes of users' IP packets to the user.
    pub downlink_bytes: u64,
    /// Time used, in milliseconds; nothing where the rule measures none.
    pub duration_ms: u64,
    /// When it was opened.
    pub from_ms: u64,
    /// When it was closed.
    pub until_ms: u64,
    /// The first packet. In all but a key's first container: not before this.
    pub first_packet_ms: Option<u64>,
    /// The last packet.
    pub last_packet_ms: Option<u64>,
    /// Why it was closed.
    pub conditions: Conditions,
    /// Where the session's tunnels towards the radio led meanwhile. At most [`Session::SERVING_NODES`].
    pub serving_nodes: Vec<IpAddr>,
}

/// The session a record is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Our SEID.
    pub seid: u64,
    /// Node ID of the control plane that owns it.
    pub owner: String,
    /// The owner's SEID for it.
    pub cp_seid: u64,
    /// The address of the CP F-SEID.
    pub cp_address: IpAddr,
    /// Where its tunnels towards the radio lead, or led last: gNBs, eNBs, other user planes. At most
    /// [`Session::SERVING_NODES`]. In a record all that were, oldest first; at most [`Cdr::SERVING_NODES`].
    pub serving_nodes: Vec<IpAddr>,
    /// Who it belongs to.
    pub user: User,
}

impl Session {
    /// Serving nodes at once.
    pub const SERVING_NODES: usize = 4;
}

/// A charging data record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cdr {
    /// Counts the node's records, from 1: its name in files, and what makes sure that it is there once.
    pub serial: u64,
    /// Whose.
    pub session: Session,
    /// When the session began.
    pub started_ms: u64,
    /// When the record was opened.
    pub opened_ms: u64,
    /// When it was closed.
    pub closed_ms: u64,
    /// Counts the session's records, from 1.
    pub sequence: u32,
    /// Why it was closed.
    pub cause: Cause,
    /// What was used, in the order it was closed.
    pub containers: Vec<Container>,
}

impl Cdr {
    /// Most containers: with as many of the longest, the record's length is told by the two octets there are for it
    /// (TS 32.297 6.1.2), whatever it is written as.
    pub const CONTAINERS: usize = 250;
    /// Most serving nodes: of more, those that were left first are not told.
    pub const SERVING_NODES: usize = 16;

    /// As people read it: moments become times of day.
    pub fn told_by(mut self, clock: Clock) -> Self {
        let all = [&mut self.started_ms, &mut self.opened_ms, &mut self.closed_ms].into_iter();
        let of_containers = self.containers.iter_mut().flat_map(|container| {
            let packets = [container.first_packet_ms.as_mut(), container.last_packet_ms.as_mut()];
            [&mut container.from_ms, &mut container.until_ms].into_iter().chain(packets.into_iter().flatten())
        });
        all.chain(of_containers).for_each(|moment_ms| *moment_ms = clock.time_of_day(*moment_ms));
        self
    }

    /// Bytes from and to the user in all containers.
    pub fn bytes(&self) -> (u64, u64) {
        self.containers.iter().fold((0, 0), |(uplink, downlink), container| {
            (uplink.saturating_add(container.uplink_bytes), downlink.saturating_add(container.downlink_bytes))
        })
    }

    /// Whether it is the session's only record.
    pub const fn is_only(&self) -> bool {
        self.sequence == 1 && !self.cause.is_partial()
    }
}

//! Associations as operators see them.

use crate::node::Node;
use crate::peers::Association;
use crate::wanted::Wanted;
use machine::Time;
use pfcp::{CpFeature, NetworkInstance};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// How an association stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssociationState {
    /// The control plane is there, as far as is known.
    Up,
    /// So it is taken to be, but it has never answered a heartbeat.
    Mute,
    /// It has answered heartbeats, and does no longer.
    Silent,
    /// It was asked for its release, and has some time left.
    Leaving,
    /// Its sessions end: it has left, or begins anew once they have.
    Ending,
    /// There is none: the control plane is one of `associate`, and is asked.
    Wanted,
}

impl AssociationState {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Up, Self::Mute, Self::Silent, Self::Leaving, Self::Ending, Self::Wanted];

    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Mute => "mute",
            Self::Silent => "silent",
            Self::Leaving => "leaving",
            Self::Ending => "ending",
            Self::Wanted => "wanted",
        }
    }
}

/// An association, or a control plane that is asked to associate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssociationStatus {
    /// The control plane's Node ID; unknown until it has associated.
    pub node_id: Option<String>,
    /// Where requests to it go.
    pub address: SocketAddr,
    /// Where others of its set speak in its name, in the order in which they are asked (TS 29.244 5.22.2).
    pub alternatives: Vec<IpAddr>,
    /// How it stands.
    pub state: AssociationState,
    /// For how long it has been silent, in milliseconds, also while it is leaving.
    pub silent_ms: Option<u64>,
    /// When the association is over, in milliseconds from now, if it was asked for its release.
    pub ends_in_ms: Option<u64>,
    /// When anything came from its address last, in milliseconds before now; nothing has since this process started.
    pub last_heard_age_ms: Option<u64>,
    /// Its sessions, confirmed or not.
    pub sessions: u64,
    /// CP Function Features by their names in TS 29.244 8.2.58; bits without a name here are left out.
    pub features: Vec<String>,
    /// SMF Set ID (TS 29.244 8.2.132): the name, or the octets in hexadecimal digits.
    pub smf_set: Option<String>,
    /// Requests of ours to it, or about its sessions, that wait for an answer.
    pub outstanding_requests: u64,
    /// Its sessions that have something to tell once it answers.
    pub held_sessions: u64,
}

impl Node {
    /// Associations by Node ID, then control planes that are asked to associate.
    pub fn overview(&self, now: Time) -> Vec<AssociationStatus> {
        let outstanding = self.requests.by_peer();
        let associated = self.peers.iter().map(|association| {
            let outstanding = outstanding.get(association.record.node_id.as_str());
            self.status(association, outstanding.copied().unwrap_or_default(), now)
        });
        associated.chain(self.peers.missing().map(wanted)).collect()
    }

    fn status(&self, association: &Association, outstanding: usize, now: Time) -> AssociationStatus {
        let record = &association.record;
        let features = CpFeature::ALL.iter().filter(|feature| association.has(**feature));
        AssociationStatus {
            node_id: Some(record.node_id.clone()),
            address: record.address,
            alternatives: record.alternatives.clone(),
            state: state(association),
            silent_ms: association.silent.map(|since| ms(since, now)),
            ends_in_ms: association.ends.map(|ends| ms(now, ends)),
            last_heard_age_ms: association.heard.map(|heard| ms(heard, now)),
            sessions: self.sessions.count_of(&record.node_id) as u64,
            features: features.map(|feature| format!("{feature:?}").to_ascii_uppercase()).collect(),
            smf_set: smf_set(&record.set_id),
            outstanding_requests: outstanding as u64,
            held_sessions: self.requests.held_for(&record.node_id) as u64,
        }
    }
}

const fn state(association: &Association) -> AssociationState {
    match association {
        Association { is_ending: true, .. } => AssociationState::Ending,
        Association { ends: Some(_), .. } => AssociationState::Leaving,
        Association { silent: Some(_), .. } => AssociationState::Silent,
        association if association.is_mute() => AssociationState::Mute,
        _ => AssociationState::Up,
    }
}

fn wanted(wanted: &Wanted) -> AssociationStatus {
    AssociationStatus {
        node_id: None,
        address: wanted.address,
        alternatives: vec![],
        state: AssociationState::Wanted,
        silent_ms: None,
        ends_in_ms: None,
        last_heard_age_ms: None,
        sessions: 0,
        features: vec![],
        smf_set: None,
        outstanding_requests: u64::from(wanted.is_asked),
        held_sessions: 0,
    }
}

fn ms(from: Time, to: Time) -> u64 {
    (to - from).as_millis() as u64
}

/// The first octet is spare.
fn smf_set(octets: &[u8]) -> Option<String> {
    let name = NetworkInstance(octets.get(1..)?.to_vec()).name();
    Some(name.unwrap_or_else(|| octets.iter().map(|octet| format!("{octet:02x}")).collect()))
}

//! What is kept.

use crate::charge::ChargingRecord;
use crate::usage::UsageRecord;
use ipnet::{IpNet, Ipv6Net};
use rules::{FTeid, Interface, PdrId, Qfi, Rules, Seid};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The control plane's name for a session (TS 29.244 8.2.37).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CpFSeid {
    /// Unique at that address; goes into the header of everything we send about the session.
    pub seid: u64,
    /// The control plane's address.
    pub address: IpAddr,
}

/// One PFCP session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Our SEID.
    pub seid: Seid,
    /// Grows with every accepted change.
    pub revision: u64,
    /// Node ID of the control plane that owns the session.
    pub owner: String,
    /// The owner's name for it.
    pub cp_f_seid: CpFSeid,
    /// The era of the owner's association in which it spoke of the session last.
    pub era: u32,
    /// What the data plane should do, shared with what it is told.
    pub rules: Arc<Rules>,
    /// What has been used, and told.
    pub usage: UsageRecord,
    /// What else the control plane said; most sessions have nothing.
    pub extras: Option<Box<Extras>>,
    /// What of the usage is charged here, where the operator wants that.
    pub charging: Option<Box<ChargingRecord>>,
}

impl SessionRecord {
    /// Our tunnel endpoints that the session has; one may come several times.
    pub fn f_teids(&self) -> impl Iterator<Item = FTeid> {
        let endpoints = self.extras.iter().flat_map(|extras| &extras.endpoints);
        let f_teids = self.rules.pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid);
        f_teids.chain(endpoints.filter_map(|endpoint| endpoint.f_teid))
    }
}

/// What a control plane said of a session that its rules do not show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extras {
    /// Traffic endpoints, each with an ID of its own (TS 29.244 7.5.2.7).
    pub endpoints: Vec<TrafficEndpoint>,
    /// PDRs whose PDI names a traffic endpoint, and which.
    pub at_endpoint: Vec<(PdrId, u8)>,
    /// PDRs that activate predefined rules or groups of them, and which, in order (TS 29.244 5.19).
    pub predefined: Vec<(PdrId, Vec<String>)>,
    /// CHOOSE IDs that later requests may mean again, and the endpoints they stand for.
    pub chosen: Vec<(u8, FTeid)>,
    /// Addresses of our pools that the session has; a prefix by its first address.
    pub addresses: Vec<IpAddr>,
    /// Sets of sessions it belongs to: FQ-CSIDs as on the wire (TS 29.244 8.2.43).
    pub fq_csids: Vec<Vec<u8>>,
    /// The group it belongs to; none, where empty.
    pub group_id: Vec<u8>,
    /// Where its messages go instead of the address of the CP F-SEID (TS 29.244 5.22).
    pub alternative: Option<IpAddr>,
}

/// What several PDIs have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficEndpoint {
    /// Its name in the session.
    pub id: u8,
    /// The tunnel packets come in.
    pub f_teid: Option<FTeid>,
    /// The user's address.
    pub ue_ipv4: Option<Ipv4Addr>,
    /// The user's prefix or address.
    pub ue_ipv6: Option<Ipv6Net>,
    /// Networks behind the user.
    pub framed_routes: Vec<IpNet>,
    /// As on the wire; none, where empty.
    pub network_instance: Vec<u8>,
    /// Any of these.
    pub qfis: Vec<Qfi>,
}

/// One PFCP association (TS 29.244 6.2.6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssociationRecord {
    /// The peer's Node ID, as text.
    pub node_id: String,
    /// Where our requests to it go.
    pub address: SocketAddr,
    /// The peer's recovery time stamp: seconds since 1900 (TS 29.244 8.2.65).
    pub recovery_time_stamp: u32,
    /// What the peer can do: CP Function Features as on the wire (TS 29.244 8.2.58).
    pub features: Vec<u8>,
    /// The set of control planes it belongs to: SMF Set ID as on the wire; none, where empty.
    pub set_id: Vec<u8>,
    /// Where others of its set speak in its name (TS 29.244 5.22.2).
    pub alternatives: Vec<IpAddr>,
    /// How many of these, from the first on, are to be preferred (PPE, TS 29.244 8.2.129).
    pub preferred: u8,
    /// It has answered a heartbeat of ours: not all control planes do.
    pub answers_heartbeats: bool,
    /// How often the peer associated anew with the time stamp it had. Sessions of an earlier era it may have forgotten.
    pub era: u32,
    /// When the association is over, as its release was asked for: milliseconds since 1900, or [`Self::IS_OVER`].
    pub ends_ms: Option<u64>,
    /// Sets of its sessions that end.
    pub ending_sets: Vec<EndingSet>,
    /// When it was set up last: milliseconds since 1900.
    pub set_up_ms: u64,
    /// By when it was known to be there by its name, and not by its address alone: when it was set up, or later. Moves on only when
    /// another one has been set up at its address since.
    pub named_ms: u64,
    /// What it was told last that we can do, as a number: another one than now, and it is told anew (TS 29.244 6.2.7.3).
    pub capabilities: u64,
    /// What it has not confirmed yet of GTP-U peers.
    pub unconfirmed: PeerNews,
}

impl AssociationRecord {
    /// The association was released, or given up: it goes when the last of its sessions has ended.
    pub const IS_OVER: u64 = 0;
}

/// A set whose sessions end: those that were of it when that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EndingSet {
    /// FQ-CSID as on the wire (TS 29.244 8.2.43).
    pub fq_csid: Vec<u8>,
    /// The last session that was: later ones stay.
    pub last: Seid,
}

/// What was told of GTP-U peers and no data plane tells again. That paths have failed, [`PathRecord`]s say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerNews {
    /// They were restarted.
    pub restarted: Vec<IpAddr>,
    /// They answer again.
    pub recovered: Vec<IpAddr>,
}

/// What a control plane said an application looks like (TS 29.244 7.4.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PfdRecord {
    /// The application's name.
    pub application: String,
    /// Node ID of the control plane that said so last.
    pub owner: String,
    /// Packet flow descriptions, each with its PFD contents as on the wire.
    pub pfds: Vec<Vec<Vec<u8>>>,
}

/// A predefined rule, or a group of them, that an operator has put while the node ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredefinedRecord {
    /// Its name.
    pub name: String,
    /// As the configuration would have it: TOML.
    pub text: String,
}

/// What the name of a predefined rule or group stood for when the data plane had last been told of all sessions with it, as numbers:
/// with others than now, it has to be told anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldRecord {
    /// The name.
    pub name: String,
    /// All its rules say.
    pub whole: u64,
    /// Of that, the QERs they bring.
    pub qers: u64,
}

/// A GTP-U peer that did not answer when it was asked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PathRecord {
    /// The side it is on.
    pub side: Interface,
    /// Its address.
    pub peer: IpAddr,
}

/// What tells whether a database has all that was ever applied to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifeRecord {
    /// Which life of the machine it was used in last. Without a crash of the machine nothing of it is lost.
    pub boot: String,
    /// All of it was on the disk when it was used last.
    pub is_closed: bool,
    /// Tells its charging data records from those of other databases, which are counted from 1, too.
    pub stream: u32,
    /// Where this node's tunnels ended when it was used last, in order.
    pub endpoints: Vec<IpAddr>,
}

/// This node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Our recovery time stamp: changes only when sessions were lost (TS 23.007 19A).
    pub recovery_time_stamp: u32,
    /// Until when a new process goes on taking leave of control planes, as the one before did: milliseconds since 1900.
    pub leaves_ms: Option<u64>,
    /// Milliseconds by which the time of day is ahead of the moments that records tell: since the database was new, the clock was
    /// changed by so much.
    pub clock_ahead_ms: i64,
    /// Lower halves of our SEIDs up to this one may have been given out under this time stamp.
    pub reserved_seids: u32,
    /// Numbers of our own requests up to this one may have been given out (TS 29.244 7.2.2.2); `None` where nothing is known of that.
    pub reserved_sequences: Option<u32>,
}

impl NodeRecord {
    /// Of a node that has given out nothing yet.
    pub const fn new(recovery_time_stamp: u32) -> Self {
        Self {
            recovery_time_stamp,
            leaves_ms: None,
            clock_ahead_ms: 0,
            reserved_seids: 0,
            reserved_sequences: None,
        }
    }
}

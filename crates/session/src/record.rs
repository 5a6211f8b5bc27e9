//! What is kept.

use crate::usage::UsageRecord;
use rules::{Rules, Seid};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// The control plane's name for a session (TS 29.244 8.2.37).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// What the data plane should do.
    pub rules: Rules,
    /// What has been used, and told.
    pub usage: UsageRecord,
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
}

/// This node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Our recovery time stamp: changes only when sessions were lost (TS 23.007 19A).
    pub recovery_time_stamp: u32,
}

//! What sessions use. Counts are cumulative since the session was put in force in this life of the engine
//! ([`Notice::Hello`](crate::Notice::Hello) tells lives apart): a notice that gets lost loses no byte, because the next
//! one holds it too.

use rules::{PdrId, UrrId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// One URR. Bytes are those of users' IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCounts {
    /// The URR.
    pub urr: UrrId,
    /// From the user.
    pub uplink_bytes: u64,
    /// To the user.
    pub downlink_bytes: u64,
    /// From the user.
    pub uplink_packets: u64,
    /// To the user.
    pub downlink_packets: u64,
    /// To the user, and dropped because a FAR says so or because they were kept for too long or too many; counted only
    /// where the URR has a threshold for them.
    pub dropped_downlink_packets: u64,
    /// Bytes of these.
    pub dropped_downlink_bytes: u64,
    /// How long ago the first packet came since the URR's counts were told before, by a notice or in answer to a query, when this
    /// was told; `None` without packets.
    pub first_packet_age_ms: Option<u64>,
    /// How long ago the last packet came, when this was told; `None` without packets.
    pub last_packet_age_ms: Option<u64>,
    /// How long there was traffic, up to the URR's inactivity detection time after each packet; `None` without such a time.
    pub active_ms: Option<u64>,
    /// Which quota was in force when this was told, as [`Urr::quota_grant`](rules::Urr::quota_grant) names it; 0 where the URR asks for
    /// nothing, and of a life that is over.
    pub quota_grant: u32,
}

/// Why usage is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsageCause {
    /// A query, with its token.
    Query(u64),
    /// The volume threshold was crossed.
    VolumeThreshold,
    /// The volume quota is used up.
    VolumeQuota,
    /// The first packet came; `None` where it was a frame, or it was never known of what application it was.
    StartOfTraffic(Option<Start>),
    /// The threshold of dropped downlink traffic was crossed.
    DroppedDownlink,
    /// The data plane ends, and forwards nothing any more: these are its last counts.
    End,
}

/// The packet that traffic began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The PDR it matched; `None` where that is not certain, because PDRs that lead to the same share what they lead to.
    pub pdr: Option<PdrId>,
    /// The user's address.
    pub ue: IpAddr,
    /// The other end's.
    pub remote: IpAddr,
    /// Of IPv6, behind the extension headers.
    pub protocol: u8,
    /// The user's port, where the protocol has ports and the packet shows them.
    pub ue_port: Option<u16>,
    /// The other end's.
    pub remote_port: Option<u16>,
}

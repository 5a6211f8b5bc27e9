//! What of a session's usage is charged here: kept with the session, so that a restart neither charges twice nor forgets.
//! Moments are milliseconds since 1900.

use crate::usage::Counts;
use charging::Account;
use rules::UrrId;
use serde::{Deserialize, Serialize};

/// A meter of our own: a URR that no control plane asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnMeter {
    /// The rule in the data plane.
    pub urr: UrrId,
    /// All it has counted.
    pub known: Counts,
    /// Of it, the counts of the data plane's former lives, or from before it forgot the session.
    pub base: Counts,
    /// When the data plane last told counts.
    pub heard_ms: u64,
    /// When the first packet came.
    pub first_packet_ms: Option<u64>,
    /// When the last packet came.
    pub last_packet_ms: Option<u64>,
}

/// One session's charging.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargingRecord {
    /// What has gone into records.
    pub account: Account,
    /// Our own meters, those that are gone included while they are not charged.
    pub own: Vec<OwnMeter>,
}

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

/// Charging data records that there was no room for, since the database was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostCdrs {
    /// How many.
    pub records: u64,
    /// Users' bytes in them, both ways.
    pub bytes: u64,
    /// When the first was lost.
    pub first_ms: u64,
    /// When the last was lost.
    pub last_ms: u64,
}

impl LostCdrs {
    /// With one more, of so many bytes, that is lost now.
    #[must_use]
    pub const fn and(self, bytes: u64, now_ms: u64) -> Self {
        Self {
            records: self.records.saturating_add(1),
            bytes: self.bytes.saturating_add(bytes),
            first_ms: if self.records == 0 { now_ms } else { self.first_ms },
            last_ms: now_ms,
        }
    }
}

/// One session's charging.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargingRecord {
    /// What has gone into records.
    pub account: Account,
    /// Our own meters, those that are gone included while they are not charged.
    pub own: Vec<OwnMeter>,
}

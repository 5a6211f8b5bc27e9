//! What the user plane reports that UEs used.

use pfcp::UsageReport;
use std::collections::BTreeSet;

/// All reports about a UE, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Usage reports, each counted once however often it came.
    pub reports: u64,
    /// From the UE.
    pub uplink_bytes: u64,
    /// To the UE.
    pub downlink_bytes: u64,
}

/// The account of a UE over all its sessions. A report that comes again has the same UR-SEQN (TS 29.244 8.2.71).
#[derive(Debug, Default)]
pub(super) struct Account {
    usage: Usage,
    /// All numbers below have come, and these.
    floor: u32,
    seen: BTreeSet<u32>,
}

impl Account {
    pub(super) const fn usage(&self) -> Usage {
        self.usage
    }

    /// A new session counts its reports anew.
    pub(super) fn new_session(&mut self) {
        (self.floor, self.seen) = (0, BTreeSet::new());
    }

    pub(super) fn add(&mut self, report: &UsageReport) {
        if report.ur_seqn < self.floor || !self.seen.insert(report.ur_seqn) {
            return;
        }
        while self.seen.remove(&self.floor) {
            self.floor = self.floor.wrapping_add(1);
        }
        let octets = report.volume_measurement.unwrap_or_default().octets;
        self.usage.reports += 1;
        self.usage.uplink_bytes += octets.uplink.unwrap_or(0);
        self.usage.downlink_bytes += octets.downlink.unwrap_or(0);
    }
}

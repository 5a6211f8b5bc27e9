//! Last counts that come late. A deletion does not fail: where the data plane has not said within its time that a session is gone, the
//! answer tells what is known by then (`deletion.rs`). Until it is gone the user's packets pass, and are counted. So of a session that
//! measures something what is needed to tell the rest stays for some seconds, in memory alone. A control plane that knows of
//! reports behind the answer to a deletion (ARDR, TS 29.244 5.2.2.3.1) is told how many come, waits for them, and gets them, if only to hear that
//! there is nothing more. Others may have forgotten the session, and only hear of it where something was used.

use crate::deletion::former;
use crate::node::Node;
use crate::usage;
use dplink::UsageCounts;
use machine::Time;
use pfcp::{FSeid, UsageReport};
use rules::Seid;
use session::SessionRecord;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// For so long the data plane is waited for: a busy one catches up, and one that was lost comes back.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who looked after a session: where that is, and the names it has there.
pub(crate) type Told = Option<(SocketAddr, u64, Option<FSeid>)>;

/// A session that is gone, but for its last counts.
#[derive(Debug)]
struct Late {
    record: SessionRecord,
    told: Told,
    /// Reports were announced.
    is_announced: bool,
}

/// All of them, and until when they are waited for; some may have come.
#[derive(Debug, Default)]
pub(crate) struct Lates {
    by_seid: BTreeMap<Seid, Late>,
    until: VecDeque<(Time, Seid)>,
}

impl Lates {
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.until.front().map(|(until, _)| *until)
    }
}

impl Node {
    /// A deletion is answered without the last counts. No time is counted from then on. Where there are very many, the first of them is not
    /// waited for any longer: no more could be told at once.
    pub(crate) fn await_counts(&mut self, record: &SessionRecord, told: Told, is_announced: bool) {
        while self.late.by_seid.len() >= self.config.limits.requests
            && let Some((_, first)) = self.late.until.pop_front()
        {
            self.counts_come_late(first, &[]);
        }
        let mut record = SessionRecord { extras: None, charging: None, ..record.clone() };
        Arc::make_mut(&mut record.rules).urrs.iter_mut().for_each(|urr| urr.inactive = true);
        self.late.until.push_back((self.now + PATIENCE, record.seid));
        self.late.by_seid.insert(record.seid, Late { record, told, is_announced });
    }

    /// The data plane has told them, or nobody waits any longer. Whether they were waited for.
    pub(crate) fn counts_come_late(&mut self, seid: Seid, counts: &[UsageCounts]) -> bool {
        let Some(Late { mut record, told, is_announced }) = self.late.by_seid.remove(&seid) else {
            return false;
        };
        usage::hear(&mut record.usage, &record.rules, counts, self.wall_ms());
        let mut reports = usage::tell_all(&mut record, self.clock());
        if is_announced || reports.iter().any(tells_of_volume) {
            self.counters.usage_reports += reports.len() as u64;
            let further = usage::split(&mut reports, true);
            let all = std::iter::once(reports).chain(further);
            all.for_each(|reports| self.tell_after((seid, &former(&record)), told, reports));
        }
        true
    }

    /// Those who have been waited for long enough.
    pub(crate) fn give_up_counts(&mut self) {
        while let Some((_, seid)) = self.late.until.pop_front_if(|(until, _)| *until <= self.now) {
            self.counts_come_late(seid, &[]);
        }
    }
}

fn tells_of_volume(report: &UsageReport) -> bool {
    let octets = report.volume_measurement.map(|volume| volume.octets);
    octets.is_some_and(|octets| octets.total.is_some_and(|total| total > 0))
}

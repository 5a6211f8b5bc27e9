//! What the session database would hold.

use charging::Cdr;
use n4::{Output, Start};
use rules::Seid;
use session::{AssociationRecord, NodeRecord, Packed, PathRecord, PfdRecord, ToldRecord};
use std::collections::{BTreeMap, BTreeSet};

/// When the node was made, in seconds since 1900: its recovery time stamp.
const STAMP: u32 = 0xE000_0001;
/// The time of day at [`machine::Time::ZERO`], in milliseconds since 1900.
const SINCE_1900_MS: u64 = 0xE000_0100 * 1_000;

/// All that outlives a control process.
#[derive(Debug, Default)]
pub struct Saved {
    /// Sessions, those included of which only the last answer is kept.
    pub sessions: BTreeMap<Seid, Packed>,
    /// Control planes.
    pub associations: BTreeMap<String, AssociationRecord>,
    /// What they told of applications.
    pub pfds: BTreeMap<String, PfdRecord>,
    /// Until when leave is taken of control planes.
    pub(crate) leaves_ms: Option<u64>,
    /// Up to which names of sessions are reserved.
    pub(crate) reserved_seids: u32,
    /// Up to which numbers of our requests are.
    pub(crate) reserved_sequences: Option<u32>,
    /// GTP-U peers that do not answer.
    pub paths: BTreeSet<PathRecord>,
    /// What names of predefined rules stood for when the data plane had been told.
    pub told: Vec<ToldRecord>,
    /// Charging data records, as files would have them.
    pub cdrs: Vec<Cdr>,
    /// How often everything was lost: the recovery time stamp tells of it.
    pub(crate) lives: u32,
}

impl Saved {
    /// Keeps or drops what the node says; anything else comes back.
    pub(crate) fn apply(&mut self, output: Output) -> Option<Output> {
        match output {
            Output::SaveSession(seid, packed) => drop(self.sessions.insert(seid, packed)),
            Output::EraseSession(seid) => drop(self.sessions.remove(&seid)),
            Output::SaveNode(record) => {
                (self.leaves_ms, self.reserved_seids) = (record.leaves_ms, record.reserved_seids);
                self.reserved_sequences = record.reserved_sequences;
            }
            Output::SaveAssociation(record) => {
                drop(self.associations.insert(record.node_id.clone(), record));
            }
            Output::EraseAssociation(node_id) => drop(self.associations.remove(&node_id)),
            Output::SavePfds(record) => drop(self.pfds.insert(record.application.clone(), record)),
            Output::ErasePfds(application) => drop(self.pfds.remove(&application)),
            Output::SaveTold(told) => self.told = told,
            Output::SavePath(path) => drop(self.paths.insert(path)),
            Output::ErasePath(path) => drop(self.paths.remove(&path)),
            Output::SaveCdr(cdr) => self.cdrs.push(*cdr),
            other => return Some(other),
        }
        None
    }

    /// What a process that starts finds, so many milliseconds after everything began.
    pub(crate) fn start(&self, after_ms: u64) -> Start {
        Start {
            node: NodeRecord {
                recovery_time_stamp: STAMP + self.lives,
                leaves_ms: self.leaves_ms,
                // The clock of these tests is always right.
                clock_ahead_ms: 0,
                reserved_seids: self.reserved_seids,
                reserved_sequences: self.reserved_sequences,
            },
            associations: self.associations.values().cloned().collect(),
            forgotten: vec![],
            sessions: self.sessions.values().cloned().collect(),
            pfds: self.pfds.values().cloned().collect(),
            paths: self.paths.iter().copied().collect(),
            told: self.told.clone(),
            last_cdr: self.cdrs.last().map_or(0, |cdr| cdr.serial),
            since_1900_ms: SINCE_1900_MS + after_ms,
        }
    }
}

//! The embedded store: a folder on the local disk.

use crate::packed::Packed;
use crate::record::{AssociationRecord, NodeRecord, PathRecord, PfdRecord};
use charging::Cdr;
use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use rules::Seid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Of the records' encoding. A store of another format is refused, not guessed at.
const FORMAT: [u8; 1] = [12];
const FORMAT_KEY: &str = "format";
const NODE_KEY: &str = "node";
const LAST_CDR_KEY: &str = "last_cdr";

/// Of most records: more room is made where it is needed.
const RECORD_BYTES: usize = 512;

/// The store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, or the files on it.
    #[error("the session database cannot be used: {0}")]
    Database(#[from] fjall::Error),
    /// A record that does not decode.
    #[error("a record of the session database is damaged: {0}")]
    Record(#[from] postcard::Error),
    /// Written by another version.
    #[error("the session database in {} was written by another version; move it away to start without sessions", .0.display())]
    Format(PathBuf),
}

/// One change of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Keep this node's record.
    SaveNode(NodeRecord),
    /// Keep an association, in place of an older one with the same Node ID.
    SaveAssociation(AssociationRecord),
    /// Forget the association with this Node ID.
    EraseAssociation(String),
    /// Keep the PFDs of an application, in place of older ones.
    SavePfds(PfdRecord),
    /// Forget the PFDs of the application of this name.
    ErasePfds(String),
    /// Keep that a GTP-U peer does not answer.
    SavePath(PathRecord),
    /// Forget that: it answers.
    ErasePath(PathRecord),
    /// Keep a session, in place of an older one with the same SEID.
    SaveSession(Seid, Packed),
    /// Forget a session.
    EraseSession(Seid),
    /// Keep a charging data record until it is in files. None of a lower number comes any more.
    SaveCdr(Cdr),
    /// There is no record of this number, nor will there be.
    SkipCdr(u64),
    /// Forget the records from one number to another, both included, that were there before these changes.
    EraseCdrs(u64, u64),
}

/// Everything in the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// `None` in a new database.
    pub node: Option<NodeRecord>,
    /// By Node ID.
    pub associations: Vec<AssociationRecord>,
    /// By application.
    pub pfds: Vec<PfdRecord>,
    /// GTP-U peers that do not answer.
    pub paths: Vec<PathRecord>,
    /// By SEID.
    pub sessions: Vec<Packed>,
    /// Charging data records that are not in files yet, by number.
    pub cdrs: Vec<Cdr>,
    /// The highest number that one ever had.
    pub last_cdr: u64,
}

/// An open database. What was applied survives the end of the process, at whatever moment; a power failure may take
/// the last moments' changes with it.
pub struct Store {
    database: Database,
    node: Keyspace,
    associations: Keyspace,
    pfds: Keyspace,
    paths: Keyspace,
    sessions: Keyspace,
    cdrs: Keyspace,
}

impl Store {
    /// Opens the database in a folder, made if absent.
    ///
    /// # Errors
    /// A folder that cannot be used, or a database of another format.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let database = Database::builder(folder).open()?;
        let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default);
        let store = Self {
            node: keyspace("node")?,
            associations: keyspace("associations")?,
            pfds: keyspace("pfds")?,
            paths: keyspace("paths")?,
            sessions: keyspace("sessions")?,
            cdrs: keyspace("cdrs")?,
            database,
        };
        match store.node.get(FORMAT_KEY)? {
            Some(format) if *format != FORMAT => return Err(StoreError::Format(folder.to_owned())),
            Some(_) => {}
            None => store.node.insert(FORMAT_KEY, FORMAT)?,
        }
        Ok(store)
    }

    /// Everything there is.
    ///
    /// # Errors
    /// The disk, or a damaged record.
    pub fn load(&self) -> Result<Contents, StoreError> {
        let node = self.node.get(NODE_KEY)?;
        let last_cdr = self.node.get(LAST_CDR_KEY)?;
        Ok(Contents {
            node: node.map(|bytes| postcard::from_bytes(&bytes)).transpose()?,
            associations: records(&self.associations)?,
            pfds: records(&self.pfds)?,
            paths: records(&self.paths)?,
            sessions: sessions(&self.sessions)?,
            cdrs: records(&self.cdrs)?,
            last_cdr: last_cdr.map_or(Ok(0), |bytes| postcard::from_bytes(&bytes))?,
        })
    }

    /// Applies all changes, in order, or none.
    ///
    /// # Errors
    /// The disk; nothing is then changed.
    pub fn apply(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut batch = self.database.batch();
        for change in changes {
            match change {
                Change::SaveNode(record) => batch.insert(&self.node, NODE_KEY, encode(record)?),
                Change::SaveAssociation(record) => {
                    batch.insert(&self.associations, record.node_id.as_str(), encode(record)?);
                }
                Change::EraseAssociation(node_id) => batch.remove(&self.associations, node_id.as_str()),
                Change::SavePfds(record) => {
                    batch.insert(&self.pfds, record.application.as_str(), encode(record)?);
                }
                Change::ErasePfds(application) => batch.remove(&self.pfds, application.as_str()),
                Change::SavePath(path) => batch.insert(&self.paths, encode(path)?, encode(path)?),
                Change::ErasePath(path) => batch.remove(&self.paths, encode(path)?),
                Change::SaveSession(seid, packed) => {
                    batch.insert(&self.sessions, key(*seid), packed.octets().clone());
                }
                Change::EraseSession(seid) => batch.remove(&self.sessions, key(*seid)),
                Change::SaveCdr(cdr) => {
                    batch.insert(&self.cdrs, cdr.serial.to_be_bytes(), encode(cdr)?);
                    batch.insert(&self.node, LAST_CDR_KEY, encode(&cdr.serial)?);
                }
                Change::SkipCdr(serial) => batch.insert(&self.node, LAST_CDR_KEY, encode(serial)?),
                Change::EraseCdrs(first, last) => {
                    for entry in self.cdrs.range(first.to_be_bytes()..=last.to_be_bytes()) {
                        batch.remove(&self.cdrs, entry.key()?);
                    }
                }
            }
        }
        Ok(batch.commit()?)
    }
}

fn key(seid: Seid) -> [u8; 8] {
    seid.0.to_be_bytes()
}

fn encode<T: Serialize>(record: &T) -> Result<Vec<u8>, StoreError> {
    Ok(postcard::to_extend(record, Vec::with_capacity(RECORD_BYTES))?)
}

fn records<T: DeserializeOwned>(keyspace: &Keyspace) -> Result<Vec<T>, StoreError> {
    keyspace.iter().map(|entry| Ok(postcard::from_bytes(&entry.value()?)?)).collect()
}

/// All can be read.
fn sessions(keyspace: &Keyspace) -> Result<Vec<Packed>, StoreError> {
    let packed = |entry: fjall::Guard| {
        let packed = Packed::of_octets(&entry.value()?);
        packed.record()?;
        Ok(packed)
    };
    keyspace.iter().map(packed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpFSeid, SessionRecord, UsageRecord};
    use machine::Clock;
    use rules::{Interface, Rules};

    fn session(seid: u64, revision: u64) -> SessionRecord {
        SessionRecord {
            era: 0,
            seid: Seid(seid),
            revision,
            owner: "smf.example".to_owned(),
            cp_f_seid: CpFSeid { seid: 7, address: [10, 40, 0, 1].into() },
            rules: Rules::default(),
            usage: UsageRecord::default(),
            extras: None,
            charging: None,
        }
    }

    fn save(seid: u64, revision: u64) -> Change {
        Change::SaveSession(Seid(seid), Packed::of(&session(seid, revision)))
    }

    fn cdr(serial: u64) -> Cdr {
        let session = charging::Session {
            seid: 1,
            owner: "smf.example".to_owned(),
            cp_seid: 7,
            cp_address: [10, 40, 0, 1].into(),
            serving_nodes: vec![],
            user: charging::User::default(),
        };
        let mut account = charging::Account::new(session, &charging::Policy::default(), Clock::at(1));
        Cdr { serial, ..account.end(&[], charging::Cause::NormalRelease, 2) }
    }

    #[test]
    fn charging_data_records_stay_until_they_are_erased_and_their_numbers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Store::open(folder.path()).unwrap();
        open().apply(&[256, 255, 257].map(|serial| Change::SaveCdr(cdr(serial)))).unwrap();
        let contents = open().load().unwrap();
        assert_eq!(contents.cdrs.iter().map(|cdr| cdr.serial).collect::<Vec<_>>(), [255, 256, 257]);
        open().apply(&[Change::EraseCdrs(255, 256), Change::SkipCdr(258)]).unwrap();
        let contents = open().load().unwrap();
        assert_eq!((contents.cdrs, contents.last_cdr), (vec![cdr(257)], 258));
    }

    fn pfds(application: &str, octet: u8) -> PfdRecord {
        let owner = "smf.example".to_owned();
        PfdRecord { application: application.to_owned(), owner, pfds: vec![vec![vec![octet]]] }
    }

    fn path(host: u8) -> PathRecord {
        PathRecord { side: Interface::Access, peer: [10, 30, 0, host].into() }
    }

    fn association() -> AssociationRecord {
        AssociationRecord {
            era: 1,
            ends_ms: Some(4_000_000_000_000),
            node_id: "smf.example".to_owned(),
            address: ([10, 40, 0, 1], 8805).into(),
            recovery_time_stamp: 3_900_000_000,
            features: vec![1],
            set_id: vec![],
            alternatives: vec![],
            preferred: 1,
            answers_heartbeats: true,
        }
    }

    #[test]
    fn what_was_applied_is_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let node =
            NodeRecord { recovery_time_stamp: 1, leaves_ms: Some(4_000_000_000_000), clock_ahead_ms: -7 };
        let changes = [
            Change::SaveNode(node),
            Change::SaveAssociation(association()),
            Change::SavePfds(pfds("video", 1)),
            Change::SavePfds(pfds("video", 2)),
            Change::SavePfds(pfds("voice", 1)),
            Change::ErasePfds("voice".to_owned()),
            Change::SavePath(path(1)),
            Change::SavePath(path(2)),
            Change::ErasePath(path(1)),
            save(1, 1),
            save(2, 1),
            save(2, 2),
            Change::EraseSession(Seid(1)),
        ];
        Store::open(folder.path()).unwrap().apply(&changes).unwrap();
        let contents = Store::open(folder.path()).unwrap().load().unwrap();
        let expected = Contents {
            node: Some(node),
            associations: vec![association()],
            pfds: vec![pfds("video", 2)],
            paths: vec![path(2)],
            sessions: vec![Packed::of(&session(2, 2))],
            ..Contents::default()
        };
        assert_eq!(contents, expected);
    }

    #[test]
    fn erased_records_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.apply(&[Change::SaveAssociation(association()), save(1, 1)]).unwrap();
        let erase = [Change::EraseAssociation("smf.example".to_owned()), Change::EraseSession(Seid(1))];
        store.apply(&erase).unwrap();
        assert_eq!(store.load().unwrap(), Contents::default());
    }

    #[test]
    fn a_packed_record_is_the_record_and_a_damaged_one_is_an_error() {
        assert_eq!(Packed::of(&session(1, 7)).record().unwrap(), session(1, 7));
        for length in [400, 450, 500, 550, 5_000] {
            let long = SessionRecord { owner: "x".repeat(length), ..session(1, 7) };
            assert_eq!(Packed::of(&long).record().unwrap(), long);
        }
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.apply(&[save(1, 1), Change::SaveSession(Seid(2), Packed::default())]).unwrap();
        assert!(matches!(store.load(), Err(StoreError::Record(_))));
    }

    #[test]
    fn another_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        Store::open(folder.path()).unwrap().node.insert(FORMAT_KEY, [FORMAT[0] + 1]).unwrap();
        assert!(matches!(Store::open(folder.path()), Err(StoreError::Format(_))));
    }
}

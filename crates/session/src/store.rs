//! The embedded store: a folder on the local disk.

mod journal;

use self::journal::Journal;
use crate::charge::LostCdrs;
use crate::packed::Packed;
use crate::record::{
    AssociationRecord, LifeRecord, NodeRecord, PathRecord, PfdRecord, PredefinedRecord, ToldRecord,
};
use charging::Cdr;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use rules::Seid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Of the records' encoding. A store of another format is set aside, not guessed at.
const FORMAT: [u8; 1] = [28];
/// Bytes of journals that are full, from which on the database puts what they hold into its tables: so little has to be read again at
/// a start.
const JOURNALS_MAX: u64 = 64 << 20;
const FORMAT_KEY: &str = "format";
const NODE_KEY: &str = "node";
const LAST_CDR_KEY: &str = "last_cdr";
const FILED_CDR_KEY: &str = "filed_cdr";
const LOST_CDRS_KEY: &str = "lost_cdrs";
const LIFE_KEY: &str = "life";
const NODE_ID_KEY: &str = "node_id";
const TOLD_KEY: &str = "told";

/// Of most records: more room is made where it is needed.
const RECORD_BYTES: usize = 512;

/// The store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, or the files on it.
    #[error("the session database cannot be used: {}", in_words(.0))]
    Database(fjall::Error),
    /// Another process has it open.
    #[error("another process uses the session database in {}", .0.display())]
    Locked(PathBuf),
    /// A record that does not decode.
    #[error("a record of the session database is damaged: {0}")]
    Record(#[from] postcard::Error),
    /// It failed before, and could not be opened again.
    #[error("the session database is closed after an error")]
    Closed,
    /// One of another format cannot be set aside.
    #[error("the session database in {} was written by another version and cannot be set aside: {error}", .folder.display())]
    Format {
        /// Where it is.
        folder: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

impl From<fjall::Error> for StoreError {
    fn from(error: fjall::Error) -> Self {
        Self::Database(error)
    }
}

impl StoreError {
    /// Whether what is on the disk is not what was written: no other try reads it.
    pub fn is_damage(&self) -> bool {
        use ErrorKind::{AlreadyExists, InvalidData, InvalidInput, NotFound, UnexpectedEof};
        match self {
            Self::Database(error) => match of_system(error) {
                // A file of the database is away, or ends too soon; or it is there, and what names it is away.
                Some(error) => matches!(
                    error.kind(),
                    NotFound | AlreadyExists | UnexpectedEof | InvalidData | InvalidInput
                ),
                None => !matches!(
                    error,
                    fjall::Error::Poisoned | fjall::Error::Locked | fjall::Error::KeyspaceDeleted
                ),
            },
            Self::Record(_) => true,
            Self::Locked(_) | Self::Closed | Self::Format { .. } => false,
        }
    }

    /// What the system refused, if it did.
    pub fn refused(&self) -> Option<ErrorKind> {
        match self {
            Self::Database(error) => of_system(error).map(io::Error::kind),
            Self::Format { error, .. } => Some(error.kind()),
            Self::Locked(_) | Self::Record(_) | Self::Closed => None,
        }
    }
}

/// The system's error behind one of the library's.
fn of_system(error: &fjall::Error) -> Option<&io::Error> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The library's words for its own errors are names, with those of the system inside.
fn in_words(error: &fjall::Error) -> String {
    of_system(error).map_or_else(|| format!("{error:?}"), io::Error::to_string)
}

/// One change of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Keep this node's record.
    SaveNode(NodeRecord),
    /// Keep what is known of this life of the database.
    SaveLife(LifeRecord),
    /// Keep by which Node ID control planes know this node.
    SaveNodeId(String),
    /// Keep an association, in place of an older one with the same Node ID.
    SaveAssociation(AssociationRecord),
    /// Forget the association with this Node ID.
    EraseAssociation(String),
    /// Keep the PFDs of an application, in place of older ones.
    SavePfds(PfdRecord),
    /// Forget the PFDs of the application of this name.
    ErasePfds(String),
    /// Keep a predefined rule or group, in place of an older one with the same name.
    SavePredefined(PredefinedRecord),
    /// Forget the one of this name.
    ErasePredefined(String),
    /// Keep what all names of predefined rules stand for, now that the data plane has been told.
    SaveTold(Vec<ToldRecord>),
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
    /// Keep how many records there was no room for.
    SaveLost(LostCdrs),
    /// Forget the records from one number to another, both included, that were there before these changes: they are in files.
    EraseCdrs(u64, u64),
    /// Forget the record of this number, which cannot be read.
    LoseCdr(u64),
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
    /// Predefined rules and groups, by name.
    pub predefined: Vec<PredefinedRecord>,
    /// What names of predefined rules stood for when the data plane was told last.
    pub told: Vec<ToldRecord>,
    /// GTP-U peers that do not answer.
    pub paths: Vec<PathRecord>,
    /// By SEID.
    pub sessions: Vec<Packed>,
    /// Charging data records that are not in files yet, by number.
    pub cdrs: Vec<Cdr>,
    /// The highest number that one ever had.
    pub last_cdr: u64,
    /// The highest number of those that were erased as they are in files, if any was.
    pub filed_cdr: Option<u64>,
    /// Those that there was no room for; none in a database of a version that did not note them.
    pub lost_cdrs: LostCdrs,
    /// `None` in a new database.
    pub life: Option<LifeRecord>,
    /// By which Node ID control planes know this node: `None` in a new database, and in one of a version that did not note it.
    pub node_id: Option<String>,
    /// Records that cannot be read are none of the above. These changes make an end of them.
    pub damaged: Vec<Change>,
}

/// A database. What was applied survives the end of the process, at whatever moment; a power failure may take the last
/// moments' changes with it, but those before [`Store::sync`].
pub struct Store {
    folder: PathBuf,
    open: RwLock<Option<Open>>,
    journal: Journal,
}

/// An open database: after an error of the disk it takes nothing any more.
struct Open {
    database: Database,
    node: Keyspace,
    associations: Keyspace,
    pfds: Keyspace,
    predefined: Keyspace,
    paths: Keyspace,
    sessions: Keyspace,
    cdrs: Keyspace,
}

impl Store {
    /// Opens the database in a folder, made if absent. One of another format is set aside; where it is then.
    ///
    /// # Errors
    /// A folder that cannot be used.
    pub fn open(folder: &Path) -> Result<(Self, Option<PathBuf>), StoreError> {
        let open = Open::new(folder)?;
        match open.node.get(FORMAT_KEY)? {
            Some(format) if *format == FORMAT => {}
            Some(_) => {
                drop(open);
                let aside = set_aside(folder)
                    .map_err(|error| StoreError::Format { folder: folder.to_owned(), error })?;
                return Ok((Self::open(folder)?.0, Some(aside)));
            }
            None => open.node.insert(FORMAT_KEY, FORMAT)?,
        }
        let journal = Journal::of(folder).map_err(fjall::Error::from)?;
        Ok((Self { folder: folder.to_owned(), open: RwLock::new(Some(open)), journal }, None))
    }

    /// Opens it again after an error: it has what it had before.
    ///
    /// # Errors
    /// The disk; it is closed then.
    pub fn reopen(&self) -> Result<(), StoreError> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        // No two may have it open at a time.
        drop(open.take());
        *open = Some(Open::new(&self.folder)?);
        Ok(())
    }

    fn with<T>(&self, done: impl FnOnce(&Open) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        done(open.as_ref().ok_or(StoreError::Closed)?)
    }

    /// Everything there is that can be read.
    ///
    /// # Errors
    /// The disk.
    pub fn load(&self) -> Result<Contents, StoreError> {
        self.with(Open::load)
    }

    /// Returns when all that was applied survives the end of the machine, too.
    ///
    /// # Errors
    /// The disk.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.with(|open| Ok(open.database.persist(PersistMode::SyncAll)?))
    }

    /// Applies all changes, in order, or none.
    ///
    /// # Errors
    /// The disk; nothing is then changed, nor will be before [`Store::reopen`].
    pub fn apply(&self, changes: &[Change]) -> Result<(), StoreError> {
        self.with(|open| open.apply(changes))?;
        self.journal.grows(changes.len());
        Ok(())
    }
}

impl Open {
    fn new(folder: &Path) -> Result<Self, StoreError> {
        let database = Database::builder(folder).max_journaling_size(JOURNALS_MAX).open();
        let database = database.map_err(|error| match error {
            fjall::Error::Locked => StoreError::Locked(folder.to_owned()),
            error => error.into(),
        })?;
        let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default);
        Ok(Self {
            node: keyspace("node")?,
            associations: keyspace("associations")?,
            pfds: keyspace("pfds")?,
            predefined: keyspace("predefined")?,
            paths: keyspace("paths")?,
            sessions: keyspace("sessions")?,
            cdrs: keyspace("cdrs")?,
            database,
        })
    }

    fn load(&self) -> Result<Contents, StoreError> {
        let mut damaged = vec![];
        Ok(Contents {
            node: self.known(NODE_KEY)?,
            associations: records(
                &self.associations,
                |key| Change::EraseAssociation(text(key)),
                &mut damaged,
            )?,
            pfds: records(&self.pfds, |key| Change::ErasePfds(text(key)), &mut damaged)?,
            predefined: records(&self.predefined, |key| Change::ErasePredefined(text(key)), &mut damaged)?,
            told: self.known(TOLD_KEY)?.unwrap_or_default(),
            paths: self.paths()?,
            sessions: sessions(&self.sessions, &mut damaged)?,
            cdrs: records(&self.cdrs, |key| Change::LoseCdr(number(key)), &mut damaged)?,
            last_cdr: self.known(LAST_CDR_KEY)?.unwrap_or(0),
            filed_cdr: self.known(FILED_CDR_KEY)?,
            lost_cdrs: self.known(LOST_CDRS_KEY)?.unwrap_or_default(),
            life: self.known(LIFE_KEY)?,
            node_id: self.known(NODE_ID_KEY)?,
            damaged,
        })
    }

    /// Those that can be read; of others the data plane tells.
    fn paths(&self) -> Result<Vec<PathRecord>, StoreError> {
        let mut all = vec![];
        for entry in self.paths.iter() {
            all.extend(postcard::from_bytes::<PathRecord>(&entry.value()?));
        }
        Ok(all)
    }

    /// What there is one of, if it can be read.
    fn known<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StoreError> {
        Ok(self.node.get(key)?.and_then(|bytes| postcard::from_bytes(&bytes).ok()))
    }

    fn apply(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut batch = self.database.batch();
        for change in changes {
            match change {
                Change::SaveNode(record) => batch.insert(&self.node, NODE_KEY, encode(record)?),
                Change::SaveLife(record) => batch.insert(&self.node, LIFE_KEY, encode(record)?),
                Change::SaveNodeId(node_id) => batch.insert(&self.node, NODE_ID_KEY, encode(node_id)?),
                Change::SaveAssociation(record) => {
                    batch.insert(&self.associations, record.node_id.as_str(), encode(record)?);
                }
                Change::EraseAssociation(node_id) => batch.remove(&self.associations, node_id.as_str()),
                Change::SavePfds(record) => {
                    batch.insert(&self.pfds, record.application.as_str(), encode(record)?);
                }
                Change::ErasePfds(application) => batch.remove(&self.pfds, application.as_str()),
                Change::SavePredefined(record) => {
                    batch.insert(&self.predefined, record.name.as_str(), encode(record)?);
                }
                Change::ErasePredefined(name) => batch.remove(&self.predefined, name.as_str()),
                Change::SaveTold(told) => batch.insert(&self.node, TOLD_KEY, encode(told)?),
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
                Change::SaveLost(lost) => batch.insert(&self.node, LOST_CDRS_KEY, encode(lost)?),
                Change::EraseCdrs(first, last) => {
                    for entry in self.cdrs.range(first.to_be_bytes()..=last.to_be_bytes()) {
                        batch.remove(&self.cdrs, entry.key()?);
                    }
                    batch.insert(&self.node, FILED_CDR_KEY, encode(last)?);
                }
                Change::LoseCdr(serial) => batch.remove(&self.cdrs, serial.to_be_bytes()),
            }
        }
        Ok(batch.commit()?)
    }
}

/// Gives a folder a name that none has yet.
fn set_aside(folder: &Path) -> std::io::Result<PathBuf> {
    let mut names = (1_u32..).map(|number| folder.with_extension(format!("other-version-{number}")));
    let aside = names.find(|name| !name.exists()).unwrap_or_default();
    std::fs::rename(folder, &aside)?;
    Ok(aside)
}

fn key(seid: Seid) -> [u8; 8] {
    seid.0.to_be_bytes()
}

fn encode<T: Serialize>(record: &T) -> Result<Vec<u8>, StoreError> {
    Ok(postcard::to_extend(record, Vec::with_capacity(RECORD_BYTES))?)
}

fn number(key: &[u8]) -> u64 {
    key.try_into().map_or(0, u64::from_be_bytes)
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn records<T: DeserializeOwned>(
    keyspace: &Keyspace,
    end: impl Fn(&[u8]) -> Change,
    damaged: &mut Vec<Change>,
) -> Result<Vec<T>, StoreError> {
    read(keyspace, |octets| postcard::from_bytes(octets).ok(), (end, damaged))
}

/// All can be read.
fn sessions(keyspace: &Keyspace, damaged: &mut Vec<Change>) -> Result<Vec<Packed>, StoreError> {
    let packed = |octets: &[u8]| Some(Packed::of_octets(octets)).filter(|packed| packed.record().is_ok());
    read(keyspace, packed, (|key: &[u8]| Change::EraseSession(Seid(number(key))), damaged))
}

/// One record that is damaged must not keep all others from being read.
fn read<T>(
    keyspace: &Keyspace,
    record: impl Fn(&[u8]) -> Option<T>,
    (end, damaged): (impl Fn(&[u8]) -> Change, &mut Vec<Change>),
) -> Result<Vec<T>, StoreError> {
    let mut all = vec![];
    for entry in keyspace.iter() {
        let (key, octets) = entry.into_inner()?;
        match record(&octets) {
            Some(record) => all.push(record),
            None => damaged.push(end(&key)),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests;

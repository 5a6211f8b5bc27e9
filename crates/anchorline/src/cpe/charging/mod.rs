//! Charging data records on their way from the session database into files.
//!
//! A thread of its own writes them: a disk that is slow or full holds up nothing but files. What waits for it is in the
//! database, up to a limit.

mod disk;
mod problem;
mod writer;

pub(crate) use writer::{Lost, Status};

use crate::settings::{ChargingSettings, Settings};
use anyhow::Context;
use charging::Cdr;
use charging::spool::{self, Durable, Kept, Settings as SpoolSettings};
use disk::Disk;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};
use session::{LostCdrs, Store};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::SystemTime;
use tokio::sync::{mpsc, watch};
use writer::STATUS_FILE;

/// Files made and not yet forgotten by the database: who is that late is waited for.
const AHEAD: usize = 16;

/// The runtime's end of it.
pub(crate) struct Outbox {
    /// Holds no more than the database does: a queue with a bound would take room for all of it at once.
    to_writer: Sender<Cdr>,
    durable: mpsc::Receiver<Durable>,
    status: watch::Receiver<Status>,
    /// Records in the database.
    waiting: usize,
    limit: usize,
    /// Records without room, since the database was new.
    lost: watch::Sender<LostCdrs>,
}

/// What metrics tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) waiting: u64,
    pub(crate) limit: u64,
    pub(crate) lost: u64,
    pub(crate) lost_bytes: u64,
    pub(crate) written: u64,
    pub(crate) files: u64,
    pub(crate) has_problem: bool,
    pub(crate) free_bytes: u64,
}

impl Outbox {
    /// Starts the writer, with the records that the database holds.
    ///
    /// # Errors
    /// A folder that cannot be made, or is another node's, or no thread.
    pub(crate) fn start(
        charging: &ChargingSettings,
        settings: &Settings,
        (cdrs, stream, lost): (Kept, u32, LostCdrs),
        store: Arc<Store>,
    ) -> anyhow::Result<Self> {
        let folder = &charging.directory;
        let disk = hold(folder).map_err(crate::exit::unusable)?;
        let (waiting, limit) = (cdrs.waiting.len(), charging.waiting_max);
        let (to_writer, from_runtime) = channel();
        let (to_runtime, durable) = mpsc::channel(AHEAD);
        let (told, status) = watch::channel(Status::default());
        let (lost, losses) = watch::channel(lost);
        let writer = writer::Writer {
            settings: spool_settings(charging, settings, stream),
            disk,
            min_free_bytes: charging.min_free_bytes,
            cdrs: from_runtime,
            durable: to_runtime,
            told,
            losses,
            status_file: status_file(settings),
            sync: Box::new(move || store.sync().map_err(|error| error.to_string())),
            now: Box::new(writer::clocks()),
            problem: None,
        };
        std::thread::Builder::new().name("charging".to_owned()).spawn(move || writer.run(cdrs))?;
        Ok(Self { to_writer, durable, status, waiting, limit, lost })
    }

    /// Takes one more record into account, if there is room for it in the database.
    ///
    /// # Errors
    /// It is lost, and named: what the database is to keep of those that are.
    pub(crate) fn admit(&mut self, cdr: &Cdr) -> Result<(), LostCdrs> {
        if self.waiting >= self.limit {
            return Err(self.lose(cdr));
        }
        self.waiting += 1;
        if self.waiting == self.limit / 2 {
            tracing::warn!("{} charging records wait for a file: half of charging.waiting_max", self.waiting);
        }
        Ok(())
    }

    fn lose(&self, cdr: &Cdr) -> LostCdrs {
        let (uplink, downlink) = cdr.bytes();
        let (serial, seid) = (cdr.serial, cdr.session.seid);
        let imsi = cdr.session.user.imsi.as_deref().unwrap_or("-");
        tracing::error!(
            "charging record {serial} is lost, there is no room for it: session {seid:#x}, IMSI {imsi}, \
             {uplink} bytes up and {downlink} down"
        );
        let now_ms = super::time_of_day(SystemTime::now()).unwrap_or_default();
        self.lost.send_modify(|lost| *lost = lost.and(uplink.saturating_add(downlink), now_ms));
        *self.lost.borrow()
    }

    /// Hands over a record that the database has.
    pub(crate) fn send(&self, cdr: Cdr) {
        // A writer that died leaves them to the next process.
        if self.to_writer.send(cdr).is_err() {
            tracing::error!("charging records are not written any more: the writer has ended");
        }
    }

    /// Records that the database may forget.
    pub(crate) async fn durable(&mut self) -> Option<Durable> {
        self.durable.recv().await
    }

    /// They are forgotten.
    pub(crate) const fn forgotten(&mut self, durable: Durable) {
        self.waiting = self.waiting.saturating_sub(durable.cdrs);
    }

    pub(crate) fn figures(&self) -> Figures {
        let (status, lost) = (self.status.borrow(), *self.lost.borrow());
        Figures {
            waiting: self.waiting as u64,
            limit: self.limit as u64,
            lost: lost.records,
            lost_bytes: lost.bytes,
            written: status.written,
            files: status.files,
            has_problem: status.problem.is_some(),
            free_bytes: status.free_bytes,
        }
    }
}

/// Makes the folder of the files, where it is absent. One that takes no files keeps no node from its start: records wait.
fn make(folder: &Path) -> anyhow::Result<()> {
    Disk::new(folder.to_owned()).make().with_context(|| unusable(folder))
}

/// Makes the folder, and holds it: of two nodes with one, each would take the other's records for its own that are in files, and lose its
/// own. Where that cannot be found out, it is the operator's to see to.
fn hold(folder: &Path) -> anyhow::Result<Disk> {
    make(folder)?;
    let mut disk = Disk::new(folder.to_owned());
    let is_ours = disk.hold().unwrap_or_else(|error| {
        tracing::warn!("charging: whether another node uses the folder cannot be found out: {error}");
        true
    });
    anyhow::ensure!(
        is_ours,
        "another node uses charging.directory {}; stop it or change charging.directory",
        folder.display()
    );
    Ok(disk)
}

fn unusable(folder: &Path) -> String {
    format!("charging.directory {} cannot be used", folder.display())
}

/// Makes the folder, and asks the system whether files can be made in it: one that were made to find out would be taken for
/// records by whoever fetches them. One that is not that of the control plane that runs, which holds it, must be no other node's.
///
/// # Errors
/// The key, and why not.
pub(crate) fn try_folder(folder: &Path, held: Option<&Path>) -> anyhow::Result<()> {
    make(folder)?;
    let place = |folder: &Path| fs::canonicalize(folder).ok();
    if held.and_then(place).is_none_or(|held| place(folder) != Some(held)) {
        hold(folder)?;
    }
    let (writes, as_we_are) = (AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS);
    let asked = faccessat(AT_FDCWD, folder, writes, as_we_are);
    asked.map_err(std::io::Error::from).with_context(|| unusable(folder))
}

/// The highest number of a record, in the database or in files of its stream: a database that was put back from a copy is
/// behind the files, and a number that comes again would be taken for what is in them already.
pub(crate) fn last_number(charging: &ChargingSettings, stream: u32, in_database: u64) -> u64 {
    let folder = Disk::new(charging.directory.clone());
    let in_files = spool::last_in_files(stream, &folder).unwrap_or_else(|error| {
        tracing::error!("charging: which records are in files cannot be looked up: {error}");
        0
    });
    if in_files > in_database {
        tracing::error!(
            "charging: the session database is behind its files, which have records up to number {in_files} where it knows of \
             {in_database}; numbers go on from there, and what was charged since may be charged again"
        );
    }
    in_files.max(in_database)
}

/// Where the writer says how it is, for `ctl`.
pub(crate) fn status_file(settings: &Settings) -> PathBuf {
    settings.run_dir.join(STATUS_FILE)
}

fn spool_settings(charging: &ChargingSettings, settings: &Settings, stream: u32) -> SpoolSettings {
    SpoolSettings {
        node: settings.node_id.to_string(),
        address: settings.n4.listen.ip(),
        zone: charging.offline.policy.zone.clone(),
        formats: charging.formats.clone(),
        file_age: charging.file_age,
        file_cdrs: charging.file_cdrs,
        file_bytes: charging.file_bytes,
        stream,
    }
}

#[cfg(test)]
mod tests {
    use super::writer::fixture::cdr;
    use super::*;

    #[test]
    fn a_second_node_with_the_same_folder_is_told_what_to_do() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("cdr");
        let first = hold(&folder).unwrap();
        let said = hold(&folder).unwrap_err().to_string();
        assert!(
            said.starts_with("another node uses charging.directory ")
                && said.ends_with("; stop it or change charging.directory"),
            "{said}"
        );
        drop(first);
        hold(&folder).unwrap();
    }

    #[test]
    fn records_without_room_are_counted_from_where_the_database_was() {
        let (_told, status) = watch::channel(Status::default());
        let before = LostCdrs { records: 7, bytes: 70, first_ms: 1_000, last_ms: 2_000 };
        let (to_writer, _records) = channel();
        let durable = mpsc::channel(1).1;
        let lost = watch::Sender::new(before);
        let mut outbox = Outbox { to_writer, durable, status, waiting: 0, limit: 1, lost };
        outbox.admit(&cdr(1)).unwrap();
        let lost = outbox.admit(&cdr(2)).unwrap_err();
        assert_eq!((lost.records, lost.bytes, lost.first_ms), (8, 70, 1_000));
        assert!(lost.last_ms > charging::time::UNIX_EPOCH_MS);
        assert_eq!((outbox.figures().lost, outbox.figures().lost_bytes), (8, 70));
        outbox.forgotten(Durable { first: 1, last: 1, cdrs: 1 });
        outbox.admit(&cdr(3)).unwrap();
        assert_eq!(outbox.figures().lost, 8);
    }
}

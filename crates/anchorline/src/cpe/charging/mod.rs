//! Charging data records on their way from the session database into files.
//!
//! A thread of its own writes them: a disk that is slow or full holds up nothing but files. What waits for it is in the
//! database, up to a limit.

mod disk;
mod problem;
mod writer;

pub(crate) use writer::Status;

use crate::settings::{ChargingSettings, Settings};
use anyhow::Context;
use charging::Cdr;
use charging::spool::{self, Durable, Kept, Settings as SpoolSettings};
use disk::Disk;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};
use session::Store;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
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
    dropped: u64,
    dropped_bytes: u64,
}

/// What metrics tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) waiting: u64,
    pub(crate) limit: u64,
    pub(crate) dropped: u64,
    pub(crate) dropped_bytes: u64,
    pub(crate) written: u64,
    pub(crate) files: u64,
    pub(crate) has_problem: bool,
    pub(crate) free_bytes: u64,
}

impl Outbox {
    /// Starts the writer, with the records that the database holds.
    ///
    /// # Errors
    /// A folder that cannot be made, or no thread.
    pub(crate) fn start(
        charging: &ChargingSettings,
        settings: &Settings,
        (cdrs, stream): (Kept, u32),
        store: Arc<Store>,
    ) -> anyhow::Result<Self> {
        let folder = &charging.directory;
        make(folder).map_err(crate::exit::unusable)?;
        let (waiting, limit) = (cdrs.waiting.len(), charging.waiting_max);
        let (to_writer, from_runtime) = channel();
        let (to_runtime, durable) = mpsc::channel(AHEAD);
        let (told, status) = watch::channel(Status::default());
        let writer = writer::Writer {
            settings: spool_settings(charging, settings, stream),
            disk: Disk::new(folder.clone()),
            min_free_bytes: charging.min_free_bytes,
            cdrs: from_runtime,
            durable: to_runtime,
            told,
            status_file: status_file(settings),
            sync: Box::new(move || store.sync().map_err(|error| error.to_string())),
            now: Box::new(writer::clocks()),
            problem: None,
        };
        std::thread::Builder::new().name("charging".to_owned()).spawn(move || writer.run(cdrs))?;
        Ok(Self { to_writer, durable, status, waiting, limit, dropped: 0, dropped_bytes: 0 })
    }

    /// Whether there is room for one more record in the database; one without is lost, and named.
    pub(crate) fn admits(&mut self, cdr: &Cdr) -> bool {
        let has_room = self.waiting < self.limit;
        if has_room {
            self.waiting += 1;
            if self.waiting == self.limit / 2 {
                tracing::warn!(
                    "{} charging records wait for a file: half of charging.waiting_max",
                    self.waiting
                );
            }
        } else {
            let (uplink, downlink) = cdr.bytes();
            self.dropped += 1;
            self.dropped_bytes = self.dropped_bytes.saturating_add(uplink).saturating_add(downlink);
            let (serial, seid) = (cdr.serial, cdr.session.seid);
            let imsi = cdr.session.user.imsi.as_deref().unwrap_or("-");
            tracing::error!(
                "charging record {serial} is lost, there is no room for it: session {seid:#x}, IMSI {imsi}, \
                 {uplink} bytes up and {downlink} down"
            );
        }
        has_room
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
        let status = self.status.borrow();
        Figures {
            waiting: self.waiting as u64,
            limit: self.limit as u64,
            dropped: self.dropped,
            dropped_bytes: self.dropped_bytes,
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

fn unusable(folder: &Path) -> String {
    format!("charging.directory {} cannot be used", folder.display())
}

/// Makes the folder, and asks the system whether files can be made in it: one that were made to find out would be taken for
/// records by whoever fetches them.
///
/// # Errors
/// The key, and why not.
pub(crate) fn try_folder(folder: &Path) -> anyhow::Result<()> {
    make(folder)?;
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

//! What was counted outlives the process: cells of accounts, and whose they are, lie in a file of a file system in memory. A process
//! that is killed leaves it as it was at that moment, and the next one tells the control plane.
//!
//! | part of the file | what it holds |
//! |---|---|
//! | [`Header`] | which life of the engine it is of, and how the rest is laid out |
//! | a section for each worker | its cells, then whose their counts are ([`Label`]) |
//!
//! The file is locked as long as the process lives: that of one that is dead can be locked.

mod former;
mod table;

use crate::config::Limits;
use crate::state::{Cell, Label, cells};
use crate::steering::Crew;
use nix::sys::statvfs::fstatvfs;
use nix::time::ClockId;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use former::Former;
pub(crate) use table::Table;

/// Sections and tables begin with a huge page.
const ALIGN: u64 = 2 << 20;
/// Whose it is, and how it is laid out: the last octet changes with that, beside the sizes that [`Header`] says.
const MAGIC: u64 = u64::from_le_bytes(*b"anchor\0\x01");
/// Files have the names of their node and of the life that counts in them, and this.
const SUFFIX: &str = ".counts";

/// First in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: u64,
    epoch: u64,
    /// When the clock of this life began, on the machine's ([`monotonic_ns`]).
    zero_ns: u64,
    workers: u64,
    /// Of each worker, at most.
    cells: u64,
    cell_bytes: u64,
    label_bytes: u64,
}

/// The file of this life of the engine. It is left behind unless it is [forgotten](Lasting::forget).
#[derive(Debug)]
pub struct Lasting {
    file: File,
    path: PathBuf,
    epoch: u64,
}

impl PartialEq for Lasting {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.epoch) == (&other.path, other.epoch)
    }
}

impl Eq for Lasting {}

/// The part of the file that is one worker's.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    file: Arc<Lasting>,
    worker: usize,
}

/// Where a table lies.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    file: Arc<Lasting>,
    at: u64,
}

const fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN)
}

/// Nanoseconds on a clock that all processes see alike, until the machine is started again.
fn monotonic_ns() -> io::Result<u64> {
    let now = ClockId::CLOCK_MONOTONIC.now()?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

impl Header {
    const fn of((epoch, zero_ns): (u64, u64), workers: usize, cells: usize) -> Self {
        Self {
            magic: MAGIC,
            epoch,
            zero_ns,
            workers: workers as u64,
            cells: cells as u64,
            cell_bytes: size_of::<Cell>() as u64,
            label_bytes: size_of::<Label>() as u64,
        }
    }

    /// Whether this program lays it out so.
    const fn is_ours(&self) -> bool {
        let ours = Self::of((0, 0), 0, 0);
        self.magic == ours.magic && self.cell_bytes == ours.cell_bytes && self.label_bytes == ours.label_bytes
    }

    /// Where a worker's cells begin, and where it says whose their counts are.
    const fn section(&self, worker: u64) -> [u64; 2] {
        let cells = aligned(self.cells * self.cell_bytes);
        let start = ALIGN + worker * (cells + aligned(self.cells * self.label_bytes));
        [start, start + cells]
    }

    const fn bytes(&self) -> u64 {
        self.section(self.workers)[0]
    }
}

impl Lasting {
    /// A new file for this life of the node's engine, in a folder that is in memory. Nothing is in it yet.
    ///
    /// # Errors
    /// The system's: of a folder that cannot be written to.
    pub fn create(folder: &Path, node: &str, epoch: u64) -> io::Result<Self> {
        let path = folder.join(format!("{node}.{epoch:016x}{SUFFIX}"));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, path, epoch }),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::ResourceBusy.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All that was counted has been told: nobody needs it once this process is gone.
    ///
    /// # Errors
    /// The system's.
    pub fn forget(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// Whether there is the room for what the workers of a crew may count, and the kernel lets it be taken.
    ///
    /// # Errors
    /// The system's, as of kernels before 5.14; [`io::ErrorKind::StorageFull`] where there is not.
    pub fn has_room_for(&self, crew: &Crew, limits: &Limits) -> io::Result<()> {
        let own = crew.share(limits);
        self.has_room(&Header::of((0, 0), crew.workers, cells(own.sessions, own.pdrs)))?;
        self.file.set_len(ALIGN)?;
        table::try_taking(&self.file)
    }

    fn has_room(&self, header: &Header) -> io::Result<()> {
        let room = fstatvfs(&self.file)?;
        match header.bytes() > room.blocks_available().saturating_mul(room.fragment_size()) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    /// Makes sections for so many workers, of so many cells each at most.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::StorageFull`] where the folder has not the room for all of them.
    pub(crate) fn lay_out(self: &Arc<Self>, workers: usize, cells: usize) -> io::Result<Vec<Section>> {
        let header = Header::of((self.epoch, monotonic_ns()?), workers, cells);
        self.has_room(&header)?;
        self.file.set_len(header.bytes())?;
        self.file.write_all_at(header.as_bytes(), 0)?;
        Ok((0..workers).map(|worker| Section { file: Arc::clone(self), worker }).collect())
    }
}

impl Section {
    /// Where tables of so many cells and as many labels lie.
    pub(crate) fn places(&self, cells: usize) -> [Place; 2] {
        let header = Header::of((0, 0), 0, cells);
        header.section(self.worker as u64).map(|at| Place { file: Arc::clone(&self.file), at })
    }
}

//! What was counted outlives the process, and so does what is known of connections that nobody else knows: both lie in a file of a file
//! system in memory. A process that is killed leaves it as it was at that moment, and the next one tells the control plane of the counts
//! and goes on with the connections.
//!
//! | part of the file | what it holds |
//! |---|---|
//! | [`Header`] | which life of the engine it is of, and how the rest is laid out |
//! | a section for each worker | a table for each [`Part`] |
//!
//! The file is locked as long as the process lives: that of one that is dead can be locked.

mod former;
mod learned;
mod legacy;
mod table;

use crate::config::Limits;
use crate::state::{
    Cell, FlowBlock, Label, Redirection, Shift, cells, connection_places, flow_blocks, mix,
    redirection_places,
};
use crate::steering::Crew;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, fallocate};
use nix::sys::statvfs::fstatvfs;
use nix::time::ClockId;
use nix::unistd::{Whence, geteuid, lseek};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

pub use former::Former;
pub use learned::{Learned, LearnedFlow};
pub(crate) use legacy::Inherited;
pub use legacy::Legacy;
pub(crate) use table::Table;

/// Sections and tables begin with a huge page.
const ALIGN: u64 = 2 << 20;
/// Whose it is, and how it is laid out: the last octet changes with that, beside the sizes that [`Header`] says.
const MAGIC: u64 = u64::from_le_bytes(*b"anchor\0\x02");
/// Files have the names of their node and of the life that counts in them, and this.
const SUFFIX: &str = ".counts";

/// The tables of a section, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What is counted...
    Cells,
    /// ... and whose it is.
    Labels,
    /// Flows that are sent to other addresses.
    Redirections,
    /// Connections whose numbers differ on both sides.
    Shifts,
    /// Flows, where they lie here.
    Flows,
}

const PARTS: usize = 5;
/// Those of what has been told once the control plane has heard of it.
const COUNTS: [Part; 2] = [Part::Cells, Part::Labels];
/// Bytes of an entry, by [`Part`].
const ENTRY_BYTES: [u64; PARTS] = [
    size_of::<Cell>() as u64,
    size_of::<Label>() as u64,
    size_of::<Redirection>() as u64,
    size_of::<Shift>() as u64,
    size_of::<FlowBlock>() as u64,
];

/// First in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: u64,
    epoch: u64,
    /// When the clock of this life began, on the machine's ([`monotonic_ns`]).
    zero_ns: u64,
    workers: u64,
    /// Of each worker, at most, by [`Part`].
    entries: [u64; PARTS],
    entry_bytes: [u64; PARTS],
}

/// The file of this life of the engine. It is left behind unless it is [forgotten](Lasting::forget).
#[derive(Debug)]
pub struct Lasting {
    file: File,
    path: PathBuf,
    epoch: u64,
    keeps_flows: bool,
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
    header: Header,
    worker: u64,
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
    /// Of so many workers, each with these limits.
    fn of((epoch, zero_ns): (u64, u64), workers: usize, own: &Limits, keeps_flows: bool) -> Self {
        let cells = cells(own.sessions, own.pdrs);
        let (redirections, shifts) =
            (redirection_places(own.redirections), connection_places(own.connections));
        let flows = if keeps_flows { flow_blocks(own.flows) } else { 0 };
        let entries = [cells, cells, redirections, shifts, flows].map(|entries| entries as u64);
        Self { magic: MAGIC, epoch, zero_ns, workers: workers as u64, entries, entry_bytes: ENTRY_BYTES }
    }

    /// That of a file; all zero where it has none yet.
    fn read(file: &File) -> io::Result<Self> {
        let mut header = Self::new_zeroed();
        if file.metadata()?.len() > 0 {
            file.read_exact_at(header.as_mut_bytes(), 0)?;
        }
        Ok(header)
    }

    /// Whether this program lays it out so.
    fn is_ours(&self) -> bool {
        (self.magic, self.entry_bytes) == (MAGIC, ENTRY_BYTES)
    }

    /// Entries of a part, and bytes of one.
    const fn shape(&self, part: Part) -> (u64, u64) {
        (self.entries[part as usize], self.entry_bytes[part as usize])
    }

    fn section_bytes(&self) -> u64 {
        self.parts_bytes(PARTS)
    }

    /// Of the first so many parts of a section.
    fn parts_bytes(&self, count: usize) -> u64 {
        let shapes = self.entries.iter().zip(self.entry_bytes).take(count);
        shapes.map(|(entries, bytes)| aligned(entries * bytes)).sum()
    }

    /// Where a worker's part begins.
    fn place(&self, worker: u64, part: Part) -> u64 {
        ALIGN + worker * self.section_bytes() + self.parts_bytes(part as usize)
    }

    fn bytes(&self) -> u64 {
        ALIGN + self.workers * self.section_bytes()
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
            Ok(()) => Ok(Self { file, path, epoch, keeps_flows: false }),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::ResourceBusy.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// With flows in it or without. Flows are read at random: a folder that lets nobody have huge pages is no place for them.
    #[must_use]
    pub fn keeping_flows(self, keeps_flows: bool) -> Self {
        Self { keeps_flows, ..self }
    }

    /// Whether flows lie in it.
    pub const fn keeps_flows(&self) -> bool {
        self.keeps_flows
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Nobody needs it once this process is gone.
    ///
    /// # Errors
    /// The system's.
    pub fn forget(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// What is said here of applications of flows is what the next life hears of them if this one is killed, beside the flows themselves
    /// where these are kept.
    ///
    /// # Errors
    /// The system's.
    pub fn say(&self, learned: &Learned) -> io::Result<()> {
        learned.leave(&self.beside())
    }

    /// Workers have ended, and flows were of these applications. Those that were kept themselves are not needed then.
    ///
    /// # Errors
    /// The system's.
    pub fn leave(&self, learned: &Learned) -> io::Result<()> {
        if learned.flows.is_empty() {
            remove(&self.beside())?
        } else {
            self.say(learned)?
        }
        self.punch(&Header::read(&self.file)?, &[Part::Flows])
    }

    /// All that was counted has been told, and workers count no more: what is left is what the next life goes on with, if there is anything.
    ///
    /// # Errors
    /// The system's.
    pub fn forget_counts(&self) -> io::Result<()> {
        let header = Header::read(&self.file)?;
        if !header.is_ours() || Legacy::of_connections(&self.file, &header)?.is_empty() {
            return self.forget();
        }
        self.punch(&header, &COUNTS)
    }

    /// Where it is written of what applications flows are.
    fn beside(&self) -> PathBuf {
        self.path.with_extension(learned::SUFFIX.trim_start_matches('.'))
    }

    /// Gives the memory of these parts back.
    fn punch(&self, header: &Header, parts: &[Part]) -> io::Result<()> {
        let places = (0..header.workers)
            .flat_map(|worker| parts.iter().map(move |part| (header.place(worker, *part), *part)));
        for (at, part) in places {
            let (entries, bytes) = header.shape(part);
            let punches = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            if entries > 0 {
                fallocate(&self.file, punches, at as i64, (entries * bytes) as i64)?;
            }
        }
        Ok(())
    }

    /// Whether there is the room for what the workers of a crew may count, and the kernel lets it be taken.
    ///
    /// # Errors
    /// The system's, as of kernels before 5.14; [`io::ErrorKind::StorageFull`] where there is not.
    pub fn has_room_for(&self, crew: &Crew, limits: &Limits) -> io::Result<()> {
        let own = crew.share(limits);
        self.has_room(&Header::of((0, 0), crew.workers, &own, self.keeps_flows))?;
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

    /// Makes sections for so many workers, each with these limits.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::StorageFull`] where the folder has not the room for all of them.
    pub(crate) fn lay_out(self: &Arc<Self>, workers: usize, own: &Limits) -> io::Result<Vec<Section>> {
        let header = Header::of((self.epoch, monotonic_ns()?), workers, own, self.keeps_flows);
        self.has_room(&header)?;
        self.file.set_len(header.bytes())?;
        self.file.write_all_at(header.as_bytes(), 0)?;
        Ok((0..header.workers).map(|worker| Section { file: Arc::clone(self), header, worker }).collect())
    }
}

impl Section {
    /// Where a table lies, which has as many entries at most as the limits say; `None` of one that lies elsewhere.
    pub(crate) fn place(&self, part: Part) -> Option<Place> {
        let (entries, _) = self.header.shape(part);
        let place = || Place { file: Arc::clone(&self.file), at: self.header.place(self.worker, part) };
        (entries > 0).then(place)
    }
}

/// Removes a file that may not be there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// A node's files in a folder.
fn files(folder: &Path, node: &str, suffix: &str) -> impl Iterator<Item = PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(move |path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let rest = name.strip_prefix(node).and_then(|rest| rest.strip_prefix('.'));
        rest.and_then(|rest| rest.strip_suffix(suffix)).is_some_and(|life| !life.contains('.'))
    })
}

/// In a folder that others may write to, too, a file is ours if we made it.
fn open_own(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options.read(true).write(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(path)?;
    match file.metadata()?.uid() == geteuid().as_raw() {
        true => Ok(file),
        false => Err(io::Error::other("it is another user's")),
    }
}

/// The first place from one on, before another, where anything may be written: what never was is a hole in the file.
fn written(file: &File, (from, end): (u64, u64)) -> io::Result<Option<u64>> {
    if from >= end {
        return Ok(None);
    }
    match lseek(file, from as i64, Whence::SeekData) {
        Ok(found) => Ok(Some(found as u64).filter(|found| *found < end)),
        Err(Errno::ENXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What an entry says of itself, to be written behind all else: of one that was not written whole it says something else. Of a multiple of
/// eight octets.
pub(crate) fn seal(octets: &[u8]) -> u32 {
    let words = octets.chunks_exact(8).filter_map(<[u8]>::first_chunk).map(|word| u64::from_le_bytes(*word));
    (words.fold(MAGIC, |seal, word| mix(seal ^ word, SEAL)) >> 32) as u32
}

/// An odd number without a pattern.
const SEAL: u64 = 0x9e37_79b9_7f4a_7c15;

//! What a life of the engine that is over has counted and left behind.

use super::{Header, Legacy, Part, SUFFIX, files, open_own, written};
use crate::state::{Cell, Label, told};
use dplink::UsageCounts;
use rules::Seid;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use zerocopy::IntoBytes;

/// Cells that are read at once.
const PORTION: u64 = 1_024;

/// A file of counts whose owner is gone.
#[derive(Debug)]
pub struct Former {
    file: File,
    path: PathBuf,
    header: Header,
    written: SystemTime,
    /// What is read next: of which worker, and which of its cells.
    next: (u64, u64),
}

impl Former {
    /// Those of a node, the oldest first. A file that cannot be read is not among them; it is passed to `unread`, with the reason.
    pub fn all(folder: &Path, node: &str, mut unread: impl FnMut(&Path, io::Error)) -> Vec<Self> {
        let mut all = vec![];
        for path in files(folder, node, SUFFIX) {
            match Self::open(&path) {
                Ok(former) => all.extend(former),
                Err(error) => unread(&path, error),
            }
        }
        all.sort_by_key(|former: &Self| former.written);
        all
    }

    /// `None` where its owner lives, or ended before it was laid out.
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = open_own(path)?;
        let about = file.metadata()?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let header = Header::read(&file)?;
        if header.magic == 0 {
            return fs::remove_file(path).map(|()| None);
        }
        if !header.is_ours() {
            return Err(io::Error::other("it is laid out in another way than this version's"));
        }
        let written = about.modified()?;
        Ok(Some(Self { file, path: path.to_owned(), header, written, next: (0, 0) }))
    }

    /// Which life of the engine counted.
    pub const fn epoch(&self) -> u64 {
        self.header.epoch
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When it was laid out, or had more memory last.
    pub const fn written(&self) -> SystemTime {
        self.written
    }

    /// The file is of no use any more. Its counts go first: told once more by another life they would be billed twice.
    ///
    /// # Errors
    /// The system's.
    pub fn forget(self) -> io::Result<()> {
        self.file.set_len(0)?;
        fs::remove_file(&self.path)
    }

    /// Whether it has counted anything.
    ///
    /// # Errors
    /// The system's.
    pub fn has_counted(&mut self) -> io::Result<bool> {
        self.rewind();
        while let Some(counts) = self.counts()? {
            if !counts.is_empty() {
                self.rewind();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What it knew of connections.
    ///
    /// # Errors
    /// The system's.
    pub fn legacy(&self) -> io::Result<Legacy> {
        Legacy::read(&self.file, &self.header)
    }

    /// From the beginning again.
    pub const fn rewind(&mut self) {
        self.next = (0, 0);
    }

    /// What some of its URRs have counted, in the order of cells, which may be of none; `None` behind the last. When the first packet came
    /// since it was told is not known, but that it was not behind the last.
    ///
    /// # Errors
    /// The system's.
    pub fn counts(&mut self) -> io::Result<Option<Vec<(Seid, UsageCounts)>>> {
        let now_ns = super::monotonic_ns()?.saturating_sub(self.header.zero_ns);
        let (worker, cell) = self.next;
        if worker >= self.header.workers {
            return Ok(None);
        }
        let [cells_at, labels_at] = [Part::Cells, Part::Labels].map(|part| self.header.place(worker, part));
        let ((_, cell_bytes), (entries, label_bytes)) =
            (self.header.shape(Part::Cells), self.header.shape(Part::Labels));
        let Some(cell) = self.written_from(labels_at, cell)? else {
            self.next = (worker + 1, 0);
            return Ok(Some(vec![]));
        };
        let length = PORTION.min(entries - cell) as usize;
        let mut labels = vec![Label::default(); length];
        self.file.read_exact_at(labels.as_mut_bytes(), labels_at + cell * label_bytes)?;
        let mut cells = vec![0; length * size_of::<Cell>()];
        self.file.read_exact_at(&mut cells, cells_at + cell * cell_bytes)?;
        self.next = (worker, cell + length as u64);
        let cells = cells.chunks_exact(size_of::<Cell>());
        let told = labels.iter().zip(cells).filter_map(|(label, cell)| told(label, cell, now_ns));
        let with_first = |(seid, counts): (Seid, UsageCounts)| {
            (seid, UsageCounts { first_packet_age_ms: counts.last_packet_age_ms, ..counts })
        };
        Ok(Some(told.map(with_first).collect()))
    }

    /// The first cell from there on that may have a label.
    fn written_from(&self, labels_at: u64, cell: u64) -> io::Result<Option<u64>> {
        let (entries, label_bytes) = self.header.shape(Part::Labels);
        let ends = (labels_at + cell * label_bytes, labels_at + entries * label_bytes);
        let found = written(&self.file, ends)?;
        Ok(found.map(|found| found.saturating_sub(labels_at) / label_bytes))
    }
}

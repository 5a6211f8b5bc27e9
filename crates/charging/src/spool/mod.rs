//! CDRs into files, each once, whenever the process dies.
//!
//! The session database keeps a record from the moment it is closed until it is in a file of every format. Records are
//! numbered in that order, so files hold ascending numbers, and one number says of a folder what is in it. It is kept in
//! a *mark*, one for each format. A file is made in four steps, each durable before the next:
//!
//! 1. the whole file under a temporary name, and the mark under another,
//! 2. the mark gets its name: which records the file holds, and the names,
//! 3. the file gets its name: readers see it, and may take it away,
//! 4. the database forgets its records.
//!
//! The first step is that of all formats before the second is that of any: a disk that becomes full, which names take nothing of, leaves
//! files of all formats or of none, so that records may then go to another folder.
//!
//! A process that dies before 2 leaves a temporary that nobody knows, which is removed; one that dies after it leaves
//! one that the next process gives its name. A file that was taken away meanwhile is not written again: its temporary is
//! gone and its mark is there.
//!
//! A format that an operator adds, or has again, goes on where the others are (`formats`): what came before is in their files, and
//! is not lost.
//!
//! A folder that is new, or had again after another, knows nothing of records that went into the other: the database says
//! up to which number all that were not without room are in files, wherever those are (`Kept`).
//!
//! Records wait by a time that never goes back. The time of day is set by people and by servers, and only goes into files.

mod folder;
mod formats;
mod mark;
mod queue;

pub use folder::Folder;

use crate::ber::Context;
use crate::file::{self, Closure, Format, Frame};
use crate::record::Cdr;
use crate::zone::Zone;
use formats::Untold;
use machine::Time;
use mark::Mark;
use queue::Queue;
use std::net::IpAddr;
use std::time::Duration;

/// What an operator sets, and who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Our Node ID.
    pub node: String,
    /// Our address.
    pub address: IpAddr,
    /// Whose local time is told.
    pub zone: Zone,
    /// Each gets files of its own.
    pub formats: Vec<Format>,
    /// A file is closed so long after its first record.
    pub file_age: Duration,
    /// A file is closed with so many records.
    pub file_cdrs: usize,
    /// A file is closed before it has more octets, unless one record has.
    pub file_bytes: usize,
    /// Tells apart databases, whose records are each counted from 1: the recovery time stamp they began with.
    pub stream: u32,
}

/// Now, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// What ages are counted by.
    pub time: Time,
    /// The time of day that files tell, in milliseconds since 1900.
    pub wall_ms: u64,
}

/// Records that wait for a file.
#[derive(Debug)]
pub struct Spool {
    settings: Settings,
    marks: Vec<Mark>,
    /// Something went wrong: what the folder holds is looked up anew before anything else is written.
    is_unsure: bool,
    waiting: Queue,
    /// The last record that is in files of every format, in whatever folder; none, where that is not known.
    filed: Option<u64>,
}

/// What the database says of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Those that wait for a file, ascending.
    pub waiting: Vec<Cdr>,
    /// The last that was said to be durable; none, where none was, or a version made the database that did not note it.
    pub filed: Option<u64>,
}

/// Records that are in files of every format: their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durable {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// How many.
    pub cdrs: usize,
}

/// The highest number of a record of a stream in the files of a folder, of whatever format; 0 where there is none.
///
/// # Errors
/// The folder's.
pub fn last_in_files<F: Folder>(stream: u32, folder: &F) -> Result<u64, F::Error> {
    let lasts = Format::ALL.iter().map(|format| Mark::last_of(*format, stream, folder));
    lasts.collect::<Result<Vec<u64>, _>>().map(|lasts| lasts.into_iter().max().unwrap_or(0))
}

impl Spool {
    /// A spool over a folder, which is put in order.
    ///
    /// # Errors
    /// The folder's.
    pub fn open<F: Folder>(
        settings: Settings,
        folder: &mut F,
        kept: Kept,
        now: Time,
    ) -> Result<Self, F::Error> {
        let Kept { waiting, filed } = kept;
        let mut spool = Self { settings, marks: vec![], is_unsure: true, waiting: Queue::default(), filed };
        waiting.into_iter().for_each(|cdr| spool.add(cdr, now));
        spool.is_unsure = !spool.restore(folder)?.is_empty();
        Ok(spool)
    }

    /// Looks up what the folder holds; says what it is yet to be told.
    fn restore<F: Folder>(&mut self, folder: &mut F) -> Result<Untold, F::Error> {
        let Settings { formats, stream, .. } = &self.settings;
        let (marks, untold) = formats::restore(formats, *stream, folder)?;
        self.marks = marks;
        for name in folder.list()?.iter().filter(|name| mark::is_temporary(name)) {
            folder.remove(name)?;
        }
        Ok(untold)
    }

    /// Takes a record that the database has. They come in the order of their numbers.
    pub fn add(&mut self, cdr: Cdr, now: Time) {
        self.waiting.push(cdr, now, &self.settings);
    }

    /// Records that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a file is to be closed: there are enough records for one, whatever the time, or the first has waited long
    /// enough.
    pub fn is_due(&self, now: Time) -> bool {
        self.waiting.is_due(&self.settings, now)
    }

    /// Makes a file of each format, if one is due or if `is_all`; says what is then durable.
    ///
    /// # Errors
    /// The folder's: nothing is lost, it is tried again with the next call.
    pub fn rotate<F: Folder>(
        &mut self,
        folder: &mut F,
        is_all: bool,
        now: Now,
    ) -> Result<Option<Durable>, F::Error> {
        let is_due = self.is_due(now.time);
        if self.is_empty() || !(is_due || is_all) {
            return Ok(None);
        }
        if self.is_unsure {
            self.restore(folder)?.tell(folder)?;
        }
        let (taken, closure) = self.waiting.next_file(&self.settings, is_due);
        let cdrs = self.waiting.first(taken);
        self.is_unsure = true;
        let made = (&self.settings, closure, now.wall_ms);
        let written = |mark| write(mark, (&cdrs, self.filed), made, folder);
        let next = self.marks.iter().map(written).collect::<Result<Vec<_>, _>>();
        let next = next.inspect_err(|_| give_back(folder))?;
        for (mark, next) in self.marks.iter_mut().zip(next) {
            if let Some(next) = next {
                next.name(folder)?;
                *mark = next;
            }
        }
        self.is_unsure = false;
        self.waiting.drop_first(taken);
        self.filed = cdrs.last().map(|cdr| cdr.serial).or(self.filed);
        let (first, last) = (cdrs.first(), cdrs.last());
        let durable =
            |(first, last): (&Cdr, &Cdr)| Durable { first: first.serial, last: last.serial, cdrs: taken };
        Ok(first.zip(last).map(durable))
    }
}

/// Removes what was written of files that come to nothing, which holds room that a full disk lacks. What cannot be removed now is when
/// the next are made.
fn give_back<F: Folder>(folder: &mut F) {
    let names = folder.list().unwrap_or_default();
    names.iter().filter(|name| mark::is_temporary(name)).for_each(|name| drop(folder.remove(name)));
}

/// Writes the file of one format, and the mark with it, under names of which nobody knows; of records that are in one already, none.
fn write<F: Folder>(
    mark: &Mark,
    (cdrs, filed): (&[Cdr], Option<u64>),
    (settings, closure, now_ms): (&Settings, Closure, u64),
    folder: &mut F,
) -> Result<Option<Mark>, F::Error> {
    let new: Vec<Cdr> = cdrs.iter().filter(|cdr| cdr.serial > mark.last).cloned().collect();
    let (Some(first), Some(last)) = (new.first(), new.last().map(|cdr| cdr.serial)) else { return Ok(None) };
    let before_it = first.serial.saturating_sub(1);
    let filed = filed.unwrap_or(before_it).min(before_it).max(mark.last);
    let frame = Frame {
        context: Context { node: &settings.node, zone: &settings.zone },
        address: settings.address,
        sequence: mark.files.saturating_add(1),
        closure,
        // Records are numbered without gaps: numbers that are neither here nor in an earlier file are nowhere.
        lost: last.saturating_sub(filed).saturating_sub(new.len() as u64),
        now_ms,
    };
    let octets = file::encode(&new, mark.format, frame);
    let next = mark.next(settings.stream, last, file::name(mark.format, &frame));
    folder.write(&next.temporary(), &octets)?;
    next.write(folder)?;
    Ok(Some(next))
}

#[cfg(test)]
mod tests;

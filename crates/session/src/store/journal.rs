//! The database's journal goes to the disk as it grows. When one journal follows another the database sees to it that the former is on
//! the disk, and takes nothing meanwhile: of 64 MiB that is a fifth of a second or more, in which no request is answered. So most of
//! them are there by then.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

/// Changes that are not worth the disk's time: some 2 MiB of sessions.
const CHANGES: usize = 8_192;

/// Who brings the journal to the disk, beside who writes it.
pub(super) struct Journal {
    changes: AtomicUsize,
    wake: SyncSender<()>,
}

impl Journal {
    /// Of the database in a folder, for as long as this lives.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let (wake, woken) = mpsc::sync_channel(1);
        let folder = folder.to_owned();
        thread::Builder::new().name("journal".to_owned()).spawn(move || follow(&folder, &woken))?;
        Ok(Self { changes: AtomicUsize::new(0), wake })
    }

    /// So many changes more are in it.
    pub(super) fn grows(&self, changes: usize) {
        if self.changes.fetch_add(changes, Ordering::Relaxed) + changes >= CHANGES {
            self.changes.store(0, Ordering::Relaxed);
            // It may be at it still.
            let _ = self.wake.try_send(());
        }
    }
}

fn follow(folder: &Path, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        // What the disk does not take the database hears of when it syncs the file itself.
        let journal = newest(folder).and_then(|journal| File::open(journal).ok());
        let _ = journal.map(|journal| journal.sync_data());
    }
}

/// The journal that is written: they are numbered.
fn newest(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let journals = files.filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    journals.max_by_key(|path| path.file_stem()?.to_str()?.parse::<u64>().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Change, Store};

    #[test]
    fn the_newest_journal_is_found_by_its_number() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest(folder.path()), None);
        for name in ["9.jnl", "10.jnl", "lock", "x.jnl"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(newest(folder.path()), Some(folder.path().join("10.jnl")));
    }

    #[test]
    fn the_disk_is_asked_once_there_is_something_to_write() {
        let (wake, woken) = mpsc::sync_channel(1);
        let journal = Journal { changes: AtomicUsize::new(0), wake };
        (1..CHANGES).for_each(|_| journal.grows(1));
        assert!(woken.try_recv().is_err());
        journal.grows(1);
        assert!(woken.try_recv().is_ok());
        // Who is asked again while at it goes on once; and the next time is as far as the first.
        (0..3).for_each(|_| journal.grows(CHANGES));
        assert_eq!(woken.try_iter().count(), 1);
        (1..CHANGES).for_each(|_| journal.grows(1));
        assert!(woken.try_recv().is_err());
    }

    /// The database's files are its own affair: this tells when they are others.
    #[test]
    fn what_is_applied_is_in_the_file_that_is_brought_to_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(&folder.path().join("sessions")).unwrap();
        store.apply(&[Change::ErasePfds("an application that nobody has".to_owned())]).unwrap();
        let journal = fs::read(newest(&folder.path().join("sessions")).unwrap()).unwrap();
        let name = b"an application that nobody has";
        assert!(journal.windows(name.len()).any(|octets| octets == name));
    }
}

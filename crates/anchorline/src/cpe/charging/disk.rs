//! A folder of the disk, whose operations are durable when they return.

use charging::spool::Folder;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Records say who used what (IMSI, MSISDN, addresses): whoever fetches them is us or of our group.
const FOLDER_MODE: u32 = 0o750;
const FILE_MODE: u32 = 0o640;

/// A folder.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    /// The folder itself, held against other nodes, whose marks would be taken for ours.
    held: Option<Flock<File>>,
}

impl Disk {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, held: None }
    }

    /// Holds the folder until this is dropped, or the process ends however it ends; whether nobody else does. It takes no file, so a
    /// full disk does not matter.
    ///
    /// # Errors
    /// The folder cannot be opened, or its file system knows no locks.
    pub(super) fn hold(&mut self) -> io::Result<bool> {
        let folder = File::open(&self.path).map_err(naming(&self.path))?;
        match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            Ok(held) => self.held = Some(held),
            Err((_, Errno::EWOULDBLOCK)) => return Ok(false),
            Err((_, error)) => return Err(naming(&self.path)(error.into())),
        }
        Ok(true)
    }

    /// Makes the folder, where it is absent, for us and our group alone; one that is there stays as it is, and others above it are
    /// made as usual.
    pub(super) fn make(&self) -> io::Result<()> {
        let make = || match DirBuilder::new().mode(FOLDER_MODE).create(&self.path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.path.is_dir() => Ok(()),
            made => made,
        };
        make().or_else(|error| match (error.kind(), self.path.parent()) {
            (ErrorKind::NotFound, Some(above)) => fs::create_dir_all(above).and_then(|()| make()),
            _ => Err(error),
        })
    }

    /// Whoever holds a folder that was taken away holds the one that is there now, before anything is written to it.
    fn hold_again(&mut self) -> io::Result<()> {
        let Some(held) = &self.held else { return Ok(()) };
        let (ours, there) = (held.metadata()?, fs::metadata(&self.path)?);
        let is_it = (ours.dev(), ours.ino()) == (there.dev(), there.ino());
        if !is_it && self.hold().is_ok_and(|is_ours| !is_ours) {
            return Err(io::Error::other("another node uses its folder"));
        }
        Ok(())
    }

    /// Makes it while files are written: its own name is durable with the folder above, where that may be opened.
    fn make_again(&self) -> io::Result<()> {
        self.make()?;
        let above = self.path.parent().and_then(|above| File::open(above).ok());
        above.map_or(Ok(()), |above| above.sync_all())
    }

    /// What is free on its file system, for whoever we are.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        let of = nix::sys::statvfs::statvfs(&self.path).map_err(|error| naming(&self.path)(error.into()))?;
        Ok(of.blocks_available().saturating_mul(of.fragment_size()))
    }

    /// Names are durable with their folder.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(naming(&self.path))
    }
}

/// The system's own errors say what is wrong, and not with which file.
fn naming(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Folder for Disk {
    type Error = io::Error;

    fn list(&self) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name().into_string().ok());
        let names =
            fs::read_dir(&self.path).and_then(|all| all.map(name).filter_map(Result::transpose).collect());
        match names {
            // Nothing is in a folder that is gone; the next file makes it again.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(vec![]),
            names => names.map_err(naming(&self.path)),
        }
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.path.join(name);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(naming(&path)),
        }
    }

    /// Somebody may have taken the folder away since the start: it is made again.
    fn write(&mut self, name: &str, octets: &[u8]) -> io::Result<()> {
        let path = self.path.join(name);
        let write = |mut file: File| {
            file.write_all(octets)?;
            file.sync_all()
        };
        let open = || OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&path);
        let file = self.hold_again().and_then(|()| open()).or_else(|error| match error.kind() {
            ErrorKind::NotFound => self.make_again().and_then(|()| self.hold_again()).and_then(|()| open()),
            _ => Err(error),
        });
        file.and_then(write).map_err(naming(&path))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let path = self.path.join(to);
        fs::rename(self.path.join(from), &path).map_err(naming(&path))?;
        self.sync()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        fs::remove_file(&path).map_err(naming(&path))?;
        self.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_written_renamed_listed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::new(folder.path().to_owned());
        disk.write(".tmp", b"longer").unwrap();
        disk.write(".tmp", b"short").unwrap();
        disk.rename(".tmp", "file").unwrap();
        assert_eq!(disk.list().unwrap(), ["file"]);
        assert_eq!((disk.read("file").unwrap(), disk.read(".tmp").unwrap()), (Some(b"short".to_vec()), None));
        disk.remove("file").unwrap();
        assert!(disk.list().unwrap().is_empty() && disk.free_bytes().unwrap() > 0);
    }

    #[test]
    fn a_folder_that_is_gone_is_empty_and_made_again_for_the_next_file() {
        let above = tempfile::tempdir().unwrap();
        let mut disk = Disk::new(above.path().join("charging/cdr"));
        for content in [b"1", b"2"] {
            assert!(disk.list().unwrap().is_empty());
            disk.write(".tmp", content).unwrap();
            disk.rename(".tmp", "file").unwrap();
            assert_eq!(disk.read("file").unwrap(), Some(content.to_vec()));
            fs::remove_dir_all(above.path().join("charging")).unwrap();
        }
    }

    #[test]
    fn a_folder_is_one_nodes_until_that_ends_also_when_it_is_made_again() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("cdr");
        let [mut first, mut second] = [Disk::new(path.clone()), Disk::new(path.clone())];
        first.make().unwrap();
        assert_eq!([first.hold().unwrap(), second.hold().unwrap()], [true, false]);
        fs::remove_dir_all(&path).unwrap();
        first.write("file", b"").unwrap();
        assert!(!second.hold().unwrap());
        drop(first);
        assert!(second.hold().unwrap());
        // A folder that was taken away, and is another's when it is there again.
        fs::remove_dir_all(&path).unwrap();
        let mut third = Disk::new(path.clone());
        third.make().unwrap();
        assert!(third.hold().unwrap());
        for _ in 0..2 {
            let refused = second.write("file", b"").unwrap_err();
            assert!(refused.to_string().ends_with("cdr/file: another node uses its folder"), "{refused}");
        }
        drop(third);
        second.write("file", b"").unwrap();
    }

    #[test]
    fn others_on_the_host_read_no_records_and_a_folder_that_is_there_stays_as_it_is() {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let above = tempfile::tempdir().unwrap();
        let made = above.path().join("charging/cdr");
        let mut disk = Disk::new(made.clone());
        disk.make().unwrap();
        disk.write("file", b"").unwrap();
        // What the process must not grant to anybody (umask) is granted less.
        assert_eq!((mode(&made) & 0o027, mode(&made.join("file")) & 0o137), (0, 0));
        assert_eq!((mode(&made) & 0o700, mode(&made.join("file")) & 0o600), (0o700, 0o600));
        fs::set_permissions(&made, Permissions::from_mode(0o755)).unwrap();
        disk.make().unwrap();
        assert_eq!(mode(&made), 0o755);
    }

    /// A file where the folder should be.
    #[test]
    fn what_cannot_be_done_is_told_with_the_path_and_keeps_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cdr");
        fs::write(&path, b"").unwrap();
        let mut disk = Disk::new(path.clone());
        let file = path.join("a.jsonl");
        for (refused, path) in [
            (disk.write("a.jsonl", b"octets").unwrap_err(), &file),
            (disk.read("a.jsonl").unwrap_err(), &file),
            (disk.rename(".tmp", "a.jsonl").unwrap_err(), &file),
            (disk.remove("a.jsonl").unwrap_err(), &file),
            (disk.list().unwrap_err(), &path),
        ] {
            assert_eq!(refused.kind(), ErrorKind::NotADirectory);
            assert!(
                refused.to_string().starts_with(&format!("{}: Not a directory", path.display())),
                "{refused}"
            );
        }
        fs::remove_file(&path).unwrap();
        let refused = disk.free_bytes().unwrap_err();
        assert!(refused.to_string().starts_with(&format!("{}: ", path.display())), "{refused}");
        assert_eq!(refused.kind(), ErrorKind::NotFound);
    }
}

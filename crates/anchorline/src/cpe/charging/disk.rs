//! A folder of the disk, whose operations are durable when they return.

use charging::spool::Folder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

/// A folder.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
}

impl Disk {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// What is free on its file system, for whoever we are.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        let of = nix::sys::statvfs::statvfs(&self.path)?;
        Ok(of.blocks_available().saturating_mul(of.fragment_size()))
    }

    /// Names are durable with their folder.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

impl Folder for Disk {
    type Error = io::Error;

    fn list(&self) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name().into_string().ok());
        fs::read_dir(&self.path)?.map(name).filter_map(Result::transpose).collect()
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn write(&mut self, name: &str, octets: &[u8]) -> io::Result<()> {
        let path = self.path.join(name);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        file.write_all(octets)?;
        file.sync_all()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))?;
        self.sync()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))?;
        self.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

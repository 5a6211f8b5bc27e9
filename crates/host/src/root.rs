//! The tree that facts are read from.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Files of the kernel are shorter; what is longer is cut.
const TEXT_MAX: u64 = 1 << 20;
/// Entries of a folder; more are left out.
const ENTRIES_MAX: usize = 16_384;

/// A file that gave nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct Absent {
    /// The file as it is called on a running system.
    pub path: String,
    /// As the system says it.
    pub why: String,
}

impl Absent {
    fn of(path: &str, error: &io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "does not exist".to_owned(),
            io::ErrorKind::PermissionDenied => "not permitted".to_owned(),
            _ => error.to_string(),
        };
        Self { path: path.to_owned(), why }
    }
}

/// A tree with `/sys`, `/proc`, `/dev` and `/lib/firmware`: that of this system or a made one.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
}

impl Root {
    /// This system.
    pub fn system() -> Self {
        Self::at(Path::new("/"))
    }

    /// A tree below a folder.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Where a file of the system, named with its leading slash, is.
    pub fn place(&self, path: &str) -> PathBuf {
        self.path.join(path.trim_start_matches('/'))
    }

    /// The text of a file, of which octets that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// If it is not there or may not be read.
    pub fn read(&self, path: &str) -> Result<String, Absent> {
        let mut octets = Vec::new();
        let read = |octets: &mut Vec<u8>| File::open(self.place(path))?.take(TEXT_MAX).read_to_end(octets);
        read(&mut octets).map_err(|error| Absent::of(path, &error))?;
        Ok(String::from_utf8_lossy(&octets).into_owned())
    }

    /// The text of a file without white space around it; `None` if it cannot be read or is empty.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = self.read(path).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A register of a CPU, of a device of which each place is a register (`/dev/cpu/0/msr`).
    ///
    /// # Errors
    /// If it is not there or may not be read.
    pub fn register(&self, path: &str, number: u32) -> Result<u64, Absent> {
        let mut octets = [0; 8];
        let read = |octets: &mut [u8]| File::open(self.place(path))?.read_exact_at(octets, number.into());
        read(&mut octets).map_err(|error| Absent::of(path, &error))?;
        Ok(u64::from_le_bytes(octets))
    }

    /// A value that is alone in its file.
    pub fn value<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// A hexadecimal number, with or without `0x`.
    pub fn hexadecimal(&self, path: &str) -> Option<u32> {
        let text = self.text(path)?;
        u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    }

    /// Of a choice the kernel writes as `always [madvise] never`, the one in brackets, or the whole text without any.
    pub fn choice(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Some(chosen.map_or_else(|| text.clone(), |(chosen, _)| chosen.to_owned()))
    }

    /// Names in a folder, sorted; none if it cannot be read.
    pub fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.place(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.take(ENTRIES_MAX).filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The last part of what a symbolic link leads to.
    pub fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.place(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Whether a file or folder is there.
    pub fn exists(&self, path: &str) -> bool {
        self.place(path).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_below_the_root() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sys/kernel")).unwrap();
        fs::write(folder.path().join("sys/kernel/thp"), "always [madvise] never\n").unwrap();
        fs::write(folder.path().join("sys/kernel/id"), "0x8086\n").unwrap();
        let root = Root::at(folder.path());
        assert_eq!(root.choice("/sys/kernel/thp").as_deref(), Some("madvise"));
        assert_eq!(root.hexadecimal("/sys/kernel/id"), Some(0x8086));
        assert_eq!(root.list("/sys/kernel"), ["id", "thp"]);
        assert_eq!(root.read("/sys/none").unwrap_err().to_string(), "/sys/none: does not exist");
        assert!(root.list("/proc").is_empty() && root.text("/proc/cmdline").is_none());
    }
}

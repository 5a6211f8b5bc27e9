//! What a folder holds of one format.

use super::Folder;
use crate::file::Format;
use serde::{Deserialize, Serialize};

/// Names of temporaries begin so; readers leave such files alone.
const TEMPORARY: &str = ".tmp-";

/// The mark, as it is written.
#[derive(Default, Serialize, Deserialize)]
struct Written {
    stream: u32,
    files: u32,
    last: u64,
    name: String,
}

/// What a folder holds of one format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) format: Format,
    stream: u32,
    /// Files written, ever.
    pub(super) files: u32,
    /// The last record in them, or in those of other formats before this one came.
    pub(super) last: u64,
    /// What the last file is called.
    pub(super) name: String,
}

pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY)
}

/// What a file is called before it has its name.
pub(super) fn temporary_of(what: &str) -> String {
    format!("{TEMPORARY}{what}")
}

impl Mark {
    /// The mark of a folder; finishes the file it is about. One of another stream only tells how many files there
    /// were; one that cannot be read tells nothing.
    pub(super) fn restore<F: Folder>(format: Format, stream: u32, folder: &mut F) -> Result<Self, F::Error> {
        let Written { stream: its_stream, files, last, name } = written(format, folder)?;
        let mark = Self { format, stream: its_stream, files, last, name };
        if files > 0 && folder.read(&mark.temporary())?.is_some() {
            folder.rename(&mark.temporary(), &mark.name)?;
        }
        Ok(if its_stream == stream { mark } else { Self { stream, last: 0, ..mark } })
    }

    /// The last record of a stream that is in files of a format.
    pub(super) fn last_of<F: Folder>(format: Format, stream: u32, folder: &F) -> Result<u64, F::Error> {
        let written = written(format, folder)?;
        Ok(if written.stream == stream { written.last } else { 0 })
    }

    /// The mark with one more file.
    pub(super) const fn next(&self, stream: u32, last: u64, name: String) -> Self {
        Self { format: self.format, stream, files: self.files.saturating_add(1), last, name }
    }

    /// The mark of a format that comes when others have files of all up to `last`.
    pub(super) fn behind(&self, last: u64) -> Self {
        Self { last, ..self.clone() }
    }

    /// What its file is called before it has its name.
    pub(super) fn temporary(&self) -> String {
        temporary_of(&format!("{}-{}-{}", self.format.name(), self.stream, self.files))
    }

    /// Makes it the folder's.
    pub(super) fn save<F: Folder>(&self, folder: &mut F) -> Result<(), F::Error> {
        self.write(folder)?;
        folder.rename(&self.own_temporary(), &file_of(self.format))
    }

    /// Before it is the folder's: all that takes room.
    pub(super) fn write<F: Folder>(&self, folder: &mut F) -> Result<(), F::Error> {
        let Self { stream, files, last, ref name, .. } = *self;
        let written = Written { stream, files, last, name: name.clone() };
        let octets = serde_json::to_vec(&written).unwrap_or_default();
        folder.write(&self.own_temporary(), &octets)
    }

    /// Makes it the folder's, once it is written, and gives its file the name.
    pub(super) fn name<F: Folder>(&self, folder: &mut F) -> Result<(), F::Error> {
        folder.rename(&self.own_temporary(), &file_of(self.format))?;
        folder.rename(&self.temporary(), &self.name)
    }

    fn own_temporary(&self) -> String {
        temporary_of(&format!("mark-{}", self.format.name()))
    }
}

fn written<F: Folder>(format: Format, folder: &F) -> Result<Written, F::Error> {
    let octets = folder.read(&file_of(format))?;
    Ok(octets.and_then(|octets| serde_json::from_slice(&octets).ok()).unwrap_or_default())
}

fn file_of(format: Format) -> String {
    format!(".mark-{}", format.name())
}

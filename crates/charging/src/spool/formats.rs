//! Which formats a folder has files of. Operators change that, and the database forgets what the formats of then have in files: one
//! that comes later never has it.

use super::Folder;
use super::mark::{self, Mark};
use crate::file::Format;

/// The formats that are written, as the last process knew them.
const FILE: &str = ".formats";

/// What a folder is yet to be told of its formats, before the next file is written.
#[derive(Debug, Default)]
pub(super) struct Untold {
    marks: Vec<Mark>,
    formats: Option<Vec<Format>>,
}

impl Untold {
    pub(super) const fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.formats.is_none()
    }

    /// The marks of new ones come first: who dies in between begins anew with the same.
    pub(super) fn tell<F: Folder>(&self, folder: &mut F) -> Result<(), F::Error> {
        self.marks.iter().try_for_each(|mark| mark.save(folder))?;
        self.formats.iter().try_for_each(|formats| save(formats, folder))
    }
}

/// The marks of these formats, for the next file of each. Files of all formats that were about to get their names do. Nothing else
/// is written: a disk that is full keeps nobody from starting.
pub(super) fn restore<F: Folder>(
    formats: &[Format],
    stream: u32,
    folder: &mut F,
) -> Result<(Vec<Mark>, Untold), F::Error> {
    let mut all = Vec::new();
    for format in Format::ALL {
        all.push(Mark::restore(format, stream, folder)?);
    }
    let before = written(folder, &all)?;
    let known = all.iter().filter(|mark| before.contains(&mark.format));
    let (stayed, gone): (Vec<&Mark>, Vec<&Mark>) = known.partition(|mark| formats.contains(&mark.format));
    let others = if stayed.is_empty() { gone } else { stayed };
    let begin = others.iter().map(|mark| mark.last).min().unwrap_or(0);
    let (mut marks, mut untold) = (Vec::new(), Untold::default());
    for format in formats {
        let Some(mark) = all.iter().find(|mark| mark.format == *format) else { continue };
        let is_new = !before.contains(format) && begin > mark.last;
        let mark = if is_new { mark.behind(begin) } else { mark.clone() };
        untold.marks.extend(is_new.then(|| mark.clone()));
        marks.push(mark);
    }
    untold.formats = (before != formats).then(|| formats.to_vec());
    Ok((marks, untold))
}

/// Where nothing tells, those that have files of the stream.
fn written<F: Folder>(folder: &F, marks: &[Mark]) -> Result<Vec<Format>, F::Error> {
    let told = folder.read(FILE)?.and_then(|octets| serde_json::from_slice(&octets).ok());
    let with_files = || marks.iter().filter(|mark| mark.last > 0).map(|mark| mark.format).collect();
    Ok(told.unwrap_or_else(with_files))
}

fn save<F: Folder>(formats: &[Format], folder: &mut F) -> Result<(), F::Error> {
    let temporary = mark::temporary_of("formats");
    folder.write(&temporary, &serde_json::to_vec(formats).unwrap_or_default())?;
    folder.rename(&temporary, FILE)
}

//! Of what applications flows are, for the next life of the engine, in a file of its own beside the counts. A life that ends in order says
//! so of each flow with its last words. One that is killed has said what the numbers stand for that its flows have ([`super::Part::Flows`]).

use super::{Header, MAGIC, open_own, remove};
use crate::content::{ContentRules, Detected, Named};
use crate::state::{FlowKey, Said};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Files have the names of their node and of their life, and this.
pub(super) const SUFFIX: &str = ".flows";

/// A flow of some application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LearnedFlow {
    pub(crate) key: FlowKey,
    /// Of which, by the numbers of its life.
    pub(crate) detected: Detected,
    pub(crate) said: Said,
    /// For how long it has been silent, in ticks of its table.
    pub(crate) age: u16,
    pub(crate) unused: [u8; 2],
}

/// Such flows, and what their numbers stand for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Learned {
    pub(super) names: Vec<Named>,
    pub(super) flows: Vec<LearnedFlow>,
}

impl Learned {
    /// Of all workers' flows, and the content rules in force.
    pub fn new(content: &ContentRules, flows: Vec<LearnedFlow>) -> Self {
        Self { names: content.names(), flows }
    }

    /// What a life of the node has left in a folder, the last if there are several. They are all removed. What cannot be read is passed to
    /// `unread`, with the reason.
    pub fn take(folder: &Path, node: &str, mut unread: impl FnMut(&Path, io::Error)) -> Option<Self> {
        let mut files: Vec<_> = super::files(folder, node, SUFFIX).collect();
        files.sort_by_key(|path| fs::symlink_metadata(path).and_then(|about| about.modified()).ok());
        let mut last = None;
        for path in files {
            match open_own(&path)
                .and_then(|file| Self::read(file).and_then(|it| fs::remove_file(&path).map(|()| it)))
            {
                Ok(learned) => last = Some(learned),
                Err(error) => unread(&path, error),
            }
        }
        last
    }

    /// Leaves it at a path, in the place of what was said before. Nothing is left there where that fails.
    pub(super) fn leave(&self, path: &Path) -> io::Result<()> {
        remove(path)?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
        let written = self.write(&mut file);
        if written.is_err() {
            let _ = fs::remove_file(path);
        }
        written
    }

    fn write(&self, file: &mut File) -> io::Result<()> {
        let names = postcard::to_stdvec(&self.names).map_err(io::Error::other)?;
        file.write_all([MAGIC, size_of::<Header>() as u64, names.len() as u64].as_bytes())?;
        file.write_all(&names)?;
        file.write_all(self.flows.as_bytes())
    }

    fn read(mut file: File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let other = || io::Error::other("it is laid out in another way than this version's");
        let (begin, rest) = <[u64; 3]>::read_from_prefix(&bytes).map_err(|_| other())?;
        let [magic, header, length] = begin;
        let is_ours = (magic, header) == (MAGIC, size_of::<Header>() as u64);
        let parts = rest.split_at_checked(length as usize).filter(|_| is_ours);
        let (names, rest) = parts.ok_or_else(other)?;
        let names = postcard::from_bytes(names).map_err(io::Error::other)?;
        let mut flows = LearnedFlow::new_vec_zeroed(rest.len() / size_of::<LearnedFlow>())
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        let whole = rest.get(..size_of_val(flows.as_slice())).unwrap_or_default();
        flows.as_mut_bytes().copy_from_slice(whole);
        Ok(Self { names, flows })
    }
}

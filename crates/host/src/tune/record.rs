//! What is remembered between applying and undoing.

use super::Undo;
use crate::Root;
use std::fs;
use std::io;

/// Where what was changed is kept until it is undone. It is gone after a restart, as are changes but those below `/etc`.
pub const UNDO_FILE: &str = "/run/anchorline/tune-undo.json";

/// The undo file below a root.
#[derive(Debug)]
pub struct Record<'a>(pub &'a Root);

impl Record<'_> {
    /// Whether something waits to be undone.
    pub fn exists(&self) -> bool {
        self.0.exists(UNDO_FILE)
    }

    /// Writes it, so that after a crash there is the old one or the new one. There is none of nothing: it would only have a
    /// second `--apply` refused.
    ///
    /// # Errors
    /// The system's.
    pub fn save(&self, undo: &Undo) -> io::Result<()> {
        if undo.is_empty() {
            return if self.exists() { self.remove() } else { Ok(()) };
        }
        let place = self.0.place(UNDO_FILE);
        let new = place.with_extension("new");
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&new, serde_json::to_vec_pretty(undo)?)?;
        fs::rename(&new, &place)
    }

    /// Reads it.
    ///
    /// # Errors
    /// If it is not there or is none of ours.
    pub fn load(&self) -> io::Result<Undo> {
        Ok(serde_json::from_slice(&fs::read(self.0.place(UNDO_FILE))?)?)
    }

    /// Removes it.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_file(self.0.place(UNDO_FILE))
    }
}

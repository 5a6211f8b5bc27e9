//! What a spool needs of a folder.

use std::fmt;

/// A folder, whose operations are durable when they return.
pub trait Folder {
    /// Why it cannot be used.
    type Error: fmt::Debug + fmt::Display;

    /// The names of all files.
    ///
    /// # Errors
    /// It cannot be read.
    fn list(&self) -> Result<Vec<String>, Self::Error>;

    /// A file's octets; `None` where there is none of that name.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Writes a whole file, in place of one of that name. Whoever dies meanwhile may leave part of it.
    ///
    /// # Errors
    /// It cannot be written: part of it may be there.
    fn write(&mut self, name: &str, octets: &[u8]) -> Result<(), Self::Error>;

    /// Gives a file another name, in place of one that had it: at once or not at all.
    ///
    /// # Errors
    /// It cannot be done.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), Self::Error>;

    /// Removes a file.
    ///
    /// # Errors
    /// It cannot be done.
    fn remove(&mut self, name: &str) -> Result<(), Self::Error>;
}

//! Records of TLS (RFC 8446 5.1).

use crate::extract::reader::Reader;
use std::ops::Range;

/// Type of records with handshake messages.
pub(super) const HANDSHAKE: u8 = 22;
/// All versions since SSL 3.0 are 3.x on the record.
pub(super) const MAJOR_VERSION: u8 = 3;
/// Bytes before a record's content.
pub(super) const HEADER: usize = 5;
/// Most bytes of one in the clear.
const LENGTH_MAX: u16 = 1 << 14;

/// A record that is none, or of another type than handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotHandshake;

/// Where in a stream the contents of its records stand; the last may be cut short. Ends at the first that is none.
#[derive(Clone, Debug)]
pub(super) struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self::from(bytes, 0)
    }

    /// Of a stream of which one begins there.
    pub(super) const fn from(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Where the next one begins.
    pub(super) const fn at(&self) -> usize {
        self.at
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Range<usize>, NotHandshake>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = Reader::new(self.bytes.get(self.at..)?);
        let (kind, major, _) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let length = reader.u16()?;
        if (kind, major) != (HANDSHAKE, MAJOR_VERSION) || !(1..=LENGTH_MAX).contains(&length) {
            self.at = self.bytes.len();
            return Some(Err(NotHandshake));
        }
        let start = self.at + HEADER;
        let end = start + usize::from(length);
        self.at = end;
        Some(Ok(start..end.min(self.bytes.len())))
    }
}

/// Moves the contents of the records to the front, one behind the other; returns their length.
pub(super) fn push_together(bytes: &mut [u8]) -> usize {
    let (mut to, mut at) = (0, 0);
    loop {
        let mut records = Records::from(bytes, at);
        let Some(Ok(record)) = records.next() else { return to };
        at = records.at;
        let length = record.len();
        // Never ahead of what is still to be read: a header was left out before it.
        bytes.copy_within(record, to);
        to += length;
    }
}

//! Records of TLS (RFC 8446 5.1).

use crate::extract::reader::Reader;
use std::ops::Range;

/// Types of records.
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
/// Bytes of an alert, and its first of one that is no more than a warning (RFC 5246 7.2).
const ALERT_LENGTH: u16 = 2;
const WARNING: u8 = 1;
/// All versions since SSL 3.0 are 3.x on the record. No server minds the minor one, Go's none below 16.x before it knows which is spoken.
const MAJOR_VERSION_MAX: u8 = 15;
/// Bytes before a record's content.
pub(super) const HEADER: usize = 5;
/// Most bytes of one in the clear.
const LENGTH_MAX: u16 = 1 << 14;

/// A record that is none, or of another type than handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotHandshake;

/// Whether a stream may go on with a record that [`Records`] has, by what there is of its header.
pub(super) fn can_begin(header: &[u8]) -> bool {
    let is_type = header.first().is_none_or(|kind| (CHANGE_CIPHER_SPEC..=HANDSHAKE).contains(kind));
    is_type && header.get(1).is_none_or(|major| *major <= MAJOR_VERSION_MAX)
}

/// Where in a stream the contents of its records stand; the last may be cut short. Ends at the first that is none.
///
/// Some servers pass records over while they wait for more of a ClientHello, though RFC 8446 5.1 has them refused: OpenSSL's empty ones of
/// handshakes and of changes of the cipher, 32 in a row, and Go's warnings. The content of these is empty here.
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
        let is_empty = match (kind, length) {
            _ if major > MAJOR_VERSION_MAX => None,
            (HANDSHAKE | CHANGE_CIPHER_SPEC, 0) => Some(true),
            (HANDSHAKE, ..=LENGTH_MAX) => Some(false),
            (ALERT, ALERT_LENGTH) => (reader.u8()? == WARNING).then_some(true),
            _ => None,
        };
        let Some(is_empty) = is_empty else {
            self.at = self.bytes.len();
            return Some(Err(NotHandshake));
        };
        let start = self.at + HEADER;
        let end = start + usize::from(length);
        self.at = end;
        Some(Ok(start..if is_empty { start } else { end.min(self.bytes.len()) }))
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

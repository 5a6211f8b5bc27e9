//! A session's record in one piece of memory.

use crate::record::{CpFSeid, SessionRecord};
use crate::store::StoreError;
use fjall::Slice;
use rules::Seid;

/// Of most records, which need no memory to be written in.
const RECORD_BYTES: usize = 512;

/// A session's record as the database keeps it: some 250 octets in one piece, where a [`SessionRecord`] has 2 KiB in a
/// dozen. Copies share the memory, with the database, too. The default is no record at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed(Slice);

impl Packed {
    /// This record.
    pub fn of(record: &SessionRecord) -> Self {
        if let Some(octets) = machine::write_short(record, &mut [0; RECORD_BYTES]) {
            return Self(Slice::new(octets));
        }
        // Only values that do not know their length cannot be written into memory; a record has none.
        Self(Slice::new(&postcard::to_stdvec(record).unwrap_or_default()))
    }

    /// As read from the database. A copy: what the database gives out keeps the whole block it was read from.
    pub(crate) fn of_octets(octets: &[u8]) -> Self {
        Self(Slice::new(octets))
    }

    /// The record.
    ///
    /// # Errors
    /// [`StoreError::Record`] where the octets are damaged.
    pub fn record(&self) -> Result<SessionRecord, StoreError> {
        Ok(postcard::from_bytes(&self.0)?)
    }

    /// The era in which its owner spoke of the session last, read without the rest; nothing where the octets are damaged.
    pub fn era(&self) -> Option<u32> {
        let head = postcard::take_from_bytes::<(Seid, u64, &str, CpFSeid, u32)>(&self.0);
        head.ok().map(|((_, _, _, _, era), _)| era)
    }

    /// Its length in octets.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn octets(&self) -> &Slice {
        &self.0
    }
}

//! A table that grows in place, in memory of this process or in a file. An unsafe room of this crate.
//!
//! Its invariants: `first` leads to memory for `limit` entries, which belongs to this table alone and stays where it is as long as the
//! table lives; the first `length` of them are written. A file's memory is mapped as a whole, its owner alone may open it, and whoever
//! opens it without having its lock does nothing with it ([`Former`](super::Former)).
#![allow(unsafe_code)]

use super::{ALIGN, Place};
use crate::state::memory::{self, NoMemory};
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::{io, slice};

/// What the entries lie in.
enum Memory<T> {
    /// Never touched but to be given back.
    Own { _entries: Vec<T> },
    /// Of which so many bytes have been taken.
    File { map: MmapRaw, taken: u64 },
}

/// Entries behind one another, that need not be dropped.
pub(crate) struct Table<T: Copy> {
    first: NonNull<T>,
    length: usize,
    limit: usize,
    memory: Memory<T>,
}

// SAFETY: the memory is the table's alone, and does not care which thread it is written from.
unsafe impl<T: Copy + Send> Send for Table<T> {}

impl<T: Copy> Table<T> {
    /// An empty one that will not hold more than `limit` entries: addresses are set aside for all of them, and memory is taken as
    /// entries come. In a file if there is a place for it.
    ///
    /// # Errors
    /// Not so many addresses.
    pub(crate) fn new(limit: usize, place: Option<Place>) -> Result<Self, NoMemory> {
        let bytes = limit.saturating_mul(size_of::<T>());
        let none = |_: io::Error| NoMemory { bytes };
        let Some(place) = place else {
            let mut entries = memory::reserved(limit)?;
            let first = NonNull::new(entries.as_mut_ptr()).ok_or(NoMemory { bytes })?;
            return Ok(Self { first, length: 0, limit, memory: Memory::Own { _entries: entries } });
        };
        const { assert!(align_of::<T>() as u64 <= ALIGN, "files are mapped from whole pages on") };
        let map = MmapOptions::new().offset(place.at).len(bytes.max(1)).map_raw(&place.file.file);
        let map = map.map_err(none)?;
        let first = NonNull::new(map.as_mut_ptr().cast::<T>()).ok_or(NoMemory { bytes })?;
        memory::advise_huge_at(first.as_ptr().addr(), bytes);
        Ok(Self { first, length: 0, limit, memory: Memory::File { map, taken: 0 } })
    }

    /// Makes it this long, with entries like this behind those there are; whether there was the memory for it. It never gets shorter.
    pub(crate) fn grow(&mut self, length: usize, entry: T) -> bool {
        if length > self.limit || !self.take((length * size_of::<T>()) as u64) {
            return false;
        }
        for at in self.length..length {
            // SAFETY: within the limit, and so within the memory that `first` leads to; nothing else refers to it, as `self` is borrowed.
            unsafe { self.first.add(at).write(entry) };
        }
        self.length = self.length.max(length);
        true
    }

    /// Has so many bytes of a file in memory; some more at a time, as asking takes longer than having. Who writes to a file where there is no
    /// memory is killed, so whether there is any is asked first.
    fn take(&mut self, bytes: u64) -> bool {
        let Memory::File { map, taken } = &mut self.memory else { return true };
        if bytes > *taken {
            let end = bytes.next_multiple_of(ALIGN).min(map.len() as u64);
            // By its addresses, and not by the file's: only so it has the huge pages that were asked for.
            let (start, length) = (*taken as usize, (end - *taken) as usize);
            if map.advise_range(Advice::PopulateWrite, start, length).is_err() {
                return false;
            }
            *taken = end;
        }
        true
    }

    /// How many there may be.
    #[cfg(test)]
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }
}

/// Whether memory can be taken of a file, by its first octets.
pub(super) fn try_taking(file: &File) -> io::Result<()> {
    MmapOptions::new().len(1).map_raw(file)?.advise(Advice::PopulateWrite)
}

impl<T: Copy> Deref for Table<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: so many are written; see above.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.length) }
    }
}

impl<T: Copy> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: so many are written, and nothing else refers to them while `self` is borrowed.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Lasting, Part, Section};
    use super::*;
    use crate::config::Limits;
    use std::sync::Arc;

    fn section(folder: &tempfile::TempDir) -> Section {
        let lasting = Arc::new(Lasting::create(folder.path(), "node", 7).unwrap());
        lasting.lay_out(1, &Limits { sessions: 1 << 17, ..Limits::default() }).unwrap().remove(0)
    }

    fn grows_in_place(mut table: Table<u64>) {
        assert!(table.is_empty() && table.grow(3, 5));
        let first = table.as_ptr();
        table[1] = 9;
        assert!(table.grow(300, 6) && table.grow(2, 7), "it stays as long as it is");
        assert_eq!((&table[..4], table[299], table.len()), ([5, 9, 5, 6].as_slice(), 6, 300));
        let limit = table.limit();
        assert!(!table.grow(limit + 1, 0) && table.len() == 300);
        assert!(table.grow(limit, 1) && table.len() == limit);
        assert_eq!((table.as_ptr(), table[1], table[limit - 1]), (first, 9, 1));
    }

    #[test]
    fn one_in_memory_grows_in_place() {
        grows_in_place(Table::new(1_000, None).unwrap());
        assert!(Table::<u64>::new(usize::MAX / 4, None).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri maps no files")]
    fn one_in_a_file_grows_in_place() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let cells = section(&folder).place(Part::Cells).unwrap();
        grows_in_place(Table::new(1 << 17, Some(cells)).unwrap());
    }
}

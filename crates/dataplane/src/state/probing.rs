//! What hash tables of fixed size have in common: linear probing, and nothing allocated after they were made.

use super::memory;

/// What stands in a table.
pub(crate) trait Entry: Copy {
    /// Nothing.
    const FREE: Self;
    /// Of so many entries in use there is one more, free, when the table is full: probes end soon, so long as entries are
    /// small.
    const SPARE: usize;

    fn is_free(&self) -> bool;

    /// Where in the table it would stand if it were alone: a fraction of 2^64.
    fn home(&self) -> u64;
}

/// Entries, each where its hash says or as near behind as there was room.
pub(crate) struct Probing<E> {
    entries: Box<[E]>,
    length: usize,
    limit: usize,
}

/// The table holds as much as it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Fibonacci hashing: a product with 2^64 / golden ratio, as a fraction of 2^64.
#[inline]
pub(crate) const fn scatter(bits: u64) -> u64 {
    bits.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What is scattered to this.
#[cfg(test)]
pub(crate) const fn gather(scattered: u64) -> u64 {
    scattered.wrapping_mul(0xf1de_83e1_9937_733d)
}

const fn entries<E: Entry>(limit: usize) -> usize {
    limit + limit.div_ceil(E::SPARE) + 1
}

impl<E: Entry> Probing<E> {
    /// Room for `limit` entries.
    pub(crate) fn new(limit: usize) -> Self {
        Self { entries: memory::filled(entries::<E>(limit), E::FREE), length: 0, limit }
    }

    /// Bytes it takes, with room for `limit` entries.
    pub(crate) const fn bytes(limit: usize) -> usize {
        entries::<E>(limit) * size_of::<E>()
    }

    /// Entries in use.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// Entries it can still take.
    pub(crate) const fn room(&self) -> usize {
        self.limit - self.length
    }

    /// The entry in this place, free or not; `None` behind the last.
    pub(crate) fn at(&self, place: usize) -> Option<&E> {
        self.entries.get(place)
    }

    /// All entries in use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.entries.iter().filter(|entry| !entry.is_free())
    }

    /// Asks for the memory that is read first for what has this home.
    #[inline]
    pub(crate) fn prefetch(&self, home: u64) {
        memory::prefetch(&self.entries[self.place(home)]);
    }

    /// The first entry of this home that `is_it`.
    #[inline]
    pub(crate) fn find(&self, home: u64, is_it: impl Fn(&E) -> bool) -> Option<&E> {
        let entry = &self.entries[self.seek(home, is_it)];
        (!entry.is_free()).then_some(entry)
    }

    /// Puts an entry in place of the one that `is_it`, or where there is room.
    pub(crate) fn put(&mut self, entry: E, is_it: impl Fn(&E) -> bool) -> Result<(), Full> {
        let at = self.seek(entry.home(), is_it);
        if self.entries[at].is_free() {
            if self.length == self.limit {
                return Err(Full);
            }
            self.length += 1;
        }
        self.entries[at] = entry;
        Ok(())
    }

    /// Forgets the entry of this home that `is_it`; whether it was there.
    pub(crate) fn remove(&mut self, home: u64, is_it: impl Fn(&E) -> bool) -> bool {
        let at = self.seek(home, is_it);
        if self.entries[at].is_free() {
            return false;
        }
        self.length -= 1;
        self.close_gap(at);
        true
    }

    /// Where the entry is, or would go. Some entry is always free.
    #[inline]
    fn seek(&self, home: u64, is_it: impl Fn(&E) -> bool) -> usize {
        let mut at = self.place(home);
        while !self.entries[at].is_free() && !is_it(&self.entries[at]) {
            at = self.after(at);
        }
        at
    }

    /// Moves entries behind `gap` forward, so that no probe stops too early.
    fn close_gap(&mut self, mut gap: usize) {
        let mut at = self.after(gap);
        while !self.entries[at].is_free() {
            let home = self.place(self.entries[at].home());
            if self.distance(home, at) >= self.distance(gap, at) {
                self.entries[gap] = self.entries[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.entries[gap] = E::FREE;
    }

    #[inline]
    fn place(&self, home: u64) -> usize {
        ((u128::from(home) * self.entries.len() as u128) >> 64) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.entries.len() { 0 } else { at + 1 }
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.entries.len() - from }
    }
}

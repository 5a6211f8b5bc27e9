//! A user's stream of TCP, as programs at its server read it.
//!
//! * RFC 9293 3.10.7.4 leaves open what counts where segments say different things for one place. Most servers are Linux: what comes in
//!   order is taken whole. What comes before its turn waits; one that stands within another says nothing, and of two that have a place in
//!   common the one counts that begins first, or if they begin together, the longer one.
//! * An urgent octet is none of the stream (RFC 9293 3.8.5, RFC 6093 3.1), unless it was read before that was said; two at most.

use super::inspection::OCTETS_MAX;
use std::collections::BTreeSet;

const URGENT_MAX: usize = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    read: Vec<u8>,
    /// Place of the next octet to be read.
    next: usize,
    /// Where what waits begins, in order.
    queue: Vec<(usize, Vec<u8>)>,
    urgent: BTreeSet<usize>,
}

impl Stream {
    /// The beginning, as far as it is there.
    pub(super) fn read(&self) -> &[u8] {
        &self.read
    }

    pub(super) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.queue.is_empty()
    }

    /// Forgets all but the first octets.
    pub(super) fn shorten(&mut self, length: usize) {
        self.read.truncate(length);
        self.next = self.next.min(length);
        self.queue.clear();
    }

    /// Takes a segment that begins so many octets behind the stream's beginning, or before it.
    pub(super) fn put(&mut self, ahead: i32, payload: &[u8]) {
        let before = ahead.min(0).unsigned_abs() as usize;
        let begin = ahead.max(0) as usize;
        let room = OCTETS_MAX.saturating_sub(begin);
        let octets: Vec<u8> = payload.iter().skip(before).take(room).copied().collect();
        if octets.is_empty() {
            return;
        }
        if begin > self.next {
            return self.wait(begin, octets);
        }
        self.queue.insert(0, (begin, octets));
        self.read_on();
    }

    /// An octet at this place is urgent.
    pub(super) fn take_out(&mut self, ahead: i32) {
        let Ok(place) = usize::try_from(ahead) else { return };
        if (self.next..OCTETS_MAX).contains(&place) && self.urgent.len() < URGENT_MAX {
            self.urgent.insert(place);
            self.read_on();
        }
    }

    fn read_on(&mut self) {
        let octet_at = |queue: &[(usize, Vec<u8>)], place: usize| {
            let found = |(begin, octets): &(usize, Vec<u8>)| octets.get(place.checked_sub(*begin)?).copied();
            queue.iter().find_map(found)
        };
        loop {
            match octet_at(&self.queue, self.next) {
                _ if self.urgent.contains(&self.next) => {}
                Some(octet) => self.read.push(octet),
                None => break,
            }
            self.next += 1;
        }
        self.queue.retain(|piece| piece.0 > self.next);
    }

    fn wait(&mut self, begin: usize, octets: Vec<u8>) {
        let end = |piece: &(usize, Vec<u8>)| piece.0 + piece.1.len();
        let new = (begin, octets);
        if self.queue.iter().any(|other| other.0 <= begin && end(&new) <= end(other)) {
            return;
        }
        self.queue.retain(|other| other.0 < begin || end(&new) < end(other));
        // What goes on where another ends is one with it.
        match self.queue.iter_mut().find(|other| other.0 < begin && end(other) == begin) {
            Some(other) => other.1.extend(new.1),
            None => self.queue.push(new),
        }
        self.queue.sort_by_key(|piece| piece.0);
    }
}

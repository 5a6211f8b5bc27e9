//! Connections whose requests get a field (TS 29.244 8.2.67): how far numbers of TCP are apart on both sides.
//!
//! One insertion at a time is open: from the moment it is made until the server has acknowledged all of it. Until then
//! the user may send the same octets again, cut otherwise, and whatever segment carries the octet behind the insertion
//! carries the insertion, too. After that it only counts in the distance.
//!
//! A connection that has had a field cannot be forgotten before it is over, so one user keeps a share of the places at most, and
//! of those that may be forgotten, one of whoever has most places goes first.

mod head;
mod shift;
#[cfg(test)]
mod tests;

pub(crate) use head::{Upcoming, begins_with_method, request_line};
pub(crate) use shift::Shift;

use super::NoMemory;
use super::ends::Ends;
use super::flow_key::FlowKey;
use super::table::Table;
use crate::lasting::{Part, Section};
use packet::tcp::flag;
use rules::Direction;
use shift::Shifts;
use std::sync::Arc;

/// Connections looked at for one that gives way.
const CANDIDATES: usize = 8;
/// One user keeps this part of the places at most.
const USERS_MIN: usize = 16;
/// Counts of users for each place: those of some users are counted together, which share a share then.
const COUNTS_PER_PLACE: usize = 4;
/// As long as translators of addresses keep a connection that says nothing, in nanoseconds (RFC 5382 REQ-5: 2 h 4 min).
const IDLE_NS: u64 = 7_440_000_000_000;
/// The same of one that has ended (4 min).
const ENDED_NS: u64 = 240_000_000_000;
/// What ends the server's side comes no further behind what the user has acknowledged: more is hardly ever on its way, and who guesses
/// numbers in the server's name is wrong a thousand times for once (RFC 5961 3).
const WINDOW: u32 = 1 << 22;

/// One connection; numbers are the user's unless said otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    key: FlowKey,
    hash: u64,
    seen_ns: u64,
    /// The first number behind all that has gone.
    high: u32,
    /// Octets put in before, all acknowledged.
    base: u32,
    /// The octet in front of which the text was put and has not been acknowledged.
    open: Option<u32>,
    /// What comes next, as far as that is sure.
    pub(crate) upcoming: Upcoming,
    /// Bytes of the longest packet that gets to the server, as far as anybody on the way has said.
    pub(crate) passes: u16,
    /// What is put in, from the first time on.
    text: Option<Arc<[u8]>>,
    /// It is counted among those its user keeps.
    is_kept: bool,
    ends: Ends,
    /// The server's next number, as the user has acknowledged.
    expected: Option<u32>,
}

impl Connection {
    const NONE: Self = Self {
        key: FlowKey::NONE,
        hash: 0,
        seen_ns: 0,
        high: 0,
        base: 0,
        open: None,
        upcoming: Upcoming::Unknown,
        passes: u16::MAX,
        text: None,
        is_kept: false,
        ends: Ends::NONE,
        expected: None,
    };

    /// Whether numbers differ.
    pub(crate) const fn is_shifted(&self) -> bool {
        self.base != 0 || self.open.is_some()
    }

    /// Whether it has had a field.
    pub(crate) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    fn text_length(&self) -> u32 {
        self.text.as_ref().map_or(0, |text| text.len() as u32)
    }

    /// The text to put into a segment of so many octets from this number on, and in front of which of them.
    pub(crate) fn covers(&self, sequence: u32, length: usize) -> Option<(usize, Arc<[u8]>)> {
        let offset = self.open?.wrapping_sub(sequence) as usize;
        Some((offset, self.text.clone()?)).filter(|(offset, _)| *offset < length)
    }

    /// A text is put in front of this octet. `false`, and nothing happens, while another insertion is open. The text is
    /// that of the first time.
    pub(crate) fn insert(&mut self, at: u32, text: &Arc<[u8]>) -> bool {
        let is_free = self.open.is_none();
        if is_free {
            self.open = Some(at);
            self.text.get_or_insert_with(|| Arc::clone(text));
        }
        is_free
    }

    /// What would be put in: that of the first time.
    pub(crate) fn text_or<'a>(&'a self, text: &'a Arc<[u8]>) -> &'a Arc<[u8]> {
        self.text.as_ref().unwrap_or(text)
    }

    /// Whether nothing from this number on has gone.
    pub(crate) const fn is_next(&self, sequence: u32) -> bool {
        self.high == sequence
    }

    /// A segment that ends in front of this number goes.
    pub(crate) fn pass(&mut self, end: u32) {
        if is_before(self.high, end) {
            self.high = end;
        }
    }

    /// What the server knows the user's number as.
    pub(crate) fn to_server(&self, sequence: u32) -> u32 {
        let is_behind = self.open.is_some_and(|at| is_before(at, sequence));
        sequence.wrapping_add(self.base).wrapping_add(if is_behind { self.text_length() } else { 0 })
    }

    /// What the user knows a number as that the server acknowledges: of what was put in, the octet behind it.
    pub(crate) fn to_user(&self, acknowledged: u32) -> u32 {
        let plain = acknowledged.wrapping_sub(self.base);
        match self.open {
            Some(at) if is_before(at, plain) => {
                let behind = plain.wrapping_sub(at);
                at.wrapping_add(behind.saturating_sub(self.text_length()))
            }
            _ => plain,
        }
    }

    /// The server acknowledges this number, of its own; whether an insertion is no longer open by that.
    pub(crate) fn acknowledge(&mut self, acknowledged: u32) -> bool {
        let plain = acknowledged.wrapping_sub(self.base);
        let length = self.text_length();
        let closes = self.open.is_some_and(|at| !is_before(plain, at.wrapping_add(length)));
        if closes {
            self.base = self.base.wrapping_add(length);
            self.open = None;
        }
        closes
    }

    /// It has had a segment of the user's, perhaps the last, which acknowledges so much.
    pub(crate) fn hear_user(&mut self, flags: u8, acknowledgement: u32, now_ns: u64) {
        self.seen_ns = now_ns;
        if flags & flag::ACK != 0 {
            self.expected = Some(acknowledgement);
        }
        self.ends.hear((Direction::Uplink, flags), true);
    }

    /// It has had a segment from the server, or in its name, with these numbers in front of it and behind it.
    pub(crate) fn hear_server(&mut self, flags: u8, (sequence, end): (u32, u32), now_ns: u64) {
        self.seen_ns = now_ns;
        // A FIN may come again, behind what has been acknowledged since.
        let number = if flags & flag::RST != 0 { sequence } else { end.wrapping_sub(1) };
        if self.expected.is_none_or(|expected| number.wrapping_sub(expected) < WINDOW) {
            self.ends.hear((Direction::Downlink, flags), true);
        }
    }

    /// Whether nothing breaks when it is forgotten.
    fn may_go(&self, now_ns: u64) -> bool {
        let idle_ns = now_ns.saturating_sub(self.seen_ns);
        !self.is_shifted() || idle_ns > if self.ends.are_both() { ENDED_NS } else { IDLE_NS }
    }
}

/// Of numbers less than half the space apart (RFC 9293 3.4).
const fn is_before(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) > 0
}

/// Places of a user's connections, and those of connections that have had a field.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    places: u32,
    kept: u32,
}

/// Places for `limit` connections: one at least.
pub(crate) fn connection_places(limit: usize) -> usize {
    limit.max(1)
}

/// Those of a worker, in memory of fixed size.
pub(crate) struct Connections {
    all: Box<[Connection]>,
    /// Of those that have had a field, what outlives the process, if anything does.
    shifts: Option<Shifts>,
    /// From hashes of flows.
    by_flow: Table,
    /// By user; as many as a power of two.
    shares: Box<[Share]>,
    /// Places that are taken.
    known: usize,
    /// Which is looked at next for one that gives way, and for one that is over.
    next: usize,
    swept: usize,
}

impl Connections {
    /// Room for `limit` connections; what outlives the process in a section of a file, if there is one.
    pub(crate) fn new(limit: usize, section: Option<&Section>) -> Result<Self, NoMemory> {
        let limit = connection_places(limit);
        let users = (limit * COUNTS_PER_PLACE).next_power_of_two();
        Ok(Self {
            all: vec![Connection::NONE; limit].into(),
            shifts: section
                .and_then(|section| section.place(Part::Shifts))
                .map(|place| Shifts::new(limit, Some(place)))
                .transpose()?,
            by_flow: Table::new(limit),
            shares: vec![Share::default(); users].into(),
            known: 0,
            next: 0,
            swept: 0,
        })
    }

    /// Where a flow's user is counted.
    const fn user(&self, key: &FlowKey) -> usize {
        let mixed = (key.user() ^ (key.network() as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.shares.len() - 1)
    }

    fn share(&self, key: &FlowKey) -> Share {
        self.shares.get(self.user(key)).copied().unwrap_or_default()
    }

    fn share_mut(&mut self, key: &FlowKey) -> Option<&mut Share> {
        let user = self.user(key);
        self.shares.get_mut(user)
    }

    /// Whether one more connection of this flow's user may have a field.
    pub(crate) fn may_keep(&self, key: &FlowKey) -> bool {
        (self.share(key).kept as usize) < self.all.len().div_ceil(USERS_MIN)
    }

    /// A connection has had a field: it is its user's until it is over.
    pub(crate) fn keep(&mut self, (key, hash): (&FlowKey, u64)) {
        let Some(connection) = self.get((key, hash)) else { return };
        let is_first = !std::mem::replace(&mut connection.is_kept, true);
        if is_first && let Some(share) = self.share_mut(key) {
            share.kept += 1;
        }
        self.write_down((key, hash));
    }

    /// How far numbers of a connection are apart has changed.
    pub(crate) fn write_down(&mut self, (key, hash): (&FlowKey, u64)) {
        let Some(place) = self.by_flow.get(hash).map(|place| place as usize) else { return };
        let connection = self.all.get(place).filter(|connection| connection.key == *key);
        if let Some((connection, shifts)) = connection.zip(self.shifts.as_mut())
            // Memory is taken as it is needed; without it, this one dies with the process.
            && (place < shifts.len() || shifts.grow(place + 1, Shift::NONE))
            && let Some(shift) = shifts.get_mut(place)
        {
            *shift = Shift::of(connection);
        }
    }

    /// Puts a connection into a free place.
    fn put(&mut self, place: usize, connection: Connection) {
        let Some(slot) = self.all.get_mut(place) else { return };
        let inserted = self.by_flow.insert(connection.hash, place as u32);
        debug_assert!(inserted.is_ok(), "there are as many places as names");
        let (key, hash, is_kept) = (connection.key, connection.hash, connection.is_kept);
        *slot = connection;
        self.known += 1;
        if let Some(share) = self.share_mut(&key) {
            (share.places, share.kept) = (share.places + 1, share.kept + u32::from(is_kept));
        }
        if is_kept {
            self.write_down((&key, hash));
        }
    }

    /// Takes the connection of a place out.
    fn vacate(&mut self, place: usize) -> Option<Connection> {
        let taken = std::mem::replace(self.all.get_mut(place)?, Connection::NONE);
        if taken.key == FlowKey::NONE {
            return None;
        }
        self.by_flow.remove(taken.hash);
        self.known -= 1;
        if let Some(share) = self.share_mut(&taken.key) {
            share.places = share.places.saturating_sub(1);
            share.kept = share.kept.saturating_sub(taken.is_kept.into());
        }
        let shift = self.shifts.as_mut().filter(|_| taken.is_kept).and_then(|shifts| shifts.get_mut(place));
        shift.into_iter().for_each(|shift| *shift = Shift::NONE);
        Some(taken)
    }

    /// Forgets a connection that is over, looking at one place a call.
    pub(crate) fn sweep(&mut self, now_ns: u64) {
        if self.known == 0 {
            return;
        }
        self.swept = (self.swept + 1) % self.all.len();
        let is_over = |connection: &Connection| connection.is_kept && connection.may_go(now_ns);
        if self.all.get(self.swept).is_some_and(is_over) {
            self.vacate(self.swept);
        }
    }

    /// Forgets those of some flows, whose session is no more.
    pub(crate) fn forget(&mut self, is_it: impl Fn(&FlowKey) -> bool) {
        for place in 0..self.all.len() {
            if self.is_any(place, &is_it) {
                self.vacate(place);
            }
        }
    }

    fn is_any(&self, place: usize, is_it: impl Fn(&FlowKey) -> bool) -> bool {
        let key = self.all.get(place).map_or(FlowKey::NONE, |connection| connection.key);
        key != FlowKey::NONE && is_it(&key)
    }

    /// A connection, if it is known.
    pub(crate) fn get(&mut self, (key, hash): (&FlowKey, u64)) -> Option<&mut Connection> {
        let place = self.by_flow.get(hash)?;
        self.all.get_mut(place as usize).filter(|connection| connection.key == *key)
    }

    /// Whether numbers of a connection differ, if it is known.
    pub(crate) fn is_shifted(&self, (key, hash): (&FlowKey, u64)) -> bool {
        let found = self.by_flow.get(hash).and_then(|place| self.all.get(place as usize));
        found.is_some_and(|connection| connection.key == *key && connection.is_shifted())
    }

    /// What the server knows a user's number as, whether the connection is known or not.
    pub(crate) fn to_server(&self, (key, hash): (&FlowKey, u64), sequence: u32) -> u32 {
        let found = self.by_flow.get(hash).and_then(|place| self.all.get(place as usize));
        let found = found.filter(|connection| connection.key == *key);
        found.map_or(sequence, |connection| connection.to_server(sequence))
    }

    /// A connection begins, whose user's first octet has this number. Where there is no room it is not known.
    pub(crate) fn begin(&mut self, (key, hash): (&FlowKey, u64), first: u32, now_ns: u64) {
        let numbers = Connection { high: first, upcoming: Upcoming::Request(first), ..Connection::NONE };
        let fresh = Connection { key: *key, hash, seen_ns: now_ns, ..numbers };
        if let Some(place) = self.by_flow.get(hash).map(|place| place as usize) {
            // Another of the same hash stays: its numbers may differ.
            if self.is_any(place, |known| known == key) {
                self.vacate(place);
                self.put(place, fresh);
            }
        } else if let Some(place) = self.make_room(now_ns) {
            self.put(place, fresh);
        }
    }

    /// Connections that can still be taken in, if nothing that may be forgotten is.
    pub(super) fn room(&self, now_ns: u64) -> usize {
        self.all.iter().filter(|connection| connection.may_go(now_ns)).count()
    }

    /// Takes out those of some flows, into a list that has the room.
    pub(super) fn carry_off(&mut self, is_it: impl Fn(&FlowKey) -> bool, into: &mut Vec<Connection>) {
        for place in 0..self.all.len() {
            if into.len() < into.capacity() && self.is_any(place, &is_it) {
                into.extend(self.vacate(place));
            }
        }
    }

    /// Takes in one that was known elsewhere. Where there is no room, it is known nowhere.
    pub(super) fn adopt(&mut self, connection: Connection, now_ns: u64) {
        if self.by_flow.get(connection.hash).is_some() {
            return;
        }
        let rounds = self.all.len().div_ceil(CANDIDATES);
        if let Some(place) = (0..rounds).find_map(|_| self.make_room(now_ns)) {
            self.put(place, connection);
        }
    }

    /// Takes in one that a former life of the engine knew, by other hashes and another clock.
    pub(super) fn inherit(&mut self, connection: Connection, hash: impl Fn(&FlowKey) -> u64, now_ns: u64) {
        let hash = hash(&connection.key);
        self.adopt(Connection { hash, seen_ns: now_ns, ..connection }, now_ns);
    }

    /// A free place; else, of some connections that may be forgotten, that of one whose user has most.
    fn make_room(&mut self, now_ns: u64) -> Option<usize> {
        let mut most: Option<(u32, usize)> = None;
        for _ in 0..CANDIDATES.min(self.all.len()) {
            self.next = (self.next + 1) % self.all.len();
            let connection = self.all.get(self.next)?;
            if connection.key == FlowKey::NONE {
                return Some(self.next);
            }
            let places = self.share(&connection.key).places;
            if connection.may_go(now_ns) && most.is_none_or(|(before, _)| places > before) {
                most = Some((places, self.next));
            }
        }
        let (_, place) = most?;
        self.vacate(place);
        Some(place)
    }
}

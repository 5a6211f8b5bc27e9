//! Notes between workers: small, rare, and apart from packets.

use crate::state::{Heard, Key, Name};
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Notes on their way from one worker to another.
const NOTES: usize = 1_024;
/// Notes read that the worker has not seen to yet; what is more is lost, which those that may be read then bear.
const HEARD: usize = 256;

/// From one worker to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// The writer owns a key.
    Owns(Key),
    /// The writer owns it no longer.
    Left(Key),
    /// A station told its Ethernet address. May be lost: who needs it asks again.
    Station(Heard),
    /// Tunnels of the writer lead to a peer, which the reader has to ask whether it is there. May be lost: it is written
    /// again.
    InUse(Name),
    /// A peer answered a question of the reader, by its number, and says when it began. May be lost, like the answer.
    Answered(Name, (u16, Option<u32>)),
    /// A peer of the reader says when it began. May be lost: it says so again.
    Began(Name, u32),
    /// So many bytes of IP pass on the way to a peer. May be lost: routers say so again.
    Narrow(IpAddr, u16),
}

/// A worker's letter boxes: a ring to and from each of the others. Owned by one worker, like everything it writes.
pub(crate) struct Post {
    to: Vec<Option<Producer<Note>>>,
    from: Vec<Option<Consumer<Note>>>,
    /// What must not be lost and found no room yet, and for whom.
    unsent: VecDeque<(usize, Note)>,
    heard: VecDeque<Note>,
}

/// The letter boxes of so many workers.
pub(crate) fn posts(workers: usize) -> Vec<Post> {
    let mut posts: Vec<Post> = (0..workers).map(|_| Post::new()).collect();
    for (writer, reader) in pairs(workers) {
        let (to, from) = match writer == reader {
            true => (None, None),
            false => {
                let (to, from) = RingBuffer::new(NOTES);
                (Some(to), Some(from))
            }
        };
        posts[writer].to.push(to);
        posts[reader].from.push(from);
    }
    posts
}

/// Every worker with every other and itself, in order of both.
pub(super) fn pairs(workers: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..workers).flat_map(move |one| (0..workers).map(move |other| (one, other)))
}

impl Post {
    fn new() -> Self {
        let (unsent, heard) = (VecDeque::new(), VecDeque::with_capacity(HEARD));
        Self { to: Vec::new(), from: Vec::new(), unsent, heard }
    }

    /// Tells one worker something it can do without.
    pub(crate) fn tell(&mut self, worker: u8, note: Note) {
        if let Some(Some(to)) = self.to.get_mut(usize::from(worker)) {
            let _ = to.push(note);
        }
    }

    /// Tells all others something they can do without.
    pub(crate) fn tell_all(&mut self, note: Note) {
        for to in self.to.iter_mut().flatten() {
            let _ = to.push(note);
        }
    }

    /// Tells all others something they have to know. What finds no room waits; see [`Post::is_told`].
    pub(crate) fn must_tell_all(&mut self, note: Note) {
        let no_one_waits = self.unsent.is_empty();
        for (worker, to) in self.to.iter_mut().enumerate() {
            let Some(to) = to else { continue };
            // Notes of one writer keep their order.
            if !no_one_waits || to.push(note).is_err() {
                self.unsent.push_back((worker, note));
            }
        }
    }

    /// Whether all that others have to know is on its way to them; sends what waited, as far as there is room.
    pub(crate) fn is_told(&mut self) -> bool {
        while let Some((worker, note)) = self.unsent.front().copied() {
            let Some(Some(to)) = self.to.get_mut(worker) else { break };
            if to.push(note).is_err() {
                break;
            }
            self.unsent.pop_front();
        }
        self.unsent.is_empty()
    }

    /// Reads what others wrote: `directory` sees every note and whose it is; those it has no use for are kept for
    /// [`Post::next`].
    pub(super) fn read(&mut self, mut directory: impl FnMut(u8, Note)) {
        for (writer, from) in self.from.iter_mut().enumerate() {
            let Some(from) = from else { continue };
            while let Ok(note) = from.pop() {
                directory(writer as u8, note);
                let is_for_worker = !matches!(note, Note::Owns(_) | Note::Left(_));
                if is_for_worker && self.heard.len() < HEARD {
                    self.heard.push_back(note);
                }
            }
        }
    }

    /// The next note for the worker itself.
    pub(crate) fn next(&mut self) -> Option<Note> {
        self.heard.pop_front()
    }
}

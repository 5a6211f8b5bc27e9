//! Several workers: which of them owns a session, and how a packet gets there.
//!
//! The owner is a pure function of the user's address ([`Buckets`]), the one network cards compute that hash the inner
//! address, so that behind such a card every packet is where it belongs. What the function cannot say is in a
//! [`Directory`] that each worker keeps for itself and that owners keep up to date by notes ([`Post`]): tunnels whose
//! packets show another address than the user's, users with a second address, sessions placed elsewhere for lack of
//! room. A worker looks for a session among its own first; the directory is asked when it has none.

mod buckets;
mod crew;
mod directory;
mod post;
mod rings;
mod sight;

pub(crate) use buckets::Buckets;
pub use crew::{Balance, Crew};
pub(crate) use post::{Note, Post, posts};
pub(crate) use rings::{GIVEN, GIVEN_MAX, Handed, Handoff, Unread, handoffs};
pub(crate) use sight::{Sight, sight, sight_down, sight_up};

use crate::config::Limits;
use crate::frame::PortIndex;
use crate::graph::NodeId;
use crate::state::{FlowKey, Key, Name};
use directory::Directory;
pub(crate) use directory::directory_bytes;
use rules::Interface;
use std::hint::select_unpredictable;
use std::net::IpAddr;

/// A packet is handed on no more often: by the function, by the directory, and by the directory of a worker that has
/// just lost the session.
const HANDED_MAX: u8 = 3;

/// Keys that a worker looks at one by one before it forgets all that flows know of networks behind its users.
const OVERTAKING: usize = 64;

/// What a worker knows of the others.
pub(crate) struct Steering {
    me: u8,
    workers: u8,
    /// Ports whose packets may be anybody's: what they bring is looked at before flows are, a bit each.
    mixed: u16,
    /// Of them, those whose packets are mostly others': what they bring is sorted before it is read.
    sorted: u16,
    /// Those whose packets of this turn may still be anybody's.
    unsorted: u16,
    /// The worker that has all sessions of Ethernet frames: they are switched to each other.
    frames_owner: u8,
    /// Another worker has had one.
    has_frames: bool,
    /// Another worker has had a tunnel that is turned.
    has_turned: bool,
    /// Some worker has had a network behind a user.
    has_routes: bool,
    /// Keys of other workers, new ones, that may be within a network of a user of this worker; all, where too many came.
    overtaking: Vec<Key>,
    buckets: Buckets,
    directory: Directory,
    pub(crate) post: Post,
}

impl Steering {
    /// Of the worker number `me`; `limits` are those of one worker.
    pub(crate) fn new(crew: &Crew, me: u8, post: Post, limits: &Limits) -> Self {
        let is_alone = crew.workers < 2;
        let elsewhere = if is_alone { 0 } else { limits.sessions * (crew.workers - 1) };
        Self {
            me,
            workers: crew.workers as u8,
            mixed: if is_alone { 0 } else { crew.mixed_ports() },
            sorted: if is_alone { 0 } else { crew.sorted_ports() },
            unsorted: 0,
            frames_owner: crew.distributors as u8,
            has_frames: false,
            has_turned: false,
            has_routes: false,
            overtaking: Vec::with_capacity(OVERTAKING + 1),
            buckets: Buckets::new(crew),
            // Notes of an old owner may come behind those of the new one: hence twice the room.
            directory: Directory::new(elsewhere, if is_alone { 0 } else { 2 * limits.framed_routes }),
            post,
        }
    }

    /// Of the only worker.
    #[cfg(test)]
    pub(crate) fn alone() -> Self {
        let post = posts(1).pop().unwrap();
        Self::new(&Crew::default(), 0, post, &Limits::default())
    }

    /// Whether there are other workers.
    #[inline]
    pub(crate) const fn is_shared(&self) -> bool {
        self.workers > 1
    }

    /// This worker's number.
    #[inline]
    pub(crate) fn me(&self) -> usize {
        self.me.into()
    }

    /// This worker's number, and how many there are, at least one.
    pub(crate) const fn place(&self) -> (u8, u8) {
        (self.me, if self.workers == 0 { 1 } else { self.workers })
    }

    /// A turn begins, in which what ports bring is sorted before it is read, if `sorts`, where that is worth it.
    pub(crate) const fn begin_turn(&mut self, sorts: bool) {
        self.unsorted = if sorts { self.mixed & !self.sorted } else { self.mixed };
    }

    /// Whether what a port brings is sorted before it is read.
    #[inline]
    pub(crate) const fn sorts(&self, port: PortIndex) -> bool {
        (self.mixed & !self.unsorted) >> port & 1 != 0
    }

    /// Some of what a port has just brought could not be sorted.
    pub(crate) const fn leave_unsorted(&mut self, port: PortIndex) {
        self.unsorted |= 1 << port;
    }

    /// Where a user's packet of a port goes once its flow's key is known. Where it may be anybody's, nothing tells a branch whose it
    /// is, so there is none.
    #[inline]
    pub(crate) fn next(&self, port: PortIndex, key: &FlowKey) -> NodeId {
        if self.unsorted >> port & 1 == 0 {
            return NodeId::Flow;
        }
        select_unpredictable(self.owner(key.user()) == self.me, NodeId::Flow, NodeId::Steer)
    }

    /// The worker that the function gives a user to; `user` as in a flow's key.
    #[inline]
    pub(crate) fn owner(&self, user: u64) -> u8 {
        self.buckets.owner(user)
    }

    /// The worker that the function gives a user to, unless it is this one; `user` as in a flow's key.
    #[inline]
    pub(crate) fn other_owner(&self, user: u64) -> Option<u8> {
        let owner = self.owner(user);
        (owner != self.me).then_some(owner)
    }

    /// Whether a packet that was handed on so often may be once more.
    pub(crate) const fn may_hand_on(&self, handed: u8) -> bool {
        handed < HANDED_MAX
    }

    /// Who has the session of a key, where this worker has none; `handed` is how often the packet was handed on.
    #[cold]
    pub(crate) fn elsewhere(&mut self, key: Key, handed: u8) -> Option<u8> {
        if !self.is_shared() || handed >= HANDED_MAX {
            return None;
        }
        let known = self.look_up(key);
        known.or_else(|| match key {
            Key::User(user, _) if handed == 0 => self.other_owner(Buckets::user(user)),
            _ => None,
        })
    }

    /// The worker that has all sessions of Ethernet frames, unless it is this one.
    pub(crate) const fn other_owner_of_frames(&self) -> Option<u8> {
        if self.frames_owner == self.me { None } else { Some(self.frames_owner) }
    }

    /// Whether other workers have sessions of Ethernet frames, or had some, as far as this one has heard.
    #[inline]
    pub(crate) const fn has_frames(&self) -> bool {
        self.has_frames
    }

    /// Whether other workers have tunnels of [`Key::turned`], or had some, as far as this one has heard.
    #[inline]
    pub(crate) const fn has_turned(&self) -> bool {
        self.has_turned
    }

    /// Whether another worker has a session of this key, as far as this one has heard.
    pub(crate) fn has_heard_of(&self, key: Key) -> bool {
        self.owner_of_key(key).is_some()
    }

    /// The other worker that has a session of this key, as far as this one has heard.
    pub(crate) fn owner_of_key(&self, key: Key) -> Option<u8> {
        self.directory.find(key)
    }

    /// The other worker that has the session of [`Key::frames`].
    pub(crate) fn elsewhere_of_frames(&mut self, key: Key, handed: u8) -> Option<u8> {
        if !self.is_shared() || handed >= HANDED_MAX {
            return None;
        }
        self.look_up(key)
    }

    /// Whether another worker has a session of this key.
    #[cold]
    pub(crate) fn is_elsewhere(&mut self, key: Key) -> bool {
        self.is_shared() && self.look_up(key).is_some()
    }

    /// A session is acknowledged when its notes are on their way, so that they are read before anybody is told that
    /// there is none.
    fn look_up(&mut self, key: Key) -> Option<u8> {
        if let Some(owner) = self.directory.find(key) {
            return Some(owner);
        }
        self.read();
        self.directory.find(key)
    }

    /// Reads what the others wrote; what the directory has no use for is left for the worker.
    pub(crate) fn read(&mut self) {
        let Self { post, directory, has_frames, has_turned, has_routes, overtaking, .. } = self;
        post.read(|from, note| match note {
            Note::Owns(key) => {
                *has_frames |= key.is_of_frames();
                *has_turned |= key.turned_tunnel().is_some();
                *has_routes |= matches!(key, Key::Route(..));
                if *has_routes && !matches!(key, Key::Tunnel(_)) && overtaking.len() <= OVERTAKING {
                    overtaking.push(key);
                }
                directory.enter(key, from);
            }
            Note::Left(key) => directory.leave(key, from),
            _ => {}
        });
    }

    /// Whether other workers have to hear who owns a key: the function says it of users, unless they are elsewhere.
    fn is_exceptional(&self, key: Key) -> bool {
        self.is_exceptional_of(key, self.me)
    }

    fn is_exceptional_of(&self, key: Key, owner: u8) -> bool {
        match key {
            Key::Tunnel(_) | Key::Route(..) => true,
            Key::User(..) => key.user().is_none_or(|user| self.buckets.owner(Buckets::user(user)) != owner),
        }
    }

    /// Keys of a session that moves lead to another worker from now on, or to this one. Everything written before about
    /// them has been read then: a session moves only when nothing of it is under way.
    pub(crate) fn lead(&mut self, keys: &[Key], to: u8) {
        self.read();
        for key in keys {
            self.has_turned |= key.turned_tunnel().is_some();
            self.has_routes |= matches!(key, Key::Route(..));
            // As its new owner would announce it, and will say when it is gone.
            match to != self.me && (self.has_routes || self.is_exceptional_of(*key, to)) {
                true => self.directory.enter(*key, to),
                false => self.directory.erase(*key),
            }
        }
    }

    /// The keys of a session of this worker have changed.
    pub(crate) fn announce(&mut self, old: &[Key], new: &[Key]) {
        if !self.is_shared() {
            return;
        }
        for key in old.iter().filter(|key| !new.contains(key)) {
            // Once some worker has had a network behind a user, others may have been told of keys within it.
            if self.has_routes || self.is_exceptional(*key) {
                self.post.must_tell_all(Note::Left(*key));
            }
        }
        for key in new.iter().filter(|key| !old.contains(key)) {
            self.has_routes |= matches!(key, Key::Route(..));
            if self.is_exceptional(*key) || self.directory.is_around(*key) {
                self.post.must_tell_all(Note::Owns(*key));
            }
        }
    }

    /// Lengths of networks behind users of other workers, a bit each.
    #[inline]
    pub(crate) const fn route_lengths(&self) -> u128 {
        self.directory.route_lengths()
    }

    /// Takes a new key of another worker that may be within a network of a user of this one; `Err` where there were too many
    /// to remember.
    pub(crate) fn next_overtaking(&mut self) -> Option<Result<Key, ()>> {
        if self.overtaking.len() > OVERTAKING {
            self.overtaking.clear();
            return Some(Err(()));
        }
        self.overtaking.pop().map(Ok)
    }

    /// The worker that asks a peer whether it is there, unless it is this one: no peer is asked by two.
    pub(crate) fn other_steward(&self, name: Name) -> Option<u8> {
        let steward = steward((name.0.interface(), name.1), self.workers);
        (steward != self.me).then_some(steward)
    }
}

/// The worker, of so many, that asks a peer whether it is there.
pub(crate) fn steward((side, address): (Interface, IpAddr), workers: u8) -> u8 {
    let bits = match address {
        IpAddr::V4(address) => u64::from(address.to_bits()) << 32,
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64 ^ address.to_bits() as u64,
    };
    ((steer::hash64(bits) ^ side as u32) % u32::from(workers.max(1))) as u8
}

//! The other ends of tunnels: few, and named by many sessions, so each is kept once.

use super::exits::Exit;
use super::path_mtus::PathMtus;
use super::paths::{Due, Path, PathCounts, PathsDue};
use crate::config::Echo;
use crate::frame::NextHop;
use crate::side::Side;
use crate::steering::steward;
use dplink::PathState;
use packet::gtpu::{Framed, Template};
use std::collections::HashMap;
use std::net::IpAddr;

/// Peers looked at in one turn.
const SEARCH: usize = 512;
/// Peers listed in one turn.
const LISTED: usize = 256;
/// A peer of another worker's is named to it so often, and remembered by it so long without.
const NAMED_NS: u64 = 30_000_000_000;
const NAMED_MEMORY_NS: u64 = 100_000_000_000;
/// How long a peer is remembered that no tunnel leads to.
const MEMORY_NS: u64 = 600_000_000_000;

/// A peer by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PeerIndex(u32);

impl PeerIndex {
    /// No peer.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Whether it is one.
    #[inline]
    pub(crate) const fn is_some(self) -> bool {
        self.0 != Self::NONE.0
    }
}

/// How packets reach a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) next_hop: NextHop,
    /// Headers of a tunnel to it; TEID, QFI and DSCP are still to be filled in.
    pub(crate) template: Template,
    /// Our address towards it, and its own.
    pub(crate) ends: (IpAddr, IpAddr),
    /// Bytes of the longest IP packet that gets there; of one that comes back to this node, beyond it.
    pub(crate) mtu: u16,
}

impl Way {
    /// Whether it leads back to this node: the other end of the tunnel is ours, too.
    pub(crate) fn comes_back(&self) -> bool {
        self.ends.0 == self.ends.1
    }
}

/// On which side a peer is, and its address: the same address on two sides is two stations.
pub(crate) type Name = (Side, IpAddr);

/// A peer, as packets to it read it.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// How packets left that went there before, over IPv4.
    exit: Option<Exit<Framed>>,
    /// `None`: no route leads there.
    way: Option<Way>,
}

/// A peer, as the rest of us sees it.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// `None` where the place is free.
    name: Option<Name>,
    /// All that lead there...
    tunnels: u32,
    /// ... and those of them that are of UDP alone: for their sake nobody is asked whether he is there.
    udp: u32,
    /// Since when no tunnel leads there, as far as somebody looked.
    idle_ns: Option<u64>,
    path: Path,
    /// Of a peer that another worker asks: when it is named to it next. Of one that this worker asks: until when tunnels
    /// of another worker lead there.
    named_ns: u64,
}

const FREE: Known = Known { name: None, tunnels: 0, udp: 0, idle_ns: None, path: Path::NEW, named_ns: 0 };

/// All peers of a worker. One without tunnels is remembered for a while, or as long as there is room: sessions come and
/// go, and a change of rules takes tunnels away to give them back.
pub(crate) struct Peers {
    peers: Vec<Peer>,
    /// By the same places.
    known: Vec<Known>,
    free: Vec<u32>,
    by_name: HashMap<Name, PeerIndex>,
    limit: usize,
    /// Known peers without tunnels.
    idle: usize,
    echo: Echo,
    /// Which of so many workers this is: each peer is asked by one of them.
    place: (u8, u8),
    /// Looked at last.
    looked: usize,
    path_mtus: PathMtus,
    pub(crate) counts: PathCounts,
}

impl Peers {
    pub(crate) fn new(limit: usize, echo: Echo) -> Self {
        Self {
            peers: Vec::with_capacity(limit),
            known: Vec::with_capacity(limit),
            free: Vec::with_capacity(limit),
            by_name: HashMap::with_capacity(limit),
            limit,
            idle: 0,
            echo,
            place: (0, 1),
            looked: 0,
            path_mtus: PathMtus::new(limit),
            counts: PathCounts::default(),
        }
    }

    /// One of `workers` workers, the one numbered `me`.
    pub(crate) fn share(&mut self, me: u8, workers: u8) {
        self.place = (me, workers);
    }

    /// Tunnels of another worker lead to a peer. Where there is no room it is named again.
    pub(crate) fn name(&mut self, name: Name, now_ns: u64, way: impl FnOnce() -> Option<Way>) {
        if !self.by_name.contains_key(&name) {
            if self.room() == 0 {
                return;
            }
            let index = self.enter(name, way);
            self.leave(index);
        }
        if let Some(known) = self.known_mut(name) {
            (known.named_ns, known.idle_ns) = (now_ns + NAMED_MEMORY_NS, None);
        }
    }

    /// The worker that asks a peer, unless it is this one.
    fn other_steward(&self, name: Name) -> Option<u8> {
        let (me, workers) = self.place;
        Some(steward((name.0.interface(), name.1), workers)).filter(|steward| *steward != me)
    }

    /// Peers that can still be taken in.
    pub(crate) fn room(&self) -> usize {
        self.limit - self.by_name.len() + self.idle
    }

    /// How many of these peers have to be taken in, at most: most steps lead to the same as the one before.
    pub(crate) fn new_among(&self, names: &[Option<Name>]) -> usize {
        let mut last = None;
        let is_new = |name: &&Name| last.replace(**name) != Some(**name) && !self.is_in_use(**name);
        names.iter().flatten().filter(is_new).count()
    }

    /// Whether tunnels lead to a peer, so that one more takes no room.
    fn is_in_use(&self, name: Name) -> bool {
        let known = self.by_name.get(&name).and_then(|index| self.known.get(index.0 as usize));
        known.is_some_and(|known| known.tunnels > 0)
    }

    /// One more tunnel leads to a peer; `way` finds how packets reach a new one. Room was made sure of.
    pub(crate) fn enter(&mut self, name: Name, way: impl FnOnce() -> Option<Way>) -> PeerIndex {
        if let Some(index) = self.by_name.get(&name) {
            if let Some(known) = self.known.get_mut(index.0 as usize) {
                self.idle -= usize::from(known.tunnels == 0);
                (known.tunnels, known.idle_ns) = (known.tunnels + 1, None);
            }
            return *index;
        }
        let place = self.place();
        let (peer, known) = (Peer { exit: None, way: way() }, Known { name: Some(name), tunnels: 1, ..FREE });
        match self.peers.get_mut(place as usize).zip(self.known.get_mut(place as usize)) {
            Some(slots) => (*slots.0, *slots.1) = (peer, known),
            None => {
                self.peers.push(peer);
                self.known.push(known);
            }
        }
        self.by_name.insert(name, PeerIndex(place));
        PeerIndex(place)
    }

    /// For one more: where one was, or at the end, or instead of the first that no tunnel leads to.
    fn place(&mut self) -> u32 {
        if self.free.is_empty() && self.peers.len() >= self.limit {
            let idle = self.known.iter().position(|known| known.tunnels == 0);
            idle.into_iter().for_each(|place| self.erase(place));
        }
        self.free.pop().unwrap_or(self.peers.len() as u32)
    }

    /// One tunnel less leads to a peer.
    pub(crate) fn leave(&mut self, index: PeerIndex) {
        let Some(known) = self.known.get_mut(index.0 as usize) else { return };
        known.tunnels -= 1;
        self.idle += usize::from(known.tunnels == 0);
    }

    /// Of the tunnels that lead to a peer, one more is of UDP alone.
    pub(crate) fn enter_udp(&mut self, index: PeerIndex) {
        self.known.get_mut(index.0 as usize).into_iter().for_each(|known| known.udp += 1);
    }

    /// One less.
    pub(crate) fn leave_udp(&mut self, index: PeerIndex) {
        self.known.get_mut(index.0 as usize).into_iter().for_each(|known| known.udp -= 1);
    }

    /// Whether tunnels to a peer come back to this node.
    fn comes_back(&self, index: PeerIndex) -> bool {
        self.way(index).is_some_and(Way::comes_back)
    }

    fn erase(&mut self, place: usize) {
        let Some(known) = self.known.get_mut(place) else { return };
        if let Some(name) = known.name.take() {
            self.by_name.remove(&name);
            self.idle -= 1;
            self.free.push(place as u32);
        }
    }

    /// Which peer it is.
    pub(crate) fn name_of(&self, index: PeerIndex) -> Option<Name> {
        self.known.get(index.0 as usize)?.name
    }

    /// How packets reach a peer.
    #[inline]
    pub(crate) fn way(&self, index: PeerIndex) -> Option<&Way> {
        self.peers.get(index.0 as usize)?.way.as_ref()
    }

    /// How packets left that went to a peer before.
    #[inline(always)]
    pub(crate) fn exit(&self, index: PeerIndex) -> Option<&Exit<Framed>> {
        self.peers.get(index.0 as usize)?.exit.as_ref()
    }

    /// Notes how packets leave that go to a peer.
    pub(crate) fn note_exit(
        &mut self,
        index: PeerIndex,
        now_ns: u64,
        exit: impl FnOnce(&Way) -> Option<Exit<Framed>>,
    ) {
        if let Some(peer) = self.peers.get_mut(index.0 as usize) {
            let passes = peer.way.and_then(|way| self.path_mtus.fits(way.ends.1, now_ns));
            let exit = peer.way.as_ref().and_then(exit);
            peer.exit = exit.map(|exit| exit.at_most(passes.unwrap_or(u16::MAX)));
        }
    }

    /// No more than `mtu` bytes of IP pass on the way to a peer; nothing is remembered of others.
    pub(crate) fn narrow(&mut self, peer: IpAddr, mtu: u16, now_ns: u64) {
        let is_it = |known: &Known| known.name.is_some_and(|(_, address)| address == peer);
        let places =
            || self.known.iter().enumerate().filter(|(_, known)| is_it(known)).map(|(place, _)| place);
        if places().next().is_none() || !self.path_mtus.learn(peer, mtu, now_ns) {
            return;
        }
        for place in places() {
            self.peers.get_mut(place).into_iter().for_each(|peer| peer.exit = None);
        }
    }

    /// Bytes of IP that pass on the way to an address; `None` where nobody said so.
    #[inline]
    pub(crate) fn passes(&self, to: IpAddr, now_ns: u64) -> Option<u16> {
        self.path_mtus.fits(to, now_ns)
    }

    /// Whether anybody said so of any way.
    #[inline]
    pub(crate) fn are_any_narrow(&self) -> bool {
        self.path_mtus.are_any()
    }

    /// Looks at some peers in turn: what is to be done about their paths. Changes come again until
    /// [`Peers::told`] says that they were told.
    pub(crate) fn look(&mut self, now_ns: u64) -> PathsDue {
        let mut due = PathsDue::default();
        for _ in 0..SEARCH.min(self.known.len()) {
            if due.is_full() {
                break;
            }
            self.looked = (self.looked + 1) % self.known.len();
            self.look_at(self.looked, now_ns, &mut due);
        }
        due
    }

    fn look_at(&mut self, place: usize, now_ns: u64, due: &mut PathsDue) {
        let Some(name) = self.known.get(place).and_then(|known| known.name) else { return };
        // Whether we are there ourselves, nobody asks.
        let asks = !self.comes_back(PeerIndex(place as u32));
        let other = self.other_steward(name).filter(|_| asks);
        let Some(known) = self.known.get_mut(place) else { return };
        if known.tunnels == 0 && (other.is_some() || known.named_ns <= now_ns) {
            let idle_ns = *known.idle_ns.get_or_insert(now_ns);
            if now_ns.saturating_sub(idle_ns) > MEMORY_NS {
                self.erase(place);
            }
            return;
        }
        if known.of_gtpu() == 0 && (other.is_some() || known.named_ns <= now_ns) {
            return;
        }
        if let Some(other) = other {
            if known.named_ns <= now_ns {
                known.named_ns = now_ns + NAMED_NS;
                due.named.push((other, name));
            }
            return;
        }
        due.restarts.extend(known.path.has_untold_restart().then_some(name));
        let Some(way) = self.peers.get(place).and_then(|peer| peer.way.filter(|_| asks)) else { return };
        match known.path.look(now_ns, self.echo) {
            Due::Ask(sequence) => {
                self.counts.requests += 1;
                due.questions.push((way, sequence));
            }
            Due::Failed => self.counts.failures += 1,
            Due::Nothing => {}
        }
        due.changes.extend(known.path.untold().map(|failed| (name, failed)));
    }

    /// The control plane has been told of a peer.
    pub(crate) fn told(&mut self, name: Name) {
        if let Some(known) = self.known_mut(name) {
            known.path.told();
        }
    }

    /// The control plane has been told that a peer was restarted.
    pub(crate) fn told_restart(&mut self, name: Name) {
        if let Some(known) = self.known_mut(name) {
            known.path.told_restart();
        }
    }

    /// An answer to one of our questions, by its number, and when the peer says that it began.
    pub(crate) fn answered(&mut self, name: Name, (sequence, stamp): (u16, Option<u32>), now_ns: u64) {
        let echo = self.echo;
        let known = self.known_mut(name);
        let is_wanted = known.is_some_and(|known| known.path.answered(sequence, now_ns, echo));
        self.counts.responses += u64::from(is_wanted);
        stamp.into_iter().filter(|_| is_wanted).for_each(|stamp| self.began(name, stamp, now_ns));
    }

    /// A peer says when it began. Of one that no tunnel leads to nobody wants to hear: tunnels that come later, it knows.
    pub(crate) fn began(&mut self, name: Name, stamp: u32, now_ns: u64) {
        let Some(known) = self.known_mut(name) else { return };
        let is_restart = known.path.began(stamp);
        if known.of_gtpu() == 0 && known.named_ns <= now_ns {
            known.path.told_restart();
        }
        self.counts.restarts += u64::from(is_restart);
    }

    fn known_mut(&mut self, name: Name) -> Option<&mut Known> {
        let index = *self.by_name.get(&name)?;
        self.known.get_mut(index.0 as usize)
    }

    /// What is counted, with how many there are now that this worker asks.
    pub(crate) fn counts(&self, now_ns: u64) -> PathCounts {
        let asks = |known: &&Known| known.name.is_some_and(|name| self.other_steward(name).is_none());
        let in_use = self.known.iter().filter(asks).filter(|known| self.is_listed(known, now_ns));
        let counts = PathCounts { peers: 0, failed: 0, ..self.counts };
        in_use.fold(counts, |counts, known| PathCounts {
            peers: counts.peers + 1,
            failed: counts.failed + u64::from(known.path.is_failed()),
            ..counts
        })
    }

    /// Appends peers in use to a list that has the room, from a place on; returns the place to go on from, or `None` at
    /// the end.
    pub(crate) fn list(
        &self,
        from: usize,
        now_ns: u64,
        into: &mut Vec<dplink::PeerStatistics>,
    ) -> Option<usize> {
        let places = from..(from + LISTED).min(self.known.len());
        for place in places.clone() {
            let seen = self.known.get(place).zip(self.peers.get(place));
            let told = seen.filter(|(known, _)| self.is_listed(known, now_ns));
            let told = told.and_then(|(known, peer)| {
                let told = known.tell(peer, now_ns)?;
                Some(dplink::PeerStatistics { path_mtu: self.passes(told.address, now_ns), ..told })
            });
            into.extend(told.filter(|_| into.len() < into.capacity()));
        }
        (places.end < self.known.len()).then_some(places.end)
    }

    /// Whether tunnels lead there: of this worker, or of another for which this one asks.
    fn is_listed(&self, known: &Known, now_ns: u64) -> bool {
        let asks = || known.name.is_some_and(|name| self.other_steward(name).is_none());
        known.of_gtpu() > 0 || (known.named_ns > now_ns && asks())
    }
}

impl Known {
    /// Tunnels of GTP-U that lead there.
    const fn of_gtpu(&self) -> u32 {
        self.tunnels - self.udp
    }

    fn tell(&self, peer: &Peer, now_ns: u64) -> Option<dplink::PeerStatistics> {
        let (side, address) = self.name?;
        let answer = self.path.answer();
        let path = match (peer.way, self.path.is_failed(), answer) {
            (None, ..) => PathState::NoRoute,
            (Some(way), ..) if way.comes_back() => PathState::Up,
            (_, true, _) => PathState::Failed,
            (_, _, Some(_)) => PathState::Up,
            (_, _, None) => PathState::Unknown,
        };
        Some(dplink::PeerStatistics {
            side: side.interface(),
            address,
            ours: peer.way.map(|way| way.ends.0),
            tunnels: self.of_gtpu(),
            path,
            round_trip_us: answer.map(|(_, took_us)| took_us),
            last_answer_age_ms: answer.map(|(at_ns, _)| now_ns.saturating_sub(at_ns) / 1_000_000),
            recovery_time_stamp: self.path.recovery_time_stamp(),
            restarts: self.path.restarts(),
            path_mtu: None,
        })
    }
}

#[cfg(test)]
mod tests;

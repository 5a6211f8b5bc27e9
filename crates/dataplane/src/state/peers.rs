//! The other ends of tunnels: few, and named by many sessions, so each is kept once.

use crate::frame::NextHop;
use packet::gtpu::Template;
use rules::Interface;
use std::collections::HashMap;
use std::net::IpAddr;

/// A peer by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerIndex(u32);

impl PeerIndex {
    /// No peer.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// How packets reach a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) next_hop: NextHop,
    /// Headers of a tunnel to it; TEID, QFI and DSCP are still to be filled in.
    pub(crate) template: Template,
    /// Our address towards it, and its own.
    pub(crate) ends: (IpAddr, IpAddr),
}

/// On which side a peer is, and its address: the same address on two sides is two stations.
pub(crate) type Name = (Interface, IpAddr);

/// One peer.
#[derive(Clone, Copy, Debug)]
struct Peer {
    name: Name,
    tunnels: u32,
    /// `None`: no route leads there.
    way: Option<Way>,
}

/// All peers of a worker.
pub(crate) struct Peers {
    peers: Vec<Peer>,
    free: Vec<u32>,
    by_name: HashMap<Name, PeerIndex>,
    limit: usize,
}

impl Peers {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            peers: Vec::with_capacity(limit),
            free: Vec::with_capacity(limit),
            by_name: HashMap::with_capacity(limit),
            limit,
        }
    }

    /// Peers that can still be taken in.
    pub(crate) fn room(&self) -> usize {
        self.limit - self.by_name.len()
    }

    /// One more tunnel leads to a peer; `way` finds how packets reach a new one. Room was made sure of.
    pub(crate) fn enter(&mut self, name: Name, way: impl FnOnce() -> Option<Way>) -> PeerIndex {
        if let Some(index) = self.by_name.get(&name) {
            self.peers[index.0 as usize].tunnels += 1;
            return *index;
        }
        let peer = Peer { name, tunnels: 1, way: way() };
        let place = match self.free.pop() {
            Some(place) => {
                self.peers[place as usize] = peer;
                place
            }
            None => {
                self.peers.push(peer);
                self.peers.len() as u32 - 1
            }
        };
        self.by_name.insert(name, PeerIndex(place));
        PeerIndex(place)
    }

    /// One tunnel less leads to a peer.
    pub(crate) fn leave(&mut self, index: PeerIndex) {
        let Some(peer) = self.peers.get_mut(index.0 as usize) else { return };
        peer.tunnels -= 1;
        if peer.tunnels == 0 {
            self.by_name.remove(&peer.name);
            self.free.push(index.0);
        }
    }

    /// How packets reach a peer.
    #[inline]
    pub(crate) fn way(&self, index: PeerIndex) -> Option<&Way> {
        self.peers.get(index.0 as usize)?.way.as_ref()
    }
}

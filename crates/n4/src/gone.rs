//! Control planes that are gone, and what they leave behind: their places, and after a time that the operator sets, their sessions.

use crate::interface::Level;
use crate::node::Node;
use crate::peers::{Answer, Association};
use machine::Time;
use std::cmp::Reverse;
use std::net::IpAddr;

/// Who gives way first: those who answer no heartbeats, and those of the most crowded address; then who has not shown itself for longest.
type Turn = (Reverse<usize>, Option<Time>);

impl Node {
    /// Whether there is a place for a control plane at that address. Whoever associates and goes away would keep its own for ever, and one
    /// host could take all by Node IDs it makes up (TS 29.244 6.2.6 has nobody prove one): so one that has no sessions loses its place.
    pub(crate) fn make_room_for(&mut self, node_id: &str, at: IpAddr) -> bool {
        if self.peers.get(node_id).is_some() || self.peers.len() < self.config.limits.peers {
            return true;
        }
        let Some(gone) = self.who_gives_way(at) else {
            self.ask_the_unknown();
            return false;
        };
        let text =
            format!("{gone} has no sessions, has answered no heartbeat, and gives way to {node_id} at {at}");
        self.note(Level::Warning, text);
        self.end_association(gone);
        // A session of its own that is being deleted is waited for, and so is its place.
        self.peers.len() < self.config.limits.peers
    }

    /// Of those without sessions, one that does not answer. Of those of whom that is not known yet, one at an address where there are
    /// more than there would be where the new one is: nobody drives out others by making up many.
    fn who_gives_way(&self, at: IpAddr) -> Option<String> {
        let crowds = self.peers.by_address();
        let crowd = |address| crowds.get(&address).copied().unwrap_or_default();
        let turn = |peer: &Association| -> Option<Turn> {
            let there = crowd(peer.record.address.ip());
            // Where it is alone, all that comes from there is its own.
            let last = if there == 1 { peer.shown.max(peer.heard) } else { peer.shown };
            let is_silent = !peer.is_up() || peer.answer == Answer::Missing;
            let is_of_crowd = peer.answer == Answer::Unknown && there > crowd(at) + 1;
            match (is_silent, is_of_crowd) {
                (true, _) => Some((Reverse(usize::MAX), last)),
                (false, true) => Some((Reverse(there), last)),
                (false, false) => None,
            }
        };
        let is_idle = |peer: &&Association| self.is_idle(peer);
        let turns = self.peers.iter().filter(is_idle).filter_map(|peer| Some((turn(peer)?, peer)));
        turns.min_by_key(|(turn, _)| *turn).map(|(_, peer)| peer.record.node_id.clone())
    }

    fn is_idle(&self, peer: &Association) -> bool {
        !peer.is_ending && self.sessions.count_of(&peer.record.node_id) == 0
    }

    /// Whether those who have just come are there is found out at once, as others wait for their places.
    fn ask_the_unknown(&mut self) {
        let now = self.now;
        let is_new = |peer: &&mut Association| peer.answer == Answer::Unknown && peer.asked.is_none();
        self.peers.iter_mut().filter(is_new).for_each(|peer| peer.next_heartbeat = now);
    }

    /// Control planes that have been silent for as long as the operator waits for them: their associations are over, and nobody is left
    /// to tell that their sessions are. While another of the set is there, which hears of these in their place, they stay.
    pub(crate) fn release_silent(&mut self) {
        let Some(patience) = self.config.silent_max else { return };
        for node_id in self.peers.given_up(self.now) {
            let since = self.peers.gone_since(&node_id);
            let again = since.map_or(self.now + self.config.heartbeat_interval, |since| since + patience);
            if again <= self.now {
                self.give_up(node_id);
            } else if let Some(association) = self.peers.get_mut(&node_id) {
                association.given_up = Some(again);
            }
        }
    }

    fn give_up(&mut self, node_id: String) {
        let silent = self.peers.get(&node_id).and_then(|association| association.silent);
        let silent_s = silent.map_or(0, |since| (self.now - since).as_secs());
        let text = format!(
            "{node_id} has been silent for {silent_s} s: the association with it is over, and so are its {} sessions",
            self.sessions.count_of(&node_id)
        );
        self.note(Level::Warning, text);
        self.losses.forget(&node_id);
        self.end_association(node_id);
    }
}

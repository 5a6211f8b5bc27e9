//! Control planes that are gone, and what they leave behind: their places, and after a time that the operator sets, their sessions.

use crate::interface::Level;
use crate::node::Node;
use crate::peers::Association;
use machine::Time;

impl Node {
    /// Whether there is a place for a control plane. One that has no sessions and has not been heard of for long loses its own: whoever
    /// associates and goes away would keep it for ever.
    pub(crate) fn make_room_for(&mut self, node_id: &str) -> bool {
        if self.peers.get(node_id).is_some() || self.peers.len() < self.config.limits.peers {
            return true;
        }
        let Some(gone) = self.longest_silent() else { return false };
        self.note(
            Level::Info,
            format!("{gone} has long been silent, has no sessions, and gives way to {node_id}"),
        );
        self.end_association(gone);
        // A session of its own that is being deleted is waited for, and so is its place.
        self.peers.len() < self.config.limits.peers
    }

    fn longest_silent(&self) -> Option<String> {
        let patience = self.config.heartbeat_interval * 2 + self.config.t1 * self.config.n1;
        let is_gone = |peer: &&Association| {
            !peer.is_ending
                && peer.heard.unwrap_or(Time::ZERO) + patience <= self.now
                && self.sessions.count_of(&peer.record.node_id) == 0
        };
        let gone = self.peers.iter().filter(is_gone).min_by_key(|peer| peer.heard);
        gone.map(|peer| peer.record.node_id.clone())
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

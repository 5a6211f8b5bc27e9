//! Processes that end and begin anew: the node, the machine it is on, and the data plane.

use super::{Lab, at, plane};
use dplink::{Notice, UsageCause};
use n4::{Input, Node, Start};
use pfcp::{Body, HeartbeatRequest, HeartbeatResponse, Message};
use rules::Seid;
use session::Packed;
use std::net::Ipv4Addr;

impl Lab {
    /// A control plane tells of its restart by a heartbeat, and again as it is asked.
    pub fn tells_of_restart(&mut self, peer: Ipv4Addr, sequence: u32, stamp: u32) {
        self.tell(peer, &Message::node(sequence, HeartbeatRequest::new(stamp)));
        self.answers_with(peer, stamp);
    }

    /// A control plane answers the heartbeats that it has got; how many these were.
    pub fn answers_with(&mut self, peer: Ipv4Addr, stamp: u32) -> usize {
        let is_asked =
            |(to, sent): &mut (_, Message)| *to == at(peer) && matches!(sent.body, Body::HeartbeatRequest(_));
        let asked: Vec<u32> = self.sent.extract_if(.., is_asked).map(|(_, sent)| sent.sequence).collect();
        for sequence in &asked {
            self.tell(peer, &Message::node(*sequence, HeartbeatResponse::new(stamp)));
        }
        asked.len()
    }

    /// A new process with what the database holds, and the link to the data plane.
    pub fn restart(&mut self) {
        self.restart_alone();
        self.connect();
    }

    /// A new process that has yet to find the data plane.
    pub fn restart_alone(&mut self) {
        let node = self.record;
        let associations = self.associations.values().cloned().collect();
        let sessions = self.saved.values().chain(self.over.values()).map(Packed::of).collect();
        let since_1900_ms = self.time_of_day_ms();
        self.started = self.now;
        let last_cdr = self.last_cdr;
        let pfds = self.pfds.values().cloned().collect();
        let paths = self.paths.iter().copied().collect();
        let start = Start {
            node,
            associations,
            forgotten: vec![],
            sessions,
            pfds,
            paths,
            told: self.told_names.clone(),
            last_cdr,
            since_1900_ms,
        };
        self.node = Node::new(self.config.clone(), start);
    }

    /// A new process after a crash of the machine, of which the database may lack the last moments: it has a new time stamp, and of
    /// all it knew where its control planes are.
    pub fn crash(&mut self) {
        let associations = std::mem::take(&mut self.associations).into_values();
        let forgotten = associations.map(|association| association.address).collect();
        self.record.recovery_time_stamp += 1;
        self.saved.clear();
        self.in_force.clear();
        self.plane = plane::Plane::default();
        let since_1900_ms = self.time_of_day_ms();
        self.started = self.now;
        let start = Start { forgotten, last_cdr: self.last_cdr, ..Start::new(self.record, since_1900_ms) };
        self.node = Node::new(self.config.clone(), start);
        self.connect();
    }

    /// The link stands; the data plane learns how things should be. A session in the revision it holds is left alone.
    pub fn connect(&mut self) {
        let (sessions, epoch) = (self.in_force.len() as u64, self.plane.epoch);
        self.handle(Input::DataPath(&Notice::Hello {
            version: dplink::VERSION,
            sessions,
            epoch,
            content: 0,
        }));
        let wanted = self.desired();
        self.in_force.retain(|session, _| wanted.contains_key(session));
        self.plane.retain(|session| wanted.contains_key(session));
        for (session, desired) in wanted {
            if self.in_force.get(&session).is_none_or(|held| held.revision != desired.revision) {
                let (removed, revision) = (self.plane.put(&desired, self.now), desired.revision);
                self.in_force.insert(session, desired);
                if !removed.is_empty() {
                    self.handle(Input::DataPath(&Notice::Applied { session, revision, removed }));
                }
            }
        }
        self.handle(Input::DataPath(&Notice::Resynced { swept: 0 }));
    }

    /// The data plane ends, having told the last of what it counted, and the node after it; then both begin anew.
    pub fn stop_and_start(&mut self) {
        let sessions: Vec<Seid> = self.plane.sessions.keys().copied().collect();
        for session in sessions {
            let counts = self.plane.counts(session, self.now);
            self.handle(Input::DataPath(&Notice::Usage { session, cause: UsageCause::End, counts }));
        }
        self.handle(Input::DataPathLost);
        self.in_force.clear();
        self.orders.clear();
        self.plane = self.plane.reborn();
        self.restart();
    }

    /// The data plane is killed, and perhaps the node with it. What it had counted is in a file, which the next one reads and tells; not to
    /// its end, the first time, where the link `breaks`.
    pub fn kill_plane(&mut self, is_alone: bool, breaks: bool) {
        self.orders.clear();
        self.handle(Input::DataPathLost);
        self.in_force.clear();
        self.orders.clear();
        if !is_alone {
            self.restart_alone();
        }
        let (epoch, counts) = (self.plane.epoch, self.plane.left(self.now));
        let end = if breaks { counts.len() / 2 } else { counts.len() };
        for counts in [&counts[..end], &counts[..]] {
            self.handle(Input::DataPath(&Notice::FormerUsage { epoch, counts: counts.to_vec() }));
        }
        self.plane = self.plane.read();
        self.connect();
    }

    /// The data plane dies and comes back empty.
    pub fn restart_plane(&mut self) {
        self.orders.clear();
        self.handle(Input::DataPathLost);
        self.in_force.clear();
        self.orders.clear();
        self.plane = self.plane.reborn();
        self.connect();
    }
}

//! GTP-U path management: asks peers whether they are there, and tells of those that are not (TS 29.281 7.2).

use super::Worker;
use crate::counters::DropReason;
use crate::frame::{Meta, Packet};
use crate::graph::NodeId;
use crate::nodes;
use crate::port::Port;
use crate::side::Side;
use crate::state::Way;
use crate::steering::Note;
use dplink::{Event, PeerStatistics};
use rules::Interface;

/// The peers of a worker, listed piece by piece so that no packet waits for it.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Has the room.
    pub(crate) peers: Vec<PeerStatistics>,
    /// Where to go on; `None` at the end.
    pub(crate) from: Option<usize>,
    /// Who asked; `None`: the control plane is told of paths that have failed.
    pub(crate) token: Option<u64>,
}

impl Listing {
    /// Of up to so many peers.
    pub(crate) fn new(limit: usize, token: Option<u64>) -> Self {
        Self { peers: Vec::with_capacity(limit), from: Some(0), token }
    }
}

impl<P: Port> Worker<P> {
    /// Asks peers that are due, and notes changes; what there is no room to tell is told later.
    pub(super) fn look_after_paths(&mut self) {
        self.state.tell_late();
        let due = self.state.sessions.peers.look(self.state.now_ns);
        for (name, failed) in due.changes {
            let (side, remote) = (name.0.interface(), name.1);
            if self.state.note(Event::Path { side, remote, failed }) {
                self.state.sessions.peers.told(name);
            }
        }
        for name in due.restarts {
            let (side, remote) = (name.0.interface(), name.1);
            if self.state.note(Event::PeerRestarted { side, remote }) {
                self.state.sessions.peers.told_restart(name);
            }
        }
        for (steward, name) in due.named {
            self.state.steering.post.tell(steward, Note::InUse(name));
        }
        due.questions.into_iter().for_each(|(way, sequence)| self.ask_peer(&way, sequence));
        if !self.vector.is_empty() {
            self.run(NodeId::EthernetOutput, None);
        }
    }

    /// A question that finds no buffer is as good as lost on the way: it is asked again.
    fn ask_peer(&mut self, way: &Way, sequence: u16) {
        let Some(mut buffer) = self.lanes.first_mut().and_then(|lane| lane.port.allocate()) else { return };
        self.counters.created += 1;
        if nodes::write_echo_request(&mut buffer, way.ends, (sequence, self.state.recovery_time_stamp))
            .is_none()
        {
            return self.discard(buffer, DropReason::NoHeadroom);
        }
        let mut meta = Meta::new(way.next_hop.port, Side::of(Interface::Access));
        meta.next_hop = way.next_hop;
        self.vector.push(Packet { buffer, meta });
    }

    /// Notes an event, as if it had been seen.
    #[cfg(test)]
    pub(crate) fn crowd(&mut self, event: Event) {
        self.state.note(event);
    }

    /// Notes so much usage that the control side has not heard of yet, as if there had been any.
    #[cfg(test)]
    pub(crate) fn crowd_usage(&mut self, count: usize) {
        let used = crate::state::Used {
            seid: rules::Seid(999),
            cause: Some(dplink::UsageCause::StartOfTraffic(None)),
            counts: dplink::UsageCounts::default(),
        };
        self.state.used.resize(count, used);
    }

    /// Lists some more peers.
    pub(super) fn list_peers(&self, listing: &mut Listing) {
        let from = listing.from.unwrap_or_default();
        listing.from = self.state.sessions.peers.list(from, self.state.now_ns, &mut listing.peers);
    }
}

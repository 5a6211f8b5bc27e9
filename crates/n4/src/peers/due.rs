//! What is due of associations: heartbeats, and the ends that silence, a restart, a release or an operator's patience bring.

use super::{Association, Peers};
use machine::Time;
use session::AssociationRecord;
use std::net::SocketAddr;

impl Peers {
    /// Associations to send a heartbeat to.
    pub(crate) fn to_ask(&self, now: Time) -> Vec<(String, SocketAddr)> {
        let due = self.by_node_id.values().filter(|peer| !peer.is_asked && peer.next_heartbeat <= now);
        due.map(|peer| (peer.record.node_id.clone(), peer.record.address)).collect()
    }

    /// Associations whose time has run out.
    pub(crate) fn ended(&self, now: Time) -> Vec<String> {
        let ended = self.in_peace().filter(|peer| peer.ends.is_some_and(|ends| ends <= now));
        ended.map(|peer| peer.record.node_id.clone()).collect()
    }

    /// Those who have yet to hear what we can do, and are to be told now.
    pub(crate) fn outdated(&self, now: Time) -> Vec<String> {
        let due = self.by_node_id.values().filter(|peer| peer.outdated.is_some_and(|it| it.next <= now));
        due.map(|peer| peer.record.node_id.clone()).collect()
    }

    /// Who restarted with which time stamp, and has not associated in time.
    pub(crate) fn restarted(&self, now: Time) -> Vec<(String, u32)> {
        let late = |peer: &Association| peer.restarted.filter(|(_, until)| *until <= now);
        self.in_peace().filter_map(|peer| Some((peer.record.node_id.clone(), late(peer)?.0))).collect()
    }

    /// Those who have been silent for so long that it is to be looked at.
    pub(crate) fn given_up(&self, now: Time) -> Vec<String> {
        let late = self.in_peace().filter(|peer| peer.given_up.is_some_and(|at| at <= now));
        late.map(|peer| peer.record.node_id.clone()).collect()
    }

    /// Since when neither a control plane nor another of its set is there.
    pub(crate) fn gone_since(&self, node_id: &str) -> Option<Time> {
        let gone = self.get(node_id)?;
        let is_one = |other: &&Association| {
            other.is_of_set(gone)
                || other.record.node_id == node_id
                || gone.record.alternatives.contains(&other.record.address.ip())
        };
        let all = self.by_node_id.values().filter(is_one);
        // None, if any of them is there.
        let silent: Option<Vec<Time>> =
            all.map(|peer| peer.silent.map(|at| at.max(peer.spoken_for.unwrap_or(at)))).collect();
        silent?.into_iter().max()
    }

    /// Control planes whose stale sessions have stayed for as long as they may, and of which eras these are. Those of later ones are
    /// next.
    pub(crate) fn stale(&mut self, now: Time) -> Vec<(String, u32)> {
        let late = |peer: &Association| peer.stale_end.filter(|(_, end)| *end <= now);
        let of_peer = |peer: &Association| Some((peer.record.node_id.clone(), late(peer)?.0));
        let all: Vec<(String, u32)> = self.in_peace().filter_map(of_peer).collect();
        for (node_id, ended) in &all {
            let next = self.get(node_id).and_then(|peer| self.stale_end(&peer.record));
            let next = next.filter(|(era, _)| era > ended);
            self.get_mut(node_id).into_iter().for_each(|peer| peer.stale_end = next);
        }
        all
    }

    /// Which sessions of a control plane end when, if it does not name them.
    pub(super) fn stale_end(&self, record: &AssociationRecord) -> Option<(u32, Time)> {
        let era = record.era.checked_sub(1)?;
        let end_ms = record.set_up_ms + self.stale_max?.as_millis() as u64;
        Some((era, Time::from_millis(end_ms.saturating_sub(self.since_1900_ms))))
    }

    /// Those whose sessions do not end at the moment.
    fn in_peace(&self) -> impl Iterator<Item = &Association> {
        self.by_node_id.values().filter(|peer| !peer.is_ending)
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        let heartbeats =
            self.by_node_id.values().filter(|peer| !peer.is_asked).map(|peer| peer.next_heartbeat);
        let ends = self.in_peace().filter_map(|peer| {
            let ends = peer.farewell.or(peer.ends)?;
            Some(if peer.is_to_hear { Time::ZERO } else { ends })
        });
        let restarted = self.in_peace().filter_map(|peer| Some(peer.restarted?.1));
        let given_up = self.in_peace().filter_map(|peer| peer.given_up);
        let stale = self.in_peace().filter_map(|peer| Some(peer.stale_end?.1));
        let outdated = self.by_node_id.values().filter_map(|peer| Some(peer.outdated?.next));
        heartbeats
            .chain(ends)
            .chain(restarted)
            .chain(given_up)
            .chain(stale)
            .chain(outdated)
            .chain(self.unassociated().map(|wanted| if wanted.is_told { wanted.next } else { Time::ZERO }))
            .min()
    }
}

//! Heartbeats both ways (TS 29.244 6.2.2), and what a recovery time stamp tells (TS 23.007).

mod suspicion;

pub(crate) use suspicion::Suspicion;

use crate::exchange::{Asked, Purpose};
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::peers::Answer;
use pfcp::{HeartbeatRequest, HeartbeatResponse, Message};
use std::net::SocketAddr;
use std::time::Duration;

/// Between a heartbeat that tells of a restart and the set-up.
const RESTART_PATIENCE: Duration = Duration::from_secs(5);

impl Node {
    /// Anyone is answered, associated or not.
    pub(crate) fn heartbeat(&mut self, asked: &Asked, request: &HeartbeatRequest) {
        let response = HeartbeatResponse { recovery_time_stamp: self.recovery_time_stamp, carried: vec![] };
        self.send(
            asked.key.from,
            &Message { priority: asked.priority, ..Message::node(asked.key.sequence, response) },
        );
        if let Some(node_id) = self.peers.alone_at(asked.key.from) {
            self.suspect(&node_id, request.recovery_time_stamp, (asked.key.from, asked.key.sequence));
        }
    }

    pub(crate) fn ask_whether_alive(&mut self, node_id: String, address: SocketAddr) {
        let request = HeartbeatRequest { recovery_time_stamp: self.recovery_time_stamp, carried: vec![] };
        let again = self.now + self.config.heartbeat_interval;
        let (purpose, now) = (Purpose::Heartbeat(node_id.clone()), self.now);
        let is_asked = self.ask(address, purpose, |sequence| Message::node(sequence, request));
        if let Some(association) = self.peers.get_mut(&node_id) {
            (association.is_asked, association.next_heartbeat) = (is_asked, again);
            association.asked = Some(now);
        }
        if is_asked {
            self.suspect_is_asked(&node_id);
        }
    }

    pub(crate) fn answered_heartbeat(&mut self, node_id: &str, to: SocketAddr, response: &HeartbeatResponse) {
        if let Some(association) = self.peers.get_mut(node_id)
            && !std::mem::replace(&mut association.record.answers_heartbeats, true)
        {
            self.out.push(Output::SaveAssociation(association.record.clone()));
        }
        self.heartbeat_is_over(node_id, true);
        if self.peers.alone_at(to).is_none_or(|alone| alone != node_id) {
            drop(self.no_suspicion(node_id));
        } else if self.is_news(node_id, response.recovery_time_stamp) {
            self.tells_of_restart(node_id, response.recovery_time_stamp, to);
        } else {
            self.is_as_before(node_id);
        }
    }

    /// Sessions outlive a path that fails: the users' packets may still find theirs (TS 23.007). A control plane is silent if it
    /// has answered heartbeats before, does not answer this one, and nothing else came from it since it was asked. Of those that
    /// have never answered one, as some do not, silence says nothing: they are taken to be there.
    pub(crate) fn heartbeat_is_over(&mut self, node_id: &str, is_answered: bool) {
        let again = self.now + self.config.heartbeat_interval;
        let now = self.now;
        let Some(association) = self.peers.get_mut(node_id) else { return };
        (association.is_asked, association.next_heartbeat) = (false, again);
        match is_answered {
            true => (association.answer, association.shown) = (Answer::Given, Some(now)),
            false => association.answer = Answer::Missing,
        }
        let answers_none = !association.record.answers_heartbeats;
        let is_up = is_answered || answers_none || association.heard > association.asked;
        self.is_there(node_id, is_up);
    }

    /// Anything that comes from a control plane shows that it is there (TS 29.244 6.2.2 has heartbeats for when nothing else does).
    pub(crate) fn hear(&mut self, from: SocketAddr) {
        for node_id in self.peers.heard(from.ip(), self.now) {
            self.is_there(&node_id, true);
        }
    }

    fn is_there(&mut self, node_id: &str, is_up: bool) {
        let (now, patience) = (self.now, self.config.silent_max);
        let Some(association) = self.peers.get_mut(node_id).filter(|peer| peer.is_up() != is_up) else {
            return;
        };
        let (level, how) = if is_up {
            association.is_heard();
            (Level::Info, "answers again")
        } else {
            association.falls_silent(now, patience);
            (Level::Warning, "is silent")
        };
        self.note(level, format!("{node_id} {how}; its sessions are kept"));
        self.tell_news_again();
    }

    /// A later stamp than before: it restarted. An earlier one is of a heartbeat that was overtaken. Which sessions it retains it
    /// says when it associates, which comes behind: that is waited for. New ones it makes meanwhile find the others stale.
    fn tells_of_restart(&mut self, node_id: &str, stamp: u32, from: SocketAddr) {
        let suspicion = self.no_suspicion(node_id);
        let Some(association) = self.peers.get_mut(node_id) else { return };
        let until = association.restarted.map_or(self.now + RESTART_PATIENCE, |(_, until)| until);
        let is_first = association.restarted.replace((stamp, until)).is_none();
        match suspicion.filter(|_| is_first) {
            Some(suspicion) => self.confirmed(node_id, suspicion),
            None if is_first => self.begins_anew(node_id, (from, None)),
            None => {}
        }
    }

    /// Those who restarted and have not associated in time retain nothing but what they have spoken of.
    pub(crate) fn end_patience(&mut self) {
        for (node_id, recovery_time_stamp) in self.peers.restarted(self.now) {
            self.restarted(&node_id, recovery_time_stamp);
        }
    }
}

/// Seconds since 1900 in 32 bits come round in 2036.
const fn is_later(received: u32, known: u32) -> bool {
    let ahead = received.wrapping_sub(known);
    ahead != 0 && ahead < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::is_later;

    #[test]
    fn stamps_are_compared_across_2036() {
        assert!(is_later(2, 1) && is_later(0, u32::MAX));
        assert!(!is_later(1, 1) && !is_later(1, 2) && !is_later(u32::MAX, 0));
    }
}

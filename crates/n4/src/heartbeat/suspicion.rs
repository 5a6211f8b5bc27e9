//! A later recovery time stamp in a heartbeat request is a suspicion. TS 29.244 8.2.65 has it tell when the sender was started, but
//! OpenAirInterface's SMF requests with the present time, and answers with the time of its start. So who requests with a later one is asked
//! (6.2.2), and has restarted if its answer says so, too (TS 23.007 19A), or if it does not answer.

use super::is_later;
use crate::node::Node;
use machine::Time;
use rules::Seid;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// What a request told, and is yet to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspicion {
    stamp: u32,
    /// The request, which is the first of its new life, if that is one.
    from: SocketAddr,
    sequence: u32,
    /// It was asked since.
    is_asked: bool,
    /// Its sessions that it has spoken of since: it has not lost them.
    named: BTreeSet<Seid>,
}

/// A heartbeat request is from there, and has this number.
pub(super) type Heard = (SocketAddr, u32);

impl Node {
    /// It is asked at once, but if a heartbeat is under way: that may have been answered before, and the next one follows it. Whose
    /// stamps in requests were found to mean nothing is asked for their sake no more often than for others'.
    pub(super) fn suspect(&mut self, node_id: &str, stamp: u32, (from, sequence): Heard) {
        if !self.is_news(node_id, stamp) {
            return;
        }
        let (now, interval) = (self.now, self.config.heartbeat_interval);
        let Some(association) = self.peers.get_mut(node_id) else { return };
        let is_cleared = |at: Time| now < at + interval;
        if association.suspicion.is_some() || association.cleared.is_some_and(is_cleared) {
            return;
        }
        let (is_asked, named) = (false, BTreeSet::new());
        association.suspicion = Some(Suspicion { stamp, from, sequence, is_asked, named });
        let (is_under_way, address) = (association.is_asked, association.record.address);
        if !is_under_way {
            self.ask_whether_alive(node_id.to_owned(), address);
        }
    }

    /// A heartbeat goes there.
    pub(super) fn suspect_is_asked(&mut self, node_id: &str) {
        let suspicion = self.peers.get_mut(node_id).and_then(|association| association.suspicion.as_mut());
        suspicion.into_iter().for_each(|suspicion| suspicion.is_asked = true);
    }

    /// Its answer tells the stamp that is known.
    pub(super) fn is_as_before(&mut self, node_id: &str) {
        if self.is_to_be_asked(node_id) {
            return;
        }
        let now = self.now;
        let Some(association) = self.peers.get_mut(node_id) else { return };
        if association.suspicion.take().is_some() {
            association.cleared = Some(now);
        }
    }

    /// Where nobody answers, its request is all there is to go by; but not where its answers have told otherwise before, or another
    /// has come to its address: then it is silent, and no more.
    pub(crate) fn suspect_is_silent(&mut self, node_id: &str) {
        if self.is_to_be_asked(node_id) {
            return;
        }
        let Some(association) = self.peers.get_mut(node_id) else { return };
        let is_believed = association.cleared.is_none();
        let told = association.suspicion.as_ref().map(|suspicion| (suspicion.stamp, suspicion.from));
        let is_alone = |from| self.peers.alone_at(from).is_some_and(|alone| alone == node_id);
        let is_news = |(stamp, from): &(u32, SocketAddr)| self.is_news(node_id, *stamp) && is_alone(*from);
        match told.filter(|told| is_believed && is_news(told)) {
            Some((stamp, from)) => self.tells_of_restart(node_id, stamp, from),
            None => drop(self.no_suspicion(node_id)),
        }
    }

    /// A heartbeat that was under way before the suspicion tells nothing of it: whether that is so, and the next goes out. Where requests
    /// are known to mean nothing, that is not waited for.
    fn is_to_be_asked(&mut self, node_id: &str) -> bool {
        let Some(association) = self.peers.get(node_id) else { return false };
        let unasked = association.suspicion.as_ref().filter(|suspicion| !suspicion.is_asked);
        let is_unasked = unasked.is_some() && association.cleared.is_none();
        let address = association.record.address;
        if is_unasked {
            self.ask_whether_alive(node_id.to_owned(), address);
        }
        is_unasked
    }

    /// It speaks of a session.
    pub(crate) fn is_named_by_suspect(&mut self, seid: Seid) {
        let Some(session) = self.sessions.get(seid) else { return };
        let owner = self.peers.get_mut(&session.record.owner);
        let suspicion = owner.and_then(|association| association.suspicion.as_mut());
        suspicion.into_iter().for_each(|suspicion| suspicion.named.extend([seid]));
    }

    pub(super) fn no_suspicion(&mut self, node_id: &str) -> Option<Suspicion> {
        self.peers.get_mut(node_id)?.suspicion.take()
    }

    /// Where there was one, its new life began with that request, and its sessions that it has spoken of since are of today.
    pub(super) fn confirmed(&mut self, node_id: &str, suspicion: Suspicion) {
        let Suspicion { from, sequence, named, .. } = suspicion;
        self.begins_anew(node_id, (from, Some(sequence)));
        let era = self.era(node_id);
        let is_its = |seid: &Seid| self.sessions.get(*seid).is_some_and(|it| it.record.owner == node_id);
        let its: Vec<Seid> = named.into_iter().filter(is_its).collect();
        its.into_iter().for_each(|seid| self.is_named_in(seid, era));
    }

    /// Whether a stamp is later than what is known. Where it waits to associate with that stamp there is nothing to learn.
    pub(super) fn is_news(&self, node_id: &str, received: u32) -> bool {
        let Some(association) = self.peers.get(node_id) else { return false };
        let known = association.restarted.map_or(association.record.recovery_time_stamp, |(stamp, _)| stamp);
        !self.endings.know(node_id, received) && is_later(received, known)
    }
}

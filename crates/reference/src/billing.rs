//! What was counted for a packet, and is taken back where it does not leave: by URRs that measure what QoS enforcement lets
//! pass, which is what is forwarded (TS 29.244 5.2.2).

use crate::Reference;
use crate::detection::Arrival;
use crate::meters::Load;
use rules::{Pdr, Seid, UrrId};

/// Who counted a packet, and as what.
#[derive(Clone, Debug)]
pub(crate) struct Bill {
    /// The place of the session.
    session: usize,
    urrs: Vec<UrrId>,
    load: Load,
}

impl Bill {
    /// Of a packet that matched a PDR of a session.
    pub(crate) fn of((session, pdr): (usize, &Pdr), arrival: &Arrival) -> Self {
        let direction = arrival.source.direction();
        let load = Load { direction, length: arrival.packet.bytes.len() as u64 };
        Self::new((session, pdr), load)
    }

    /// Of anything that did.
    pub(crate) fn new((session, pdr): (usize, &Pdr), load: Load) -> Self {
        Self { session, urrs: pdr.urrs.to_vec(), load }
    }
}

impl Reference {
    /// The packet does not leave, or not yet.
    pub(crate) fn take_back(&mut self, bill: &Bill) {
        if let Some(session) = self.sessions.get_mut(bill.session) {
            session.take_back(&bill.urrs, bill.load);
        }
    }

    /// A packet that waited leaves.
    pub(crate) fn count_again(&mut self, bill: &Bill) {
        if let Some(session) = self.sessions.get_mut(bill.session) {
            session.count_again(&bill.urrs, bill.load);
        }
    }

    /// What waits of a session for a next hop is counted as if it had left, as where its rules change, or it moves to
    /// another worker.
    pub fn settle(&mut self, session: Seid) {
        self.settle_those(session, |_| true);
    }

    /// The same of some packets, as where a session moves while others of it wait at its new worker.
    pub fn settle_those(&mut self, session: Seid, is_one: impl Fn(&[u8]) -> bool) {
        let Some(place) = self.place(session) else { return };
        let mut bills = Vec::new();
        for waiting in self.waiting.iter_mut().filter(|waiting| is_one(&waiting.packet)) {
            waiting.chosen_by = waiting.chosen_by.filter(|chosen| *chosen != session);
            bills.extend(waiting.bill.take_if(|bill| bill.session == place));
        }
        bills.iter().for_each(|bill| self.count_again(bill));
    }

    /// The session that counts.
    pub(crate) fn payer(&self, bill: &Bill) -> Option<Seid> {
        self.sessions.get(bill.session).map(|session| session.seid)
    }

    /// The session at a place has gone, and those behind it have moved up.
    pub(crate) fn move_up(&mut self, place: usize) {
        for bill in self.waiting.iter_mut().filter_map(|waiting| waiting.bill.as_mut()) {
            bill.session -= usize::from(bill.session > place);
        }
    }

    /// The place of a session.
    pub(crate) fn place(&self, session: Seid) -> Option<usize> {
        self.sessions.iter().position(|known| known.seid == session)
    }
}

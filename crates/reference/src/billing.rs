//! What was counted for a packet, and is taken back where it does not leave: by URRs that measure what QoS enforcement lets
//! pass, which is what is forwarded (TS 29.244 5.2.2).

use crate::Reference;
use crate::applications::FlowName;
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
    /// The flow that took it down instead, as it waits to be of an application.
    waits: Option<FlowName>,
}

/// By what a packet goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct By<'a> {
    /// The place of the session.
    pub(crate) session: usize,
    pub(crate) pdr: &'a Pdr,
    /// Its flow, which waits to be of an application.
    pub(crate) waits: Option<&'a FlowName>,
}

impl Bill {
    /// Of a packet that matched a PDR of a session.
    pub(crate) fn of(by: By<'_>, arrival: &Arrival) -> Self {
        let waits = by.waits.cloned();
        Self { waits, ..Self::new((by.session, by.pdr), Load::of(arrival)) }
    }

    /// Of what a session answers to a server: it costs nothing, and may wait for a next hop as the session's.
    pub(crate) fn of_answer(session: usize, arrival: &Arrival) -> Self {
        Self { session, urrs: Vec::new(), load: Load::of(arrival), waits: None }
    }

    /// Of anything that did.
    pub(crate) fn new((session, pdr): (usize, &Pdr), load: Load) -> Self {
        Self { session, urrs: pdr.urrs.to_vec(), load, waits: None }
    }
}

impl Reference {
    /// The packet does not leave, or not yet.
    pub(crate) fn take_back(&mut self, bill: &Bill) {
        if let Some(flow) = &bill.waits {
            self.take_back_deferred(flow, bill.load);
        } else if let Some(session) = self.sessions.get_mut(bill.session) {
            session.take_back(&bill.urrs, bill.load);
        }
    }

    /// A packet waits for its next hop; what a flow that waits itself has taken down, it keeps.
    pub(crate) fn suspend(&mut self, bill: &Bill) {
        if bill.waits.is_none() {
            self.take_back(bill);
        }
    }

    /// A packet that was to wait does not.
    pub(crate) fn give_up(&mut self, bill: &Bill) {
        if bill.waits.is_some() {
            self.take_back(bill);
        }
    }

    /// A packet that waited leaves.
    pub(crate) fn count_again(&mut self, bill: &Bill) {
        if let Some(session) = self.sessions.get_mut(bill.session).filter(|_| bill.waits.is_none()) {
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

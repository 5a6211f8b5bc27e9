//! A session moves to another worker: its packets wait there, in order, until it has come.
//!
//! The engine orders one step after the other, each once the one before is acknowledged. The new worker expects the session's
//! packets; all others lead them there; the old worker takes what was handed to it until then, lets it out, and gives the
//! session; the new one puts it in force, and what waited goes its way. So what took the way over the old worker is ahead of
//! what did not, and of the packets of a flow, all of which take one way, none overtakes another.

use super::{Report, Worker};
use crate::counters::DropReason;
use crate::frame::{Packet, VECTOR};
use crate::kept::Told;
use crate::port::Port;
use crate::state::{Parcel, SessionIndex};
use crate::steering::{GIVEN, GIVEN_MAX};

/// Packets that wait for one session: what a ring holds, twice.
const AWAITED_MAX: usize = 2 * GIVEN_MAX;

/// A step of a session's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    /// Where it is: say how much there is of it, and whether it can go.
    Look,
    /// Where it goes: keep room for it, and its packets.
    Expect,
    /// Everywhere else: lead its packets there.
    Lead,
    /// Where it was: give it.
    Give,
    /// Where it goes: put it in force.
    Take,
    /// Where it is: it stays.
    Stay,
}

/// Packets that wait for a session which another worker is about to give.
pub(super) struct Awaited<B> {
    /// Those that were kept there for its user, who sleeps: they are older.
    given: Vec<Packet<B>>,
    others: Vec<Packet<B>>,
    /// While they go their way: whose they are, and what the control plane has heard of those that are kept again.
    going: Option<(SessionIndex, Told)>,
    limit: usize,
}

impl<B> Awaited<B> {
    /// With room, if there are other workers.
    pub(super) fn new(has_others: bool) -> Self {
        let limit = if has_others { AWAITED_MAX } else { 0 };
        let room = || Vec::with_capacity(limit);
        Self { given: room(), others: room(), going: None, limit }
    }

    pub(super) fn len(&self) -> usize {
        self.given.len() + self.others.len()
    }

    /// As many as may wait.
    pub(super) const fn most(&self) -> usize {
        2 * self.limit
    }

    /// Gives a packet back where there is no room.
    fn keep(&mut self, packet: Packet<B>) -> Result<(), Packet<B>> {
        let queue = if packet.meta.handed > GIVEN { &mut self.given } else { &mut self.others };
        if queue.len() >= self.limit {
            return Err(packet);
        }
        queue.push(packet);
        Ok(())
    }
}

impl<P: Port> Worker<P> {
    /// Does its part of a session's move.
    pub(super) fn go(&mut self, leg: Leg, mut parcel: Box<Parcel>) -> Report {
        match leg {
            Leg::Look => return self.look_at_leaving(parcel),
            Leg::Expect => self.state.expect(&mut parcel),
            Leg::Lead => self.state.steering.lead(&parcel.keys, parcel.to),
            Leg::Give => self.give(&mut parcel),
            Leg::Take => self.take(&mut parcel),
            Leg::Stay => parcel.leaving = self.state.leave_alone().or(parcel.leaving.take()),
        }
        Report::Moved(leg, parcel)
    }

    /// Where flows have to be looked at, the answer comes when all have been.
    fn look_at_leaving(&mut self, mut parcel: Box<Parcel>) -> Report {
        let Self { state, kept, held, .. } = self;
        state.look_at_leaving(&mut parcel, |session| kept.count(session));
        parcel.shape.holds = held.len() > 0;
        if state.looks_at_flows() {
            self.looking = Some(parcel);
            return Report::Done;
        }
        Report::Moved(Leg::Look, parcel)
    }

    /// Looks at some more flows of a session that is to go; the report, if there is room for it, once all have been seen.
    pub(super) fn look_at_flows(&mut self) {
        if self.reports.slots() > 0
            && self.state.look_at_flows()
            && let Some(parcel) = self.looking.take()
        {
            self.report(Report::Moved(Leg::Look, parcel));
        }
    }

    /// Gives a session, after everything that came for it until now has gone out.
    fn give(&mut self, parcel: &mut Parcel) {
        self.resume();
        self.run_handed();
        let Some(index) = self.state.sessions.by_seid(parcel.seid) else { return };
        // What is lost is taken back while there is somebody to take it back from.
        self.send();
        self.settle_held(index);
        parcel.told = self.kept.what_was_told(index);
        self.state.pack(index, parcel);
        self.give_kept(index, parcel.to);
        self.send();
    }

    /// Runs what other workers have handed over until now.
    fn run_handed(&mut self) {
        for giver in 0..self.handoff.workers() {
            let mut due = self.handoff.waiting(giver);
            while due > 0 {
                due -= self.take_handed_by(giver, due.min(VECTOR));
                self.run_received(None);
            }
        }
    }

    /// Hands over what was kept for a user who sleeps.
    fn give_kept(&mut self, session: SessionIndex, to: u8) {
        let mut packets = std::mem::take(&mut self.resumed);
        self.kept.release(session, &mut packets);
        for (number, mut packet) in packets.drain(..).enumerate() {
            packet.meta.handed = GIVEN;
            self.hand_off(to, packet);
            if number % VECTOR == VECTOR - 1 {
                self.send_handed();
            }
        }
        self.resumed = packets;
        self.send_handed();
    }

    /// Puts a session in force that another worker has given; what waited for it goes its way.
    fn take(&mut self, parcel: &mut Parcel) {
        self.resume();
        self.run_handed();
        let taken = self.state.unpack(parcel);
        let Awaited { given, others, .. } = &mut self.awaited;
        self.resumed.append(given);
        self.resumed.append(others);
        let Some(index) = taken else { return self.forsake() };
        self.awaited.going = Some((index, std::mem::take(&mut parcel.told)));
        self.resume();
        self.awaited.going = None;
    }

    /// The session does not come.
    #[cold]
    fn forsake(&mut self) {
        while let Some(packet) = self.resumed.pop() {
            self.discard(packet.buffer, DropReason::NoSession);
        }
    }

    /// Lets a packet wait for its session.
    #[cold]
    pub(super) fn wait_for_session(&mut self, packet: Packet<P::Buffer>) {
        if let Err(packet) = self.awaited.keep(packet) {
            self.discard(packet.buffer, DropReason::MovingFull);
        }
    }

    /// A packet of a session was kept: if the session has just come, the control plane has heard of some.
    pub(super) fn recall_told(&mut self, session: SessionIndex) {
        let Some((_, told)) = self.awaited.going.as_ref().filter(|(going, _)| *going == session) else {
            return;
        };
        for pdr in told {
            if self.kept.is_untold(session, *pdr) {
                self.kept.told(session, *pdr);
            }
        }
    }
}

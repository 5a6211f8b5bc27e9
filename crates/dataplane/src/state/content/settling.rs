//! Flows that wait until it is known what they are about, and what they use meanwhile.

use crate::state::waiting::{Deferred, Ticket, Waiter};
use crate::state::{Circumstances, FlowKey, SessionIndex, State, StepIndex};
use dpi::learn::Asker;
use dpi::matching::Facts;
use rules::{Application, Arrival, Direction};

/// A flow without packets for so long is left alone, in nanoseconds.
const PATIENCE_NS: u64 = 10_000_000_000;
/// Flows of one session that wait at once; others go by their addresses.
pub(crate) const WAITING_PER_SESSION: u16 = 256;

/// By which step packets of a flow go that came while it waited, by [`Direction`]; `None` where there were none, or that is not
/// certain.
pub(crate) type Led = [Option<(StepIndex, Circumstances)>; 2];

/// A flow waits for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign;

impl State {
    /// The flow of a packet, which waits from now on if it did not; `None` where it cannot. A flow of the same addresses that
    /// waits for another session is [`Foreign`]: what it uses is not this one's, nor the other way round.
    pub(crate) fn wait(
        &mut self,
        flow: (&FlowKey, u64),
        session: SessionIndex,
    ) -> Result<Option<Ticket>, Foreign> {
        let found = self.content.memory.as_ref().map(|memory| memory.waiting.find(flow.0, flow.1));
        match found {
            None | Some(Err(_)) => Ok(None),
            Some(Ok(None)) => Ok(self.begin_to_wait(flow, session)),
            Some(Ok(Some((_, owner)))) if owner != session => Err(Foreign),
            Some(Ok(Some((ticket, _)))) => Ok(Some(ticket)),
        }
    }

    fn begin_to_wait(&mut self, flow: (&FlowKey, u64), session: SessionIndex) -> Option<Ticket> {
        let memory = self.content.memory.as_mut()?;
        if self.sessions.get(session)?.waiting >= WAITING_PER_SESSION {
            return None;
        }
        let sessions = &self.sessions;
        let waiting = |session| sessions.get(session).map_or(0, |session| session.waiting);
        if let Some(surplus) = memory.waiting.surplus(waiting) {
            self.content.counts.displaced += 1;
            self.settle(surplus, Application::None);
        }
        let memory = self.content.memory.as_mut()?;
        self.sessions.count_waiting(session, 1);
        Some(memory.waiting.open(flow, session, self.now_ns))
    }

    /// A flow waits no longer: what it has used is counted by the rules for its application, and these are told.
    pub(crate) fn settle(&mut self, ticket: Ticket, application: Application) -> Led {
        let Some((session, led)) = self.count_deferred(ticket, application) else { return Led::default() };
        self.sessions.count_waiting(session, -1);
        if let Some(memory) = &mut self.content.memory {
            memory.waiting.close(ticket);
        }
        led
    }

    /// A flow says nothing any more: its addresses must do, and the name that its server was last asked for by.
    fn settle_silent(&mut self, ticket: Ticket) {
        let application = self.by_addresses(ticket);
        self.settle(ticket, application);
    }

    fn by_addresses(&mut self, ticket: Ticket) -> Application {
        let content = &mut self.content;
        let Some((rules, memory)) = content.rules.as_deref().zip(content.memory.as_deref_mut()) else {
            return Application::None;
        };
        let known = memory.waiting.get(ticket).and_then(|waiter| {
            let arrival = waiter.deferred.iter().find_map(|deferred| deferred.arrival)?;
            Some((waiter.network(), arrival))
        });
        let Some((network, arrival)) = known else {
            return Application::None;
        };
        let owner = memory.waiting.owner(ticket).and_then(|owner| self.sessions.get(owner));
        let asker = Asker { address: arrival.ue, holder: owner.map_or(0, |session| session.seid.0) };
        let facts = Facts {
            server: arrival.remote,
            server_port: arrival.remote_port.unwrap_or_default(),
            protocol: arrival.protocol,
            dscp: arrival.traffic_class >> 2,
            host: memory.learner.name((network, asker), arrival.remote, self.now_ns / 1_000_000),
            ..Facts::default()
        };
        rules.detect(&facts).application(rules)
    }

    /// Before a session changes, or tells what it has used: what its flows that wait have used is counted as if they were
    /// of no application. Where it goes, they do, and have said all they will.
    pub(crate) fn settle_session(&mut self, session: SessionIndex, goes: bool) {
        if self.sessions.get(session).is_none_or(|session| session.waiting == 0) {
            return;
        }
        let mut from = 0;
        while let Some(memory) = &self.content.memory
            && let Some((place, ticket)) = memory.waiting.of_session(session, from)
        {
            match goes {
                true => self.settle_silent(ticket),
                false => _ = self.count_deferred(ticket, Application::None),
            }
            from = place + 1;
        }
    }

    /// Leaves flows alone that say nothing, looking at one of them a call.
    pub(crate) fn sweep_waiting(&mut self) {
        let Some(memory) = self.content.memory.as_mut().filter(|memory| memory.waiting.len() > 0) else {
            return;
        };
        if let Some(late) = memory.waiting.sweep(self.now_ns, PATIENCE_NS) {
            self.settle_silent(late);
        }
    }

    /// Takes the flows of a session that wait out, as many as there is room for; the others wait no longer.
    pub(in crate::state) fn pack_waiting(&mut self, session: SessionIndex, into: &mut Vec<Waiter>) {
        let mut from = 0;
        while let Some(memory) = &mut self.content.memory
            && let Some((place, ticket)) = memory.waiting.of_session(session, from)
        {
            from = place + 1;
            if into.len() < into.capacity() {
                into.extend(memory.waiting.carry_off(ticket));
                self.sessions.count_waiting(session, -1);
            } else {
                self.settle_silent(ticket);
            }
        }
    }

    /// Takes in a flow of a session that waited with another worker. Where it cannot wait, what it used is counted.
    pub(in crate::state) fn unpack_waiting(&mut self, session: SessionIndex, waiter: Waiter) {
        let sessions = &self.sessions;
        let waiting = |session| sessions.get(session).map_or(0, |session| session.waiting);
        let surplus = self.content.memory.as_mut().and_then(|memory| memory.waiting.surplus(waiting));
        if let Some(surplus) = surplus {
            self.content.counts.displaced += 1;
            self.settle(surplus, Application::None);
        }
        let refused = match &mut self.content.memory {
            Some(memory) => memory.waiting.adopt(waiter, session),
            None => Some(waiter),
        };
        match refused {
            None => self.sessions.count_waiting(session, 1),
            Some(waiter) => _ = self.count_used(session, waiter.deferred, Application::None),
        }
    }

    fn count_deferred(&mut self, ticket: Ticket, application: Application) -> Option<(SessionIndex, Led)> {
        let (session, deferred) = self.content.memory.as_mut()?.waiting.take(ticket)?;
        Some((session, self.count_used(session, deferred, application)))
    }

    /// Counts what a flow has used by the rules for an application.
    fn count_used(
        &mut self,
        session: SessionIndex,
        deferred: [Deferred; 2],
        application: Application,
    ) -> Led {
        let mut led = Led::default();
        for (deferred, direction) in deferred.into_iter().zip([Direction::Uplink, Direction::Downlink]) {
            let Some(arrival) = deferred.arrival.filter(|_| deferred.packets > 0) else { continue };
            let arrival = Arrival { application, ..arrival };
            let Some(found) = self.sessions.get(session) else { continue };
            // What was forwarded by the rule of some application is counted by it, if by no other.
            let any = Arrival { application: Application::Any, ..arrival };
            let certain = found.find(&arrival);
            // With other rules, the user's address may be another session's by now.
            let is_current = found.generation == deferred.generation;
            led[direction as usize] = certain.filter(|_| is_current).map(|at| (at, deferred.circumstances));
            let Some(at) = certain.or_else(|| found.find(&any)) else { continue };
            let step = self.sessions.cells.whole(at);
            let base = found.run.base;
            let used = (deferred.packets, deferred.bytes);
            for place in step.lists().usages() {
                let (_, tally) = self.sessions.cells.way((base, *place), direction);
                if !tally.add_all(used, self.now_ns) {
                    let start = |state: &Self| certain.map(|at| state.start((session, at), &arrival));
                    self.look_at((session, *place), (direction, used), start);
                }
            }
        }
        led
    }
}

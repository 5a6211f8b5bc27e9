//! What a worker knows of the content of flows.

use super::waiting::{Deferred, Ticket, Waiter, Waiting};
use super::{SessionIndex, State};
use crate::content::{ContentRules, Detected};
use crate::frame::Meta;
use dpi::extract::{Datagram, Inspection, Seen, Verdict};
use dpi::learn::{Learner, Lookup};
use dpi::matching::Facts;
use packet::five_tuple::{Dissected, FiveTuple};
use packet::{protocol, tcp, udp};
use rules::{Application, Arrival, Direction};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Packets of both directions after which a flow that says nothing is left alone.
const PACKETS_MAX: u16 = 32;
/// A flow without packets for so long is left alone, in nanoseconds.
const PATIENCE_NS: u64 = 10_000_000_000;
/// Flows of one session that wait at once; others go by their addresses.
pub(crate) const WAITING_PER_SESSION: u16 = 256;
/// The port of DNS.
const DNS: u16 = dpi::extract::dns::PORT;
/// What is kept of flows and servers.
pub(crate) struct Memory {
    waiting: Waiting,
    learner: Learner,
}

impl Memory {
    /// For so many flows that are looked at.
    pub(crate) fn new(flows: usize, (resolvers, seed): (Vec<IpAddr>, u64)) -> Self {
        let config = dpi::learn::Config { seed, resolvers, ..dpi::learn::Config::default() };
        Self { waiting: Waiting::new(flows), learner: Learner::new(config) }
    }
}

/// Rules to be put in force, and those that were.
#[derive(Debug)]
pub(crate) struct Loading {
    pub(crate) rules: Option<Arc<ContentRules>>,
    /// For a worker that has none.
    pub(crate) memory: Option<Box<Memory>>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

/// What was found out, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentCounts {
    /// Of the rules in force; 0 without.
    pub revision: u64,
    /// Flows that are looked at now.
    pub waiting: u64,
    /// Flows found to be of an application.
    pub detected: u64,
    /// Flows found to be of none.
    pub undetected: u64,
    /// Those of both whose ClientHello has Encrypted ClientHello, or what looks like it.
    pub encrypted: u64,
    /// Flows that had to give way to others before it was known.
    pub displaced: u64,
    /// Server addresses that got a name from DNS.
    pub names: u64,
    /// Requests that got a field.
    pub enriched: u64,
    /// Requests that were to get one, and could not.
    pub unenriched: u64,
}

/// Rules and memory.
#[derive(Default)]
pub(crate) struct Content {
    rules: Option<Arc<ContentRules>>,
    memory: Option<Box<Memory>>,
    counts: ContentCounts,
}

/// A user's packet as it is looked at.
pub(crate) struct View<'a> {
    /// As it goes up.
    tuple: FiveTuple,
    direction: Direction,
    /// The user's, by the digest of its name: names of servers are learned in each by itself.
    network: u16,
    /// From the header behind IP on.
    upper: &'a [u8],
    /// All of it, and where that header is.
    packet: (&'a [u8], usize),
}

impl<'a> View<'a> {
    /// `None` for a packet cut short.
    pub(crate) fn new(packet: &'a [u8], found: &Dissected, meta: &Meta) -> Option<Self> {
        let direction = meta.direction();
        let tuple = match direction {
            Direction::Uplink => found.tuple,
            Direction::Downlink => found.tuple.reversed(),
        };
        let network = meta.key.network();
        let upper = packet.get(found.upper..found.total)?;
        Some(Self { tuple, direction, network, upper, packet: (packet.get(..found.total)?, found.upper) })
    }

    /// Whether later packets may say more than this one.
    pub(crate) fn may_wait(&self) -> bool {
        !self.tuple.fragment && matches!(self.tuple.protocol, protocol::TCP | protocol::UDP) && !self.is_dns()
    }

    /// Whether it may be a lookup or its answer: of those, every packet is looked at.
    pub(crate) fn is_dns(&self) -> bool {
        let tuple = &self.tuple;
        tuple.protocol == protocol::UDP && !tuple.fragment && tuple.destination_port == DNS
    }

    /// The user, in its network.
    const fn user(&self) -> (u16, IpAddr) {
        (self.network, self.tuple.source_address())
    }

    /// What addresses tell.
    fn facts(&self) -> Facts<'a> {
        Facts {
            server: self.tuple.destination_address(),
            server_port: self.tuple.destination_port,
            protocol: self.tuple.protocol,
            dscp: self.tuple.tos >> 2,
            ..Facts::default()
        }
    }

    /// As [`View::facts`], of what may be a lookup.
    fn facts_of_lookup(&self) -> Facts<'a> {
        let layer = dpi::extract::dns::Message::parse(self.datagram().payload)
            .map(|message| dpi::matching::Layer::of(&Seen::Dns(message)));
        Facts { layer, ..self.facts() }
    }

    fn datagram(&self) -> Datagram<'a> {
        // What is behind the datagram in its packet nobody reads.
        let end = udp::Header::parse(self.upper).map_or(self.upper.len(), udp::Header::length);
        let payload = self.upper.get(udp::LENGTH..end).unwrap_or_default();
        Datagram { server_port: self.tuple.destination_port, payload }
    }

    /// Of TCP, only what the user says is looked at: servers that speak first are rare, and say little. But what the server does
    /// not take is no word of the user: packets with a wrong checksum are passed over, as are segments that acknowledge nothing, or
    /// what the server has not said, and that the user's side is over is not
    /// believed, as what says so may never arrive there, or have no number that counts. What a SYN carries is looked at once the
    /// server has acknowledged it. What says nothing more is left alone in time.
    fn inspect<'i>(&self, inspection: &'i mut Inspection) -> Verdict<'i>
    where
        'a: 'i,
    {
        if self.tuple.protocol == protocol::UDP {
            let is_taken =
                self.direction == Direction::Downlink || udp::is_sealed(self.packet.0, self.packet.1);
            return if is_taken { inspection.datagram(self.datagram()) } else { Verdict::More };
        }
        let Ok(segment) = tcp::Segment::parse(self.upper) else { return Verdict::More };
        let is_syn = segment.has(tcp::flag::SYN);
        if self.direction == Direction::Downlink {
            inspection.answered(segment.sequence().wrapping_add(segment.sequence_length()), is_syn);
            return match segment.has(tcp::flag::RST | tcp::flag::FIN) {
                true => Verdict::Unknown(dpi::extract::Unknown::Bounds),
                false if is_syn && segment.has(tcp::flag::ACK) => {
                    inspection.accepted(segment.acknowledgement())
                }
                false => Verdict::More,
            };
        }
        if !is_syn && segment.payload().is_empty() || !tcp::is_sealed(self.packet.0, self.packet.1) {
            return Verdict::More;
        }
        let acknowledges = segment.has(tcp::flag::ACK);
        if is_syn && !acknowledges {
            // Its payload begins behind it.
            inspection.early(segment.sequence().wrapping_add(1), segment.payload());
        }
        let is_taken = acknowledges && inspection.is_acceptable(segment.acknowledgement());
        if !is_taken || segment.has(tcp::flag::SYN | tcp::flag::RST) {
            return Verdict::More;
        }
        inspection.segment(segment.sequence(), segment.payload())
    }
}

impl Content {
    /// Whether there are rules.
    pub(crate) const fn is_loaded(&self) -> bool {
        self.rules.is_some()
    }

    /// Puts rules in force; gives back what is no longer needed.
    pub(crate) fn load(&mut self, mut loading: Box<Loading>) -> Box<Loading> {
        std::mem::swap(&mut self.rules, &mut loading.rules);
        if self.memory.is_none() {
            self.memory = loading.memory.take();
        }
        loading
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> ContentCounts {
        ContentCounts {
            revision: self.rules.as_ref().map_or(0, |rules| rules.revision()),
            waiting: self.memory.as_ref().map_or(0, |memory| memory.waiting.len() as u64),
            ..self.counts
        }
    }

    /// As PDRs look at it.
    pub(crate) fn application(&self, detected: Detected) -> Application {
        self.rules.as_ref().map_or(Application::None, |rules| detected.application(rules))
    }

    /// Of what application a packet is that is looked at alone.
    pub(crate) fn detect(&mut self, view: &View<'_>, now_ns: u64) -> Detected {
        let Some((rules, memory)) = self.rules.as_deref().zip(self.memory.as_deref_mut()) else {
            return Detected::NONE;
        };
        let facts = if view.is_dns() {
            self.counts.names += memory.learn(view, now_ns);
            view.facts_of_lookup()
        } else {
            memory.facts_of_address(view, now_ns)
        };
        let detected = rules.detect(&facts);
        self.count(detected);
        detected
    }

    /// Of what application a packet is by its addresses alone, of a flow that is looked at for somebody else.
    pub(crate) fn by_address(&self, view: &View<'_>, now_ns: u64) -> Detected {
        let known = self.rules.as_deref().zip(self.memory.as_deref());
        known.map_or(Detected::NONE, |(rules, memory)| rules.detect(&memory.facts_of_address(view, now_ns)))
    }

    /// Of what application a lookup is that was looked at before.
    pub(crate) fn of_lookup(&self, view: &View<'_>) -> Detected {
        self.rules.as_ref().map_or(Detected::NONE, |rules| rules.detect(&view.facts_of_lookup()))
    }

    /// Of what application a flow is that waits, if this packet tells.
    pub(crate) fn look(&mut self, ticket: Ticket, view: &View<'_>, now_ns: u64) -> Option<Detected> {
        let (rules, memory) = self.rules.as_deref().zip(self.memory.as_deref_mut())?;
        let Memory { waiting, learner } = memory;
        let Waiter { packets, inspection, .. } = waiting.get(ticket)?;
        *packets += 1;
        let is_last = *packets >= PACKETS_MAX;
        let facts = match view.inspect(inspection) {
            Verdict::More if !is_last => return None,
            Verdict::Seen(seen) => view.facts().with(&seen),
            _ => view.facts(),
        };
        let learned = || learner.name(view.user(), facts.server, now_ns / 1_000_000);
        let detected = rules.detect(&Facts { host: facts.host.or_else(learned), ..facts });
        self.counts.encrypted += u64::from(facts.ech);
        self.count(detected);
        Some(detected)
    }

    fn count(&mut self, detected: Detected) {
        match detected {
            Detected::NONE => self.counts.undetected += 1,
            _ => self.counts.detected += 1,
        }
    }

    /// Counts a request: whether it got its field.
    pub(crate) fn count_request(&mut self, is_enriched: Option<bool>) {
        self.counts.enriched += u64::from(is_enriched == Some(true));
        self.counts.unenriched += u64::from(is_enriched == Some(false));
    }

    /// Takes down what a packet used; false where its flow waits no longer.
    pub(crate) fn defer(&mut self, ticket: Ticket, direction: Direction, bytes: u32) -> bool {
        self.memory.as_mut().is_some_and(|memory| memory.waiting.defer(ticket, direction, bytes))
    }

    /// A packet that was taken down has not left.
    pub(crate) fn take_back(&mut self, ticket: Ticket, direction: Direction, bytes: u32) {
        if let Some(memory) = &mut self.memory {
            memory.waiting.take_back(ticket, direction, bytes);
        }
    }

    /// Asks for what is kept of a flow, if it waits.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(memory) = &self.memory {
            memory.waiting.prefetch(hash);
        }
    }

    /// Notes a packet of a flow that goes on waiting.
    pub(crate) fn note(&mut self, ticket: Ticket, packet: (Direction, Arrival), now_ns: u64) {
        if let Some(memory) = &mut self.memory {
            memory.waiting.note(ticket, packet, now_ns);
        }
    }
}

impl Memory {
    /// What addresses tell, and the name that was looked up.
    fn facts_of_address<'a>(&'a self, view: &View<'a>, now_ns: u64) -> Facts<'a> {
        let facts = view.facts();
        Facts { host: self.learner.name(view.user(), facts.server, now_ns / 1_000_000), ..facts }
    }

    /// Takes note of a lookup, or learns from its answer; how many names.
    fn learn(&mut self, view: &View<'_>, now_ns: u64) -> u64 {
        let tuple = &view.tuple;
        let lookup = Lookup {
            instance: view.network,
            user: tuple.source_address(),
            user_port: tuple.source_port,
            resolver: tuple.destination_address(),
        };
        let (payload, now_ms) = (view.datagram().payload, now_ns / 1_000_000);
        match view.direction {
            Direction::Uplink => self.learner.query(&lookup, payload, now_ms),
            Direction::Downlink => {
                return self.learner.answer(&lookup, payload, now_ms).unwrap_or_default() as u64;
            }
        }
        0
    }
}

/// A flow waits for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign;

impl State {
    /// The flow of a packet, which waits from now on if it did not; `None` where it cannot. A flow of the same addresses that
    /// waits for another session is [`Foreign`]: what it uses is not this one's, nor the other way round.
    pub(crate) fn wait(
        &mut self,
        flow: (&super::FlowKey, u64),
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

    fn begin_to_wait(&mut self, flow: (&super::FlowKey, u64), session: SessionIndex) -> Option<Ticket> {
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

    /// A flow waits no longer: what it has used is counted by the rules for its application.
    pub(crate) fn settle(&mut self, ticket: Ticket, application: Application) {
        let Some(session) = self.count_deferred(ticket, application) else { return };
        self.sessions.count_waiting(session, -1);
        if let Some(memory) = &mut self.content.memory {
            memory.waiting.close(ticket);
        }
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
        let facts = Facts {
            server: arrival.remote,
            server_port: arrival.remote_port.unwrap_or_default(),
            protocol: arrival.protocol,
            dscp: arrival.traffic_class >> 2,
            host: memory.learner.name((network, arrival.ue), arrival.remote, self.now_ns / 1_000_000),
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
                false => drop(self.count_deferred(ticket, Application::None)),
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
    pub(super) fn pack_waiting(&mut self, session: SessionIndex, into: &mut Vec<Waiter>) {
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
    pub(super) fn unpack_waiting(&mut self, session: SessionIndex, waiter: Waiter) {
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
            Some(waiter) => self.count_used(session, waiter.deferred, Application::None),
        }
    }

    fn count_deferred(&mut self, ticket: Ticket, application: Application) -> Option<SessionIndex> {
        let (session, deferred) = self.content.memory.as_mut()?.waiting.take(ticket)?;
        self.count_used(session, deferred, application);
        Some(session)
    }

    /// Counts what a flow has used by the rules for an application.
    fn count_used(&mut self, session: SessionIndex, deferred: [Deferred; 2], application: Application) {
        for (deferred, direction) in deferred.into_iter().zip([Direction::Uplink, Direction::Downlink]) {
            let Some(arrival) = deferred.arrival.filter(|_| deferred.packets > 0) else { continue };
            let arrival = Arrival { application, ..arrival };
            let Some(found) = self.sessions.get(session) else { continue };
            // What was forwarded by the rule of some application is counted by it, if by no other.
            let any = Arrival { application: Application::Any, ..arrival };
            let certain = found.find(&arrival);
            let Some(at) = certain.or_else(|| found.find(&any)) else { continue };
            let step = *self.sessions.cells.step(at);
            let base = found.run.base;
            let used = (deferred.packets, deferred.bytes);
            for place in step.usages() {
                let count = &mut self.sessions.cells.account(base, *place).count;
                if !count.add_all(direction, used, self.now_ns) {
                    let start = |state: &Self| certain.map(|at| state.start((session, at), &arrival));
                    self.look_at((session, *place), (direction, used), start);
                }
            }
        }
    }
}

//! What a worker knows of the content of flows.

mod settling;
mod view;

pub(crate) use settling::{Led, WAITING_PER_SESSION};
pub(crate) use view::{Handshake, View};

use super::waiting::{Ticket, Waiter, Waiting};
use super::{FlowKey, Place, Said, SessionIndex};
use crate::content::{ContentRules, Detected, OfQuery};
use dpi::extract::dns::{Message, Name, in_segment};
use dpi::extract::{Request, Seen, Verdict};
use dpi::learn::{Learner, Lookup};
use dpi::matching::{Facts, Layer};
use packet::tcp;
use rules::{Application, Arrival, Direction};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Packets of both directions after which a flow that says nothing is left alone...
const PACKETS_MAX: u16 = 32;
/// ... and so many more for each in which it has said something, and what answers that.
const WITH_EACH: u16 = 2;

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

impl Content {
    /// Whether there are rules.
    pub(crate) const fn is_loaded(&self) -> bool {
        self.rules.is_some()
    }

    /// Puts rules in force; gives back what is no longer needed.
    pub(super) fn load(&mut self, mut loading: Box<Loading>) -> Box<Loading> {
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
        let message = if view.is_dns() { view.lookup() } else { None };
        let detected = match message {
            Some(message) => {
                let (detected, names) = memory.detect_lookup(rules, (view, &message), now_ns);
                self.counts.names += names;
                detected
            }
            None if view.is_dns() => rules.detect(&view.facts()),
            None => rules.detect(&memory.facts_of_address(view, now_ns)),
        };
        self.count(detected);
        detected
    }

    /// Takes note of the lookups in a segment to a resolver, or learns from the answers in one from it.
    pub(crate) fn overhear(&mut self, view: &View<'_>, now_ns: u64) {
        if let Some((memory, segment)) = self.memory.as_deref_mut().zip(view.segment()) {
            self.counts.names += memory.overhear(view, &segment, now_ns);
        }
    }

    /// Of what application a packet is by its addresses alone, of a flow that is looked at for somebody else.
    pub(crate) fn by_address(&self, view: &View<'_>, now_ns: u64) -> Detected {
        let known = self.rules.as_deref().zip(self.memory.as_deref());
        known.map_or(Detected::NONE, |(rules, memory)| rules.detect(&memory.facts_of_address(view, now_ns)))
    }

    /// Of what application the first packet of a flow is that says nothing by itself; `None` where it waits for those behind it.
    pub(crate) fn foresee(&self, view: &View<'_>, now_ns: u64) -> Option<Detected> {
        if view.is_dns() {
            // Of whatever name.
            let facts = Facts { layer: Some(Layer::Dns), ..view.facts() };
            return Some(self.rules.as_ref().map_or(Detected::NONE, |rules| rules.detect(&facts)));
        }
        let waits = view.may_wait() && view.may_be_followed();
        (!waits).then(|| self.by_address(view, now_ns))
    }

    /// Of what application a lookup is that was looked at before.
    pub(crate) fn of_lookup(&self, view: &View<'_>) -> Detected {
        let name = view.lookup().map(|message| message.name());
        self.rules.as_ref().map_or(Detected::NONE, |rules| rules.detect(&view.facts_of(name.as_ref())))
    }

    /// Of what application a flow is that waits, if this packet tells, and what it is that told.
    pub(crate) fn look(&mut self, ticket: Ticket, view: &View<'_>, now_ns: u64) -> Option<(Detected, Said)> {
        let (rules, memory) = self.rules.as_deref().zip(self.memory.as_deref_mut())?;
        let Memory { waiting, learner } = memory;
        let Waiter { packets, inspection, .. } = waiting.get(ticket)?;
        *packets += 1;
        let is_last = *packets >= PACKETS_MAX + WITH_EACH * u16::from(inspection.packets());
        let verdict = view.inspect(inspection);
        let is_open = verdict == Verdict::More;
        if is_open && !is_last {
            return None;
        }
        let verdict = if is_open { inspection.conclude() } else { verdict };
        let name;
        let facts = match verdict {
            Verdict::Seen(Seen::Dns(message)) => {
                name = message.name();
                view.facts_of(Some(&name))
            }
            Verdict::Seen(seen) => view.facts().with(&seen),
            _ => view.facts(),
        };
        let learned = || learner.name(view.user(), facts.server, now_ns / 1_000_000);
        let detected = rules.detect(&Facts { host: facts.host.or_else(learned), ..facts });
        let said = if detected.looks_again() { Said::UNKNOWN } else { Said::of(&facts) };
        self.counts.encrypted += u64::from(facts.ech);
        self.count(detected);
        Some((detected, said))
    }

    /// Of what application a flow is now that other rules are in force; `None` where what it said is not known, or not all of it that
    /// they ask for.
    pub(crate) fn anew(&self, view: &View<'_>, said: Said, now_ns: u64) -> Option<Detected> {
        let (rules, memory) = self.rules.as_deref().zip(self.memory.as_deref())?;
        let facts = said.facts(memory.facts_of_address(view, now_ns))?;
        (!rules.asks_for_more_than(&facts)).then(|| rules.detect(&facts))
    }

    /// Of what application a connection is from a later request of it on.
    pub(crate) fn of_request(&self, view: &View<'_>, request: Request<'_>, now_ns: u64) -> Detected {
        let Some((rules, memory)) = self.rules.as_deref().zip(self.memory.as_deref()) else {
            return Detected::NONE;
        };
        let facts = view.facts().with(&Seen::Http(request));
        let learned = || memory.learner.name(view.user(), facts.server, now_ns / 1_000_000);
        rules.detect(&Facts { host: facts.host.or_else(learned), ..facts })
    }

    fn count(&mut self, detected: Detected) {
        match detected.is_of_some() {
            false => self.counts.undetected += 1,
            true => self.counts.detected += 1,
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

    /// Asks for what tells whether a flow waits.
    #[inline]
    pub(crate) fn prefetch_place(&self, hash: u64) {
        if let Some(memory) = &self.memory {
            memory.waiting.prefetch_place(hash);
        }
    }

    /// Asks for what is kept of a flow, if it waits.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(memory) = &self.memory {
            memory.waiting.prefetch(hash);
        }
    }

    /// The flow of a packet, if it waits for this session.
    pub(crate) fn waits(&self, (key, hash): (&FlowKey, u64), session: SessionIndex) -> Option<Ticket> {
        let found = self.memory.as_ref()?.waiting.find(key, hash).ok()?;
        found.filter(|found| found.1 == session).map(|found| found.0)
    }

    /// Looks at a SYN on a connection that is known; whether it may wait beside that, as few may.
    pub(crate) fn hear(&mut self, ticket: Ticket, view: &View<'_>) -> bool {
        let Some(waiter) = self.memory.as_mut().and_then(|memory| memory.waiting.get(ticket)) else {
            return false;
        };
        waiter.packets = waiter.packets.saturating_add(1);
        // It says nothing until the server has taken it.
        waiter.packets < PACKETS_MAX && view.inspect(&mut waiter.inspection) == Verdict::More
    }

    /// Whether what a server acknowledges is the SYN of a flow that waits.
    pub(crate) fn is_answer(&mut self, ticket: Ticket, acknowledgement: u32) -> bool {
        let waiter = self.memory.as_mut().and_then(|memory| memory.waiting.get(ticket));
        waiter.is_some_and(|waiter| waiter.inspection.is_answer(acknowledgement))
    }

    /// Notes a packet of a flow that goes on waiting, and of which generation the rules are that it goes by, and when.
    pub(crate) fn note(&mut self, ticket: Ticket, packet: Place<'_>, seen: (Arrival, u32, u64)) {
        if let Some(memory) = &mut self.memory {
            memory.waiting.note(ticket, packet, seen);
        }
    }
}

impl Memory {
    /// What addresses tell, and the name that was looked up.
    fn facts_of_address<'a>(&'a self, view: &View<'a>, now_ns: u64) -> Facts<'a> {
        let facts = view.facts();
        Facts { host: self.learner.name(view.user(), facts.server, now_ns / 1_000_000), ..facts }
    }

    /// The same for all messages of a segment. A resolver's stream is followed, so that nothing within an answer is taken for
    /// another; how a user cuts its lookups is its own affair.
    fn overhear(&mut self, view: &View<'_>, segment: &tcp::Segment<'_>, now_ns: u64) -> u64 {
        let (lookup, now_ms) = (lookup(view), now_ns / 1_000_000);
        let (sequence, payload) = (segment.sequence(), segment.payload());
        let is_begin = segment.has(tcp::flag::SYN);
        match view.direction {
            Direction::Uplink => in_segment(payload).map(|message| self.learn(view, &message, now_ns)).sum(),
            Direction::Downlink if is_begin => {
                self.learner.begin(&lookup, sequence.wrapping_add(1), now_ms);
                0
            }
            Direction::Downlink => {
                let messages = self.learner.segment(&lookup, (sequence, payload), now_ms);
                messages.iter().map(|message| self.learn(view, message, now_ns)).sum()
            }
        }
    }

    /// Of what application a lookup is, or an answer, which is of what its query was; and how many names it taught. Takes note
    /// of it.
    fn detect_lookup(
        &mut self,
        rules: &ContentRules,
        (view, message): (&View<'_>, &Message<'_>),
        now_ns: u64,
    ) -> (Detected, u64) {
        let (lookup, now_ms) = (lookup(view), now_ns / 1_000_000);
        let as_now = |detected| OfQuery { revision: rules.revision(), dscp: view.dscp(), detected };
        let look = |name: &Name| rules.detect(&view.facts_of(Some(name)));
        match view.direction {
            Direction::Uplink => {
                let name = message.name();
                let detected = look(&name);
                if let Some(found) = as_now(detected).found() {
                    self.learner.query_found(&lookup, (message, &name), (found, now_ms));
                }
                (detected, 0)
            }
            Direction::Downlink => {
                let answered = self.learner.answer(&lookup, message, now_ms).ok();
                let found = answered.and_then(|answered| answered.found);
                let known = found.and_then(|found| as_now(Detected::NOT_YET).if_as(found));
                let detected = known.unwrap_or_else(|| look(&message.name()));
                (detected, answered.map_or(0, |answered| answered.names as u64))
            }
        }
    }

    /// Takes note of a lookup, or learns from its answer; how many names.
    fn learn(&mut self, view: &View<'_>, message: &Message<'_>, now_ns: u64) -> u64 {
        let lookup = lookup(view);
        let now_ms = now_ns / 1_000_000;
        match view.direction {
            Direction::Uplink => {
                self.learner.query(&lookup, message, now_ms);
                0
            }
            Direction::Downlink => {
                let answered = self.learner.answer(&lookup, message, now_ms);
                answered.map_or(0, |answered| answered.names as u64)
            }
        }
    }
}

/// Between whom a lookup goes, or its answer.
fn lookup(view: &View<'_>) -> Lookup {
    Lookup {
        instance: view.network,
        user: view.user().1,
        user_port: view.tuple.source_port,
        resolver: view.tuple.destination_address(),
    }
}

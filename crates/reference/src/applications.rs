//! Of what application flows are, and what they use before that is known (ARCHITECTURE.md, "Content awareness").
//!
//! Specifications say that packets are matched to an application, and not how (TS 29.244 5.4.10, 8.2.6). Here:
//!
//! * Only sessions with PDRs for applications are looked at, and of their packets those that some PDR would take, whatever they
//!   turned out to be of. Both ends, the protocol, the ports or SPI and the user's network name a flow. What it is of stays, whatever
//!   rules there are later, and whichever session carries its packets.
//! * Where a session's packets pass another one of this node, too, because it has tunnels alone and one leads back here, its flows are
//!   its own.
//! * TCP and UDP wait until they say something (`inspection.rs`); all else is known with its first packet, by address, protocol and
//!   DSCP, and so is what cannot wait: more than 256 flows of a session. 32 packets, and
//!   two more for each that says something, and they wait no longer.
//! * A packet of a flow that waits goes by the first PDR that matches and asks for no application, or where there is none, by the first
//!   that asks for any. Gates, rates and quotas are those of that PDR, as is what QoS enforcement drops. Where that PDR stops it, it may
//!   go another way (`handshake.rs`).
//! * What was forwarded meanwhile is counted once the flow is known: in each direction, by the PDR of the application that the last packet
//!   that waited there matches, or if it matches none, by the first that asks for any. A change of the session, or a query, counts what
//!   there is by the PDRs for flows of none. The packet that tells goes by the application already.
//! * A flow waits for one session. Packets of it that another session carries go by its addresses, and nothing is noted.
//! * Later requests of HTTP/1.x on a known connection make it one of another application, from the packet with the request on, if that
//!   begins with it and has it, and the server would take it.
//! * A user's SYN on a known connection waits beside it; the server's SYN that acknowledges it makes the flow unknown.
//! * A packet that has no hop left says nothing, but to the user through a tunnel: it goes by what is known of its flow, or by the PDR of one that waits, and is counted at
//!   once.
//! * Lookups over UDP are of what each packet says (`lookup.rs`), and that of no lookup by its addresses; a fragment that follows its packet's first one goes with
//!   the flow, or by its addresses; one that shows nothing is of the flow of its addresses.

pub(crate) mod content;
mod handshake;
mod hello;
mod inspection;
mod lookup;
mod path;
mod request;
mod stream;

pub(crate) use inspection::pseudo;

use crate::Reference;
use crate::detection::{Application, Arrival, first_pdr_of};
use crate::enforcement::Session;
use crate::ip::{TCP, UDP};
use crate::meters::Load;
use crate::reason::DropReason;
use crate::redirection;
use content::{Facts, Layer, Said, application_of, tell_requests_apart};
use inspection::{ACK, DNS, Inspection, RST, SYN, datagram, is_sealed, segment};
use rules::{Direction, Far, Instance, Pdr, Rules, Seid};
use std::net::IpAddr;

/// Packets of a flow after which it waits no longer.
const PACKETS_MAX: u32 = 32;
/// Flows of a session that wait.
const WAITING_MAX: usize = 256;

/// What all packets of a flow have in common, both ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowName {
    user: IpAddr,
    remote: IpAddr,
    protocol: u8,
    /// The user's, and the far end's.
    ports: (Option<u16>, Option<u16>),
    spi: Option<u32>,
    /// A fragment that shows nothing.
    is_of_addresses: bool,
    instance: Instance,
    /// Of a session whose packets pass another one of this node, too: what is known of the flow there says nothing here.
    between: Option<Seid>,
}

/// What is known of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    name: FlowName,
    known: Option<Known>,
    waiter: Option<Waiter>,
}

#[derive(Clone, Debug)]
struct Known {
    application: Option<String>,
    /// By what it said first, or last where later requests may be of others.
    layer: Option<Layer>,
    /// Later requests may be of others.
    may_change: bool,
}

/// A flow that waits to be known.
#[derive(Clone, Debug)]
struct Waiter {
    owner: Seid,
    packets: u32,
    inspection: Inspection,
    up: Deferred,
    down: Deferred,
}

/// What the packets of one direction have used.
#[derive(Clone, Debug, Default)]
struct Deferred {
    last: Option<Arrival>,
    packets: u64,
    bytes: u64,
}

/// By which PDR a packet goes, and the flow that takes down what it uses.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) pdr: Pdr,
    pub(crate) waits: Option<FlowName>,
}

impl Waiter {
    fn new(owner: Seid) -> Self {
        let (inspection, up, down) = (Inspection::default(), Deferred::default(), Deferred::default());
        Self { owner, packets: 0, inspection, up, down }
    }

    const fn deferred(&mut self, direction: Direction) -> &mut Deferred {
        match direction {
            Direction::Uplink => &mut self.up,
            Direction::Downlink => &mut self.down,
        }
    }
}

impl Facts {
    /// Of what a packet shows, and what its flow said.
    fn of(arrival: &Arrival, said: Said) -> Self {
        let server = arrival.ends().1;
        let port = arrival.ports().1.unwrap_or(0);
        let (protocol, dscp) = (arrival.packet.protocol, arrival.packet.header.traffic_class >> 2);
        Self { server, port, protocol, dscp, said }
    }
}

impl Reference {
    /// How many flows are known by what they said in a layer.
    pub fn known_by(&self, layer: Layer) -> usize {
        let known = self.flows.iter().filter_map(|flow| flow.known.as_ref());
        known.filter(|known| known.layer == Some(layer)).count()
    }

    /// The PDR of a packet.
    pub(crate) fn choose(&mut self, place: usize, arrival: &Arrival) -> Result<Choice, DropReason> {
        let session = self.sessions.get(place).ok_or(DropReason::NoSession)?;
        let asks = session.rules.pdrs.iter().any(|pdr| pdr.pdi.application.is_some());
        if !asks || self.content.is_none() {
            return self.by(place, arrival, None);
        }
        let (seid, name) = (session.seid, self.flow_name(place, arrival));
        self.begin_anew(seid, &name, arrival);
        let known = self.flow(&name).known.clone();
        let is_routed = arrival.source.direction() == Direction::Uplink || arrival.tunnel.is_none();
        if is_routed && arrival.packet.header.hops <= 1 {
            return match known {
                Some(known) => self.by(place, arrival, known.application.as_deref()),
                None => Ok(Choice { pdr: self.while_unknown(place, arrival)?, waits: None }),
            };
        }
        let begins = is_syn(arrival);
        if let Some(known) = known.clone().filter(|known| known.may_change && !begins) {
            let unknown = self.while_unknown(place, arrival);
            let known = match later_request(arrival).filter(|_| unknown.is_ok()) {
                Some(said) => self.know(&name, arrival, said),
                None => known.application,
            };
            return self.by(place, arrival, known.as_deref());
        }
        let unknown = self.while_unknown(place, arrival)?;
        if arrival.packet.protocol == UDP && arrival.ports().1 == Some(DNS) && !arrival.packet.follows {
            return self.by_lookup(place, arrival);
        }
        match known {
            Some(_) if begins && self.wait_beside(seid, &name, arrival) => {
                self.go_on(place, (&name, arrival), unknown)
            }
            Some(known) => self.by(place, arrival, known.application.as_deref()),
            None => self.choose_unknown((place, seid), (&name, arrival), unknown),
        }
    }

    /// The same of a flow that is not known.
    fn choose_unknown(
        &mut self,
        (place, seid): (usize, Seid),
        (name, arrival): (&FlowName, &Arrival),
        unknown: Pdr,
    ) -> Result<Choice, DropReason> {
        if arrival.packet.follows {
            let owner = self.flow(name).waiter.as_ref().map(|waiter| waiter.owner);
            return match owner == Some(seid) {
                true => self.go_on(place, (name, arrival), unknown),
                false => self.by_addresses(place, arrival),
            };
        }
        let is_whole_or_first = arrival.packet.part.is_none_or(|(_, is_later)| !is_later);
        let may_wait = [TCP, UDP].contains(&arrival.packet.protocol) && is_whole_or_first;
        let said = match if may_wait { self.let_wait(seid, name) } else { Waits::No } {
            Waits::ForAnother => return self.by_addresses(place, arrival),
            Waits::Yes => self.look(name, arrival),
            Waits::No => Some(Said::default()),
        };
        let Some(said) = said else { return self.go_on(place, (name, arrival), unknown) };
        let application = self.know(name, arrival, said);
        self.settle_flow(name, application.as_deref());
        self.by(place, arrival, application.as_deref())
    }

    /// The first PDR for an application.
    fn by(&self, place: usize, arrival: &Arrival, application: Option<&str>) -> Result<Choice, DropReason> {
        let rules = &self.sessions.get(place).ok_or(DropReason::NoSession)?.rules;
        let application = application.map_or(Application::None, Application::Of);
        let pdr = first_pdr_of(rules, arrival, application).ok_or(DropReason::NoPdr)?.clone();
        Ok(Choice { pdr, waits: None })
    }

    /// Of what application a packet is that is looked at by itself.
    fn by_addresses(&self, place: usize, arrival: &Arrival) -> Result<Choice, DropReason> {
        self.by_itself(place, arrival, Said::default())
    }

    /// The same of a lookup, or what could be one.
    fn by_lookup(&self, place: usize, arrival: &Arrival) -> Result<Choice, DropReason> {
        let said = datagram(&arrival.packet).and_then(|message| lookup::read(&message));
        self.by_itself(place, arrival, said.unwrap_or_default())
    }

    fn by_itself(&self, place: usize, arrival: &Arrival, said: Said) -> Result<Choice, DropReason> {
        let rules = self.content.as_deref().unwrap_or_default();
        let application = application_of(rules, &Facts::of(arrival, said));
        self.by(place, arrival, application.as_deref())
    }

    fn while_unknown(&self, place: usize, arrival: &Arrival) -> Result<Pdr, DropReason> {
        let rules = &self.sessions.get(place).ok_or(DropReason::NoSession)?.rules;
        let of = |application| first_pdr_of(rules, arrival, application);
        of(Application::None).or_else(|| of(Application::Any)).cloned().ok_or(DropReason::NoPdr)
    }

    fn flow_name(&self, place: usize, arrival: &Arrival) -> FlowName {
        let (user, remote) = arrival.ends();
        let packet = &arrival.packet;
        let is_later = packet.part.is_some_and(|(_, is_later)| is_later);
        // A tunnel's packets are of the network of its user.
        let of_user = || self.sessions.get(place).map(Session::user_instance).unwrap_or_default();
        let instance = if arrival.tunnel.is_some() { of_user() } else { arrival.instance };
        FlowName {
            user,
            remote,
            protocol: packet.protocol,
            ports: arrival.ports(),
            spi: packet.spi,
            is_of_addresses: is_later && !packet.follows,
            instance,
            between: self.sessions.get(place).filter(|session| self.is_between(session)).map(|it| it.seid),
        }
    }

    /// Whether a session has tunnels alone, one of which leads back to this node.
    fn is_between(&self, session: &Session) -> bool {
        let Rules { pdrs, fars, .. } = &session.rules;
        let created = |far: &Far| far.forwarding.as_ref().and_then(|to| to.outer_header_creation);
        let leads_back = fars.iter().filter_map(created).any(|outer| self.setup.is_ours(outer.address));
        leads_back && pdrs.iter().all(|pdr| pdr.pdi.f_teid.is_some())
    }

    fn flow(&mut self, name: &FlowName) -> &mut Flow {
        let place = self.flows.iter().position(|flow| flow.name == *name).unwrap_or_else(|| {
            self.flows.push(Flow { name: name.clone(), known: None, waiter: None });
            self.flows.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "it was found or put there")]
        &mut self.flows[place]
    }

    /// A flow is known from now on.
    fn know(&mut self, name: &FlowName, arrival: &Arrival, said: Said) -> Option<String> {
        let rules = self.content.as_deref().unwrap_or_default();
        let layer = said.layer;
        let may_change = layer == Some(Layer::Http) && tell_requests_apart(rules);
        let application = application_of(rules, &Facts::of(arrival, said));
        self.flow(name).known = Some(Known { application: application.clone(), layer, may_change });
        application
    }

    /// Another connection begins between the ports of one that is known.
    fn begin_anew(&mut self, seid: Seid, name: &FlowName, arrival: &Arrival) {
        let is_up = arrival.source.direction() == Direction::Uplink;
        let segment = segment(&arrival.packet).filter(|it| !is_up && it.flags & (SYN | ACK) == SYN | ACK);
        let Some(segment) = segment else { return };
        let (user, remote) = (name.user, name.remote);
        let (from, to) = (name.ports.0.unwrap_or(0), name.ports.1.unwrap_or(0));
        let sent = redirection::Flow { user: (user, from), remote: (remote, to), protocol: name.protocol };
        let session = self.sessions.iter().find(|session| session.seid == seid);
        let is_sent = session.is_some_and(|it| it.takes_up_redirected(sent, segment.acknowledgement));
        let flow = self.flow(name);
        let waiter = flow.waiter.as_ref().filter(|waiter| waiter.owner == seid);
        if is_sent || waiter.is_some_and(|waiter| waiter.inspection.is_answer(segment.acknowledgement)) {
            flow.known = None;
        }
    }

    /// A SYN on a known connection waits, unless it may not.
    fn wait_beside(&mut self, seid: Seid, name: &FlowName, arrival: &Arrival) -> bool {
        if self.let_wait(seid, name) != Waits::Yes {
            return false;
        }
        let Some(waiter) = &mut self.flow(name).waiter else { return false };
        waiter.packets += 1;
        waiter.packets < PACKETS_MAX && waiter.inspection.look(arrival, name.ports.1.unwrap_or(0)).is_none()
    }

    /// Lets a flow wait, if it may.
    fn let_wait(&mut self, seid: Seid, name: &FlowName) -> Waits {
        let waiters = self.flows.iter().filter_map(|flow| flow.waiter.as_ref());
        let is_full = waiters.filter(|waiter| waiter.owner == seid).count() >= WAITING_MAX;
        let waiter = &mut self.flow(name).waiter;
        match waiter {
            Some(waiter) if waiter.owner == seid => Waits::Yes,
            Some(_) => Waits::ForAnother,
            None if is_full => Waits::No,
            None => {
                *waiter = Some(Waiter::new(seid));
                Waits::Yes
            }
        }
    }

    /// What a flow has said, with this packet; `None` where later ones may.
    fn look(&mut self, name: &FlowName, arrival: &Arrival) -> Option<Said> {
        let waiter = self.flow(name).waiter.as_mut()?;
        waiter.packets += 1;
        let port = name.ports.1.unwrap_or(0);
        let is_last = waiter.packets >= PACKETS_MAX + 2 * waiter.inspection.packets();
        let told = waiter.inspection.look(arrival, port);
        told.or_else(|| is_last.then(|| waiter.inspection.conclude(port)))
    }

    /// The packet of a flow that waits goes on.
    fn go_on(
        &mut self,
        place: usize,
        (name, arrival): (&FlowName, &Arrival),
        unknown: Pdr,
    ) -> Result<Choice, DropReason> {
        if let Some(waiter) = &mut self.flow(name).waiter {
            waiter.deferred(arrival.source.direction()).last = Some(arrival.clone());
        }
        let pdr = self.way_of_unknown(place, arrival, unknown)?;
        Ok(Choice { pdr, waits: Some(name.clone()) })
    }

    /// Takes down what a packet uses.
    pub(crate) fn defer(&mut self, name: &FlowName, load: Load) {
        if let Some(waiter) = &mut self.flow(name).waiter {
            let deferred = waiter.deferred(load.direction);
            deferred.packets += 1;
            deferred.bytes += load.length;
        }
    }

    /// A packet that was taken down has not left.
    pub(crate) fn take_back_deferred(&mut self, name: &FlowName, load: Load) {
        if let Some(waiter) = &mut self.flow(name).waiter {
            let deferred = waiter.deferred(load.direction);
            deferred.packets -= 1;
            deferred.bytes -= load.length;
        }
    }

    /// A flow waits no longer: what it used is counted by the rules for an application.
    fn settle_flow(&mut self, name: &FlowName, application: Option<&str>) {
        if let Some(waiter) = self.flow(name).waiter.take() {
            let application = application.map_or(Application::None, Application::Of);
            self.count_deferred(&waiter, application);
        }
    }

    fn count_deferred(&mut self, waiter: &Waiter, application: Application<'_>) {
        let Some(place) = self.place(waiter.owner) else { return };
        let Some(session) = self.sessions.get_mut(place) else { return };
        for (deferred, direction) in [(&waiter.up, Direction::Uplink), (&waiter.down, Direction::Downlink)] {
            let Some(last) = deferred.last.as_ref().filter(|_| deferred.packets > 0) else { continue };
            let of = |application| first_pdr_of(&session.rules, last, application);
            if let Some(pdr) = of(application).or_else(|| of(Application::Any)).cloned() {
                session.count_used(&pdr, Load { direction, length: deferred.bytes }, deferred.packets);
            }
        }
    }

    /// What flows of a session have used that wait is counted as of no application; they go on waiting.
    pub(crate) fn count_deferred_of(&mut self, seid: Seid) {
        let all = self.flows.iter_mut().filter_map(|flow| flow.waiter.as_mut());
        let waiters = all.filter(|waiter| waiter.owner == seid);
        let take = |waiter: &mut Waiter| {
            let taken = waiter.clone();
            for deferred in [&mut waiter.up, &mut waiter.down] {
                (deferred.packets, deferred.bytes) = (0, 0);
            }
            taken
        };
        let taken: Vec<Waiter> = waiters.map(take).collect();
        taken.iter().for_each(|waiter| self.count_deferred(waiter, Application::None));
    }

    /// The session goes, and with it its flows that wait.
    pub(crate) fn forget_waiting_of(&mut self, seid: Seid) {
        for flow in &mut self.flows {
            flow.waiter.take_if(|waiter| waiter.owner == seid);
        }
    }
}

/// Whether a flow may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Yes,
    /// Too many do.
    No,
    /// It does so for another session.
    ForAnother,
}

/// Whether a packet asks for a connection.
fn is_syn(arrival: &Arrival) -> bool {
    let is_up = arrival.source.direction() == Direction::Uplink;
    segment(&arrival.packet).is_some_and(|it| is_up && it.flags & (SYN | ACK) == SYN)
}

/// The request that a packet begins with, and that a server would take.
fn later_request(arrival: &Arrival) -> Option<Said> {
    let is_up = arrival.source.direction() == Direction::Uplink;
    let segment = segment(&arrival.packet).filter(|_| is_up && is_sealed(&arrival.packet))?;
    let is_taken = segment.flags & (ACK | SYN | RST) == ACK;
    if is_taken { request::whole(&segment.payload) } else { None }
}

#[cfg(test)]
mod tests;

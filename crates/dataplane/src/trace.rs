//! Takes down the way of packets somebody wants to see. A worker without a tracer does nothing for it; one with a
//! tracer looks at every packet until enough were seen or the time is up. All memory comes from the control side.

mod parts;

use crate::config::{PolicyConfig, PortConfig};
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet, PortIndex, VECTOR};
use crate::graph::{Hop, Next, NodeId};
use crate::nodes::arrival;
use crate::state::{PolicyIndex, Session, State, StepIndex};
use crate::summary::{summary, summary_and_tuple};
use dplink::{
    PacketSummary, TRACE_PACKETS_MAX, TRACE_SECONDS_MAX, Trace, TraceEnd, TraceFilter, TracedPacket,
};
use packet::Buffer;
use packet::five_tuple::FiveTuple;
use parts::Parts;
use rules::{Application, Arrival, PdrId, Seid, Teid};
use std::net::IpAddr;

const NS_PER_S: u64 = 1_000_000_000;

/// What a packet was when it came in, and what tells the user's flow.
type Arrived = (PacketSummary, Option<FiveTuple>);

/// One trace, under way or over.
#[derive(Debug)]
pub(crate) struct Tracer {
    port: Option<PortIndex>,
    ue: Option<IpAddr>,
    teid: Option<Teid>,
    limit: usize,
    lasts_ns: u64,
    /// Set with the first vector.
    began_ns: Option<u64>,
    now_ns: u64,
    looked_at: u64,
    /// Of the vector at hand, by place.
    arrived: Vec<Arrived>,
    /// Of the vector at hand.
    pub(crate) hops: Vec<Hop>,
    taken: Vec<Taken>,
    /// Of those that were split or copied, what became of their parts.
    parts: Vec<Parts>,
    /// What is run now are such parts.
    follows: bool,
    /// Of all packets taken, one after the other.
    nodes: Vec<NodeId>,
}

/// One packet that was to be seen.
#[derive(Clone, Copy, Debug)]
struct Taken {
    at_ns: u64,
    port: PortIndex,
    arrived: PacketSummary,
    left: PacketSummary,
    fate: Fate,
    /// How many of [`Tracer::nodes`] are its own.
    nodes: usize,
    session: Option<Seid>,
    pdr: Option<PdrId>,
    policy: Option<PolicyIndex>,
    /// Of [`Tracer::parts`], its own.
    parts: Option<usize>,
}

impl Tracer {
    /// With the memory it will ever need.
    ///
    /// # Errors
    /// One sentence for people: what is asked for cannot be traced.
    pub(crate) fn new(ports: &[PortConfig], filter: &TraceFilter) -> Result<Self, String> {
        if !(1..=TRACE_PACKETS_MAX).contains(&filter.packets) {
            return Err(format!("a trace is of 1 to {TRACE_PACKETS_MAX} packets"));
        }
        if !(1..=TRACE_SECONDS_MAX).contains(&filter.seconds) {
            return Err(format!("a trace lasts 1 to {TRACE_SECONDS_MAX} seconds"));
        }
        let (limit, deepest) = (usize::from(filter.packets), NodeId::ALL.len());
        Ok(Self {
            port: filter.port.as_ref().map(|name| place(ports, name)).transpose()?,
            ue: filter.ue,
            teid: filter.teid,
            limit,
            lasts_ns: u64::from(filter.seconds) * NS_PER_S,
            began_ns: None,
            now_ns: 0,
            looked_at: 0,
            arrived: Vec::with_capacity(VECTOR),
            hops: Vec::with_capacity(VECTOR * deepest),
            taken: Vec::with_capacity(limit),
            parts: Vec::with_capacity(limit),
            follows: false,
            nodes: Vec::with_capacity(limit * deepest),
        })
    }

    /// Whether it has seen enough, or waited long enough. The time begins with the first call.
    pub(crate) fn is_over(&mut self, now_ns: u64) -> bool {
        let began_ns = *self.began_ns.get_or_insert(now_ns);
        self.now_ns = now_ns;
        self.taken.len() == self.limit || now_ns.saturating_sub(began_ns) >= self.lasts_ns
    }

    /// Before a vector runs: what its packets are.
    pub(crate) fn look_at<B: Buffer>(&mut self, packets: &mut [Packet<B>]) {
        self.hops.clear();
        self.arrived.clear();
        self.looked_at += packets.iter().filter(|packet| packet.meta.is_new()).count() as u64;
        self.arrived.extend(packets.iter_mut().take(VECTOR).map(arrived));
    }

    /// After it ran: what became of those that were to be seen.
    pub(crate) fn take_down<B: Buffer>(&mut self, packets: &mut [Packet<B>], state: &State) {
        self.follows = true;
        for (place, packet) in packets.iter_mut().enumerate().take(self.arrived.len()) {
            let (arrived, tuple) = self.arrived[place];
            packet.meta.unwatch();
            if self.taken.len() == self.limit {
                continue;
            }
            let left = match packet.meta.fate {
                Fate::Send(_) => summary(packet.buffer.data()),
                _ => PacketSummary::default(),
            };
            if self.wants(&packet.meta, &arrived, &left) {
                let hops = self.hops.iter().filter(|hop| usize::from(hop.place) == place);
                let before = self.nodes.len();
                self.nodes.extend(hops.clone().map(|hop| hop.node));
                let answered = hops.clone().find_map(|hop| hop.rule);
                let (session, pdr) = match answered {
                    Some((session, pdr)) => (Some(session), Some(pdr)),
                    None => rule(&packet.meta, tuple.as_ref(), hops, state),
                };
                let known = pdr.filter(|_| answered.is_none());
                let policy = known.and_then(|_| state.sessions.cells.step(packet.meta.step).policy());
                let parts = packet.meta.fate.parts().then(|| Parts::watch(&mut self.parts, &mut packet.meta));
                self.taken.push(Taken {
                    at_ns: state.now_ns,
                    port: packet.meta.port,
                    arrived,
                    left,
                    fate: packet.meta.fate,
                    nodes: self.nodes.len() - before,
                    session,
                    pdr,
                    policy,
                    parts,
                });
            }
        }
    }

    /// What became of parts of packets that were taken down, if that is what has run.
    pub(crate) fn follow<B: Buffer>(&mut self, packets: &[Packet<B>]) {
        packets.iter().for_each(|packet| self.note(&packet.meta, packet.meta.fate));
    }

    /// Where one of these ended that was not run.
    pub(crate) fn note(&mut self, meta: &Meta, end: Fate) {
        if self.follows {
            Parts::note(&mut self.parts, meta, end);
        }
    }

    /// All parts of the vector at hand have run.
    pub(crate) const fn follow_no_more(&mut self) {
        self.follows = false;
    }

    fn wants(&self, meta: &Meta, arrived: &PacketSummary, left: &PacketSummary) -> bool {
        let is_of_user = |ue: IpAddr| {
            arrived.ip.is_some_and(|ip| is_same_user(ip.source, ue) || is_same_user(ip.destination, ue))
        };
        let tunnels = [arrived.tunnel, left.tunnel];
        let is_in_tunnel = |teid: Teid| tunnels.iter().flatten().any(|tunnel| tunnel.teid == teid);
        self.port.is_none_or(|port| port == meta.port)
            && self.ue.is_none_or(is_of_user)
            && self.teid.is_none_or(is_in_tunnel)
    }

    /// As it is told.
    pub(crate) fn into_trace(self, (ports, policies): (&[PortConfig], &[PolicyConfig])) -> Trace {
        let began_ns = self.began_ns.unwrap_or(self.now_ns);
        let mut nodes = self.nodes.iter();
        let packet = |taken: &Taken| TracedPacket {
            after_us: taken.at_ns.saturating_sub(began_ns) / 1_000,
            port: name(ports, taken.port),
            arrived: taken.arrived,
            nodes: nodes.by_ref().take(taken.nodes).map(|node| node.name().to_owned()).collect(),
            end: self.end(ports, taken),
            session: taken.session,
            pdr: taken.pdr,
            policy: taken.policy.and_then(|policy| policies.get(policy.place())).map(|of| of.name.clone()),
        };
        Trace {
            packets: self.taken.iter().map(packet).collect(),
            looked_at: self.looked_at,
            lasted_ms: self.now_ns.saturating_sub(began_ns) / 1_000_000,
        }
    }
}

/// What a packet was when it came in. One that another worker handed over has lost its headers, but they still stand in
/// front of it.
fn arrived<B: Buffer>(packet: &mut Packet<B>) -> Arrived {
    let Meta { handed, outer, bytes, .. } = packet.meta;
    let is_whole = handed == 0 || (outer, bytes) == (0, 0);
    let lost = match is_whole {
        true => 0,
        false => usize::from(outer) + packet::ethernet::LENGTH,
    };
    let is_back = packet.buffer.prepend(lost).is_some();
    let seen = summary_and_tuple(packet.buffer.data());
    if is_back {
        // It is as long as what was put in front.
        let _ = packet.buffer.trim_front(lost);
    }
    seen
}

fn place(ports: &[PortConfig], name: &str) -> Result<PortIndex, String> {
    let place = ports.iter().position(|port| port.name == name);
    let names = || ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ");
    place.map(|place| place as PortIndex).ok_or_else(|| format!("there is no port {name}, only {}", names()))
}

/// The name of a port.
pub(crate) fn name(ports: &[PortConfig], port: PortIndex) -> String {
    ports.get(usize::from(port)).map(|port| port.name.clone()).unwrap_or_default()
}

impl Tracer {
    fn end(&self, ports: &[PortConfig], taken: &Taken) -> TraceEnd {
        match taken.fate {
            Fate::Send(port) => TraceEnd::Sent { port: name(ports, port), packet: taken.left },
            Fate::Drop(reason) => TraceEnd::Dropped { reason: reason.name().to_owned() },
            Fate::Consumed => TraceEnd::Consumed,
            Fate::Gather => TraceEnd::Gathered,
            Fate::Punt => TraceEnd::Punted,
            Fate::Hold => TraceEnd::Held,
            Fate::Keep => TraceEnd::Kept,
            Fate::Await => TraceEnd::Awaits,
            Fate::Split
            | Fate::SplitTunnel
            | Fate::Duplicate
            | Fate::Answer
            | Fate::Unreachable
            | Fate::Switch => {
                let parts = taken.parts.and_then(|place| self.parts.get(place));
                TraceEnd::Parted { parts: parts.map(|parts| parts.told(ports)).unwrap_or_default() }
            }
            Fate::HandOff(worker) => TraceEnd::HandedOff { worker },
            Fate::Loop(port) => TraceEnd::Looped { port: name(ports, port) },
        }
    }
}

/// A user of IPv6 has a prefix of 64 bits.
fn is_same_user(address: IpAddr, ue: IpAddr) -> bool {
    match (address, ue) {
        (IpAddr::V6(address), IpAddr::V6(ue)) => address.to_bits() >> 64 == ue.to_bits() >> 64,
        _ => address == ue,
    }
}

/// The session a packet belongs to and the PDR it matched. What `flow` found counts only if `verdict` did not find it
/// out of date, and what `session` found only if `classify` found a PDR.
fn rule<'a>(
    meta: &Meta,
    tuple: Option<&FiveTuple>,
    hops: impl Iterator<Item = &'a Hop>,
    state: &State,
) -> (Option<Seid>, Option<PdrId>) {
    let found = hops.filter(|hop| matches!(hop.node, NodeId::Verdict | NodeId::Classify)).last();
    let seid = |index| state.sessions.get(index).map(|session| session.seid);
    match found.map(|hop| hop.next) {
        None
        | Some(Next::To(NodeId::Session))
        | Some(Next::End(Fate::Drop(
            DropReason::NoPdr | DropReason::NoSession | DropReason::UserPacketMalformed,
        ))) => (seid(meta.session), None),
        Some(_) if meta.step == StepIndex::NONE => (seid(meta.session), None),
        Some(_) => {
            let cells = &state.sessions.cells;
            let (step, session) = (cells.step(meta.step), cells.session(meta.step));
            let asked = state.sessions.get(session).zip(tuple);
            let pdr = asked.and_then(|(session, tuple)| matched(session, meta, tuple, state));
            (seid(session), Some(pdr.unwrap_or(step.pdr)))
        }
    }
}

/// The same of a packet on its way, before an answer takes its place.
pub(crate) fn rule_of<B: Buffer>(state: &State, packet: &Packet<B>) -> Option<(Seid, PdrId)> {
    let (meta, cells) = (&packet.meta, &state.sessions.cells);
    if meta.step == StepIndex::NONE {
        return None;
    }
    let session = state.sessions.get(cells.session(meta.step))?;
    let found = FiveTuple::parse(packet.buffer.data()).ok();
    let pdr = found.and_then(|found| matched(session, meta, &found.tuple, state));
    Some((session.seid, pdr.unwrap_or(cells.step(meta.step).pdr)))
}

/// The PDR a packet matched; `None` where its step, which leads nowhere else, tells. A step may be that of several.
fn matched(session: &Session, meta: &Meta, tuple: &FiveTuple, state: &State) -> Option<PdrId> {
    let application = state.content.application(state.flows.detected(meta.flow()));
    let arrival = Arrival { application, ..arrival(meta, tuple) };
    let any = Arrival { application: Application::Any, ..arrival };
    let is_own = |number| session.step(number) == meta.step;
    let own = session.classifier.find(&arrival).filter(|number| is_own(*number));
    let number = own.or_else(|| session.classifier.find_where(&any, is_own))?;
    session.classifier.pdr(number)
}

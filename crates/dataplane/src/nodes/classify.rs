//! Finds the first PDR of the session that matches, and notes it for the flow (TS 29.244 5.2.1).

use crate::content::Detected;
use crate::counters::DropReason;
use crate::frame::{Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{FlowKey, Handshake, Session, State, StepIndex, Verdict, View};
use packet::Buffer;
use packet::five_tuple::{Dissected, FiveTuple};
use rules::{Application, Arrival, Direction, Interface, Qfi, Teid};

/// The port of DNS.
const DNS: u16 = dpi::extract::dns::PORT;

pub(crate) struct Classify;

impl<B: Buffer> Node<B> for Classify {
    const ID: NodeId = NodeId::Classify;

    #[inline]
    fn first(state: &State, packet: &mut Packet<B>) {
        if packet.meta.direction() == Direction::Downlink {
            // Most likely it will be put into a tunnel.
            packet.buffer.prefetch_headroom();
        }
        if let Some(session) = state.sessions.get(packet.meta.session) {
            std::hint::black_box(session.classifier.touch());
            state.sessions.cells.prefetch(session.step(0));
        }
    }

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        // No flow is noted for it, so that each of them comes here, and no other packet is asked for its source.
        if !packet.meta.tunnelled() && is_from_nobody(state, packet) {
            return Next::drop(DropReason::IpNotForUs);
        }
        let known = known(state, &packet.meta);
        // Most of such packets are to be looked at, and will be read there; what has ports is for no router.
        if packet.meta.key.ports().is_some() && known == Some(Detected::NOT_YET) {
            return Next::To(NodeId::Inspect);
        }
        let Ok(found) = FiveTuple::parse(packet.buffer.data()) else {
            return Next::drop(DropReason::UserPacketMalformed);
        };
        let Some(session) = state.sessions.get(packet.meta.session) else {
            return super::session::gone(state, packet.meta.session);
        };
        let mut arrival = arrival(&packet.meta, &found.tuple);
        if super::router_solicitation::is_for_us(packet, &found.tuple, session)
            && !is_for_control_plane(state, session, &arrival)
        {
            return Next::To(NodeId::RouterSolicitation);
        }
        let Some(detected) = known else {
            return go_by(state, packet, &arrival, Detected::NOT_YET);
        };
        // Whatever else a packet is looked at for, a connection that begins with it has to be noted first. Of one with a resolver, every
        // packet may have another lookup in it.
        if detected == Detected::NOT_YET
            || begins_anew(state, packet, &found)
            || is_to_resolver(&arrival)
            || may_ask_again(&packet.meta, detected)
            || state.flows.asks_anew(packet.meta.flow()).is_some()
        {
            return Next::To(NodeId::Inspect);
        }
        arrival.application = state.content.application(detected);
        go_by(state, packet, &arrival, detected)
    }
}

#[inline]
fn is_from_nobody<B: Buffer>(state: &State, packet: &Packet<B>) -> bool {
    super::far::is_from_nobody(&state.ports, packet.buffer.data(), packet.meta.key.protocol())
}

/// Of what application a packet's flow is known to be; `None` where its session does not ask.
#[inline]
fn known(state: &State, meta: &Meta) -> Option<Detected> {
    let asks = state.sessions.get(meta.session)?.looks.application && state.content.is_loaded();
    asks.then(|| state.flows.detected(meta.flow()))
}

fn is_to_resolver(arrival: &Arrival) -> bool {
    arrival.protocol == packet::protocol::TCP && arrival.remote_port == Some(DNS)
}

/// A packet of the user may begin with a request of another application. (One too short for that goes by what its flow knows.)
fn may_ask_again(meta: &Meta, detected: Detected) -> bool {
    detected.looks_again() && meta.direction() == Direction::Uplink
}

/// Whether a packet may begin a connection between the ports of one that is known. What the server's answer to the user's SYN says is
/// noted at once: what comes behind it in the vector is of the new one, too.
fn begins_anew<B: Buffer>(state: &mut State, packet: &Packet<B>, found: &Dissected) -> bool {
    let meta = &packet.meta;
    let handshake = View::new(packet.buffer.data(), found, meta).and_then(|view| view.handshake());
    if let Some(Handshake::SynAck(acknowledgement)) = handshake
        && is_taken_up(state, meta, acknowledgement)
    {
        state.flows.begin_anew(meta.flow());
    }
    handshake.is_some()
}

/// Whether a server acknowledges the user's SYN: one that waits beside what is known, or one that the user has sent elsewhere.
fn is_taken_up(state: &mut State, meta: &Meta, acknowledgement: u32) -> bool {
    let ticket = state.content.waits((&meta.key, meta.hash), meta.session);
    if ticket.is_some_and(|ticket| state.content.is_answer(ticket, acknowledgement)) {
        return true;
    }
    let key = meta.key.of_session(meta.session);
    let session = state.sessions.get(meta.session);
    session.is_some_and(|session| state.is_answer_to_redirected((session.seid, &key), acknowledgement))
}

/// Some control planes answer themselves: a rule of theirs puts users' router solicitations into a tunnel that is no way to
/// the data network. Where no route leads to the tunnel's other end, as it may be reached from the control process alone, they would
/// not hear of it.
fn is_for_control_plane(state: &State, session: &Session, arrival: &Arrival) -> bool {
    let step = session.find(arrival);
    step.is_some_and(|step| super::router_solicitation::leads_to(state, step, Interface::Access))
}

/// Sends a packet the way of the first PDR that matches, and notes that for its flow, and of what application that is known
/// to be.
#[inline]
pub(super) fn go_by<B: Buffer>(
    state: &mut State,
    packet: &mut Packet<B>,
    arrival: &Arrival,
    detected: Detected,
) -> Next {
    let meta = &mut packet.meta;
    let Some(session) = state.sessions.get(meta.session) else {
        return Next::drop(DropReason::NoSession);
    };
    let found = session.find(arrival);
    meta.step = found.unwrap_or(StepIndex::NONE);
    let step = if is_lasting(session, arrival) { meta.step } else { StepIndex::NONE };
    let class_matters = session.looks.traffic_class;
    let verdict = Verdict { step, generation: session.generation, class_matters, detected };
    if found.is_some() {
        state.sessions.cells.prefetch(meta.step);
    }
    if step != StepIndex::NONE || detected != Detected::NOT_YET {
        state.flows.learn(meta.flow(), verdict, state.now_ns);
    }
    if found.is_some() { Next::To(NodeId::Far) } else { Next::drop(DropReason::NoPdr) }
}

/// Whether what is found of one packet is worth to be remembered for the next ones of its flow.
#[inline]
pub(super) fn is_lasting(session: &Session, arrival: &Arrival) -> bool {
    // Flow labels differ within a flow; packets of IPv4 have none, so that no filter with one matches.
    let is_labelled = session.looks.flow_label && arrival.flow_label.is_some();
    // Of lookups every packet is looked at.
    let is_lookup = session.looks.application && arrival.remote_port == Some(DNS);
    // Router solicitations have the key of whatever else the user tells its routers by ICMPv6.
    let is_for_group = arrival.protocol == packet::protocol::ICMPV6 && arrival.remote.is_multicast();
    !is_labelled && !is_lookup && !is_for_group
}

/// A packet as classifiers see it.
#[inline]
pub(crate) fn arrival(meta: &Meta, tuple: &FiveTuple) -> Arrival {
    let upper = match tuple.fragment {
        true => UpperLayer::of_fragment(&meta.key),
        false => UpperLayer::shown(tuple, meta.direction()),
    };
    let (from, to) = (tuple.source_address(), tuple.destination_address());
    let (ue, remote) = match meta.direction() {
        Direction::Uplink => (from, to),
        Direction::Downlink => (to, from),
    };
    Arrival {
        source: meta.source,
        instance: meta.instance,
        teid: meta.tunnelled().then_some(Teid(meta.teid)),
        qfi: Qfi::new(meta.qfi),
        ue,
        remote,
        protocol: upper.protocol,
        ue_port: upper.ports.map(|ports| ports.0),
        remote_port: upper.ports.map(|ports| ports.1),
        traffic_class: tuple.tos,
        spi: upper.spi,
        flow_label: (tuple.version == 6).then_some(tuple.flow_label),
        application: Application::None,
    }
}

/// What a packet carries, as far as that is known.
struct UpperLayer {
    protocol: u8,
    /// The user's, and the far end's.
    ports: Option<(u16, u16)>,
    spi: Option<u32>,
}

impl UpperLayer {
    /// Of a packet that shows it.
    #[inline]
    fn shown(tuple: &FiveTuple, direction: Direction) -> Self {
        let has_ports = packet::protocol::has_ports(tuple.protocol);
        let ports = match direction {
            Direction::Uplink => (tuple.source_port, tuple.destination_port),
            Direction::Downlink => (tuple.destination_port, tuple.source_port),
        };
        Self {
            protocol: tuple.protocol,
            ports: has_ports.then_some(ports),
            // Over IPv6, AH is an extension header in front of the protocol.
            spi: (tuple.spi != 0).then_some(tuple.spi),
        }
    }

    /// Of a later fragment: what the first one said, which its flow has.
    #[cold]
    fn of_fragment(key: &FlowKey) -> Self {
        Self { protocol: key.protocol(), ports: key.ports(), spi: key.spi() }
    }
}

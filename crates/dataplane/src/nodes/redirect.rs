//! Sends users elsewhere (TS 29.244 8.2.20): a request of HTTP/1.x is answered in the place of its server, and the
//! connection ended; other connections over TCP are reset, at both ends where the server knows of them; what is not TCP
//! is dropped. Nothing is forwarded, and nothing is counted or held to a rate. Where connections are to be reset, all of this
//! happens without an answer to requests: a handshake is refused.
//!
//! No state is kept: each answer follows from the segment it answers. A handshake that comes here is completed, so that
//! there can be a request; the first number of ours is a function of the flow, by which its later segments are known.

use super::answer::replace;
use super::classify::arrival;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet, Part};
use crate::graph::{Next, Node, NodeId};
use crate::side::Side;
use crate::state::{Kind, State, StepIndex};
use packet::tcp::{Made, Segment, flag};
use packet::{Buffer, FiveTuple, protocol};
use rules::{Application, Arrival, Direction, Interface};

pub(crate) struct Redirect;

/// Bytes of the longest answer: IPv6, TCP with timestamps, 302 with the longest URL.
const ANSWER_MAX: usize = 1_280;
/// Handshakes for these ports are refused, because no request of HTTP follows: assigned ones (RFC 6335 6), but that of HTTP.
const SYSTEM_PORTS: std::ops::RangeInclusive<u16> = 1..=1023;
const HTTP: u16 = 80;
/// Letters of the longest method of HTTP that is told from the first octets of something else.
const METHOD_MAX: usize = 16;

/// What the user hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// There is a connection: SYN and ACK.
    Accept,
    /// The portal's URL, and that this is all.
    Portal,
    /// That the end of the connection was heard.
    Acknowledge,
    /// There is no connection.
    Reset,
}

/// A segment on its way, and what is to be done about it.
struct Plan<'a> {
    flow: FiveTuple,
    segment: Segment<'a>,
    user: Option<Reply>,
    /// The server knows of the connection, and is to forget it.
    server: bool,
}

impl<B: Buffer> Node<B> for Redirect {
    const ID: NodeId = NodeId::Redirect;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let mut bytes = [0; ANSWER_MAX];
        let Some(plan) = plan(state, packet) else { return Next::drop(DropReason::Redirected) };
        let made = match (packet.meta.part, plan.user, plan.server) {
            (Part::Whole, Some(_), true) => return Next::End(Fate::Answer),
            (Part::ForServer, ..) | (Part::Whole, None, true) => for_server(state, packet, &plan, &mut bytes),
            (_, Some(reply), _) => for_user(state, packet, (&plan, reply), &mut bytes),
            (_, None, _) => None,
        };
        let sent = made.and_then(|(length, meta, next)| {
            replace(&mut packet.buffer, bytes.get(..length)?)?;
            packet.meta = meta;
            Some(Next::To(next))
        });
        sent.unwrap_or(Next::drop(DropReason::Redirected))
    }
}

/// `None` for what is not a whole TCP segment: of a fragment nobody knows how long its segment is.
fn plan<'a, B: Buffer>(state: &State, packet: &'a Packet<B>) -> Option<Plan<'a>> {
    let data = packet.buffer.data();
    let found = FiveTuple::parse(data).ok()?;
    if found.tuple.protocol != protocol::TCP || found.part.is_some() {
        return None;
    }
    let segment = Segment::parse(data.get(found.upper..found.total)?).ok()?;
    let resets = state.sessions.cells.step(packet.meta.step).kind == Kind::Reset;
    let (user, server) = match packet.meta.direction() {
        Direction::Uplink if resets => (reset_by_user(&segment), !begins(&segment)),
        Direction::Uplink => (from_user(&segment), !is_ours(state, &packet.meta, &segment)),
        Direction::Downlink if resets => (Some(Reply::Reset), !segment.has(flag::RST)),
        Direction::Downlink => from_server(&segment),
    };
    // What only says that something was heard, and is not answered, ends nothing.
    let is_about_server = user.is_some_and(|reply| reply != Reply::Accept) || segment.has(flag::RST);
    Some(Plan { flow: found.tuple, segment, user, server: server && is_about_server })
}

/// A connection begins, which is nobody's yet.
const fn begins(segment: &Segment<'_>) -> bool {
    segment.has(flag::SYN) && !segment.has(flag::ACK)
}

/// Whatever a user says but that there is no connection (RFC 9293 3.5.2) ends it.
fn reset_by_user(segment: &Segment<'_>) -> Option<Reply> {
    (!segment.has(flag::RST) && segment.has(flag::SYN | flag::ACK)).then_some(Reply::Reset)
}

/// The server knows of a connection whose first segment it has seen.
fn from_user(segment: &Segment<'_>) -> Option<Reply> {
    match begins(segment) {
        _ if segment.has(flag::RST) => None,
        true if SYSTEM_PORTS.contains(&segment.destination()) && segment.destination() != HTTP => {
            Some(Reply::Reset)
        }
        true => Some(Reply::Accept),
        false if segment.has(flag::SYN) => Some(Reply::Reset),
        false if !segment.has(flag::ACK) => None,
        false if is_request(segment.payload()) => Some(Reply::Portal),
        false if !segment.payload().is_empty() => Some(Reply::Reset),
        false => segment.has(flag::FIN).then_some(Reply::Acknowledge),
    }
}

/// Of a connection that was there before, both ends hear that it is no more.
fn from_server(segment: &Segment<'_>) -> (Option<Reply>, bool) {
    let is_reset = segment.has(flag::RST);
    ((!is_reset).then_some(Reply::Reset), !is_reset)
}

/// Whether bytes begin as a request of HTTP/1.x does: a method and a blank (RFC 9112 3).
fn is_request(payload: &[u8]) -> bool {
    let method = payload.iter().take(METHOD_MAX + 1).position(|octet| *octet == b' ');
    let letters = method.and_then(|length| payload.get(..length)).unwrap_or_default();
    letters.len() >= 3 && letters.iter().all(u8::is_ascii_uppercase)
}

/// The number of our SYN, of which a user learns nothing about the places of flows. It is the same wherever the session moves.
fn first_number(state: &State, meta: &Meta) -> u32 {
    let session = state.sessions.cells.session(meta.step);
    let hash = state.flows.hash(&meta.key.of_session(session));
    let mixed = (hash ^ hash >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
    (mixed >> 32) as u32
}

/// Whether the user has its connection with us: it expects what follows our SYN, up to the end of our answer.
fn is_ours(state: &State, meta: &Meta, segment: &Segment<'_>) -> bool {
    let said = state.portal(meta.step).map_or(0, <[u8]>::len) as u32;
    let heard = segment.acknowledgement().wrapping_sub(first_number(state, meta).wrapping_add(1));
    // One that is reset may have been acknowledged or not.
    begins(segment) || (segment.has(flag::ACK) && heard <= said + 1)
}

type Answered = (usize, Meta, NodeId);

fn for_user<B: Buffer>(
    state: &State,
    packet: &Packet<B>,
    (plan, reply): (&Plan<'_>, Reply),
    bytes: &mut [u8],
) -> Option<Answered> {
    let (meta, segment) = (&packet.meta, &plan.segment);
    let is_down = meta.direction() == Direction::Downlink;
    let (made, flow) = match reply {
        // It comes from the server as it is, but ends what it belongs to.
        _ if is_down => (ending(segment), plan.flow),
        Reply::Accept => {
            // What came with the SYN is not kept: the user says it again (RFC 7413 4.2).
            let (sequence, acknowledgement) = (first_number(state, meta), segment.sequence().wrapping_add(1));
            let made = Made::answering(segment, flag::SYN | flag::ACK, &[]);
            (Made { sequence, acknowledgement, ..made }, plan.flow.reversed())
        }
        Reply::Portal => {
            let portal = state.portal(meta.step)?;
            (Made::answering(segment, flag::FIN | flag::PSH | flag::ACK, portal), plan.flow.reversed())
        }
        Reply::Acknowledge => (Made::answering(segment, flag::ACK, &[]), plan.flow.reversed()),
        Reply::Reset => (Made::answering(segment, flag::RST | flag::ACK, &[]), plan.flow.reversed()),
    };
    let made = Made { timestamps: made.timestamps.filter(|_| reply != Reply::Accept), ..made };
    let length = made.write(&flow, bytes)?;
    let step = way_to_user(state, packet, &flow)?;
    Some((length, Meta { step, ..Meta::new(meta.port, meta.side()) }, NodeId::GtpuEncap))
}

/// In the place of who sent this segment: the connection is no more.
fn ending(segment: &Segment<'_>) -> Made<'static> {
    Made {
        flags: flag::RST | segment.flags() & flag::ACK,
        sequence: segment.sequence(),
        acknowledgement: segment.acknowledgement(),
        timestamps: segment.timestamps(),
        payload: &[],
    }
}

fn for_server<B: Buffer>(
    state: &State,
    packet: &Packet<B>,
    plan: &Plan<'_>,
    bytes: &mut [u8],
) -> Option<Answered> {
    let (meta, segment) = (&packet.meta, &plan.segment);
    let (made, flow) = match meta.direction() {
        Direction::Uplink => {
            let sequence = state.connections.to_server((&meta.key, meta.hash), segment.sequence());
            (Made { sequence, ..ending(segment) }, plan.flow)
        }
        Direction::Downlink => (Made::answering(segment, flag::RST | flag::ACK, &[]), plan.flow.reversed()),
    };
    let length = made.write(&flow, bytes)?;
    let (step, towards, next) = way_to_server(state, packet, &flow)?;
    if next == NodeId::IpOutput {
        let is_ipv6 = flow.destination_address().is_ipv6();
        super::far::may_leave(&state.ports, bytes, is_ipv6).ok()?;
    }
    Some((length, Meta { step, towards, ..Meta::new(meta.port, meta.side()) }, next))
}

/// A rule that puts packets to the user into a tunnel: this one, that of this flow, or else any.
fn way_to_user<B: Buffer>(state: &State, packet: &Packet<B>, flow: &FiveTuple) -> Option<StepIndex> {
    let meta = &packet.meta;
    let session = state.sessions.get(state.sessions.cells.session(meta.step))?;
    let leads = |at: &StepIndex| state.sessions.cells.step(*at).leads_to(Interface::Access) == Some(true);
    let far = match meta.direction() {
        Direction::Uplink => Side::new(Interface::Core, session.instance()),
        Direction::Downlink => meta.side(),
    };
    let coming = arrival(&Meta::new(meta.port, far), flow);
    let usual = session.find(&coming);
    let own = (meta.direction() == Direction::Downlink).then_some(meta.step);
    own.into_iter().chain(usual).chain(session.steps()).find(leads)
}

/// Where packets of this flow go from the user, or went before it was known what they are, or before a quota was used up.
fn way_to_server<B: Buffer>(
    state: &State,
    packet: &Packet<B>,
    flow: &FiveTuple,
) -> Option<(StepIndex, Side, NodeId)> {
    let meta = &packet.meta;
    if meta.direction() == Direction::Downlink {
        // Back to where the segment came from.
        return (!meta.tunnelled()).then_some((StepIndex::NONE, meta.side(), NodeId::IpOutput));
    }
    let session = state.sessions.get(state.sessions.cells.session(meta.step))?;
    let known = arrival(meta, flow);
    let any = Arrival { application: Application::Any, ..known };
    let own = [state.stood_in_for(meta.step), Some(meta.step)];
    let ways = [session.find(&known), session.find(&any)].into_iter().chain(own);
    ways.flatten().find_map(|at| {
        let step = state.sessions.cells.step(at);
        let far = Some(step.to()).filter(|to| to.interface() != Interface::Access)?;
        let next = if step.leads_to(far.interface())? { NodeId::GtpuEncap } else { NodeId::IpOutput };
        Some((at, far, next))
    })
}

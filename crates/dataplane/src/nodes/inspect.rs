//! Looks at the first packets of flows whose session has rules for applications, until it is known of which the flow is.
//! Until then a packet goes by the rules that ask for none, or if there are none by those of any application, and what it
//! uses is counted later, by the rules of the application.
//!
//! Where content rules tell requests apart, what the user sends on a connection that has had one of HTTP/1.x goes on coming here, if it
//! is long enough for one: of each segment that begins with a request the rules are asked anew, and what has gone before stays what it
//! was.
//!
//! Where the user begins another connection between the ports of one that is known, its SYN waits beside that, which goes on as it is:
//! only when the server has acknowledged this SYN with its own the old one is over, as no end by itself can say, and of what
//! application the flow is is asked anew.
//!
//! A packet that has no hop left ends here, or at the next router: its receiver never sees what it says, and so it says nothing.
//!
//! A flow is known by the addresses its packets say, and anybody can say any. So only what is the session's by some rule is
//! looked at, and only whose flow it is says what it is of.

use super::classify::{arrival, go_by, is_lasting};
use crate::content::Detected;
use crate::counters::DropReason;
use crate::frame::{Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::receipt::Receipt;
use crate::state::{Handshake, Led, Place, Said, SessionIndex, State, StepIndex, Ticket, Verdict, View};
use dpi::matching::Facts;
use packet::Buffer;
use packet::five_tuple::FiveTuple;
use rules::{Application, Arrival, Direction};

pub(crate) struct Inspect;

impl<B: Buffer> Node<B> for Inspect {
    const ID: NodeId = NodeId::Inspect;

    #[inline]
    fn first(state: &State, packet: &mut Packet<B>) {
        state.content.prefetch_place(packet.meta.hash);
    }

    #[inline]
    fn ahead(state: &State, packet: &mut Packet<B>) {
        state.content.prefetch(packet.meta.hash);
    }

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let (meta, now_ns) = (&packet.meta, state.now_ns);
        let found = FiveTuple::parse(packet.buffer.data());
        let view = found.ok().and_then(|found| View::new(packet.buffer.data(), &found, meta));
        let Some((found, view)) = found.ok().zip(view) else {
            return Next::drop(DropReason::UserPacketMalformed);
        };
        let view = view.held_by(state.sessions.get(meta.session));
        let arrival = arrival(meta, &found.tuple);
        let known = state.flows.detected(meta.flow());
        if ends_on_its_way(packet) {
            return say_nothing(state, packet, &arrival, known);
        }
        let is_syn = known != Detected::NOT_YET && view.handshake() == Some(Handshake::Syn);
        if known.looks_again() && !is_syn {
            let detected = from_now_on(state, (&view, &arrival), (meta.session, known));
            return go_by_known(state, packet, &arrival, (known, detected));
        }
        let Some(unknown) = while_unknown(state, meta.session, &arrival) else {
            return Next::drop(DropReason::NoPdr);
        };
        if view.is_dns() {
            let detected = state.content.detect(&view, now_ns);
            let application = state.content.application(detected);
            return go_by(state, packet, &Arrival { application, ..arrival }, Detected::NOT_YET);
        }
        if view.is_to_resolver() {
            state.content.overhear(&view, now_ns);
        }
        // A packet before it in the vector may have told: what this one says, as a server's answer, is no second opinion.
        if known != Detected::NOT_YET {
            let beside = if is_syn { wait_beside(state, meta, &view) } else { None };
            let detected = by_new_rules(state, meta, &view).unwrap_or(known);
            return match beside {
                Some(ticket) => go_on_waiting(state, packet, &arrival, (ticket, unknown)),
                None => go_by_known(state, packet, &arrival, (known, detected)),
            };
        }
        if found.tuple.fragment && !meta.key.is_of_addresses() {
            let application = state.content.application(state.content.by_address(&view, now_ns));
            return follow_flow(state, packet, (&arrival, application), unknown);
        }
        let ticket = match view.may_wait() {
            true => state.wait((&meta.key, meta.hash), meta.session),
            false => Ok(None),
        };
        let Ok(ticket) = ticket else {
            let application = state.content.application(state.content.by_address(&view, now_ns));
            return go_once(state, packet, &Arrival { application, ..arrival });
        };
        let told = match ticket {
            Some(ticket) => state.content.look(ticket, &view, now_ns),
            None => Some((state.content.detect(&view, now_ns), Said::of(&Facts::default()))),
        };
        match (told, ticket) {
            (None, Some(ticket)) => go_on_waiting(state, packet, &arrival, (ticket, unknown)),
            (told, ticket) => {
                settle(state, packet, &arrival, (ticket, told.unwrap_or((Detected::NONE, Said::UNKNOWN))))
            }
        }
    }
}

/// Whether the other end never sees a packet, as no hop is left: here or at the next router it ends. (What comes to the user through a tunnel
/// has no router before it.)
#[inline]
fn ends_on_its_way<B: Buffer>(packet: &Packet<B>) -> bool {
    let (meta, data) = (&packet.meta, packet.buffer.data());
    let left = if data.first().is_some_and(|first| first >> 4 == 6) { data.get(7) } else { data.get(8) };
    let is_routed = meta.direction() == Direction::Uplink || !meta.tunnelled();
    is_routed && left.is_none_or(|left| *left <= 1)
}

/// Sends a packet the way of its flow, which is known or not, and learns nothing.
#[cold]
fn say_nothing<B: Buffer>(state: &State, packet: &mut Packet<B>, arrival: &Arrival, known: Detected) -> Next {
    if known != Detected::NOT_YET {
        let application = state.content.application(known);
        return go_once(state, packet, &Arrival { application, ..*arrival });
    }
    let Some(unknown) = while_unknown(state, packet.meta.session, arrival) else {
        return Next::drop(DropReason::NoPdr);
    };
    packet.meta.step = unknown;
    Next::To(NodeId::Far)
}

/// Sends a packet the way of the rule for what its flow was just found to be of, and counts what that has used so far.
#[inline]
fn settle<B: Buffer>(
    state: &mut State,
    packet: &mut Packet<B>,
    arrival: &Arrival,
    (ticket, (detected, said)): (Option<Ticket>, (Detected, Said)),
) -> Next {
    let count = |ticket| state.settle(ticket, state.content.application(detected));
    let led = ticket.map(count).unwrap_or_default();
    let next = go_by_known(state, packet, arrival, (Detected::NOT_YET, detected));
    state.flows.say(packet.meta.flow(), said);
    lead_back(state, packet, arrival, (led, detected));
    next
}

/// Of what application a flow is that is to ask the rules in force anew; `None` of others, and where it would have to say it again.
#[cold]
fn by_new_rules(state: &State, meta: &Meta, view: &View<'_>) -> Option<Detected> {
    let said = state.flows.asks_anew(meta.flow())?;
    state.content.anew(view, said, state.now_ns)
}

/// Where the user's SYN on a connection that is known waits for the server's answer; `None` where it cannot.
#[cold]
fn wait_beside(state: &mut State, meta: &Meta, view: &View<'_>) -> Option<Ticket> {
    let ticket = state.wait((&meta.key, meta.hash), meta.session).ok().flatten()?;
    state.content.hear(ticket, view).then_some(ticket)
}

/// Sends a packet on by the rule of flows of which nothing is known yet; what it uses is counted once that is.
#[inline]
fn go_on_waiting<B: Buffer>(
    state: &mut State,
    packet: &mut Packet<B>,
    arrival: &Arrival,
    (ticket, unknown): (Ticket, StepIndex),
) -> Next {
    let generation = state.sessions.get(packet.meta.session).map_or(0, |session| session.generation);
    state.content.note(ticket, packet.meta.flow(), (*arrival, generation, state.now_ns));
    (packet.meta.waits, packet.meta.step) = (ticket, unknown);
    Next::To(NodeId::Far)
}

/// The rule a packet goes by as long as it is not known of what application it is; `None` where it would match no PDR, of whatever
/// application it turned out to be.
#[inline]
fn while_unknown(state: &State, session: SessionIndex, arrival: &Arrival) -> Option<StepIndex> {
    let session = state.sessions.get(session)?;
    let any = || Arrival { application: Application::Any, ..*arrival };
    session.find(arrival).or_else(|| session.find(&any()))
}

/// Of what application a connection is that has had a request: of another one where this packet begins with the next request,
/// and that says so.
#[inline]
fn from_now_on(
    state: &State,
    (view, arrival): (&View<'_>, &Arrival),
    (session, known): (SessionIndex, Detected),
) -> Detected {
    match view.later_request() {
        Some(request) if while_unknown(state, session, arrival).is_some() => {
            state.content.of_request(view, request, state.now_ns)
        }
        _ => known,
    }
}

/// Sends a packet the way of the rule for what its flow is of, which may not be what that was before.
#[inline]
fn go_by_known<B: Buffer>(
    state: &mut State,
    packet: &mut Packet<B>,
    arrival: &Arrival,
    (before, detected): (Detected, Detected),
) -> Next {
    if detected != before {
        state.learned(packet.meta.session, &packet.meta.key, detected);
    }
    let application = state.content.application(detected);
    go_by(state, packet, &Arrival { application, ..*arrival }, detected)
}

/// What came the other way while the flow waited has shown by which rule the next packet there goes, which need not ask again.
#[inline]
fn lead_back<B: Buffer>(
    state: &mut State,
    packet: &Packet<B>,
    arrival: &Arrival,
    (led, detected): (Led, Detected),
) {
    let place = packet.meta.flow();
    let direction = place.direction.opposite();
    let Some((step, circumstances)) = led[direction as usize] else { return };
    let Some(session) = state.sessions.get(packet.meta.session) else { return };
    if !is_lasting(session, arrival) {
        return;
    }
    let class_matters = session.looks.traffic_class;
    let verdict = Verdict { step, generation: session.generation, class_matters, detected };
    state.flows.learn(Place { direction, circumstances, ..place }, verdict, state.now_ns);
}

/// A fragment that says nothing of its flow goes where the flow does, and waits if that waits; alone, its addresses must do.
#[cold]
fn follow_flow<B: Buffer>(
    state: &mut State,
    packet: &mut Packet<B>,
    (arrival, application): (&Arrival, Application),
    unknown: StepIndex,
) -> Next {
    let meta = &packet.meta;
    if let Some(ticket) = state.content.waits((&meta.key, meta.hash), meta.session) {
        return go_on_waiting(state, packet, arrival, (ticket, unknown));
    }
    go_once(state, packet, &Arrival { application, ..*arrival })
}

/// Sends a packet the way of its rule, of which nothing is noted.
#[cold]
fn go_once<B: Buffer>(state: &State, packet: &mut Packet<B>, arrival: &Arrival) -> Next {
    let session = state.sessions.get(packet.meta.session);
    let Some(step) = session.and_then(|session| session.find(arrival)) else {
        return Next::drop(DropReason::NoPdr);
    };
    packet.meta.step = step;
    Next::To(NodeId::Far)
}

/// Takes down what a packet of a flow that waits has used; false where the packet's own rules count it. Where a later
/// packet of the same vector has told, the rules of the application do.
#[cold]
pub(super) fn defer<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> bool {
    let meta = &packet.meta;
    let (direction, bytes) = (meta.direction(), u32::from(meta.bytes));
    if state.content.defer(meta.waits, direction, bytes) {
        packet.meta.receipt = Receipt::of_flow(meta.waits, direction, meta.bytes);
        return true;
    }
    let application = state.content.application(state.flows.detected(meta.flow()));
    let (Ok(found), Some(session)) =
        (FiveTuple::parse(packet.buffer.data()), state.sessions.get(meta.session))
    else {
        return false;
    };
    let arrival = Arrival { application, ..arrival(meta, &found.tuple) };
    let Some(at) = session.find(&arrival) else { return false };
    let step = state.sessions.cells.whole(at);
    for place in step.lists().usages() {
        let start = |state: &State| Some(state.start((meta.session, at), &arrival));
        state.look((meta.session, *place), (direction, bytes), start);
    }
    packet.meta.receipt = Receipt::of_step(at, direction, packet.meta.bytes);
    true
}

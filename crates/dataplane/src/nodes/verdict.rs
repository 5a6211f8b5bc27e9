//! Makes sure that what is known of a flow was said by the rules in force, and does the usual at once: one rate, one
//! count, forward, out. Whatever is not that simple goes the long way from `far` on, which comes to the same.

use super::{EthernetOutput, GtpuEncap, IpOutput, gtpu_encap};
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet, PortIndex};
use crate::graph::{Next, Node, NodeId};
use crate::receipt::Receipt;
use crate::state::{
    Cells, Count, Exit, HotStep, Kind, Moment, Neighbours, Peers, Ports, Rate, Routes, Sessions, State,
};
use packet::gtpu::Template;
use packet::{Buffer, ethernet, ipv4};
use zerocopy::IntoBytes;

pub(crate) struct Verdict;

impl<B: Buffer> Node<B> for Verdict {
    const ID: NodeId = NodeId::Verdict;

    #[inline(always)]
    fn ahead(state: &State, packet: &mut Packet<B>) {
        // A whole vector has passed since it was read.
        packet.buffer.prefetch_data();
        state.sessions.cells.prefetch_accounts(packet.meta.step);
    }

    #[inline(always)]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Meta { step: at, generation, teid, .. } = packet.meta;
        let step = state.sessions.cells.step(at);
        // The same addresses and ports may come in another tunnel, which is another PDR's, or nobody's.
        if step.generation != generation || step.arrives_in != teid {
            return Next::To(NodeId::Session);
        }
        if !step.is_simple() {
            return Next::To(NodeId::Far);
        }
        let (ways, cells) = Ways::of(state);
        let end = match cells.with_account(at) {
            Some(rules) => ways.enforce(packet, rules),
            None => enforce_apart(state, packet),
        };
        match end {
            End::Sent(port) => Next::End(Fate::Send(port)),
            other => other.go_on(state, packet),
        }
    }
}

/// What a packet came to.
enum End {
    /// It leaves.
    Sent(PortIndex),
    /// It is counted, and somebody has to look closer how it leaves.
    Unsent,
    /// Its quotas have to be looked at.
    Unsure,
    /// It cannot go on.
    Stopped(DropReason),
    /// It is beyond its rate.
    Refused,
}

impl End {
    /// All but the usual.
    #[cold]
    #[inline(never)]
    fn go_on<B: Buffer>(self, state: &mut State, packet: &mut Packet<B>) -> Next {
        let step = state.sessions.cells.step(packet.meta.step);
        let plain = step.kind == Kind::Plain;
        packet.meta.towards = step.to();
        match self {
            Self::Sent(port) => Next::End(Fate::Send(port)),
            Self::Unsent => leave_anew(state, packet, plain),
            Self::Unsure => Next::To(NodeId::Far),
            Self::Stopped(reason) => super::far::stop(packet, reason),
            Self::Refused => super::qer::refuse(state, packet, DropReason::RateExceeded),
        }
    }
}

/// What says where packets leave.
struct Ways<'a> {
    ports: &'a Ports,
    routes: &'a Routes,
    peers: &'a Peers,
    neighbours: &'a Neighbours,
    moment: Moment,
    now_ns: u64,
}

/// A simple step, its rate and its count.
type Rules<'a> = (&'a HotStep, &'a mut Rate, &'a mut Count);

/// As [`Ways::enforce`], of a step whose account is elsewhere.
#[inline(never)]
fn enforce_apart<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> End {
    let (ways, cells) = Ways::of(state);
    let step = *cells.step(packet.meta.step);
    match cells.rate_and_count(packet.meta.step, &step) {
        Some((rate, count)) => ways.enforce(packet, (&step, rate, count)),
        None => End::Unsure,
    }
}

impl<'a> Ways<'a> {
    /// With the sessions' rules.
    #[inline(always)]
    const fn of(state: &'a mut State) -> (Self, &'a mut Cells) {
        let State { sessions, ports, routes, neighbours, moment, now_ns, .. } = state;
        let Sessions { cells, peers, .. } = sessions;
        (Self { ports, routes, peers, neighbours, moment: *moment, now_ns: *now_ns }, cells)
    }

    #[inline(always)]
    fn enforce<B: Buffer>(&self, packet: &mut Packet<B>, rules: Rules<'_>) -> End {
        match rules.0.kind {
            Kind::Plain => self.enforce_on::<B, true>(packet, rules),
            _ => self.enforce_on::<B, false>(packet, rules),
        }
    }

    /// One rate, one count, out.
    #[inline(always)]
    fn enforce_on<B: Buffer, const PLAIN: bool>(
        &self,
        packet: &mut Packet<B>,
        (step, rate, count): Rules<'_>,
    ) -> End {
        let meta = &packet.meta;
        let (direction, bytes) = (meta.direction(), u32::from(meta.bytes));
        if step.is_counted() && count.left < bytes {
            return End::Unsure;
        }
        if let Err(reason) = super::far::route_usual(self.ports, packet, PLAIN, step.fits) {
            return End::Stopped(reason);
        }
        if step.is_metered() && !rate.take(direction, self.moment, bytes) {
            return End::Refused;
        }
        if step.is_counted() {
            packet.meta.receipt = Receipt::of_step(packet.meta.step, direction, packet.meta.bytes);
            count.add(direction, bytes, self.now_ns);
        }
        let left = if PLAIN { self.leave(packet, step) } else { self.leave_in_tunnel(packet, step) };
        left.map_or(End::Unsent, End::Sent)
    }

    /// Sends a plain packet as the one before it was; the port it leaves by, or `None` where somebody has to look closer.
    #[inline(always)]
    fn leave<B: Buffer>(&self, packet: &mut Packet<B>, step: &HotStep) -> Option<PortIndex> {
        let header: &[u8; ipv4::LENGTH] = packet.buffer.data().first_chunk()?;
        let exit = self.routes.exit(step.to(), destination(header))?;
        let usual = header[0] >> 4 == 4
            && step.dscp().is_none()
            && packet.meta.bytes <= exit.mtu
            && exit.holds(self.neighbours, self.now_ns);
        if !usual {
            return None;
        }
        let header = packet.buffer.prepend(ethernet::LENGTH)?.first_chunk_mut::<{ ethernet::LENGTH }>()?;
        header.copy_from_slice(exit.headers.as_bytes());
        Some(exit.port)
    }

    /// The same into a tunnel.
    #[inline(always)]
    fn leave_in_tunnel<B: Buffer>(&self, packet: &mut Packet<B>, step: &HotStep) -> Option<PortIndex> {
        let Meta { qfi, marks, .. } = packet.meta;
        let exit = self.peers.exit(step.peer)?;
        if marks.has_policy() || !exit.holds(self.neighbours, self.now_ns) {
            return None;
        }
        let tunnel = gtpu_encap::short_tunnel(step, (qfi, marks));
        exit.headers.encapsulate(&mut packet.buffer, tunnel, exit.mtu).map(|()| exit.port)
    }
}

/// Sends a packet by the nodes that know all there is to know, and notes how, for those that follow.
fn leave_anew<B: Buffer>(state: &mut State, packet: &mut Packet<B>, plain: bool) -> Next {
    let header = packet.buffer.data().first_chunk().filter(|header| header[0] >> 4 == 4);
    let destination = header.map(destination);
    let next = if plain { IpOutput::process(state, packet) } else { GtpuEncap::process(state, packet) };
    let end = match next {
        Next::To(_) => EthernetOutput::process(state, packet),
        end @ Next::End(_) => end,
    };
    if matches!(end, Next::End(Fate::Send(_))) {
        let State { sessions, routes, ports, neighbours, now_ns, .. } = state;
        let known = (&*neighbours, *now_ns);
        match (plain, destination) {
            (true, None) => {}
            (true, Some(destination)) => {
                routes.note_exit((packet.meta.towards, destination), |next_hop| {
                    Exit::new(known, (next_hop, ports.get(next_hop.port)), |header| header)
                });
            }
            (false, _) => sessions.peers.note_exit(sessions.cells.step(packet.meta.step).peer, |way| {
                let Template::V4(template) = &way.template else { return None };
                let port = ports.get(way.next_hop.port);
                Exit::new(known, (way.next_hop, port), |header| template.framed(header))
            }),
        }
    }
    end
}

#[inline(always)]
const fn destination(header: &[u8; ipv4::LENGTH]) -> u32 {
    u32::from_be_bytes([header[16], header[17], header[18], header[19]])
}

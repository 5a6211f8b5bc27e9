//! What a simple step says, done at once: one rate, one count, forward, out. `verdict` does so to packets of flows that are known,
//! and `far` to the others; the long way through a node for each kind of rule comes to the same.

use super::{EthernetOutput, GtpuEncap, IpOutput, gtpu_encap};
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet, PortIndex};
use crate::graph::{Next, Node, NodeId};
use crate::receipt::Receipt;
use crate::state::{
    Cells, Count, Exit, HotStep, Kind, Moment, Neighbours, Pace, Peers, Ports, Routes, Sessions, State, Tally,
};
use packet::gtpu::Template;
use packet::{Buffer, ethernet, ipv4};
use zerocopy::IntoBytes;

/// Does to a packet what its step says, if that is simple; `None` where the long way has to be gone.
#[inline]
pub(super) fn finish<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Option<Next> {
    if !state.sessions.cells.step(packet.meta.step).is_simple() {
        return None;
    }
    let next = match packet.meta.waits.is_some() {
        true => enforce_waiting(state, packet)?,
        false => enforce(state, packet),
    };
    (next != Next::To(NodeId::Far)).then_some(next)
}

/// Does to a packet what its step says, which is simple; where its quotas have to be looked at, then those of packets behind it are,
/// too.
#[inline(always)]
pub(super) fn enforce<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Next {
    let (ways, cells) = Ways::of(state);
    let end = match cells.with_account(packet.meta.step, packet.meta.direction()) {
        Some(rules) => ways.enforce(packet, rules),
        None => enforce_apart(state, packet),
    };
    match end {
        End::Sent(port) => Next::End(Fate::Send(port)),
        other => other.go_on(state, packet),
    }
}

/// As [`enforce`], of a packet whose flow waits to be of an application: the rules of that will count it.
#[inline]
fn enforce_waiting<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Option<Next> {
    let (ways, cells) = Ways::of(state);
    let step = *cells.step(packet.meta.step);
    let (pace, tally) = cells.rate_and_count(packet.meta.step, &step, packet.meta.direction())?;
    let plain = step.kind == Kind::Plain;
    if let Err(end) = ways.admit(packet, (&step, pace, tally.left()), plain) {
        return Some(end.go_on(state, packet));
    }
    super::urr::count_all(state, packet);
    Some(match Ways::of(state).0.leave_by(packet, &step, plain) {
        End::Sent(port) => Next::End(Fate::Send(port)),
        other => other.go_on(state, packet),
    })
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
        let step = *state.sessions.cells.step(packet.meta.step);
        let plain = step.kind == Kind::Plain;
        packet.meta.towards = step.to();
        match self {
            Self::Sent(port) => Next::End(Fate::Send(port)),
            Self::Unsent => leave_anew(state, packet, plain),
            Self::Unsure if is_stopped(state, packet, &step) => {
                match super::far::route_usual(&state.ports, packet, plain, step.fits) {
                    Ok(()) => Next::drop(DropReason::QuotaExhausted),
                    Err(reason) => super::far::stop(packet, reason),
                }
            }
            Self::Unsure => {
                // What comes behind it is to be counted behind it, even if it is short enough to be sure of.
                let base = step.base(packet.meta.step);
                let place = step.counted_at();
                state.sessions.cells.with_count((base, place), Count::look_at_next);
                Next::To(NodeId::Far)
            }
            Self::Stopped(reason) => super::far::stop(packet, reason),
            // Not all that the rate gives may have been used lately.
            Self::Refused if super::qer::admits(state, packet) => Next::To(NodeId::Qer),
            Self::Refused => super::qer::refuse(state, packet, DropReason::RateExceeded),
        }
    }
}

/// Whether the packet's quota is used up and all has been told of that, so that no rule has anything else to say of it; of a flow that
/// waits, others may.
fn is_stopped<B: Buffer>(state: &mut State, packet: &Packet<B>, step: &HotStep) -> bool {
    if packet.meta.waits.is_some() {
        return false;
    }
    let counted = state.sessions.cells.rate_and_count(packet.meta.step, step, packet.meta.direction());
    counted.is_some_and(|(_, tally)| tally.is_used_up()) && !step.may_yield() && !step.stands_in()
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

/// A simple step, its rate and its count, the packet's way.
type Rules<'a> = (&'a HotStep, &'a mut Pace, &'a mut Tally);

/// As [`Ways::enforce`], of a step whose account is elsewhere.
#[inline(never)]
fn enforce_apart<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> End {
    let (ways, cells) = Ways::of(state);
    let step = *cells.step(packet.meta.step);
    match cells.rate_and_count(packet.meta.step, &step, packet.meta.direction()) {
        Some((pace, tally)) => ways.enforce(packet, (&step, pace, tally)),
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
        // Two copies, as in each much is known.
        match rules.0.kind {
            Kind::Plain => self.enforce_on(packet, rules, true),
            _ => self.enforce_on(packet, rules, false),
        }
    }

    /// One rate, one count, out.
    #[inline(always)]
    fn enforce_on<B: Buffer>(
        &self,
        packet: &mut Packet<B>,
        (step, pace, tally): Rules<'_>,
        plain: bool,
    ) -> End {
        if let Err(end) = self.admit(packet, (step, pace, tally.left()), plain) {
            return end;
        }
        if step.is_counted() {
            let (direction, bytes) = (packet.meta.direction(), packet.meta.bytes);
            packet.meta.receipt = Receipt::of_step(packet.meta.step, direction, bytes);
            tally.add(bytes.into(), self.now_ns);
        }
        self.leave_by(packet, step, plain)
    }

    /// What a packet has to pass before it is counted, where its count has so many bytes `left`.
    #[inline(always)]
    fn admit<B: Buffer>(
        &self,
        packet: &mut Packet<B>,
        (step, pace, left): (&HotStep, &mut Pace, u32),
        plain: bool,
    ) -> Result<(), End> {
        let bytes = u32::from(packet.meta.bytes);
        if step.is_counted() && left < bytes {
            return Err(End::Unsure);
        }
        super::far::route_usual(self.ports, packet, plain, step.fits).map_err(End::Stopped)?;
        if step.is_metered() && !pace.take(self.moment, bytes) {
            return Err(End::Refused);
        }
        Ok(())
    }

    #[inline(always)]
    fn leave_by<B: Buffer>(&self, packet: &mut Packet<B>, step: &HotStep, plain: bool) -> End {
        let left = if plain { self.leave(packet, step) } else { self.leave_in_tunnel(packet, step) };
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
        if marks.are_long() || !exit.holds(self.neighbours, self.now_ns) {
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
            (false, _) => {
                sessions.peers.note_exit(sessions.cells.step(packet.meta.step).peer, *now_ns, |way| {
                    let Template::V4(template) = &way.template else { return None };
                    let port = ports.get(way.next_hop.port);
                    Exit::new(known, (way.next_hop, port), |header| template.framed(header))
                })
            }
        }
    }
    end
}

#[inline(always)]
const fn destination(header: &[u8; ipv4::LENGTH]) -> u32 {
    u32::from_be_bytes([header[16], header[17], header[18], header[19]])
}

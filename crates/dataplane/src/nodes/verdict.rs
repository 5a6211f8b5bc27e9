//! Makes sure that what is known of a flow was said by the rules in force, and does the usual at once: one rate, one
//! count, forward, out. Whatever is not that simple goes the long way from `far` on, which comes to the same.

use super::{EthernetOutput, GtpuEncap, IpOutput, gtpu_encap};
use crate::counters::DropReason;
use crate::frame::{Fate, Packet, PortIndex};
use crate::graph::{Next, Node, NodeId};
use crate::receipt::Receipt;
use crate::state::{Exit, HotStep, Kind, State};
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
        let State { sessions, ports, moment, now_ns, .. } = state;
        let meta = &mut packet.meta;
        let (direction, bytes) = (meta.direction(), u32::from(meta.bytes));
        let step = *sessions.cells.step(meta.step);
        // The same addresses and ports may come in another tunnel, which is another PDR's, or nobody's.
        if step.generation != meta.generation || step.arrives_in != meta.teid {
            return Next::To(NodeId::Session);
        }
        if !step.is_simple() {
            return Next::To(NodeId::Far);
        }
        let Some((rate, count)) = sessions.cells.rate_and_count(meta.step, &step) else {
            return Next::To(NodeId::Far);
        };
        if step.is_counted() && count.left < bytes {
            return Next::To(NodeId::Far);
        }
        meta.towards = step.to();
        let plain = step.kind == Kind::Plain;
        if let Err(reason) = super::far::route(ports, packet, plain, step.fits) {
            return super::far::stop(packet, reason);
        }
        if step.is_metered() && !rate.take(direction, *moment, bytes) {
            return super::qer::refuse(state, packet, DropReason::RateExceeded);
        }
        if step.is_counted() {
            packet.meta.receipt = Receipt::of_step(packet.meta.step, direction, packet.meta.bytes);
            count.add(direction, bytes, *now_ns);
        }
        let left = if plain { leave(state, packet, &step) } else { leave_in_tunnel(state, packet, &step) };
        match left {
            Some(port) => Next::End(Fate::Send(port)),
            None => leave_anew(state, packet, plain),
        }
    }
}

/// Sends a plain packet as the one before it was; the port it leaves by, or `None` where somebody has to look closer.
#[inline(always)]
fn leave<B: Buffer>(state: &State, packet: &mut Packet<B>, step: &HotStep) -> Option<PortIndex> {
    let header: &[u8; ipv4::LENGTH] = packet.buffer.data().first_chunk()?;
    let exit = state.routes.exit(packet.meta.towards, destination(header))?;
    let usual = header[0] >> 4 == 4
        && step.dscp().is_none()
        && packet.meta.bytes <= exit.mtu
        && exit.holds(&state.neighbours, state.now_ns);
    if !usual {
        return None;
    }
    let header = packet.buffer.prepend(ethernet::LENGTH)?.first_chunk_mut::<{ ethernet::LENGTH }>()?;
    header.copy_from_slice(exit.headers.as_bytes());
    Some(exit.port)
}

/// The same into a tunnel.
#[inline(always)]
fn leave_in_tunnel<B: Buffer>(state: &State, packet: &mut Packet<B>, step: &HotStep) -> Option<PortIndex> {
    let exit = state.sessions.peers.exit(step.peer)?;
    if !exit.holds(&state.neighbours, state.now_ns) {
        return None;
    }
    let tunnel = gtpu_encap::tunnel(step, &packet.meta);
    exit.headers.encapsulate(&mut packet.buffer, tunnel, exit.mtu).map(|()| exit.port)
}

/// Sends a packet by the nodes that know all there is to know, and notes how, for those that follow.
#[cold]
#[inline(never)]
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

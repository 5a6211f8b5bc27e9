//! Does what the FAR and the gates say (TS 29.244 5.2.3 and 5.4.3).

use super::{Qer, Urr, at_once};
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet};
use crate::graph::{Next, Node, NodeId, Run};
use crate::state::{HotStep, Kind, Ports, State, Ticket};
use packet::{Buffer, ipv4, ipv6, protocol};
use rules::Direction;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) struct Far;

impl<B: Buffer> Node<B> for Far {
    const ID: NodeId = NodeId::Far;

    #[inline]
    fn ahead(state: &State, packet: &mut Packet<B>) {
        state.sessions.cells.prefetch_accounts(packet.meta.step, packet.meta.direction());
    }

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        if packet.meta.waits.is_some()
            && let Some(next) = super::handshake::lead(state, packet)
        {
            return next;
        }
        substitute(state, packet);
        let step = state.sessions.cells.step(packet.meta.step);
        packet.meta.towards = step.to();
        // Of what is kept, too, as it comes: it may be given up, and whoever has the copies does not sleep (TS 29.244 8.2.26).
        if step.has_duplicates() && !packet.meta.copied && step.copies() {
            return Next::End(Fate::Duplicate);
        }
        let plain = match step.kind {
            Kind::Tunnel => false,
            Kind::Plain => true,
            Kind::Enrich => !step.tunnels(),
            Kind::Drop | Kind::DropAndNotify => {
                if step.minds_drops() && packet.meta.direction() == Direction::Downlink {
                    state.count_dropped(packet.meta.step, packet.meta.bytes.into());
                }
                return Next::drop(DropReason::FarDrop);
            }
            Kind::GateClosed => return super::qer::refuse(state, packet, DropReason::GateClosed),
            Kind::Redirect | Kind::Reset => return Next::To(NodeId::Redirect),
            Kind::Keep | Kind::KeepAndNotify => {
                // It will be looked at again.
                packet.meta.waits = Ticket::NONE;
                return Next::End(Fate::Keep);
            }
        };
        match route(&state.ports, packet, plain, step.fits) {
            Ok(()) => Next::To(routed(step, packet.meta.waits.is_some())),
            Err(reason) => stop(packet, reason),
        }
    }

    /// What is simple is done at once, unless somebody wants to see every node's part in it.
    #[inline]
    fn pass(run: &mut Run<'_, B>, place: u8) -> Next {
        let is_watched = run.trace.is_some();
        let packet = &mut run.packets[usize::from(place)];
        let done = if is_watched { None } else { at_once::finish(run.state, packet) };
        done.unwrap_or_else(|| {
            let next = run.process::<Self>(place);
            count_at_once(run, place, next)
        })
    }
}

/// Where another FAR may stand in for the time after a quota, or does, a packet is counted before the next one is asked which it goes by:
/// of those that come together, one may use the quota up. The fragments of one packet go by the same.
#[inline]
fn count_at_once<B: Buffer>(run: &mut Run<'_, B>, place: u8, next: Next) -> Next {
    let Meta { step, fate, .. } = run.packets[usize::from(place)].meta;
    let is_counted = matches!(next, Next::To(NodeId::Qer | NodeId::Urr)) && fate != Fate::Split;
    if !is_counted || !run.state.sessions.cells.step(step).is_of_a_quota_far() {
        return next;
    }
    let next = if next == Next::To(NodeId::Qer) { run.process_at_once::<Qer>(place) } else { next };
    if next == Next::To(NodeId::Urr) { run.process_at_once::<Urr>(place) } else { next }
}

/// Once a quota is used up, another FAR may stand in for the PDR's own.
#[inline]
pub(super) fn substitute<B: Buffer>(state: &mut State, packet: &mut Packet<B>) {
    let (at, used) = (packet.meta.step, (packet.meta.direction(), u32::from(packet.meta.bytes)));
    if state.sessions.cells.step(at).may_yield()
        && !state.has_plenty((&state.sessions.cells.whole(at), at), used)
    {
        packet.meta.step = state.beyond_quota(at).unwrap_or(at);
    }
}

/// Where a packet goes that has been routed.
#[inline]
pub(super) fn routed(step: &HotStep, waits: bool) -> NodeId {
    if step.may_readdress() { NodeId::Readdress } else { addressed(step, waits) }
}

/// Where a packet goes whose addresses are those it leaves with.
#[inline]
pub(super) fn addressed(step: &HotStep, waits: bool) -> NodeId {
    if step.kind == Kind::Enrich { NodeId::Enrich } else { onward(step, waits) }
}

/// Where a packet goes that the FAR forwards. One that waits may be counted by rules that are not known yet.
#[inline]
pub(super) fn onward(step: &HotStep, waits: bool) -> NodeId {
    match (step.is_metered(), step.is_counted() || waits, step.tunnels()) {
        (true, _, _) => NodeId::Qer,
        (false, true, _) => NodeId::Urr,
        (false, false, true) => NodeId::GtpuEncap,
        (false, false, false) => NodeId::IpOutput,
    }
}

/// Where a packet goes that [`route`] stops: its sender may want to hear of it.
#[cold]
pub(super) fn stop<B: Buffer>(packet: &mut Packet<B>, reason: DropReason) -> Next {
    packet.meta.fate = Fate::Drop(reason);
    match reason {
        DropReason::MtuExceeded => Next::To(NodeId::PathMtu),
        DropReason::TtlExpired => Next::To(NodeId::IcmpError),
        _ => Next::drop(reason),
    }
}

/// Between a tunnel and a plain network we are a router and take a hop off; from tunnel to tunnel we are not. Packets of
/// more than `fits` bytes may be too long for their way.
pub(super) fn route<B: Buffer>(
    ports: &Ports,
    packet: &mut Packet<B>,
    plain: bool,
    fits: u16,
) -> Result<(), DropReason> {
    if packet.meta.tunnelled() && !plain {
        return Ok(());
    }
    let data = packet.buffer.data_mut();
    let is_ipv6 = is_ipv6(data);
    if plain {
        may_leave(ports, data, is_ipv6)?;
    }
    if packet.meta.bytes > fits {
        return Err(DropReason::MtuExceeded);
    }
    take_hop(data, is_ipv6)?;
    if let Some(mtu) = ports.clamp_mtu() {
        super::clamp::clamp(data, mtu);
    }
    Ok(())
}

/// As [`route`], of packets that are of IPv4, mostly.
#[inline(always)]
pub(super) fn route_usual<B: Buffer>(
    ports: &Ports,
    packet: &mut Packet<B>,
    plain: bool,
    fits: u16,
) -> Result<(), DropReason> {
    if packet.meta.tunnelled() && !plain {
        return Ok(());
    }
    let bytes = packet.meta.bytes;
    let header = packet.buffer.data_mut().first_chunk_mut::<{ ipv4::LENGTH }>();
    let Some(header) = header.filter(|header| header[0] >> 4 == 4 && ports.clamp_mtu().is_none()) else {
        return route(ports, packet, plain, fits);
    };
    if plain {
        may_leave(ports, header, false)?;
    }
    if bytes > fits {
        return Err(DropReason::MtuExceeded);
    }
    take_hop(header, false)
}

/// Does to a plain packet that no step leads what [`route`] does to others.
pub(crate) fn route_plain<B: Buffer>(ports: &Ports, buffer: &mut B) -> Result<(), DropReason> {
    let data = buffer.data_mut();
    let is_ipv6 = is_ipv6(data);
    may_leave(ports, data, is_ipv6)?;
    take_hop(data, is_ipv6)
}

/// Whether a packet outside tunnels is for somebody else, beyond this link.
#[inline(always)]
pub(crate) fn may_leave(ports: &Ports, data: &[u8], is_ipv6: bool) -> Result<(), DropReason> {
    if is_to_us(ports, data, is_ipv6) {
        return Err(DropReason::ToOurselves);
    }
    if is_of_link(data, is_ipv6) {
        return Err(DropReason::IpNotForUs);
    }
    Ok(())
}

#[inline]
fn is_ipv6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6)
}

#[inline]
fn take_hop(data: &mut [u8], is_ipv6: bool) -> Result<(), DropReason> {
    let one_less = if is_ipv6 { ipv6::decrement_hop_limit(data) } else { ipv4::decrement_ttl(data) };
    one_less.ok_or(DropReason::TtlExpired)
}

#[inline(always)]
fn is_to_us(ports: &Ports, packet: &[u8], is_ipv6: bool) -> bool {
    match packet.get(16..20).and_then(|octets| octets.first_chunk()) {
        Some(address) if !is_ipv6 => ports.is_ours_ipv4(*address),
        _ => is_destination_ours(ports, packet),
    }
}

#[inline(never)]
fn is_destination_ours(ports: &Ports, packet: &[u8]) -> bool {
    super::destination(packet).is_none_or(|to| ports.is_ours(to))
}

/// Whether a packet is for whom no router forwards: of IPv6 see [`is_of_no_network`], of IPv4 this host, a group or everybody
/// (RFC 1812 4.2.2.11 and 5.3.7; we know no multicast).
#[inline]
fn is_of_link(packet: &[u8], is_ipv6: bool) -> bool {
    if !is_ipv6 {
        return matches!(packet.get(16), Some(0 | 127 | 224..));
    }
    packet.get(24..).and_then(<[u8]>::first_chunk).is_some_and(is_of_no_network)
}

/// Whether no router forwards what came outside tunnels, as its source is no sender's address: of IPv6 see [`is_of_no_network`], of
/// IPv4 this host, a group or everybody (RFC 1812 5.3.7), and of both our own. We ourselves send users nothing but ICMP that way:
/// what one user hears of a packet to another, whom the network led back to us. What is `carried` is that behind all headers of IPv6,
/// as the packet's flow has it: of one flow, all packets go the same way.
pub(crate) fn is_from_nobody(ports: &Ports, packet: &[u8], carried: u8) -> bool {
    let octets = |from, to| packet.get(from..to).unwrap_or_default();
    let (source, icmp) = match is_ipv6(packet) {
        true => (octets(8, 24), protocol::ICMPV6),
        false => (octets(12, 16), protocol::ICMP),
    };
    let is_ours = |source: IpAddr| ports.is_ours(source) && carried != icmp;
    match (source.first_chunk::<16>(), source.first_chunk::<4>()) {
        (Some(source), _) => is_of_no_network(source) || is_ours(Ipv6Addr::from_octets(*source).into()),
        (None, Some([0 | 127 | 224.., ..])) => true,
        (None, Some(source)) => is_ours(Ipv4Addr::from_octets(*source).into()),
        (None, None) => true,
    }
}

/// Whether no router forwards to an address of IPv6: a station of its own link (RFC 4291 2.5.6), a group of whatever scope (2.7; we
/// know no multicast), nobody and this host (2.5.2, 2.5.3), and what stands for an address of IPv4 (2.5.5), which is no network's.
fn is_of_no_network(address: &[u8; 16]) -> bool {
    match address {
        [0xfe, second, ..] => second & 0xc0 == 0x80,
        [0xff, ..] => true,
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, middle @ .., _, _, _, _] => matches!(middle, [0, 0] | [0xff, 0xff]),
        _ => false,
    }
}

//! Tells an IPv6 user its session's prefix, when its device asks for routers (TS 23.501 5.8.2.2.2, RFC 4861 6.2.6).

use super::answer::replace;
use super::icmp_error::LEAST_MTU6;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Kind, Session, State, StepIndex, link_local};
use packet::five_tuple::FiveTuple;
use packet::ndp::{ALL_NODES, Message, Prefix, RouterAdvertisement};
use packet::{Buffer, ipv6, protocol};
use rules::{Application, Arrival, Interface};
use std::net::Ipv6Addr;

/// ICMPv6 type (RFC 4861 4.1).
const ROUTER_SOLICITATION: u8 = 133;
/// Bytes of our advertisement: IPv6, the message, MTU, prefix.
const ADVERTISEMENT: usize = ipv6::LENGTH + 16 + 8 + 32;
/// As long as may be said (RFC 4861 4.2): the session ends, and not its router.
const LIFETIME_S: u16 = u16::MAX;
const HOPS: u8 = 64;
/// Any router's address on a link is in this network (RFC 4291 2.5.6).
const LINK_LOCAL: u128 = 0xfe80 << 112 | 1;

pub(crate) struct RouterSolicitation;

impl<B: Buffer> Node<B> for RouterSolicitation {
    const ID: NodeId = NodeId::RouterSolicitation;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(asker) = asker(packet.buffer.data()) else { return Next::drop(DropReason::NdpMalformed) };
        let Some(step) = to_user(state, &packet.meta) else { return Next::drop(DropReason::NdpNotForUs) };
        packet.meta.step = step;
        match state.sessions.cells.step(step).kind {
            // The station's tunnel is not known yet, or the user sleeps: the question waits, and is answered when he is reached.
            Kind::Keep | Kind::KeepAndNotify => return Next::End(Fate::Keep),
            Kind::Drop | Kind::DropAndNotify => return Next::drop(DropReason::FarDrop),
            _ => {}
        }
        match answer(state, packet, asker) {
            Some(()) => Next::To(NodeId::GtpuEncap),
            None => Next::drop(DropReason::NdpNotForUs),
        }
    }
}

/// Whether a user's packet is for its router, and its session has a prefix to tell.
pub(super) fn is_for_us<B: Buffer>(packet: &Packet<B>, tuple: &FiveTuple, session: &Session) -> bool {
    let is_multicast = tuple.destination >> 120 == 0xff;
    packet.meta.tunnelled()
        && tuple.version == 6
        && tuple.protocol == protocol::ICMPV6
        && is_multicast
        && packet.buffer.data().get(ipv6::LENGTH) == Some(&ROUTER_SOLICITATION)
        && prefix(session).is_some()
}

/// Of IPv6, a user's key is the prefix. To one that has a single address in it the others are not told: no rule would match
/// what it makes of them.
fn prefix(session: &Session) -> Option<Ipv6Addr> {
    if !session.has_prefix {
        return None;
    }
    let prefixes = session.keys.iter().filter_map(|key| key.user().filter(|user| user >> 32 != 0));
    prefixes.map(|prefix| Ipv6Addr::from_bits(u128::from(prefix) << 64)).next()
}

fn asker(packet: &[u8]) -> Option<Ipv6Addr> {
    let ip = ipv6::Packet::parse(packet).ok()?;
    let message = Message::parse(&ip).ok()?;
    matches!(message, Message::RouterSolicitation { .. }).then_some(ip.source())
}

/// `None` where there is no room for it.
fn answer<B: Buffer>(state: &State, packet: &mut Packet<B>, asker: Ipv6Addr) -> Option<()> {
    let (session, step) = (state.sessions.get(packet.meta.session)?, packet.meta.step);
    // Where the tunnel has less, its datagrams are split.
    let mtu =
        Some(state.sessions.cells.step(step).fits).filter(|mtu| *mtu > 0).map(|mtu| mtu.max(LEAST_MTU6));
    let message = Message::RouterAdvertisement(RouterAdvertisement {
        hop_limit: HOPS,
        lifetime_s: LIFETIME_S,
        mtu: mtu.map(u32::from),
        prefix: Some(told(prefix(session)?)),
        ..RouterAdvertisement::default()
    });
    let us = link_local(state.ports.get(packet.meta.port).mac);
    let to = if asker.is_unspecified() { ALL_NODES } else { asker };
    let mut bytes = [0; ADVERTISEMENT];
    let length = message.write(us, to, &mut bytes)?;
    replace(&mut packet.buffer, bytes.get(..length)?)?;
    packet.meta = Meta { step, ..Meta::new(packet.meta.port, packet.meta.side()) };
    Some(())
}

/// The user makes its address of the prefix, and nobody else is on its link (TS 29.061 11.2.1.3.2a).
const fn told(address: Ipv6Addr) -> Prefix {
    let (valid_s, preferred_s) = (u32::MAX, u32::MAX);
    Prefix { address, length: 64, on_link: false, autonomous: true, valid_s, preferred_s }
}

/// The rule by which the answer goes: the one that a packet of ICMPv6 for the user from his network would meet, so that the answer is
/// in the bearer or QoS flow of such; where that is none, the first that puts packets into a tunnel to where he asked from.
fn to_user(state: &State, meta: &Meta) -> Option<StepIndex> {
    let session = state.sessions.get(meta.session)?;
    let cells = &state.sessions.cells;
    let keeps = |kind| matches!(kind, Kind::Keep | Kind::KeepAndNotify | Kind::Drop | Kind::DropAndNotify);
    let met = downlink(session).and_then(|arrival| session.find(&arrival));
    met.filter(|step| keeps(cells.step(*step).kind) || leads_to(state, *step, meta.source))
        .or_else(|| session.steps().find(|step| leads_to(state, *step, meta.source)))
}

/// The answer as a packet that came for the user, as classifiers see it.
fn downlink(session: &Session) -> Option<Arrival> {
    Some(Arrival {
        source: Interface::Core,
        instance: session.instance(),
        teid: None,
        qfi: None,
        ue: prefix(session)?.into(),
        remote: Ipv6Addr::from_bits(LINK_LOCAL).into(),
        protocol: protocol::ICMPV6,
        ue_port: None,
        remote_port: None,
        traffic_class: 0,
        spi: None,
        flow_label: Some(0),
        application: Application::None,
    })
}

/// Whether a step puts packets into a tunnel to this side, and a route leads to the tunnel's other end.
pub(super) fn leads_to(state: &State, step: StepIndex, side: Interface) -> bool {
    let step = state.sessions.cells.step(step);
    step.leads_to(side) == Some(true) && state.sessions.peers.way(step.peer).is_some()
}

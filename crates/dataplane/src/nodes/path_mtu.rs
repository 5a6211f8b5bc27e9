//! Looks closely at packets that may be too long for their way: those that fit after all go on, those that may be split
//! are, and the senders of the others are told what would pass (RFC 1191, RFC 8201).

use super::icmp_error::LEAST_MTU6;
use super::ip_output::led_by;
use super::{ethertype, far};
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{State, Steered};
use packet::fragment::Split;
use packet::{Buffer, ethernet, udp_ip};
use rules::Direction;
use std::net::IpAddr;

pub(crate) struct PathMtu;

impl<B: Buffer> Node<B> for PathMtu {
    const ID: NodeId = NodeId::PathMtu;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        // What has no way is counted as what has one, and ends where a shorter packet does.
        let mtu = path_mtu(state, packet).unwrap_or(u16::MAX);
        if packet.meta.bytes > mtu && is_last_hop(packet.buffer.data()) {
            return far::stop(packet, DropReason::TtlExpired);
        }
        if packet.meta.bytes > mtu {
            return match Split::plan(packet.buffer.data(), mtu.into()) {
                Ok(_) => Next::End(Fate::Split),
                Err(_) => Next::To(NodeId::IcmpError),
            };
        }
        let step = *state.sessions.cells.step(packet.meta.step);
        match far::route(&state.ports, packet, !step.tunnels(), u16::MAX) {
            Ok(()) => Next::To(far::routed(&step, packet.meta.waits.is_some())),
            Err(reason) => far::stop(packet, reason),
        }
    }
}

/// Nothing is split that has no hop left: its parts would all be dropped, and each but the first in silence.
fn is_last_hop(packet: &[u8]) -> bool {
    let place = if ethertype(packet) == ethernet::IPV6 { 7 } else { 8 };
    packet.get(place).is_none_or(|hops| *hops <= 1)
}

/// Bytes of the longest user's packet that the way of this one takes; `None` where there is no way. Every link of IPv6 takes those of
/// 1,280 (RFC 8200 5), and a tunnel is one: where it has less, its datagrams are split (RFC 2473 7.1).
pub(crate) fn path_mtu<B: Buffer>(state: &State, packet: &Packet<B>) -> Option<u16> {
    let Meta { step, towards, .. } = packet.meta;
    let step = state.sessions.cells.step(step);
    let (mtu, headers) = match step.tunnels() {
        true => {
            let way = state.sessions.peers.way(step.peer)?;
            let headers = match step.is_udp() {
                true => udp_ip::length(way.ends.1),
                false => way.template.length() + step.container_length(),
            };
            (way.mtu, headers)
        }
        false => {
            let led = step.policy().map_or(Steered::ByRoutes, |policy| led_by(state, policy, packet));
            let next_hop = match led {
                Steered::ByRoutes => state.routes.find(towards, leaves_for(state, packet)?)?,
                Steered::To(next_hop) => next_hop,
                Steered::Nowhere => return None,
            };
            (state.ports.get(next_hop.port).mtu, 0)
        }
    };
    let room = mtu.checked_sub(headers as u16)?;
    let is_link = step.tunnels() && ethertype(packet.buffer.data()) == ethernet::IPV6;
    Some(if is_link { room.max(LEAST_MTU6) } else { room })
}

/// Where a plain packet goes in the end: `readdress` comes later.
fn leaves_for<B: Buffer>(state: &State, packet: &Packet<B>) -> Option<IpAddr> {
    let destination = super::destination(packet.buffer.data())?;
    let is_up = packet.meta.direction() == Direction::Uplink;
    let elsewhere = is_up.then(|| state.readdress(packet.meta.step)).flatten();
    Some(elsewhere.and_then(|to| to.like(destination)).unwrap_or(destination))
}

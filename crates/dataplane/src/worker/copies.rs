//! Copies of users' packets that a FAR asks for besides (TS 29.244 5.2.3, DUPL): made of the packet as it came, before
//! anything is changed, and each sent to a place of its own.

use super::Worker;
use crate::config::side_of_peer;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, NextHop, Packet, Part};
use crate::nodes;
use crate::port::Port;
use crate::side::Side;
use crate::state::{State, Steered};
use arrayvec::ArrayVec;
use packet::gtpu::{PduSession, Tunnel};
use packet::{Buffer, ethernet, ipv4, ipv6, udp_ip};
use rules::{Direction, Forward, OuterHeader, Qfi, limits};
use std::net::SocketAddr;

/// Bits of ECN, below DSCP.
const ECN_BITS: u32 = 2;

impl<P: Port> Worker<P> {
    /// Makes the copies of a packet; then it goes on itself.
    pub(super) fn duplicate(&mut self, mut packet: Packet<P::Buffer>) {
        for forward in self.copies_of(&packet.meta) {
            self.counters.created += 1;
            match self.copy(&packet, forward) {
                Some(copy) => self.rest.copies.push(copy),
                None => self.lose_copy(&packet.meta),
            }
        }
        packet.meta.copied = true;
        self.rest.copied.push(packet);
    }

    /// Lets a packet be answered for its user, and for the server, by a copy.
    pub(super) fn answer(&mut self, mut packet: Packet<P::Buffer>) {
        self.counters.created += 1;
        packet.meta.marks = packet.meta.marks.relaying(false);
        match self.copy_whole(&packet) {
            Some(buffer) => {
                let meta = Meta { part: Part::ForServer, ..packet.meta };
                self.rest.answered.push(Packet { buffer, meta });
            }
            None => self.lose_copy(&packet.meta),
        }
        packet.meta.part = Part::ForUser;
        self.rest.answered.push(packet);
    }

    fn lose_copy(&mut self, meta: &Meta) {
        self.counters.count_drops(DropReason::NotCopied, 1);
        self.note_part(meta, Fate::Drop(DropReason::NotCopied));
    }

    fn copy_whole(&mut self, packet: &Packet<P::Buffer>) -> Option<P::Buffer> {
        let original = packet.buffer.data();
        let mut buffer = self.lanes.first_mut()?.port.allocate()?;
        buffer.append(original.len())?.copy_from_slice(original);
        Some(buffer)
    }

    fn copies_of(&self, meta: &Meta) -> ArrayVec<Forward, { limits::DUPLICATES }> {
        let forwards = self.state.extra(meta.step).map(|extra| &*extra.duplicates);
        forwards.unwrap_or_default().iter().take(limits::DUPLICATES).copied().collect()
    }

    /// `None` without memory, or a way.
    fn copy(&mut self, packet: &Packet<P::Buffer>, forward: Forward) -> Option<Packet<P::Buffer>> {
        let mut buffer = self.copy_whole(packet)?;
        let Meta { loops, generation, .. } = packet.meta;
        let mut meta = Meta { loops, generation, ..Meta::new(packet.meta.port, packet.meta.side()) };
        meta.next_hop = send_off(&self.state, &mut buffer, forward)?;
        Some(Packet { buffer, meta })
    }
}

/// Puts a copy into its tunnel, if it has one; returns where it goes.
fn send_off<B: Buffer>(state: &State, buffer: &mut B, forward: Forward) -> Option<NextHop> {
    let side = Side::new(forward.to, forward.instance);
    let Some(tunnel) = forward.encapsulation else {
        // As a router we take a hop off, or a copy that comes back is copied for ever.
        nodes::route_plain(&state.ports, buffer).ok()?;
        let is_ipv6 = nodes::ethertype(buffer.data()) == ethernet::IPV6;
        let steered = forward.policy.and_then(|policy| state.policies.find(policy, is_ipv6));
        let (led, dscp) = steered.unwrap_or((Steered::ByRoutes, None));
        if let Some(dscp) = forward.dscp.or(dscp) {
            let data = buffer.data_mut();
            if is_ipv6 { ipv6::set_dscp(data, dscp) } else { ipv4::set_dscp(data, dscp) }?;
        }
        return match led {
            Steered::ByRoutes => state.routes.find(side, nodes::destination(buffer.data())?),
            Steered::To(next_hop) => Some(next_hop),
            Steered::Nowhere => None,
        };
    };
    let side = side_of_peer(state.ports.all(), side, tunnel.peer);
    let way = State::way(&state.ports, &state.routes, (side, tunnel.peer))?;
    let tos = forward.dscp.unwrap_or_default() << ECN_BITS;
    let teid = match tunnel.header {
        OuterHeader::Gtpu(teid) => teid.0,
        // What is of a user must not be read as this node's own.
        OuterHeader::Udp(_) if way.comes_back() => return None,
        OuterHeader::Udp(port) => {
            let to = SocketAddr::new(tunnel.peer, port);
            return udp_ip::encapsulate(buffer, way.ends.0, to, tos).map(|()| way.next_hop);
        }
    };
    let pdu_session = tunnel.qfi.map(Qfi::value).map(|qfi| match forward.to.direction() {
        Direction::Uplink => PduSession { reflective: tunnel.reflective, ..PduSession::downlink(qfi) },
        Direction::Downlink => PduSession::uplink(qfi),
    });
    way.template.encapsulate_into(buffer, Tunnel { teid, pdu_session, tos })?;
    Some(way.next_hop)
}

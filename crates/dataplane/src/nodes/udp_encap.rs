//! Puts a packet behind a UDP/IP header, with no GTP-U in between (TS 29.244 8.2.56, TS 29.561 9.2).

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::{Buffer, udp_ip};
use std::net::SocketAddr;

pub(crate) struct UdpEncap;

/// Bits of ECN, below DSCP.
const ECN_BITS: u32 = 2;

impl<B: Buffer> Node<B> for UdpEncap {
    const ID: NodeId = NodeId::UdpEncap;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let step = state.sessions.cells.step(packet.meta.step);
        let Some(way) = state.sessions.peers.way(step.peer) else {
            return Next::drop(DropReason::NoRoute);
        };
        // It would come back and be read as this node's own: what a user sends must not be that.
        if way.comes_back() {
            return Next::drop(DropReason::ToOurselves);
        }
        packet.meta.next_hop = way.next_hop;
        let (ours, peer) = way.ends;
        let to = SocketAddr::new(peer, step.teid as u16);
        let tos = step.dscp().unwrap_or_default() << ECN_BITS;
        match udp_ip::encapsulate(&mut packet.buffer, ours, to, tos) {
            Some(()) => Next::To(NodeId::EthernetOutput),
            None => Next::drop(DropReason::NoHeadroom),
        }
    }
}

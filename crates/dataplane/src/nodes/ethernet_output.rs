//! Puts the Ethernet header on, once the next hop's address is known. What is for an address of our own does not leave: a
//! tunnel whose other end is ours, too, as between SGW-U and PGW-U of one user in one node.

use super::answer::ends;
use super::push_ethernet;
use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Lookup, State};
use packet::{Buffer, ethernet};

pub(crate) struct EthernetOutput;

/// A packet comes back no more often: from one gateway to a second, and from there to a third.
const LOOPS_MAX: u8 = 2;

impl<B: Buffer> Node<B> for EthernetOutput {
    const ID: NodeId = NodeId::EthernetOutput;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let next_hop = packet.meta.next_hop;
        if state.ports.is_own(next_hop) {
            return come_back(state, packet);
        }
        let port = state.ports.get(next_hop.port);
        if packet.buffer.data().len() > usize::from(port.mtu) || is_narrow(state, packet) {
            return too_long(state, packet);
        }
        let mac = match state.neighbours.find(next_hop, state.now_ns) {
            Lookup::Known(mac) => mac,
            Lookup::Asked => return Next::End(Fate::Hold),
            Lookup::Full => return Next::drop(DropReason::NeighbourUnresolved),
        };
        let header = ethernet::Header::new(mac, port.mac, super::ethertype(packet.buffer.data()));
        match push_ethernet(&mut packet.buffer, header) {
            Some(()) => Next::End(Fate::Send(next_hop.port)),
            None => Next::drop(DropReason::NoHeadroom),
        }
    }
}

/// No wire has to be passed, so no MTU counts. Two gateways may stand between a user and the data network; rules that lead
/// from tunnel to tunnel for ever are not what anybody means.
#[cold]
fn come_back<B: Buffer>(state: &State, packet: &mut Packet<B>) -> Next {
    let (port, loops) = (packet.meta.next_hop.port, packet.meta.loops);
    if loops >= LOOPS_MAX {
        return Next::drop(DropReason::Looped);
    }
    let ours = state.ports.get(port).mac;
    let header = ethernet::Header::new(ours, ours, super::ethertype(packet.buffer.data()));
    match push_ethernet(&mut packet.buffer, header) {
        Some(()) => Next::End(Fate::Loop(port)),
        None => Next::drop(DropReason::NoHeadroom),
    }
}

/// Whether a datagram of ours is longer than what passes on its way, as routers there have said.
#[inline]
fn is_narrow<B: Buffer>(state: &State, packet: &Packet<B>) -> bool {
    let data = packet.buffer.data();
    let is_longer = |to| data.len() > usize::from(state.passes(packet.meta.next_hop.port, to));
    state.sessions.peers.are_any_narrow()
        && ends(data).is_some_and(|(source, to)| is_longer(to) && state.ports.is_ours(source))
}

/// From tunnel to tunnel we are no hop of the user's, who cannot be told what would pass, and frames have nobody to tell: what
/// they are in is our own datagram, which is split, for the tunnel's other end to put together (TS 23.501 annex J, RFC 4459
/// 3.1). So is any that is too long for a link behind our own. Others have been seen to in `path_mtu`.
#[cold]
fn too_long<B: Buffer>(state: &State, packet: &Packet<B>) -> Next {
    match ends(packet.buffer.data()) {
        Some((source, _)) if state.ports.is_ours(source) => Next::End(Fate::SplitTunnel),
        _ => Next::drop(DropReason::MtuExceeded),
    }
}

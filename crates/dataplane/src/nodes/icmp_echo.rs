//! Answers pings to our addresses (RFC 792), and hears of what is too long on the way to a peer (RFC 1191).

use super::punt::{heard, unspoken};
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::icmp::{self, NoReply};
use packet::quoted::Quoted;
use packet::{Buffer, ipv4, protocol};
use std::net::IpAddr;

pub(crate) struct IcmpEcho;

impl<B: Buffer> Node<B> for IcmpEcho {
    const ID: NodeId = NodeId::IcmpEcho;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let bytes = packet.buffer.data_mut();
        let message = bytes.get_mut(usize::from(packet.meta.header_length)..).unwrap_or_default();
        match icmp::reply_to_echo(message) {
            Err(NoReply::Malformed) => return Next::drop(DropReason::IcmpMalformed),
            Err(NoReply::NotEchoRequest) => return hear_error(state, packet),
            Ok(()) => {}
        }
        match ipv4::reverse(bytes) {
            Some(()) => Next::To(NodeId::IpOutput),
            None => Next::drop(DropReason::Ip4Truncated),
        }
    }
}

/// A router may say that a datagram of ours to a peer was too long, of either IP version (RFC 8201 4). What else there is, nobody here
/// has asked for.
pub(super) fn hear_error<B: Buffer>(state: &mut State, packet: &Packet<B>) -> Next {
    match too_long(state, packet.buffer.data()) {
        Some((peer, mtu)) => {
            state.told_too_long(peer, mtu);
            heard(state, packet)
        }
        None => unspoken(state, packet, DropReason::IcmpNotEcho),
    }
}

/// To whom a tunnel's datagram was that is quoted, and how much passes on its way.
fn too_long(state: &State, packet: &[u8]) -> Option<(IpAddr, u16)> {
    let quoted = Quoted::of(packet)?;
    let flow = quoted.flow();
    let is_ours = flow.protocol == protocol::UDP && state.ports.is_ours(flow.source_address());
    Some((flow.destination_address(), quoted.fits(packet).filter(|_| is_ours)?))
}

//! Answers pings to our addresses (RFC 792).

use super::punt::unspoken;
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::icmp::{self, NoReply};
use packet::{Buffer, ipv4};

pub(crate) struct IcmpEcho;

impl<B: Buffer> Node<B> for IcmpEcho {
    const ID: NodeId = NodeId::IcmpEcho;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let bytes = packet.buffer.data_mut();
        let message = bytes.get_mut(usize::from(packet.meta.header_length)..).unwrap_or_default();
        match icmp::reply_to_echo(message) {
            Err(NoReply::Malformed) => return Next::drop(DropReason::IcmpMalformed),
            Err(NoReply::NotEchoRequest) => return unspoken(state, packet, DropReason::IcmpNotEcho),
            Ok(()) => {}
        }
        match ipv4::reverse(bytes) {
            Some(()) => Next::To(NodeId::IpOutput),
            None => Next::drop(DropReason::Ip4Truncated),
        }
    }
}

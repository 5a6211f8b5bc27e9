//! Checks IPv6 headers and tells packets to us from packets to users.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::{Buffer, ipv6, protocol};

pub(crate) struct Ip6Input;

impl<B: Buffer> Node<B> for Ip6Input {
    const ID: NodeId = NodeId::Ip6Input;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let ip = match ipv6::Packet::parse(packet.buffer.data()) {
            Ok(ip) => ip,
            Err(fault) => return Next::drop(fault.into()),
        };
        let (destination, length) = (ip.destination(), ip.total_length());
        let port = state.ports.get(packet.meta.port);
        if port.address6.is_none_or(|ours| ours.addr() != destination) {
            let next = super::to_a_user(port.interface);
            return packet.buffer.truncate(length).map_or(Next::drop(DropReason::Ip6Truncated), |()| next);
        }
        let upper = match ip.upper() {
            Ok(upper) => upper,
            Err(fault) => return Next::drop(fault.into()),
        };
        let Ok(header_length) = u8::try_from(upper.offset) else {
            return Next::drop(DropReason::Ip6Extension);
        };
        packet.meta.header_length = header_length;
        if packet.buffer.truncate(length).is_none() {
            return Next::drop(DropReason::Ip6Truncated);
        }
        match upper.protocol {
            _ if upper.is_fragment() => Next::drop(DropReason::Ip6Fragment),
            protocol::UDP => Next::To(NodeId::GtpuInput),
            _ => Next::drop(DropReason::NoListener),
        }
    }
}

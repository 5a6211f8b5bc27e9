//! Checks IPv4 headers and tells packets to us from packets to users.

use super::punt::unspoken;
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::{Buffer, ipv4};

pub(crate) struct Ip4Input;

impl<B: Buffer> Node<B> for Ip4Input {
    const ID: NodeId = NodeId::Ip4Input;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let ip = match ipv4::Packet::parse(packet.buffer.data()) {
            Ok(ip) => ip,
            Err(fault) => return Next::drop(fault.into()),
        };
        packet.meta.header_length = ip.header_length() as u8;
        let (fragment, protocol, length) = (ip.is_fragment(), ip.protocol(), ip.total_length());
        let destination = ip.destination();
        // Short frames are padded; what is behind the packet is not part of it.
        if packet.buffer.truncate(length).is_none() {
            return Next::drop(DropReason::Ip4Truncated);
        }
        let port = state.ports.get(packet.meta.port);
        match destination == port.address.addr() {
            true if fragment && protocol == ipv4::UDP => Next::To(NodeId::Reassembly),
            true if fragment => unspoken(state, packet, DropReason::Ip4Fragment),
            true => to_us(state, packet, protocol),
            false => super::to_a_user(port.interface),
        }
    }
}

fn to_us<B: Buffer>(state: &State, packet: &Packet<B>, protocol: u8) -> Next {
    match protocol {
        ipv4::UDP => Next::To(NodeId::GtpuInput),
        ipv4::ICMP => Next::To(NodeId::IcmpEcho),
        _ => unspoken(state, packet, DropReason::NoListener),
    }
}

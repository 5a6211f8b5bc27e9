//! Takes the Ethernet header off frames that are for us.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::{Buffer, ethernet};

pub(crate) struct EthernetInput;

impl<B: Buffer> Node<B> for EthernetInput {
    const ID: NodeId = NodeId::EthernetInput;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(header) = ethernet::Header::parse(packet.buffer.data()) else {
            return Next::drop(DropReason::EthernetTruncated);
        };
        let ours = header.destination == state.ports.get(packet.meta.port).mac;
        if !ours && !header.destination.is_group() {
            return Next::drop(DropReason::NotOurMac);
        }
        let next = match header.ethertype() {
            ethernet::IPV4 => NodeId::Ip4Input,
            ethernet::IPV6 => NodeId::Ip6Input,
            ethernet::ARP => NodeId::Arp,
            _ => return Next::drop(DropReason::UnknownEthertype),
        };
        match packet.buffer.trim_front(ethernet::LENGTH) {
            Some(()) => Next::To(next),
            None => Next::drop(DropReason::EthernetTruncated),
        }
    }
}

//! Takes the Ethernet header off frames that are for us.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;
use packet::ethernet::{self, MacAddress};

pub(crate) struct EthernetInput;

impl<B: Buffer> Node<B> for EthernetInput {
    const ID: NodeId = NodeId::EthernetInput;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(header) = ethernet::Header::parse(packet.buffer.data()) else {
            return Next::drop(DropReason::EthernetTruncated);
        };
        let ours = header.destination == state.ports.get(packet.meta.port).mac;
        if !ours && !is_to_group(header.destination, packet.buffer.data()) {
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

/// Questions and announcements go to all stations; a unicast packet in such a frame is none of ours to forward, and
/// none to answer (RFC 1812 5.3.4).
fn is_to_group(station: MacAddress, frame: &[u8]) -> bool {
    let is_multicast6 = || frame.get(ethernet::LENGTH + 24) == Some(&0xff);
    let ethertype = ethernet::Header::parse(frame).map(ethernet::Header::ethertype);
    station.is_group()
        && (ethertype == Some(ethernet::ARP) || ethertype == Some(ethernet::IPV6) && is_multicast6())
}

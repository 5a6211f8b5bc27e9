//! Takes the Ethernet header off frames that are for us.

use super::punt::{is_between_routers, unspoken_frame};
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;
use packet::ethernet::{self, MacAddress};
use packet::vlan::{self, Tag};

pub(crate) struct EthernetInput;

impl<B: Buffer> Node<B> for EthernetInput {
    const ID: NodeId = NodeId::EthernetInput;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        // Such packets are usual ones for nobody.
        if !packet.buffer.is_contiguous() {
            return Next::drop(DropReason::NotContiguous);
        }
        let Some(header) = ethernet::Header::parse(packet.buffer.data()) else {
            return Next::drop(DropReason::EthernetTruncated);
        };
        if header.ethertype() == vlan::CUSTOMER {
            return untag(state, packet);
        }
        let ours = header.destination == state.ports.get(packet.meta.port).mac;
        if !ours && !is_to_group(header.destination, packet.buffer.data()) {
            return of_others(state, packet);
        }
        let next = match header.ethertype() {
            ethernet::IPV4 => NodeId::Ip4Input,
            ethernet::IPV6 => NodeId::Ip6Input,
            ethernet::ARP => NodeId::Arp,
            _ => return unspoken_frame(state, packet, DropReason::UnknownEthertype),
        };
        match packet.buffer.trim_front(ethernet::LENGTH) {
            Some(()) => Next::To(next),
            None => Next::drop(DropReason::EthernetTruncated),
        }
    }
}

/// On a port without a VLAN a tag may tell a priority, and no more (IEEE 802.1Q 6.9). One such tag is taken off.
#[cold]
fn untag<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Next {
    match vlan::pop(&mut packet.buffer) {
        Some(Tag { id: 0, .. }) if !is_tagged(packet.buffer.data()) => EthernetInput::process(state, packet),
        Some(_) => Next::drop(DropReason::OtherVlan),
        None => Next::drop(DropReason::EthernetTruncated),
    }
}

/// Routers of a link speak to groups of it. We are in none of them, but the kernel may be.
#[cold]
fn of_others<B: Buffer>(state: &State, packet: &mut Packet<B>) -> Next {
    match is_between_routers(packet.buffer.data()) {
        true => unspoken_frame(state, packet, DropReason::NotOurMac),
        false => Next::drop(DropReason::NotOurMac),
    }
}

fn is_tagged(frame: &[u8]) -> bool {
    ethernet::Header::parse(frame).is_some_and(|header| header.ethertype() == vlan::CUSTOMER)
}

/// Questions and announcements go to all stations; a unicast packet in such a frame is none of ours to forward, and
/// none to answer (RFC 1812 5.3.4).
fn is_to_group(station: MacAddress, frame: &[u8]) -> bool {
    let is_multicast6 = || frame.get(ethernet::LENGTH + 24) == Some(&0xff);
    let ethertype = ethernet::Header::parse(frame).map(ethernet::Header::ethertype);
    station.is_group()
        && (ethertype == Some(ethernet::ARP) || ethertype == Some(ethernet::IPV6) && is_multicast6())
}

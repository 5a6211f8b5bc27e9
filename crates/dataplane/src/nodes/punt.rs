//! Gives the kernel what is addressed to a port and not spoken here, for programs that run beside the node: routing protocols,
//! their link detection, ssh. Only what came in from the wire, outside any tunnel; as it came, but for VLAN tags and padding.

use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{State, Urgency};
use packet::ethernet::{self, MacAddress};
use packet::{Buffer, protocol};

pub(crate) struct Punt;

impl<B: Buffer> Node<B> for Punt {
    const ID: NodeId = NodeId::Punt;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        // The frame's header still stands in front of what it carries.
        let Some(frame) = packet.buffer.prepend(ethernet::LENGTH) else {
            return Next::drop(DropReason::NoHeadroom);
        };
        let urgency = urgency(frame);
        match state.punting.take(packet.meta.port, urgency, state.now_ns) {
            true => Next::End(Fate::Punt),
            false => Next::drop(DropReason::PuntRate),
        }
    }
}

/// What nobody here speaks, without its Ethernet header: the kernel may, if the port has an interface there.
#[cold]
pub(super) fn unspoken<B: Buffer>(state: &State, packet: &Packet<B>, reason: DropReason) -> Next {
    match state.punting.is_on(packet.meta.port) && packet.meta.is_new() {
        true => Next::To(NodeId::Punt),
        false => Next::drop(reason),
    }
}

/// The same of a frame, whole.
#[cold]
pub(super) fn unspoken_frame<B: Buffer>(state: &State, packet: &mut Packet<B>, reason: DropReason) -> Next {
    let next = unspoken(state, packet, reason);
    match next {
        Next::To(_) => packet
            .buffer
            .trim_front(ethernet::LENGTH)
            .map_or(Next::drop(DropReason::EthernetTruncated), |()| next),
        Next::End(_) => next,
    }
}

/// What we have heard is for us, and the kernel is to hear it, too: it looks for neighbours by itself.
#[cold]
pub(super) fn heard<B: Buffer>(state: &State, packet: &Packet<B>) -> Next {
    match unspoken(state, packet, DropReason::Unfinished) {
        Next::End(_) => Next::End(Fate::Consumed),
        to_kernel => to_kernel,
    }
}

/// Link layer discovery (IEEE 802.1AB).
const LLDP: u16 = 0x88cc;
/// Groups of IS-IS: all level 1, all level 2 (ISO 10589 8.4.8), and all intermediate systems (RFC 5309).
const ISIS: [MacAddress; 3] = [
    MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x14]),
    MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x15]),
    MacAddress([0x09, 0x00, 0x2b, 0, 0, 0x05]),
];
/// The front of the groups of 224.0.0.0/24, which no router forwards (RFC 5771 4), as they stand in frames and in packets.
const LOCAL_GROUPS: ([u8; 5], [u8; 3]) = ([0x01, 0x00, 0x5e, 0, 0], [224, 0, 0]);

/// Whether a frame for a group is of a protocol between routers of a link.
pub(super) fn is_between_routers(frame: &[u8]) -> bool {
    let Some(header) = ethernet::Header::parse(frame) else { return false };
    match header.ethertype() {
        ethernet::IPV4 => {
            let (station, group) = LOCAL_GROUPS;
            let to = frame.get(ethernet::LENGTH + 16..).unwrap_or_default();
            header.destination.0.starts_with(&station) && to.starts_with(&group)
        }
        LLDP => header.destination.is_group(),
        _ => ISIS.contains(&header.destination),
    }
}

/// Type of a neighbour advertisement (RFC 4861 4.4).
const ADVERTISEMENT: u8 = 136;
/// Class selectors 6 and 7, which routing protocols set (RFC 4594 3.2, RFC 2474 4.2.2.2): the least type of service of theirs.
const CONTROL: u8 = 6 << 5;

/// What a frame says of itself.
fn urgency(frame: &[u8]) -> Urgency {
    let octet = |at: usize| frame.get(ethernet::LENGTH + at).copied().unwrap_or(0);
    let of_class = |class: u8| if class >= CONTROL { Urgency::Routing } else { Urgency::Rest };
    match ethernet::Header::parse(frame).map(ethernet::Header::ethertype) {
        Some(ethernet::ARP) => Urgency::Neighbour,
        Some(ethernet::IPV6) if octet(6) == protocol::ICMPV6 && octet(40) == ADVERTISEMENT => {
            Urgency::Neighbour
        }
        Some(ethernet::IPV4) => of_class(octet(1)),
        Some(ethernet::IPV6) => of_class(octet(0) << 4 | octet(1) >> 4),
        _ if is_between_routers(frame) => Urgency::Routing,
        _ => Urgency::Rest,
    }
}

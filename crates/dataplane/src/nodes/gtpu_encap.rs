//! Puts a packet into a tunnel (TS 29.281 5.1, TS 38.415 5.5.2).

use crate::counters::DropReason;
use crate::frame::{FlowMarks, Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{HotStep, State};
use packet::Buffer;
use packet::gtpu::{PduSession, Relayed, ShortTunnel, Template, Tunnel};
use rules::Direction;

pub(crate) struct GtpuEncap;

/// Bits of ECN, below DSCP.
const ECN_BITS: u32 = 2;

impl<B: Buffer> Node<B> for GtpuEncap {
    const ID: NodeId = NodeId::GtpuEncap;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let step = state.sessions.cells.step(packet.meta.step);
        if step.is_udp() {
            return Next::To(NodeId::UdpEncap);
        }
        let Some(way) = state.sessions.peers.way(step.peer) else {
            return Next::drop(DropReason::NoRoute);
        };
        packet.meta.next_hop = way.next_hop;
        let tunnel = tunnel(step, &packet.meta);
        let encapsulated = match packet.meta.marks.relays() {
            false => way.template.encapsulate_into(&mut packet.buffer, tunnel),
            true => relay(&way.template, packet, tunnel),
        };
        match encapsulated {
            Some(()) => Next::To(NodeId::EthernetOutput),
            None => Next::drop(DropReason::NoHeadroom),
        }
    }
}

/// Into the next tunnel go the extension headers, too, that its header had (TS 29.281 5.2.1): they still stand in front of the packet,
/// where the new ones come to be.
#[cold]
fn relay<B: Buffer>(template: &Template, packet: &mut Packet<B>, tunnel: Tunnel) -> Option<()> {
    let outer = usize::from(packet.meta.outer);
    let mut headers = [0; u8::MAX as usize];
    let headers = headers.get_mut(..outer)?;
    headers.copy_from_slice(packet.buffer.prepend(outer)?.get(..outer)?);
    packet.buffer.trim_front(outer)?;
    template.relay_into(&mut packet.buffer, tunnel, &Relayed::of(headers))
}

/// The tunnel that a step's packets go into.
pub(super) fn tunnel(step: &HotStep, meta: &Meta) -> Tunnel {
    Tunnel {
        teid: step.teid,
        pdu_session: container(step, meta),
        tos: step.dscp().unwrap_or_default() << ECN_BITS,
    }
}

/// The same of packets that get no paging policy: their containers are short, if they get any.
#[inline(always)]
pub(super) const fn short_tunnel(step: &HotStep, (qfi, marks): (u8, FlowMarks)) -> ShortTunnel {
    let dscp = if let Some(dscp) = step.dscp() { dscp } else { 0 };
    ShortTunnel { teid: step.teid, container: step.short_container(qfi, marks), tos: dscp << ECN_BITS }
}

/// Towards the radio a packet is a downlink one, towards the next user plane function an uplink one. From tunnel to tunnel,
/// as over N9 and in indirect forwarding, it stays in its QoS flow unless a QER names another (TS 23.501 5.7.1.5), and what was
/// said of it besides is said again.
fn container(step: &HotStep, meta: &Meta) -> Option<PduSession> {
    let qfi = step.qfi().or_else(|| (meta.qfi != Meta::NO_QFI).then_some(meta.qfi))?;
    Some(match step.to().direction() {
        Direction::Uplink => PduSession {
            reflective: step.is_reflective() || meta.marks.is_reflective(),
            paging_policy: meta.marks.paging_policy(),
            ..PduSession::downlink(qfi)
        },
        Direction::Downlink => PduSession::uplink(qfi),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::Side;
    use packet::gtpu::ShortContainer;
    use proptest::prelude::*;
    use rules::{Encapsulation, Forward, Instance, Interface, OuterHeader, Qfi, Teid};

    /// Into a tunnel on a side, with or without a flow of its own.
    fn step(to: Interface, qfi: Option<Qfi>, reflective: bool) -> HotStep {
        let tunnel =
            Encapsulation { header: OuterHeader::Gtpu(Teid(7)), peer: [10, 0, 0, 1].into(), qfi, reflective };
        let forward = Forward {
            to,
            instance: Instance::DEFAULT,
            dscp: None,
            policy: None,
            encapsulation: Some(tunnel),
        };
        HotStep::forwarding(forward)
    }

    fn qfi() -> impl Strategy<Value = Option<u8>> {
        proptest::option::of(0..64_u8)
    }

    proptest! {
        #[test]
        fn a_short_container_is_the_container_where_that_is_short(
            (own, arrived) in (qfi(), qfi()), reflective: bool, to_access: bool, flow: u8, policy in proptest::option::of(0..8_u8),
        ) {
            let to = if to_access { Interface::Access } else { Interface::Core };
            let step = step(to, own.and_then(Qfi::new), reflective);
            let said = PduSession { reflective: flow & 64 != 0, paging_policy: policy, ..PduSession::downlink(0) };
            let mut meta = Meta::new(0, Side::of(Interface::Core));
            (meta.qfi, meta.marks) = (arrived.unwrap_or(Meta::NO_QFI), FlowMarks::of(&said));
            let container = container(&step, &meta);
            let short = short_tunnel(&step, (meta.qfi, meta.marks)).container;
            prop_assert_eq!(container.is_none(), short == ShortContainer::NONE);
            if !meta.marks.has_policy() {
                prop_assert_eq!(ShortContainer::of(container), Some(short));
            }
        }
    }
}

//! Puts a packet into a tunnel (TS 29.281 5.1, TS 38.415 5.5.2).

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::gtpu::{self, PduSession};
use packet::{Buffer, ipv4, udp};
use rules::{Action, Direction, Encapsulation, Interface, Qfi};
use std::net::Ipv4Addr;

pub(crate) struct GtpuEncap;

impl<B: Buffer> Node<B> for GtpuEncap {
    const ID: NodeId = NodeId::GtpuEncap;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Action::Forward { to, encapsulation: Some(tunnel) } = packet.meta.action else {
            return Next::drop(DropReason::Unfinished);
        };
        let Some(next_hop) = state.routes.find(to, tunnel.peer) else {
            return Next::drop(DropReason::NoRoute);
        };
        packet.meta.next_hop = next_hop;
        let source = state.ports.get(next_hop.port).address.addr();
        match wrap(&mut packet.buffer, source, tunnel, container(to, tunnel.qfi)) {
            Some(()) => Next::To(NodeId::EthernetOutput),
            None => Next::drop(DropReason::NoHeadroom),
        }
    }
}

/// Towards the radio a packet is a downlink one, towards the next user plane function an uplink one.
fn container(to: Interface, qfi: Option<Qfi>) -> Option<PduSession> {
    let qfi = qfi?.value();
    Some(match to.direction() {
        Direction::Uplink => PduSession::downlink(qfi),
        Direction::Downlink => PduSession::uplink(qfi),
    })
}

#[inline]
fn wrap<B: Buffer>(
    buffer: &mut B,
    source: Ipv4Addr,
    tunnel: Encapsulation,
    container: Option<PduSession>,
) -> Option<()> {
    let payload = buffer.data().len();
    let gtpu_length = gtpu::encapsulated_length(container);
    let message = gtpu_length + payload;
    let bytes = buffer.prepend(ipv4::LENGTH + udp::LENGTH + gtpu_length)?;
    ipv4::Header::new(source, tunnel.peer, ipv4::UDP, udp::LENGTH + message)?.write(bytes)?;
    let datagram = bytes.get_mut(ipv4::LENGTH..)?;
    udp::Header::new(gtpu::PORT, gtpu::PORT, message)?.write(datagram)?;
    gtpu::write_g_pdu(datagram.get_mut(udp::LENGTH..)?, tunnel.teid.0, container, payload)
}

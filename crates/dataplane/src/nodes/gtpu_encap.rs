//! Puts a packet into a tunnel (TS 29.281 5.1, TS 38.415 5.5.2).

use crate::counters::DropReason;
use crate::frame::{Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{HotStep, State};
use packet::Buffer;
use packet::gtpu::{PduSession, Tunnel};
use rules::Direction;

pub(crate) struct GtpuEncap;

/// Bits of ECN, below DSCP.
const ECN_BITS: u32 = 2;

impl<B: Buffer> Node<B> for GtpuEncap {
    const ID: NodeId = NodeId::GtpuEncap;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let step = state.sessions.cells.step(packet.meta.step);
        let Some(way) = state.sessions.peers.way(step.peer) else {
            return Next::drop(DropReason::NoRoute);
        };
        packet.meta.next_hop = way.next_hop;
        let tunnel = tunnel(step, packet.meta.qfi);
        match way.template.encapsulate_into(&mut packet.buffer, tunnel) {
            Some(()) => Next::To(NodeId::EthernetOutput),
            None => Next::drop(DropReason::NoHeadroom),
        }
    }
}

/// The tunnel a step's packets go into; `arrived` is the QoS flow of the tunnel they came in, [`Meta::NO_QFI`] for none.
#[inline(always)]
pub(super) fn tunnel(step: &HotStep, arrived: u8) -> Tunnel {
    Tunnel {
        teid: step.teid,
        pdu_session: container(step, arrived),
        tos: step.dscp().unwrap_or_default() << ECN_BITS,
    }
}

/// Towards the radio a packet is a downlink one, towards the next user plane function an uplink one. From tunnel to tunnel,
/// as over N9 and in indirect forwarding, it stays in its QoS flow unless a QER names another (TS 23.501 5.7.1.5).
#[inline(always)]
fn container(step: &HotStep, arrived: u8) -> Option<PduSession> {
    let qfi = step.qfi().or_else(|| (arrived != Meta::NO_QFI).then_some(arrived))?;
    Some(match step.to().direction() {
        Direction::Uplink => PduSession { reflective: step.is_reflective(), ..PduSession::downlink(qfi) },
        Direction::Downlink => PduSession::uplink(qfi),
    })
}

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
        let tunnel = tunnel(step, &packet.meta);
        match way.template.encapsulate_into(&mut packet.buffer, tunnel) {
            Some(()) => Next::To(NodeId::EthernetOutput),
            None => Next::drop(DropReason::NoHeadroom),
        }
    }
}

/// The tunnel that a step's packets go into.
#[inline(always)]
pub(super) fn tunnel(step: &HotStep, meta: &Meta) -> Tunnel {
    Tunnel {
        teid: step.teid,
        pdu_session: container(step, meta),
        tos: step.dscp().unwrap_or_default() << ECN_BITS,
    }
}

/// Towards the radio a packet is a downlink one, towards the next user plane function an uplink one. From tunnel to tunnel,
/// as over N9 and in indirect forwarding, it stays in its QoS flow unless a QER names another (TS 23.501 5.7.1.5), and what was
/// said of it besides is said again.
#[inline(always)]
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

//! Tells a peer that a tunnel of ours leads nowhere, at a bounded rate (TS 29.281 7.3.1).

use super::{Way, replace_by_gtpu};
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;
use packet::gtpu::{self, ErrorIndication};

pub(crate) struct GtpuErrorIndication;

impl<B: Buffer> Node<B> for GtpuErrorIndication {
    const ID: NodeId = NodeId::GtpuErrorIndication;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(tunnel) = packet.meta.tunnel else { return Next::drop(DropReason::NoTunnel) };
        if !state.error_indications.take(state.now_ns) {
            return Next::drop(DropReason::NoTunnel);
        }
        let mut message = [0; ErrorIndication::LENGTH];
        let indication = ErrorIndication { teid: tunnel.teid, address: tunnel.address };
        let way = Way { source: tunnel.address, destination: tunnel.peer, port: gtpu::PORT };
        let written =
            indication.write(&mut message).and_then(|_| replace_by_gtpu(&mut packet.buffer, way, &message));
        packet.meta.ip.destination = tunnel.peer;
        match written {
            Some(()) => Next::To(NodeId::Ip4Output),
            None => Next::drop(DropReason::NoHeadroom),
        }
    }
}

//! Tells a peer that a tunnel of ours leads nowhere, at a bounded rate (TS 29.281 7.3.1).

use super::{Way, replace_by_gtpu};
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::gtpu::{self, ErrorIndication};
use packet::{Buffer, ipv4};

pub(crate) struct GtpuErrorIndication;

impl<B: Buffer> Node<B> for GtpuErrorIndication {
    const ID: NodeId = NodeId::GtpuErrorIndication;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        if !packet.meta.tunnelled() || !state.error_indications.take(state.now_ns) {
            return Next::drop(DropReason::NoTunnel);
        }
        match answer(packet) {
            Some(()) => Next::To(NodeId::IpOutput),
            None => Next::drop(DropReason::NoTunnel),
        }
    }
}

/// The headers of the tunnel still stand in front of the user's packet. `None` over IPv6, for now.
fn answer<B: Buffer>(packet: &mut Packet<B>) -> Option<()> {
    let bytes = packet.buffer.prepend(usize::from(packet.meta.outer))?;
    let outer = ipv4::Packet::parse(bytes).ok()?;
    let (peer, address) = (outer.source(), outer.destination());
    let mut message = [0; ErrorIndication::LENGTH];
    ErrorIndication { teid: packet.meta.teid, address }.write(&mut message)?;
    let way = Way { source: address, destination: peer, port: gtpu::PORT };
    replace_by_gtpu(&mut packet.buffer, way, &message)
}

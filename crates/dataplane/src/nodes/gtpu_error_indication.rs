//! Tells a peer that a tunnel of ours leads nowhere, at a bounded rate (TS 29.281 7.3.1).

use super::answer::{Way, ends, replace_by_gtpu};
use crate::counters::DropReason;
use crate::frame::{NextHop, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;
use packet::gtpu::{self, TunnelError};

pub(crate) struct GtpuErrorIndication;

impl<B: Buffer> Node<B> for GtpuErrorIndication {
    const ID: NodeId = NodeId::GtpuErrorIndication;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        if !packet.meta.tunnelled() || !state.may_indicate(packet.meta.port) {
            return Next::drop(DropReason::NoTunnel);
        }
        match answer(packet, state.recovery_time_stamp) {
            Some(()) if packet.meta.loops > 0 => tell_ourselves(packet),
            Some(()) => Next::To(NodeId::IpOutput),
            None => Next::drop(DropReason::NoTunnel),
        }
    }
}

/// The headers of the tunnel still stand in front of the user's packet.
fn answer<B: Buffer>(packet: &mut Packet<B>, recovery_time_stamp: Option<u32>) -> Option<()> {
    let bytes = packet.buffer.prepend(usize::from(packet.meta.outer))?;
    let (peer, address) = ends(bytes)?;
    let mut message = [0; TunnelError::LENGTH_MAX];
    let error = TunnelError { teid: packet.meta.teid, address, udp_port: None, recovery_time_stamp };
    let length = error.write(&mut message)?;
    let way = Way { source: address, destination: peer, port: gtpu::PORT };
    replace_by_gtpu(&mut packet.buffer, way, message.get(..length)?)
}

/// The tunnel's other end is ours, too: its control plane is to hear of it as of any. That ends there, so it comes back however
/// often the packet did.
fn tell_ourselves<B: Buffer>(packet: &mut Packet<B>) -> Next {
    let Some(address) = super::destination(packet.buffer.data()) else {
        return Next::drop(DropReason::NoTunnel);
    };
    packet.meta.next_hop = NextHop::new(packet.meta.port, address);
    packet.meta.loops = 0;
    Next::To(NodeId::EthernetOutput)
}

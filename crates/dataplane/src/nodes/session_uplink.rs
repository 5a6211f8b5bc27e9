//! Finds the session behind the tunnel a packet came in.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;

pub(crate) struct SessionUplink;

impl<B: Buffer> Node<B> for SessionUplink {
    const ID: NodeId = NodeId::SessionUplink;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(tunnel) = packet.meta.tunnel else { return Next::drop(DropReason::NoTunnel) };
        match state.sessions.by_tunnel(tunnel.teid, tunnel.address) {
            Some(session) => {
                packet.meta.session = session;
                Next::To(NodeId::Classify)
            }
            None => Next::To(NodeId::GtpuErrorIndication),
        }
    }
}

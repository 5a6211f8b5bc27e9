//! Does what the FAR and the gates say (TS 29.244 5.2.3 and 5.4.3).

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::{Buffer, ipv4};
use rules::{Action, Encapsulation};

pub(crate) struct Far;

impl<B: Buffer> Node<B> for Far {
    const ID: NodeId = NodeId::Far;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let (to, encapsulation) = match packet.meta.action {
            Action::Drop => return Next::drop(DropReason::FarDrop),
            Action::GateClosed => return Next::drop(DropReason::GateClosed),
            Action::Forward { to, encapsulation } => (to, encapsulation),
        };
        packet.meta.towards = to;
        match route(state, packet, encapsulation) {
            Ok(()) => Next::To(if encapsulation.is_some() { NodeId::GtpuEncap } else { NodeId::Ip4Output }),
            Err(reason) => Next::drop(reason),
        }
    }
}

/// Between a tunnel and a plain network we are a router and take a hop off; from tunnel to tunnel we are not.
fn route<B: Buffer>(
    state: &State,
    packet: &mut Packet<B>,
    encapsulation: Option<Encapsulation>,
) -> Result<(), DropReason> {
    if encapsulation.is_none() && state.ports.is_ours(packet.meta.ip.destination) {
        return Err(DropReason::ToOurselves);
    }
    if packet.meta.tunnel.is_some() && encapsulation.is_some() {
        return Ok(());
    }
    ipv4::decrement_ttl(packet.buffer.data_mut()).ok_or(DropReason::TtlExpired)
}

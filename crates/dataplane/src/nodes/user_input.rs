//! Reads the user's own packet: checks it, and works out which flow it belongs to.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{FlowKey, Key, State};
use packet::Buffer;
use packet::five_tuple::FiveTuple;
use rules::Direction;

pub(crate) struct UserInput;

impl<B: Buffer> Node<B> for UserInput {
    const ID: NodeId = NodeId::UserInput;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some((key, length, class)) = read_flow(packet.buffer.data(), packet.meta.direction()) else {
            return malformed(state, packet);
        };
        // What is behind the packet is not part of it.
        if packet.buffer.truncate(usize::from(length)).is_none() {
            return malformed(state, packet);
        }
        let meta = &mut packet.meta;
        (meta.bytes, meta.traffic_class) = (length, class);
        meta.key = state.in_network(key, meta);
        meta.hash = state.flows.hash(&meta.key);
        Next::To(state.steering.next(meta.port, &meta.key))
    }
}

/// The key of a user's packet, its length and its class of service; `None` of one that is malformed.
#[inline]
pub(crate) fn read_flow(packet: &[u8], direction: Direction) -> Option<(FlowKey, u16, u8)> {
    FlowKey::of_usual(packet, direction).or_else(|| look_closely(packet, direction))
}

fn look_closely(packet: &[u8], direction: Direction) -> Option<(FlowKey, u16, u8)> {
    let found = FiveTuple::parse(packet).ok()?;
    let length = u16::try_from(found.total).ok()?;
    Some((FlowKey::new(&found.tuple, direction), length, found.tuple.tos))
}

/// A peer whose tunnel leads nowhere is told so, whatever it sends through it.
fn malformed<B: Buffer>(state: &mut State, packet: &Packet<B>) -> Next {
    let meta = &packet.meta;
    let key = state.ports.tunnel_key(meta);
    if meta.tunnelled()
        && state.sessions.by_tunnel(key).is_none()
        && !state.steering.is_elsewhere(Key::Tunnel(key))
    {
        return Next::To(NodeId::GtpuErrorIndication);
    }
    Next::drop(DropReason::UserPacketMalformed)
}

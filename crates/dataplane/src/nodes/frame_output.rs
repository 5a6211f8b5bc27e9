//! Sends a frame into its Ethernet data network, or to the users there that it is for.

use crate::counters::DropReason;
use crate::frame::{Fate, Packet, PortIndex};
use crate::graph::{Next, Node, NodeId};
use crate::side::Side;
use crate::state::State;
use packet::{Buffer, ethernet, vlan};
use rules::Direction;

pub(crate) struct FrameOutput;

/// Bytes of a frame besides its payload: the header, and a tag each of customer and provider.
const HEADERS: usize = ethernet::LENGTH + 2 * vlan::LENGTH;

impl<B: Buffer> Node<B> for FrameOutput {
    const ID: NodeId = NodeId::FrameOutput;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        // A frame to a user goes by a tunnel: what came from the network does not go back there, and on to others again.
        if packet.meta.direction() == Direction::Downlink {
            return Next::drop(DropReason::NoRoute);
        }
        let side = packet.meta.towards;
        let Some(header) = ethernet::Header::parse(packet.buffer.data()) else {
            return Next::drop(DropReason::EthernetTruncated);
        };
        let destination = header.destination;
        if destination.is_group() {
            return Next::End(Fate::Switch);
        }
        match state.switch.find(destination, side.instance()) {
            // A bridge sends nothing back to where it came from (IEEE 802.1Q 8.6.1).
            Some(session) if session == packet.meta.session => Next::drop(DropReason::FrameToItself),
            Some(_) => Next::End(Fate::Switch),
            None => match port(state, side, packet.buffer.data().len()) {
                Ok(port) => Next::End(Fate::Send(port)),
                Err(reason) => Next::drop(reason),
            },
        }
    }
}

/// The port a frame leaves by.
pub(crate) fn port(state: &State, side: Side, length: usize) -> Result<PortIndex, DropReason> {
    let mut ports = state.ports.iter().filter(|(_, port)| port.ethernet && port.side() == side);
    let (index, port) = ports.next().ok_or(DropReason::NoRoute)?;
    if length > usize::from(port.mtu) + HEADERS { Err(DropReason::MtuExceeded) } else { Ok(index) }
}

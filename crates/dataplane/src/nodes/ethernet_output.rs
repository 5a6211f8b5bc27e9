//! Puts the Ethernet header on, once the next hop's address is known.

use super::push_ethernet;
use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Lookup, State};
use packet::{Buffer, ethernet};

pub(crate) struct EthernetOutput;

impl<B: Buffer> Node<B> for EthernetOutput {
    const ID: NodeId = NodeId::EthernetOutput;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let next_hop = packet.meta.next_hop;
        let port = state.ports.get(next_hop.port);
        if packet.buffer.data().len() > usize::from(port.mtu) {
            return Next::drop(DropReason::MtuExceeded);
        }
        let mac = match state.neighbours.find(next_hop, state.now_ns) {
            Lookup::Known(mac) => mac,
            Lookup::Asked => return Next::End(Fate::Hold),
            Lookup::Full => return Next::drop(DropReason::NeighbourUnresolved),
        };
        let header = ethernet::Header::new(mac, port.mac, super::ethertype(packet.buffer.data()));
        match push_ethernet(&mut packet.buffer, header) {
            Some(()) => Next::End(Fate::Send(next_hop.port)),
            None => Next::drop(DropReason::NoHeadroom),
        }
    }
}

//! Answers ARP requests for our addresses and learns from replies (RFC 826).

use super::punt::heard;
use super::push_ethernet;
use crate::config::PortConfig;
use crate::counters::DropReason;
use crate::frame::{Fate, NextHop, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;
use packet::arp::{LENGTH, Message, Operation, Station};
use packet::ethernet::{self, MacAddress};
use std::net::Ipv4Addr;

pub(crate) struct Arp;

impl<B: Buffer> Node<B> for Arp {
    const ID: NodeId = NodeId::Arp;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some((operation, message)) = read(packet.buffer.data()) else {
            return Next::drop(DropReason::ArpMalformed);
        };
        let (sender, target) = (message.sender(), message.target());
        let port = packet.meta.port;
        let us = state.ports.get(port);
        let for_us = target.address == us.address.addr();
        if let Some(reason) = refusal(us, sender, target) {
            return Next::drop(reason);
        }
        state.neighbours.learn(NextHop::new(port, sender.address), sender.mac, state.now_ns);
        match operation {
            Operation::Request if for_us => answer(state.ports.get(port), packet, sender),
            _ => heard(state, packet),
        }
    }
}

/// Why a message is of no use, if it is not.
fn refusal(us: &PortConfig, sender: Station, target: Station) -> Option<DropReason> {
    let own = us.address.addr();
    // An announcement has the same address on both sides.
    let is_heard = target.address == own || target.address == sender.address;
    match sender {
        Station { mac, .. } if !mac.is_station() => Some(DropReason::ArpMalformed),
        // The network brings it back, or somebody would have packets for others sent to us.
        Station { mac, .. } if mac == us.mac => Some(DropReason::ArpNotForUs),
        Station { address, .. } if address == own => Some(DropReason::AddressConflict),
        _ if !is_heard => Some(DropReason::ArpNotForUs),
        _ => None,
    }
}

fn read(payload: &[u8]) -> Option<(Operation, Message)> {
    let message = Message::parse(payload)?;
    Some((message.operation()?, *message))
}

fn answer<B: Buffer>(port: &PortConfig, packet: &mut Packet<B>, asker: Station) -> Next {
    let us = Station { mac: port.mac, address: port.address.addr() };
    let reply = Message::new(Operation::Reply, us, asker);
    let written = write(&mut packet.buffer, reply, ethernet::Header::new(asker.mac, us.mac, ethernet::ARP));
    match written {
        Some(()) => Next::End(Fate::Send(packet.meta.port)),
        None => Next::drop(DropReason::NoHeadroom),
    }
}

fn write<B: Buffer>(buffer: &mut B, message: Message, header: ethernet::Header) -> Option<()> {
    buffer.truncate(0)?;
    message.write(buffer.append(LENGTH)?)?;
    push_ethernet(buffer, header)
}

/// Makes an empty buffer the request for `target`; `None` where it is too small.
pub(crate) fn write_request<B: Buffer>(buffer: &mut B, port: &PortConfig, target: Ipv4Addr) -> Option<()> {
    let us = Station { mac: port.mac, address: port.address.addr() };
    let unknown = Station { mac: MacAddress::default(), address: target };
    let header = ethernet::Header::new(MacAddress::BROADCAST, port.mac, ethernet::ARP);
    write(buffer, Message::new(Operation::Request, us, unknown), header)
}

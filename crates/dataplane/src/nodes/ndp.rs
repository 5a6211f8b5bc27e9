//! Answers neighbour solicitations for our IPv6 addresses and learns from advertisements (RFC 4861 7.2).

use super::answer::replace;
use super::punt::heard;
use super::push_ethernet;
use crate::config::PortConfig;
use crate::counters::DropReason;
use crate::frame::{Fate, NextHop, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::ethernet::{self, MacAddress};
use packet::ndp::{ALL_NODES, Malformed, Message, NeighbourAdvertisement, multicast_mac, solicited_node};
use packet::{Buffer, ipv6};
use std::net::Ipv6Addr;

/// Bytes of the longest message of ours: IPv6, the message, one link address.
const MESSAGE_MAX: usize = ipv6::LENGTH + 24 + 8;

pub(crate) struct Ndp;

impl<B: Buffer> Node<B> for Ndp {
    const ID: NodeId = NodeId::Ndp;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let heard_of = hear(packet.buffer.data());
        let us = state.ports.get(packet.meta.port);
        if let Some(reason) = heard_of.as_ref().ok().and_then(|message| refusal(us, message)) {
            return Next::drop(reason);
        }
        match heard_of {
            Ok(Heard::Question(question)) => answer(state, packet, question),
            Ok(Heard::Claim(claim)) => {
                learn(state, packet.meta.port, &claim);
                heard(state, packet)
            }
            Err(reason) => Next::drop(reason),
        }
    }
}

/// Who has `target`?
struct Question {
    asker: Ipv6Addr,
    asker_link: Option<MacAddress>,
    target: Ipv6Addr,
}

enum Heard {
    Question(Question),
    Claim(NeighbourAdvertisement),
}

/// Why a message is of no use, if it is not: by the station it is of.
fn refusal(us: &PortConfig, heard: &Heard) -> Option<DropReason> {
    let (address, link) = match heard {
        Heard::Question(question) => (question.asker, question.asker_link),
        Heard::Claim(claim) => (claim.target, claim.target_link),
    };
    match link {
        Some(link) if !link.is_station() => Some(DropReason::NdpMalformed),
        // The network brings it back, or somebody would have packets for others sent to us.
        Some(link) if link == us.mac => Some(DropReason::NdpNotForUs),
        _ if us.is_own6(address) => Some(DropReason::AddressConflict),
        _ => None,
    }
}

fn hear(packet: &[u8]) -> Result<Heard, DropReason> {
    let ip = ipv6::Packet::parse(packet)?;
    match Message::parse(&ip) {
        Ok(Message::NeighbourSolicitation { target, source_link }) => {
            Ok(Heard::Question(Question { asker: ip.source(), asker_link: source_link, target }))
        }
        Ok(Message::NeighbourAdvertisement(claim)) => Ok(Heard::Claim(claim)),
        // Our routes are configured: routers' advertisements and redirects change nothing, and we advertise nothing.
        Ok(_) | Err(Malformed::Kind) => Err(DropReason::NdpNotForUs),
        Err(_) => Err(DropReason::NdpMalformed),
    }
}

fn learn(state: &mut State, port: u8, claim: &NeighbourAdvertisement) {
    let next_hop = NextHop::new(port, claim.target);
    if let Some(mac) = claim.target_link {
        // Without the flag it may fill a gap, and not replace what is known (RFC 4861 7.2.5).
        let known = state.neighbours.known(next_hop);
        if claim.overrides || known.is_none_or(|known| known == mac) {
            state.neighbours.learn(next_hop, mac, state.now_ns);
        }
    }
}

fn answer<B: Buffer>(state: &mut State, packet: &mut Packet<B>, question: Question) -> Next {
    let port = packet.meta.port;
    let config = state.ports.get(port);
    if !config.is_own6(question.target) {
        return Next::drop(DropReason::NdpNotForUs);
    }
    let to = Some(question.asker).filter(|asker| !asker.is_unspecified());
    let told = advertisement(config, question.target, to.is_some());
    let destination = to.unwrap_or(ALL_NODES);
    if write(&mut packet.buffer, &told, (question.target, destination)).is_none() {
        return Next::drop(DropReason::NoHeadroom);
    }
    let mac = match (to, question.asker_link) {
        (None, _) => multicast_mac(ALL_NODES),
        (Some(asker), Some(mac)) => {
            state.neighbours.learn(NextHop::new(port, asker), mac, state.now_ns);
            mac
        }
        // It knows us, and asks whether we are still there.
        (Some(asker), None) => {
            packet.meta.next_hop = NextHop::new(port, asker);
            return Next::To(NodeId::EthernetOutput);
        }
    };
    let header = ethernet::Header::new(mac, state.ports.get(port).mac, ethernet::IPV6);
    match push_ethernet(&mut packet.buffer, header) {
        Some(()) => Next::End(Fate::Send(port)),
        None => Next::drop(DropReason::NoHeadroom),
    }
}

const fn advertisement(port: &PortConfig, target: Ipv6Addr, solicited: bool) -> Message<'static> {
    Message::NeighbourAdvertisement(NeighbourAdvertisement {
        target,
        router: true,
        solicited,
        overrides: true,
        target_link: Some(port.mac),
    })
}

fn write<B: Buffer>(buffer: &mut B, message: &Message<'_>, ends: (Ipv6Addr, Ipv6Addr)) -> Option<()> {
    let mut bytes = [0; MESSAGE_MAX];
    let length = message.write(ends.0, ends.1, &mut bytes)?;
    replace(buffer, bytes.get(..length)?)
}

/// Makes an empty buffer what tells everybody that `target` is ours; `None` where it is too small.
pub(crate) fn write_advertisement<B: Buffer>(
    buffer: &mut B,
    port: &PortConfig,
    target: Ipv6Addr,
) -> Option<()> {
    write(buffer, &advertisement(port, target, false), (target, ALL_NODES))?;
    push_ethernet(buffer, ethernet::Header::new(multicast_mac(ALL_NODES), port.mac, ethernet::IPV6))
}

/// Makes an empty buffer the solicitation for `target`; `None` where it is too small, or the port has no IPv6 address.
pub(crate) fn write_solicitation<B: Buffer>(
    buffer: &mut B,
    port: &PortConfig,
    target: Ipv6Addr,
) -> Option<()> {
    let group = solicited_node(target);
    let message = Message::NeighbourSolicitation { target, source_link: Some(port.mac) };
    write(buffer, &message, (port.source6(target)?, group))?;
    push_ethernet(buffer, ethernet::Header::new(multicast_mac(group), port.mac, ethernet::IPV6))
}

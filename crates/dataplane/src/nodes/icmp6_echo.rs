//! Answers pings to our IPv6 addresses (RFC 4443 4.2).

use super::icmp_echo::hear_error;
use crate::counters::DropReason;
use crate::frame::{NextHop, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;
use packet::icmpv6::{self, NoReply};
use std::net::IpAddr;

pub(crate) struct Icmp6Echo;

impl<B: Buffer> Node<B> for Icmp6Echo {
    const ID: NodeId = NodeId::Icmp6Echo;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        match icmpv6::reply_to_echo(packet.buffer.data_mut()) {
            Ok(()) => {}
            Err(NoReply::Malformed) => return Next::drop(DropReason::IcmpMalformed),
            Err(NoReply::NotEchoRequest) => return hear_error(state, packet),
            Err(_) => return Next::drop(DropReason::IcmpNotEcho),
        }
        match super::destination(packet.buffer.data()) {
            // No route leads to these: they are on the link the packet came from.
            Some(IpAddr::V6(asker)) if asker.is_unicast_link_local() => {
                packet.meta.next_hop = NextHop::new(packet.meta.port, asker);
                Next::To(NodeId::EthernetOutput)
            }
            _ => Next::To(NodeId::IpOutput),
        }
    }
}

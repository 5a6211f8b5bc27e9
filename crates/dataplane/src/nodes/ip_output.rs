//! Finds the next hop of a plain packet, and marks it.

use crate::counters::DropReason;
use crate::frame::{NextHop, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{State, StepIndex};
use packet::{Buffer, ipv4, ipv6};

pub(crate) struct IpOutput;

impl<B: Buffer> Node<B> for IpOutput {
    const ID: NodeId = NodeId::IpOutput;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        // Answers of our own follow no rule.
        if packet.meta.step != StepIndex::NONE
            && let Some(dscp) = state.sessions.cells.step(packet.meta.step).dscp()
        {
            mark(packet.buffer.data_mut(), dscp);
        }
        match next_hop(state, packet) {
            Some(next_hop) => {
                packet.meta.next_hop = next_hop;
                Next::To(NodeId::EthernetOutput)
            }
            None => Next::drop(DropReason::NoRoute),
        }
    }
}

#[inline]
fn next_hop<B: Buffer>(state: &State, packet: &Packet<B>) -> Option<NextHop> {
    let (data, side) = (packet.buffer.data(), packet.meta.towards);
    match data.first()? >> 4 {
        4 => state.routes.find_ipv4(side, u32::from_be_bytes(*data.get(16..)?.first_chunk()?)),
        _ => state.routes.find(side, super::destination(data)?),
    }
}

/// Sets the DSCP; ECN is the ends' own (TS 29.244 5.4.15).
fn mark(packet: &mut [u8], dscp: u8) {
    let marked = match packet.first().map(|first| first >> 4) {
        Some(6) => ipv6::set_dscp(packet, dscp),
        _ => ipv4::set_dscp(packet, dscp),
    };
    debug_assert!(marked.is_some(), "the header was checked");
}

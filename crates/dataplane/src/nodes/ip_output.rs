//! Finds the next hop of a plain packet, and marks it.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{State, StepIndex};
use packet::{Buffer, ipv4, ipv6};

pub(crate) struct IpOutput;

impl<B: Buffer> Node<B> for IpOutput {
    const ID: NodeId = NodeId::IpOutput;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(destination) = super::destination(packet.buffer.data()) else {
            return Next::drop(DropReason::NoRoute);
        };
        // Answers of our own follow no rule.
        if packet.meta.step != StepIndex::NONE
            && let Some(dscp) = state.sessions.cells.step(packet.meta.step).dscp()
        {
            mark(packet.buffer.data_mut(), dscp);
        }
        match state.routes.find(packet.meta.towards, destination) {
            Some(next_hop) => {
                packet.meta.next_hop = next_hop;
                Next::To(NodeId::EthernetOutput)
            }
            None => Next::drop(DropReason::NoRoute),
        }
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

//! Finds the next hop of a plain packet, and marks it.

use crate::counters::DropReason;
use crate::frame::{Fate, Meta, NextHop, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Kind, PolicyIndex, State, Steered, StepIndex};
use packet::{Buffer, ipv4, ipv6};

pub(crate) struct IpOutput;

impl<B: Buffer> Node<B> for IpOutput {
    const ID: NodeId = NodeId::IpOutput;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let mut policy = None;
        // Answers of our own follow no rule.
        if packet.meta.step != StepIndex::NONE {
            let step = state.sessions.cells.step(packet.meta.step);
            policy = step.policy();
            if let Some(dscp) = step.dscp() {
                mark(packet.buffer.data_mut(), dscp);
            }
        }
        let led = policy.map_or(Steered::ByRoutes, |policy| led_by(state, policy, packet));
        let next_hop = match led {
            Steered::ByRoutes => next_hop(state, packet),
            Steered::To(next_hop) => Some(next_hop),
            Steered::Nowhere => return Next::drop(DropReason::NoPolicyHop),
        };
        match next_hop {
            Some(next_hop) => {
                packet.meta.next_hop = next_hop;
                Next::To(NodeId::EthernetOutput)
            }
            None => no_route(state, packet),
        }
    }
}

#[cold]
fn no_route<B: Buffer>(state: &mut State, packet: &Packet<B>) -> Next {
    // Asked here, so that whoever sends many of these costs no more than who is dropped for something else.
    let (user, now_ns) = (packet.meta.key.user(), state.now_ns);
    match may_hear(state, &packet.meta) && state.icmp_errors.nowhere.take(user, now_ns) {
        true => Next::End(Fate::Unreachable),
        false => Next::drop(DropReason::NoRoute),
    }
}

/// Whether the sender of a plain packet may hear that it goes nowhere. We are a user's router, and tell him (RFC 1812 4.3.3.1, RFC 4443
/// 3.1) where the packet is as he sent it: he would not know it else.
pub(crate) fn may_hear(state: &State, meta: &Meta) -> bool {
    let Meta { step, key, hash, .. } = *meta;
    let is_users = step != StepIndex::NONE && meta.tunnelled();
    is_users
        && match state.sessions.cells.step(step).kind {
            Kind::Plain => state.readdress(step).is_none(),
            Kind::Enrich => !state.connections.is_shifted((&key, hash)),
            _ => false,
        }
}

/// Where a policy leads a plain packet.
#[cold]
pub(super) fn led_by<B: Buffer>(state: &State, policy: PolicyIndex, packet: &Packet<B>) -> Steered {
    let is_ipv6 = packet.buffer.data().first().is_some_and(|first| first >> 4 == 6);
    state.policies.lead(policy, is_ipv6)
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

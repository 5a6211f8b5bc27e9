//! Tells senders why their packets go no further, at a bounded rate: no hop left, too long for the way and not to be split, no route,
//! or nobody there (RFC 792, RFC 1812 4.3, RFC 4443). The packet becomes the answer; users get theirs through their tunnel.

use super::answer::replace;
use super::classify::arrival;
use super::path_mtu::path_mtu;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{State, StepIndex, link_local};
use packet::five_tuple::FiveTuple;
use packet::{Buffer, icmp, icmpv6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Every link of IPv6 takes packets of so many bytes (RFC 8200 5).
pub(super) const LEAST_MTU6: u16 = 1280;

pub(crate) struct IcmpError;

impl<B: Buffer> Node<B> for IcmpError {
    const ID: NodeId = NodeId::IcmpError;

    /// The reason stands where the packet's fate will.
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Fate::Drop(reason) = packet.meta.fate else { return Next::drop(DropReason::Unfinished) };
        let user = packet.meta.key.user();
        let may_tell = match reason {
            // It has been asked: of those that go nowhere, only what is to be told of comes here.
            DropReason::NoRoute | DropReason::NeighbourUnresolved => true,
            // Who makes packets run out of hops must not keep others from hearing what fits.
            DropReason::MtuExceeded => state.icmp_errors.too_long.take(user, state.now_ns),
            _ => state.icmp_errors.no_hop.take(user, state.now_ns),
        };
        if !may_tell {
            return Next::drop(reason);
        }
        answer(state, packet, reason).unwrap_or(Next::drop(reason))
    }
}

/// `None` where there must be no answer, or none finds its way.
fn answer<B: Buffer>(state: &State, packet: &mut Packet<B>, reason: DropReason) -> Option<Next> {
    let mut bytes = [0; icmpv6::ERROR_LENGTH_MAX];
    let length = write(state, packet, reason, &mut bytes)?;
    let bytes = bytes.get(..length)?;
    let next = match packet.meta.tunnelled() {
        true => {
            let towards = towards_user(state, packet.meta, bytes)?;
            packet.meta = Meta { generation: packet.meta.generation, ..towards };
            NodeId::GtpuEncap
        }
        // Who says to be us is not.
        false if super::destination(bytes).is_none_or(|sender| state.ports.is_ours(sender)) => return None,
        false => {
            packet.meta = Meta::new(packet.meta.port, packet.meta.side());
            NodeId::IpOutput
        }
    };
    replace(&mut packet.buffer, bytes)?;
    Some(Next::To(next))
}

fn write<B: Buffer>(
    state: &State,
    packet: &Packet<B>,
    reason: DropReason,
    bytes: &mut [u8],
) -> Option<usize> {
    let original = packet.buffer.data();
    let too_long = reason == DropReason::MtuExceeded;
    let mtu = if too_long { path_mtu(state, packet)? } else { 0 };
    match super::destination(original)? {
        IpAddr::V4(_) => {
            let ours = our_ipv4(state, packet);
            let told = match reason {
                DropReason::MtuExceeded => icmp::Error::FragmentationNeeded { mtu },
                DropReason::NoRoute => icmp::Error::Unreachable { code: icmp::unreachable::NETWORK },
                DropReason::NeighbourUnresolved => icmp::Error::Unreachable { code: icmp::unreachable::HOST },
                _ => icmp::Error::TimeExceeded,
            };
            icmp::write_error(told, original, ours, bytes).ok()
        }
        // To less than every link takes, senders would pay no heed.
        IpAddr::V6(_) if too_long && packet.meta.bytes <= LEAST_MTU6 => None,
        IpAddr::V6(_) => {
            let mtu = mtu.max(LEAST_MTU6).into();
            let told = match reason {
                DropReason::MtuExceeded => icmpv6::Error::PacketTooBig { mtu },
                DropReason::NoRoute => icmpv6::Error::Unreachable { code: icmpv6::unreachable::NO_ROUTE },
                DropReason::NeighbourUnresolved => {
                    icmpv6::Error::Unreachable { code: icmpv6::unreachable::ADDRESS }
                }
                _ => icmpv6::Error::TimeExceeded,
            };
            icmpv6::write_error(told, original, our_ipv6(state, packet), bytes).ok()
        }
    }
}

/// Our address where the packet came in.
fn our_ipv4<B>(state: &State, packet: &Packet<B>) -> Ipv4Addr {
    state.ports.get(packet.meta.port).address.addr()
}

/// Our address where the packet came in; an IPv6 user's tunnel may run over IPv4, and then it is that of another port. Where none has any, it
/// is the one that routers are known by on users' links: a user who is told a prefix hears that it leads nowhere.
fn our_ipv6<B>(state: &State, packet: &Packet<B>) -> Ipv6Addr {
    let here = state.ports.get(packet.meta.port);
    let elsewhere = || state.ports.iter().find_map(|(_, port)| port.address6);
    here.address6.or_else(elsewhere).map_or_else(|| link_local(here.mac), |net| net.addr())
}

/// The answer goes where the session's rules send packets to the user; it is held to no rate and counted by nobody.
fn towards_user(state: &State, about: Meta, answer: &[u8]) -> Option<Meta> {
    let session = match about.step {
        StepIndex::NONE => about.session,
        step => state.sessions.cells.session(step),
    };
    let session = state.sessions.get(session)?;
    let mut meta = Meta::new(about.port, about.towards);
    let tuple = FiveTuple::parse(answer).ok()?.tuple;
    meta.step = session.find(&arrival(&meta, &tuple))?;
    state.sessions.cells.step(meta.step).tunnels().then_some(meta)
}

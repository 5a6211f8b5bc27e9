//! Checks IPv6 headers and tells packets to us from packets to users.

use super::punt::unspoken;
use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{Reach, State};
use packet::{Buffer, ipv6, protocol};

/// ICMPv6 types of neighbour discovery (RFC 4861 4).
const NDP: std::ops::RangeInclusive<u8> = 133..=137;

pub(crate) struct Ip6Input;

impl<B: Buffer> Node<B> for Ip6Input {
    const ID: NodeId = NodeId::Ip6Input;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let ip = match ipv6::Packet::parse(packet.buffer.data()) {
            Ok(ip) => ip,
            Err(fault) => return Next::drop(fault.into()),
        };
        let length = ip.total_length();
        let port = state.ports.get(packet.meta.port);
        let next = match port.reach(ip.destination()) {
            Reach::Us => to_us(&ip, true),
            Reach::UsOnLink => to_us(&ip, false),
            // Of the link, and not to leave it (RFC 4291 2.5.6).
            Reach::Link if !port.is_between_routers(ip.destination()) => {
                return Next::drop(DropReason::IpNotForUs);
            }
            Reach::Link => return unspoken(state, packet, DropReason::IpNotForUs),
            Reach::Beyond if ip.source().is_unicast_link_local() => {
                return Next::drop(DropReason::IpNotForUs);
            }
            Reach::Beyond => Ok((0, super::to_a_user(port.interface))),
        };
        let (header_length, next) = match next {
            Ok(found) => found,
            Err(reason @ (DropReason::NoListener | DropReason::Ip6Fragment)) => {
                return unspoken(state, packet, reason);
            }
            Err(reason) => return Next::drop(reason),
        };
        packet.meta.header_length = header_length;
        packet.buffer.truncate(length).map_or(Next::drop(DropReason::Ip6Truncated), |()| next)
    }
}

/// Bytes of the header with its extensions, and who listens; to our address alone, and not to groups, all do.
fn to_us(ip: &ipv6::Packet<'_>, is_unicast: bool) -> Result<(u8, Next), DropReason> {
    let upper = ip.upper()?;
    let header_length = u8::try_from(upper.offset).map_err(|_| DropReason::Ip6Extension)?;
    let kind = ip.payload().get(upper.offset - ipv6::LENGTH..).and_then(<[u8]>::first);
    let node = match upper.protocol {
        protocol::UDP if is_unicast && upper.is_fragment() => NodeId::Reassembly,
        _ if upper.is_fragment() => return Err(DropReason::Ip6Fragment),
        protocol::UDP if is_unicast => NodeId::GtpuInput,
        protocol::ICMPV6 if kind.is_some_and(|kind| NDP.contains(kind)) => NodeId::Ndp,
        protocol::ICMPV6 => NodeId::Icmp6Echo,
        _ => return Err(DropReason::NoListener),
    };
    Ok((header_length, Next::To(node)))
}

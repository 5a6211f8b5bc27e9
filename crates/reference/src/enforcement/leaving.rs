//! Whether a packet that is forwarded may leave: destinations, hops and lengths.

use super::Marks;
use crate::detection::Arrival;
use crate::errors::Stopped;
use crate::reason::DropReason;
use crate::setup::Setup;
use rules::ForwardingParameters;
use std::net::IpAddr;

/// Between a tunnel and a plain network we are a router, which takes a hop off and knows what its ways take; from tunnel
/// to tunnel we are not. And no user may talk to this node.
pub(crate) fn may_leave(
    arrival: &Arrival,
    (to, leaves_for): (&ForwardingParameters, IpAddr),
    marks: Marks,
    setup: &Setup,
) -> Result<(), Refused> {
    let (header, plain) = (&arrival.packet.header, to.outer_header_creation.is_none());
    if plain && setup.is_ours(header.destination) {
        return Err(Refused::Quietly(DropReason::ToOurselves));
    }
    if plain && is_of_a_link(header.destination) {
        return Err(Refused::Quietly(DropReason::IpNotForUs));
    }
    if !plain && arrival.tunnel.is_some() {
        return Ok(());
    }
    if header.hops <= 1 {
        return Err(Refused::Stopped(Stopped::NoHopLeft));
    }
    match setup.room(leaves_for, to, marks) {
        Some(room) if arrival.packet.bytes.len() > room => Err(Refused::Stopped(Stopped::TooLong(room))),
        _ => Ok(()),
    }
}

/// Whether a destination is a station of a link of IPv6, nobody, this host or an address of IPv4 written as one of IPv6, or of IPv4
/// this host or everybody, or a group: no router forwards to it (RFC 4291 2.5.2, 2.5.3, 2.5.5, 2.5.6, 2.7; RFC 1812 4.2.2.11, 5.3.7;
/// groups are for those that know of multicast).
pub(crate) fn is_of_a_link(destination: IpAddr) -> bool {
    let address = match destination {
        IpAddr::V4(address) => return matches!(address.octets(), [0 | 127 | 224.., ..]),
        IpAddr::V6(address) => address,
    };
    // ::1 and :: are of ::/96, too.
    let stands_for_ipv4 = matches!(address.segments(), [0, 0, 0, 0, 0, 0 | 0xffff, _, _]);
    address.is_unicast_link_local() || address.is_multicast() || stands_for_ipv4
}

/// A packet that does not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Quietly(DropReason),
    /// Its sender may want to know.
    Stopped(Stopped),
}

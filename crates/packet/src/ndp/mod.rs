//! Neighbour discovery for IPv6 (RFC 4861), with DNS servers in router advertisements (RFC 8106).

mod advertisement;
mod message;
mod option;

pub use advertisement::{Dns, Prefix, RouterAdvertisement};
pub use message::{Malformed, Message, NeighbourAdvertisement, multicast_mac, solicited_node};

use std::net::Ipv6Addr;

/// All stations of a link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// All routers of a link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

#[cfg(test)]
mod tests;

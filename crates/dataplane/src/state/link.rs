//! Our IPv6 addresses on the link of a port (RFC 4291 2.8).

use crate::config::PortConfig;
use packet::ethernet::MacAddress;
use packet::ndp::{ALL_NODES, ALL_ROUTERS, solicited_node};
use std::net::Ipv6Addr;

/// The address every station has on its link, made of its Ethernet address (RFC 4291 appendix A, RFC 4862 5.3).
pub(crate) const fn link_local(mac: MacAddress) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from_octets([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// What an IPv6 destination is to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Our address.
    Us,
    /// Our link-local address, or a group of ours.
    UsOnLink,
    /// Another station of the link, or its groups: nothing a router forwards.
    Link,
    /// Beyond the link.
    Beyond,
}

impl PortConfig {
    /// What `destination` is to this port; one without an IPv6 address is on no link of IPv6.
    pub(crate) fn reach(&self, destination: Ipv6Addr) -> Reach {
        let of_link = destination.is_multicast() || destination.is_unicast_link_local();
        match self.address6.map(|address| address.addr()) {
            Some(ours) if ours == destination => Reach::Us,
            Some(_) if self.is_own6(destination) || self.is_group_of_ours(destination) => Reach::UsOnLink,
            _ if of_link => Reach::Link,
            _ => Reach::Beyond,
        }
    }

    /// Whether an address is ours: one we answer solicitations for.
    pub(crate) fn is_own6(&self, address: Ipv6Addr) -> bool {
        self.address6.is_some_and(|ours| ours.addr() == address || link_local(self.mac) == address)
    }

    /// The groups every router hears (RFC 4291 2.8).
    fn is_group_of_ours(&self, group: Ipv6Addr) -> bool {
        let own = self.address6.map(|ours| solicited_node(ours.addr()));
        [ALL_NODES, ALL_ROUTERS, solicited_node(link_local(self.mac))].contains(&group) || own == Some(group)
    }

    /// Whether a group is one of the link that routers, or whatever else speaks to all stations that care, may be in; stations'
    /// questions for each other are not that (RFC 4291 2.7.1).
    pub(crate) fn is_between_routers(&self, group: Ipv6Addr) -> bool {
        let is_of_link = group.segments()[0] == 0xff02;
        self.address6.is_some() && is_of_link && solicited_node(group) != group
    }

    /// The address we speak from to a station of the link.
    pub(crate) fn source6(&self, to: Ipv6Addr) -> Option<Ipv6Addr> {
        let ours = self.address6?.addr();
        Some(if to.is_unicast_link_local() { link_local(self.mac) } else { ours })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_is_made_of_the_mac() {
        let mac = MacAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        assert_eq!(link_local(mac).to_string(), "fe80::3656:78ff:fe9a:bcde");
    }
}

//! Where a packet leaves, by its destination and the side it leaves on.
//!
//! Each side has routes of its own: a user can never reach the access network's hosts through the core.

use super::Ports;
use crate::config::{ConfigError, Route};
use crate::frame::{NextHop, PortIndex};
use ipnet::Ipv4Net;
use rules::Interface;
use std::net::Ipv4Addr;

/// Longest prefix first.
pub(crate) struct Routes {
    entries: Box<[Entry]>,
}

struct Entry {
    interface: Interface,
    prefix: Ipv4Net,
    port: PortIndex,
    /// `None`: the destination itself is the next hop.
    via: Option<Ipv4Addr>,
}

impl Routes {
    pub(crate) fn new(ports: &Ports, routes: &[Route]) -> Result<Self, ConfigError> {
        let subnet = |(port, config): (PortIndex, &crate::PortConfig)| Entry {
            interface: config.interface,
            prefix: config.address.trunc(),
            port,
            via: None,
        };
        let mut entries: Vec<Entry> = ports.iter().map(subnet).collect();
        for route in routes {
            entries.push(entry(ports, route)?);
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.prefix.prefix_len()));
        Ok(Self { entries: entries.into() })
    }

    /// The next hop towards `destination` on one side.
    #[inline]
    pub(crate) fn find(&self, interface: Interface, destination: Ipv4Addr) -> Option<NextHop> {
        let leads = |entry: &&Entry| entry.interface == interface && entry.prefix.contains(&destination);
        let entry = self.entries.iter().find(leads)?;
        Some(NextHop { port: entry.port, address: entry.via.unwrap_or(destination) })
    }
}

fn entry(ports: &Ports, route: &Route) -> Result<Entry, ConfigError> {
    let reaches = |config: &crate::PortConfig| config.address.contains(&route.via);
    let (port, config) = ports
        .iter()
        .find(|(_, config)| reaches(config))
        .ok_or(ConfigError::UnreachableNextHop(route.prefix, route.via))?;
    Ok(Entry { interface: config.interface, prefix: route.prefix.trunc(), port, via: Some(route.via) })
}

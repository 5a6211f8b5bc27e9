//! Where a packet leaves, by its destination and the side it leaves on.
//!
//! Each side has routes of its own: a user can never reach the access network's hosts through the core.

use super::Ports;
use crate::config::{ConfigError, Route};
use crate::frame::{NextHop, PortIndex};
use ipnet::IpNet;
use rules::Interface;
use std::net::IpAddr;

/// Longest prefix first.
pub(crate) struct Routes {
    entries: Box<[Entry]>,
}

struct Entry {
    interface: Interface,
    prefix: IpNet,
    port: PortIndex,
    /// `None`: the destination itself is the next hop.
    via: Option<IpAddr>,
}

impl Routes {
    pub(crate) fn new(ports: &Ports, routes: &[Route]) -> Result<Self, ConfigError> {
        let mut entries: Vec<Entry> = ports.iter().flat_map(subnets).collect();
        for route in routes {
            entries.push(entry(ports, route)?);
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.prefix.prefix_len()));
        Ok(Self { entries: entries.into() })
    }

    /// The next hop towards `destination` on one side.
    #[inline]
    pub(crate) fn find(&self, interface: Interface, destination: IpAddr) -> Option<NextHop> {
        let leads = |entry: &&Entry| entry.interface == interface && entry.prefix.contains(&destination);
        let entry = self.entries.iter().find(leads)?;
        Some(NextHop { port: entry.port, address: entry.via.unwrap_or(destination) })
    }
}

/// The subnets of a port: their stations are reached directly.
fn subnets((port, config): (PortIndex, &crate::PortConfig)) -> impl Iterator<Item = Entry> {
    let prefixes = [Some(IpNet::from(config.address)), config.address6.map(IpNet::from)];
    let interface = config.interface;
    let direct = move |prefix: IpNet| Entry { interface, prefix: prefix.trunc(), port, via: None };
    prefixes.into_iter().flatten().map(direct)
}

fn entry(ports: &Ports, route: &Route) -> Result<Entry, ConfigError> {
    let reaches = |config: &crate::PortConfig| match route.via {
        IpAddr::V4(via) => config.address.contains(&via),
        IpAddr::V6(via) => config.address6.is_some_and(|address| address.contains(&via)),
    };
    let (port, config) = ports
        .iter()
        .find(|(_, config)| reaches(config))
        .ok_or(ConfigError::UnreachableNextHop(route.prefix, route.via))?;
    Ok(Entry { interface: config.interface, prefix: route.prefix.trunc(), port, via: Some(route.via) })
}

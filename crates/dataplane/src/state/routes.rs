//! Where a packet leaves, by its destination and the side it leaves on.
//!
//! Each side, and there each network instance, has routes of its own: a user can never reach the access network's hosts through the core.

use super::Ports;
use super::exits::Exit;
use crate::config::{ConfigError, Route};
use crate::frame::{NextHop, PortIndex};
use crate::side::Side;
use ipnet::IpNet;
use packet::ethernet;
use std::net::IpAddr;

/// Longest prefix first.
pub(crate) struct Routes {
    entries: Box<[Entry]>,
    /// Those for IPv4 again, as a packet's address is compared with them.
    ipv4: Box<[Entry4]>,
}

struct Entry4 {
    /// [`Side::bits`].
    side: u32,
    mask: u32,
    prefix: u32,
    port: PortIndex,
    via: Option<IpAddr>,
    /// How packets left that took this route before; of routes that name a next hop.
    exit: Option<Exit<ethernet::Header>>,
}

struct Entry {
    side: Side,
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
        Ok(Self { ipv4: entries.iter().filter_map(entry4).collect(), entries: entries.into() })
    }

    /// As [`Routes::find`], of an IPv4 address.
    #[inline]
    pub(crate) fn find_ipv4(&self, side: Side, destination: u32) -> Option<NextHop> {
        let entry = self.entry4(side, destination)?;
        let address = entry.via.unwrap_or(IpAddr::V4(destination.into()));
        Some(NextHop { port: entry.port, address })
    }

    /// How packets left that took the same way before.
    #[inline(always)]
    pub(crate) fn exit(&self, side: Side, destination: u32) -> Option<&Exit<ethernet::Header>> {
        self.entry4(side, destination)?.exit.as_ref()
    }

    /// Notes how packets leave that go the same way.
    pub(crate) fn note_exit(
        &mut self,
        (side, destination): (Side, u32),
        exit: impl FnOnce(NextHop) -> Option<Exit<ethernet::Header>>,
    ) {
        let entry = self.ipv4.iter_mut().find(|entry| entry.leads(side, destination));
        let Some((entry, address)) = entry.and_then(|entry| entry.via.map(|via| (entry, via))) else {
            return;
        };
        entry.exit = exit(NextHop { port: entry.port, address });
    }

    #[inline(always)]
    fn entry4(&self, side: Side, destination: u32) -> Option<&Entry4> {
        self.ipv4.iter().find(|entry| entry.leads(side, destination))
    }

    /// The next hop towards `destination` on one side.
    #[inline]
    pub(crate) fn find(&self, side: Side, destination: IpAddr) -> Option<NextHop> {
        let leads = |entry: &&Entry| entry.side == side && entry.prefix.contains(&destination);
        let entry = self.entries.iter().find(leads)?;
        Some(NextHop { port: entry.port, address: entry.via.unwrap_or(destination) })
    }
}

impl Entry4 {
    #[inline(always)]
    fn leads(&self, side: Side, destination: u32) -> bool {
        (self.side ^ side.bits()) | (destination & self.mask ^ self.prefix) == 0
    }
}

fn entry4(entry: &Entry) -> Option<Entry4> {
    let IpNet::V4(prefix) = entry.prefix else { return None };
    Some(Entry4 {
        side: entry.side.bits(),
        mask: prefix.netmask().to_bits(),
        prefix: prefix.network().to_bits(),
        port: entry.port,
        via: entry.via,
        exit: None,
    })
}

/// The subnets of a port: their stations are reached directly.
fn subnets((port, config): (PortIndex, &crate::PortConfig)) -> impl Iterator<Item = Entry> {
    let prefixes = [Some(IpNet::from(config.address)), config.address6.map(IpNet::from)];
    let side = config.side();
    let direct = move |prefix: IpNet| Entry { side, prefix: prefix.trunc(), port, via: None };
    prefixes.into_iter().flatten().take(if config.ethernet { 0 } else { 2 }).map(direct)
}

fn entry(ports: &Ports, route: &Route) -> Result<Entry, ConfigError> {
    let reaches = |config: &crate::PortConfig| match route.via {
        _ if config.ethernet => false,
        IpAddr::V4(via) => config.address.contains(&via),
        IpAddr::V6(via) => config.address6.is_some_and(|address| address.contains(&via)),
    };
    let is_meant = |config: &crate::PortConfig| route.instance.is_none_or(|meant| meant == config.instance);
    let (port, config) = ports
        .iter()
        .find(|(_, config)| is_meant(config) && reaches(config))
        .ok_or(ConfigError::UnreachableNextHop(route.prefix, route.via))?;
    Ok(Entry { side: config.side(), prefix: route.prefix.trunc(), port, via: Some(route.via) })
}

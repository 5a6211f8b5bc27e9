//! `[[dpe.route]]`: where next hops are, and what ports and routes must be together.

use super::Port;
use super::ports::{ipv4, ipv6, network};
use crate::settings::peers::whole;
use crate::settings::values::Prefix;
use config::{Refusal, Spanned};
use rules::{Instance, Interface};
use serde::Deserialize;
use std::net::IpAddr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Route {
    prefix: Spanned<Prefix>,
    via: Spanned<IpAddr>,
    network_instance: Option<Spanned<String>>,
}

impl From<Route> for dataplane::Route {
    fn from(route: Route) -> Self {
        Self {
            prefix: route.prefix.into_inner().0,
            via: route.via.into_inner(),
            instance: route.network_instance.map(|name| Instance::of(name.get_ref())),
        }
    }
}

pub(super) fn check_routes(routes: &[Route], ports: &[Port]) -> Result<(), Refusal> {
    for (at, route) in routes.iter().enumerate() {
        check_route(route, ports)?;
        check_alone(route, routes.get(..at).unwrap_or_default(), ports)?;
    }
    Ok(())
}

/// Of two routes to one prefix packets take the first, and never the other. Each side of each network has routes of its own.
fn check_alone(route: &Route, others: &[Route], ports: &[Port]) -> Result<(), Refusal> {
    let from =
        |route: &Route| port(route, ports).map(|port| (Interface::from(port.interface), network(port)));
    let is_same = |other: &&Route| other.prefix.get_ref() == route.prefix.get_ref();
    match others.iter().filter(is_same).any(|other| from(other) == from(route)) {
        true => Err(Refusal::of(&route.prefix, "another route of this side and network has this prefix")),
        false => Ok(()),
    }
}

fn check_route(route: &Route, ports: &[Port]) -> Result<(), Refusal> {
    let prefix = route.prefix.get_ref().0;
    whole(prefix).map_err(|why| Refusal::of(&route.prefix, why))?;
    if prefix.addr().is_ipv4() != route.via.get_ref().is_ipv4() {
        return Err(Refusal::of(&route.via, "is not of the family of the prefix"));
    }
    let Some(reached) = port(route, ports) else {
        return Err(Refusal::of(&route.via, "is in the subnet of no port"));
    };
    if ipv4(reached).is_some_and(|own| is_everybody(own, *route.via.get_ref())) {
        return Err(Refusal::of(
            &route.via,
            "is everybody in the subnet of its port: a next hop is one station",
        ));
    }
    // In another network it may be somebody else's.
    let mut near = ports.iter().filter(|port| network(port) == network(reached));
    match near.any(|port| has(port, *route.via.get_ref())) {
        true => Err(Refusal::of(&route.via, "is an address of this node: a next hop is another's")),
        false => Ok(()),
    }
}

/// Whether an address is the broadcast of a port's subnet, or its number, which used to be one. (RFC 3021: two stations have no such.)
fn is_everybody(own: ipnet::Ipv4Net, address: IpAddr) -> bool {
    own.prefix_len() < 31 && [own.broadcast(), own.network()].map(IpAddr::V4).contains(&address)
}

fn has(port: &Port, address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => ipv4(port).is_some_and(|own| own.addr() == address),
        IpAddr::V6(address) => ipv6(port).is_some_and(|own| own.addr() == address),
    }
}

/// The port by which its next hop is reached: the first, as the data plane has it.
fn port<'a>(route: &Route, ports: &'a [Port]) -> Option<&'a Port> {
    let reaches = |port: &Port| match route.via.get_ref() {
        IpAddr::V4(via) => ipv4(port).is_some_and(|address| address.contains(via)),
        IpAddr::V6(via) => ipv6(port).is_some_and(|address| address.contains(via)),
    };
    ports.iter().find(|port| is_of_network(port, route) && reaches(port))
}

/// Whether a port is of the network a route is of; one that names none is of whichever its next hop is in.
fn is_of_network(port: &Port, route: &Route) -> bool {
    let meant = route.network_instance.as_ref().map(|name| name.get_ref().to_ascii_lowercase());
    meant.is_none() || meant == network(port)
}

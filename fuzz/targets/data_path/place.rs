//! A random world, as a data plane is set up for it.

use dataplane::{Config, ContentRules, Echo, Limits, PortConfig, Route};
use packet::ethernet::MacAddress;
use reference::Setup;
use reference::worlds::{Scope, World};
use rules::*;

/// What may be changed in a world.
const CONTENT: u8 = 1;
const ENRICHMENT: u8 = 2;
const PORTAL: u8 = 4;
const CLAMPING: u8 = 8;

pub fn world(number: u8) -> World {
    World::within(number.into(), Scope { twin_tunnels: false, frames: false, applications: false, ..Scope::ALL })
}

/// Rules of content, where the changes ask for some.
pub fn content(changes: u8) -> Option<ContentRules> {
    let lines = "id=1 precedence=2 rating-group=1 application=blocked host=.blocked.example\n\
        id=2 precedence=1 rating-group=2 application=web path=/a*\n";
    let classifier = dpi::rule_file::read_lines(lines).ok()?.compile().ok()?;
    ContentRules::new(1, classifier, None).ok().filter(|_| changes & CONTENT != 0)
}

/// A session's rules with what random worlds have not, as the changes say.
pub fn changed(mut rules: Rules, changes: u8) -> Rules {
    for far in rules.fars.iter_mut().filter(|far| far.apply_action == ApplyAction::Forward) {
        let is_up = far.forwarding.is_some_and(|to| to.outer_header_creation.is_none());
        if changes & ENRICHMENT != 0 && is_up && far.redirect.is_none() {
            far.enrichment = HeaderField::new("X-MSISDN", "491701234567");
        } else if changes & PORTAL != 0 && is_up {
            far.redirect = Redirect::new("http://portal.example/more");
        }
    }
    let first = rules.pdrs.first().cloned().filter(|_| changes & CONTENT != 0);
    if let Some(first) = first {
        let id = PdrId(rules.pdrs.len() as u16 + 1);
        let mut pdr = Pdr { id, precedence: 0, ..first };
        pdr.pdi.application = ApplicationId::new("blocked");
        pdr.pdi.sdf_filters.clear();
        rules.pdrs.push(pdr);
    }
    rules
}

pub fn config(setup: &Setup, changes: u8) -> Config {
    let port = |(number, port): (usize, &reference::PortSetup)| PortConfig {
        name: format!("port {number}"),
        device: String::new(),
        interface: port.interface,
        instance: port.instance,
        mac: MacAddress(port.mac),
        address: port.ipv4,
        address6: port.ipv6,
        mtu: port.mtu,
        vlan: port.vlan,
        mss_clamp: port.mss_clamp || changes & CLAMPING != 0,
        ethernet: false,
        punt: (port.interface == Interface::Core).then(|| format!("host {number}")),
    };
    let route = |route: &reference::Route| Route {
        prefix: route.prefix,
        via: route.via,
        instance: Some(route.instance),
    };
    let limits = Limits {
        sessions: 16,
        pdrs: 2_048,
        flows: 64,
        peers: 64,
        // Memory is made anew for each input.
        inspections: 32,
        connections: 32,
        redirections: 64,
        meters_apart: 256,
        framed_routes: 256,
        ethernet_sessions: 1,
        macs: 8,
        kept: 8,
        neighbours: 16,
        held_per_neighbour: 2,
        error_indications_per_s: 2,
        burst_ns: setup.burst_ns,
        session_mbr: setup.session_mbr,
        ..Limits::default()
    };
    Config {
        ports: setup.ports.iter().enumerate().map(port).collect(),
        routes: setup.routes.iter().map(route).collect(),
        policies: vec![],
        limits,
        resolvers: vec![],
        echo: Echo::default(),
        epoch: 1,
        awaits_sessions: false,
        seed: 1,
        lasting: None,
    }
}

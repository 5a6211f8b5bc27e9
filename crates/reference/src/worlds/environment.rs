//! Ports, routes and neighbours of random worlds, and the addresses that their rules and packets use.

use super::random::{Random, chance, maybe, pick};
use super::{Scope, stations};
use crate::setup::{Neighbour, PortSetup, Route, Setup};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rules::{BitRates, Instance, Interface};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Places of the ports.
pub(super) const N3: usize = 0;
pub(super) const N9: usize = 2;

/// The port of the second network.
const N6_IMS: usize = 4;

/// The second octet of a port's subnet: 10.x.0.0/24 and fd00:x::/64.
const SUBNETS: [u8; 5] = [30, 50, 40, 70, 80];
/// Hosts of each subnet whose Ethernet address is known.
const HOSTS: [u8; 2] = [1, 3];

/// An address of the subnet of a port.
pub(super) fn host(port: usize, number: u8, ipv6: bool) -> IpAddr {
    let subnet = SUBNETS.get(port).copied().unwrap_or(0);
    near(subnet, number, ipv6)
}

fn near(subnet: u8, number: u8, ipv6: bool) -> IpAddr {
    match ipv6 {
        true => Ipv6Addr::new(0xfd00, subnet.into(), 0, 0, 0, 0, 0, number.into()).into(),
        false => Ipv4Addr::new(10, subnet, 0, number).into(),
    }
}

/// A peer of the access or core side: on the wire, behind a router, or, rarely, where no route leads.
pub(super) fn peer(random: &mut Random, port: usize, ipv6: bool) -> IpAddr {
    let subnet = SUBNETS.get(port).copied().unwrap_or(0);
    match random.next_below(40) {
        0 if port == N3 => near(99, 9, ipv6),
        1..=10 => near(subnet + 1, 9, ipv6),
        11..=20 => near(subnet, 3, ipv6),
        _ => near(subnet, 1, ipv6),
    }
}

/// Draws without bias worth mentioning.
pub(super) trait Below {
    /// From 0 up to, not including, a limit.
    fn next_below(&mut self, limit: u32) -> u32;
}

impl Below for Random {
    fn next_below(&mut self, limit: u32) -> u32 {
        rand::Rng::random_range(self, 0..limit.max(1))
    }
}

/// A session's user: 10.60.0.n, and 2001:db8:60:n::/64 or one address of it.
pub(super) fn user_ipv4(number: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 60, 0, number as u8)
}

pub(super) fn user_ipv6(random: &mut Random, number: u32) -> Ipv6Net {
    let address = Ipv6Addr::new(0x2001, 0xdb8, 0x60, number as u16, 0, 0, 0, 1);
    let length = pick(random, [64, 64, 64, 128]);
    Ipv6Net::new(address, length).unwrap_or_default()
}

/// Hosts of the data network.
pub(super) fn server(random: &mut Random, ipv6: bool) -> IpAddr {
    match ipv6 {
        true => {
            let net = pick(random, [0xff, 0xff, 0xfe]);
            Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, pick(random, [0x80, 0x81])).into()
        }
        false => pick(
            random,
            [[203, 0, 113, 80], [203, 0, 113, 80], [203, 0, 113, 81], [198, 51, 100, 7], [10, 50, 0, 1]],
        )
        .into(),
    }
}

/// The second network.
pub(super) fn ims() -> Instance {
    Instance::of("ims")
}

/// Whether there is one.
pub(super) const fn has_instances(scope: Scope) -> bool {
    scope.instances && scope.core_tunnels
}

fn instance_of(place: usize) -> Instance {
    if place == N6_IMS { ims() } else { Instance::DEFAULT }
}

/// N3 and N6 always, N9 and an SGi-LAN port where tunnels of the core side are in scope, and N6 of the second network.
pub(super) fn setup(random: &mut Random, scope: Scope) -> Setup {
    let mtu = pick(random, [1500, 1500, 1300, 1400, 9000]);
    let interfaces =
        [Interface::Access, Interface::Core, Interface::Core, Interface::SgiLan, Interface::Core];
    let count = match scope.core_tunnels {
        true => interfaces.len() - usize::from(!has_instances(scope)),
        false => 2,
    };
    let port = |(place, interface): (usize, Interface)| PortSetup {
        interface,
        instance: instance_of(place),
        mac: [2, 0, 0, 0, place as u8, 2],
        ipv4: ipv4_net(host(place, 2, false)),
        ipv6: if scope.ipv6_transport { ipv6_net(host(place, 2, true)) } else { None },
        mtu,
        vlan: None,
        mss_clamp: false,
    };
    let ports: Vec<PortSetup> = interfaces.into_iter().take(count).enumerate().map(port).collect();
    let mut setup = Setup { one_teid_space_per_port: !scope.twin_tunnels, ..Setup::new(ports) };
    for place in 0..count {
        for ipv6 in [false, true].into_iter().take(1 + usize::from(scope.ipv6_transport)) {
            add_surroundings(&mut setup, place, ipv6);
        }
    }
    if scope.frames {
        stations::add_ports(random, &mut setup);
    }
    for port in &mut setup.ports {
        port.vlan = if scope.vlans { maybe(random, 150, |random| pick(random, [1, 7, 4_094])) } else { None };
        port.mss_clamp = scope.clamping && chance(random, 150);
    }
    if scope.rates && chance(random, 200) {
        setup.burst_ns = pick(random, [0, 1_000_000, 50_000_000]);
    }
    if scope.rates && chance(random, 300) {
        let mut kbps = || pick(random, [3_333, 20_000, 100_000]);
        setup.session_mbr = Some(BitRates { uplink_kbps: kbps(), downlink_kbps: kbps() });
    }
    // Networks that are all that there is.
    if chance(random, 100) {
        setup.routes.retain(|route| route.prefix.prefix_len() > 0);
    }
    setup
}

/// Known neighbours; a router to the next subnet, and towards the data network a router to the world.
fn add_surroundings(setup: &mut Setup, place: usize, ipv6: bool) {
    let neighbour = |number| Neighbour {
        port: place,
        address: host(place, number, ipv6),
        mac: [2, 0, 0, u8::from(ipv6), place as u8, number],
    };
    setup.neighbours.extend(HOSTS.map(neighbour));
    let (via, instance) = (host(place, 1, ipv6), instance_of(place));
    let subnet = SUBNETS.get(place).copied().unwrap_or(0);
    setup.routes.push(Route {
        prefix: net(near(subnet + 1, 0, ipv6), if ipv6 { 32 } else { 16 }),
        via,
        instance,
    });
    if [1, 3, N6_IMS].contains(&place) {
        setup.routes.push(Route { prefix: net(near(0, 0, ipv6), 0), via, instance });
        let other = if ipv6 { "2001:db8:fe::/48" } else { "198.51.100.0/24" };
        let route = other.parse().map(|prefix| Route { prefix, via: host(place, 3, ipv6), instance });
        setup.routes.extend(route.ok());
    }
}

fn net(address: IpAddr, length: u8) -> IpNet {
    IpNet::new(address, length).map(|net| net.trunc()).unwrap_or_default()
}

fn ipv4_net(address: IpAddr) -> Ipv4Net {
    match address {
        IpAddr::V4(address) => Ipv4Net::new(address, 24).unwrap_or_default(),
        IpAddr::V6(_) => Ipv4Net::default(),
    }
}

fn ipv6_net(address: IpAddr) -> Option<Ipv6Net> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Ipv6Net::new(address, 64).ok(),
    }
}

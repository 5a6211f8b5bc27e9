//! What the reference must know before the first packet: ports, routes, neighbours.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rules::{BitRates, FTeid, Instance, Interface, Rules};
use std::net::{IpAddr, Ipv6Addr};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// One port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSetup {
    /// The side it is on.
    pub interface: Interface,
    /// The network instance it belongs to; of no matter on the access side.
    pub instance: Instance,
    /// Our Ethernet address there.
    pub mac: Mac,
    /// Our IPv4 address and subnet there.
    pub ipv4: Ipv4Net,
    /// Our IPv6 address and subnet there, if any.
    pub ipv6: Option<Ipv6Net>,
    /// Bytes of the longest IP packet.
    pub mtu: u16,
    /// The VLAN all its frames are of, if any.
    pub vlan: Option<u16>,
    /// TCP connections of users are to fit into what passes it.
    pub mss_clamp: bool,
}

/// A port of Ethernet: a data network whose frames pass as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePort {
    /// The side it is on, and its network instance.
    pub network: (Interface, Instance),
    /// Bytes of the longest payload of a frame.
    pub mtu: u16,
}

/// A route beyond the subnets of the ports. It belongs to the side of the port its next hop is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// To where.
    pub prefix: IpNet,
    /// The next hop, in the subnet of one of the ports.
    pub via: IpAddr,
    /// The network instance of that port.
    pub instance: Instance,
}

/// A station whose Ethernet address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The port it is behind, by its place in [`Setup::ports`].
    pub port: usize,
    /// Its IP address.
    pub address: IpAddr,
    /// Its Ethernet address.
    pub mac: Mac,
}

/// The whole environment of a data path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// By place.
    pub ports: Vec<PortSetup>,
    /// By place, behind all others.
    pub frame_ports: Vec<FramePort>,
    /// In any order; the longest prefix wins, then the first.
    pub routes: Vec<Route>,
    /// Known from the start, and never forgotten.
    pub neighbours: Vec<Neighbour>,
    /// How far ahead of its rate a meter lets a user get, in nanoseconds.
    pub burst_ns: u64,
    /// How far a packet may be ahead that catches up on what was not used of its MBR in the last second.
    pub catch_up_ns: u64,
    /// What a user is held to each way whose rules have no limit.
    pub session_mbr: Option<BitRates>,
    /// Packets that wait for one neighbour's Ethernet address at most.
    pub held_per_neighbour: usize,
    /// Both addresses of a port share one space of TEIDs: a tunnel is found, and an F-TEID matches, at either. As the
    /// specification has it, they do not.
    pub one_teid_space_per_port: bool,
}

impl Setup {
    /// These ports, and everything else as data planes have it by default.
    pub const fn new(ports: Vec<PortSetup>) -> Self {
        Self {
            ports,
            frame_ports: Vec::new(),
            routes: Vec::new(),
            neighbours: Vec::new(),
            burst_ns: 10_000_000,
            catch_up_ns: 250_000_000,
            session_mbr: None,
            held_per_neighbour: 16,
            one_teid_space_per_port: false,
        }
    }
}

/// An environment that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// No port reaches the next hop.
    #[error("route {0} goes via {1}, which is in the subnet of no port")]
    UnreachableNextHop(IpNet, IpAddr),
    /// A prefix of one version and a next hop of the other.
    #[error("route {0} goes via {1}, an address of the other version of IP")]
    MixedVersions(IpNet, IpAddr),
    /// A neighbour behind no port.
    #[error("neighbour {0} is behind port {1}, which does not exist")]
    NoSuchPort(IpAddr, usize),
}

impl PortSetup {
    /// Our address there of the same version as `other`.
    pub(crate) fn address_like(&self, other: IpAddr) -> Option<IpAddr> {
        match other {
            IpAddr::V4(_) => Some(self.ipv4.addr().into()),
            IpAddr::V6(_) => self.ipv6.map(|net| net.addr().into()),
        }
    }

    /// The network it is a port of.
    pub(crate) fn network(&self) -> Network {
        network(self.interface, self.instance)
    }

    /// Our subnets there.
    pub(crate) fn subnets(&self) -> impl Iterator<Item = IpNet> {
        std::iter::once(IpNet::V4(self.ipv4)).chain(self.ipv6.map(IpNet::V6))
    }

    /// The address every station has on its link, made of its Ethernet address (RFC 4291 appendix A, RFC 4862 5.3),
    /// where it has others.
    pub(crate) fn link_local(&self) -> Option<Ipv6Addr> {
        self.ipv6.map(|_| self.made_of_mac())
    }

    /// The link-local address that its MAC address makes (RFC 4291 2.5.6, appendix A).
    pub(crate) const fn made_of_mac(&self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.mac;
        Ipv6Addr::from_octets([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }

    /// Whether an address is ours there.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.address_like(address) == Some(address)
    }
}

/// A side, and there one of several networks.
pub(crate) type Network = (Interface, Instance);

/// The access side is one network, whatever it is called: tunnels tell everything apart there.
pub(crate) fn network(interface: Interface, instance: Instance) -> Network {
    match interface {
        Interface::Access => (interface, Instance::DEFAULT),
        Interface::Core | Interface::SgiLan => (interface, instance),
    }
}

/// Where a packet goes next on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    pub(crate) port: usize,
    pub(crate) address: IpAddr,
}

impl Setup {
    /// Without a port of its own the SGi-LAN is where the core is.
    pub(crate) fn lan_at_core(&self, rules: &mut Rules) {
        if self.ports.iter().any(|port| port.interface == Interface::SgiLan) {
            return;
        }
        let sources = rules.pdrs.iter_mut().map(|pdr| &mut pdr.pdi.source_interface);
        let parameters =
            rules.fars.iter_mut().flat_map(|far| far.forwarding.iter_mut().chain(&mut far.duplicates));
        let sides = sources.chain(parameters.map(|to| &mut to.destination_interface));
        sides.filter(|side| **side == Interface::SgiLan).for_each(|side| *side = Interface::Core);
    }

    /// Refuses what could never work.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        for route in &self.routes {
            if route.via.is_ipv4() != route.prefix.addr().is_ipv4() {
                return Err(SetupError::MixedVersions(route.prefix, route.via));
            }
            if self.port_towards(route).is_none() {
                return Err(SetupError::UnreachableNextHop(route.prefix, route.via));
            }
        }
        match self.neighbours.iter().find(|neighbour| neighbour.port >= self.ports.len()) {
            Some(neighbour) => Err(SetupError::NoSuchPort(neighbour.address, neighbour.port)),
            None => Ok(()),
        }
    }

    /// The first port of a route's network with a subnet its next hop is in.
    fn port_towards(&self, route: &Route) -> Option<usize> {
        let reaches = |port: &PortSetup| port.subnets().any(|subnet| subnet.contains(&route.via));
        self.ports.iter().position(|port| port.instance == route.instance && reaches(port))
    }

    /// The next hop towards `destination` in one network: a user can never reach hosts of another.
    pub(crate) fn next_hop(&self, side: Network, destination: IpAddr) -> Option<NextHop> {
        let mut best: Option<(u8, NextHop)> = None;
        let mut consider = |prefix: IpNet, next_hop: NextHop| {
            let longer = best.is_none_or(|(length, _)| prefix.prefix_len() > length);
            if prefix.contains(&destination) && longer {
                best = Some((prefix.prefix_len(), next_hop));
            }
        };
        for (port, setup) in self.ports.iter().enumerate().filter(|(_, port)| port.network() == side) {
            setup.subnets().for_each(|subnet| consider(subnet, NextHop { port, address: destination }));
        }
        for route in &self.routes {
            let port = self.port_towards(route);
            let on_side = |port: &usize| self.ports.get(*port).is_some_and(|setup| setup.network() == side);
            if let Some(port) = port.filter(on_side) {
                consider(route.prefix, NextHop { port, address: route.via });
            }
        }
        best.map(|(_, next_hop)| next_hop)
    }

    /// The network by which the other end of a tunnel is reached that leads to a network. It may be on the wire of a port
    /// of another side: the packets are ours, not a user's. Failing that, a network without ports uses the first port.
    pub(crate) fn side_of_peer(&self, side: Network, peer: IpAddr) -> Network {
        let on_the_wire =
            |port: &PortSetup| port.subnets().any(|subnet| subnet.contains(&peer) && subnet.addr() != peer);
        let own: Vec<&PortSetup> = self.ports.iter().filter(|port| port.network() == side).collect();
        if own.iter().any(|port| on_the_wire(port)) {
            return side;
        }
        match self.ports.iter().find(|port| on_the_wire(port)) {
            Some(other) => other.network(),
            None if own.is_empty() => self.ports.first().map_or(side, PortSetup::network),
            None => side,
        }
    }

    /// The tunnel, by the name it has in its space of TEIDs.
    pub(crate) fn canonical(&self, mut f_teid: FTeid) -> FTeid {
        if self.one_teid_space_per_port
            && let Some(port) = self.ports.iter().find(|port| port.has(f_teid.address))
        {
            f_teid.address = port.ipv4.addr().into();
        }
        f_teid
    }

    /// Whether an address is one of ours, on any port.
    pub(crate) fn is_ours(&self, address: IpAddr) -> bool {
        self.ports.iter().any(|port| port.has(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup {
        let port = |interface, ipv4: &str| PortSetup {
            interface,
            instance: Instance::DEFAULT,
            mac: [2; 6],
            ipv4: ipv4.parse().unwrap(),
            ipv6: None,
            mtu: 1500,
            vlan: None,
            mss_clamp: false,
        };
        Setup::new(vec![port(Interface::Access, "10.30.0.2/24"), port(Interface::Core, "10.50.0.2/24")])
    }

    fn route(prefix: &str, via: &str) -> Route {
        Route { prefix: prefix.parse().unwrap(), via: via.parse().unwrap(), instance: Instance::DEFAULT }
    }

    fn hop(setup: &Setup, side: Interface, to: &str) -> Option<(usize, String)> {
        let hop = setup.next_hop((side, Instance::DEFAULT), to.parse().unwrap())?;
        Some((hop.port, hop.address.to_string()))
    }

    #[test]
    fn the_longest_prefix_of_the_side_wins() {
        let mut setup = setup();
        setup.routes = vec![
            route("0.0.0.0/0", "10.50.0.1"),
            route("198.51.100.0/24", "10.50.0.9"),
            route("0.0.0.0/0", "10.50.0.7"),
        ];
        assert_eq!(setup.check(), Ok(()));
        let found = |to| hop(&setup, Interface::Core, to).unwrap();
        assert_eq!(found("198.51.100.5"), (1, "10.50.0.9".to_owned()));
        assert_eq!(found("203.0.113.5"), (1, "10.50.0.1".to_owned()));
        assert_eq!(found("10.50.0.77"), (1, "10.50.0.77".to_owned()));
        assert_eq!(hop(&setup, Interface::Access, "203.0.113.5"), None);
        assert_eq!(hop(&setup, Interface::Access, "10.30.0.5"), Some((0, "10.30.0.5".to_owned())));
    }

    #[test]
    fn networks_have_routes_of_their_own() {
        let (mut setup, ims) = (setup(), Instance::of("ims"));
        setup.ports.push(PortSetup { instance: ims, ..setup.ports[1].clone() });
        setup.routes = vec![Route { instance: ims, ..route("0.0.0.0/0", "10.50.0.9") }];
        let server = "203.0.113.5".parse().unwrap();
        assert_eq!(setup.next_hop((Interface::Core, Instance::DEFAULT), server), None);
        assert_eq!(setup.next_hop((Interface::Core, ims), server).map(|hop| hop.port), Some(2));
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let mut setup = setup();
        setup.routes = vec![route("0.0.0.0/0", "192.0.2.1")];
        assert!(matches!(setup.check(), Err(SetupError::UnreachableNextHop(..))));
        setup.routes = vec![route("::/0", "10.50.0.1")];
        assert!(matches!(setup.check(), Err(SetupError::MixedVersions(..))));
        setup.routes.clear();
        setup.neighbours = vec![Neighbour { port: 2, address: "10.50.0.1".parse().unwrap(), mac: [2; 6] }];
        assert!(matches!(setup.check(), Err(SetupError::NoSuchPort(_, 2))));
    }
}

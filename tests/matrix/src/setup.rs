//! One node: addresses, ports and limits that node and data path agree on.

use dataplane::{Echo, Limits, PortConfig, Route};
use n4::GtpuAddress;
use packet::ethernet::MacAddress;
use pfcp::NodeId;
use rules::{Instance, Interface};
use std::net::Ipv4Addr;

/// The port to radios.
pub const N3: usize = 0;
/// The port to the data network.
pub const N6: usize = 1;
/// The port of a third network, where there is one.
pub const N9: usize = 2;
/// Where we speak PFCP.
pub const US: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 2);
/// Ours on N3.
pub const N3_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);
/// Ours on N6.
pub const N6_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 2);
/// Ours on N9.
pub const N9_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 2);
/// Beyond it is the data network.
pub const N6_ROUTER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 1);

/// The PFCP node.
pub fn node_config() -> n4::Config {
    let usual = n4::Config::new(NodeId::Ipv4(US), US, N3_ADDRESS);
    let core = GtpuAddress { interface: Interface::Core, ..GtpuAddress::access(N6_ADDRESS) };
    n4::Config { gtpu: vec![GtpuAddress::access(N3_ADDRESS), core], ..usual }
}

/// The data path; peers are not asked whether they are there.
pub fn plane_config() -> dataplane::Config {
    let ports = vec![port("n3", Interface::Access, N3_ADDRESS), port("n6", Interface::Core, N6_ADDRESS)];
    let routes = vec![Route { prefix: "0.0.0.0/0".parse().unwrap(), via: N6_ROUTER.into(), instance: None }];
    let limits = Limits { sessions: 256, pdrs: 4_096, flows: 1_024, kept: 256, ..Limits::default() };
    dataplane::Config {
        ports,
        routes,
        policies: vec![],
        limits,
        echo: Echo::OFF,
        resolvers: vec![],
        epoch: 1,
        awaits_sessions: false,
        seed: 0,
        lasting: None,
    }
}

/// The same, with a way for users' IPv6 packets.
pub fn plane_config6() -> dataplane::Config {
    let mut config = plane_config();
    config.ports[N6].address6 = Some("2001:db8:50::2/64".parse().unwrap());
    let via = "2001:db8:50::1".parse().unwrap();
    config.routes.push(Route { prefix: "::/0".parse().unwrap(), via, instance: None });
    config
}

/// The same, with a port of a third network on that side.
pub fn plane_config3(side: Interface) -> dataplane::Config {
    let mut config = plane_config();
    config.ports.push(port("n9", side, N9_ADDRESS));
    config
}

/// Ours at a port.
pub fn address_of(port: usize) -> Ipv4Addr {
    [N3_ADDRESS, N6_ADDRESS, N9_ADDRESS][port]
}

/// Our Ethernet address at a port.
pub(crate) fn mac_of_port(port: usize) -> MacAddress {
    mac_of_ours(address_of(port))
}

fn mac_of_ours(address: Ipv4Addr) -> MacAddress {
    let [_, network, _, station] = address.octets();
    MacAddress([2, 0, 0, 0, network, station])
}

fn port(name: &str, interface: Interface, address: Ipv4Addr) -> PortConfig {
    PortConfig {
        name: name.to_owned(),
        device: format!("net_{name}"),
        interface,
        instance: Instance::DEFAULT,
        mac: mac_of_ours(address),
        address: format!("{address}/24").parse().unwrap(),
        address6: None,
        mtu: 1_500,
        vlan: None,
        mss_clamp: false,
        ethernet: false,
        punt: None,
    }
}

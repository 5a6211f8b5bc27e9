//! What ports must be together.

use super::Port;
use crate::settings::values::DeviceHash;
use config::Refusal;
use ipnet::{Ipv4Net, Ipv6Net};
use rules::{Instance, Interface};

/// As many as a data path can have.
const PORTS_MAX: usize = 16;

/// Characters of the longest name of an interface (IFNAMSIZ, less its end).
const INTERFACE_MAX: usize = 15;

/// As long as a name of labels may be (TS 23.003 9.1).
const NAME_MAX: usize = 100;

pub(super) fn check_ports(ports: &[Port]) -> Result<(), Refusal> {
    if ports.len() > PORTS_MAX {
        return Err(Refusal::absent(format!("{} ports are more than the {PORTS_MAX} allowed", ports.len())));
    }
    for (at, port) in ports.iter().enumerate() {
        let others = ports.get(..at).unwrap_or_default();
        if others.iter().any(|other| other.name.get_ref() == port.name.get_ref()) {
            return Err(Refusal::of(&port.name, "another port has this name"));
        }
        if others.iter().any(|other| other.device.get_ref() == port.device.get_ref()) {
            return Err(Refusal::of(&port.device, "another port has this device"));
        }
        check_interface(port, others)?;
        check_network(port, others)?;
        check_ethernet(port, others)?;
        check_hash(port)?;
        check_punt(port, others)?;
        check_addresses(port, others)?;
        check_subnets(port, others)?;
    }
    match ports.iter().any(|port| Interface::from(port.interface) == Interface::Access) {
        true => Ok(()),
        false => {
            Err(Refusal::absent("a [[dpe.port]] with interface = \"access\" is needed: tunnels end there"))
        }
    }
}

/// The driver has all its sockets of one interface share out what comes there, so that each port would get a part of it, which
/// is not that of its VLAN either.
fn check_interface(port: &Port, others: &[Port]) -> Result<(), Refusal> {
    let is_other = |interface| others.iter().all(|other| packet_interface(other) != Some(interface));
    match packet_interface(port).is_none_or(is_other) {
        true => Ok(()),
        false => Err(Refusal::of(
            &port.device,
            "another port of AF_PACKET is on this interface, and one alone can be",
        )),
    }
}

/// The kernel's interface that a port of AF_PACKET is on.
fn packet_interface(port: &Port) -> Option<&str> {
    let (driver, arguments) = port.device.get_ref().0.split_once(',')?;
    let is_it = ["net_af_packet", "eth_af_packet"].iter().any(|name| driver.starts_with(name));
    let mut arguments = arguments.split(',').filter(|_| is_it);
    arguments.find_map(|argument| argument.strip_prefix("iface="))
}

fn check_addresses(port: &Port, others: &[Port]) -> Result<(), Refusal> {
    let of_another = "another port has this address";
    if let Some(address) = &port.address {
        let own = address.get_ref().0.addr();
        if others.iter().any(|other| ipv4(other).is_some_and(|other| other.addr() == own)) {
            return Err(Refusal::of(address, of_another));
        }
    }
    if let Some(address) = &port.ipv6 {
        let own = address.get_ref().0.addr();
        if others.iter().any(|other| ipv6(other).is_some_and(|other| other.addr() == own)) {
            return Err(Refusal::of(address, of_another));
        }
    }
    Ok(())
}

/// What leaves on a side for one of its subnets leaves by the first port that has it, and never by another. One within another is
/// fine, as the longer goes first, and so is the same one on the other side or in another network instance, which have routes of
/// their own.
fn check_subnets(port: &Port, others: &[Port]) -> Result<(), Refusal> {
    let side = |port: &Port| (Interface::from(port.interface), network(port));
    let mut others = others.iter().filter(|other| side(other) == side(port));
    let is_first_to =
        "another port of this side and network has this subnet, and nothing would leave by this one";
    let subnet = |port: &Port| ipv4(port).map(|address| address.trunc());
    if let Some(address) = &port.address
        && others.clone().any(|other| subnet(other) == subnet(port))
    {
        return Err(Refusal::of(address, is_first_to));
    }
    let subnet = |port: &Port| ipv6(port).map(|address| address.trunc());
    match port.ipv6.as_ref().filter(|_| others.any(|other| subnet(other) == subnet(port))) {
        Some(address) => Err(Refusal::of(address, is_first_to)),
        None => Ok(()),
    }
}

/// The name of its network, as networks are told apart by it.
pub(super) fn network(port: &Port) -> Option<String> {
    port.network_instance.as_ref().map(|name| name.get_ref().to_ascii_lowercase())
}

/// A port of Ethernet has no address; every other has one.
fn check_ethernet(port: &Port, others: &[Port]) -> Result<(), Refusal> {
    let Some(ethernet) = port.ethernet.as_ref().filter(|_| is_ethernet(port)) else {
        return match port.address {
            Some(_) => Ok(()),
            None => Err(Refusal::of(&port.name, "needs an address, as it is not a port of Ethernet")),
        };
    };
    if let Some(address) = &port.address {
        return Err(Refusal::of(address, "a port of Ethernet has no address"));
    }
    if let Some(address) = &port.ipv6 {
        return Err(Refusal::of(address, "a port of Ethernet has no address"));
    }
    if let Some(interfaces) = &port.interfaces {
        return Err(Refusal::of(interfaces, "a port of Ethernet has no address where tunnels could end"));
    }
    if Interface::from(port.interface) == Interface::Access {
        return Err(Refusal::of(ethernet, "an Ethernet data network is on the core side"));
    }
    match others.iter().any(|other| is_ethernet(other) && network(other) == network(port)) {
        true => Err(Refusal::of(ethernet, "another port of this network instance is of Ethernet")),
        false => Ok(()),
    }
}

/// What the kernel takes for the name of an interface, and does not read anything else into.
fn check_punt(port: &Port, others: &[Port]) -> Result<(), Refusal> {
    let Some(punt) = &port.punt else { return Ok(()) };
    let name = punt.get_ref();
    let is_odd = |c: char| !c.is_ascii_graphic() || matches!(c, '/' | ':' | '%');
    if name.is_empty()
        || name.len() > INTERFACE_MAX
        || name.contains(is_odd)
        || [".", ".."].contains(&name.as_str())
    {
        let shape = "an interface has a name of 1 to 15 letters, digits, '-', '_' and '.', like n6-host";
        return Err(Refusal::of(punt, shape));
    }
    if is_ethernet(port) {
        return Err(Refusal::of(
            punt,
            "a port of Ethernet has no address of its own for the kernel to be reached at",
        ));
    }
    match others.iter().filter_map(|other| other.punt.as_ref()).any(|other| other.get_ref() == name) {
        true => Err(Refusal::of(punt, "another port has this interface")),
        false => Ok(()),
    }
}

/// Tunnels end at access ports alone.
fn check_hash(port: &Port) -> Result<(), Refusal> {
    let is_access = Interface::from(port.interface) == Interface::Access;
    match port.hash.as_ref().filter(|hash| *hash.get_ref() == DeviceHash::Teid && !is_access) {
        Some(hash) => {
            Err(Refusal::of(hash, "only access ports see TEIDs; the core ports of such a card are \"inner\""))
        }
        None => Ok(()),
    }
}

/// Names are told apart by a digest.
fn check_network(port: &Port, others: &[Port]) -> Result<(), Refusal> {
    let Some(name) = &port.network_instance else { return Ok(()) };
    if name.get_ref().is_empty() || name.get_ref().len() > NAME_MAX {
        return Err(Refusal::of(name, "a network instance has a name of 1 to 100 characters"));
    }
    let others = others.iter().filter_map(|other| other.network_instance.as_ref());
    let mut others = others.filter(|other| !other.get_ref().eq_ignore_ascii_case(name.get_ref()));
    match others.any(|other| Instance::of(other.get_ref()) == Instance::of(name.get_ref())) {
        true => Err(Refusal::of(name, "cannot be told apart from the name of another network instance")),
        false => Ok(()),
    }
}

pub(super) fn ipv4(port: &Port) -> Option<Ipv4Net> {
    port.address.as_ref().map(|address| address.get_ref().0)
}

pub(super) fn ipv6(port: &Port) -> Option<Ipv6Net> {
    port.ipv6.as_ref().map(|address| address.get_ref().0)
}

pub(super) fn is_ethernet(port: &Port) -> bool {
    port.ethernet.as_ref().is_some_and(|ethernet| *ethernet.get_ref())
}

//! The file as it is written, and what its values must be together.

#[cfg(test)]
mod tests;

use super::values::{
    Balance, ConnectionAge, DeviceHash, EchoN3, EchoPeriod, EchoT3, EnrichedConnections, ExactRules, Flows,
    FramedRoutes, HugePages, Idle, IdleUs, Inspections, MemoryMb, Mtu, Pdrs, PortAddress, PortAddress6,
    PortInterface, Sessions, Side, Vlan, Workers,
};
use super::{
    CrewSettings, DpeSettings, PortSettings, Settings, advertised, charging, classes, crew, exact, limits, n4,
};
use crate::content::Sources;
use ::n4::InterfaceTypes;
use config::{NodeIdText, Refusal, Spanned};
use dpi::rule_file::Category;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rules::{Instance, Interface};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// As many as a data path can have.
const PORTS_MAX: usize = 16;
/// As long as a name of labels may be (TS 23.003 9.1).
const NAME_MAX: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    node: Node,
    dpe: Dpe,
    n4: n4::N4,
    charging: Option<charging::File>,
    content: Option<Content>,
    metrics: Option<Metrics>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    id: NodeIdText,
    run_dir: PathBuf,
    state_dir: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dpe {
    #[serde(default)]
    memory_mb: MemoryMb,
    #[serde(default)]
    huge_pages: HugePages,
    idle: Option<Spanned<Idle>>,
    #[serde(default)]
    idle_us: IdleUs,
    #[serde(default)]
    workers: Workers,
    cpus: Option<Spanned<Vec<usize>>>,
    distributors: Option<Spanned<usize>>,
    #[serde(default)]
    balance: Balance,
    #[serde(default)]
    sessions: Sessions,
    pdrs: Option<Spanned<Pdrs>>,
    #[serde(default)]
    framed_routes: FramedRoutes,
    #[serde(default)]
    flows: Flows,
    #[serde(default)]
    limits: limits::File,
    #[serde(default)]
    echo: Echo,
    port: Vec<Port>,
    #[serde(default)]
    route: Vec<Route>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Echo {
    #[serde(default)]
    period_s: EchoPeriod,
    #[serde(default)]
    t3_s: EchoT3,
    #[serde(default)]
    n3: EchoN3,
}

impl From<Echo> for dataplane::Echo {
    fn from(echo: Echo) -> Self {
        const S: u64 = 1_000_000_000;
        Self { period_ns: echo.period_s.0 * S, t3_ns: echo.t3_s.0 * S, n3: echo.n3.0 }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Port {
    pub(super) name: Spanned<String>,
    device: Spanned<String>,
    interface: Side,
    pub(super) address: Option<Spanned<PortAddress>>,
    pub(super) ipv6: Option<Spanned<PortAddress6>>,
    pub(super) advertise: Option<Spanned<IpAddr>>,
    pub(super) advertise6: Option<Spanned<IpAddr>>,
    #[serde(default)]
    mtu: Mtu,
    vlan: Option<Vlan>,
    network_instance: Option<Spanned<String>>,
    interfaces: Option<Spanned<Vec<PortInterface>>>,
    #[serde(default)]
    mss_clamp: bool,
    ethernet: Option<Spanned<bool>>,
    hash: Option<Spanned<DeviceHash>>,
    exact_rules: Option<Spanned<ExactRules>>,
    #[serde(default)]
    class: Vec<classes::File>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Route {
    prefix: IpNet,
    via: Spanned<IpAddr>,
    network_instance: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    rules: PathBuf,
    #[serde(default)]
    category: Vec<ContentCategory>,
    #[serde(default)]
    resolvers: Vec<Spanned<IpAddr>>,
    #[serde(default)]
    inspections: Inspections,
    #[serde(default)]
    connection_s: ConnectionAge,
    #[serde(default)]
    enriched_connections: EnrichedConnections,
}

/// A list of hosts that are one application.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentCategory {
    name: Spanned<String>,
    file: PathBuf,
    #[serde(default = "category_precedence")]
    precedence: u32,
    #[serde(default)]
    rating_group: u32,
}

/// Behind most rules, so that one for a host of a category can say otherwise.
const fn category_precedence() -> u32 {
    1_000_000
}

/// Categories of a node.
const CATEGORIES_MAX: usize = 64;
/// Resolvers whose answers tell everybody.
const RESOLVERS_MAX: usize = 64;

fn content(content: Content) -> Result<Sources, Refusal> {
    let Content { rules, category, resolvers, inspections, connection_s, enriched_connections } = content;
    if let Some(excess) = resolvers.get(RESOLVERS_MAX) {
        return Err(Refusal::of(excess, format!("more than {RESOLVERS_MAX} resolvers")));
    }
    if let Some(excess) = category.get(CATEGORIES_MAX) {
        return Err(Refusal::of(&excess.name, format!("more than {CATEGORIES_MAX} categories")));
    }
    let mut categories = Vec::with_capacity(category.len());
    for ContentCategory { name, file, precedence, rating_group } in category {
        if rules::ApplicationId::new(name.get_ref()).is_none() {
            return Err(Refusal::of(&name, "an application's name has 1 to 255 octets"));
        }
        let name = name.into_inner();
        categories.push((Category { name, precedence, rating_group }, file));
    }
    let (inspections, connection_s) = (inspections.0, connection_s.0);
    let enriched_connections = enriched_connections.0;
    let resolvers = resolvers.into_iter().map(Spanned::into_inner).collect();
    Ok(Sources { rules, categories, resolvers, inspections, connection_s, enriched_connections })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metrics {
    listen: Address,
}

/// Where to listen.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Address(SocketAddr);

impl TryFrom<String> for Address {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
            .map(Self)
            .map_err(|_| "metrics are served at an IP address and port, like 127.0.0.1:9100")
    }
}

/// Makes settings of a file whose values fit together.
pub(super) fn check(file: File) -> Result<Settings, Refusal> {
    check_ports(&file.dpe.port)?;
    file.dpe.route.iter().try_for_each(|route| check_route(route, &file.dpe.port))?;
    let advertised = advertised::of_ports(&file.dpe.port)?;
    let dpe = dpe(file.dpe)?;
    let n4 = n4::check(file.n4, &dpe)?;
    let charging = file.charging.map(|charging| charging::check(charging, &n4.predefined)).transpose()?;
    Ok(Settings {
        node_id: file.node.id,
        run_dir: file.node.run_dir,
        state_dir: file.node.state_dir,
        dpe,
        advertised,
        n4,
        charging,
        content: file.content.map(content).transpose()?,
        metrics: file.metrics.map(|metrics| metrics.listen.0),
    })
}

fn dpe(dpe: Dpe) -> Result<DpeSettings, Refusal> {
    let crew = crew::check((dpe.workers, dpe.balance), dpe.cpus.as_ref(), dpe.distributors.as_ref())?;
    let route = |route: Route| dataplane::Route {
        prefix: route.prefix,
        via: route.via.into_inner(),
        instance: route.network_instance.map(|name| Instance::of(name.get_ref())),
    };
    let ports = dpe.port.into_iter().map(|of| port(of, &crew)).collect::<Result<_, _>>()?;
    Ok(DpeSettings {
        memory_mb: dpe.memory_mb.0,
        huge_pages: dpe.huge_pages,
        idle: crew::idle(dpe.idle, &crew)?,
        idle_us: dpe.idle_us.0,
        crew,
        sessions: dpe.sessions.0,
        pdrs: pdrs(dpe.pdrs, dpe.sessions)?,
        framed_routes: dpe.framed_routes.0,
        flows: dpe.flows.0,
        limits: limits::check(dpe.limits)?,
        echo: dpe.echo.into(),
        ports,
        routes: dpe.route.into_iter().map(route).collect(),
    })
}

/// Room for so many PDRs of a session there is, unless told otherwise: it takes no memory before they are there.
const PDRS_PER_SESSION: usize = 16;

fn pdrs(pdrs: Option<Spanned<Pdrs>>, Sessions(sessions): Sessions) -> Result<usize, Refusal> {
    let least = 2 * sessions;
    match pdrs {
        None => Ok(PDRS_PER_SESSION * sessions),
        Some(few) if few.get_ref().0 < least => {
            Err(Refusal::of(&few, format!("{sessions} sessions have {least} PDRs at least")))
        }
        Some(pdrs) => Ok(pdrs.into_inner().0),
    }
}

/// Of a port of Ethernet: nothing is reached there by an address of ours.
const NO_ADDRESS: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 32);

fn port(port: Port, crew: &CrewSettings) -> Result<PortSettings, Refusal> {
    let (interface, ethernet) = (port.interface.into(), is_ethernet(&port));
    let hash = port.hash.map(Spanned::into_inner).unwrap_or_default();
    let interfaces = port.interfaces.map(Spanned::into_inner).unwrap_or_default().into_iter();
    let around = classes::Around { crew, interface, ethernet, hash };
    let classes = classes::check(port.class, &around)?;
    let exact_rules = exact::check(port.exact_rules, &around, &classes)?;
    Ok(PortSettings {
        name: port.name.into_inner(),
        device: port.device.into_inner(),
        interface,
        ethernet,
        address: port.address.map_or(NO_ADDRESS, |address| address.into_inner().0),
        address6: port.ipv6.map(|address| address.into_inner().0),
        mtu: port.mtu.0,
        vlan: port.vlan.map(|vlan| vlan.0),
        network_instance: port.network_instance.map(|name| name.get_ref().to_ascii_lowercase()),
        interface_types: InterfaceTypes::of(interfaces.flat_map(PortInterface::types).copied()),
        mss_clamp: port.mss_clamp,
        hash,
        exact_rules,
        classes,
    })
}

fn check_ports(ports: &[Port]) -> Result<(), Refusal> {
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
        check_network(port, others)?;
        check_ethernet(port, others)?;
        check_hash(port)?;
        if let Some(address) = &port.address
            && others
                .iter()
                .any(|other| ipv4(other).is_some_and(|ipv4| ipv4.addr() == address.get_ref().0.addr()))
        {
            return Err(Refusal::of(address, "another port has this address"));
        }
        if let Some(address) = &port.ipv6
            && others
                .iter()
                .any(|other| ipv6(other).is_some_and(|other| other.addr() == address.get_ref().0.addr()))
        {
            return Err(Refusal::of(address, "another port has this address"));
        }
    }
    match ports.iter().any(|port| Interface::from(port.interface) == Interface::Access) {
        true => Ok(()),
        false => {
            Err(Refusal::absent("a [[dpe.port]] with interface = \"access\" is needed: tunnels end there"))
        }
    }
}

fn is_ethernet(port: &Port) -> bool {
    port.ethernet.as_ref().is_some_and(|ethernet| *ethernet.get_ref())
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
    let network =
        |port: &Port| port.network_instance.as_ref().map(|name| name.get_ref().to_ascii_lowercase());
    match others.iter().any(|other| is_ethernet(other) && network(other) == network(port)) {
        true => Err(Refusal::of(ethernet, "another port of this network instance is of Ethernet")),
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

/// Whether a port is of the network a route is of; one that names none is of whichever its next hop is in.
fn is_of_network(port: &Port, route: &Route) -> bool {
    let name = |name: &Spanned<String>| name.get_ref().to_ascii_lowercase();
    let meant = route.network_instance.as_ref().map(name);
    meant.is_none() || meant == port.network_instance.as_ref().map(name)
}

fn ipv4(port: &Port) -> Option<Ipv4Net> {
    port.address.as_ref().map(|address| address.get_ref().0)
}

fn ipv6(port: &Port) -> Option<Ipv6Net> {
    port.ipv6.as_ref().map(|address| address.get_ref().0)
}

fn check_route(route: &Route, ports: &[Port]) -> Result<(), Refusal> {
    let reaches = |port: &Port| match route.via.get_ref() {
        IpAddr::V4(via) => ipv4(port).is_some_and(|address| address.contains(via)),
        IpAddr::V6(via) => ipv6(port).is_some_and(|address| address.contains(via)),
    };
    if route.prefix.addr().is_ipv4() != route.via.get_ref().is_ipv4() {
        return Err(Refusal::of(&route.via, "is not of the family of the prefix"));
    }
    match ports.iter().any(|port| is_of_network(port, route) && reaches(port)) {
        true => Ok(()),
        false => Err(Refusal::of(&route.via, "is in the subnet of no port")),
    }
}

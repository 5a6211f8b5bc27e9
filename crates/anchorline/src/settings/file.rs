//! The file as it is written, and what its values must be together.

mod content;
mod policies;
mod ports;
mod routes;
#[cfg(test)]
mod tests;

use super::values::{
    Balance, Device, DeviceHash, EchoN3, EchoPeriod, EchoT3, ExactRules, Flows, FramedRoutes, HugePages,
    Idle, IdleUs, InterimUsage, MemoryMb, Mtu, Pdrs, PortAddress, PortAddress6, PortInterface, Sessions,
    Side, Vlan, Workers,
};
use super::{
    CrewSettings, DpeSettings, PortSettings, Settings, advertised, charging, classes, crew, exact, limits, n4,
};
use ::n4::InterfaceTypes;
use config::{NodeIdText, Refusal, Spanned};
use content::Content;
use ipnet::Ipv4Net;
use ports::{check_ports, is_ethernet};
use routes::{Route, check_routes};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

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
    run_dir: Spanned<PathBuf>,
    state_dir: Spanned<PathBuf>,
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
    interim_usage_s: InterimUsage,
    #[serde(default)]
    limits: limits::File,
    #[serde(default)]
    echo: Echo,
    port: Vec<Port>,
    #[serde(default)]
    route: Vec<Route>,
    #[serde(default)]
    forwarding_policy: Vec<policies::ForwardingPolicy>,
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
    device: Spanned<Device>,
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
    punt: Option<Spanned<String>>,
    hash: Option<Spanned<DeviceHash>>,
    exact_rules: Option<Spanned<ExactRules>>,
    #[serde(default)]
    class: Vec<classes::File>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metrics {
    listen: Spanned<Address>,
}

fn with_port(listen: Spanned<Address>) -> Result<SocketAddr, Refusal> {
    match listen.get_ref().0.port() {
        0 => Err(Refusal::of(&listen, "nobody would know the port; 0 is none")),
        _ => Ok(listen.into_inner().0),
    }
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
    check_run_dir(&file.node.run_dir)?;
    check_named(&file.node.state_dir)?;
    check_ports(&file.dpe.port)?;
    check_routes(&file.dpe.route, &file.dpe.port)?;
    let advertised = advertised::of_ports(&file.dpe.port)?;
    let dpe = dpe(file.dpe)?;
    let n4 = n4::check(file.n4, &dpe)?;
    let charging = file.charging.map(|charging| charging::check(charging, &n4.predefined)).transpose()?;
    Ok(Settings {
        node_id: file.node.id,
        run_dir: file.node.run_dir.into_inner(),
        state_dir: file.node.state_dir.into_inner(),
        dpe,
        advertised,
        n4,
        charging,
        content: file.content.map(content::check).transpose()?,
        metrics: file.metrics.map(|metrics| with_port(metrics.listen)).transpose()?,
    })
}

/// Octets of the longest path of a socket (`sockaddr_un`, less its end).
const SOCKET_MAX: usize = 107;

/// An empty name would stand for wherever somebody happens to be.
pub(super) fn check_named(folder: &Spanned<PathBuf>) -> Result<(), Refusal> {
    match folder.get_ref().as_os_str().is_empty() {
        true => Err(Refusal::of(folder, "this is the name of a folder")),
        false => Ok(()),
    }
}

fn check_run_dir(run_dir: &Spanned<PathBuf>) -> Result<(), Refusal> {
    check_named(run_dir)?;
    // Both engines' sockets have names of this length.
    match run_dir.get_ref().join("dpe.sock").as_os_str().len() {
        ..=SOCKET_MAX => Ok(()),
        _ => Err(Refusal::of(
            run_dir,
            "sockets are in it, whose paths would be too long: it has 98 octets at most",
        )),
    }
}

fn dpe(dpe: Dpe) -> Result<DpeSettings, Refusal> {
    let crew = crew::check((dpe.workers, dpe.balance), dpe.cpus.as_ref(), dpe.distributors.as_ref())?;
    let policies = policies::check(dpe.forwarding_policy, &dpe.port)?;
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
        interim_usage: Duration::from_secs(dpe.interim_usage_s.0),
        limits: limits::check(dpe.limits)?,
        echo: dpe.echo.into(),
        ports,
        routes: dpe.route.into_iter().map(Into::into).collect(),
        policies,
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

/// Of a link of IPv6 (RFC 8200 5).
const LEAST_MTU6: u16 = 1280;

/// It stands in tables, logs and metrics.
fn port_name(name: Spanned<String>) -> Result<String, Refusal> {
    let is_name = (1..=32).contains(&name.get_ref().len())
        && name.get_ref().bytes().all(|letter| letter.is_ascii_graphic());
    match is_name {
        true => Ok(name.into_inner()),
        false => Err(Refusal::of(&name, "the name of a port is 1 to 32 visible letters without spaces")),
    }
}

fn port(port: Port, crew: &CrewSettings) -> Result<PortSettings, Refusal> {
    let (interface, ethernet) = (port.interface.into(), is_ethernet(&port));
    let hash = port.hash.map(Spanned::into_inner).unwrap_or_default();
    let interfaces = port.interfaces.map(Spanned::into_inner).unwrap_or_default().into_iter();
    let around = classes::Around { crew, interface, ethernet, hash };
    let classes = classes::check(port.class, &around)?;
    let exact_rules = exact::check(port.exact_rules, &around, &classes)?;
    if let Some(address) = port.ipv6.as_ref().filter(|_| port.mtu.0 < LEAST_MTU6) {
        let text = format!("a link of IPv6 takes packets of {LEAST_MTU6} bytes, so a port's mtu is no less");
        return Err(Refusal::of(address, text));
    }
    Ok(PortSettings {
        name: port_name(port.name)?,
        device: port.device.into_inner().0,
        interface,
        ethernet,
        address: port.address.map_or(NO_ADDRESS, |address| address.into_inner().0),
        address6: port.ipv6.map(|address| address.into_inner().0),
        mtu: port.mtu.0,
        vlan: port.vlan.map(|vlan| vlan.0),
        network_instance: port.network_instance.map(|name| name.get_ref().to_ascii_lowercase()),
        interface_types: InterfaceTypes::of(interfaces.flat_map(PortInterface::types).copied()),
        mss_clamp: port.mss_clamp,
        punt: port.punt.map(Spanned::into_inner),
        hash,
        exact_rules,
        classes,
    })
}

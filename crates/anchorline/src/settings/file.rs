//! The file as it is written, and what its values must be together.

use super::values::{
    DeviceHash, EchoN3, EchoPeriod, EchoT3, Flows, HugePages, Idle, MemoryMb, Mtu, PortAddress, PortAddress6,
    Sessions, Side, Vlan, Workers,
};
use super::{DpeSettings, PortSettings, Settings, charging, crew, n4};
use config::{NodeIdText, Refusal, Spanned};
use ipnet::{IpNet, Ipv6Net};
use rules::{Instance, Interface};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
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
    #[serde(default)]
    idle: Idle,
    #[serde(default)]
    workers: Workers,
    cpus: Option<Spanned<Vec<usize>>>,
    distributors: Option<Spanned<usize>>,
    #[serde(default)]
    sessions: Sessions,
    #[serde(default)]
    flows: Flows,
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
struct Port {
    name: Spanned<String>,
    device: Spanned<String>,
    interface: Side,
    address: Spanned<PortAddress>,
    ipv6: Option<Spanned<PortAddress6>>,
    #[serde(default)]
    mtu: Mtu,
    vlan: Option<Vlan>,
    network_instance: Option<Spanned<String>>,
    #[serde(default)]
    mss_clamp: bool,
    #[serde(default)]
    hash: DeviceHash,
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
    let dpe = dpe(file.dpe)?;
    let n4 = n4::check(file.n4, &dpe.network_instances())?;
    let charging = file.charging.map(|charging| charging::check(charging, &n4.predefined)).transpose()?;
    Ok(Settings {
        node_id: file.node.id,
        run_dir: file.node.run_dir,
        state_dir: file.node.state_dir,
        dpe,
        n4,
        charging,
        content: file.content.map(|content| content.rules),
        metrics: file.metrics.map(|metrics| metrics.listen.0),
    })
}

fn dpe(dpe: Dpe) -> Result<DpeSettings, Refusal> {
    let crew = crew::check(dpe.workers, dpe.cpus.as_ref(), dpe.distributors.as_ref())?;
    let route = |route: Route| dataplane::Route {
        prefix: route.prefix,
        via: route.via.into_inner(),
        instance: route.network_instance.map(|name| Instance::of(name.get_ref())),
    };
    Ok(DpeSettings {
        memory_mb: dpe.memory_mb.0,
        huge_pages: dpe.huge_pages,
        idle: dpe.idle,
        crew,
        sessions: dpe.sessions.0,
        flows: dpe.flows.0,
        echo: dpe.echo.into(),
        ports: dpe.port.into_iter().map(port).collect(),
        routes: dpe.route.into_iter().map(route).collect(),
    })
}

fn port(port: Port) -> PortSettings {
    PortSettings {
        name: port.name.into_inner(),
        device: port.device.into_inner(),
        interface: port.interface.into(),
        address: port.address.into_inner().0,
        address6: port.ipv6.map(|address| address.into_inner().0),
        mtu: port.mtu.0,
        vlan: port.vlan.map(|vlan| vlan.0),
        network_instance: port.network_instance.map(|name| name.get_ref().to_ascii_lowercase()),
        mss_clamp: port.mss_clamp,
        hash: port.hash,
    }
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
        let address = port.address.get_ref().0;
        if others.iter().any(|other| other.address.get_ref().0.addr() == address.addr()) {
            return Err(Refusal::of(&port.address, "another port has this address"));
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

fn ipv6(port: &Port) -> Option<Ipv6Net> {
    port.ipv6.as_ref().map(|address| address.get_ref().0)
}

fn check_route(route: &Route, ports: &[Port]) -> Result<(), Refusal> {
    let reaches = |port: &Port| match route.via.get_ref() {
        IpAddr::V4(via) => port.address.get_ref().0.contains(via),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const EXAMPLE: &str = include_str!("../../../../config/upf.toml");

    fn error(from: &str, to: &str) -> String {
        assert!(EXAMPLE.contains(from), "the example has no {from}");
        config::parse(&EXAMPLE.replacen(from, to, 1), check).unwrap_err().to_string()
    }

    #[test]
    fn the_example_is_right() {
        let settings = config::parse(EXAMPLE, check).unwrap();
        assert_eq!(settings.access_address(), Some(Ipv4Addr::new(10, 30, 0, 2)));
        assert_eq!(settings.dpe.ports.len(), 2);
    }

    #[test]
    fn what_a_port_may_have_besides() {
        let text = EXAMPLE.replace("# vlan = 30", "vlan = 30").replace("# mss_clamp", "mss_clamp");
        let ports = config::parse(&text, check).unwrap().dpe.ports;
        assert_eq!((ports[0].vlan, ports[0].mss_clamp), (Some(30), true));
        assert_eq!((ports[1].vlan, ports[1].mss_clamp), (None, false));
    }

    #[test]
    fn ports_are_of_networks_that_have_names() {
        let networks =
            |text: &str| config::parse(text, check).map(|settings| settings.dpe.network_instances());
        assert_eq!(networks(EXAMPLE).unwrap(), Vec::<String>::new());
        let named = EXAMPLE.replacen(
            "interface = \"core\"",
            "interface = \"core\"\nnetwork_instance = \"Internet\"",
            1,
        );
        let named = named.replacen("# network_instance = \"access\"", "network_instance = \"access\"", 1);
        assert_eq!(networks(&named).unwrap(), ["access", "internet"]);
        let route = |name: &str| {
            named.replacen("# network_instance = \"internet\"", &format!("network_instance = \"{name}\""), 1)
        };
        assert!(networks(&route("internet")).is_ok());
        assert!(networks(&route("ims")).unwrap_err().to_string().contains("is in the subnet of no port"));
        let nameless = named.replacen("\"Internet\"", "\"\"", 1);
        assert!(networks(&nameless).unwrap_err().to_string().contains("a name of 1 to 100 characters"));
        let pools = |name: &str| {
            let pool = |name: &str, of: &str| {
                format!(
                    "\n[[n4.ue_pool]]\nname = \"{name}\"\nprefix = \"10.60.0.0/16\"\nnetwork_instance = \"{of}\"\n"
                )
            };
            networks(&(named.clone() + &pool("a", "internet") + &pool("b", name)))
        };
        assert!(pools("access").is_ok());
        for name in ["INTERNET", "ims"] {
            assert!(pools(name).unwrap_err().to_string().contains("overlaps with another pool"));
        }
    }

    #[test]
    fn there_is_one_worker_unless_told_otherwise() {
        let crew = config::parse(EXAMPLE, check).unwrap().dpe.crew;
        assert_eq!((crew.workers, crew.distributors, crew.cpus), (1, 0, vec![]));
        let more = "idle = \"spin\"\nworkers = 3\ncpus = [2, 3, 4]\ndistributors = 1";
        let text = EXAMPLE.replace("idle = \"spin\"", more);
        let crew = config::parse(&text, check).unwrap().dpe.crew;
        assert_eq!((crew.workers, crew.distributors, crew.cpus), (3, 1, vec![2, 3, 4]));
        for (to, expected) in [
            ("workers = 0", "a node has 1 to 32 workers"),
            ("workers = 2\ncpus = [1]", "one CPU for each of the 2 workers"),
            ("workers = 2\ncpus = [1, 1]", "two workers on one CPU"),
            ("workers = 2\ndistributors = 2", "has to own sessions"),
        ] {
            let message = error("idle = \"spin\"", to);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn peers_are_asked_every_minute_unless_told_otherwise() {
        assert_eq!(config::parse(EXAMPLE, check).unwrap().dpe.echo, dataplane::Echo::default());
        let text = EXAMPLE.replace("period_s = 60", "period_s = 0").replace("n3 = 3", "n3 = 7");
        let echo = config::parse(&text, check).unwrap().dpe.echo;
        assert_eq!((echo.period_ns, echo.t3_ns, echo.n3), (0, 5_000_000_000, 7));
        let message = error("t3_s = 5", "t3_s = 0");
        assert!(message.contains("t3_s = 0: T3-RESPONSE is 1 to 60 seconds"), "{message}");
    }

    #[test]
    fn errors_name_key_value_line_and_what_is_allowed() {
        for (from, to, expected) in [
            ("mtu = 1500", "mtu = 12", "mtu = 12: an MTU is 576 to 9600 bytes"),
            ("# vlan = 30", "vlan = 4095", "vlan = 4095: a VLAN is 1 to 4094"),
            ("interface = \"core\"", "interface = \"n6\"", "interface = \"n6\": unknown variant `n6`"),
            (
                "via = \"10.50.0.1\"",
                "via = \"10.51.0.1\"",
                "via = \"10.51.0.1\": is in the subnet of no port",
            ),
            ("name = \"n6\"", "name = \"n3\"", "name = \"n3\": another port has this name"),
            ("10.30.0.2/24", "10.30.0.0/24", "a port's address is that of a host"),
            ("idle = \"spin\"", "idel = \"spin\"", "idel = \"spin\": unknown field `idel`"),
            ("10.40.0.2:8805", "0.0.0.0:8805", "it cannot be 0.0.0.0"),
            ("interface = \"access\"", "interface = \"core\"", "tunnels end there"),
            ("associate = []", "associate = [\"smf\"]", "a control plane is an IP address"),
        ] {
            let message = error(from, to);
            assert!(message.contains(expected), "{message}");
        }
        assert!(error("mtu = 1500", "mtu = 12").starts_with("configuration, line "), "the line is named");
    }

    #[test]
    fn what_control_planes_may_find_besides() {
        assert_eq!(config::parse(EXAMPLE, check).unwrap().n4.ue_pools, []);
        let settings = config::parse(&commented_in(), check).unwrap().n4;
        assert_eq!(settings.forwarding_policies, ["mec1"]);
        let pools: Vec<_> = settings.ue_pools.iter().map(|pool| pool.prefix.to_string()).collect();
        assert_eq!(pools, ["10.60.0.0/16", "2001:db8:60::/48"]);
        assert_ne!(settings.predefined, ::n4::Predefined::default());
        assert!(config::parse(EXAMPLE, check).unwrap().access_address6().is_none());
        let with_ipv6 = EXAMPLE.replace("# ipv6 =", "ipv6 =");
        let address = config::parse(&with_ipv6, check).unwrap().access_address6();
        assert_eq!(address, Some("2001:db8:3::2".parse().unwrap()));
    }

    /// The example with everything of `[n4]` that is only shown.
    fn commented_in() -> String {
        let shown = ["# forwarding_policies", "# [[n4.", "# name =", "# prefix =", "# network_instance ="]
            .iter()
            .chain(&["# precedence =", "# filters =", "# action =", "# mbr_kbps =", "# rules = ["]);
        shown.fold(EXAMPLE.to_owned(), |text, shown| text.replace(shown, shown.trim_start_matches("# ")))
    }

    #[test]
    fn errors_of_pools_and_rules_say_what_is_allowed() {
        let text = commented_in();
        for (from, to, expected) in [
            ("10.60.0.0/16", "2001:db8:60:1::/65", "it cannot be longer"),
            ("10.60.0.0/16", "2001:db8:60:8000::/49", "overlaps with another pool"),
            ("name = \"users6\"", "name = \"users\"", "another pool has this name"),
            ("to assigned", "two assigned", "a filter reads like"),
            ("rules = [\"video\"", "rules = [\"radio\"", "has a rule \"radio\", which does not exist"),
            ("action = \"drop\"", "action = \"eat\"", "unknown variant `eat`"),
            ("uplink = 5000", "uplink = 2199023255552", "a rate is 0 to"),
        ] {
            assert!(text.contains(from), "{from}");
            let message = config::parse(&text.replacen(from, to, 1), check).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn nothing_is_charged_unless_told_how() {
        assert!(config::parse(EXAMPLE, check).unwrap().charging.is_none());
        let (before, rest) = EXAMPLE.split_once("# [charging]\n").unwrap();
        let (shown, after) = rest.split_once("\n\n").unwrap();
        let is_value = |line: &&str| line.contains(" = ") || line.starts_with("# [[");
        let values: Vec<&str> =
            shown.lines().filter(is_value).filter_map(|line| line.strip_prefix("# ")).collect();
        let text = format!("{before}[charging]\n{}\n\n{after}", values.join("\n"));
        let charging = config::parse(&text, check).unwrap().charging.unwrap();
        assert_eq!((charging.formats.len(), charging.file_age_ms), (2, 300_000));
        let key = ::charging::Key { rating_group: 10, service_id: Some(7) };
        assert_eq!(charging.offline.rating.key_of(150), Some(key));
        assert_eq!(charging.offline.policy.tariff_minutes, [360, 1_320]);
        let with_rule = "[[n4.predefined_rule]]\nname = \"x\"\nservice_id = 3\n";
        let error = config::parse(&format!("{EXAMPLE}\n{with_rule}"), check).unwrap_err().to_string();
        assert!(error.contains("it belongs to a rating_group"), "{error}");
    }

    #[test]
    fn metrics_are_off_unless_told_where() {
        assert_eq!(config::parse(EXAMPLE, check).unwrap().metrics, None);
        let with = |value: &str| config::parse(&format!("{EXAMPLE}\n[metrics]\n{value}\n"), check);
        let listen = with("listen = \"127.0.0.1:9100\"").unwrap().metrics.unwrap();
        assert_eq!(listen.port(), 9100);
        for (value, complaint) in
            [("listen = \"localhost\"", "like 127.0.0.1:9100"), ("port = 9100", "unknown field `port`")]
        {
            let error = with(value).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn a_control_plane_has_the_standard_port_unless_told_otherwise() {
        let text = EXAMPLE.replace("associate = []", "associate = [\"10.40.0.1\", \"10.40.0.9:9805\"]");
        let settings = config::parse(&text, check).unwrap();
        let ports: Vec<u16> = settings.n4.associate.iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [8805, 9805]);
    }
}

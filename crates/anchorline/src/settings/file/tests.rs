use super::*;
use crate::settings::ClassSettings;
use crate::settings::timers::TimerSettings;
use ::config::ConfigError;
use rules::Interface;
use std::time::Duration;

const EXAMPLE: &str = include_str!("../../../../../config/upf.toml");

fn error(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "the example has no {from}");
    config::parse(&EXAMPLE.replacen(from, to, 1), check).unwrap_err().to_string()
}

#[test]
fn the_example_is_right() {
    let settings = config::parse(EXAMPLE, check).unwrap();
    let gtpu: Vec<_> = settings.gtpu_addresses().iter().map(|it| (it.interface, it.ipv4)).collect();
    let expected =
        [(Interface::Access, Ipv4Addr::new(10, 30, 0, 2)), (Interface::Core, Ipv4Addr::new(10, 50, 0, 2))];
    assert_eq!(gtpu, expected);
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
fn a_port_may_have_an_interface_in_the_kernel() {
    let punts = |text: &str| {
        let ports = config::parse(text, check).map(|settings| settings.dpe.ports);
        ports.map(|ports| ports.into_iter().map(|port| port.punt).collect::<Vec<_>>())
    };
    assert_eq!(punts(EXAMPLE).unwrap(), [None, None], "none, unless told");
    let text = EXAMPLE.replacen("# punt =", "punt =", 1);
    assert_eq!(punts(&text).unwrap(), [Some("n3-host".to_owned()), None]);
    let line = 1 + text.lines().position(|line| line == "punt = \"n3-host\"").unwrap();
    for name in ["", "sixteen-is-a-lot", "n3 host", "n3/host", "n3:1", "n%d", ".."] {
        let refused = punts(&text.replacen("n3-host", name, 1)).unwrap_err().to_string();
        let expected = format!("line {line}: punt = \"{name}\": an interface has a name of 1 to 15 letters");
        assert!(refused.contains(&expected), "{refused}");
    }
    let twice = text.replacen("name = \"n6\"", "name = \"n6\"\npunt = \"n3-host\"", 1);
    assert!(punts(&twice).unwrap_err().to_string().contains("another port has this interface"));
    let ethernet = "\n[[dpe.port]]\nname = \"n6e\"\ndevice = \"net_tap9\"\ninterface = \"core\"\nethernet = true\npunt = \"e\"\n";
    let refused = punts(&format!("{EXAMPLE}{ethernet}")).unwrap_err().to_string();
    assert!(refused.contains("punt = \"e\": a port of Ethernet has no address"), "{refused}");
}

#[test]
fn pfcp_is_served_over_either_ip_version_or_both() {
    let n4 = |text: &str| config::parse(text, check).map(|settings| settings.n4);
    let ipv6 = "[2001:db8:40::2]:8805";
    let alone = n4(&EXAMPLE.replacen("10.40.0.2:8805", ipv6, 1)).unwrap();
    assert_eq!((alone.listen, alone.also_listen), (ipv6.parse().unwrap(), None));
    let both = EXAMPLE.replacen("# also_listen", "also_listen", 1);
    assert_eq!(n4(&both).unwrap().also_listen, Some(ipv6.parse().unwrap()));
    for (wrong, why) in
        [("[::]:8805", "it cannot be 0.0.0.0 or ::"), ("10.40.0.3:8805", "the other IP version")]
    {
        let refused = n4(&both.replacen(ipv6, wrong, 1)).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    let named =
        config::parse(&EXAMPLE.replacen("id = \"", "id = \"2001:db8:40::2\" # \"", 1), check).unwrap();
    assert_eq!(named.node_id, NodeIdText::Ipv6("2001:db8:40::2".parse().unwrap()));
}

#[test]
fn what_is_advertised_is_told_and_the_ports_stay_as_they_are() {
    let text = EXAMPLE.replace("# ipv6 =", "ipv6 =").replacen("# also_listen", "also_listen", 1);
    let plain = config::parse(&text, check).unwrap();
    let text = text.replace("# advertise", "advertise");
    let settings = config::parse(&text, check).unwrap();
    let n3 = settings.gtpu_addresses()[0];
    assert_eq!((n3.ipv4, n3.advertise), (Ipv4Addr::new(10, 30, 0, 2), Some(Ipv4Addr::new(203, 0, 113, 2))));
    assert_eq!(n3.advertise6, Some("2001:db8:ffff:3::2".parse().unwrap()));
    assert_eq!(settings.gtpu_addresses()[1].advertise, None);
    let n4 = crate::cpe::config(&settings).unwrap();
    let told = (Some(Ipv4Addr::new(203, 0, 113, 40)), Some("2001:db8:ffff:40::2".parse().unwrap()));
    assert_eq!((n4.ipv4, n4.ipv6), told);
    assert!(plain.is_for_the_same_data_plane(&settings), "it may change while packets pass");
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        config::parse(&text.replacen(from, to, 1), check).unwrap_err().to_string()
    };
    let n6 = "address = \"10.50.0.2/24\"";
    for (from, to, expected) in [
        (n6, "address = \"10.50.0.2/24\"\nadvertise = \"203.0.113.2\"", "another port is advertised at this"),
        ("\"203.0.113.2\"", "\"10.50.0.2\"", "advertise = \"10.50.0.2\": another port has this address"),
        ("\"203.0.113.2\"", "\"2001:db8::1\"", "is an IPv6 address: that is advertise6"),
        ("\"2001:db8:ffff:3::2\"", "\"203.0.113.9\"", "is an IPv4 address: that is advertise"),
        ("\"203.0.113.2\"", "\"0.0.0.0\"", "it is that of a host"),
        ("ipv6 = \"2001:db8:3::2/64\"", "", "the port has no address of this IP version"),
        ("also_listen = \"[2001:db8:40::2]:8805\"", "", "PFCP is not served over this IP version"),
        ("\"203.0.113.40\"", "\"203.0.113.256\"", "advertise = \"203.0.113.256\": "),
        ("\"203.0.113.40\"", "\"2001:db8::1\"", "is an IPv6 address: that is advertise6"),
    ] {
        let message = with(from, to);
        assert!(message.contains(expected) && message.starts_with("configuration, line "), "{message}");
    }
    let ethernet = "\n[[dpe.port]]\nname = \"n6e\"\ndevice = \"net_tap9\"\ninterface = \"core\"\nethernet = true\nadvertise = \"203.0.113.9\"\n";
    let refused = config::parse(&format!("{EXAMPLE}{ethernet}"), check).unwrap_err().to_string();
    assert!(refused.contains("no address of this IP version"), "{refused}");
}

#[test]
fn only_access_ports_see_teids() {
    let declared = EXAMPLE.replacen("# hash = \"auto\"", "hash = \"teid\"", 1);
    let ports = config::parse(&declared, check).unwrap().dpe.ports;
    assert_eq!((ports[0].hash, ports[1].hash), (DeviceHash::Teid, DeviceHash::Auto));
    let core = error("interface = \"core\"", "interface = \"core\"\nhash = \"teid\"");
    assert!(core.contains("only access ports see TEIDs"), "{core}");
}

#[test]
fn a_port_has_exact_rules_where_its_card_is_set_up_for_them() {
    let ports = |text: &str| config::parse(text, check).map(|settings| settings.dpe.ports);
    assert!(ports(EXAMPLE).unwrap().iter().all(|port| port.exact_rules == 0), "none, unless told");
    let text = EXAMPLE.replacen("# exact_rules", "exact_rules", 1);
    let rules: Vec<usize> = ports(&text).unwrap().iter().map(|port| port.exact_rules).collect();
    assert_eq!(rules, [1_024, 0]);
    let class = "[[dpe.port.class]]\nname = \"voice\"\nqfi = [1]\n\n[[dpe.port]]\nname = \"n6\"";
    for (from, to, why) in [
        ("rules = 1024", "rules = 16385", "0 to 16384 exact rules"),
        ("# hash = \"auto\"", "hash = \"inner\"", "exact rules need hash"),
        ("# workers = 2", "workers = 2\ndistributors = 1", "and no card does"),
        ("[[dpe.port]]\nname = \"n6\"", class, "a port has either"),
    ] {
        assert!(text.contains(from), "the example has no {from}");
        let refused = ports(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(refused.contains(why), "{to}: {refused}");
        let none = text.replacen("rules = 1024", "rules = 0", 1).replacen(from, to, 1);
        assert!(from == "rules = 1024" || ports(&none).is_ok(), "{to}");
    }
}

#[test]
fn a_port_has_classes_that_its_card_could_tell_apart() {
    let classes = |text: &str| config::parse(text, check).map(|settings| settings.dpe.ports);
    let text = EXAMPLE
        .replace("# [[dpe.port.class]]", "[[dpe.port.class]]")
        .replace("# name = \"voice", "name = \"voice");
    let text = text
        .replacen("# name = \"video\"", "name = \"video\"", 1)
        .replace("# qfi = ", "qfi = ")
        .replace("# dscp", "dscp");
    let ports = classes(&text).unwrap();
    let told: Vec<Vec<String>> =
        ports.iter().map(|port| port.classes.iter().map(ClassSettings::packets).collect()).collect();
    assert_eq!(told, [vec!["QFI 1, 5".to_owned(), "QFI 2".to_owned()], vec!["DSCP 46".to_owned()]]);
    for (from, to, why) in [
        ("qfi = [2]", "qfi = [2, 1]", "is in a class already"),
        ("qfi = [2]", "qfi = [64]", "is 0 to 63"),
        ("qfi = [2]", "qfi = [2]\npcp = [8]", "is 0 to 7"),
        ("qfi = [2]", "qfi = []", "a class has packets of some qfi, dscp or pcp"),
        ("qfi = [2]", "dscp = [46]", "told apart by qfi, or pcp"),
        ("dscp = [46]", "qfi = [5]", "told apart by dscp, or pcp"),
        ("\"video\"", "\"voice\"", "another class of this port has this name"),
        ("\"video\"", "\"rest\"", "not \"rest\""),
        ("# workers = 2", "workers = 3", "workers are a power of two"),
        ("# workers = 2", "workers = 2\ndistributors = 1", "workers do that"),
        ("# hash = \"auto\"", "hash = \"outer\"", "classes need hash"),
    ] {
        assert!(text.contains(from), "the example has no {from}");
        let refused = classes(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(refused.contains(why), "{to}: {refused}");
    }
    let class = |number: u8| format!("[[dpe.port.class]]\nname = \"c{number}\"\nqfi = [{number}]\n");
    let four: String = (10..12).map(class).collect();
    let refused =
        classes(&text.replacen("[[dpe.port.class]]", &(four + "[[dpe.port.class]]"), 1)).unwrap_err();
    assert!(refused.to_string().contains("more than 3 classes"), "{refused}");
}

#[test]
fn ports_are_of_networks_that_have_names() {
    let networks = |text: &str| config::parse(text, check).map(|settings| settings.dpe.network_instances());
    assert_eq!(networks(EXAMPLE).unwrap(), Vec::<String>::new());
    let named =
        EXAMPLE.replacen("interface = \"core\"", "interface = \"core\"\nnetwork_instance = \"Internet\"", 1);
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
fn ports_are_for_3gpp_interfaces() {
    let types = |text: &str| {
        let settings = config::parse(text, check)?;
        Ok::<_, ConfigError>(settings.gtpu_addresses()[0].interface_types)
    };
    assert_eq!(types(EXAMPLE).unwrap(), InterfaceTypes::NONE);
    let shown = "# interfaces = [\"s1-u\", \"n3\"]";
    assert!(EXAMPLE.contains(shown));
    let said = |said: &str| types(&EXAMPLE.replacen(shown, said, 1));
    assert_eq!(
        said(shown.trim_start_matches("# ")).unwrap(),
        InterfaceTypes::of([0, 11, 12, 13, 14, 10, 28])
    );
    assert_eq!(said("interfaces = [\"s5/s8-u\"]").unwrap(), InterfaceTypes::of([1, 19]));
    let refused = said("interfaces = [\"s1-mme\"]").unwrap_err().to_string();
    assert!(refused.contains("unknown variant `s1-mme`") && refused.contains("`s5/s8-u`"), "{refused}");
    let ethernet =
        "\n[[dpe.port]]\nname = \"n6e\"\ndevice = \"net_tap9\"\ninterface = \"core\"\nethernet = true\n";
    let refused = types(&format!("{EXAMPLE}{ethernet}interfaces = [\"n9\"]\n")).unwrap_err().to_string();
    assert!(refused.contains("no address where tunnels could end"), "{refused}");
}

#[test]
fn ports_of_ethernet_have_no_address() {
    let with = |port: &str| {
        config::parse(
            &format!("{EXAMPLE}\n[[dpe.port]]\nname = \"n6e\"\ndevice = \"net_tap9\"\n{port}"),
            check,
        )
    };
    let ports = with("interface = \"core\"\nethernet = true\n").unwrap().dpe.ports;
    assert!(ports[2].ethernet && !ports[1].ethernet && ports[2].address.addr().is_unspecified());
    let refused = |port: &str| with(port).unwrap_err().to_string();
    assert!(refused("interface = \"core\"\n").contains("needs an address"));
    let addressed = "interface = \"core\"\nethernet = true\naddress = \"10.70.0.2/24\"\n";
    assert!(refused(addressed).contains("has no address"));
    assert!(refused("interface = \"access\"\nethernet = true\n").contains("on the core side"));
    let twin = "interface = \"core\"\nethernet = true\n[[dpe.port]]\nname = \"n6f\"\ndevice = \"net_tap8\"\ninterface = \"core\"\nethernet = true\n";
    assert!(refused(twin).contains("another port of this network instance"));
}

#[test]
fn there_is_one_worker_unless_told_otherwise() {
    let crew = config::parse(EXAMPLE, check).unwrap().dpe.crew;
    assert_eq!((crew.workers, crew.distributors, crew.cpus), (1, 0, vec![]));
    let more = "idle = \"poll\"\nworkers = 3\ncpus = [2, 3, 4]\ndistributors = 1";
    let text = EXAMPLE.replace("idle = \"poll\"", more);
    let crew = config::parse(&text, check).unwrap().dpe.crew;
    assert_eq!((crew.workers, crew.distributors, crew.cpus), (3, 1, vec![2, 3, 4]));
    assert_eq!(crew.balance, dataplane::Balance::New);
    let text = EXAMPLE.replace("idle = \"poll\"", "balance = \"all\"");
    assert_eq!(config::parse(&text, check).unwrap().dpe.crew.balance, dataplane::Balance::All);
    for (to, expected) in [
        ("workers = 0", "a node has 1 to 32 workers"),
        ("workers = 2\ncpus = [1]", "one CPU for each of the 2 workers"),
        ("workers = 2\ncpus = [1, 1]", "two workers on one CPU"),
        ("workers = 2\ndistributors = 2", "has to own sessions"),
    ] {
        let message = error("idle = \"poll\"", to);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn idle_workers_poll_unless_told_otherwise() {
    let idle =
        |text: &str| config::parse(text, check).map(|settings| (settings.dpe.idle, settings.dpe.idle_us));
    assert_eq!(idle(EXAMPLE).unwrap(), (dpdk::Idle::Poll, 50));
    for (word, expected) in [
        ("spin", dpdk::Idle::Poll),
        ("pause", dpdk::Idle::Pause),
        ("sleep", dpdk::Idle::Sleep),
        ("monitor", dpdk::Idle::Monitor),
    ] {
        let text = EXAMPLE.replace("idle = \"poll\"", &format!("idle = \"{word}\"\nidle_us = 9"));
        assert_eq!(idle(&text).unwrap(), (expected, 9));
    }
    let message = error("idle = \"poll\"", "idle_us = 0");
    assert!(message.contains("rests 1 to 10000 microseconds"), "{message}");
}

#[test]
fn whose_frequency_goes_down_is_named() {
    let text = EXAMPLE.replace("idle = \"poll\"", "idle = \"scale\"\ncpus = [1]");
    assert_eq!(config::parse(&text, check).unwrap().dpe.idle, dpdk::Idle::Scale);
    let line = EXAMPLE.lines().position(|line| line == "idle = \"poll\"").unwrap() + 1;
    for (word, expected) in [
        ("scale", "idle = \"scale\": workers' CPUs are named (cpus)"),
        ("monitors", "idle = \"monitors\": unknown variant `monitors`"),
    ] {
        let message = error("idle = \"poll\"", &format!("idle = \"{word}\""));
        assert!(message.contains(expected) && message.contains(&format!("line {line}")), "{message}");
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

/// Those of `[dpe.limits]` that the example shows with their usual values.
const LIMITS: [&str; 10] = [
    "kept",
    "kept_per_session",
    "kept_s",
    "peers",
    "neighbours",
    "held_per_neighbour",
    "shared_meters",
    "reassembled",
    "burst_ms",
    "punts_per_s",
];

#[test]
fn limits_are_the_usual_ones_unless_told_otherwise() {
    let limits = |text: &str| {
        let none = dataplane::Limits { sessions: 7, kept: 0, peers: 0, ..dataplane::Limits::default() };
        config::parse(text, check).map(|settings| settings.dpe.limits.within(none))
    };
    let usual = dataplane::Limits { sessions: 7, ..dataplane::Limits::default() };
    assert_eq!(limits(EXAMPLE).unwrap(), usual);
    // What is said of them in the example is true.
    let mut said = EXAMPLE.replace("# [dpe.limits]", "[dpe.limits]");
    for key in LIMITS {
        let commented = format!("\n# {key} = ");
        assert_eq!(said.matches(&commented).count(), 1, "{key}");
        said = said.replace(&commented, &format!("\n{key} = "));
    }
    assert_eq!(limits(&said).unwrap(), usual);
    let few = "[dpe.limits]\nkept = 100\nkept_s = 2\npeers = 16\nneighbours = 17\nheld_per_neighbour = 1\n\
               shared_meters = 18\nreassembled = 4\nredirected_flows = 512\nburst_ms = 30\nsession_mbr_kbps = 5\npunts_per_s = 6";
    let expected = dataplane::Limits {
        kept: 100,
        // One user keeps no more than all.
        kept_per_session: 100,
        kept_ns: 2_000_000_000,
        peers: 16,
        neighbours: 17,
        held_per_neighbour: 1,
        meters_apart: 18,
        reassembled: 4,
        redirections: 512,
        burst_ns: 30_000_000,
        session_mbr: Some(rules::BitRates { uplink_kbps: 5, downlink_kbps: 5 }),
        punts_per_s: 6,
        ..usual
    };
    assert_eq!(limits(&EXAMPLE.replace("# [dpe.limits]", few)).unwrap(), expected);
    for (wrong, why) in [
        ("kept = 15", "kept = 15: this is 16 to 1000000"),
        ("kept = 20\nkept_per_session = 21", "kept_per_session = 21: this is 1 to 20"),
        ("kept_per_session = 0", "this is 1 to 16384"),
        ("redirected_flows = 511", "this is 512 to 4194304"),
        ("kept_s = 3601", "this is 1 to 3600"),
        ("peers = 65537", "this is 16 to 65536"),
        ("neighbours = 0", "this is 16 to 65536"),
        ("held_per_neighbour = 257", "this is 1 to 256"),
        ("shared_meters = 1", "this is 16 to 1000000"),
        ("reassembled = 3", "reassembled = 3: this is 4 to 1024"),
        ("burst_ms = 2001", "burst_ms = 2001: this is 1 to 2000"),
        ("session_mbr_kbps = 0", "session_mbr_kbps = 0: this is 1 to 4294967295"),
        ("punts_per_s = 0", "punts_per_s = 0: this is 1 to 1000000"),
        ("keep = 1", "unknown field `keep`"),
    ] {
        let message = error("# [dpe.limits]", &format!("[dpe.limits]\n{wrong}"));
        assert!(message.contains(why) && message.contains("line "), "{message}");
    }
}

#[test]
fn errors_name_key_value_line_and_what_is_allowed() {
    for (from, to, expected) in [
        ("mtu = 1500", "mtu = 12", "mtu = 12: an MTU is 576 to 9600 bytes"),
        ("# vlan = 30", "vlan = 4095", "vlan = 4095: a VLAN is 1 to 4094"),
        ("interface = \"core\"", "interface = \"n6\"", "interface = \"n6\": unknown variant `n6`"),
        ("via = \"10.50.0.1\"", "via = \"10.51.0.1\"", "via = \"10.51.0.1\": is in the subnet of no port"),
        ("name = \"n6\"", "name = \"n3\"", "name = \"n3\": another port has this name"),
        ("10.30.0.2/24", "10.30.0.0/24", "a port's address is that of a host"),
        ("idle = \"poll\"", "idel = \"spin\"", "idel = \"spin\": unknown field `idel`"),
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
    assert_eq!(settings.unknown_network_instance, crate::settings::UnknownInstance::Refuse);
    let by_default = config::parse(EXAMPLE, check).unwrap().n4.unknown_network_instance;
    assert_eq!(by_default, crate::settings::UnknownInstance::Default);
    use crate::settings::UnknownApplication;
    assert_eq!(settings.unknown_application, UnknownApplication::Accept);
    let by_default = config::parse(EXAMPLE, check).unwrap().n4.unknown_application;
    assert_eq!(by_default, UnknownApplication::Refuse);
    let pools: Vec<_> = settings.ue_pools.iter().map(|pool| pool.prefix.to_string()).collect();
    assert_eq!(pools, ["10.60.0.0/16", "2001:db8:60::/48"]);
    assert_ne!(settings.predefined, ::n4::Predefined::default());
    assert!(config::parse(EXAMPLE, check).unwrap().gtpu_addresses()[0].ipv6.is_none());
    let with_ipv6 = EXAMPLE.replace("# ipv6 =", "ipv6 =");
    let address = config::parse(&with_ipv6, check).unwrap().gtpu_addresses()[0].ipv6;
    assert_eq!(address, Some("2001:db8:3::2".parse().unwrap()));
}

#[test]
fn timers_are_the_operators_within_bounds() {
    let shown = ["# control_planes", "# [n4.timers]", "# t1_s", "# n1", "# heartbeat_s", "# answers_s"];
    let text = shown
        .iter()
        .fold(EXAMPLE.to_owned(), |text, shown| text.replace(shown, shown.trim_start_matches("# ")));
    let defaults = config::parse(EXAMPLE, check).unwrap().n4;
    let shown = config::parse(&text, check).unwrap().n4;
    assert_eq!((shown.timers, shown.control_planes), (defaults.timers, defaults.control_planes));
    let text = text.replace("t1_s = 3", "t1_s = 5").replace("n1 = 3", "n1 = 7");
    let text =
        text.replace("heartbeat_s = 10", "heartbeat_s = 60").replace("answers_s = 30", "answers_s = 90");
    let timers = config::parse(&text, check).unwrap().n4.timers;
    let seconds = Duration::from_secs;
    let expected = TimerSettings { t1: seconds(5), n1: 7, heartbeat: seconds(60), answers: seconds(90) };
    assert_eq!(timers, expected);
    for wrong in ["t1_s = 5", "n1 = 7", "heartbeat_s = 60", "answers_s = 90", "control_planes = 64"] {
        let (key, _) = wrong.split_once(" =").unwrap();
        let refused = config::parse(&text.replace(wrong, &format!("{key} = 0")), check).unwrap_err();
        assert!(refused.to_string().contains("this is 1 to"), "{refused}");
    }
}

#[test]
fn silence_has_no_end_unless_told() {
    let silent_max = |value: &str| {
        let text = EXAMPLE.replace("# silent_max_s = 86400", value);
        config::parse(&text, check).map(|settings| settings.n4.silent_max)
    };
    for never in ["", "silent_max_s = 0"] {
        assert_eq!(silent_max(never).unwrap(), None);
    }
    assert_eq!(silent_max("silent_max_s = 86400").unwrap(), Some(Duration::from_secs(86_400)));
    let refused = silent_max("silent_max_s = 31536001").unwrap_err().to_string();
    assert!(refused.contains("this is 0 to 31536000"), "{refused}");
}

#[test]
fn sessions_that_nobody_names_stay_unless_told() {
    let stale_max = |value: &str| {
        let text = EXAMPLE.replace("# stale_max_s = 86400", value);
        config::parse(&text, check).map(|settings| settings.n4.stale_max)
    };
    for never in ["", "stale_max_s = 0"] {
        assert_eq!(stale_max(never).unwrap(), None);
    }
    assert_eq!(stale_max("stale_max_s = 86400").unwrap(), Some(Duration::from_secs(86_400)));
    let refused = stale_max("stale_max_s = 31536001").unwrap_err().to_string();
    assert!(refused.contains("this is 0 to 31536000"), "{refused}");
}

#[test]
fn usage_reports_are_paced_as_told() {
    let paced = |value: &str| {
        let text = EXAMPLE.replace("# usage_reports_per_s = 5000", value);
        config::parse(&text, check).map(|settings| settings.n4.usage_reports_per_s)
    };
    let told =
        ["", "usage_reports_per_s = 0", "usage_reports_per_s = 200"].map(|value| paced(value).unwrap());
    assert_eq!(told, [5_000, 0, 200]);
    let refused = paced("usage_reports_per_s = 1000001").unwrap_err().to_string();
    assert!(refused.contains("this is 0 to 1000000"), "{refused}");
}

/// The example with everything of `[n4]` that is only shown.
fn commented_in() -> String {
    let shown = [
        "# forwarding_policies",
        "# unknown_network_instance",
        "# unknown_application",
        "# [[n4.",
        "# name =",
        "# prefix =",
        "# network_instance =",
    ]
    .iter()
    .chain(&["# precedence =", "# filters =", "# action =", "# mbr_kbps =", "# rules = ["]);
    let (before, rest) = EXAMPLE.split_once("\n[n4]\n").unwrap();
    let (n4, after) = rest.split_once("\n# Content rules").unwrap();
    let n4 = shown.fold(n4.to_owned(), |text, shown| text.replace(shown, shown.trim_start_matches("# ")));
    format!("{before}\n[n4]\n{n4}\n# Content rules{after}")
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
fn what_rules_do_to_packets_is_told_and_fits_together() {
    let with = |keys: &str| {
        let text = format!("{EXAMPLE}\n[[n4.predefined_rule]]\nname = \"x\"\n{keys}");
        config::parse(&text, check).map(|settings| settings.n4.predefined)
    };
    let one = |keys: &str| with(keys).unwrap().named("x").next().cloned().unwrap();
    assert!(one("action = \"reset\"").resets);
    let seen = one("dscp = 46\nmirror = { address = \"192.0.2.9\", teid = 7 }");
    let mirror = seen.mirror.unwrap();
    assert_eq!((seen.dscp, mirror.destination_interface), (Some(46), rules::Interface::Core));
    let tunnel = mirror.outer_header_creation.unwrap();
    assert_eq!((tunnel.teid().unwrap().0, tunnel.address), (7, "192.0.2.9".parse().unwrap()));
    let elsewhere = one("redirect = \"192.0.2.80, 2001:db8::80\"\ndscp = 46");
    assert_eq!(elsewhere.redirect.unwrap().to_string(), "192.0.2.80,2001:db8::80");
    for (keys, expected) in [
        ("dscp = 64", "a DSCP is 0 to 63"),
        ("mirror = { address = \"192.0.2.9\", teid = 0 }", "nonzero"),
        ("mirror = { address = \"2001:db8::9\", teid = 7 }", "no port has an IPv6 address"),
        ("mirror = { address = \"192.0.2.9\", teid = 7, network_instance = \"far\" }", "instance \"far\""),
        ("action = \"reset\"\nredirect = \"http://a.example/\"", "dropped or reset is not redirected"),
        ("action = \"drop\"\ndscp = 1", "is not forwarded"),
        (
            "redirect = \"http://a.example/\"\nmirror = { address = \"192.0.2.9\", teid = 7 }",
            "is not forwarded",
        ),
        ("action = \"reset\"\nheader = { name = \"A\", value = \"b\" }", "is not forwarded"),
        ("redirect = \"192.0.2.80\"\nheader = { name = \"A\", value = \"b\" }", "get no field"),
        ("redirect = \"224.0.0.1\"", "the address of a host"),
        ("redirect = \"192.0.2.80, 192.0.2.81\"", "one of IPv4 and one of IPv6"),
    ] {
        let message = with(keys).unwrap_err().to_string();
        assert!(message.contains(expected), "{keys}: {message}");
    }
}

#[test]
fn nothing_is_charged_unless_told_how() {
    assert!(config::parse(EXAMPLE, check).unwrap().charging.is_none());
    let (before, rest) = EXAMPLE.split_once("# [charging]\n").unwrap();
    let (shown, after) = rest.split_once("\n\n").unwrap();
    let is_value = |line: &&str| line.contains(" = ") || line.starts_with("# [[");
    let values = shown.lines().filter(is_value).filter_map(|line| line.strip_prefix("# "));
    // The time of a place is shown beside it, and only one can be.
    let values: Vec<&str> = values.filter(|line| !line.starts_with("utc_offset")).collect();
    let text = format!("{before}[charging]\n{}\n\n{after}", values.join("\n"));
    let charging = config::parse(&text, check).unwrap().charging.unwrap();
    assert_eq!((charging.formats.len(), charging.file_age_ms), (2, 300_000));
    let key = ::charging::Key { rating_group: 10, service_id: Some(7) };
    assert_eq!(charging.offline.rating.key_of(150), Some(key));
    assert_eq!(charging.offline.policy.tariff_minutes, [360, 1_320]);
    assert_eq!(Some(charging.offline.policy.zone), ::charging::Zone::named("Europe/Berlin"));
    let with_rule = "[[n4.predefined_rule]]\nname = \"x\"\nservice_id = 3\n";
    let error = config::parse(&format!("{EXAMPLE}\n{with_rule}"), check).unwrap_err().to_string();
    assert!(error.contains("it belongs to a rating_group"), "{error}");
}

#[test]
fn resolvers_tell_nobody_but_who_asked_unless_they_are_named() {
    let content = |keys: &str| {
        let text = format!("{EXAMPLE}\n[content]\nrules = \"/r\"\n{keys}");
        config::parse(&text, check)
            .map(|settings| settings.content.unwrap())
            .map_err(|error| error.to_string())
    };
    let plain = content("").unwrap();
    assert_eq!((plain.resolvers.len(), plain.inspections, plain.connection_s), (0, 8_192, 7_440));
    assert_eq!(plain.enriched_connections, 4_096);
    assert_eq!(content("enriched_connections = 100").unwrap().enriched_connections, 100);
    let told = content("resolvers = [\"192.0.2.53\"]\ninspections = 100\nconnection_s = 900").unwrap();
    assert_eq!(told.resolvers, ["192.0.2.53".parse::<IpAddr>().unwrap()]);
    assert_eq!((told.inspections, told.connection_s), (100, 900));
    for (wrong, why) in [
        ("inspections = 10", "64 to 65535"),
        ("connection_s = 10", "300 to 64800"),
        ("enriched_connections = 10", "64 to 1048576"),
        ("resolvers = [\"ns.example\"]", "resolvers"),
    ] {
        let refused = content(wrong).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let many = content(&format!("resolvers = [{}]", "\"192.0.2.53\",".repeat(65))).unwrap_err();
    assert!(many.contains("more than 64 resolvers"), "{many}");
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

#[test]
fn the_static_rules_of_the_profile_are_right() {
    let text = include_str!("../../../../../config/zte.toml");
    let predefined = config::parse(text, check).unwrap().n4.predefined;
    let rules: Vec<_> = predefined.named("zte").collect();
    assert_eq!(rules.len(), 45);
    for (rule, service) in rules.into_iter().zip(0..) {
        assert_eq!(rule.name, format!("pcc-{service}"));
        let name = traffic::catalogue::service_name(service);
        assert_eq!(rule.application, rules::ApplicationId::new(&name), "{}", rule.name);
    }
}

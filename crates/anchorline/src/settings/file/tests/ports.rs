//! `[[dpe.port]]`: addresses, networks and interfaces of ports, and what their cards are set up for.

use super::{EXAMPLE, error};
use crate::settings::ClassSettings;
use crate::settings::file::check;
use crate::settings::values::DeviceHash;
use config::ConfigError;
use n4::InterfaceTypes;
use std::net::Ipv4Addr;

#[test]
fn what_a_port_may_have_besides() {
    let text = EXAMPLE.replace("# vlan = 30", "vlan = 30").replace("# mss_clamp", "mss_clamp");
    let ports = config::parse(&text, check).unwrap().dpe.ports;
    assert_eq!((ports[0].vlan, ports[0].mss_clamp), (Some(30), true));
    assert_eq!((ports[1].vlan, ports[1].mss_clamp), (None, false));
}

/// However it is written, all behind the configuration have it in the form that DPDK and the kernel know.
#[test]
fn a_pci_address_has_one_form() {
    let with = |device: &str| config::parse(&EXAMPLE.replacen("net_af_packet0,iface=n3", device, 1), check);
    for (device, expected) in [
        ("3b:00.0", "0000:3b:00.0"),
        ("0000:3B:00.0,safe-mode-support=1", "0000:3b:00.0,safe-mode-support=1"),
        ("net_tap0,iface=T0", "net_tap0,iface=T0"),
    ] {
        assert_eq!(with(device).unwrap().dpe.ports[0].device, expected);
    }
    for device in ["3b:00", "0000:3b:00", "0000:3b:00.00", "3x:00.0"] {
        let refused = with(device).unwrap_err().to_string();
        let expected = format!("device = \"{device}\": a PCI address is written as \"0000:3b:00.0\"");
        assert!(refused.contains(&expected), "{refused}");
    }
    let twice = EXAMPLE.replacen("net_af_packet0,iface=n3", "3b:00.0", 1);
    let twice = config::parse(&twice.replacen("net_af_packet1,iface=n6", "0000:3B:00.0", 1), check);
    assert!(twice.unwrap_err().to_string().contains("another port has this device"));
}

#[test]
fn an_interface_has_one_port_of_af_packet() {
    let with = |device: &str| config::parse(&EXAMPLE.replacen("net_af_packet1,iface=n6", device, 1), check);
    for device in ["net_af_packet1,framecnt=4096,iface=n3", "eth_af_packet1,iface=n3"] {
        let refused = with(device).unwrap_err().to_string();
        let expected = format!("device = \"{device}\": another port of AF_PACKET is on this interface");
        assert!(refused.contains(&expected) && refused.contains(", line "), "{refused}");
    }
    for device in ["net_af_packet1,iface=n31", "net_tap1,iface=n3", "net_af_packet1"] {
        assert!(with(device).is_ok(), "{device}");
    }
}

/// Of each side and network the first port with a subnet has all that leaves for it.
#[test]
fn a_subnet_is_at_one_port_of_a_side_and_network() {
    let with = |port: &str| {
        let port = format!("\n[[dpe.port]]\nname = \"n6b\"\ndevice = \"net_tap9\"\n{port}\n");
        let text = EXAMPLE.replacen("# ipv6 =", "ipv6 =", 1) + &port;
        config::parse(&text, check).map(|_| ()).map_err(|error| error.to_string())
    };
    for fine in [
        "interface = \"core\"\naddress = \"10.50.0.3/25\"",
        "interface = \"access\"\naddress = \"10.50.0.3/24\"",
        "interface = \"core\"\naddress = \"10.50.0.3/24\"\nnetwork_instance = \"ims\"",
        "interface = \"core\"\naddress = \"10.51.0.3/24\"\nipv6 = \"2001:db8:3::3/64\"",
        "interface = \"core\"\nethernet = true",
    ] {
        assert_eq!(with(fine), Ok(()), "{fine}");
    }
    for (wrong, entry) in [
        ("interface = \"core\"\naddress = \"10.50.0.3/24\"", "address = \"10.50.0.3/24\""),
        (
            "interface = \"access\"\naddress = \"10.51.0.3/24\"\nipv6 = \"2001:db8:3::3/64\"",
            "ipv6 = \"2001:db8:3::3/64\"",
        ),
    ] {
        let refused = with(wrong).unwrap_err();
        let expected = format!("{entry}: another port of this side and network has this subnet");
        assert!(refused.contains(&expected) && refused.contains(", line "), "{refused}");
    }
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
        .replacen("# dscp", "dscp", 1);
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
    let is_all_there_is = |text: &str| {
        let settings = config::parse(text, check).unwrap();
        crate::cpe::config(&settings).unwrap().has_no_nameless_network
    };
    assert_eq!((is_all_there_is(EXAMPLE), is_all_there_is(&named)), (false, true));
    let access = named.replacen("network_instance = \"access\"", "", 1);
    assert!(is_all_there_is(&access), "no plain packets come from there");
    let other = "\n[[dpe.port]]\nname = \"n6b\"\ndevice = \"net_tap9\"\ninterface = \"core\"\naddress = \"10.99.0.2/24\"\n";
    assert!(!is_all_there_is(&(named.clone() + other)));
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

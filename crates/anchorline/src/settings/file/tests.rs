//! The example, and what it could say besides: settings are what is told, and what is wrong is refused by key and line.

mod dpe;
mod n4;
mod policies;
mod ports;
mod routes;

use super::check;
use rules::Interface;
use std::net::{IpAddr, Ipv4Addr};

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
fn a_port_with_ipv6_takes_what_its_links_do() {
    let with_mtu = |mtu: u16| format!("mtu = {mtu}\nipv6 = \"2001:db8:3::2/64\"");
    let message = error("mtu = 1500", &with_mtu(1279));
    assert!(
        message.contains("ipv6 = \"2001:db8:3::2/64\": a link of IPv6 takes packets of 1280 bytes"),
        "{message}"
    );
    assert!(config::parse(&EXAMPLE.replacen("mtu = 1500", &with_mtu(1280), 1), check).is_ok());
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
        ("10.30.0.2/24", "10.30.0.2", "the length of its subnet's prefix is missing, as in \"10.30.0.2/24\""),
        ("10.30.0.2/24", "10.30.0/24", "a port's address is that of a host with its prefix, like"),
        (
            "10.30.0.2/24",
            "010.30.0.2/24",
            "address = \"010.30.0.2/24\": a number of an IPv4 address has no zero before it",
        ),
        ("10.30.0.2/24", "10.30.00.2", "a number of an IPv4 address has no zero before it"),
        ("\"0.0.0.0/0\"", "\"00.0.0.0/0\"", "a number of an IPv4 address has no zero before it"),
        (
            "mtu = 1500",
            "ipv6 = \"fe80::1/64\"",
            "ipv6 = \"fe80::1/64\": tunnels end at this address: one of a link",
        ),
        ("id = \"10.40.0.2\"", "id = \"0.0.0.0\"", "id = \"0.0.0.0\": a Node ID is the address of one node"),
        ("10.40.0.2:8805", "224.0.0.1:8805", "it cannot be that of a group or of everybody"),
        ("10.40.0.2:8805", "255.255.255.255:8805", "it cannot be that of a group or of everybody"),
        (
            "mtu = 1500",
            "ipv6 = \"2001:db8:3::2\"",
            "the length of its subnet's prefix is missing, as in \"2001:db8:3::2/64\"",
        ),
        ("mtu = 1500", "ipv6 = \"10.30.0.2/24\"", "a port's IPv6 address is that of a host with its prefix"),
        (
            "10.40.0.2:8805",
            "10.40.0.2",
            "listen = \"10.40.0.2\": the port is missing, as in \"10.40.0.2:8805\"",
        ),
        ("10.40.0.2:8805", "2001:db8:4::2", "the port is missing, as in \"[2001:db8:4::2]:8805\""),
        ("10.40.0.2:8805", "upf.example:8805", "PFCP is served at an IP address and port"),
        (
            "\"0.0.0.0/0\"",
            "\"10.0.0.0\"",
            "prefix = \"10.0.0.0\": the length of the prefix is missing, as in \"10.0.0.0/8\"",
        ),
        ("\"0.0.0.0/0\"", "\"0.0.0.0\"", "the length of the prefix is missing, as in \"0.0.0.0/0\""),
        ("\"0.0.0.0/0\"", "\"192.0.2.130\"", "as in \"192.0.2.130/32\""),
        ("\"0.0.0.0/0\"", "\"2001:db8::\"", "as in \"2001:db8::/32\""),
        ("\"0.0.0.0/0\"", "\"10.0.0.0/33\"", "a prefix is an IP address and a length, like 10.0.0.0/8"),
    ] {
        let message = error(from, to);
        assert!(message.contains(expected), "{message}");
    }
    assert!(error("mtu = 1500", "mtu = 12").starts_with("configuration, line "), "the line is named");
    let line = 1 + EXAMPLE.lines().position(|line| line == "prefix = \"0.0.0.0/0\"").unwrap();
    let named = format!("configuration, line {line}: prefix = ");
    assert!(error("\"0.0.0.0/0\"", "\"10.0.0.0\"").starts_with(&named), "as is that of a table of an array");
}

#[test]
fn sockets_have_names_that_are_not_too_long() {
    let with = |folder: &str| {
        let text = EXAMPLE.replacen("\"/run/anchorline\"", &format!("\"{folder}\""), 1);
        config::parse(&text, check)
    };
    let longest = format!("/{}", "x".repeat(97));
    let socket = with(&longest).unwrap().control();
    let place = std::os::unix::net::SocketAddr::from_pathname(&socket);
    assert!(place.is_ok() && socket.as_os_str().len() == 107);
    assert!(with(&format!("{longest}/")).is_ok());
    let longer = format!("{longest}x");
    let refused = with(&longer).unwrap_err().to_string();
    let expected =
        format!("run_dir = \"{longer}\": sockets are in it, whose paths would be too long: it has 98 octets");
    assert!(refused.contains(&expected) && refused.contains(", line "), "{refused}");
}

/// A folder without a name is wherever somebody is, and nobody knows a port that the kernel chose.
#[test]
fn what_nobody_could_find_is_refused() {
    let metrics = "[metrics]\nlisten = \"127.0.0.1:9100\"";
    let text = format!("{EXAMPLE}\n{metrics}\n");
    assert!(config::parse(&text, check).is_ok());
    for (old, new, why) in [
        ("\"/run/anchorline\"", "\"\"", "this is the name of a folder"),
        ("\"/var/lib/anchorline\"", "\"\"", "this is the name of a folder"),
        ("listen = \"10.40.0.2:8805\"", "listen = \"10.40.0.2:0\"", "8805 mostly; 0 is none"),
        (metrics, "[metrics]\nlisten = \"127.0.0.1:0\"", "nobody would know the port; 0 is none"),
    ] {
        assert!(text.contains(old), "{old}");
        let refused = config::parse(&text.replacen(old, new, 1), check).unwrap_err().to_string();
        assert!(refused.contains(why) && refused.contains(", line "), "{refused}");
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
    assert_eq!((charging.formats.len(), charging.file_age.as_secs()), (2, 300));
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

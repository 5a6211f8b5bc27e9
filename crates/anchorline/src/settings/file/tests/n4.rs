//! `[n4]`: where control planes find the node, what they may find, and how long they are waited for.

use super::EXAMPLE;
use crate::settings::file::check;
use crate::settings::timers::TimerSettings;
use config::NodeIdText;
use std::net::SocketAddr;
use std::time::Duration;

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
fn what_control_planes_may_find_besides() {
    assert_eq!(config::parse(EXAMPLE, check).unwrap().n4.ue_pools, []);
    let settings = config::parse(&commented_in(), check).unwrap().n4;
    assert_eq!(settings.unknown_network_instance, crate::settings::UnknownInstance::Refuse);
    let by_default = config::parse(EXAMPLE, check).unwrap().n4.unknown_network_instance;
    assert_eq!(by_default, crate::settings::UnknownInstance::Default);
    use crate::settings::UnknownApplication;
    assert_eq!(settings.unknown_application, UnknownApplication::Accept);
    let by_default = config::parse(EXAMPLE, check).unwrap().n4.unknown_application;
    assert_eq!(by_default, UnknownApplication::Refuse);
    let bare = commented_in().replacen("10.60.0.0/16", "10.60.0.0", 1);
    let refused = config::parse(&bare, check).unwrap_err().to_string();
    assert!(
        refused
            .ends_with("prefix = \"10.60.0.0\": the length of the prefix is missing, as in \"10.60.0.0/16\"")
    );
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
        ("10.60.0.0/16", "224.0.0.0/16", "no user can have these addresses"),
        ("10.60.0.0/16", "2001:db8:60:8000::/49", "overlaps with another pool"),
        (
            "10.60.0.0/16",
            "10.50.0.0/16",
            "prefix = \"10.50.0.0/16\": contains 10.50.0.2, the address of port n6, which no user can have",
        ),
        (
            "# ipv6 = \"2001:db8:3::2",
            "ipv6 = \"2001:db8:60::2",
            "contains 2001:db8:60::2, the address of port n3",
        ),
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
fn what_is_wrong_with_predefined_rules_together_is_named_with_its_line() {
    let text = commented_in();
    let many = ["permit out ip from any to assigned"; 65].join("\", \"");
    for (from, to, expected) in [
        (
            "\"video\", \"ads\"",
            "\"video\", \"adds\"",
            "the group \"family\" has a rule \"adds\", which does not",
        ),
        ("name = \"family\"", "name = \"ads\"", "\"ads\" is the name of two rules or groups"),
        ("name = \"ads\"", "name = \"video\"", "\"video\" is the name of two rules or groups"),
        ("name = \"family\"", "name = \"\"", "a name has 1 to 255 octets"),
        (
            "permit out tcp from 198.51.100.0/24 80,443 to assigned",
            &many,
            "rule \"ads\" cannot be in a session",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let text = text.replacen(from, to, 1);
        let message = config::parse(&text, check).unwrap_err().to_string();
        let blamed = if to == many { "name = \"ads\"" } else { to };
        // The last of those that say it: what came before was right.
        let line =
            1 + text.lines().collect::<Vec<_>>().iter().rposition(|line| line.contains(blamed)).unwrap();
        assert!(message.contains(&format!("line {line}: ")) && message.contains(expected), "{message}");
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
    let steered = "[[dpe.forwarding_policy]]\nname = \"a\"\n";
    let text =
        format!("{EXAMPLE}\n[[n4.predefined_rule]]\nname = \"x\"\nforwarding_policy = \"a\"\n{steered}");
    let table = config::parse(&text, check).unwrap().n4.predefined;
    assert_eq!(table.named("x").next().unwrap().policy, Some(rules::Policy::of(b"a")));
    let elsewhere = one("redirect = \"192.0.2.80, 2001:db8::80\"\ndscp = 46");
    assert_eq!(elsewhere.redirect.unwrap().to_string(), "192.0.2.80,2001:db8::80");
    for (keys, expected) in [
        ("dscp = 64", "a DSCP is 0 to 63"),
        ("mirror = { address = \"192.0.2.9\", teid = 0 }", "nonzero"),
        ("mirror = { address = \"2001:db8::9\", teid = 7 }", "no port has an IPv6 address"),
        ("mirror = { address = \"192.0.2.9\", teid = 7, network_instance = \"far\" }", "instance \"far\""),
        ("action = \"reset\"\nredirect = \"http://a.example/\"", "dropped or reset is not redirected"),
        ("action = \"drop\"\ndscp = 1", "is not forwarded"),
        ("action = \"drop\"\nforwarding_policy = \"a\"", "is not forwarded"),
        (
            "forwarding_policy = \"a\"",
            "forwarding_policy = \"a\": is the name of no [[dpe.forwarding_policy]]",
        ),
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

/// What is no key is refused with all that are.
#[test]
fn the_example_explains_every_key_of_predefined_rules() {
    let known = |wrong: &str| {
        let text = format!("{EXAMPLE}\n[[n4.predefined_rule]]\nname = \"x\"\n{wrong}");
        let told = config::parse(&text, check).unwrap_err().to_string();
        told.split('`').skip(3).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let (keys, actions) = (known("colour = 1"), known("action = \"paint\""));
    assert!(keys.len() > 15 && actions.len() == 3, "{keys:?}, {actions:?}");
    let (_, behind) = EXAMPLE.split_once("# Rules that control planes switch on by name").unwrap();
    let lines = behind.lines().take_while(|line| *line != "# [[n4.predefined_rule]]");
    let explained: Vec<&str> = lines.filter(|line| line.starts_with("#   ")).collect();
    let heads = explained.iter().filter_map(|line| line.get(4..31)).flat_map(|head| head.split([' ', ',']));
    let heads: Vec<&str> = heads.collect();
    for key in keys.iter().filter(|key| *key != "name") {
        assert!(heads.contains(&key.as_str()), "{key} is not explained");
    }
    let line = explained.iter().find(|line| line.starts_with("#   action ")).unwrap();
    actions.iter().for_each(|action| assert!(line.contains(&format!("\"{action}\"")), "{action}"));
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
    let text = include_str!("../../../../../../config/zte.toml");
    let predefined = config::parse(text, check).unwrap().n4.predefined;
    let rules: Vec<_> = predefined.named("zte").collect();
    assert_eq!(rules.len(), 45);
    for (rule, service) in rules.into_iter().zip(0..) {
        assert_eq!(rule.name, format!("pcc-{service}"));
        let name = traffic::catalogue::service_name(service);
        assert_eq!(rule.application, rules::ApplicationId::new(&name), "{}", rule.name);
    }
}

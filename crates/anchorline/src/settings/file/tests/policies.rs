//! `[[dpe.forwarding_policy]]`.

use super::EXAMPLE;
use crate::settings::file::check;
use dataplane::PolicyConfig;
use n4::ForwardingPolicy;
use rules::{Instance, Policy};

/// The example's policy, and a port with what it names.
fn example() -> String {
    let text = EXAMPLE.replacen("# via6 =", "via6 =", 1).replacen("# dscp = 10", "dscp = 10", 1);
    let keys = ["[[dpe.forwarding_policy]]\n", "name = \"mec1\"", "via = \"10.50.0.7\""];
    let text = keys.iter().fold(text, |text, key| text.replacen(&format!("# {key}"), key, 1));
    text.replacen("address = \"10.50.0.2/24\"", "address = \"10.50.0.2/24\"\nipv6 = \"2001:db8:6::2/64\"", 1)
}

#[test]
fn a_policy_says_next_hops_and_a_mark() {
    assert_eq!(config::parse(EXAMPLE, check).unwrap().dpe.policies, []);
    let settings = config::parse(&example(), check).unwrap();
    let expected = PolicyConfig {
        name: "mec1".to_owned(),
        via: Some([10, 50, 0, 7].into()),
        via6: Some("2001:db8:6::7".parse().unwrap()),
        instance: None,
        dscp: Some(10),
    };
    assert_eq!(settings.dpe.policies, [expected]);
    let told = crate::cpe::config(&settings).unwrap().forwarding_policies;
    assert_eq!(told, [ForwardingPolicy::of_any("mec1")]);
    let named = example()
        .replacen("ipv6 = \"2001:db8:6::2/64\"", "ipv6 = \"2001:db8:6::2/64\"\nnetwork_instance = \"lan\"", 1)
        .replacen("dscp = 10", "network_instance = \"LAN\"", 1);
    let named = config::parse(&named, check).unwrap();
    assert_eq!(named.dpe.policies[0].instance, Some(Instance::of("lan")));
    let told = crate::cpe::config(&named).unwrap().forwarding_policies;
    assert_eq!(told[0].instance, Some(Instance::of("lan")));
    let bare = format!("{EXAMPLE}[[dpe.forwarding_policy]]\nname = \"known\"\n");
    let bare = config::parse(&bare, check).unwrap().dpe.policies;
    assert_eq!((bare[0].via, bare[0].via6), (None, None), "a name that is taken and changes nothing");
}

#[test]
fn what_is_wrong_with_a_policy_is_said_by_key_and_line() {
    let text = example();
    let line = |key: &str| 1 + text.lines().position(|line| line.starts_with(key)).unwrap();
    let no_port = "is in the subnet of no port of the core side or the SGi-LAN";
    for (from, to, key, expected) in [
        ("via = \"10.50.0.7\"", "via = \"10.51.0.7\"", "via = \"10.50.0.7", no_port),
        ("via = \"10.50.0.7\"", "via = \"10.30.0.7\"", "via = \"10.50.0.7", no_port),
        ("via = \"10.50.0.7\"", "via = \"10.50.0.2\"", "via = \"10.50.0.7", "is an address of this node"),
        ("via6 = \"2001:db8:6::7\"", "via6 = \"2001:db8:7::7\"", "via6", no_port),
        ("via6 = \"2001:db8:6::7\"", "via6 = \"2001:db8:6::2\"", "via6", "is an address of this node"),
        ("via6 = \"2001:db8:6::7\"", "via6 = \"10.50.0.7\"", "via6", "invalid IPv6 address"),
        ("dscp = 10", "dscp = 64", "dscp", "a DSCP is 0 to 63"),
        ("dscp = 10", "network_instance = \"lan\"", "dscp", "is the network instance of no port"),
        (
            "name = \"mec1\"",
            "name = \"\"",
            "name = \"mec1",
            "a forwarding policy has a name of 1 to 128 octets",
        ),
        ("dscp = 10", "next_hop = \"10.50.0.7\"", "dscp", "unknown field `next_hop`"),
    ] {
        assert!(text.contains(from), "{from}");
        let refused = config::parse(&text.replacen(from, to, 1), check).unwrap_err().to_string();
        let place = format!("configuration, line {}: {to}: ", line(key));
        assert!(refused.starts_with(&place) && refused.contains(expected), "{refused}");
    }
}

#[test]
fn policies_are_told_apart_and_are_not_too_many() {
    let named = |names: &[&str]| {
        let tables = names.iter().map(|name| format!("[[dpe.forwarding_policy]]\nname = \"{name}\"\n"));
        config::parse(&format!("{EXAMPLE}{}", tables.collect::<String>()), check)
            .map(|settings| settings.dpe.policies.len())
            .map_err(|error| error.to_string())
    };
    assert_eq!(named(&["a", "A"]), Ok(2), "names are octets");
    assert!(named(&["a", "a"]).unwrap_err().contains("another forwarding policy has this name"));
    // Found by trying: one digest of 32 bits.
    let (one, other) = ("liquid", "costarring");
    assert_eq!(Policy::of(one.as_bytes()), Policy::of(other.as_bytes()));
    assert!(named(&[one, other]).unwrap_err().contains("cannot be told apart"));
    let many: Vec<String> = (0..257).map(|number| format!("p{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(named(&many).unwrap_err().contains("257 forwarding policies are more than the 256 allowed"));
    let lone = format!("{EXAMPLE}[[dpe.forwarding_policy]]\nname = \"a\"\nnetwork_instance = \"lan\"\n");
    let refused = config::parse(&lone, check).unwrap_err().to_string();
    assert!(refused.contains("says by which port a next hop is reached, and there is none"), "{refused}");
}

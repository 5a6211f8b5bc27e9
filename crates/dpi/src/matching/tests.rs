//! The classifier against a search of all rules, one after the other.

use super::*;
use crate::extract::Protocols;
use ipnet::IpNet;
use proptest::prelude::*;
use std::net::IpAddr;

/// Lookups among them, whose rules are of their own.
const LAYERS: [Layer; 4] = [Layer::Http, Layer::Http2, Layer::Tls, Layer::Dns];

/// Application protocols that rules ask for, and lists of them as ClientHellos have them.
const PROTOCOLS: [&str; 3] = ["h2", "h3", "http/1.1"];
const OFFERS: [&[u8]; 4] = [b"", b"\x02h2", b"\x02h3\x02h2", b"\x08http/1.1\x03h2c"];

fn any_of<T>(list: &[T], holds: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(holds)
}

fn finds(regex: &Option<String>, text: Option<String>) -> bool {
    let Some(regex) = regex else { return true };
    text.is_some_and(|text| regex::Regex::new(regex).unwrap().is_match(&text))
}

/// The conditions as their documentation has them.
fn matches(when: &Conditions, facts: &Facts<'_>) -> bool {
    let host = facts.host.map(|host| String::from_utf8(host.to_ascii_lowercase()).unwrap());
    let path = facts.path.map(|path| String::from_utf8(path.to_vec()).unwrap());
    let url = host.clone().zip(path.clone()).map(|(host, path)| host + &path);
    any_of(&when.hosts, |pattern| host.as_ref().is_some_and(|host| pattern.matches(host.as_bytes())))
        && any_of(&when.paths, |pattern| path.as_ref().is_some_and(|path| pattern.matches(path.as_bytes())))
        && any_of(&when.networks, |network| network.contains(&facts.server))
        && any_of(&when.ports, |range| range.contains(facts.server_port))
        && any_of(&when.layers, |layer| facts.layer == Some(*layer))
        && (facts.layer != Some(Layer::Dns) || !asks_for_host(when) || when.layers.contains(&Layer::Dns))
        && (!when.ech || facts.ech)
        && any_of(&when.alpn, |name| {
            let mut offered = facts.alpn;
            offered.any(|protocol| protocol == name.as_bytes())
        })
        && when.protocol.is_none_or(|protocol| protocol == facts.protocol)
        && when.dscp.is_none_or(|dscp| dscp == facts.dscp)
        && finds(&when.host_regex, host)
        && finds(&when.url_regex, url)
}

fn asks_for_host(when: &Conditions) -> bool {
    !when.hosts.is_empty() || when.host_regex.is_some() || when.url_regex.is_some()
}

fn slow(rules: &[Rule], facts: &Facts<'_>) -> Option<u32> {
    let matching = rules.iter().filter(|rule| matches(&rule.when, facts));
    matching.min_by_key(|rule| (rule.precedence, rule.id)).map(|rule| rule.id)
}

fn list<T: std::fmt::Debug>(of: impl Strategy<Value = T> + 'static) -> impl Strategy<Value = Vec<T>> {
    let of = std::rc::Rc::new(of.boxed());
    prop_oneof![3 => Just(0..1), 2 => Just(1..2), 1 => Just(1..4)]
        .prop_flat_map(move |range| proptest::collection::vec(of.as_ref().clone(), range))
}

fn host_pattern() -> impl Strategy<Value = HostPattern> {
    r"(\*\.|\.|\*)?[ab]{1,2}(\*)?[ab]?(\.[ab]){0,2}"
        .prop_filter_map("no pattern", |text| text.parse::<HostPattern>().ok())
}

fn path_pattern() -> impl Strategy<Value = PathPattern> {
    r"[/*][ab/]{0,3}[*]?[ab/]{0,2}[*]?".prop_filter_map("no pattern", |text| text.parse::<PathPattern>().ok())
}

/// Few addresses, so that networks meet them.
fn address() -> impl Strategy<Value = IpAddr> {
    let four = (0..4_u32, 0..4_u32).prop_map(|(high, low)| IpAddr::from((high << 30 | low).to_be_bytes()));
    let six = (0..4_u128, 0..4_u128).prop_map(|(high, low)| IpAddr::from((high << 126 | low).to_be_bytes()));
    prop_oneof![four, six]
}

fn network() -> impl Strategy<Value = IpNet> {
    (address(), 0..=128_u8).prop_map(|(address, length)| {
        let most = if address.is_ipv4() { 32 } else { 128 };
        IpNet::new(address, length.min(most)).unwrap()
    })
}

fn ports() -> impl Strategy<Value = PortRange> {
    (0..6_u16, prop_oneof![Just(0), 0..3_u16])
        .prop_map(|(first, more)| PortRange { first, last: first + more })
}

fn regex() -> impl Strategy<Value = Option<String>> {
    proptest::option::weighted(0.15, r"\^?[ab]{1,4}[+*]?(\.|/|\(a\|b\))?[ab]{0,3}\$?".prop_map(|text| text))
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let texts = (list(host_pattern()), list(path_pattern()), regex(), regex());
    let numbers = (
        list(network()),
        list(ports()),
        proptest::option::weighted(0.2, 0..3_u8),
        list(proptest::sample::select(&LAYERS)),
        proptest::option::weighted(0.1, 0..2_u8),
        proptest::bool::weighted(0.1),
        list(proptest::sample::select(&PROTOCOLS).prop_map(Box::from)),
    );
    (texts, numbers).prop_map(|(texts, numbers)| {
        let (hosts, paths, host_regex, url_regex) = texts;
        let (networks, ports, protocol, layers, dscp, ech, alpn) = numbers;
        Conditions { hosts, paths, host_regex, url_regex, networks, ports, protocol, layers, dscp, ech, alpn }
    })
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    proptest::collection::vec((conditions(), 0..40_u32), 0..60).prop_map(|list| {
        let rule = |(at, (when, precedence)): (usize, (Conditions, u32))| Rule {
            // Not in order.
            id: (at as u32).wrapping_mul(0x9e37_79b1),
            precedence,
            rating_group: at as u32,
            application: None,
            service: None,
            when,
        };
        list.into_iter().enumerate().map(rule).collect()
    })
}

type Asked = (Option<String>, Option<String>, IpAddr, (u16, u8, u8, Option<Layer>, bool, &'static [u8]));

fn asked() -> impl Strategy<Value = Asked> {
    let host = proptest::option::weighted(0.8, r"[aAbB]{0,3}(\.[ab]{1,2}){0,3}");
    let path = proptest::option::weighted(0.6, r"/[ab/]{0,6}");
    let layer = proptest::option::of(proptest::sample::select(&LAYERS));
    let alpn = proptest::sample::select(&OFFERS[..]);
    (host, path, address(), (0..6_u16, 0..3_u8, 0..2_u8, layer, proptest::bool::ANY, alpn))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_best_of_all_that_match_is_found(
        rules in rules(),
        questions in proptest::collection::vec(asked(), 40),
    ) {
        let classifier = compile(&rules).unwrap();
        for (host, path, server, (server_port, protocol, dscp, layer, ech, alpn)) in &questions {
            let facts = Facts {
                server: *server,
                server_port: *server_port,
                protocol: *protocol,
                dscp: *dscp,
                layer: *layer,
                host: host.as_deref().map(str::as_bytes),
                path: path.as_deref().map(str::as_bytes),
                ech: *ech,
                alpn: Protocols::new(alpn),
            };
            prop_assert_eq!(classifier.classify(&facts).map(|found| found.id), slow(&rules, &facts), "{:?}", facts);
        }
    }
}

fn rule(id: u32, when: Conditions) -> Rule {
    Rule { id, precedence: 100, rating_group: id, service: None, application: None, when }
}

#[test]
fn many_ports_and_paths_of_one_group_are_found_by_them() {
    let network: IpNet = "192.0.2.0/24".parse().unwrap();
    let port = |port: u16| Conditions {
        networks: vec![network],
        ports: vec![PortRange { first: port, last: port }],
        ..Conditions::default()
    };
    let path = |text: String| Conditions {
        hosts: vec!["a.example".parse().unwrap()],
        paths: vec![text.parse().unwrap()],
        ..Conditions::default()
    };
    let mut rules: Vec<Rule> = (0..500).map(|number| rule(number, port(number as u16))).collect();
    rules.extend((500..1_000).map(|number| rule(number, path(format!("/{number}/*")))));
    rules.extend((1_000..1_500).map(|number| rule(number, path(format!("*x{number}y")))));
    let classifier = compile(&rules).unwrap();
    for number in 0..1_500 {
        let path = if number < 1_000 { format!("/{number}/z") } else { format!("/z/x{number}y") };
        let facts = Facts {
            server: if number < 500 { "192.0.2.7".parse().unwrap() } else { "198.51.100.1".parse().unwrap() },
            server_port: number as u16,
            host: Some(b"A.example"),
            path: Some(path.as_bytes()),
            ..Facts::default()
        };
        assert_eq!(classifier.classify(&facts).map(|found| found.id), Some(number));
        assert_eq!(slow(&rules, &facts), Some(number));
    }
    assert_eq!((classifier.shape().paths, classifier.ports.len()), (1_000, 1));
}

/// Those of a network or host that has one rule, few, and more than fit the word that lies with it; each with and without
/// something left to check.
#[test]
fn rules_of_a_group_are_found_however_many_they_are() {
    for count in [1, 2, 3, 62, 63, 64, 200_u32] {
        let range = |number: u32| PortRange { first: number as u16 * 4, last: number as u16 * 4 + 2 };
        let network = |number| Conditions {
            networks: vec!["192.0.2.0/24".parse().unwrap()],
            ports: vec![range(number)],
            ..Conditions::default()
        };
        let host = |number| Conditions {
            hosts: vec![".a.example".parse().unwrap()],
            ports: vec![range(number)],
            ..Conditions::default()
        };
        let (one, any) =
            (|number| rule(number, network(number)), |number| rule(1_000 + number, host(number)));
        let mut rules: Vec<Rule> = (0..count).map(one).chain((0..count).map(any)).collect();
        rules.push(rule(
            3_000,
            Conditions { hosts: vec!["b.example".parse().unwrap()], ..Conditions::default() },
        ));
        let classifier = compile(&rules).unwrap();
        for port in 0..count as u16 * 4 {
            for (server, host) in
                [("192.0.2.1", "b.example"), ("192.0.3.1", "x.a.example"), ("192.0.2.1", "a.example")]
            {
                let facts = Facts {
                    server: server.parse().unwrap(),
                    server_port: port,
                    host: Some(host.as_bytes()),
                    ..Facts::default()
                };
                let found = classifier.classify(&facts).map(|found| found.id);
                assert_eq!(found, slow(&rules, &facts), "{count} {port} {host}");
            }
        }
    }
}

/// A lookup of a host is not with that host, but for rules of lookups.
#[test]
fn lookups_are_found_by_the_name_asked_for_where_rules_name_lookups() {
    let host = |layers: &[Layer]| Conditions {
        hosts: vec![".a.example".parse().unwrap()],
        layers: layers.to_vec(),
        ..Conditions::default()
    };
    let lookups = Conditions { layers: vec![Layer::Dns], ..Conditions::default() };
    let rules =
        [rule(1, host(&[])), rule(2, host(&[Layer::Tls])), rule(3, host(&[Layer::Dns])), rule(4, lookups)];
    let found = |rules: &[Rule], host: &str, layer| {
        let facts = Facts { host: Some(host.as_bytes()), layer, ..Facts::default() };
        compile(rules).unwrap().classify(&facts).map(|found| found.id)
    };
    assert_eq!(found(&rules, "www.a.example", Some(Layer::Dns)), Some(3));
    assert_eq!(found(&rules[..2], "www.a.example", Some(Layer::Dns)), None);
    assert_eq!(found(&rules, "www.b.example", Some(Layer::Dns)), Some(4));
    assert_eq!(found(&rules, "www.a.example", Some(Layer::Tls)), Some(1));
}

#[test]
fn only_rules_that_requests_may_be_of_tell_them_apart() {
    let apart = |text: &str| {
        let file = format!("id=1 precedence=1 rating-group=1 any\nid=2 precedence=2 rating-group=1 {text}\n");
        crate::rule_file::read_lines(&file).unwrap().compile().unwrap().tells_requests_apart()
    };
    for text in ["host=a.example", "path=/a", "url=a.example/b", "host-regex=a", "url-regex=a"] {
        assert!(apart(text) && apart(&format!("{text} layer=tls,http protocol=tcp")), "{text}");
        for other in ["layer=tls", "protocol=udp", "ech", "alpn=h2"] {
            assert!(!apart(&format!("{text} {other}")), "{text} {other}");
        }
    }
    for text in ["network=192.0.2.0/24", "port=80", "layer=http", "dscp=1 protocol=tcp"] {
        assert!(!apart(text), "{text}");
    }
}

#[test]
fn rules_that_cannot_be_are_named_each_with_its_reason() {
    let regex = |text: &str| Conditions { host_regex: Some(text.to_owned()), ..Conditions::default() };
    let rules = [
        rule(1, Conditions::default()),
        rule(1, Conditions::default()),
        rule(2, Conditions { dscp: Some(64), ..Conditions::default() }),
        rule(3, Conditions { ports: vec![PortRange { first: 2, last: 1 }], ..Conditions::default() }),
        rule(4, Conditions { hosts: vec!["a".parse().unwrap(); 1_025], ..Conditions::default() }),
    ];
    let problems = compile(&rules).unwrap_err();
    assert_eq!(
        problems,
        [
            (1, Problem::Duplicate(1)),
            (2, Problem::Dscp(64)),
            (3, Problem::Ports(2, 1)),
            (4, Problem::Alternatives)
        ]
    );
    let rules = [rule(1, regex("a")), rule(2, regex("(a|b)*a(a|b){20}")), rule(3, regex("("))];
    let problems = compile(&rules).unwrap_err();
    assert!(matches!(problems.as_slice(), [(1, Problem::Regex(_)), (2, Problem::Regex(_))]), "{problems:?}");
    // Nor does one reason hide another, of the same rule or of others.
    let both = Conditions { url_regex: Some("[".to_owned()), dscp: Some(64), ..regex("(") };
    let problems = compile(&[rule(1, both), rule(1, regex("a{")), rule(2, regex("a"))]).unwrap_err();
    assert!(
        matches!(
            problems.as_slice(),
            [
                (0, Problem::Dscp(64)),
                (0, Problem::Regex(_)),
                (0, Problem::Regex(_)),
                (1, Problem::Duplicate(1)),
                (1, Problem::Regex(_))
            ]
        ),
        "{problems:?}"
    );
}

#[test]
fn expressions_are_found_by_literals_and_those_without_do_not_become_too_many() {
    let regex = |text: String| Conditions { host_regex: Some(text), ..Conditions::default() };
    // Ten of each literal: four are found by it, the others searched for.
    let literal = |id: u32| rule(id, regex(format!("^{}[0-9]*\\.name{}\\.", id % 10, id / 10)));
    let rules: Vec<Rule> = (0..1_000).map(literal).collect();
    let classifier = compile(&rules).unwrap();
    assert!((10..=64).contains(&classifier.shape().loose_automata), "{:?}", classifier.shape());
    for id in 0..1_000 {
        let host = format!("{}77.name{}.example", id % 10, id / 10);
        let facts = Facts { host: Some(host.as_bytes()), ..Facts::default() };
        assert_eq!(classifier.classify(&facts).map(|found| found.id), Some(id), "{host}");
    }
    let two = |number: u32| [number / 26 % 26, number % 26].map(|letter| (b'a' + letter as u8) as char);
    let apart = |id: u32| {
        let [one, other] = two(id);
        rule(id, regex(format!("{one}{other}.*{other}{one}.*{one}{one}")))
    };
    let rules: Vec<Rule> = (0..400).map(apart).collect();
    let refused = compile(&rules).map(|classifier| classifier.shape()).unwrap_err();
    assert!(matches!(refused.as_slice(), [(64..400, Problem::LooseRegexes)]), "{refused:?}");
}

#[test]
fn workers_can_share_a_classifier() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(&compile(&[]).unwrap());
}

/// A prefix is of what a server looks for below it.
#[test]
fn a_path_is_looked_at_as_the_server_resolves_it() {
    let of = |text: &str| Conditions { paths: vec![text.parse().unwrap()], ..Conditions::default() };
    let url = Conditions { url_regex: Some(r"^a\.example/paid".to_owned()), ..Conditions::default() };
    let classifier = compile(&[rule(1, of("/free/*")), rule(2, of("/paid")), rule(3, url)]).unwrap();
    let found = |path: &str| {
        let facts = Facts { host: Some(b"a.example"), path: Some(path.as_bytes()), ..Facts::default() };
        classifier.classify(&facts).map(|outcome| outcome.id)
    };
    for path in ["/free/../paid", "/free/%2e%2e/paid", "/free/..%2fpaid", "/paid"] {
        assert_eq!(found(path), Some(2), "{path}");
    }
    assert_eq!(found("/free/..%2Fpaid/a"), Some(3));
    assert_eq!(found("/paid/../free/x?a=/../b"), Some(1));
    assert_eq!(found("/free/.well-known/a..b"), Some(1));
    // What stands behind the mark of a fragment is no part of the path, nor of the query.
    for path in ["/paid#/../free/x", "/paid#", "/free/../paid#/../free/x"] {
        assert_eq!(found(path), Some(2), "{path}");
    }
    assert_eq!(found("/free/x#/../../paid"), Some(1));
}

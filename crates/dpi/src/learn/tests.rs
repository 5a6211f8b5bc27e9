use super::*;
use crate::extract::dns::tests::{QUERY, RESPONSE, sample};

const MINUTE: u64 = 60_000;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn lookup() -> Lookup {
    Lookup { instance: 1, user: address("10.0.0.1"), user_port: 5_000, resolver: address("192.0.2.53") }
}

fn answer(name: &str, servers: &[&str]) -> Vec<u8> {
    let servers: Vec<IpAddr> = servers.iter().map(|server| address(server)).collect();
    sample((7, name, RESPONSE), &[], &servers)
}

fn query(name: &str) -> Vec<u8> {
    sample((7, name, QUERY), &[], &[])
}

fn learner() -> Learner {
    Learner::new(Config { names: 64, queries: 64, seed: 9, ..Config::default() })
}

fn known(learner: &Learner, server: &str, now_ms: u64) -> Option<String> {
    learner.name(1, address(server), now_ms).map(|name| String::from_utf8(name.to_vec()).unwrap())
}

#[test]
fn an_answer_to_a_query_names_its_servers_for_a_while() {
    let mut learner = learner();
    learner.query(&lookup(), &query("A.example"), 100);
    assert_eq!(
        learner.answer(&lookup(), &answer("a.example", &["198.51.100.1", "198.51.100.2"]), 200),
        Ok(2)
    );
    for server in ["198.51.100.1", "198.51.100.2"] {
        assert_eq!(known(&learner, server, 200), Some("a.example".to_owned()));
        assert_eq!(known(&learner, server, 199 + MINUTE), Some("a.example".to_owned()));
        assert_eq!(known(&learner, server, 200 + MINUTE), None);
    }
    assert_eq!(learner.name(2, address("198.51.100.1"), 200), None);
    assert_eq!(known(&learner, "198.51.100.3", 200), None);
}

#[test]
fn what_nobody_asked_is_not_believed() {
    let told = answer("a.example", &["198.51.100.1"]);
    let other_user = Lookup { user: address("10.0.0.2"), ..lookup() };
    let other_port = Lookup { user_port: 5_001, ..lookup() };
    let other_resolver = Lookup { resolver: address("192.0.2.54"), ..lookup() };
    let other_instance = Lookup { instance: 2, ..lookup() };
    for other in [other_user, other_port, other_resolver, other_instance] {
        let mut learner = learner();
        learner.query(&lookup(), &query("a.example"), 0);
        assert_eq!(learner.answer(&other, &told, 1), Err(Ignored::Unasked), "{other:?}");
    }
    let mut learner = learner();
    assert_eq!(learner.answer(&lookup(), &told, 1), Err(Ignored::Unasked));
    learner.query(&lookup(), &query("b.example"), 0);
    assert_eq!(learner.answer(&lookup(), &told, 1), Err(Ignored::Unasked));
    learner.query(&lookup(), &sample((8, "a.example", QUERY), &[], &[]), 0);
    assert_eq!(learner.answer(&lookup(), &told, 1), Err(Ignored::Unasked));
    learner.query(&lookup(), &query("a.example"), 0);
    assert_eq!(learner.answer(&lookup(), &told, 5_000), Err(Ignored::Unasked));
    assert_eq!(known(&learner, "198.51.100.1", 1), None);
}

#[test]
fn a_query_is_answered_once_and_not_by_a_query() {
    let mut learner = learner();
    learner.query(&lookup(), &query("a.example"), 0);
    assert_eq!(learner.answer(&lookup(), &query("a.example"), 1), Err(Ignored::NoAnswer));
    assert_eq!(learner.answer(&lookup(), &answer("a.example", &["198.51.100.1"]), 1), Ok(1));
    assert_eq!(learner.answer(&lookup(), &answer("a.example", &["198.51.100.2"]), 1), Err(Ignored::Unasked));
    // NXDOMAIN.
    learner.query(&lookup(), &query("a.example"), 0);
    let nothing = sample((7, "a.example", RESPONSE | 3), &[], &[]);
    assert_eq!(learner.answer(&lookup(), &nothing, 1), Err(Ignored::NoAnswer));
}

#[test]
fn only_resolvers_that_are_believed_teach() {
    let mut learner = Learner::new(Config { resolvers: vec![address("192.0.2.54")], ..Config::default() });
    learner.query(&lookup(), &query("a.example"), 0);
    let told = answer("a.example", &["198.51.100.1"]);
    assert_eq!(learner.answer(&lookup(), &told, 1), Err(Ignored::Resolver));
    let trusted = Lookup { resolver: address("192.0.2.54"), ..lookup() };
    learner.query(&trusted, &query("a.example"), 0);
    assert_eq!(learner.answer(&trusted, &told, 1), Ok(1));
}

#[test]
fn tables_never_grow_and_the_last_name_counts() {
    let mut learner = learner();
    let memory = learner.memory_bytes();
    for number in 0..1_000_u32 {
        let name = format!("{number}.example");
        let server = format!("198.51.{}.{}", 100 + number / 250, number % 250);
        learner.query(&lookup(), &query(&name), number.into());
        assert_eq!(learner.answer(&lookup(), &answer(&name, &[&server]), number.into()), Ok(1));
        assert_eq!(known(&learner, &server, number.into()), Some(name));
    }
    assert_eq!(learner.memory_bytes(), memory);
    let servers = (0..1_000).map(|number| format!("198.51.{}.{}", 100 + number / 250, number % 250));
    let remembered = servers.filter(|server| known(&learner, server, 1_000).is_some()).count();
    assert!((32..=64).contains(&remembered), "{remembered}");
    for name in ["one.example", "two.example"] {
        learner.query(&lookup(), &query(name), 0);
        learner.answer(&lookup(), &answer(name, &["198.51.100.9"]), 0).unwrap();
        assert_eq!(known(&learner, "198.51.100.9", 0), Some(name.to_owned()));
    }
}

#[test]
fn a_name_that_is_too_long_is_told() {
    let mut learner = learner();
    let long = format!("{}.{}.example", "a".repeat(60), "b".repeat(60));
    learner.query(&lookup(), &query(&long), 0);
    assert_eq!(learner.answer(&lookup(), &answer(&long, &["198.51.100.1"]), 1), Err(Ignored::Long));
}

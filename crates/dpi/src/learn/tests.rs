use super::*;
use crate::extract::dns::tests::{QUERY, RESPONSE, sample};

const MINUTE: u64 = 60_000;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn asker(text: &str) -> Asker {
    Asker { address: address(text), holder: 7 }
}

fn lookup() -> Lookup {
    Lookup { instance: 1, user: asker("10.0.0.1"), user_port: 5_000, resolver: address("192.0.2.53") }
}

fn answer(name: &str, servers: &[&str]) -> Vec<u8> {
    let servers: Vec<IpAddr> = servers.iter().map(|server| address(server)).collect();
    sample((7, name, RESPONSE), &[], &servers)
}

fn query(name: &str) -> Vec<u8> {
    sample((7, name, QUERY), &[], &[])
}

fn read(bytes: &[u8]) -> Message<'_> {
    Message::parse(bytes).unwrap()
}

fn learner() -> Learner {
    Learner::new(Config { names: 64, queries: 64, seed: 9, ..Config::default() })
}

/// How many addresses got a name.
fn names(learner: &mut Learner, told: &[u8], now_ms: u64) -> Result<usize, Ignored> {
    learner.answer(&lookup(), &read(told), now_ms).map(|answered| answered.names)
}

fn known(learner: &Learner, server: &str, now_ms: u64) -> Option<String> {
    learner
        .name((1, lookup().user), address(server), now_ms)
        .map(|name| String::from_utf8(name.to_vec()).unwrap())
}

#[test]
fn an_answer_to_a_query_names_its_servers_for_a_while() {
    let mut learner = learner();
    learner.query(&lookup(), &read(&query("A.example")), 100);
    assert_eq!(names(&mut learner, &answer("a.example", &["198.51.100.1", "198.51.100.2"]), 200), Ok(2));
    for server in ["198.51.100.1", "198.51.100.2"] {
        assert_eq!(known(&learner, server, 200), Some("a.example".to_owned()));
        assert_eq!(known(&learner, server, 199 + MINUTE), Some("a.example".to_owned()));
        assert_eq!(known(&learner, server, 200 + MINUTE), None);
    }
    assert_eq!(learner.name((2, lookup().user), address("198.51.100.1"), 200), None);
    assert_eq!(known(&learner, "198.51.100.3", 200), None);
}

#[test]
fn what_nobody_asked_is_not_believed() {
    let told = answer("a.example", &["198.51.100.1"]);
    let other_user = Lookup { user: asker("10.0.0.2"), ..lookup() };
    let other_port = Lookup { user_port: 5_001, ..lookup() };
    let other_resolver = Lookup { resolver: address("192.0.2.54"), ..lookup() };
    let other_instance = Lookup { instance: 2, ..lookup() };
    for other in [other_user, other_port, other_resolver, other_instance] {
        let mut learner = learner();
        learner.query(&lookup(), &read(&query("a.example")), 0);
        assert_eq!(learner.answer(&other, &read(&told), 1), Err(Ignored::Unasked), "{other:?}");
    }
    let mut learner = learner();
    assert_eq!(learner.answer(&lookup(), &read(&told), 1), Err(Ignored::Unasked));
    learner.query(&lookup(), &read(&query("b.example")), 0);
    assert_eq!(learner.answer(&lookup(), &read(&told), 1), Err(Ignored::Unasked));
    learner.query(&lookup(), &read(&sample((8, "a.example", QUERY), &[], &[])), 0);
    assert_eq!(learner.answer(&lookup(), &read(&told), 1), Err(Ignored::Unasked));
    learner.query(&lookup(), &read(&query("a.example")), 0);
    assert_eq!(learner.answer(&lookup(), &read(&told), 5_000), Err(Ignored::Unasked));
    assert_eq!(known(&learner, "198.51.100.1", 1), None);
}

#[test]
fn a_query_is_answered_once_and_not_by_a_query() {
    let mut learner = learner();
    learner.query(&lookup(), &read(&query("a.example")), 0);
    assert_eq!(learner.answer(&lookup(), &read(&query("a.example")), 1), Err(Ignored::NoAnswer));
    assert_eq!(names(&mut learner, &answer("a.example", &["198.51.100.1"]), 1), Ok(1));
    assert_eq!(
        learner.answer(&lookup(), &read(&answer("a.example", &["198.51.100.2"])), 1),
        Err(Ignored::Unasked)
    );
    // NXDOMAIN.
    learner.query(&lookup(), &read(&query("a.example")), 0);
    let nothing = sample((7, "a.example", RESPONSE | 3), &[], &[]);
    assert_eq!(learner.answer(&lookup(), &read(&nothing), 1), Err(Ignored::NoAnswer));
}

fn taught(learner: &mut Learner, lookup: &Lookup, name: &str, server: &str) {
    learner.query(lookup, &read(&query(name)), 0);
    learner.answer(lookup, &read(&answer(name, &[server])), 1).unwrap();
}

/// Whoever has a resolver of its own names servers for itself, and not those that others have a name for.
#[test]
fn a_resolver_of_one_s_own_teaches_nobody_else() {
    let known_resolver = address("192.0.2.54");
    let mut learner = Learner::new(Config { resolvers: vec![known_resolver], ..Config::default() });
    let other = |learner: &Learner, server: &str| {
        learner.name((1, asker("10.0.0.2")), address(server), 1).map(<[u8]>::to_vec)
    };
    taught(&mut learner, &lookup(), "mine.example", "198.51.100.1");
    assert_eq!(known(&learner, "198.51.100.1", 1).as_deref(), Some("mine.example"));
    assert_eq!(other(&learner, "198.51.100.1"), None);
    // Nor whoever has the address next.
    let next = Asker { holder: 8, ..lookup().user };
    assert_eq!(learner.name((1, next), address("198.51.100.1"), 1), None);
    let trusted = Lookup { resolver: known_resolver, user: asker("10.0.0.3"), ..lookup() };
    taught(&mut learner, &trusted, "true.example", "198.51.100.1");
    for name in [known(&learner, "198.51.100.1", 1).map(String::into_bytes), other(&learner, "198.51.100.1")]
    {
        assert_eq!(name.as_deref(), Some(&b"true.example"[..]));
    }
    taught(&mut learner, &lookup(), "mine.example", "198.51.100.1");
    assert_eq!(known(&learner, "198.51.100.1", 1).as_deref(), Some("true.example"));
    let of_prefix = Lookup { user: asker("2001:db8:1::1"), ..lookup() };
    taught(&mut learner, &of_prefix, "six.example", "198.51.100.2");
    let name = learner.name((1, asker("2001:db8:1::2")), address("198.51.100.2"), 1);
    assert_eq!(name, Some(&b"six.example"[..]), "of another address of its prefix");
}

/// One user's questions and answers take the room of few others.
#[test]
fn who_asks_for_very_many_names_takes_few_others_room() {
    let mut learner = Learner::new(Config::default());
    let users: Vec<Lookup> = (0..100)
        .map(|host| Lookup { user: Asker { address: [10, 1, 0, host].into(), holder: 7 }, ..lookup() })
        .collect();
    for user in &users {
        taught(&mut learner, user, "kept.example", "198.51.100.1");
        learner.query(user, &read(&query("asked.example")), 1);
    }
    for number in 0..40_000_u32 {
        let server = std::net::Ipv4Addr::from(0x0b00_0000 + number).to_string();
        taught(&mut learner, &lookup(), "flood.example", &server);
        learner.query(&lookup(), &read(&query(&format!("{number}.example"))), 1);
    }
    let server = address("198.51.100.1");
    let kept = users.iter().filter(|user| learner.name((1, user.user), server, 2).is_some()).count();
    let mut answered =
        |user: &&Lookup| learner.answer(user, &read(&answer("asked.example", &["198.51.100.7"])), 2).is_ok();
    let answered = users.iter().filter(|user| answered(user)).count();
    assert!(kept >= 95 && answered >= 95, "{kept} {answered}");
}

#[test]
fn tables_never_grow_and_the_last_name_counts() {
    let mut learner = learner();
    let memory = learner.memory_bytes();
    for number in 0..1_000_u32 {
        let name = format!("{number}.example");
        let server = format!("198.51.{}.{}", 100 + number / 250, number % 250);
        learner.query(&lookup(), &read(&query(&name)), number.into());
        assert_eq!(names(&mut learner, &answer(&name, &[&server]), number.into()), Ok(1));
        assert_eq!(known(&learner, &server, number.into()), Some(name));
    }
    assert_eq!(learner.memory_bytes(), memory);
    let servers = (0..1_000).map(|number| format!("198.51.{}.{}", 100 + number / 250, number % 250));
    let remembered = servers.filter(|server| known(&learner, server, 1_000).is_some()).count();
    // One user's, who has a part of the table.
    assert!((8..=64).contains(&remembered), "{remembered}");
    for name in ["one.example", "two.example"] {
        learner.query(&lookup(), &read(&query(name)), 0);
        learner.answer(&lookup(), &read(&answer(name, &["198.51.100.9"])), 0).unwrap();
        assert_eq!(known(&learner, "198.51.100.9", 0), Some(name.to_owned()));
    }
}

#[test]
fn a_name_that_is_too_long_is_told() {
    let mut learner = learner();
    let long = format!("{}.{}.example", "a".repeat(60), "b".repeat(60));
    learner.query(&lookup(), &read(&query(&long)), 0);
    assert_eq!(learner.answer(&lookup(), &read(&answer(&long, &["198.51.100.1"])), 1), Err(Ignored::Long));
}

/// Only the answer gets it, and that once.
#[test]
fn what_was_found_of_a_query_is_told_with_its_answer() {
    let mut learner = learner();
    let told = answer("a.example", &["198.51.100.1"]);
    let query = query("a.example");
    let found = Found::new(7).unwrap();
    learner.query_found(&lookup(), (&read(&query), &read(&query).name()), (found, 0));
    let other = Lookup { user_port: 5_001, ..lookup() };
    assert_eq!(learner.answer(&other, &read(&told), 1), Err(Ignored::Unasked));
    let found = Some(found);
    assert_eq!(learner.answer(&lookup(), &read(&told), 1), Ok(Answered { names: 1, found }));
    assert_eq!(learner.answer(&lookup(), &read(&told), 1), Err(Ignored::Unasked));
    learner.query(&lookup(), &read(&query), 0);
    assert_eq!(learner.answer(&lookup(), &read(&told), 1), Ok(Answered { names: 1, found: None }));
}

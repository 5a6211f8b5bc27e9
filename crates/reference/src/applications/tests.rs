use super::*;
use crate::worlds::{Random, Scope, World};
use crate::{ContentRule, Layer};
use rand::SeedableRng;

/// What comes of the packets of some worlds, by flow.
#[derive(Debug, Default)]
struct Seen {
    /// Flows of an application, with its first word or by address, and of none.
    known: [u32; 2],
    /// Known by what they said.
    said: u32,
    /// The same of TLS.
    of_tls: u32,
    /// Connections that begin with a lookup.
    of_lookups: u32,
    later_requests: u32,
    begun_anew: u32,
    /// Lookups and their answers.
    lookups: u32,
    /// Packets that wait, and of those that wait beside a connection that is known.
    waiting: u32,
    beside: u32,
    for_another: u32,
}

impl Seen {
    fn note(&mut self, before: Option<&Flow>, after: &Flow, owner: Seid) {
        let was = before.and_then(|flow| flow.known.as_ref());
        match (was, &after.known) {
            (None, Some(known)) => {
                *(if known.application.is_some() { &mut self.known[0] } else { &mut self.known[1] }) += 1;
                self.said += u32::from(known.may_change);
                self.of_tls += u32::from(known.layer == Some(Layer::Tls));
                self.of_lookups += u32::from(known.layer == Some(Layer::Dns));
            }
            (Some(was), Some(known)) if was.application != known.application => self.later_requests += 1,
            (Some(_), None) => self.begun_anew += 1,
            _ => {}
        }
        let is_another = after.waiter.as_ref().is_some_and(|waiter| waiter.owner != owner);
        self.for_another += u32::from(is_another);
        self.waiting += u32::from(after.waiter.is_some() && !is_another);
        self.beside += u32::from(after.waiter.is_some() && after.known.is_some());
    }
}

/// Or what random worlds are compared for would say nothing of it.
#[test]
fn flows_of_random_worlds_come_to_be_known_in_every_way() {
    let mut seen = Seen::default();
    for seed in 0..60 {
        let world = World::within(seed, Scope { twin_tunnels: false, ..Scope::ALL });
        let mut reference = Reference::new(world.setup.clone()).unwrap();
        world.content.iter().for_each(|rules| reference.load(rules.clone()));
        world.sessions.iter().for_each(|(seid, rules)| reference.put(*seid, rules.clone()));
        let random = &mut Random::seed_from_u64(seed);
        for number in 0..1_000 {
            let (port, frame) = world.packet(random);
            let before = reference.flows.clone();
            reference.process(port, &frame, number * 1_000);
            let Some((place, arrival)) = reference.seen.take() else { continue };
            let is_to_resolver = arrival.packet.protocol == UDP && arrival.ports().1 == Some(DNS);
            let message = datagram(&arrival.packet).filter(|_| is_to_resolver);
            seen.lookups += u32::from(message.and_then(|message| lookup::read(&message)).is_some());
            let name = reference.flow_name(place, &arrival);
            let of_name = |flow: &&Flow| flow.name == name;
            if let Some(after) = reference.flows.iter().find(of_name) {
                seen.note(before.iter().find(of_name), after, reference.sessions[place].seid);
            }
        }
    }
    let Seen {
        known,
        said,
        of_tls,
        of_lookups,
        later_requests,
        begun_anew,
        lookups,
        waiting,
        beside,
        for_another,
    } = seen;
    println!("{seen:?}");
    assert!(
        known[0] > 1_000 && known[1] > 1_000 && said > 100 && of_tls > 50 && later_requests > 5,
        "{seen:?}"
    );
    assert!(
        begun_anew > 10
            && lookups > 500
            && of_lookups > 20
            && waiting > 2_000
            && beside > 50
            && for_another > 0,
        "{seen:?}"
    );
}

#[test]
fn rules_are_written_as_operators_write_them() {
    let rule = ContentRule {
        id: 7,
        precedence: 2,
        application: Some("web".into()),
        hosts: vec![".a.example".into()],
        paths: vec!["/v*".into()],
        networks: vec!["192.0.2.0/24".parse().unwrap()],
        ports: vec![(80, 81)],
        protocol: Some(6),
        layers: vec![Layer::Http, Layer::Tls],
        dscp: Some(46),
        ech: true,
    };
    let text = "id=7 precedence=2 rating-group=1 application=web host=.a.example path=/v* network=192.0.2.0/24 \
                port=80-81 layer=http,tls protocol=6 dscp=46 ech";
    assert_eq!(rule.to_string(), text);
    let any = ContentRule { id: 1, precedence: 9, ..ContentRule::default() };
    assert_eq!(any.to_string(), "id=1 precedence=9 rating-group=1 any");
}

/// Over TCP, once it has come whole.
#[test]
fn a_connection_may_begin_with_a_lookup() {
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x1c\0\x01";
    let stream = [&[0, query.len() as u8][..], query].concat();
    for end in 0..stream.len() {
        assert_eq!(lookup::begins(&stream[..end]), request::Reading::More, "{end}");
    }
    let said = lookup::begins(&stream).told(false).unwrap();
    assert_eq!((said.host.as_deref(), said.layer), (Some("a.example"), Some(Layer::Dns)));
    // Too short, too long, an answer, two questions.
    for (at, octet) in [(1, 16), (0, 9), (4, 0x81), (7, 2)] {
        let mut other = stream.clone();
        other[at] = octet;
        assert_eq!(lookup::begins(&other), request::Reading::Other, "{at}");
    }
}

/// The line of the host has to be whole, or the head.
#[test]
fn a_request_says_its_host_and_path() {
    let said = |text: &str| match request::read(text.as_bytes(), false) {
        request::Reading::Said(said) => Some((said.host, said.path)),
        _ => None,
    };
    let of = |host: Option<&str>, path: &str| Some((host.map(str::to_owned), Some(path.to_owned())));
    assert_eq!(said("GET /v HTTP/1.1\r\nHOST: A.Example.:80\r\n"), of(Some("a.example"), "/v"));
    assert_eq!(said("GET /v HTTP/1.1\r\nHost: a.example"), None);
    assert_eq!(said("GET /v HTTP/1.0\r\n\r\n"), of(None, "/v"));
    assert_eq!(said("GET ws://b.example HTTP/1.1\nHost: a.example\n\n"), of(Some("b.example"), "/"));
    assert_eq!(said("GET / HTTP/1.1\nHost: a.example\nHost: b.example\n\n"), of(None, "/"));
}

/// Messages of scapy's.
#[test]
fn a_lookup_is_of_the_name_it_asks_for() {
    let said = |message: &[u8]| lookup::read(message).and_then(|said| said.host);
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x01X\x01a\x07Example\0\0\x1c\0\x01";
    let answer = b"\0\x07\x81\x80\0\x01\0\x01\0\0\0\0\x01b\x07example\0\0\x01\0\x01\
        \x01b\x07example\0\0\x10\0\x01\0\0\0\0\0\x05\x04text";
    assert_eq!(said(query).as_deref(), Some("x.a.example"));
    assert_eq!(said(answer).as_deref(), Some("b.example"));
    (0..query.len()).for_each(|end| assert_eq!(said(&query[..end]), None, "{end}"));
    // Another operation, two questions, another class, a dot within a label, and pointers to themselves and forwards.
    for (at, value) in [(2, 0x28), (5, 2), (query.len() - 1, 3), (15, b'.'), (12, 0xc0), (14, 0xff)] {
        let mut other = query.to_vec();
        other[at] = value;
        assert_eq!(said(&other), None, "{at}");
    }
}

/// Nor is it with that host for rules that do not say so.
#[test]
fn a_lookup_of_a_host_is_for_rules_of_lookups() {
    let said = Said { layer: Some(Layer::Dns), host: Some("a.example".into()), ..Said::default() };
    let facts = content::Facts { server: [192, 0, 2, 1].into(), port: 53, protocol: UDP, dscp: 0, said };
    let rule = |hosts: &[&str], layers: &[Layer]| ContentRule {
        application: Some("web".into()),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        layers: layers.to_vec(),
        ..ContentRule::default()
    };
    for (rule, is_of_it) in [
        (rule(&["a.example"], &[]), false),
        (rule(&["a.example"], &[Layer::Tls]), false),
        (rule(&["a.example"], &[Layer::Tls, Layer::Dns]), true),
        (rule(&["b.example"], &[Layer::Dns]), false),
        (rule(&[], &[]), true),
    ] {
        assert_eq!(application_of(std::slice::from_ref(&rule), &facts).is_some(), is_of_it, "{rule}");
    }
}

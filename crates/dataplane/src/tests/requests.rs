//! Connections with several requests of HTTP/1.x: each counts, with what is said until the next one, for what its own URL is of.

use super::content::{OTHER, bench, content, in_service, query};
use super::enrich::{FIELD, acknowledge};
use super::redirect::{ANSWER, SERVER_FIRST, TUNNEL, USER_FIRST, bench_with, down, flow, made, pass, up};
use crate::fixture::{Bench, N3, N6, PORTAL, SERVED, served};
use crate::graph::NodeId;
use dplink::{Notice, UsageCause};
use packet::tcp::flag;
use packet::{FiveTuple, ethernet, ipv4, tcp};
use proptest::prelude::*;
use rules::{HeaderField, Interface, Redirect, Rules, Seid, Triggers, Urr, UrrId};
use std::collections::HashMap;

const TEXT: &str = "id=1 precedence=1 rating-group=1 application=service-1 url=one.example/a*\n\
                    id=2 precedence=2 rating-group=2 application=service-2 url=one.example/b*\n\
                    id=3 precedence=3 rating-group=3 application=service-3 host=two.example\n";
pub(super) const ACK: u8 = flag::ACK | flag::PSH;

pub(super) fn get(url: &str) -> Vec<u8> {
    let (host, path) = url.split_once('/').unwrap();
    format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n").into_bytes()
}

/// One connection of the first user, and what each URR has to count of it: up and down.
pub(super) struct Connection {
    pub(super) bench: Bench,
    pub(super) flow: FiveTuple,
    pub(super) numbers: (u32, u32),
    expected: HashMap<u32, (u64, u64)>,
}

impl Connection {
    /// A handshake, which is of what the first request is of.
    pub(super) fn begin(text: &str, first: u32) -> Self {
        let mut bench = bench(64, 4_096);
        let rules = content(text, 7, &bench);
        bench.engine.load(rules);
        bench.settle();
        let numbers = (USER_FIRST, SERVER_FIRST);
        let mut connection = Self { bench, flow: flow(1), numbers, expected: HashMap::new() };
        connection.shake_hands(first);
        connection
    }

    /// The same flow, and the next life of the engine, which has this from the one before it, and other content rules before its session.
    pub(super) fn go_on_in(self, bench: Bench, text: &str) -> Self {
        let mut next = Self { bench, expected: HashMap::new(), ..self };
        let rules = content(text, 9, &next.bench);
        next.bench.engine.load(rules);
        next.bench.settle();
        next.bench.put(1, 1, in_service(1));
        next.bench.settle();
        next
    }

    /// A handshake before what [`Connection::numbers`] say comes next.
    pub(super) fn shake_hands(&mut self, first: u32) {
        let numbers = self.numbers;
        self.numbers.0 -= 1;
        self.send(flag::SYN, b"", first);
        self.numbers = (numbers.0, numbers.1.wrapping_sub(1));
        self.answer_with(flag::SYN | flag::ACK, b"", first);
        self.numbers = numbers;
        self.send(flag::ACK, b"", first);
    }

    /// A segment of the user, which this URR has to count.
    pub(super) fn send(&mut self, flags: u8, payload: &[u8], urr: u32) {
        let frame = up(1, &self.flow, &made(flags, self.numbers, payload));
        self.receive_up(&frame, urr);
        self.numbers.0 += payload.len() as u32;
        self.turn();
    }

    pub(super) fn receive_up(&mut self, frame: &[u8], urr: u32) {
        self.bench.receive(N3, frame);
        self.expected.entry(urr).or_default().0 += (frame.len() - TUNNEL) as u64;
    }

    pub(super) fn receive_down(&mut self, frame: &[u8], urr: u32) {
        self.bench.receive(N6, frame);
        self.expected.entry(urr).or_default().1 += (frame.len() - ethernet::LENGTH) as u64;
    }

    pub(super) fn say(&mut self, payload: &[u8], urr: u32) {
        self.send(ACK, payload, urr);
    }

    /// A segment of the server.
    pub(super) fn answer_with(&mut self, flags: u8, payload: &[u8], urr: u32) {
        let frame = down(&self.flow, &made(flags, (self.numbers.1, self.numbers.0), payload));
        self.receive_down(&frame, urr);
        self.numbers.1 += payload.len() as u32;
        self.turn();
    }

    /// What a server says to a request, and that the user has heard it.
    pub(super) fn answer(&mut self, urr: u32) {
        for _ in 0..4 {
            self.answer_with(ACK, &[b'x'; 1_000], urr);
            self.send(flag::ACK, b"", urr);
        }
    }

    pub(super) fn turn(&mut self) {
        self.bench.now_ns += 1_000;
        self.bench.worker.turn(self.bench.now_ns);
    }

    /// To the byte, each direction.
    pub(super) fn check(&mut self) {
        self.bench.settle();
        let told = query(&mut self.bench, 0);
        let told = told.into_iter().map(|told| (told.urr.0, (told.uplink_bytes, told.downlink_bytes)));
        let told: HashMap<_, _> = told.filter(|(_, bytes)| *bytes != (0, 0)).collect();
        assert_eq!(told, self.expected);
    }

    pub(super) fn packets_of(&self, node: NodeId) -> u64 {
        self.bench.worker.counters().nodes[node as usize].packets
    }
}

#[test]
fn each_request_is_billed_by_its_own_url_with_its_answer() {
    let mut connection = Connection::begin(TEXT, 1);
    for (url, urr) in [
        ("one.example/a1", 1),
        ("one.example/b", 2),
        ("one.example/b2", 2),
        ("one.example/c", OTHER),
        ("one.example/a2", 1),
        ("two.example/a", 3),
        ("three.example/a", OTHER),
        ("one.example/b", 2),
    ] {
        connection.say(&get(url), urr);
        connection.answer(urr);
        connection.check();
    }
    assert_eq!(connection.bench.worker.content_counts().detected, 1, "it is one flow");
}

/// A body goes the way of its request, however often requests stand in it, but where a segment begins like one.
#[test]
fn bodies_go_with_their_requests() {
    let mut connection = Connection::begin(TEXT, 1);
    let other = get("one.example/b");
    let post = b"POST /a HTTP/1.1\r\nHost: one.example\r\nContent-Length: 5000\r\n\r\n";
    connection.say(&[&post[..], &other].concat(), 1);
    for body in [&b"x=GET "[..], b" ", b"/", b"a=b&c=", b"GET / of old\r\n", b"HTTP/1.1 200 OK\r\n"] {
        connection.say(&[body, &other].concat(), 1);
        connection.answer(1);
    }
    connection.check();
    connection.say(&other, 2);
    connection.answer(2);
    connection.check();
}

/// It is of what went before; the next one that is whole is not.
#[test]
fn a_request_whose_host_is_in_another_segment_goes_with_the_one_before() {
    let mut connection = Connection::begin(TEXT, 1);
    connection.say(&get("one.example/a"), 1);
    connection.answer(1);
    let other = get("one.example/b");
    for cut in [4, 10, other.len() / 2] {
        connection.say(&other[..cut], 1);
        connection.say(&other[cut..], 1);
        connection.answer(1);
    }
    connection.say(&other[..other.len() - 4], 2);
    connection.say(&other[other.len() - 4..], 2);
    connection.answer(2);
    connection.check();
}

/// What a server does not take is no request.
#[test]
fn what_a_server_would_not_take_changes_nothing() {
    let mut connection = Connection::begin(TEXT, 1);
    connection.say(&get("one.example/a"), 1);
    let other = get("one.example/b");
    for flags in [flag::PSH, ACK | flag::RST, ACK | flag::SYN] {
        connection.send(flags, &other, 1);
    }
    let mut frame = up(1, &connection.flow, &made(ACK, connection.numbers, &other));
    *frame.last_mut().unwrap() ^= 1;
    connection.receive_up(&frame, 1);
    connection.turn();
    connection.answer(1);
    connection.check();
}

/// What the server says goes the short way again from its second packet on, and so does what the user says that is too short for a
/// request, or does not begin with a method and the space behind it. Where no rule tells requests apart, all that the user says does.
#[test]
fn only_what_may_ask_again_is_looked_at() {
    for (text, looked_at) in [(TEXT, 1), ("id=1 precedence=1 rating-group=1 application=service-1 any\n", 0)]
    {
        let mut connection = Connection::begin(text, 1);
        connection.say(&get("one.example/a"), 1);
        // Either direction is asked for once.
        connection.answer(1);
        let looks = |connection: &mut Connection, payload: &[u8]| {
            let before = [NodeId::Classify, NodeId::Inspect].map(|node| connection.packets_of(node));
            connection.say(payload, 1);
            connection.answer(1);
            let after = [NodeId::Classify, NodeId::Inspect].map(|node| connection.packets_of(node));
            [after[0] - before[0], after[1] - before[1]]
        };
        for (payload, expected) in [
            (&b""[..], 0),
            (b"x octets, 12", 0),
            (b"x octets, 13.", looked_at),
            (b"{octets are 14", 0),
            (&[b'x'; 13], 0),
            (b"\r\n13 of octets", looked_at),
            (b"", 0),
        ] {
            assert_eq!(looks(&mut connection, payload), [expected; 2], "{text}: {}", payload.len());
        }
        connection.check();
    }
}

/// However short it is: it does not overtake the request, and is of the same.
#[test]
fn what_comes_behind_a_request_in_its_vector_is_of_it() {
    let mut connection = Connection::begin(TEXT, 1);
    connection.say(&get("one.example/a"), 1);
    connection.answer(1);
    for (url, urr) in [("one.example/b", 2), ("two.example/", 3), ("one.example/c", OTHER)] {
        connection.bench.sent(N6);
        let segments = [&b"12 octets.."[..], &get(url), b"", b"12 octets..", b""];
        for (at, payload) in segments.into_iter().enumerate() {
            let frame = up(1, &connection.flow, &made(ACK, connection.numbers, payload));
            let before = if urr == OTHER { 3 } else { urr - 1 };
            connection.receive_up(&frame, if at == 0 { before } else { urr });
            connection.numbers.0 += payload.len() as u32;
        }
        connection.turn();
        let lengths: Vec<usize> = connection.bench.sent(N6).iter().map(Vec::len).collect();
        let expected = segments.map(|payload| ethernet::LENGTH + ipv4::LENGTH + tcp::LENGTH + payload.len());
        assert_eq!(lengths, expected, "in their order");
        connection.check();
    }
}

/// The application's packets from the user are the portal's.
#[test]
fn a_later_request_is_sent_to_the_portal() {
    let mut rules = served();
    let far = rules.fars.last_mut().unwrap();
    (far.apply_action, far.redirect) = (rules::ApplyAction::Forward, Redirect::new(PORTAL));
    far.forwarding.as_mut().unwrap().destination_interface = Interface::Access;
    let (mut bench, flow) = (bench_with(SERVED, rules), flow(SERVED));
    let mut at = USER_FIRST;
    let mut say = |flags, payload: &[u8]| {
        let segment = made(flags, (at, SERVER_FIRST), payload);
        at += payload.len() as u32;
        pass(&mut bench, N3, &up(SERVED, &flow, &segment))
    };
    say(flag::SYN, b"");
    assert_eq!(say(ACK, &get("www.example/a")).1.len(), 1, "a request that passes");
    let (user, server) = say(ACK, &get("www.blocked.example/"));
    let [(ANSWER, SERVER_FIRST, _, None, text)] = &user[..] else { panic!("{user:?}") };
    assert!(text.starts_with(b"HTTP/1.1 302 Found\r\n"));
    assert!(server.iter().all(|(flags, ..)| flags & flag::RST != 0), "{server:?}");
}

/// Of one user's connection, the requests to the application get the field and the others do not.
#[test]
fn a_field_is_put_into_the_requests_of_its_application() {
    let mut rules = served();
    let far = rules.fars.last_mut().unwrap();
    far.apply_action = rules::ApplyAction::Forward;
    far.enrichment = HeaderField::new("X-MSISDN", "491701234567");
    let (mut bench, flow) = (bench_with(SERVED, rules), flow(SERVED));
    pass(&mut bench, N3, &up(SERVED, &flow, &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
    let (mut at, mut fields) = (USER_FIRST, 0);
    for (host, is_enriched) in [
        ("www.example", false),
        ("www.blocked.example", true),
        ("www.example", false),
        ("a.blocked.example", true),
    ] {
        let request = get(&format!("{host}/"));
        let (_, server) = pass(&mut bench, N3, &up(SERVED, &flow, &made(ACK, (at, SERVER_FIRST), &request)));
        let (_, sequence, _, _, heard) = &server[0];
        assert_eq!(*sequence, at + fields * FIELD.len() as u32, "{host}");
        assert_eq!(heard.windows(FIELD.len()).any(|window| window == FIELD), is_enriched, "{host}");
        (at, fields) = (at + request.len() as u32, fields + u32::from(is_enriched));
        assert_eq!(acknowledge(&mut bench, &flow, at + fields * FIELD.len() as u32), at, "{host}");
    }
}

/// An application that has begun on a connection of another one is told with the flow and its own PDR.
#[test]
fn a_later_request_starts_the_traffic_of_its_application() {
    let mut connection = Connection::begin(TEXT, 1);
    let mut rules: Rules = super::content::in_service(1);
    for urr in &mut rules.urrs {
        *urr = Urr { triggers: Triggers::START_OF_TRAFFIC, starts_awaited: 2, ..urr.clone() };
    }
    connection.bench.put(1, 2, rules);
    connection.bench.settle();
    for (url, urr) in [("one.example/a", 1), ("one.example/b", 2), ("two.example/", 3)] {
        connection.say(&get(url), urr);
        let told = connection.bench.settle();
        let starts: Vec<_> = told
            .iter()
            .filter_map(|notice| match notice {
                Notice::Usage { session: Seid(1), cause: UsageCause::StartOfTraffic(start), counts } => {
                    Some((counts[0].urr, start.unwrap()))
                }
                _ => None,
            })
            .collect();
        let [(UrrId(told), start)] = starts[..] else { panic!("{url}: {told:?}") };
        assert_eq!((told, u32::from(start.pdr.unwrap().0)), (urr, 10 + urr), "{start:?}");
        assert_eq!((start.ue_port, start.remote_port), (Some(41_000), Some(80)));
    }
}

/// What happens on a connection.
#[derive(Clone, Debug)]
enum Event {
    /// A request for one of [`URLS`], of which so many bytes are in a second segment.
    Request(usize, usize),
    Body(Vec<u8>),
    Answer(usize),
    Turn,
}

const URLS: [(&str, u32); 5] = [
    ("one.example/a", 1),
    ("one.example/b", 2),
    ("two.example/a", 3),
    ("one.example/", OTHER),
    ("four.example/a", OTHER),
];

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..URLS.len(), prop_oneof![2 => Just(0), 1 => 1..40_usize]).prop_map(|(url, cut)| Event::Request(url, cut)),
        2 => proptest::collection::vec(any::<u8>(), 0..300).prop_map(Event::Body),
        2 => (0..1_400_usize).prop_map(Event::Answer),
        3 => Just(Event::Turn),
    ]
}

/// What a reader without tables or states makes of a segment that the user sends.
fn urr_of(segment: &[u8], before: u32) -> u32 {
    let text = String::from_utf8_lossy(segment);
    let mut lines = text.split_inclusive("\r\n");
    let (line, host) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    if !(line.starts_with("GET ") && line.ends_with("HTTP/1.1\r\n") && host.ends_with("\r\n")) {
        return before;
    }
    let is_for = |(url, _): &&(&str, u32)| {
        let (name, path) = url.split_once('/').unwrap();
        host == format!("Host: {name}\r\n") && line == format!("GET /{path} HTTP/1.1\r\n")
    };
    URLS.iter().find(is_for).unwrap().1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes in one vector: what the user says is billed by the last request before it. What the server says is of the last
    /// request that came before its vector, if it comes in one of its own.
    #[test]
    fn any_requests_bodies_and_cuts_are_billed_as_a_simple_reader_bills_them(
        events in proptest::collection::vec(event(), 1..60),
    ) {
        let mut connection = Connection::begin(TEXT, 1);
        connection.say(&get("one.example/a"), 1);
        let mut last = 1;
        for event in events {
            let said = match event {
                Event::Request(url, cut) => {
                    let request = get(URLS[url].0);
                    let (head, tail) = request.split_at(request.len() - cut.min(request.len()));
                    vec![head.to_vec(), tail.to_vec()]
                }
                Event::Body(bytes) => vec![bytes],
                Event::Answer(length) => {
                    connection.bench.settle();
                    connection.answer_with(ACK, &vec![b'x'; length], last);
                    vec![]
                }
                Event::Turn => {
                    connection.turn();
                    vec![]
                }
            };
            for segment in said {
                last = urr_of(&segment, last);
                let frame = up(1, &connection.flow, &made(ACK, connection.numbers, &segment));
                connection.receive_up(&frame, last);
                connection.numbers.0 += segment.len() as u32;
            }
        }
        connection.check();
    }

    /// Requests of which one octet is wrong, or none, with any flags: whatever they are taken for, all is billed, once.
    #[test]
    fn whatever_a_user_says_all_of_it_is_billed_once(
        segments in proptest::collection::vec((any::<u8>(), 0..URLS.len(), 0..100_usize, any::<u8>()), 1..40),
    ) {
        let mut connection = Connection::begin(TEXT, 1);
        connection.say(&get("one.example/a"), 1);
        for (flags, url, place, octet) in segments {
            let mut payload = get(URLS[url].0);
            payload.get_mut(place).into_iter().for_each(|wrong| *wrong = octet);
            connection.send(flags, &payload, 1);
        }
        let sum = |counts: &mut dyn Iterator<Item = (u64, u64)>| -> u64 { counts.map(|(up, down)| up + down).sum() };
        let forwarded = sum(&mut connection.expected.values().copied());
        let told = query(&mut connection.bench, 0);
        prop_assert_eq!(sum(&mut told.iter().map(|told| (told.uplink_bytes, told.downlink_bytes))), forwarded);
    }
}

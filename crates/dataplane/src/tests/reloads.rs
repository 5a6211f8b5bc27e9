//! Content rules that are loaded while flows go on: these ask anew, as far as it is known what they said.

use super::content::{OTHER, USERS, content};
use super::hello::{hello, offering};
use super::redirect::{SERVER_FIRST, USER_FIRST, flow, made, tunnelled, up};
use super::requests::{ACK, Connection, get};
use crate::fixture::N3;
use crate::graph::NodeId;
use packet::{FiveTuple, ethernet, ipv4, protocol, udp};

const FIRST: &str = "id=1 precedence=1 rating-group=1 application=service-1 host=one.example\n";
const SECOND: &str = "id=1 precedence=1 rating-group=1 application=service-1 host=other.example\n\
                      id=2 precedence=2 rating-group=2 application=service-2 host=one.example\n\
                      id=3 precedence=3 rating-group=3 application=service-3 host=two.example\n";
const RESOLVER: [u8; 4] = [198, 51, 100, 53];
/// Turns until all places for flows have had theirs.
const TURNS: usize = 300;

/// A lookup of a host, and its answer if there is an address.
fn message(host: &str, address: Option<[u8; 4]>) -> Vec<u8> {
    let (flags, answers) = if address.is_some() { (0x81, 1) } else { (0x01, 0) };
    let mut bytes = vec![0, 7, flags, 0, 0, 1, 0, answers, 0, 0, 0, 0];
    for label in host.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.bytes());
    }
    bytes.extend(b"\x00\x00\x01\x00\x01");
    if let Some(address) = address {
        bytes.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x0e\x10\x00\x04");
        bytes.extend(address);
    }
    bytes
}

fn datagram(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0; ipv4::LENGTH + udp::LENGTH + payload.len()];
    let length = ip.len() - ipv4::LENGTH;
    ipv4::Header::new(from.0.into(), to.0.into(), protocol::UDP, length).unwrap().write(&mut ip).unwrap();
    udp::Header::new(from.1, to.1, payload.len()).unwrap().write(&mut ip[ipv4::LENGTH..]).unwrap();
    ip[ipv4::LENGTH + udp::LENGTH..].copy_from_slice(payload);
    ip
}

/// The user learns that the server of its connection is called so.
fn look_up(connection: &mut Connection, host: &str) {
    let octets = |address: u128| ((address >> 96) as u32).to_be_bytes();
    let FiveTuple { source, destination, .. } = connection.flow;
    let user = (octets(source), 42_000);
    let query = datagram(user, (RESOLVER, 53), &message(host, None));
    connection.receive_up(&tunnelled(1, &query), OTHER);
    connection.turn();
    let answer = datagram((RESOLVER, 53), user, &message(host, Some(octets(destination))));
    let frame = [&[2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0][..], &answer].concat();
    connection.receive_down(&frame, OTHER);
    connection.turn();
    assert_eq!(frame.len(), ethernet::LENGTH + answer.len());
}

/// Other rules, in force for all.
pub(super) fn load(connection: &mut Connection, text: &str) {
    let rules = content(text, 8, &connection.bench);
    connection.bench.engine.load(rules);
    connection.bench.settle();
    pass_all_places(connection);
}

fn pass_all_places(connection: &mut Connection) {
    for _ in 0..TURNS {
        connection.bench.now_ns += 1_000_000;
        connection.bench.worker.turn(connection.bench.now_ns);
    }
}

/// Goes on in both directions, counted by one URR.
fn go_on(connection: &mut Connection, urr: u32) {
    connection.say(b"more", urr);
    connection.answer(urr);
    connection.check();
}

fn over_tls(names: &[&str], before: &str, after: u32) {
    let mut connection = Connection::begin(before, 1);
    connection.say(&hello("ONE.example", false), 1);
    go_on(&mut connection, 1);
    names.iter().for_each(|name| look_up(&mut connection, name));
    load(&mut connection, SECOND);
    go_on(&mut connection, after);
    go_on(&mut connection, after);
}

#[test]
fn a_flow_is_of_what_new_rules_say_where_dns_knows_its_server_by_the_name_it_said() {
    over_tls(&["one.example"], FIRST, 2);
    over_tls(&["two.example", "one.example"], FIRST, 2);
}

/// It said another name than DNS knows, or none is known: what it said is over.
#[test]
fn a_flow_whose_name_is_not_known_any_more_stays_what_it_was() {
    over_tls(&[], FIRST, 1);
    over_tls(&["two.example"], FIRST, 1);
    over_tls(&["one.example", "two.example"], FIRST, 1);
}

#[test]
fn a_flow_is_asked_by_the_layer_it_was_of() {
    let (tls, http) = (FIRST.replace("host", "layer=tls host"), SECOND.replace("host", "layer=http host"));
    over_tls(&["one.example"], &tls, 2);
    let mut connection = Connection::begin(FIRST, 1);
    connection.say(&hello("one.example", false), 1);
    look_up(&mut connection, "one.example");
    load(&mut connection, &http);
    go_on(&mut connection, OTHER);
}

/// What a ClientHello offered is kept of no flow: where rules ask for it, a flow with one stays what it was. Others are asked.
#[test]
fn a_flow_with_a_hello_stays_what_it_was_where_rules_ask_what_that_offered() {
    let alpn = format!("{SECOND}id=4 precedence=4 rating-group=1 application=service-1 alpn=h2\n");
    for protocols in [&b"\x02h2"[..], b"\x03dot"] {
        let mut connection = Connection::begin(FIRST, 1);
        connection.say(&offering("one.example", protocols), 1);
        look_up(&mut connection, "one.example");
        load(&mut connection, &alpn);
        go_on(&mut connection, 1);
    }
    let mut connection = Connection::begin(FIRST, OTHER);
    connection.say(&[0; 40], OTHER);
    look_up(&mut connection, "one.example");
    load(&mut connection, &alpn);
    go_on(&mut connection, 2);
}

/// What says nothing is known by its server alone.
#[test]
fn a_flow_that_said_nothing_is_of_what_new_rules_say_of_its_server() {
    let mut connection = Connection::begin(FIRST, OTHER);
    connection.say(&[0; 40], OTHER);
    go_on(&mut connection, OTHER);
    let FiveTuple { destination, .. } = connection.flow;
    let server = std::net::Ipv4Addr::from_bits((destination >> 96) as u32);
    load(
        &mut connection,
        &format!("id=1 precedence=1 rating-group=3 application=service-3 network={server}/32\n"),
    );
    go_on(&mut connection, 3);
    load(&mut connection, FIRST);
    go_on(&mut connection, OTHER);
}

/// Requests are asked one by one.
#[test]
fn a_connection_with_requests_is_of_what_the_next_one_says() {
    let mut connection = Connection::begin(FIRST, 1);
    connection.say(&get("one.example/"), 1);
    look_up(&mut connection, "one.example");
    load(&mut connection, SECOND);
    go_on(&mut connection, 1);
    connection.say(&get("one.example/"), 2);
    connection.answer(2);
    connection.check();
}

/// Nothing was known before there were rules.
#[test]
fn the_first_rules_have_no_flow_ask_anew() {
    let mut connection = Connection::begin(FIRST, 1);
    connection.say(&hello("one.example", false), 1);
    go_on(&mut connection, 1);
    let before = connection.packets_of(NodeId::Classify);
    pass_all_places(&mut connection);
    go_on(&mut connection, 1);
    assert_eq!(connection.packets_of(NodeId::Classify), before);
}

/// One after the other: flows whose turn is yet to come go the usual way.
#[test]
fn flows_ask_anew_at_a_pace() {
    let mut connection = Connection::begin(FIRST, OTHER);
    let offer = |connection: &mut Connection| -> u64 {
        let before = connection.packets_of(NodeId::Classify);
        for user in 1..=USERS.into() {
            let segment = made(ACK, (USER_FIRST, SERVER_FIRST), b"more");
            connection.bench.receive(N3, &up(user, &flow(user), &segment));
        }
        connection.turn();
        connection.packets_of(NodeId::Classify) - before
    };
    while offer(&mut connection) > 0 {}
    let rules = content(SECOND, 8, &connection.bench);
    connection.bench.engine.load(rules);
    connection.bench.settle();
    let asked: Vec<u64> = std::iter::repeat_with(|| {
        connection.bench.now_ns += 10_000;
        offer(&mut connection)
    })
    .take(5_000)
    .collect();
    assert!(asked.iter().all(|packets| *packets <= 1), "several at once");
    let turns: Vec<usize> = (0..asked.len()).filter(|turn| asked[*turn] > 0).collect();
    assert!(turns.windows(2).all(|next| next[1] - next[0] >= 9), "{turns:?}");
    assert_eq!(turns.len(), USERS as usize, "each once");
}

//! Connections between the ports of others that were known: each is of what it says itself.

use super::content::{OTHER, in_service};
use super::hello::hello;
use super::redirect::{SERVER_FIRST, TUNNEL, USER_FIRST, down, made, up};
use super::reloads::load;
use super::requests::{ACK, Connection, get};
use crate::fixture::{N3, N6};
use packet::tcp::flag;
use packet::{FiveTuple, ipv4};
use rules::{ApplyAction, Far, FarId, Interface, Pdr, PdrId, Redirect, Rules, SdfFilter};
use std::net::Ipv4Addr;

/// Where the next connection's numbers begin.
const AGAIN: (u32, u32) = (USER_FIRST + 1_000_000, SERVER_FIRST + 2_000_000);
const SYN_ACK: u8 = flag::SYN | flag::ACK;
const TEXT: &str = "id=1 precedence=1 rating-group=1 application=service-1 host=one.example\n\
                    id=2 precedence=2 rating-group=2 application=service-2 host=two.example\n";

fn say_hello(host: &str) -> Vec<u8> {
    hello(host, false)
}

/// A connection over TLS that was found to be of service 1: it is asked nothing more.
fn of_service_1() -> Connection {
    let mut connection = Connection::begin(TEXT, 1);
    connection.say(&say_hello("one.example"), 1);
    connection.answer(1);
    connection.check();
    connection
}

/// Of each connection, what the first thing said is, and what counts it.
fn are_of_what_they_say(connections: [(Vec<u8>, u32); 6]) {
    let mut connection = of_service_1();
    for (turn, (said, urr)) in (1..).zip(connections) {
        connection.numbers = (USER_FIRST + turn * 1_000_000, SERVER_FIRST + turn * 2_000_000);
        connection.shake_hands(urr);
        connection.say(&said, urr);
        connection.answer(urr);
        connection.check();
    }
}

#[test]
fn a_connection_between_old_ports_is_billed_by_what_it_says_from_its_syn_on() {
    let of = |host: &str| get(&format!("{host}/"));
    are_of_what_they_say([
        (say_hello("two.example"), 2),
        (say_hello("three.example"), OTHER),
        (of("one.example"), 1),
        (of("two.example"), 2),
        (b"neither of these".to_vec(), OTHER),
        (say_hello("one.example"), 1),
    ]);
}

/// The next connection is of service 2, from its SYN on.
fn begin_service_2(mut connection: Connection) {
    connection.numbers = AGAIN;
    connection.shake_hands(2);
    connection.say(&say_hello("two.example"), 2);
    connection.answer(2);
    connection.check();
}

/// The flow has no verdict then, but it is known of what it was.
#[test]
fn so_it_is_where_the_session_s_rules_have_changed_since() {
    let mut connection = of_service_1();
    connection.bench.put(1, 2, in_service(1));
    connection.bench.settle();
    begin_service_2(connection);
}

/// The flow is to ask the new rules then, with whatever comes next.
#[test]
fn so_it_is_where_other_content_rules_are_in_force_since() {
    let mut connection = of_service_1();
    load(&mut connection, TEXT);
    begin_service_2(connection);
}

/// The beginning of a packet in fragments shows all that matters.
#[test]
fn so_it_is_where_the_syn_comes_in_a_fragment() {
    let mut connection = of_service_1();
    let mut frame = up(1, &connection.flow, &made(flag::SYN, (AGAIN.0 - 1, 0), b""));
    frame[TUNNEL + 6] |= 0x20;
    let header = &mut frame[TUNNEL..TUNNEL + ipv4::LENGTH];
    header[10..12].fill(0);
    let checksum = packet::checksum::of(header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    connection.receive_up(&frame, 2);
    connection.turn();
    connection.numbers = (AGAIN.0, AGAIN.1 - 1);
    connection.answer_with(SYN_ACK, b"", 2);
    connection.numbers = AGAIN;
    connection.say(&say_hello("two.example"), 2);
    connection.check();
}

/// Every packet of such a connection is looked at, for lookups.
#[test]
fn so_it_is_of_connections_to_the_port_of_resolvers() {
    let mut connection = of_service_1();
    connection.flow.destination_port = 53;
    for (numbers, urr) in [((USER_FIRST, SERVER_FIRST), 1), (AGAIN, 2)] {
        connection.numbers = numbers;
        connection.shake_hands(urr);
        connection.say(&say_hello(["one.example", "two.example"][urr as usize - 1]), urr);
        connection.answer(urr);
    }
    connection.check();
}

#[test]
fn the_old_connection_goes_on_until_the_server_takes_the_new_one() {
    let mut connection = of_service_1();
    let old = connection.numbers;
    connection.numbers = (AGAIN.0 - 1, 0);
    connection.send(flag::SYN, b"", 2);
    connection.numbers = old;
    connection.say(b"the end", 1);
    connection.answer(1);
    connection.numbers = (AGAIN.0, AGAIN.1 - 1);
    connection.answer_with(SYN_ACK, b"", 2);
    connection.numbers = AGAIN;
    connection.say(&say_hello("two.example"), 2);
    connection.check();
}

/// A server that has a connection answers a SYN, but not with its own (RFC 9293 3.10.7.4). What waited goes by addresses in the end.
#[test]
fn a_syn_alone_changes_nothing() {
    for answer in [None, Some((flag::ACK, 0)), Some((flag::RST | flag::ACK, 0)), Some((SYN_ACK, 1))] {
        let mut connection = of_service_1();
        let old = connection.numbers;
        connection.numbers = (AGAIN.0 - 1, 0);
        connection.send(flag::SYN, b"", OTHER);
        if let Some((flags, wrong)) = answer {
            connection.numbers = (AGAIN.0 + wrong, AGAIN.1 - 1);
            connection.answer_with(flags, b"", 1);
        }
        connection.numbers = old;
        connection.say(&say_hello("two.example"), 1);
        connection.answer(1);
        connection.check();
    }
}

/// Many do not, either.
#[test]
fn nor_do_syns_by_the_dozen() {
    let mut connection = of_service_1();
    let old = connection.numbers;
    connection.numbers = (AGAIN.0 - 1, 0);
    // The first of them wait, the others need not.
    for number in 0..100 {
        connection.send(flag::SYN, b"", if number < 31 { OTHER } else { 1 });
    }
    connection.numbers = old;
    connection.answer(1);
    connection.check();
}

#[test]
fn what_looks_like_an_answer_to_no_syn_changes_nothing() {
    let mut connection = of_service_1();
    let old = connection.numbers;
    connection.numbers.1 = AGAIN.1 - 1;
    connection.answer_with(SYN_ACK, b"", 1);
    connection.numbers = old;
    connection.say(b"more", 1);
    connection.answer(1);
    connection.check();
}

/// The server says it again where it has not heard the user yet, whose request we have.
#[test]
fn an_answer_that_comes_twice_changes_nothing() {
    let mut connection = of_service_1();
    connection.numbers = AGAIN;
    connection.shake_hands(2);
    connection.say(&say_hello("two.example"), 2);
    let now = connection.numbers;
    connection.numbers = (AGAIN.0, AGAIN.1 - 1);
    connection.answer_with(SYN_ACK, b"", 2);
    connection.numbers = now;
    connection.answer(2);
    connection.check();
}

/// RFC 7413: what comes with the SYN counts once the server has taken it, however much that is.
#[test]
fn a_request_that_comes_with_the_syn_is_of_the_new_connection() {
    let hello = say_hello("two.example");
    for request in [hello.clone(), [hello, vec![7; 1_000]].concat()] {
        let mut connection = of_service_1();
        connection.numbers = (AGAIN.0 - 1, 0);
        connection.send(flag::SYN, &request, 2);
        connection.numbers = (AGAIN.0 + request.len() as u32, AGAIN.1 - 1);
        connection.answer_with(SYN_ACK, b"", 2);
        connection.numbers.1 = AGAIN.1;
        connection.answer(2);
        connection.check();
    }
}

/// Whose flow it is not says nothing of it, neither in the other's name nor in its own.
#[test]
fn another_user_s_syn_changes_nothing() {
    let mut connection = of_service_1();
    let syn = made(flag::SYN, (AGAIN.0 - 1, 0), b"");
    connection.bench.receive(N3, &up(2, &connection.flow, &syn));
    connection.turn();
    let old = connection.numbers;
    connection.numbers = (AGAIN.0, AGAIN.1 - 1);
    connection.answer_with(SYN_ACK, b"", 1);
    connection.numbers = old;
    connection.answer(1);
    connection.check();
}

/// Nothing overtakes the handshake in its vector.
#[test]
fn what_comes_behind_an_answer_in_its_vector_is_of_the_new_connection() {
    let mut connection = of_service_1();
    connection.numbers = (AGAIN.0 - 1, 0);
    connection.send(flag::SYN, b"", 2);
    connection.bench.sent(N3);
    let frames = [(SYN_ACK, AGAIN.1 - 1, &b""[..]), (ACK, AGAIN.1, &[b'x'; 800])]
        .map(|(flags, number, payload)| down(&connection.flow, &made(flags, (number, AGAIN.0), payload)));
    for frame in &frames {
        connection.receive_down(frame, 2);
    }
    connection.turn();
    let sent: Vec<usize> = connection.bench.sent(N3).iter().map(Vec::len).collect();
    assert!(sent.is_sorted() && sent.len() == 2, "{sent:?}");
    connection.numbers = AGAIN;
    connection.say(&say_hello("two.example"), 2);
    connection.check();
}

/// An address of which the user is sent to that of the server.
const NEXT_DOOR: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 77);

/// What comes from service 1 is stopped, and who asks next door is sent to the server.
fn sent_to_the_server() -> Rules {
    let mut rules = in_service(1);
    let stopped = Far { id: FarId(91), apply_action: ApplyAction::Drop, ..rules.fars[1].clone() };
    let sent = Far { id: FarId(90), redirect: Redirect::new("203.0.113.80"), ..rules.fars[0].clone() };
    rules.fars.extend([stopped, sent]);
    let of_service_1 = rules.pdrs.iter_mut().find(|pdr| pdr.id == PdrId(501)).unwrap();
    assert_eq!(of_service_1.pdi.source_interface, Interface::Core);
    of_service_1.far = FarId(91);
    let up = |pdr: &&Pdr| pdr.pdi.application.is_none() && pdr.pdi.source_interface == Interface::Access;
    let mut pdr = rules.pdrs.iter().find(up).unwrap().clone();
    (pdr.id, pdr.precedence, pdr.far) = (PdrId(90), 0, FarId(90));
    let next_door = "permit out ip from 203.0.113.77 to assigned".parse().ok();
    pdr.pdi.sdf_filters = vec![SdfFilter { flow: next_door, ..SdfFilter::default() }];
    rules.pdrs.push(pdr);
    rules
}

/// What answers has the server's address then, between which and the user's ports a connection was known; nothing of that is this one's.
#[test]
fn a_connection_that_is_sent_elsewhere_is_none_that_was_known_there() {
    let mut connection = of_service_1();
    connection.bench.put(1, 2, sent_to_the_server());
    connection.bench.settle();
    let straight = connection.flow;
    let heard = |connection: &mut Connection, flags, numbers| {
        connection.bench.sent(N3);
        connection.bench.receive(N6, &down(&straight, &made(flags, numbers, b"")));
        connection.turn();
        let sent = connection.bench.sent(N3).pop()?;
        Some(Ipv4Addr::from_octets(*sent[sent.len() - 28..].first_chunk().unwrap()))
    };
    assert_eq!(heard(&mut connection, ACK, (SERVER_FIRST, USER_FIRST)), None, "it is of service 1");
    let flow = FiveTuple { destination: u128::from(NEXT_DOOR.to_bits()) << 96, ..straight };
    connection.bench.receive(N3, &up(1, &flow, &made(flag::SYN, (AGAIN.0 - 1, 0), b"")));
    connection.turn();
    assert_eq!(heard(&mut connection, SYN_ACK, (AGAIN.1 - 1, AGAIN.0 - 1)), None, "an answer to another SYN");
    assert_eq!(heard(&mut connection, SYN_ACK, (AGAIN.1 - 1, AGAIN.0)), Some(NEXT_DOOR));
}

//! Names of servers, learned from lookups over TCP.

use super::redirect::{SERVER_FIRST, USER_FIRST, down, flow, made, pass, tunnelled, up};
use crate::fixture::{Bench, N3, N6, SERVED, served};
use dplink::Command;
use packet::FiveTuple;
use packet::tcp::flag;
use rules::Seid;

const ACK: u8 = flag::ACK | flag::PSH;

fn bench() -> (Bench, FiveTuple) {
    (Bench::full(), FiveTuple { destination_port: 53, ..flow(SERVED) })
}

/// A message behind its length: what is asked, and the answers.
fn message(id: u16, answers: &[[u8; 4]]) -> Vec<u8> {
    let flags = if answers.is_empty() { 0x01 } else { 0x81 };
    let [high, low] = id.to_be_bytes();
    let mut bytes = vec![high, low, flags, 0, 0, 1, 0, answers.len() as u8, 0, 0, 0, 0];
    bytes.extend(b"\x03www\x07blocked\x07example\x00\x00\x01\x00\x01");
    for address in answers {
        bytes.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x0e\x10\x00\x04");
        bytes.extend(address);
    }
    [&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat()
}

fn names(bench: &Bench) -> u64 {
    bench.worker.content_counts().names
}

fn ask(bench: &mut Bench, flow: &FiveTuple, (at, stream): (u32, &[u8])) {
    let segment = made(ACK, (USER_FIRST + at, SERVER_FIRST), stream);
    assert_eq!(pass(bench, N3, &up(SERVED, flow, &segment)).1.len(), 1);
}

fn answer(bench: &mut Bench, flow: &FiveTuple, (at, stream): (u32, &[u8])) {
    let segment = made(ACK, (SERVER_FIRST + at, USER_FIRST), stream);
    assert_eq!(pass(bench, N6, &down(flow, &segment)).0.len(), 1);
}

/// Whether a packet that says nothing of itself is of the application, the first to this server.
fn is_known(bench: &mut Bench, server: [u8; 4]) -> bool {
    let before = bench.worker.content_counts().detected;
    let mut echo = vec![0; 28];
    let user = [10, 60, 0, SERVED as u8].into();
    packet::ipv4::Header::new(user, server.into(), 1, 8).unwrap().write(&mut echo).unwrap();
    echo[20] = 8;
    bench.receive(N3, &tunnelled(SERVED, &echo));
    bench.worker.turn(bench.now_ns);
    drop(bench.sent(N6));
    bench.worker.content_counts().detected > before
}

#[test]
fn answers_over_tcp_name_servers() {
    let (mut bench, flow) = bench();
    pass(&mut bench, N3, &up(SERVED, &flow, &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
    let query = message(7, &[]);
    ask(&mut bench, &flow, (0, &query));
    let told = message(7, &[[198, 51, 100, 1]]);
    answer(&mut bench, &flow, (0, &told));
    assert_eq!(names(&bench), 1);
    assert!(is_known(&mut bench, [198, 51, 100, 1]));
    // Said again, it has been answered.
    answer(&mut bench, &flow, (0, &told));
    assert_eq!(names(&bench), 1);
    // Two more on the same connection, in one segment, the answers the other way round and in one, too.
    let [three, four] = [3, 4].map(|id| message(id, &[]));
    ask(&mut bench, &flow, (query.len() as u32, &[three, four].concat()));
    let answers = [message(4, &[[198, 51, 100, 4]]), message(3, &[[198, 51, 100, 3], [198, 51, 100, 5]])];
    answer(&mut bench, &flow, (told.len() as u32, &answers.concat()));
    assert_eq!(names(&bench), 4);
    assert!([3, 4, 5].into_iter().all(|last| is_known(&mut bench, [198, 51, 100, last])));
}

/// The length in a segment of its own, and an answer in two: of that the first counts.
#[test]
fn messages_in_several_segments_name_what_the_first_says() {
    let (mut bench, flow) = bench();
    pass(&mut bench, N3, &up(SERVED, &flow, &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
    let query = message(7, &[]);
    ask(&mut bench, &flow, (0, &query[..2]));
    ask(&mut bench, &flow, (2, &query[2..]));
    let told = message(7, &[[198, 51, 100, 1], [198, 51, 100, 2]]);
    answer(&mut bench, &flow, (0, &told[..told.len() - 4]));
    answer(&mut bench, &flow, (told.len() as u32 - 4, &told[told.len() - 4..]));
    assert_eq!(names(&bench), 1);
    assert!(is_known(&mut bench, [198, 51, 100, 1]) && !is_known(&mut bench, [198, 51, 100, 2]));
}

#[test]
fn what_the_user_has_not_asked_over_tcp_names_nobody() {
    let (mut bench, flow) = bench();
    pass(&mut bench, N3, &up(SERVED, &flow, &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
    let told = message(7, &[[198, 51, 100, 1]]);
    answer(&mut bench, &flow, (0, &told));
    // Nor what answers another connection, or on another port.
    ask(&mut bench, &flow, (0, &message(7, &[])));
    answer(&mut bench, &FiveTuple { source_port: 9, ..flow }, (0, &told));
    let elsewhere = FiveTuple { destination_port: 54, ..flow };
    ask(&mut bench, &elsewhere, (0, &message(8, &[])));
    answer(&mut bench, &elsewhere, (0, &message(8, &[[198, 51, 100, 1]])));
    assert_eq!(names(&bench), 0);
}

/// Of a connection that was seen from its beginning: an answer behind the tail of another is one, and what looks like an answer
/// within another is none, though a segment begins with it.
#[test]
fn answers_are_told_apart_from_what_is_within_them() {
    let accepted = |bench: &mut Bench, flow: &FiveTuple| {
        pass(bench, N3, &up(SERVED, flow, &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
        let segment = made(flag::SYN | flag::ACK, (SERVER_FIRST - 1, USER_FIRST), b"");
        assert_eq!(pass(bench, N6, &down(flow, &segment)).0.len(), 1);
    };
    let (mut bench, flow) = bench();
    accepted(&mut bench, &flow);
    ask(&mut bench, &flow, (0, &[message(7, &[]), message(8, &[])].concat()));
    let (first, second) = (message(7, &[[198, 51, 100, 1]]), message(8, &[[198, 51, 100, 2]]));
    let (stream, cut) = ([&first[..], &second].concat(), first.len() - 4);
    answer(&mut bench, &flow, (0, &stream[..cut]));
    answer(&mut bench, &flow, (cut as u32, &stream[cut..]));
    assert_eq!(names(&bench), 1, "of the first the address was cut off");
    assert!(is_known(&mut bench, [198, 51, 100, 2]));

    // A user asks a zone of its own for a text, in which stands the answer to another question of its own.
    for (is_seen, named) in [(true, 0), (false, 1)] {
        let (mut bench, flow) = self::bench();
        if is_seen {
            accepted(&mut bench, &flow);
        }
        ask(&mut bench, &flow, (0, &message(8, &[])));
        let mut text = message(7, &[]);
        let cut = text.len();
        text.extend(message(8, &[[198, 51, 100, 9]]));
        let [high, low] = (text.len() as u16 - 2).to_be_bytes();
        (text[0], text[1]) = (high, low);
        answer(&mut bench, &flow, (0, &text[..cut]));
        answer(&mut bench, &flow, (cut as u32, &text[cut..]));
        assert_eq!(names(&bench), named);
    }
}

/// A resolver that is not the operator's tells who asked, and not whoever has the address next.
#[test]
fn the_next_session_of_an_address_knows_nothing_of_what_the_last_was_told() {
    let (mut bench, flow) = bench();
    pass(&mut bench, N3, &up(SERVED, &flow, &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
    ask(&mut bench, &flow, (0, &message(7, &[])));
    answer(&mut bench, &flow, (0, &message(7, &[[198, 51, 100, 1], [198, 51, 100, 2]])));
    assert!(is_known(&mut bench, [198, 51, 100, 1]));
    bench.engine.handle(Command::Delete { session: Seid(SERVED) }).unwrap();
    bench.settle();
    bench.put(SERVED + 1_000, 1, served());
    bench.settle();
    assert!(!is_known(&mut bench, [198, 51, 100, 2]));
}

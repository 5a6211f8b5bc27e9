//! What users say to nobody: packets whose hops end before the server tell nothing of their flow.

use super::hello::hello;
use super::redirect::{TUNNEL, made, up};
use super::requests::{ACK, Connection, get};
use crate::fixture::{N3, N6};
use packet::ipv4;

const TEXT: &str = "id=1 precedence=1 rating-group=1 application=service-1 host=one.example\n\
                    id=2 precedence=2 rating-group=2 application=service-2 host=two.example\n";

impl Connection {
    /// A segment that goes no further than this node; those of the user go on as if it had never been.
    fn say_to_nobody(&mut self, payload: &[u8]) {
        let mut frame = up(1, &self.flow, &made(ACK, self.numbers, payload));
        while frame[TUNNEL + 8] > 1 {
            ipv4::decrement_ttl(&mut frame[TUNNEL..]).unwrap();
        }
        self.bench.sent(N6);
        self.bench.receive(N3, &frame);
        self.turn();
        assert!(self.bench.sent(N6).is_empty(), "it went on");
    }
}

#[test]
fn what_ends_here_is_no_part_of_what_a_connection_says_first() {
    for decoy in [&b"GET / HTTP/1.1\r\nHost: one."[..], &get("one.example/"), &hello("one.example", false)] {
        for said in [get("two.example/"), hello("two.example", false)] {
            let mut connection = Connection::begin(TEXT, 2);
            connection.say_to_nobody(decoy);
            connection.say(&said, 2);
            connection.answer(2);
            connection.check();
        }
    }
}

#[test]
fn nor_is_a_request_that_ends_here_the_next_one() {
    let mut connection = Connection::begin(TEXT, 1);
    connection.say(&get("one.example/"), 1);
    connection.say_to_nobody(&get("two.example/"));
    connection.answer(1);
    connection.say(&get("two.example/"), 2);
    connection.answer(2);
    connection.check();
}

//! Encrypted ClientHello (RFC 9849): what can be seen of it is told.

use super::content::{bench, content, query, used};
use super::redirect::{SERVER_FIRST, USER_FIRST, down, flow, made, up};
use crate::fixture::{N3, N6};
use packet::FiveTuple;
use packet::tcp::flag;

const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

fn counted(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u16).to_be_bytes()[..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &counted(content)].concat()
}

/// A record with a ClientHello to a host.
pub(super) fn hello(host: &str, encrypted: bool) -> Vec<u8> {
    let name = counted(&[&[0], &counted(host.as_bytes())[..]].concat());
    let mut extensions = extension(SERVER_NAME, &name);
    if encrypted {
        extensions.extend(extension(ENCRYPTED_CLIENT_HELLO, &[7; 200]));
    }
    let fixed = [&[3, 3][..], &[7; 32], &[0], &counted(&[0x13, 1]), &[1, 0]].concat();
    let body = [fixed, counted(&extensions)].concat();
    let message = [&[1, 0][..], &counted(&body)].concat();
    [&[22, 3, 1][..], &counted(&message)].concat()
}

#[test]
fn a_hello_with_an_encrypted_one_in_it_is_counted_and_has_rules_of_its_own() {
    let mut bench = bench(64, 64);
    let text = "id=1 precedence=1 rating-group=1 application=service-1 host=front.example ech\n\
                id=2 precedence=2 rating-group=2 application=service-2 host=front.example\n";
    let rules = content(text, 7, &bench);
    bench.engine.load(rules);
    bench.settle();
    for (port, encrypted) in [(41_001, true), (41_002, false), (41_003, false)] {
        let flow = FiveTuple { source_port: port, destination_port: 443, ..flow(1) };
        let hello = hello("front.example", encrypted);
        let accepted = made(flag::SYN | flag::ACK, (SERVER_FIRST - 1, USER_FIRST), b"");
        for (side, frame) in [
            (N3, up(1, &flow, &made(flag::SYN, (USER_FIRST - 1, 0), b""))),
            (N6, down(&flow, &accepted)),
            (N3, up(1, &flow, &made(flag::ACK, (USER_FIRST, SERVER_FIRST), &hello))),
        ] {
            bench.receive(side, &frame);
            bench.settle();
        }
    }
    let counts = bench.worker.content_counts();
    assert_eq!((counts.detected, counts.undetected, counts.encrypted), (3, 0, 1));
    let used = used(&query(&mut bench, 0));
    let plain = 3 * 40 + hello("front.example", false).len() as u64;
    assert_eq!((used[&1], used[&2]), (plain + 204, 2 * plain));
}

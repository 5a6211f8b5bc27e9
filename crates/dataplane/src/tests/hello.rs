//! What else a ClientHello says than the host: Encrypted ClientHello (RFC 9849), as far as it can be seen, and application protocols.

use super::content::{bench, content, query, used};
use super::redirect::{SERVER_FIRST, USER_FIRST, down, flow, made, up};
use crate::fixture::{Bench, N3, N6};
use packet::FiveTuple;
use packet::tcp::flag;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

fn counted(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u16).to_be_bytes()[..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &counted(content)].concat()
}

/// A record with a ClientHello to a host.
pub(super) fn hello(host: &str, encrypted: bool) -> Vec<u8> {
    hello_with(host, &if encrypted { extension(ENCRYPTED_CLIENT_HELLO, &[7; 200]) } else { vec![] })
}

/// The same that offers application protocols, given as they stand on the wire.
pub(super) fn offering(host: &str, protocols: &[u8]) -> Vec<u8> {
    hello_with(host, &extension(ALPN, &counted(protocols)))
}

fn hello_with(host: &str, others: &[u8]) -> Vec<u8> {
    let name = counted(&[&[0], &counted(host.as_bytes())[..]].concat());
    let extensions = [&extension(SERVER_NAME, &name), others].concat();
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
    let hellos = [true, false, false].map(|encrypted| hello("front.example", encrypted));
    hellos.iter().zip(41_001..).for_each(|(hello, port)| begin(&mut bench, port, hello));
    let counts = bench.worker.content_counts();
    assert_eq!((counts.detected, counts.undetected, counts.encrypted), (3, 0, 1));
    let used = used(&query(&mut bench, 0));
    let plain = 3 * 40 + hello("front.example", false).len() as u64;
    assert_eq!((used[&1], used[&2]), (plain + 204, 2 * plain));
}

#[test]
fn what_a_hello_offers_has_rules_of_its_own() {
    let mut bench = bench(64, 64);
    let text = "id=1 precedence=1 rating-group=1 application=service-1 alpn=dot,doq\n\
                id=2 precedence=2 rating-group=2 application=service-2 host=front.example alpn=h2\n\
                id=3 precedence=3 rating-group=3 application=service-3 host=front.example\n";
    let rules = content(text, 7, &bench);
    bench.engine.load(rules);
    bench.settle();
    let to_front = |protocols: &[u8]| offering("front.example", protocols);
    let hellos = [
        to_front(b"\x03dot"),
        to_front(b"\x08http/1.1\x02h2"),
        to_front(b"\x03h2c\x02H2"),
        hello("front.example", false),
    ];
    hellos.iter().zip(41_001..).for_each(|(hello, port)| begin(&mut bench, port, hello));
    let used = used(&query(&mut bench, 0));
    let whole = |hello: &Vec<u8>| 3 * 40 + hello.len() as u64;
    let [dot, h2, other, plain] = hellos.each_ref().map(whole);
    assert_eq!((used[&1], used[&2], used[&3]), (dot, h2, other + plain));
}

/// A user's connection, up to its first segment with something in it.
fn begin(bench: &mut Bench, port: u16, first: &[u8]) {
    let flow = FiveTuple { source_port: port, destination_port: 443, ..flow(1) };
    let accepted = made(flag::SYN | flag::ACK, (SERVER_FIRST - 1, USER_FIRST), b"");
    for (side, frame) in [
        (N3, up(1, &flow, &made(flag::SYN, (USER_FIRST - 1, 0), b""))),
        (N6, down(&flow, &accepted)),
        (N3, up(1, &flow, &made(flag::ACK, (USER_FIRST, SERVER_FIRST), first))),
    ] {
        bench.receive(side, &frame);
        bench.settle();
    }
}

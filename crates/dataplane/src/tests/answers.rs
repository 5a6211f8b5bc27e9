//! Of what application the answer to a lookup is: of what its query was, as long as nothing says otherwise.

use super::content::{bench, content, query, used};
use super::redirect::tunnelled;
use super::to_user;
use crate::fixture::{Bench, N3, N6};
use packet::{ipv4, udp};

const USER: [u8; 4] = [10, 60, 0, 1];
const RESOLVER: [u8; 4] = [203, 0, 113, 53];

/// Marked, a lookup is of the first service, and otherwise of the second.
const BY_MARK: &str = "id=1 precedence=1 rating-group=1 application=service-1 layer=dns host=video.example dscp=10\n\
                       id=2 precedence=2 rating-group=2 application=service-2 layer=dns host=video.example\n";
const OTHERWISE: &str =
    "id=1 precedence=1 rating-group=3 application=service-3 layer=dns host=video.example\n";

/// A datagram between two addresses, port 53 on the resolver's side: a question for `video.example`, or its answer.
fn lookup(id: u8, is_answer: bool, dscp: u8) -> Vec<u8> {
    let flags = if is_answer { 0x80 } else { 0 };
    let mut message = vec![0, id, flags, 0, 0, 1, 0, u8::from(is_answer), 0, 0, 0, 0];
    message.extend(b"\x05video\x07example\x00\x00\x01\x00\x01");
    if is_answer {
        message.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x0e\x10\x00\x04\xc6\x33\x64\x07");
    }
    let ((from, from_port), (to, to_port)) =
        if is_answer { ((RESOLVER, 53), (USER, 4_000)) } else { ((USER, 4_000), (RESOLVER, 53)) };
    let mut packet = vec![0; 28];
    ipv4::Header::new(from.into(), to.into(), 17, 8 + message.len()).unwrap().write(&mut packet).unwrap();
    packet[1] = dscp << 2;
    packet[10..12].fill(0);
    let checksum = packet::checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    udp::Header::new(from_port, to_port, message.len()).unwrap().write(&mut packet[20..]).unwrap();
    packet.extend(message);
    packet
}

fn ask(bench: &mut Bench, id: u8, dscp: u8) -> u64 {
    let packet = lookup(id, false, dscp);
    bench.receive(N3, &tunnelled(1, &packet));
    bench.worker.turn(bench.now_ns);
    packet.len() as u64
}

fn answer(bench: &mut Bench, id: u8, dscp: u8) -> u64 {
    let packet = lookup(id, true, dscp);
    bench.receive(N6, &[&to_user(1)[..14], &packet].concat());
    bench.worker.turn(bench.now_ns);
    packet.len() as u64
}

fn load(bench: &mut Bench, text: &str, revision: u64) {
    let rules = content(text, revision, bench);
    bench.engine.load(rules);
    bench.settle();
}

/// What each of the first three services has been billed.
fn billed(bench: &mut Bench) -> [u64; 3] {
    let told = used(&query(bench, 0));
    [1, 2, 3].map(|service| told[&service])
}

#[test]
fn an_answer_is_of_what_its_query_was() {
    let mut bench = bench(64, 4_096);
    load(&mut bench, BY_MARK, 7);
    let marked = ask(&mut bench, 1, 10) + answer(&mut bench, 1, 10);
    assert_eq!(billed(&mut bench), [marked, 0, 0]);
    let plain = ask(&mut bench, 2, 0) + answer(&mut bench, 2, 0);
    assert_eq!(billed(&mut bench), [marked, plain, 0]);
    let counts = bench.worker.content_counts();
    assert_eq!((counts.detected, counts.names), (4, 2));
}

/// It is marked otherwise, rules have changed since, or nobody asked: then it is looked at for itself.
#[test]
fn an_answer_for_which_its_query_does_not_stand_is_of_what_it_says_itself() {
    let mut bench = bench(64, 4_096);
    load(&mut bench, BY_MARK, 7);
    let (asked, answered) = (ask(&mut bench, 1, 10), answer(&mut bench, 1, 0));
    assert_eq!(billed(&mut bench), [asked, answered, 0]);
    let unasked = answer(&mut bench, 2, 10);
    assert_eq!(billed(&mut bench), [asked + unasked, answered, 0]);
    let asked = asked + unasked + ask(&mut bench, 3, 10);
    load(&mut bench, OTHERWISE, 8);
    let late = answer(&mut bench, 3, 10);
    assert_eq!(billed(&mut bench), [asked, answered, late]);
    assert_eq!(bench.worker.content_counts().names, 2, "who asked has been told twice");
}

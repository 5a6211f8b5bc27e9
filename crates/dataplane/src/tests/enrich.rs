//! Header enrichment: a user and a server, each with the numbers it believes in, and all that the network may do.

use super::redirect::{SERVER_FIRST, USER_FIRST, bench_with, down, flow, made, pass, up};
use crate::fixture::{Bench, N3, N6, SERVED, enriched, rules};
use dplink::{Command, Notice, UsageCause};
use packet::FiveTuple;
use packet::tcp::flag;
use proptest::prelude::*;
use rules::{Seid, Urr, UrrId};

pub(super) const FIELD: &[u8] = b"X-MSISDN: 491701234567\r\n";
pub(super) const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: www.example\r\n\r\n";
const LINE: usize = b"GET /a HTTP/1.1\r\n".len();

fn bench() -> Bench {
    bench_with(SERVED, enriched(SERVED))
}

fn with_field(request: &[u8]) -> Vec<u8> {
    [&request[..LINE], FIELD, &request[LINE..]].concat()
}

/// A handshake; nothing is put into it.
pub(super) fn shake_hands(bench: &mut Bench, flow: &FiveTuple) {
    let (_, server) = pass(bench, N3, &up(SERVED, flow, &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
    assert_eq!((server[0].0, server[0].1), (flag::SYN, USER_FIRST - 1));
    let answer = made(flag::SYN | flag::ACK, (SERVER_FIRST - 1, USER_FIRST), b"");
    let (user, _) = pass(bench, N6, &down(flow, &answer));
    assert_eq!((user[0].1, user[0].2), (SERVER_FIRST - 1, USER_FIRST));
}

pub(super) fn counts(bench: &Bench) -> (u64, u64) {
    let counts = bench.worker.content_counts();
    (counts.enriched, counts.unenriched)
}

/// What the server hears of a segment.
pub(super) fn say(bench: &mut Bench, flow: &FiveTuple, sequence: u32, payload: &[u8]) -> (u32, Vec<u8>) {
    let segment = made(flag::ACK | flag::PSH, (sequence, SERVER_FIRST), payload);
    let (user, server) = pass(bench, N3, &up(SERVED, flow, &segment));
    assert_eq!((user.len(), server.len()), (0, 1));
    (server[0].1, server[0].4.clone())
}

/// What the user hears of an acknowledgement.
pub(super) fn acknowledge(bench: &mut Bench, flow: &FiveTuple, number: u32) -> u32 {
    let (user, _) = pass(bench, N6, &down(flow, &made(flag::ACK, (SERVER_FIRST, number), b"")));
    user[0].2
}

#[test]
fn every_request_of_a_connection_gets_its_field() {
    let (mut bench, flow) = (bench(), flow(SERVED));
    shake_hands(&mut bench, &flow);
    let (n, get) = (FIELD.len() as u32, GET.len() as u32);
    assert_eq!(say(&mut bench, &flow, USER_FIRST, GET), (USER_FIRST, with_field(GET)));
    // Sent again, cut otherwise: the server reads the same.
    assert_eq!(say(&mut bench, &flow, USER_FIRST, &GET[..LINE]), (USER_FIRST, GET[..LINE].to_vec()));
    let rest = say(&mut bench, &flow, USER_FIRST + LINE as u32, &GET[LINE..]);
    assert_eq!(rest, (USER_FIRST + LINE as u32, [FIELD, &GET[LINE..]].concat()));
    let tail = say(&mut bench, &flow, USER_FIRST + LINE as u32 + 1, &GET[LINE + 1..]);
    assert_eq!(tail, (USER_FIRST + LINE as u32 + 1 + n, GET[LINE + 1..].to_vec()));
    assert_eq!(acknowledge(&mut bench, &flow, USER_FIRST + 3), USER_FIRST + 3);
    assert_eq!(acknowledge(&mut bench, &flow, USER_FIRST + LINE as u32 + 3), USER_FIRST + LINE as u32);
    assert_eq!(acknowledge(&mut bench, &flow, USER_FIRST + get + n), USER_FIRST + get);
    let second = say(&mut bench, &flow, USER_FIRST + get, GET);
    assert_eq!(second, (USER_FIRST + get + n, with_field(GET)));
    assert_eq!(acknowledge(&mut bench, &flow, USER_FIRST + 2 * (get + n)), USER_FIRST + 2 * get);
    let closes = made(flag::ACK | flag::FIN, (USER_FIRST + 2 * get, SERVER_FIRST), b"");
    let (_, server) = pass(&mut bench, N3, &up(SERVED, &flow, &closes));
    assert_eq!(server[0].1, USER_FIRST + 2 * (get + n));
    assert_eq!(counts(&bench), (2, 0));
}

/// What a SYN carries passes as it is, whether the server takes it or not; what follows begins where it ends.
#[test]
fn requests_behind_one_in_the_syn_get_their_field() {
    let (mut bench, flow) = (bench(), flow(SERVED));
    let syn = made(flag::SYN, (USER_FIRST - 1, 0), GET);
    let (_, server) = pass(&mut bench, N3, &up(SERVED, &flow, &syn));
    assert_eq!((server[0].1, &server[0].4[..]), (USER_FIRST - 1, GET));
    // Sent again, as a server that passes it over makes its sender do.
    assert_eq!(say(&mut bench, &flow, USER_FIRST, GET), (USER_FIRST, GET.to_vec()));
    let second = USER_FIRST + GET.len() as u32;
    assert_eq!(say(&mut bench, &flow, second, GET), (second, with_field(GET)));
    // A body that begins in the SYN is no request, however much the rest of it looks like one.
    let other = FiveTuple { source_port: 9, ..flow };
    let post = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", GET.len());
    pass(&mut bench, N3, &up(SERVED, &other, &made(flag::SYN, (USER_FIRST - 1, 0), post.as_bytes())));
    let body = USER_FIRST + post.len() as u32;
    assert_eq!(say(&mut bench, &other, body, GET), (body, GET.to_vec()));
    let next = body + GET.len() as u32;
    assert_eq!(say(&mut bench, &other, next, GET), (next, with_field(GET)));
}

#[test]
fn connections_go_on_when_the_field_is_taken_away() {
    let (mut bench, flow) = (bench(), flow(SERVED));
    shake_hands(&mut bench, &flow);
    say(&mut bench, &flow, USER_FIRST, GET);
    let (n, get) = (FIELD.len() as u32, GET.len() as u32);
    bench.put(SERVED, 3, rules(SERVED));
    bench.settle();
    assert_eq!(acknowledge(&mut bench, &flow, USER_FIRST + get + n), USER_FIRST + get);
    assert_eq!(say(&mut bench, &flow, USER_FIRST + get, GET), (USER_FIRST + get + n, GET.to_vec()));
    let other = FiveTuple { source_port: 9, ..flow };
    shake_hands(&mut bench, &other);
    assert_eq!(say(&mut bench, &other, USER_FIRST, GET), (USER_FIRST, GET.to_vec()));
}

/// What leaves is counted: with the field, and without what was cut off for it, which the user sends again.
#[test]
fn packets_are_counted_as_they_leave() {
    let mut rules = enriched(SERVED);
    rules.urrs = vec![Urr { id: UrrId(1), ..Urr::default() }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    let (mut bench, flow) = (bench_with(SERVED, rules), flow(SERVED));
    shake_hands(&mut bench, &flow);
    let usage = |bench: &mut Bench| {
        let command =
            Command::QueryUsage { session: Seid(SERVED), urrs: vec![], token: 7, is_reported: true };
        bench.engine.handle(command).unwrap();
        let told = bench.settle().into_iter().find_map(|notice| match notice {
            Notice::Usage { cause: UsageCause::Query(7), counts, .. } => Some(counts[0].uplink_bytes),
            _ => None,
        });
        told.unwrap()
    };
    let before = usage(&mut bench);
    let (_, heard) = say(&mut bench, &flow, USER_FIRST, GET);
    assert_eq!(heard, with_field(GET));
    let first = (40 + heard.len()) as u64;
    assert_eq!(usage(&mut bench) - before, first);
    // Sent again, with more behind it: a segment as long as may be.
    let long = [GET, &[b'a'; 1_460][GET.len()..]].concat();
    let (_, heard) = say(&mut bench, &flow, USER_FIRST, &long);
    assert_eq!(heard.len(), 1_460, "as much is cut off as was put in");
    assert_eq!(usage(&mut bench) - before - first, 1_500);
    // A shorter one is as long with the field, and cut no less.
    let (_, heard) = say(&mut bench, &flow, USER_FIRST, &long[..1_450]);
    assert_eq!((heard.len(), usage(&mut bench) - before - first), (1_460, 3_000));
}

/// Selective acknowledgements are of the user's numbers (RFC 2018).
#[test]
fn blocks_of_selective_acknowledgements_are_shifted() {
    let (mut bench, flow) = (bench(), flow(SERVED));
    shake_hands(&mut bench, &flow);
    say(&mut bench, &flow, USER_FIRST, GET);
    let (n, get) = (FIELD.len() as u32, GET.len() as u32);
    let edges = [USER_FIRST + get + n, USER_FIRST + get + n + 100];
    // No operation, then the option: its numbers are at odd places.
    let mut options = vec![1, 5, 10];
    edges.iter().for_each(|edge| options.extend(edge.to_be_bytes()));
    options.push(0);
    let mut frame = down(&flow, &made(flag::ACK, (SERVER_FIRST, USER_FIRST), b""));
    frame.splice(54..54, options.iter().copied());
    frame[46] = 0x80;
    packet::ipv4::set_total_length(&mut frame[14..], 40 + options.len() as u16).unwrap();
    packet::tcp::seal(&mut frame[14..], 20).unwrap();
    bench.receive(N6, &frame);
    bench.worker.turn(bench.now_ns);
    let sent = bench.sent(N3).remove(0);
    let ip = &sent[super::redirect::TUNNEL..];
    assert!(packet::tcp::is_sealed(ip, 20));
    let told: Vec<u32> =
        ip[43..51].chunks(4).map(|edge| u32::from_be_bytes(edge.try_into().unwrap())).collect();
    assert_eq!(told, [USER_FIRST + get, USER_FIRST + get + 100]);
}

/// What is not sure passes as it is, and is counted.
#[test]
fn what_cannot_be_right_is_left_alone() {
    let (mut bench, mut flow) = (bench(), flow(SERVED));
    let mut alone = |bench: &mut Bench, before: &[u8], request: &[u8]| {
        flow.source_port += 1;
        shake_hands(bench, &flow);
        let mut at = USER_FIRST;
        if !before.is_empty() {
            say(bench, &flow, at, before);
            at += before.len() as u32;
        }
        let (sequence, heard) = say(bench, &flow, at, request);
        assert_eq!((sequence, heard == request), (at, true), "{request:?}");
    };
    // A first line in two segments, and what follows it; what is no HTTP, a tunnel; a request behind what nobody knows the end of.
    alone(&mut bench, b"", &GET[..10]);
    alone(&mut bench, &GET[..10], &GET[10..]);
    alone(&mut bench, b"", b"\x16\x03\x01");
    alone(&mut bench, b"", b"CONNECT a:1 HTTP/1.1\r\n\r\n");
    alone(&mut bench, b"HELO\r\n", GET);
    assert_eq!(counts(&bench), (0, 3));
    // Too long for its way with the field.
    let long = format!("GET /a HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(1_436));
    alone(&mut bench, b"", long.as_bytes());
    // A connection that nobody has seen begin.
    flow.source_port += 1;
    assert_eq!(say(&mut bench, &flow, USER_FIRST, GET), (USER_FIRST, GET.to_vec()));
    assert_eq!(counts(&bench), (0, 5));
    // What comes behind it has gone before.
    flow.source_port += 1;
    shake_hands(&mut bench, &flow);
    say(&mut bench, &flow, USER_FIRST + GET.len() as u32, b"later");
    assert_eq!(say(&mut bench, &flow, USER_FIRST, GET), (USER_FIRST, GET.to_vec()));
    assert_eq!(counts(&bench), (0, 6));
}

/// A head may take several segments: the field goes into the first, and the next request is found.
#[test]
fn a_long_head_gets_its_field_and_so_do_those_behind_it() {
    let (mut bench, flow) = (bench(), flow(SERVED));
    shake_hands(&mut bench, &flow);
    let n = FIELD.len() as u32;
    let cookie = format!("Cookie: {}\r\n", "c".repeat(3_000));
    let long = [&GET[..LINE], cookie.as_bytes(), b"Content-Length: 5\r\n\r\n", b"12345"].concat();
    let mut at = USER_FIRST;
    for part in long.chunks(1_000) {
        let (sequence, heard) = say(&mut bench, &flow, at, part);
        let (expected, shift) = match at == USER_FIRST {
            true => (with_field(part), 0),
            false => (part.to_vec(), n),
        };
        assert_eq!((sequence, heard == expected), (at + shift, true));
        at += part.len() as u32;
    }
    acknowledge(&mut bench, &flow, at + n);
    assert_eq!(say(&mut bench, &flow, at, GET), (at + n, with_field(GET)));
    assert_eq!(counts(&bench), (2, 0));
}

/// A body is not looked into, however much it looks like a request, and what follows it is one again.
#[test]
fn bodies_are_stepped_over() {
    let (mut bench, flow) = (bench(), flow(SERVED));
    shake_hands(&mut bench, &flow);
    let post = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", GET.len());
    let (sequence, heard) = say(&mut bench, &flow, USER_FIRST, post.as_bytes());
    assert_eq!((sequence, heard.len()), (USER_FIRST, post.len() + FIELD.len()));
    let (n, at) = (FIELD.len() as u32, USER_FIRST + post.len() as u32);
    assert_eq!(say(&mut bench, &flow, at, GET), (at + n, GET.to_vec()));
    acknowledge(&mut bench, &flow, at + n + GET.len() as u32);
    let next = at + GET.len() as u32;
    assert_eq!(say(&mut bench, &flow, next, GET), (next + n, with_field(GET)));
}

/// Of a segment that is sent again in fragments, the field has no place in the first one alone.
#[test]
fn fragments_are_not_put_anything_into() {
    let (mut bench, flow) = (bench(), flow(SERVED));
    shake_hands(&mut bench, &flow);
    say(&mut bench, &flow, USER_FIRST, GET);
    let mut frame = up(SERVED, &flow, &made(flag::ACK, (USER_FIRST, SERVER_FIRST), GET));
    let ip = &mut frame[super::redirect::TUNNEL..];
    ip[6] = 0x20;
    ip[10..12].copy_from_slice(&[0, 0]);
    let sum = packet::checksum::of(&ip[..20]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let (_, server) = pass(&mut bench, N3, &frame);
    assert_eq!((server.len(), super::drops(&bench, crate::counters::DropReason::NotEnriched)), (0, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Whatever segments come, cut short or not: each leaves or is dropped, and the books balance.
    #[test]
    fn whatever_comes_goes_or_is_dropped(
        segments in proptest::collection::vec(
            (any::<bool>(), any::<u8>(), (0..200_u32, 0..200_u32), proptest::collection::vec(any::<u8>(), 0..60)),
            1..20,
        ),
        cut in 0..60_usize,
    ) {
        let (mut bench, flow) = (bench(), flow(SERVED));
        shake_hands(&mut bench, &flow);
        say(&mut bench, &flow, USER_FIRST, GET);
        for (is_up, flags, (sequence, acknowledged), payload) in &segments {
            let numbers = match is_up {
                true => (USER_FIRST + sequence, SERVER_FIRST + acknowledged),
                false => (SERVER_FIRST + sequence, USER_FIRST + acknowledged),
            };
            let segment = made(*flags, numbers, payload);
            let (port, mut frame) = match is_up {
                true => (N3, up(SERVED, &flow, &segment)),
                false => (N6, down(&flow, &segment)),
            };
            let length = frame.len() - cut.min(frame.len() - 14) * usize::from(payload.len() % 7 == 0);
            frame.truncate(length);
            pass(&mut bench, port, &frame);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A user with requests to send, over a network that loses, doubles and delays what it likes: the server, which takes
    /// what comes by number and acknowledges what it has, reads each request with its field or as it was, whole and in
    /// order; and in the end the user has everything acknowledged, by its own numbers.
    #[test]
    fn over_a_bad_network_the_server_reads_what_was_meant(
        requests in 1..5_usize,
        events in proptest::collection::vec((0..4_u8, any::<u16>(), 1..60_usize), 30..200),
    ) {
        let (mut bench, flow) = (bench(), flow(SERVED));
        shake_hands(&mut bench, &flow);
        let stream = GET.repeat(requests);
        let mut laid: Vec<Option<u8>> = vec![None; stream.len() + requests * FIELD.len()];
        let (mut acknowledged, mut sent) = (0_usize, 0_usize);
        let drive = events.into_iter().chain(std::iter::repeat_n((9, 0, 60), 40 * requests));
        for (event, place, length) in drive {
            // The user has one request open at a time, and sends any part of it, once it has sent it whole.
            let open = acknowledged / GET.len() * GET.len();
            if open >= stream.len() {
                break;
            }
            let end = open + GET.len();
            let (from, until) = match sent >= end && event < 9 {
                true => {
                    let from = open + usize::from(place) % GET.len();
                    (from, (from + length).min(end))
                }
                // All that is not acknowledged, as after a timeout.
                false => (if sent >= end { acknowledged } else { open }, end),
            };
            sent = sent.max(until);
            let (number, payload) = say(&mut bench, &flow, USER_FIRST + from as u32, &stream[from..until]);
            if event == 0 {
                continue;
            }
            // What it has acknowledged it does not look at again (RFC 9293 3.10.7.4).
            let known = laid.iter().take_while(|octet| octet.is_some()).count();
            let arriving = payload.iter().zip((number - USER_FIRST) as usize..);
            for (octet, place) in arriving.filter(|(_, place)| *place >= known) {
                let free = laid.get(place).is_some_and(|laid| laid.is_none_or(|laid| laid == *octet));
                prop_assert!(free, "the server hears two things at {}", place);
                laid[place] = Some(*octet);
            }
            if event == 1 {
                continue;
            }
            let whole = laid.iter().take_while(|octet| octet.is_some()).count() as u32;
            let told = acknowledge(&mut bench, &flow, USER_FIRST + whole);
            prop_assert!(told >= USER_FIRST && told as usize <= USER_FIRST as usize + sent);
            acknowledged = acknowledged.max((told - USER_FIRST) as usize);
        }
        prop_assert_eq!(acknowledged, stream.len());
        let read: Vec<u8> = laid.into_iter().map_while(|octet| octet).collect();
        prop_assert_eq!(read, with_field(GET).repeat(requests));
    }
}

//! GTP-U path management: peers in use are asked, and silence is told.

use super::drops;
use crate::config::Echo;
use crate::counters::DropReason;
use crate::fixture::{Bench, GNB, N3, SIX, config, rules, six};
use dplink::{Command, Event, Notice, PathState, PathStatistics, PeerStatistics};
use packet::udp;
use rules::{Interface, Seid};
use std::net::IpAddr;

const S: u64 = 1_000_000_000;
const ECHO: Echo = Echo { period_ns: 60 * S, t3_ns: 5 * S, n3: 2 };

fn bench() -> Bench {
    let mut bench = Bench::over(&crate::Config { echo: ECHO, ..config() });
    bench.put(1, 1, rules(1));
    bench.settle();
    bench
}

/// An echo request of ours to the gNB.
fn question(sequence: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 3, 1, 2, 0, 0, 0, 3, 2, 8, 0];
    let ip = packet::ipv4::Header::new([10, 30, 0, 2].into(), GNB, 17, 20).unwrap();
    frame.resize(14 + 28, 0);
    ip.write(&mut frame[14..]).unwrap();
    udp::Header::new(2152, 2152, 12).unwrap().write(&mut frame[34..]).unwrap();
    frame.extend([0x32, 1, 0, 4, 0, 0, 0, 0, 0, sequence, 0, 0]);
    frame
}

/// An answer from an address of the radio network, with a restart counter that is not 0.
fn answer(from: [u8; 4], sequence: u8) -> Vec<u8> {
    message(from, &[0x32, 2, 0, 6, 0, 0, 0, 0, 0, sequence, 0, 0, 14, 77])
}

/// A GTP-U message from an address of the radio network.
fn message(from: [u8; 4], message: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 3, 1, 8, 0];
    let ip = packet::ipv4::Header::new(from.into(), [10, 30, 0, 2].into(), 17, 8 + message.len()).unwrap();
    frame.resize(14 + 28, 0);
    ip.write(&mut frame[14..]).unwrap();
    udp::Header::new(2152, 2152, message.len()).unwrap().write(&mut frame[34..]).unwrap();
    frame.extend(message);
    frame
}

/// As [`answer`], of a gNB that says when it began.
fn dated_answer(sequence: u8, stamp: u8) -> Vec<u8> {
    let said = [0x32, 2, 0, 13, 0, 0, 0, 0, 0, sequence, 0, 0, 14, 77, 231, 0, 4, 0xe9, 0, 0, stamp];
    message([10, 30, 0, 1], &said)
}

/// As [`dated_answer`], a question of the gNB's.
fn dated_question(stamp: u8) -> Vec<u8> {
    message([10, 30, 0, 1], &[0x32, 1, 0, 11, 0, 0, 0, 0, 0, 9, 0, 0, 231, 0, 4, 0xe9, 0, 0, stamp])
}

/// As [`dated_answer`], an Error Indication about our packets.
fn dated_error(stamp: u8) -> Vec<u8> {
    let tunnel = [16, 0, 0, 2, 3, 133, 0, 4, 10, 30, 0, 1];
    let start = [0x32, 26, 0, 23, 0, 0, 0, 0, 0, 0, 0, 0];
    message([10, 30, 0, 1], &[&start[..], &tunnel, &[231, 0, 4, 0xe9, 0, 0, stamp]].concat())
}

fn restart() -> Notice {
    Notice::Event(Event::PeerRestarted { side: Interface::Access, remote: GNB.into() })
}

/// What is told, and what the gNB gets, in so many seconds from the next on.
fn seconds(bench: &mut Bench, count: u64) -> (Vec<Notice>, Vec<Vec<u8>>) {
    let (mut told, mut sent) = (Vec::new(), Vec::new());
    for _ in 0..count {
        bench.now_ns += S;
        told.extend(bench.settle());
        // Neighbours are asked for their Ethernet address, too.
        sent.extend(bench.sent(N3).into_iter().filter(|frame| frame[12..14] != [8, 6]));
    }
    (told, sent)
}

fn path(failed: bool) -> Notice {
    Notice::Event(Event::Path { side: Interface::Access, remote: GNB.into(), failed })
}

fn peers(bench: &mut Bench) -> Vec<PeerStatistics> {
    bench.engine.handle(Command::GetPeers { token: 3 }).unwrap();
    match &bench.settle()[..] {
        [Notice::Peers { token: 3, peers }] => peers.clone(),
        other => panic!("{other:?}"),
    }
}

fn counted(bench: &mut Bench) -> PathStatistics {
    bench.engine.handle(Command::GetStatistics).unwrap();
    match &bench.settle()[..] {
        [Notice::Statistics(statistics)] => statistics.workers[0].paths,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_peer_in_use_is_asked_and_its_silence_and_return_are_told() {
    let mut bench = bench();
    assert_eq!(bench.sent(N3), [question(1)]);
    let (told, sent) = seconds(&mut bench, 12);
    assert_eq!((told, sent), (vec![path(true)], vec![question(1)]));
    assert_eq!(peers(&mut bench)[0].path, PathState::Failed);
    // Too late, and to another question; then to the right one, but from somebody else.
    bench.receive(N3, &answer([10, 30, 0, 1], 1));
    assert_eq!(seconds(&mut bench, 49), (vec![], vec![question(2)]));
    bench.receive(N3, &answer([10, 30, 0, 1], 9));
    bench.receive(N3, &answer([10, 30, 0, 9], 2));
    assert_eq!(seconds(&mut bench, 1), (vec![], vec![]));
    bench.receive(N3, &answer([10, 30, 0, 1], 2));
    assert_eq!(seconds(&mut bench, 1).0, [path(false)]);
    let expected =
        PathStatistics { peers: 1, failed: 0, echo_requests: 3, echo_responses: 1, failures: 1, restarts: 0 };
    assert_eq!(counted(&mut bench), expected);
    assert!(bench.worker.books().balanced());
    assert_eq!(bench.worker.counters().consumed, 4);
}

#[test]
fn peers_are_listed_with_what_is_known_of_them() {
    let mut bench = bench();
    bench.now_ns += S / 1_000;
    bench.receive(N3, &answer([10, 30, 0, 1], 1));
    bench.settle();
    bench.now_ns += 2 * S;
    assert_eq!(bench.settle(), [path(false)]);
    let expected = PeerStatistics {
        side: Interface::Access,
        address: GNB.into(),
        ours: Some(IpAddr::from([10, 30, 0, 2])),
        tunnels: 1,
        path: PathState::Up,
        round_trip_us: Some(1_000),
        last_answer_age_ms: Some(2_000),
        recovery_time_stamp: None,
        restarts: 0,
        path_mtu: None,
    };
    assert_eq!(peers(&mut bench), [expected]);
    bench.engine.handle(Command::Delete { session: Seid(1) }).unwrap();
    bench.settle();
    assert_eq!(peers(&mut bench), []);
}

/// The only session of a peer is modified: the peer goes out of use and comes back.
#[test]
fn a_change_of_rules_changes_no_path() {
    let mut bench = bench();
    bench.receive(N3, &answer([10, 30, 0, 1], 1));
    bench.settle();
    bench.sent(N3);
    bench.put(1, 2, rules(1));
    bench.settle();
    assert_eq!(peers(&mut bench)[0].path, PathState::Up);
    assert_eq!(seconds(&mut bench, 59).1, Vec::<Vec<u8>>::new());
}

#[test]
fn a_peer_without_tunnels_is_not_asked() {
    let mut bench = bench();
    bench.engine.handle(Command::Delete { session: Seid(1) }).unwrap();
    bench.settle();
    bench.sent(N3);
    assert_eq!(seconds(&mut bench, 130), (vec![], vec![]));
}

/// What it says of its beginning counts in answers to us, in its own questions and in Error Indications (TS 23.007 18A).
#[test]
fn a_peer_that_was_restarted_is_told_once() {
    let mut bench = bench();
    bench.receive(N3, &dated_answer(1, 5));
    assert_eq!(seconds(&mut bench, 1).0, [path(false)], "what it said before nobody knows");
    for (message, told) in [
        (dated_question(5), vec![]),
        (dated_question(6), vec![restart()]),
        (dated_question(6), vec![]),
        (dated_question(5), vec![]),
        // Nobody asked.
        (dated_answer(1, 7), vec![]),
    ] {
        bench.receive(N3, &message);
        assert_eq!(seconds(&mut bench, 2).0, told);
    }
    bench.receive(N3, &dated_error(8));
    assert_eq!(seconds(&mut bench, 2).0.iter().filter(|told| **told == restart()).count(), 1);
    let peer = &peers(&mut bench)[0];
    assert_eq!((peer.recovery_time_stamp, peer.restarts), (Some(0xe900_0008), 2));
    assert_eq!(counted(&mut bench).restarts, 2);
}

/// There is nothing that it could have forgotten: whatever tunnel comes later, it knows.
#[test]
fn the_restart_of_a_peer_without_tunnels_is_told_to_nobody() {
    let mut bench = bench();
    bench.receive(N3, &dated_answer(1, 5));
    seconds(&mut bench, 1);
    bench.engine.handle(Command::Delete { session: Seid(1) }).unwrap();
    bench.settle();
    bench.receive(N3, &dated_question(6));
    seconds(&mut bench, 2);
    bench.put(1, 2, rules(1));
    assert!(!seconds(&mut bench, 2).0.contains(&restart()));
    assert_eq!(peers(&mut bench)[0].recovery_time_stamp, Some(0xe900_0006));
}

#[test]
fn peers_are_told_when_our_sessions_began() {
    let mut bench = bench();
    assert_eq!(bench.sent(N3), [question(1)], "nobody has said so");
    bench.engine.handle(Command::ResyncBegin { recovery_time_stamp: 0xe912_3456 }).unwrap();
    bench.settle();
    let stamp = [231, 0, 4, 0xe9, 0x12, 0x34, 0x56];
    let again = &seconds(&mut bench, 5).1[0][42..];
    assert_eq!(again, [&[0x32, 1, 0, 11, 0, 0, 0, 0, 0, 1, 0, 0][..], &stamp].concat());
    bench.receive(N3, &dated_question(1));
    let answer = &seconds(&mut bench, 1).1[0][42..];
    assert_eq!(answer, [&[0x32, 2, 0, 13, 0, 0, 0, 0, 0, 9, 0, 0, 14, 0][..], &stamp].concat());
    // A packet into a tunnel that is not there.
    bench.receive(N3, &message([10, 30, 0, 1], &[0x30, 255, 0, 1, 0, 0, 0x77, 0x77, 0x45]));
    let error = &seconds(&mut bench, 1).1[0][42..];
    assert_eq!((error[1], &error[24..]), (26, &stamp[..]));
}

/// Its failure was told, and nobody else remembers that.
#[test]
fn the_return_of_a_failed_peer_is_told_even_if_it_was_forgotten_meanwhile() {
    let mut bench = bench();
    assert_eq!(seconds(&mut bench, 12).0, [path(true)]);
    bench.engine.handle(Command::Delete { session: Seid(1) }).unwrap();
    bench.settle();
    assert_eq!(seconds(&mut bench, 700).0, []);
    bench.put(1, 2, rules(1));
    bench.settle();
    assert_eq!(seconds(&mut bench, 2).0, []);
    bench.receive(N3, &answer([10, 30, 0, 1], 1));
    assert_eq!(seconds(&mut bench, 1).0, [path(false)]);
    assert_eq!(seconds(&mut bench, 58).0, [], "once");
}

#[test]
fn a_control_plane_that_comes_back_hears_of_failures_again() {
    let mut bench = bench();
    seconds(&mut bench, 12);
    bench.engine.handle(Command::ResyncBegin { recovery_time_stamp: 7 }).unwrap();
    bench.put(1, 1, rules(1));
    bench.engine.handle(Command::ResyncEnd).unwrap();
    assert_eq!(bench.settle(), [path(true)]);
}

/// What there was no room for is told later, once, and in order.
#[test]
fn nothing_is_told_of_a_path_that_nobody_had_room_for() {
    let mut bench = bench();
    let worker = &mut bench.worker;
    for _ in 0..64 {
        worker.crowd(Event::Path { side: Interface::Core, remote: GNB.into(), failed: true });
    }
    for second in 1..=12 {
        bench.worker.turn(second * S);
    }
    bench.now_ns = 13 * S;
    let told = bench.settle();
    assert_eq!(told.iter().filter(|told| **told == path(true)).count(), 1, "{told:?}");
}

#[test]
fn peers_over_ipv6_are_asked_with_a_checksum() {
    let mut bench = Bench::over(&crate::Config { echo: ECHO, ..config() });
    bench.put(SIX, 1, six());
    bench.settle();
    let [frame] = &bench.sent(N3)[..] else { panic!("one question") };
    let ip = packet::ipv6::Packet::parse(&frame[14..]).unwrap();
    let datagram = &frame[54..];
    assert_eq!(udp::verify(datagram, ip.pseudo_sum(17, datagram.len())), udp::Checksum::Intact);
    assert_eq!(datagram[8..], [0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn without_a_buffer_a_question_is_asked_later() {
    let mut bench = Bench::over(&crate::Config { echo: ECHO, ..config() });
    bench.wires[N3].0.borrow_mut().buffers = Some(0);
    bench.put(1, 1, rules(1));
    bench.settle();
    assert!(bench.sent(N3).is_empty());
    bench.wires[N3].0.borrow_mut().buffers = None;
    assert_eq!(seconds(&mut bench, 6).1, [question(1)]);
    assert_eq!(drops(&bench, DropReason::NoHeadroom), 0);
    assert!(bench.worker.books().balanced());
}

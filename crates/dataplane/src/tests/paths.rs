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
    let mut frame = vec![2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 3, 1, 8, 0];
    let ip = packet::ipv4::Header::new(from.into(), [10, 30, 0, 2].into(), 17, 22).unwrap();
    frame.resize(14 + 28, 0);
    ip.write(&mut frame[14..]).unwrap();
    udp::Header::new(2152, 2152, 14).unwrap().write(&mut frame[34..]).unwrap();
    frame.extend([0x32, 2, 0, 6, 0, 0, 0, 0, 0, sequence, 0, 0, 14, 77]);
    frame
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
    let expected = PathStatistics { peers: 1, failed: 0, echo_requests: 3, echo_responses: 1, failures: 1 };
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
    bench.engine.handle(Command::ResyncBegin).unwrap();
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

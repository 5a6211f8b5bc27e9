//! A worker and its engine together.

mod active;
mod announced;
mod answers;
mod begun_anew;
mod classes;
mod content;
mod copies;
mod crew;
mod decoys;
mod enrich;
mod enrich_errors;
mod enrich_hosts;
mod ethernet;
mod exits;
mod foreseen;
mod fragments;
mod framed;
mod frames_between;
mod gateways;
mod handshakes;
mod held;
mod hello;
mod indications;
mod inherited;
mod instances;
mod interim;
mod kept;
mod labels;
mod lasting;
mod lookups;
mod looped;
mod losses;
mod memory;
mod moving;
mod mtu;
mod nowhere;
mod observe;
mod online;
mod paths;
mod programs;
mod punt;
mod quotas;
pub(crate) mod rates;
mod readdress;
mod redirect;
mod reloads;
mod requests;
mod services;
mod shares;
mod solicitation;
mod spoofing;
mod starts;
mod steered;
mod traced;
mod udp;
mod unreachable;
mod usage;
mod vlan;
mod ways_back;

use crate::config::{Config, Limits};
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, rules};
use crate::frame::NextHop;
use dplink::{Command, Notice, Role, VERSION};
use packet::HeapBuffer;
use proptest::prelude::*;
use rules::{PacketRate, PacketRates, PdrId, Qer, QerId, Rules, Seid};

/// A frame from the core to the user of session 1, 2 or 3.
fn to_user(session: u8) -> Vec<u8> {
    let ip = packet::ipv4::Header::new([203, 0, 113, 80].into(), [10, 60, 0, session].into(), 17, 8).unwrap();
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.resize(14 + 28, 0);
    ip.write(&mut frame[14..]).unwrap();
    frame
}

fn applied(session: u64, revision: u64) -> Notice {
    Notice::Applied { session: Seid(session), revision, removed: vec![] }
}

fn removed(session: u64) -> Notice {
    Notice::Removed { session: Seid(session), usage: vec![] }
}

fn drops(bench: &Bench, reason: DropReason) -> u64 {
    bench.worker.counters().drops[reason as usize]
}

#[test]
fn rules_are_in_force_once_they_are_acknowledged() {
    let mut bench = Bench::bare();
    bench.receive(N6, &to_user(1));
    bench.settle();
    assert_eq!(drops(&bench, DropReason::NoSession), 1);
    assert_eq!(bench.put(1, 4, rules(1)), None);
    assert_eq!(bench.settle(), [applied(1, 4)]);
    bench.receive(N6, &to_user(1));
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 1);
}

/// An idle worker rests only when there are none: more may wait behind them.
#[test]
fn a_turn_tells_how_many_orders_it_obeyed() {
    let mut bench = Bench::bare();
    (1..=3).for_each(|session| drop(bench.put(session, 1, rules(session))));
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.worker.obeyed(), 3);
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.worker.obeyed(), 0);
}

/// No queue tells of orders, so whoever waits for one would not be woken.
#[test]
fn who_is_about_to_rest_sees_an_order_that_has_come_meanwhile() {
    let mut bench = Bench::bare();
    bench.worker.turn(bench.now_ns);
    assert!(!bench.worker.is_waited_for());
    drop(bench.put(1, 1, rules(1)));
    assert!(bench.worker.is_waited_for());
    bench.worker.turn(bench.now_ns);
    assert!(!bench.worker.is_waited_for());
}

#[test]
fn the_same_revision_again_is_acknowledged_without_work() {
    let mut bench = Bench::new();
    let again = applied(1, 1);
    assert_eq!(bench.put(1, 1, rules(1)), Some(again));
    assert_eq!(bench.settle(), []);
}

#[test]
fn a_new_revision_replaces_the_tunnel() {
    let mut bench = Bench::new();
    let mut moved = rules(1);
    moved.pdrs[0].pdi.f_teid.as_mut().unwrap().teid.0 = 0x777;
    bench.put(1, 2, moved);
    assert_eq!(bench.settle().len(), 1);
    // The old tunnel is free for another session now.
    let mut other = rules(4);
    other.pdrs[0].pdi.f_teid = rules(1).pdrs[0].pdi.f_teid;
    bench.put(4, 1, other);
    assert_eq!(bench.settle(), [applied(4, 1)]);
}

#[test]
fn what_belongs_to_another_session_is_refused_and_changes_nothing() {
    let mut bench = Bench::new();
    let mut thief = rules(4);
    thief.pdrs[1].pdi.ue_ipv4 = rules(1).pdrs[1].pdi.ue_ipv4;
    bench.put(4, 1, thief);
    let notices = bench.settle();
    assert!(matches!(&notices[..], [Notice::Refused { session: Seid(4), revision: 1, .. }]), "{notices:?}");
    bench.receive(N6, &to_user(1));
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 1);
    bench.put(4, 1, rules(4));
    assert_eq!(bench.settle(), [applied(4, 1)]);
}

#[test]
fn rules_that_do_not_compile_are_refused_at_once() {
    let mut bench = Bench::new();
    let dangling = Rules { pdrs: rules(1).pdrs, ..Rules::default() };
    assert!(matches!(bench.put(1, 9, dangling), Some(Notice::Refused { revision: 9, .. })));
}

#[test]
fn the_limit_on_sessions_holds() {
    let mut bench = Bench::new();
    for session in 4..=17 {
        bench.put(session, 1, rules(session));
    }
    let notices = bench.settle();
    assert!(matches!(notices.last(), Some(Notice::Refused { session: Seid(17), .. })), "{notices:?}");
    bench.engine.handle(Command::Delete { session: Seid(4) }).unwrap();
    bench.put(17, 2, rules(17));
    assert_eq!(bench.settle(), [removed(4), applied(17, 2)]);
}

/// A handover takes no room that its session has not: of keys of both IP versions, of peers, of meters of packets.
#[test]
fn on_a_full_node_sessions_change() {
    let limits = Limits { sessions: 2, pdrs: 16, peers: 1, meters_apart: 2, ..config().limits };
    let mut bench = Bench::over(&Config { limits, ..config() });
    let both = |session: u64| {
        let mut rules = rules(session);
        let mut six = rules.pdrs[1].clone();
        (six.id, six.pdi.ue_ipv4) = (PdrId(9), None);
        six.pdi.ue_ipv6 = Some(format!("2001:db8:6:{session}::/64").parse().unwrap());
        rules.pdrs.push(six);
        let packets = PacketRate { packets: 10, window_s: 60 };
        let packet_rates = PacketRates { uplink: Some(packets), downlink: Some(packets) };
        rules.qers = vec![Qer { id: QerId(1), packet_rates, ..rules.qers[0].clone() }];
        rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(1)].into());
        rules
    };
    for revision in 1..=3 {
        for session in 1..=2 {
            bench.put(session, revision, both(session));
        }
        assert_eq!(bench.settle(), [applied(1, revision), applied(2, revision)]);
    }
    bench.put(3, 1, both(3));
    assert!(matches!(bench.settle()[..], [Notice::Refused { session: Seid(3), .. }]));
}

#[test]
fn a_deleted_session_can_come_back_in_the_same_revision() {
    let mut bench = Bench::new();
    bench.engine.handle(Command::Delete { session: Seid(1) }).unwrap();
    assert_eq!(bench.put(1, 1, rules(1)), None);
    let notices = bench.settle();
    let again = applied(1, 1);
    assert_eq!(notices, [removed(1), again]);
    bench.receive(N6, &to_user(1));
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 1);
}

#[test]
fn a_resynchronisation_removes_what_is_no_longer_named_and_touches_nothing_else() {
    let mut bench = Bench::new();
    bench.engine.handle(Command::Hello { version: VERSION, role: Role::Control }).unwrap();
    bench.engine.handle(Command::ResyncBegin { recovery_time_stamp: 7 }).unwrap();
    assert!(matches!(bench.put(2, 1, rules(2)), Some(Notice::Applied { .. })));
    let end = bench.engine.handle(Command::ResyncEnd).unwrap();
    assert_eq!(end, Some(Notice::Resynced { swept: 2 }));
    bench.settle();
    for session in 1..=3 {
        bench.receive(N6, &to_user(session));
    }
    bench.settle();
    assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::NoSession)), (1, 2));
}

#[test]
fn another_version_is_turned_away() {
    let mut bench = Bench::bare();
    assert!(bench.engine.handle(Command::Hello { version: VERSION + 1, role: Role::Control }).is_err());
}

#[test]
fn statistics_say_what_happened() {
    let mut bench = Bench::new();
    bench.receive(N6, &to_user(1));
    bench.receive(N6, &to_user(99));
    bench.settle();
    bench.engine.handle(Command::GetStatistics).unwrap();
    let notices = bench.settle();
    let [Notice::Statistics(statistics)] = &notices[..] else { panic!("{notices:?}") };
    let worker = &statistics.workers[0];
    assert_eq!((statistics.sessions, worker.books.received, worker.books.sent), (3, 2, 1));
    assert_eq!(worker.drops, [("no_session".to_owned(), 1)]);
    assert_eq!((statistics.ports[N6].received, statistics.ports[N3].sent), (2, 1));
    assert_eq!(statistics.ports[N3].sent_bytes, 42 + 44);
}

#[test]
fn a_full_port_drops_and_the_books_still_balance() {
    let mut bench = Bench::new();
    bench.wires[N3].0.borrow_mut().room = Some(1);
    for _ in 0..3 {
        bench.receive(N6, &to_user(1));
    }
    bench.worker.turn(bench.now_ns);
    let books = bench.worker.books();
    assert_eq!((books.sent, books.dropped, drops(&bench, DropReason::PortFull)), (1, 2, 2));
    assert!(books.balanced());
}

#[test]
fn a_packet_in_pieces_is_dropped_unread() {
    let mut bench = Bench::new();
    // As all others, a usual one and one that is not.
    bench.receive_buffer(N6, HeapBuffer::in_pieces(&to_user(1)));
    bench.receive_buffer(N6, HeapBuffer::in_pieces(&[0xef; 60]));
    bench.worker.turn(bench.now_ns);
    assert_eq!(drops(&bench, DropReason::NotContiguous), 2);
    assert!(bench.worker.books().balanced());
}

#[test]
fn all_bytes_that_came_in_are_counted_whatever_becomes_of_them() {
    let mut bench = Bench::new();
    let frames = [&to_user(1)[..], &[0xef; 60], &[1]];
    frames.iter().for_each(|frame| bench.receive(N6, frame));
    bench.receive_buffer(N6, HeapBuffer::in_pieces(&to_user(1)));
    bench.worker.turn(bench.now_ns);
    let port = bench.worker.counters().ports[N6];
    assert_eq!((port.received, port.received_bytes), (4, 2 * to_user(1).len() as u64 + 61));
}

#[test]
fn a_packet_without_room_for_its_tunnel_is_dropped() {
    let mut bench = Bench::new();
    // What the tunnel takes beyond the Ethernet header that goes, less one byte.
    let cramped = HeapBuffer::with_headroom(&to_user(1), 44 - 14 - 1);
    bench.wires[N6].0.borrow_mut().to_worker.push_back(cramped);
    bench.worker.turn(bench.now_ns);
    assert_eq!(drops(&bench, DropReason::NoHeadroom), 1);
    assert!(bench.worker.books().balanced());
}

#[test]
fn packets_for_a_silent_neighbour_are_dropped_at_last() {
    let mut bench = Bench::new();
    let stranger = NextHop::new(0, [10, 30, 0, 9]);
    let mut moved = rules(1);
    let forwarding = moved.fars[1].forwarding.as_mut().unwrap();
    forwarding.outer_header_creation.as_mut().unwrap().address = stranger.address;
    bench.put(1, 2, moved);
    bench.settle();
    for _ in 0..3 {
        bench.receive(N6, &to_user(1));
    }
    bench.settle();
    // Two wait, as many as may; one request went out.
    let books = bench.worker.books();
    assert_eq!((books.held, books.created, drops(&bench, DropReason::NeighbourUnresolved)), (2, 1, 1));
    bench.now_ns += 4_000_000_000;
    bench.settle();
    let books = bench.worker.books();
    assert_eq!((books.held, drops(&bench, DropReason::NeighbourUnresolved)), (0, 3));
    assert!(books.balanced());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Frames cut at any byte, with any byte changed, on any port: named drops, and the books balance.
    #[test]
    fn hostile_frames_end_in_named_drops(
        golden in 0usize..1_000,
        cut in proptest::option::of(0usize..160),
        change in proptest::option::of((0usize..160, any::<u8>())),
        port in 0usize..2,
    ) {
        let frames = crate::golden::frames();
        let mut frame = frames[golden % frames.len()].clone();
        if let Some((at, value)) = change && at < frame.len() {
            frame[at] = value;
        }
        frame.truncate(cut.unwrap_or(frame.len()));
        let mut bench = Bench::full();
        bench.receive(port, &frame);
        bench.worker.turn(bench.now_ns);
        let books = bench.worker.books();
        prop_assert!(books.balanced(), "{:?}", books);
        prop_assert_eq!(drops(&bench, DropReason::Unfinished), 0);
    }
}

/// A user makes every packet a flow of its own; the flows of others stay known. How many of a user's stand side by side is by its
/// address, so there are some users.
#[test]
fn a_flood_of_flows_displaces_only_its_own() {
    const QUIET: std::ops::Range<u8> = 10..20;
    const FLOWS: u16 = 200;
    let again: u64 = QUIET.map(|quiet| forgotten_in_a_flood(quiet, FLOWS)).sum();
    let all = QUIET.len() as u64 * u64::from(FLOWS);
    assert!(again < all / 10, "{again} flows of quiet users had to be classified again");
}

/// How many flows of a user had to be classified again after a flood.
fn forgotten_in_a_flood(quiet: u8, flows: u16) -> u64 {
    const NOISY: u8 = 2;
    let mut config = crate::fixture::config();
    config.limits.flows = 1_024;
    let mut bench = Bench::over(&config);
    for session in [quiet, NOISY] {
        bench.put(session.into(), 1, rules(session.into()));
    }
    bench.settle();
    let packet = |session: u8, port: u16| {
        let mut frame = to_user(session);
        packet::udp::Header::new(port, 53, 0).unwrap().write(&mut frame[34..]).unwrap();
        frame
    };
    let classified = |bench: &Bench| bench.worker.counters().nodes[crate::NodeId::Classify as usize].packets;
    let speak = |bench: &mut Bench, session, ports: std::ops::Range<u16>| {
        for port in ports {
            bench.receive(N6, &packet(session, port));
            bench.worker.turn(bench.now_ns);
        }
    };
    speak(&mut bench, quiet, 0..flows);
    for _ in 0..3 {
        bench.now_ns += 2_000_000_000;
        speak(&mut bench, NOISY, 0..20_000);
    }
    let before = classified(&bench);
    speak(&mut bench, quiet, 0..flows);
    classified(&bench) - before
}

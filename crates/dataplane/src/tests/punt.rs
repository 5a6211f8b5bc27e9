//! What ports give the kernel, and what it has sent by them.

use super::crew::Team;
use super::{drops, to_user};
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, punting};
use crate::golden::file;
use crate::steering::Crew;
use dplink::{Command, Notice, Punting, Spread, TraceEnd, TraceFilter};
use packet::vlan::{CUSTOMER, Tag, Tags, push};
use packet::{Buffer, HeapBuffer};

const S: u64 = 1_000_000_000;

/// A neighbour opens BGP.
fn bgp() -> Vec<u8> {
    file("punt/bgp").remove(0)
}

/// With so many packets a second for the kernel.
fn bench(punts_per_s: u32) -> Bench {
    let mut config = punting();
    config.limits.punts_per_s = punts_per_s;
    Bench::over(&config)
}

fn send(bench: &mut Bench, port: usize, frame: &[u8]) {
    assert!(bench.engine.punts().unwrap().send(port, frame));
}

#[test]
fn packets_pass_at_their_pace_and_some_at_once() {
    let mut bench = bench(1_000);
    (0..250).for_each(|_| bench.receive(N6, &bgp()));
    bench.settle();
    assert_eq!((bench.punted().len(), drops(&bench, DropReason::PuntRate)), (11, 239));
    // Of three in each millisecond, one passes: nobody waits for the next second.
    for _ in 0..1_000 {
        bench.now_ns += S / 1_000;
        (0..3).for_each(|_| bench.receive(N6, &bgp()));
        bench.worker.turn(bench.now_ns);
        assert_eq!(bench.punted().len(), 1);
    }
    // The other port has a pace of its own.
    bench.receive(N3, &file("punt/bgp_from_the_radio_side")[0]);
    bench.settle();
    assert_eq!(bench.punted().len(), 1);
    let books = bench.worker.books();
    assert_eq!((books.punted, books.dropped, books.received), (1_012, 2_239, 3_251));
    assert!(books.balanced());
}

#[test]
fn what_the_kernel_has_no_room_for_is_dropped_and_what_it_has_is_whole() {
    let mut bench = bench(1_000_000);
    let mut long = bgp();
    long.resize(1_400, 7);
    (long[16], long[17]) = (5, 106);
    long[24..26].fill(0);
    let checksum = packet::checksum::of(&long[14..34]);
    long[24..26].copy_from_slice(&checksum.to_be_bytes());
    for _ in 0..300 {
        bench.receive(N6, &long);
        bench.worker.turn(bench.now_ns);
    }
    let lost = drops(&bench, DropReason::PuntFull);
    let got = bench.punted();
    assert!(lost > 100 && got.len() as u64 + lost == 300, "{lost}");
    assert!(got.iter().all(|(port, frame)| (*port, frame) == (N6, &long)));
    // Then there is room again.
    bench.receive(N6, &long);
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.punted().len(), 1);
    assert!(bench.worker.books().balanced());
}

#[test]
fn a_port_without_an_interface_drops_by_the_names_it_always_had() {
    let mut config = punting();
    config.ports[N3].punt = None;
    let mut bench = Bench::over(&config);
    bench.receive(N3, &file("punt/bgp_from_the_radio_side")[0]);
    bench.receive(N6, &bgp());
    bench.settle();
    assert_eq!((drops(&bench, DropReason::NoListener), bench.punted().len()), (1, 1));
    assert!(Bench::bare().engine.punts().is_none());
}

#[test]
fn what_the_kernel_sends_leaves_as_it_is_behind_the_packets_of_users() {
    let mut bench = Bench::punting();
    let frame = [&[2, 0, 0, 0, 3, 1, 2, 0, 0, 0, 3, 2, 8, 0][..], &[9; 50]].concat();
    send(&mut bench, N3, &frame);
    assert!(bench.worker.is_waited_for());
    bench.receive(N6, &to_user(1));
    bench.worker.turn(bench.now_ns);
    let sent = bench.sent(N3);
    assert_eq!((sent.len(), &sent[1]), (2, &frame));
    let counters = bench.worker.counters();
    assert_eq!((counters.created, counters.ports[N3].from_kernel, counters.ports[N3].sent), (1, 1, 2));
    assert!(!bench.worker.is_waited_for() && bench.worker.books().balanced());
}

#[test]
fn a_turn_sends_few_frames_of_the_kernel_and_waits_for_no_buffer() {
    let mut bench = Bench::punting();
    (0..40).for_each(|_| send(&mut bench, N6, &[5; 60]));
    bench.wires[N6].0.borrow_mut().buffers = Some(0);
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.worker.counters().created, 0, "it stays where it is");
    bench.wires[N6].0.borrow_mut().buffers = None;
    let sent = [(); 2].map(|()| {
        bench.worker.turn(bench.now_ns);
        bench.sent(N6).len()
    });
    assert_eq!(sent, [32, 8]);
}

#[test]
fn what_does_not_fit_the_port_is_dropped_by_name() {
    let mut bench = Bench::punting();
    send(&mut bench, N6, &[5; 1_500 + 14 + 4]);
    send(&mut bench, N6, &[5; 1_500 + 14 + 5]);
    bench.settle();
    assert_eq!((bench.sent(N6).len(), drops(&bench, DropReason::MtuExceeded)), (1, 1));
    bench.wires[N6].0.borrow_mut().room = Some(0);
    send(&mut bench, N6, &[5; 60]);
    bench.settle();
    assert_eq!(drops(&bench, DropReason::PortFull), 1);
    assert!(bench.worker.books().balanced());
}

#[test]
fn the_kernel_knows_nothing_of_the_vlan() {
    let mut config = punting();
    config.ports[N6].vlan = Some(60);
    let mut bench = Bench::over(&config);
    let mut tagged = HeapBuffer::new(&bgp());
    push(&mut tagged, CUSTOMER, Tag::new(60)).unwrap();
    bench.receive(N6, tagged.data());
    send(&mut bench, N6, &bgp());
    bench.settle();
    assert_eq!(bench.punted(), [(N6, bgp())]);
    let sent = bench.sent(N6);
    assert_eq!(Tags::parse(&sent[0]).unwrap().outer, Some(Tag::new(60)));
    assert!(bench.worker.books().balanced());
}

#[test]
fn any_worker_gives_and_the_first_sends() {
    let mut config = punting();
    config.limits.punts_per_s = 800;
    let mut team = Team::over(&config, &Crew::of(2));
    for worker in 0..2 {
        (0..8).for_each(|_| team.receive(worker, N6, &bgp()));
    }
    assert!(team.engine.punts().unwrap().send(N6, &[5; 60]));
    team.settle();
    let mut got = 0;
    team.engine.punts().unwrap().take(100, |port, _| got += usize::from(port == N6));
    // Each has its part of the port's rate.
    let dropped = team.workers.iter().map(|worker| worker.counters().drops[DropReason::PuntRate as usize]);
    assert_eq!((got, dropped.collect::<Vec<_>>()), (10, vec![3, 3]), "400 each: five at once");
    assert_eq!(team.workers.iter().map(|worker| worker.counters().created).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn who_receives_has_the_rate() {
    let parts = |crew: &Crew| [0, 1].map(|port| crew.punts_per_s(port, 10));
    let spread = vec![Spread::OneQueue, Spread::InnerHash];
    assert_eq!(parts(&Crew { spread: spread.clone(), ..Crew::of(4) }), [10, 3]);
    assert_eq!(parts(&Crew { distributors: 2, spread, ..Crew::of(4) }), [10, 5]);
    assert_eq!(parts(&Crew::default()), [10, 10]);
}

#[test]
fn statistics_and_traces_tell_of_it() {
    let mut bench = Bench::punting();
    let filter = TraceFilter { packets: 1, seconds: 1, port: None, ue: None, teid: None };
    bench.engine.handle(Command::Trace { token: 1, filter }).unwrap();
    bench.settle();
    bench.receive(N6, &bgp());
    send(&mut bench, N6, &[5; 60]);
    let trace = bench.settle().into_iter().find_map(|notice| match notice {
        Notice::Trace { outcome, .. } => outcome.ok(),
        _ => None,
    });
    let traced = &trace.unwrap().packets[0];
    assert_eq!(traced.nodes, ["usual_input", "ethernet_input", "ip4_input", "punt"]);
    assert_eq!((&traced.end, traced.arrived.bytes), (&TraceEnd::Punted, bgp().len() as u16));
    bench.engine.handle(Command::GetStatistics).unwrap();
    let statistics = bench.settle().into_iter().find_map(|notice| match notice {
        Notice::Statistics(statistics) => Some(statistics),
        _ => None,
    });
    let ports: Vec<Option<Punting>> =
        statistics.unwrap().ports.into_iter().map(|port| port.punting).collect();
    let told = |interface: &str, punted, from_kernel| {
        Some(Punting { interface: interface.to_owned(), punted, from_kernel, refused: 0 })
    };
    assert_eq!(ports, [told("n3-host", 0, 0), told("n6-host", 1, 1), None]);
    assert_eq!(config().ports[N6].punt, None);
}

/// Whatever comes, at the usual rate or far beyond it, nothing is lost from the books, and users' packets pass.
#[test]
fn users_do_not_notice_a_flood_for_the_kernel() {
    let mut bench = Bench::punting();
    for _ in 0..50 {
        (0..60).for_each(|_| bench.receive(N6, &bgp()));
        bench.receive(N6, &to_user(1));
        bench.worker.turn(bench.now_ns);
        bench.now_ns += S / 100;
    }
    assert_eq!((bench.sent(N3).len(), bench.punted().len()), (50, 2));
    assert!(bench.worker.books().balanced());
}

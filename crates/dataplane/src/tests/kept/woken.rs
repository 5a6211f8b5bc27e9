//! Users who wake where nobody knows the Ethernet address of their gNB.

use super::{awake, downlink, ports};
use crate::config::Limits;
use crate::counters::DropReason;
use crate::fixture::{ASLEEP, Bench, GNB, N3, N6, asleep, config};
use crate::tests::{drops, rates};
use rules::{OuterHeaderCreation, Rules, Teid};
use std::net::Ipv4Addr;

const OTHER_GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 77);

/// A user who sleeps, and may have so many packets kept, as all together may; two wait for a neighbour else.
fn bench(kept: u16) -> Bench {
    let limits =
        Limits { kept: kept.into(), kept_per_session: kept, held_per_neighbour: 2, ..config().limits };
    let mut bench = Bench::over(&crate::Config { limits, ..config() });
    bench.put(ASLEEP, 1, asleep());
    bench.settle();
    bench
}

/// Awake, at this gNB.
fn awake_at(gnb: Ipv4Addr) -> Rules {
    let mut rules = awake();
    let down = rules.fars[1].forwarding.as_mut().unwrap();
    down.outer_header_creation = Some(OuterHeaderCreation::gtpu(Teid(0x777), gnb.into()));
    rules
}

fn bring(bench: &mut Bench, packets: std::ops::RangeInclusive<u16>) {
    packets.for_each(|port| bench.receive(N6, &downlink(port)));
    bench.settle();
}

/// A gNB asks for our address, or says its own.
fn arp(operation: u8, gnb: Ipv4Addr) -> Vec<u8> {
    let (ours, theirs) = ([2, 0, 0, 0, 3, 2], [2, 0, 0, 0, 3, 9]);
    let message = [0, 1, 8, 0, 6, 4, 0, operation];
    [&ours[..], &theirs, &[8, 6], &message, &theirs, &gnb.octets(), &ours, &[10, 30, 0, 2]].concat()
}

/// What is asked of the wire of N3, and nothing else is there.
fn asked(bench: &mut Bench) -> Vec<Ipv4Addr> {
    let target = |frame: &Vec<u8>| match &frame[..] {
        [.., a, b, c, d] if frame[12..14] == [8, 6] && frame[21] == 1 => Ipv4Addr::new(*a, *b, *c, *d),
        other => panic!("{other:?}"),
    };
    bench.sent(N3).iter().map(target).collect()
}

/// Of those that come meanwhile, as many as of anybody's wait, and overtake none.
#[test]
fn what_was_kept_leaves_in_order_once_the_gnb_has_told_its_address() {
    for (gnb, silence_s) in [(OTHER_GNB, 0), (GNB, 121)] {
        let mut bench = bench(100);
        bench.now_ns += silence_s * 1_000_000_000;
        bring(&mut bench, 1..=100);
        bench.put(ASLEEP, 2, awake_at(gnb));
        bench.settle();
        assert_eq!(asked(&mut bench), [gnb], "once");
        assert_eq!(bench.worker.books().held, 100);
        bring(&mut bench, 101..=103);
        assert_eq!(asked(&mut bench), [Ipv4Addr::UNSPECIFIED; 0]);
        assert_eq!(drops(&bench, DropReason::NeighbourUnresolved), 1, "two wait for a neighbour");
        bench.receive(N3, &arp(2, gnb));
        bring(&mut bench, 104..=105);
        assert_eq!(ports(&bench.sent(N3)), (1..=102).chain([104, 105]).collect::<Vec<u16>>());
        assert!(bench.worker.books().balanced());
    }
}

/// Those that wait have the places in which they were kept.
#[test]
fn what_was_kept_does_not_wait_for_ever_for_a_gnb_that_is_silent() {
    let mut bench = bench(100);
    bring(&mut bench, 1..=100);
    bench.put(ASLEEP, 2, awake_at(OTHER_GNB));
    bench.settle();
    bench.put(ASLEEP, 3, asleep());
    bring(&mut bench, 101..=101);
    assert_eq!((bench.worker.books().held, drops(&bench, DropReason::BufferFull)), (100, 1));
    bench.now_ns += 3_100_000_000;
    bench.settle();
    assert_eq!((bench.worker.books().held, drops(&bench, DropReason::NeighbourUnresolved)), (0, 100));
    bring(&mut bench, 1..=100);
    assert_eq!((bench.worker.books().held, drops(&bench, DropReason::BufferFull)), (100, 1));
    assert!(bench.worker.books().balanced());
}

/// More than a port takes at once, or than are freed at once.
#[test]
fn many_packets_that_were_kept_leave_or_are_given_up_without_more_memory() {
    const MANY: u16 = 3_000;
    let mut bench = bench(MANY);
    let room = bench.worker.room();
    for (revision, answers) in [(2, true), (4, false)] {
        bring(&mut bench, 1..=MANY);
        let gnb = if answers { OTHER_GNB } else { Ipv4Addr::new(10, 30, 0, 78) };
        bench.put(ASLEEP, revision, awake_at(gnb));
        bench.settle();
        assert_eq!((asked(&mut bench), bench.worker.books().held), (vec![gnb], MANY.into()));
        if answers {
            bench.receive(N3, &arp(2, gnb));
            bench.settle();
            assert_eq!(ports(&bench.sent(N3)), (1..=MANY).collect::<Vec<u16>>());
        }
        bench.now_ns += 3_100_000_000;
        bench.put(ASLEEP, revision + 1, asleep());
        bench.settle();
        assert_eq!(bench.worker.books().held, 0);
    }
    assert_eq!(drops(&bench, DropReason::NeighbourUnresolved), u64::from(MANY));
    assert_eq!(bench.worker.room(), room, "a worker allocates nothing");
    assert!(bench.worker.books().balanced());
}

/// What uses no buffer of a user has no part in it.
#[test]
fn whoever_does_not_sleep_has_no_more_places_than_before() {
    let mut bench = bench(100);
    bench.put(2, 1, crate::fixture::rules(2));
    bench.now_ns += 121_000_000_000;
    bench.settle();
    (0..5).for_each(|_| bench.receive(N6, &rates::downlink(2, 80)));
    bench.settle();
    assert_eq!((bench.worker.books().held, drops(&bench, DropReason::NeighbourUnresolved)), (2, 3));
}

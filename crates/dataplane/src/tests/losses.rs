//! Usage is of what leaves: what is lost behind the URRs is taken back.

use super::drops;
use crate::counters::DropReason;
use crate::fixture::{Bench, METERED, N3, N6, rules};
use dplink::{Command, Notice, UsageCause, UsageCounts};
use proptest::prelude::*;
use rules::{Rules, Seid, Urr, UrrId, Volume};

/// Bytes of the user's packets, and of what stands before them on N3.
const LENGTH: usize = 100;
const OUTER: usize = 14 + 36;

fn counted(urr: Urr) -> Rules {
    let mut rules = rules(METERED);
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![urr.id].into());
    rules.urrs = vec![urr];
    rules
}

fn plain() -> Urr {
    Urr { id: UrrId(1), ..Urr::default() }
}

/// The same, to a gNB that nobody has heard of.
fn to_stranger(urr: Urr, number: u8) -> Rules {
    to_peer(urr, [10, 30, 0, 20 + number])
}

fn to_peer(urr: Urr, peer: [u8; 4]) -> Rules {
    let mut rules = counted(urr);
    let to = rules.fars[1].forwarding.as_mut().unwrap().outer_header_creation.as_mut().unwrap();
    to.address = peer.into();
    rules
}

fn packet() -> Vec<u8> {
    let user = [10, 60, 0, METERED as u8];
    let ip = packet::ipv4::Header::new([203, 0, 113, 80].into(), user.into(), 17, LENGTH - 20);
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.resize(14 + LENGTH, 0);
    ip.unwrap().write(&mut frame[14..]).unwrap();
    packet::udp::Header::new(53, 4000, LENGTH - 28).unwrap().write(&mut frame[34..]).unwrap();
    frame
}

/// The stranger's answer.
fn answer(number: u8) -> Vec<u8> {
    let (ours, theirs) = ([2, 0, 0, 0, 3, 2], [2, 0, 0, 9, 3, number]);
    let arp = [0, 1, 8, 0, 6, 4, 0, 2];
    [&ours[..], &theirs, &[8, 6], &arp, &theirs, &[10, 30, 0, 20 + number], &ours, &[10, 30, 0, 2]].concat()
}

/// A bench with the session under these rules.
fn bench(rules: Rules) -> Bench {
    let mut bench = Bench::new();
    bench.put(METERED, 1, rules);
    assert_eq!(bench.settle().len(), 1);
    bench
}

/// Gives so many packets at once.
fn give(bench: &mut Bench, packets: usize) -> Vec<Notice> {
    (0..packets).for_each(|_| bench.receive(N6, &packet()));
    bench.now_ns += 1_000;
    bench.settle()
}

/// User's packets that left.
fn left(bench: &mut Bench) -> usize {
    let frames = bench.sent(N3);
    let users = frames.iter().filter(|frame| frame[12..14] == [8, 0]);
    users.inspect(|frame| assert_eq!(frame.len(), OUTER + LENGTH)).count()
}

fn query(bench: &mut Bench) -> UsageCounts {
    let command = Command::QueryUsage { session: Seid(METERED), urrs: vec![], token: 7, is_reported: true };
    bench.engine.handle(command).unwrap();
    let asked = |notice: &Notice| match notice {
        Notice::Usage { cause: UsageCause::Query(7), counts, .. } => Some(counts[0]),
        _ => None,
    };
    bench.settle().iter().find_map(asked).unwrap()
}

/// Packets and bytes.
fn usage(bench: &mut Bench) -> (u64, u64) {
    let counts = query(bench);
    assert_eq!((counts.uplink_packets, counts.uplink_bytes), (0, 0));
    (counts.downlink_packets, counts.downlink_bytes)
}

#[test]
fn what_a_full_port_drops_is_not_counted() {
    let mut bench = bench(counted(plain()));
    // The first turn the long way, the second the short one.
    for turn in 1..=2 {
        bench.wires[N3].0.borrow_mut().room = Some(2);
        give(&mut bench, 5);
        assert_eq!(left(&mut bench), 2);
        assert_eq!(usage(&mut bench), (2 * turn, 200 * turn));
    }
    assert_eq!(drops(&bench, DropReason::PortFull), 6);
}

#[test]
fn what_has_no_way_is_not_counted() {
    let mut bench = bench(to_peer(plain(), [192, 0, 2, 1]));
    for _ in 0..2 {
        give(&mut bench, 3);
    }
    assert_eq!((usage(&mut bench), drops(&bench, DropReason::NoRoute)), ((0, 0), 6));
}

#[test]
fn what_waits_for_its_next_hop_is_counted_when_it_leaves() {
    let mut bench = bench(to_stranger(plain(), 1));
    // Two wait, as many as may.
    give(&mut bench, 3);
    assert_eq!((usage(&mut bench), bench.worker.books().held), ((0, 0), 2));
    bench.receive(N3, &answer(1));
    bench.settle();
    assert_eq!((left(&mut bench), usage(&mut bench)), (2, (2, 200)));
    // Nobody answers for another.
    bench.put(METERED, 2, to_stranger(plain(), 2));
    give(&mut bench, 3);
    bench.now_ns += 4_000_000_000;
    bench.settle();
    assert_eq!((left(&mut bench), usage(&mut bench)), (0, (2, 200)));
    assert_eq!((bench.worker.books().held, drops(&bench, DropReason::NeighbourUnresolved)), (0, 4));
}

/// A session may go before its packets do: they are counted by its last report.
#[test]
fn what_waits_when_its_session_goes_is_counted_then() {
    let mut bench = bench(to_stranger(plain(), 1));
    give(&mut bench, 2);
    bench.engine.handle(Command::Delete { session: Seid(METERED) }).unwrap();
    let notices = bench.settle();
    let [Notice::Removed { usage, .. }] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((usage[0].downlink_packets, usage[0].downlink_bytes), (2, 200));
    bench.receive(N3, &answer(1));
    bench.settle();
    assert_eq!(left(&mut bench), 2);
}

/// What arrives is what such a URR measures (TS 29.244 8.2.68, MBQE).
#[test]
fn a_urr_before_qos_enforcement_counts_what_is_lost_too() {
    let mut bench = bench(counted(Urr { before_qos: true, ..plain() }));
    bench.wires[N3].0.borrow_mut().room = Some(2);
    give(&mut bench, 5);
    assert_eq!((left(&mut bench), usage(&mut bench)), (2, (5, 500)));
}

/// Packets of one vector beyond the quota do not pass, and what was lost of it is still to be had.
#[test]
fn a_quota_ends_within_a_vector_and_is_of_what_leaves() {
    let quota = Volume { total: Some(1_000), ..Volume::default() };
    let mut bench = bench(counted(Urr { volume_quota: Some(quota), quota_grant: 1, ..plain() }));
    let ends = |notices: &[Notice]| {
        let is_end =
            |notice: &&Notice| matches!(notice, Notice::Usage { cause: UsageCause::VolumeQuota, .. });
        notices.iter().filter(is_end).count()
    };
    assert_eq!(ends(&give(&mut bench, 3)), 0);
    bench.wires[N3].0.borrow_mut().room = Some(4);
    assert_eq!((ends(&give(&mut bench, 64)), left(&mut bench)), (1, 3 + 4));
    assert_eq!(drops(&bench, DropReason::QuotaExhausted), 64 - 7);
    bench.wires[N3].0.borrow_mut().room = None;
    give(&mut bench, 64);
    assert_eq!((left(&mut bench), usage(&mut bench)), (3, (10, 1_000)));
    assert_eq!(drops(&bench, DropReason::QuotaExhausted), 64 - 7 + 64 - 3);
}

/// A threshold is told of in the vector in which it is crossed, and of less than a vector beyond it.
#[test]
fn a_threshold_is_told_with_less_than_a_vector_beyond_it() {
    let threshold = Volume { total: Some(1_050), ..Volume::default() };
    let mut bench = bench(counted(Urr { volume_threshold: Some(threshold), ..plain() }));
    let told = |notice: &Notice| match notice {
        Notice::Usage { cause: UsageCause::VolumeThreshold, counts, .. } => Some(counts[0].downlink_bytes),
        _ => None,
    };
    assert_eq!(give(&mut bench, 3).iter().find_map(told), None);
    assert_eq!(give(&mut bench, 200).iter().filter_map(told).collect::<Vec<_>>(), [1_100]);
}

#[derive(Clone, Debug)]
enum Event {
    /// So many packets, and the port takes so many of them.
    Packets(usize, usize),
    /// So many packets for a gNB that is found, or not.
    Stranger(usize, bool),
    Query,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (1usize..20, 0usize..20).prop_map(|(packets, room)| Event::Packets(packets, room)),
        1 => (1usize..5, any::<bool>()).prop_map(|(packets, found)| Event::Stranger(packets, found)),
        1 => Just(Event::Query),
    ];
    proptest::collection::vec(event, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is lost, and whenever it is told of: at last exactly what left has been counted, and no notice took
    /// anything back that one before it had told.
    #[test]
    fn usage_is_what_leaves(events in events(), threshold in 1u64..2_000) {
        let threshold = Volume { total: Some(threshold), ..Volume::default() };
        let urr = Urr { volume_threshold: Some(threshold), ..plain() };
        let mut bench = bench(counted(urr.clone()));
        let (mut all, mut told, mut revision, mut strangers) = (0, 0, 1, 0);
        for event in events {
            let mut notices = Vec::new();
            match event {
                Event::Packets(packets, room) => {
                    bench.wires[N3].0.borrow_mut().room = Some(room);
                    notices = give(&mut bench, packets);
                    bench.wires[N3].0.borrow_mut().room = None;
                }
                Event::Stranger(packets, is_found) => {
                    strangers += 1;
                    revision += 2;
                    bench.put(METERED, revision - 1, to_stranger(urr.clone(), strangers));
                    notices.extend(give(&mut bench, packets));
                    if is_found {
                        bench.receive(N3, &answer(strangers));
                    }
                    notices.extend(bench.settle());
                    bench.now_ns += 4_000_000_000;
                    notices.extend(bench.settle());
                    bench.put(METERED, revision, counted(urr.clone()));
                    notices.extend(bench.settle());
                    bench.meet_neighbours();
                }
                Event::Query => {
                    let (packets, bytes) = usage(&mut bench);
                    all += left(&mut bench);
                    prop_assert_eq!((packets, bytes), (all as u64, (all * LENGTH) as u64));
                    told = bytes;
                }
            }
            all += left(&mut bench);
            for notice in &notices {
                if let Notice::Usage { counts, .. } = notice {
                    let bytes = counts[0].downlink_bytes;
                    prop_assert!(bytes >= told && bytes <= (all * LENGTH) as u64, "{} after {}", bytes, told);
                    told = bytes;
                }
            }
            prop_assert!(bench.worker.books().balanced());
        }
        let (packets, bytes) = usage(&mut bench);
        prop_assert_eq!((packets, bytes), (all as u64, (all * LENGTH) as u64));
    }
}

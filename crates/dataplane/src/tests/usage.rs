//! Usage: counted to the byte, told when it is due, carried through changes.

use super::applied;
use crate::config::{Config, Limits};
use crate::counters::DropReason;
use crate::fixture::{Bench, METERED, N3, N6, config, metered, rules};
use dplink::{Command, Desired, Notice, Start, UsageCause, UsageCounts};
use proptest::prelude::*;
use rules::{ApplyAction, DroppedDownlink, PdrId, Rules, Seid, Since, Triggers, Urr, UrrId, Volume};

/// Bytes of the user's packets in these tests, less the payload.
const HEADERS: u64 = 28;

/// A frame to the user of [`METERED`], with so many bytes in a UDP datagram.
pub(super) fn downlink(payload: usize) -> Vec<u8> {
    let ip = packet::ipv4::Header::new(
        [203, 0, 113, 80].into(),
        [10, 60, 0, METERED as u8].into(),
        17,
        8 + payload,
    );
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.resize(14 + 28 + payload, 0);
    ip.unwrap().write(&mut frame[14..]).unwrap();
    packet::udp::Header::new(53, 4000, payload).unwrap().write(&mut frame[34..]).unwrap();
    frame
}

pub(super) fn with_urr(urr: Urr) -> Rules {
    let mut rules = rules(METERED);
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![urr.id].into());
    rules.urrs = vec![urr];
    rules
}

fn threshold(id: u32, total: u64) -> Urr {
    let volume = Volume { total: Some(total), ..Volume::default() };
    Urr { id: UrrId(id), volume_threshold: Some(volume), ..Urr::default() }
}

pub(super) fn told(notices: &[Notice]) -> Vec<(UsageCause, u64)> {
    let of = |notice: &Notice| match notice {
        Notice::Usage { cause, counts, .. } => {
            counts.first().map(|counts| (*cause, counts.uplink_bytes + counts.downlink_bytes))
        }
        _ => None,
    };
    notices.iter().filter_map(of).collect()
}

pub(super) fn query(bench: &mut Bench) -> UsageCounts {
    let command = Command::QueryUsage { session: Seid(METERED), urrs: vec![], token: 7, is_reported: true };
    bench.engine.handle(command).unwrap();
    match &bench.settle()[..] {
        [Notice::Usage { cause: UsageCause::Query(7), counts, .. }] => counts[0],
        other => panic!("{other:?}"),
    }
}

/// In one vector, a packet that there may be no quota for is looked at later than others: what comes behind it must not be
/// counted before it, or it would have what the other one is due.
#[test]
fn a_quota_is_used_up_in_the_order_of_packets_whatever_vector_they_come_in() {
    let quota = Volume { total: Some(1_000), ..Volume::default() };
    let urr = Urr { id: UrrId(1), volume_quota: Some(quota), ..Urr::default() };
    let drops = |vector: usize| {
        let mut bench = Bench::new();
        bench.put(METERED, 1, with_urr(urr.clone()));
        bench.settle();
        bench.receive(N6, &downlink(800));
        bench.settle();
        for (number, payload) in [400, 10, 10, 10].into_iter().enumerate() {
            bench.receive(N6, &downlink(payload));
            if (number + 1) % vector == 0 {
                bench.settle();
            }
        }
        (bench.sent(N3).iter().map(Vec::len).collect::<Vec<_>>(), bench.worker.counters().named_drops())
    };
    assert_eq!(drops(4), drops(1));
    assert_eq!(drops(1).1, [(DropReason::QuotaExhausted.name().to_owned(), 3)]);
}

/// The first packet is that since counts were told last, whoever asked for them; the last is the last there was.
#[test]
fn counts_tell_of_the_first_packet_since_they_were_told() {
    let mut bench = Bench::new();
    bench.put(METERED, 1, with_urr(threshold(1, 500)));
    bench.settle();
    let ages = |counts: UsageCounts| (counts.first_packet_age_ms, counts.last_packet_age_ms);
    assert_eq!(ages(query(&mut bench)), (None, None));
    let told: Vec<_> = (0..3)
        .map(|_| {
            for _ in 0..3 {
                bench.receive(N6, &downlink(72));
                bench.settle();
                bench.now_ns += 10 << 20;
            }
            ages(query(&mut bench))
        })
        .collect();
    assert_eq!(told, [(Some(31), Some(10)); 3]);
    bench.now_ns += 10 << 20;
    assert_eq!(ages(query(&mut bench)), (None, Some(20)));
    // A notice tells, too: the fifth packet crosses the threshold.
    (0..7).for_each(|_| {
        bench.receive(N6, &downlink(72));
        bench.settle();
        bench.now_ns += 10 << 20;
    });
    assert_eq!(ages(query(&mut bench)), (Some(20), Some(10)));
}

#[test]
fn a_threshold_is_told_by_the_packet_that_crosses_it_again_and_again() {
    let mut bench = Bench::new();
    bench.put(METERED, 1, with_urr(threshold(1, 300)));
    bench.settle();
    let mut crossings = Vec::new();
    for _ in 0..10 {
        bench.now_ns += 50_000_000;
        bench.receive(N6, &downlink(72));
        crossings.extend(told(&bench.settle()));
    }
    let volume = UsageCause::VolumeThreshold;
    assert_eq!(crossings, [(volume, 300), (volume, 600), (volume, 900)]);
    assert_eq!(query(&mut bench).downlink_packets, 10);
}

/// What had been used before the session came here: the first report comes so much earlier, and those behind it in full.
#[test]
fn a_threshold_goes_on_where_another_life_stopped() {
    let mut bench = Bench::new();
    let since = Since { uplink: -250, downlink: 0 };
    bench.put(METERED, 1, with_urr(Urr { threshold_since: since, ..threshold(1, 300) }));
    bench.settle();
    let mut crossings = Vec::new();
    for _ in 0..7 {
        bench.now_ns += 200_000_000;
        bench.receive(N6, &downlink(72));
        crossings.extend(told(&bench.settle()));
    }
    let volume = UsageCause::VolumeThreshold;
    assert_eq!(crossings, [(volume, 100), (volume, 400), (volume, 700)]);
}

/// A threshold of one byte is crossed by every packet; it is told some ten times a second, and at last of everything.
#[test]
fn a_tiny_threshold_is_told_so_often_and_not_more() {
    let mut bench = Bench::new();
    bench.put(METERED, 1, with_urr(threshold(1, 1)));
    bench.settle();
    let mut crossings = Vec::new();
    for _ in 0..1_000 {
        bench.now_ns += 1_000_000;
        bench.receive(N6, &downlink(72));
        bench.worker.turn(bench.now_ns);
        crossings.extend(told(&bench.engine.poll(0)));
    }
    assert!((10..=12).contains(&crossings.len()), "{crossings:?}");
    // Nobody has to send anything for the rest to be told.
    bench.now_ns += 100_000_000;
    crossings.extend(told(&bench.settle()));
    assert_eq!(crossings.last(), Some(&(UsageCause::VolumeThreshold, 100_000)));
    assert!(crossings.iter().map(|(_, bytes)| bytes).is_sorted());
}

/// It stood in the last of four cells of five, and the session goes on in the fifth.
#[test]
fn what_waits_of_an_account_that_goes_is_not_told() {
    let limits = Limits { sessions: 1, pdrs: 10, ..config().limits };
    let mut bench = Bench::over(&Config { limits, ..config() });
    let mut four = with_urr(threshold(1, u64::MAX));
    four.urrs =
        [(1, u64::MAX), (2, u64::MAX), (3, u64::MAX), (4, 1)].map(|(id, at)| threshold(id, at)).into();
    four.pdrs.iter_mut().for_each(|pdr| pdr.urrs = (1..=4).map(UrrId).collect());
    bench.put(METERED, 1, four);
    let notices = bench.settle();
    assert!(matches!(&notices[..], [Notice::Applied { .. }]), "{notices:?}");
    for crossings in [1, 0] {
        bench.receive(N6, &downlink(72));
        assert_eq!(told(&bench.settle()).len(), crossings, "the second has to wait");
    }
    bench.put(METERED, 2, with_urr(threshold(1, u64::MAX)));
    bench.settle();
    bench.now_ns += 1_000_000_000;
    assert_eq!(told(&bench.settle()), []);
    assert_eq!(query(&mut bench).downlink_packets, 2);
}

/// Who hears of less after more would take it for a count that began anew, and count twice.
#[test]
fn usage_is_told_in_the_order_in_which_it_was_counted() {
    let mut bench = Bench::new();
    let quota = Some(Volume { total: Some(250), ..Volume::default() });
    bench.put(METERED, 1, with_urr(Urr { volume_quota: quota, ..threshold(1, 150) }));
    bench.settle();
    // Of one vector, the second packet crosses the threshold and the third uses the quota up.
    (0..3).for_each(|_| bench.receive(N6, &downlink(72)));
    bench.worker.turn(bench.now_ns);
    // And the control plane asks before anything of it was told.
    let ask = Command::QueryUsage { session: Seid(METERED), urrs: vec![], token: 7, is_reported: true };
    bench.engine.handle(ask).unwrap();
    let expected =
        [(UsageCause::VolumeThreshold, 200), (UsageCause::VolumeQuota, 300), (UsageCause::Query(7), 300)];
    assert_eq!(told(&bench.settle()), expected);
}

/// More quotas end at once than there is room to tell of; packets that come later remind.
#[test]
fn the_end_of_a_quota_is_told_though_there_was_no_room() {
    let mut bench = Bench::new();
    bench.put(METERED, 1, metered());
    bench.settle();
    for _ in 0..5 {
        // Nobody hears what is told: first the ring fills, then what is to go there.
        bench.worker.crowd_usage(256);
        bench.worker.turn(bench.now_ns);
    }
    for _ in 0..3 {
        bench.receive(N6, &downlink(72));
        bench.worker.turn(bench.now_ns);
    }
    bench.settle();
    bench.receive(N6, &downlink(72));
    assert_eq!(told(&bench.settle()), [(UsageCause::VolumeQuota, 100)]);
}

#[test]
fn a_query_is_a_report_and_thresholds_begin_anew() {
    let mut bench = Bench::new();
    bench.put(METERED, 1, with_urr(threshold(1, 300)));
    bench.settle();
    for _ in 0..2 {
        bench.receive(N6, &downlink(72));
    }
    assert_eq!(told(&bench.settle()), []);
    assert_eq!(query(&mut bench).downlink_bytes, 200);
    for _ in 0..2 {
        bench.receive(N6, &downlink(72));
    }
    assert_eq!(told(&bench.settle()), []);
    bench.receive(N6, &downlink(72));
    assert_eq!(told(&bench.settle()), [(UsageCause::VolumeThreshold, 500)]);
}

#[test]
fn the_last_counts_of_what_goes_are_told() {
    let mut bench = Bench::new();
    bench.put(METERED, 1, with_urr(threshold(1, 1 << 40)));
    bench.settle();
    bench.receive(N6, &downlink(100));
    bench.settle();
    bench.put(METERED, 2, with_urr(threshold(2, 1 << 40)));
    let notices = bench.settle();
    let [Notice::Applied { removed, revision: 2, .. }] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((removed[0].urr, removed[0].downlink_bytes), (UrrId(1), HEADERS + 100));
    bench.receive(N6, &downlink(50));
    bench.settle();
    bench.engine.handle(Command::Delete { session: Seid(METERED) }).unwrap();
    let notices = bench.settle();
    let [Notice::Removed { usage, .. }] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!(
        (usage[0].urr, usage[0].downlink_bytes, usage[0].downlink_packets),
        (UrrId(2), HEADERS + 50, 1)
    );
}

proptest! {
    /// Whatever changes, the counts are what was forwarded.
    #[test]
    fn what_is_counted_is_what_was_sent(steps in proptest::collection::vec((0u8..4, 0usize..900), 1..60)) {
        let mut bench = Bench::new();
        let mut revision = 1;
        bench.put(METERED, revision, with_urr(threshold(1, 500)));
        bench.settle();
        let mut sent = (0, 0);
        for (what, number) in steps {
            match what {
                0 => {
                    revision += 1;
                    bench.put(METERED, revision, with_urr(threshold(1, 400 + number as u64)));
                    prop_assert_eq!(bench.settle(), [applied(METERED, revision)]);
                }
                1 => prop_assert_eq!(query(&mut bench).downlink_bytes, sent.1),
                _ => {
                    bench.receive(N6, &downlink(number));
                    bench.settle();
                }
            }
            // In the tunnel: Ethernet, IPv4, UDP, and a GTP-U header without a container.
            for frame in bench.sent(N3) {
                sent = (sent.0 + 1, sent.1 + frame.len() as u64 - 14 - 20 - 8 - 8);
            }
        }
        let counts = query(&mut bench);
        prop_assert_eq!((counts.downlink_packets, counts.downlink_bytes), sent);
    }
}

/// The user sleeps, and what comes for it is dropped: told after so many, again and again (TS 23.401 5.3.6A).
#[test]
fn dropped_downlink_traffic_is_told_after_so_much() {
    let mut bench = Bench::new();
    let limit = DroppedDownlink { packets: Some(3), bytes: None };
    let mut rules = with_urr(Urr { id: UrrId(1), dropped_downlink: Some(limit), ..Urr::default() });
    rules.fars[1].apply_action = ApplyAction::Drop;
    bench.put(METERED, 1, rules.clone());
    bench.settle();
    let dropped = |notices: &[Notice]| match notices {
        [Notice::Usage { cause: UsageCause::DroppedDownlink, counts, .. }] => {
            Some((counts[0].dropped_downlink_packets, counts[0].dropped_downlink_bytes))
        }
        _ => None,
    };
    let mut seen = Vec::new();
    for _ in 0..7 {
        bench.now_ns += 100_000_000;
        bench.receive(N6, &downlink(72));
        seen.extend(dropped(&bench.settle()));
    }
    assert_eq!(seen, [(3, 300), (6, 600)]);
    // One more is kept, for which there is room for two; two are not.
    rules.fars[1].apply_action = ApplyAction::Buffer;
    bench.put(METERED, 2, rules);
    bench.settle();
    for _ in 0..4 {
        bench.now_ns += 100_000_000;
        bench.receive(N6, &downlink(72));
        seen.extend(dropped(&bench.settle()));
    }
    assert_eq!(seen.last(), Some(&(9, 900)));
    let counts = query(&mut bench);
    assert_eq!((counts.downlink_packets, counts.dropped_downlink_packets), (0, 9));
    // Those that are kept for too long are dropped in the end.
    bench.now_ns += 61_000_000_000;
    bench.settle();
    assert_eq!(query(&mut bench).dropped_downlink_packets, 11);
}

/// TS 29.244 8.2.49: what the control plane has us drop (DROBU) is dropped downlink traffic as well.
#[test]
fn kept_packets_that_nobody_wants_count_as_dropped() {
    let mut bench = Bench::new();
    let limit = DroppedDownlink { packets: Some(2), bytes: None };
    let mut rules = with_urr(Urr { id: UrrId(1), dropped_downlink: Some(limit), ..Urr::default() });
    rules.fars[1].apply_action = ApplyAction::Buffer;
    bench.put(METERED, 1, rules.clone());
    bench.settle();
    (0..2).for_each(|_| bench.receive(N6, &downlink(72)));
    assert_eq!(bench.settle(), []);
    let desired = Desired { drop_buffered: true, ..Desired::new(Seid(METERED), 2, rules) };
    bench.engine.handle(Command::Put(desired)).unwrap();
    let is_told = |notice: &Notice| match notice {
        Notice::Usage { cause: UsageCause::DroppedDownlink, counts, .. } => {
            counts[0].dropped_downlink_packets == 2
        }
        _ => false,
    };
    assert!(bench.settle().iter().any(is_told));
    assert!(bench.worker.books().balanced());
}

/// The control engine found that traffic had stopped, and waits for its next start.
#[test]
fn a_start_is_told_whenever_it_is_waited_for() {
    let mut bench = Bench::new();
    let mut urr = Urr { id: UrrId(1), triggers: Triggers::START_OF_TRAFFIC, ..Urr::default() };
    let mut starts = Vec::new();
    for revision in 1..5 {
        // The third changes something else.
        urr.starts_awaited += u32::from(revision != 3);
        urr.before_qos = revision == 3;
        bench.put(METERED, revision, with_urr(urr.clone()));
        bench.settle();
        for _ in 0..2 {
            bench.receive(N6, &downlink(72));
            starts.extend(told(&bench.settle()));
        }
    }
    let start = UsageCause::StartOfTraffic(Some(Start {
        pdr: Some(PdrId(2)),
        ue: [10, 60, 0, METERED as u8].into(),
        remote: [203, 0, 113, 80].into(),
        protocol: 17,
        ue_port: Some(4000),
        remote_port: Some(53),
    }));
    assert_eq!(starts, [(start, 100), (start, 300), (start, 700)]);
}

/// The control plane engine may die with what it was told: the next packet begins it anew, and what it knows it ignores.
#[test]
fn a_resynchronisation_tells_again_of_starts() {
    let mut bench = Bench::new();
    let urr = Urr { id: UrrId(1), triggers: Triggers::START_OF_TRAFFIC, ..Urr::default() };
    bench.put(METERED, 1, with_urr(urr.clone()));
    bench.settle();
    let starts = |bench: &mut Bench| {
        bench.receive(N6, &downlink(72));
        told(&bench.settle()).len()
    };
    assert_eq!([starts(&mut bench), starts(&mut bench)], [1, 0]);
    bench.engine.handle(Command::ResyncBegin { recovery_time_stamp: 7 }).unwrap();
    bench.engine.handle(Command::Put(Desired::new(Seid(METERED), 1, with_urr(urr)))).unwrap();
    bench.engine.handle(Command::ResyncEnd).unwrap();
    bench.settle();
    assert_eq!([starts(&mut bench), starts(&mut bench)], [1, 0]);
}

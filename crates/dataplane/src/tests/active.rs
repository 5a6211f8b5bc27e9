//! How long there was traffic, where time without packets does not count (TS 29.244 5.2.2.2).

use super::usage::{downlink, query, with_urr};
use crate::fixture::{Bench, METERED, N6};
use dplink::{Command, Desired, Notice, UsageCounts};
use rules::{Methods, Rules, Seid, Urr, UrrId, Volume};

const S: u64 = 1_000_000_000;
/// 2 s for each of six packets.
const COUNTED_MS: u64 = 12_000;

fn urr() -> Urr {
    let methods = Methods { duration: true, ..Methods::default() };
    Urr { id: UrrId(1), methods, inactivity_detection_time_s: Some(2), ..Urr::default() }
}

fn metered(urr: Urr) -> Bench {
    let mut bench = Bench::new();
    bench.put(METERED, 1, with_urr(urr));
    bench.settle();
    bench
}

fn packet(bench: &mut Bench) {
    bench.receive(N6, &downlink(72));
    bench.settle();
}

fn put(bench: &mut Bench, revision: u64, rules: Rules) {
    bench.engine.handle(Command::Put(Desired::new(Seid(METERED), revision, rules))).unwrap();
    bench.settle();
}

fn deleted(bench: &mut Bench) -> UsageCounts {
    bench.engine.handle(Command::Delete { session: Seid(METERED) }).unwrap();
    match &bench.settle()[..] {
        [Notice::Removed { usage, .. }] => usage[0],
        other => panic!("{other:?}"),
    }
}

/// Packets after 0.2, 4, 8, 12, 16 and 20 s of 24, where `asks` says whether somebody asks each so many tenths of a second.
fn active_ms(bench: &mut Bench, asks: Option<u64>, is_turned: bool) -> u64 {
    let began = bench.now_ns;
    for tenth in 1..=240 {
        bench.now_ns = began + tenth * S / 10;
        if [2, 40, 80, 120, 160, 200].contains(&tenth) {
            packet(bench);
        } else if is_turned {
            bench.settle();
        }
        if asks.is_some_and(|asks| tenth % asks == 0) {
            query(bench);
        }
    }
    deleted(bench).active_ms.unwrap()
}

#[test]
fn gaps_do_not_count_whoever_asks_and_whatever_is_told() {
    let volume = Volume { total: Some(150), ..Volume::default() };
    let told = Urr { volume_threshold: Some(volume), ..urr() };
    for urr in [urr(), told] {
        for asks in [None, Some(1), Some(7), Some(19), Some(100)] {
            for is_turned in [true, false] {
                let counted = active_ms(&mut metered(urr.clone()), asks, is_turned);
                assert!(counted.abs_diff(COUNTED_MS) <= 20, "{counted} ms, {asks:?}, {is_turned}");
            }
        }
    }
}

#[test]
fn what_has_no_detection_time_measures_none() {
    let mut bench = metered(Urr { inactivity_detection_time_s: None, ..urr() });
    packet(&mut bench);
    assert_eq!(query(&mut bench).active_ms, None);
}

/// Other rules go on where those before them stood, each with its own time; where nothing may pass, time stands still.
#[test]
fn time_goes_on_with_other_rules() {
    let mut bench = metered(urr());
    let longer = Urr { inactivity_detection_time_s: Some(5), ..urr() };
    let nothing = Volume { total: Some(0), ..Volume::default() };
    let held = Urr { volume_quota: Some(nothing), quota_grant: 1, ..longer.clone() };
    let mut told = Vec::new();
    for (revision, urr) in [(2, urr()), (3, longer), (4, held), (5, urr())] {
        packet(&mut bench);
        bench.now_ns += S;
        put(&mut bench, revision, with_urr(urr));
        bench.now_ns += 9 * S;
        told.push(query(&mut bench).active_ms.unwrap().div_ceil(10) / 100);
    }
    // Of the fourth packet nothing is counted: it does not pass.
    assert_eq!(told, [2, 2 + 5, 7 + 1, 8]);
}

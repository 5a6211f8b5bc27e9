//! Users that take more than their share of a worker that has more to do than it can.

use super::rates::uplink;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, rules};
use crate::worker::BURST;
use dplink::{Command, Notice};
use packet::HeapBuffer;
use std::net::IpAddr;

/// The user that sends and gets more than all others, who are so many.
const HEAVY: u8 = 101;
const OTHERS: u8 = 12;

/// A frame to a user, over IPv4.
fn downlink(user: u8) -> Vec<u8> {
    super::usage::downlink(8)
        .into_iter()
        .enumerate()
        .map(|(at, octet)| if at == 33 { user } else { octet })
        .collect()
}

/// As many frames as come in a turn, the heavy user's `part` of sixteen; all of IPv4, whose sum has to be right again.
fn burst(part: usize, frame: impl Fn(u8) -> Vec<u8>) -> Vec<Vec<u8>> {
    let user =
        |at: usize| if at % 16 < part { HEAVY } else { HEAVY + 1 + (at / 16 * 16 + at % 16) as u8 % OTHERS };
    (0..BURST).map(|at| frame(user(at))).collect()
}

fn with_sum(mut frame: Vec<u8>) -> Vec<u8> {
    frame[24..26].fill(0);
    let sum = packet::checksum::of(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn bench() -> Bench {
    let mut bench = Bench::new();
    for user in HEAVY..=HEAVY + OTHERS {
        bench.put(user.into(), 1, rules(user.into()));
    }
    bench.settle();
    bench
}

/// So many turns of it; how many were dropped for the user's share, and of whom packets left.
fn run(bench: &mut Bench, (port, frames): (usize, &[Vec<u8>]), turns: usize) -> u64 {
    let before = bench.worker.counters().drops[DropReason::UserShare as usize];
    for _ in 0..turns {
        let mut wire = bench.wires[port].0.borrow_mut();
        wire.to_worker.extend(frames.iter().map(|frame| HeapBuffer::new(frame)));
        drop(wire);
        bench.worker.turn(bench.now_ns);
    }
    bench.worker.counters().drops[DropReason::UserShare as usize] - before
}

/// Who is said to have given way.
fn named(bench: &mut Bench) -> Vec<(IpAddr, u64)> {
    bench.engine.handle(Command::GetStatistics).unwrap();
    let told = bench.settle();
    let [Notice::Statistics(statistics)] = &told[..] else { panic!("{told:?}") };
    statistics.workers[0].gave_way.clone()
}

/// Of the heavy user's, and of all others'.
fn left(bench: &mut Bench, port: usize, user: impl Fn(&[u8]) -> u8) -> [usize; 2] {
    let sent = bench.sent(port);
    let heavy = sent.iter().filter(|frame| user(frame) == HEAVY).count();
    [heavy, sent.len() - heavy]
}

#[test]
fn while_turns_are_full_who_has_most_gives_way_and_others_lose_nothing() {
    let to_user = |frame: &[u8]| frame[frame.len() - 8 - 8 - 1];
    let from_user = |frame: &[u8]| frame[14 + 15];
    let down = burst(10, |user| with_sum(downlink(user)));
    let up = burst(10, |user| uplink(user, 80));
    for (ports, frames, user) in
        [((N6, N3), down, &to_user as &dyn Fn(&[u8]) -> u8), ((N3, N6), up, &from_user)]
    {
        let mut bench = bench();
        let turns = 3_000;
        let dropped = run(&mut bench, (ports.0, &frames), turns) as usize;
        let [heavy, others] = left(&mut bench, ports.1, user);
        assert_eq!(others, BURST * 6 / 16 * turns);
        assert_eq!((heavy, dropped > 0), (BURST * 10 / 16 * turns - dropped, true));
        let share = heavy as f64 / (heavy + others) as f64;
        assert!((0.125..0.4).contains(&share), "{share}");
        let port = bench.worker.counters().ports[ports.0];
        let bytes: usize = frames.iter().map(Vec::len).sum();
        assert_eq!((port.received, port.received_bytes), ((BURST * turns) as u64, (bytes * turns) as u64));
        assert!(bench.worker.books().balanced());
        assert_eq!(named(&mut bench), [(format!("10.60.0.{HEAVY}").parse().unwrap(), dropped as u64)]);
        // One packet less than may come in a turn: there is room.
        assert_eq!(run(&mut bench, (ports.0, &frames[1..]), turns), 0);
    }
}

#[test]
fn a_user_alone_may_take_all_of_a_worker() {
    let mut bench = bench();
    let frames = burst(16, |user| with_sum(downlink(user)));
    assert_eq!(run(&mut bench, (N6, &frames), 3_000), 0);
    assert_eq!((bench.sent(N3).len(), named(&mut bench)), (BURST * 3_000, vec![]));
}

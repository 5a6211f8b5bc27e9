//! What is said beforehand of packets for users who sleep.

use super::{asleep, bar, downlink, drops};
use crate::counters::DropReason;
use crate::fixture::{ASLEEP, Bench, N6, rules};
use crate::tests::observe::{explain, question};
use crate::tests::to_user;
use dplink::Outcome;
use rules::{ApplyAction, Bar, BarId};

/// A node that keeps four packets, and two of a session at most; so many of others are kept already, and the user's BAR may suggest
/// less.
fn sleeping(others: u8, suggested: Option<u16>) -> Bench {
    let mut bench = Bench::new();
    for session in [1, 2] {
        let mut rules = rules(session);
        rules.fars[1].apply_action = ApplyAction::Buffer;
        bench.put(session, 2, rules);
    }
    let mut rules = asleep();
    rules.bars = vec![Bar { suggested_packets: suggested, ..bar() }];
    rules.fars[1].bar = Some(BarId(1));
    bench.put(ASLEEP, 1, rules);
    bench.settle();
    (0..others).for_each(|other| bench.receive(N6, &to_user(1 + other % 2)));
    bench.settle();
    assert_eq!(bench.worker.books().held, u64::from(others));
    bench
}

#[test]
fn an_explanation_says_that_there_is_no_room_for_a_packet() {
    for (others, suggested, room) in [(0, None, 2), (0, Some(1), 1), (0, Some(0), 0), (3, None, 1)] {
        let mut bench = sleeping(others, suggested);
        for port in 1..=3 {
            let said = explain(&mut bench, question([10, 60, 0, ASLEEP as u8], true)).outcome;
            let full = Outcome::Dropped { reason: DropReason::BufferFull.name().to_owned() };
            let expected = if port <= room { Outcome::Kept } else { full };
            assert_eq!(said, expected, "packet {port} of {room}, {others} of others");
            bench.receive(N6, &downlink(port));
            bench.settle();
            assert_eq!(drops(&bench, DropReason::BufferFull), u64::from(port.saturating_sub(room)));
        }
    }
}

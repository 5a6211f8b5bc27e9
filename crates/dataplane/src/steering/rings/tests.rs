//! Rings between workers.

use super::*;
use proptest::prelude::*;
use rules::Interface;
use std::thread;

fn side() -> Side {
    Side::of(Interface::Access)
}

fn packet<B>(buffer: B) -> Packet<B> {
    Packet { buffer, meta: Meta::new(0, side()) }
}

/// Sorts packets for a worker and hands them over.
fn give_unread<B>(giver: &mut Handoff<B>, to: usize, buffers: impl IntoIterator<Item = B>) -> u64 {
    giver.sorted()[to].extend(buffers.into_iter().map(|buffer| Unread { buffer, port: 0 }));
    giver.send_sorted(&mut Vec::new())
}

/// Where more is handed over than fits a vector, nobody's packets wait for another's for ever.
#[test]
fn every_giver_has_its_turn() {
    let mut ends = handoffs::<u32>(3);
    for (giver, end) in ends.iter_mut().enumerate().skip(1) {
        for number in 0..4 {
            end.put(0, packet(giver as u32 * 10 + number)).ok().unwrap();
        }
        assert_eq!(end.send(&mut Vec::new()), 4);
    }
    let mut take = |limit| {
        let mut taken = Vec::new();
        assert_eq!(ends[0].take_read(limit, |handed| taken.push(handed.buffer)), taken.len());
        taken
    };
    assert_eq!((take(3), take(3)), (vec![10, 11, 12], vec![20, 21, 22]));
    assert_eq!((take(9), take(9)), (vec![13, 23], vec![]));
}

#[test]
fn a_worker_hands_to_the_others_many_at_once_and_never_to_itself() {
    let mut ends = handoffs::<u32>(2);
    let (mut taker, mut giver) = (ends.pop().unwrap(), ends.pop().unwrap());
    let mut packets = (0..5).map(packet);
    assert!(!giver.put_all(0, packets.by_ref()) && !giver.put_all(2, packets.by_ref()) && !giver.waits());
    giver.put(1, packets.next().unwrap()).ok().unwrap();
    assert!(giver.put_all(1, packets) && giver.waits());
    assert_eq!(giver.send(&mut Vec::new()), 5);
    let mut taken = Vec::new();
    taker.take_read(VECTOR, |handed| taken.push(handed.buffer));
    assert_eq!(taken, [0, 1, 2, 3, 4]);
    // What is its own stays with it.
    assert_eq!((give_unread(&mut giver, 0, [5, 6]), giver.sorted()[0].len()), (0, 2));
    assert_eq!(give_unread(&mut giver, 1, [7]), 1);
    assert_eq!(taker.take_unread_of(0, VECTOR, |unread| taken.push(unread.buffer)), 1);
    assert_eq!(taken.last(), Some(&7));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 256 }))]

    /// Whether they were read or not, packets are taken in the order in which they were handed over, however many at a time.
    #[test]
    fn read_ones_and_unread_ones_keep_their_order(
        given in proptest::collection::vec((any::<bool>(), 1..50_usize), 1..60), limits in proptest::collection::vec(1..200_usize, 1..9),
    ) {
        let mut ends = handoffs::<usize>(2);
        let (mut taker, mut giver) = (ends.pop().unwrap(), ends.pop().unwrap());
        let (mut number, mut taken, mut limits) = (0, Vec::new(), limits.into_iter().cycle());
        for (is_read, count) in given {
            let numbers = number..number + count;
            let sent = match is_read {
                true => {
                    assert!(giver.put_all(1, numbers.map(packet)));
                    giver.send(&mut Vec::new())
                }
                false => give_unread(&mut giver, 1, numbers),
            };
            number += sent as usize;
            prop_assert_eq!(sent, count as u64);
            take(&mut taker, limits.next().unwrap_or(1), &mut taken);
        }
        while taker.is_waited_for() {
            let before = (taken.len(), taker.waiting(0));
            prop_assert_eq!(before.0 + before.1, number);
            take(&mut taker, limits.next().unwrap_or(1), &mut taken);
            prop_assert!(taken.len() > before.0, "whoever asks gets something");
        }
        prop_assert_eq!(taken, (0..number).collect::<Vec<_>>());
    }
}

/// As a worker does each turn.
fn take<B>(taker: &mut Handoff<B>, limit: usize, taken: &mut Vec<B>) {
    let read = taker.take_read(limit, |handed| taken.push(handed.packet(side(), |_| 0).buffer));
    taker.take_unread(limit - read, |unread| taken.push(unread.buffer));
}

/// What Miri is to look at: two threads, rings between them, everything given away and taken once, and in order.
#[test]
fn what_one_thread_gives_another_takes_in_order() {
    const PACKETS: u32 = if cfg!(miri) { 300 } else { 100_000 };
    let mut ends = handoffs::<Box<u32>>(2);
    let (mut taker, mut giver) = (ends.pop().unwrap(), ends.pop().unwrap());
    let giving = thread::spawn(move || {
        let mut given = 0;
        while given < PACKETS {
            given += give(&mut giver, given..PACKETS.min(given + VECTOR as u32));
        }
    });
    let mut taken: Vec<Box<u32>> = Vec::new();
    while taken.len() < PACKETS as usize {
        let before = taken.len();
        take(&mut taker, VECTOR, &mut taken);
        if taken.len() == before {
            thread::yield_now();
        }
    }
    giving.join().unwrap();
    assert!((0..PACKETS).eq(taken.iter().map(|number| **number)));
}

/// Hands numbers over, now read, now unread; how many found room.
fn give(giver: &mut Handoff<Box<u32>>, numbers: std::ops::Range<u32>) -> u32 {
    let (first, count) = (numbers.start, numbers.len() as u32);
    let boxes = numbers.map(Box::new);
    let sent = match first % 3 {
        0 => {
            assert!(giver.put_all(1, boxes.map(packet)));
            giver.send(&mut Vec::new())
        }
        _ => give_unread(giver, 1, boxes),
    };
    if sent < u64::from(count) {
        thread::yield_now();
    }
    sent as u32
}

//! Ports that sort packets into classes.

use super::to_user;
use crate::fixture::{Bench, N3, N6, TestPort, config, rules};
use crate::worker::{BURST, connect};
use packet::HeapBuffer;
use std::collections::VecDeque;

/// Session 1; the port to the core has so many classes.
fn bench(classes: usize) -> Bench {
    let (config, wires) = (config(), vec![TestPort::default(), TestPort::default()]);
    wires[N6].0.borrow_mut().classes = vec![VecDeque::new(); classes];
    let (engine, worker) = connect(&config, wires.clone(), || 0).unwrap();
    let mut bench = Bench { engine, worker, wires, now_ns: 1 };
    bench.meet_neighbours();
    bench.put(1, 1, rules(1));
    assert_eq!(bench.settle().len(), 1);
    bench
}

/// So many packets of a flow, by its number, wait in a class, or in none.
fn wait(bench: &Bench, class: Option<usize>, flow: u8, packets: usize) {
    let mut frame = to_user(1);
    // The remote's port.
    frame[35] = flow;
    put(bench, class, &frame, packets);
}

fn put(bench: &Bench, class: Option<usize>, frame: &[u8], packets: usize) {
    let mut wire = bench.wires[N6].0.borrow_mut();
    let queue = match class {
        Some(class) => &mut wire.classes[class],
        None => &mut wire.to_worker,
    };
    queue.extend((0..packets).map(|_| HeapBuffer::new(frame)));
}

/// Flows of the packets that went out of the access port, in order.
fn flows(bench: &mut Bench) -> Vec<u8> {
    bench.sent(N3).iter().map(|frame| frame[frame.len() - 7]).collect()
}

#[test]
fn the_urgent_go_first() {
    let mut bench = bench(2);
    wait(&bench, None, 1, 4);
    wait(&bench, Some(1), 2, 3);
    wait(&bench, Some(0), 3, 2);
    bench.worker.turn(bench.now_ns);
    assert_eq!(flows(&mut bench), [3, 3, 2, 2, 2, 1, 1, 1, 1]);
    let port = bench.worker.counters().ports[N6];
    assert_eq!((port.received, port.classes), (9, [2, 3, 0]));
    assert!(bench.worker.books().balanced());
}

#[test]
fn however_many_are_urgent_all_others_get_their_part_of_every_turn() {
    let mut bench = bench(2);
    for (class, flow) in [(Some(0), 3), (Some(1), 2), (None, 1)] {
        wait(&bench, class, flow, 1_000);
    }
    for turn in 1..=4 {
        bench.worker.turn(bench.now_ns);
        let flows = flows(&mut bench);
        let of = |flow: u8| flows.iter().filter(|other| **other == flow).count();
        assert_eq!([of(3), of(2), of(1)], [BURST - 40, 8, 32], "turn {turn}");
    }
    let classes = bench.worker.counters().ports[N6].classes;
    assert_eq!(classes, [4 * (BURST as u64 - 40), 32, 0]);
}

#[test]
fn what_the_urgent_do_not_need_is_everybodys() {
    let mut bench = bench(1);
    wait(&bench, Some(0), 3, 3);
    wait(&bench, None, 1, 1_000);
    assert_eq!(bench.worker.turn(bench.now_ns), BURST);
}

/// A card's queue holds so many packets, and drops what comes then.
const QUEUE: usize = 1_024;

/// Of more than a worker can do, turn by turn: urgent packets lost, others lost, and turns that an urgent one took at most.
fn overload(sorted: bool) -> [usize; 3] {
    let (mut bench, mut lost) = (bench(1), [0; 2]);
    let mut latest = 0;
    for turn in 0..100_u8 {
        // What it can do is one vector from this port. They come mixed.
        for (flow, packets) in [(2, BURST / 8), (1, BURST / 64)].repeat(8) {
            let class = (sorted && flow == 1).then_some(0);
            let waiting = match class {
                Some(class) => bench.wires[N6].0.borrow().classes[class].len(),
                None => bench.wires[N6].0.borrow().to_worker.len(),
            };
            let room = packets.min(QUEUE - waiting);
            lost[flow - 1] += packets - room;
            let mut frame = to_user(1);
            (frame[35], frame[34]) = (flow as u8, turn);
            put(&bench, class, &frame, room);
        }
        bench.worker.turn(bench.now_ns);
        let ages = bench.sent(N3).into_iter().filter(|frame| frame[frame.len() - 7] == 1);
        latest = ages.map(|frame| usize::from(turn - frame[frame.len() - 8])).max().unwrap_or(0).max(latest);
    }
    [lost[0], lost[1], latest]
}

#[test]
fn under_overload_the_urgent_lose_nothing_and_do_not_wait() {
    let [urgent, others, latest] = overload(true);
    assert!(urgent == 0 && latest == 0 && others > 0, "{urgent} and {others} lost, {latest} turns late");
    let [urgent, others, latest] = overload(false);
    assert!(urgent > 0 && others > 0 && latest >= QUEUE / BURST - 1, "{urgent} and {others}, {latest}");
}

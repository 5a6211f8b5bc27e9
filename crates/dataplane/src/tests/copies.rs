//! Copies of packets.

use super::drops;
use super::redirect::tunnelled;
use crate::counters::DropReason;
use crate::fixture::{Bench, COPIED, N3, N6, copied};
use crate::worker::BURST;
use rules::{ApplyAction, OuterHeaderCreation, Rules};

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.put(COPIED, 1, copied());
    bench.settle();
    bench
}

/// A frame to the user whose packets are copied.
fn to_user() -> Vec<u8> {
    super::to_user(COPIED as u8)
}

#[test]
fn every_packet_of_a_vector_is_copied_and_the_books_balance() {
    let mut bench = bench();
    (0..BURST).for_each(|_| bench.receive(N6, &to_user()));
    bench.worker.turn(bench.now_ns);
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (BURST, BURST));
    let books = bench.worker.books();
    assert_eq!((books.created, books.sent), (BURST as u64, 2 * BURST as u64));
    assert!(books.balanced());
}

#[test]
fn without_memory_the_packet_itself_still_goes() {
    let mut bench = bench();
    bench.wires[N3].0.borrow_mut().buffers = Some(0);
    bench.receive(N6, &to_user());
    bench.worker.turn(bench.now_ns);
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (1, 0));
    assert_eq!(drops(&bench, DropReason::NotCopied), 1);
    assert!(bench.worker.books().balanced());
}

#[test]
fn two_copies_go_to_two_places() {
    let mut bench = bench();
    let mut rules = copied();
    let mut second = rules.fars[1].duplicates[0];
    second.outer_header_creation = Some(OuterHeaderCreation::gtpu(rules::Teid(5), [10, 50, 0, 1].into()));
    rules.fars[1].duplicates.push(second);
    bench.put(COPIED, 2, rules);
    bench.settle();
    bench.receive(N6, &to_user());
    bench.worker.turn(bench.now_ns);
    let lengths: Vec<usize> = bench.sent(N6).iter().map(Vec::len).collect();
    assert_eq!((bench.sent(N3).len(), lengths), (1, vec![42, 42 + 36]));
    assert!(bench.worker.books().balanced());
}

/// The rules with another action, of both FARs.
fn doing(apply_action: ApplyAction) -> Rules {
    let mut rules = copied();
    rules.fars.iter_mut().for_each(|far| far.apply_action = apply_action);
    rules
}

#[test]
fn what_is_dropped_is_copied() {
    let mut bench = bench();
    bench.put(COPIED, 2, doing(ApplyAction::Drop));
    bench.settle();
    // Of a new flow, and of one that is known.
    for dropped in [1, 2] {
        bench.receive(N6, &to_user());
        bench.worker.turn(bench.now_ns);
        assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (0, 1));
        assert_eq!(drops(&bench, DropReason::FarDrop), dropped);
    }
    let mut packet = vec![0; 28];
    let header =
        packet::ipv4::Header::new([10, 60, 0, COPIED as u8].into(), [203, 0, 113, 80].into(), 17, 8).unwrap();
    header.write(&mut packet).unwrap();
    bench.receive(N3, &tunnelled(COPIED, &packet));
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.sent(N6).len(), 1, "into the collector's tunnel");
    assert_eq!(drops(&bench, DropReason::FarDrop), 3);
    assert!(bench.worker.books().balanced());
}

/// It may be given up; and whoever has the copies does not sleep.
#[test]
fn what_is_kept_is_copied_as_it_comes_and_not_again() {
    let mut bench = bench();
    bench.put(COPIED, 2, doing(ApplyAction::Buffer));
    bench.settle();
    // Two are as many as may be kept.
    (0..3).for_each(|_| bench.receive(N6, &to_user()));
    bench.settle();
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (0, 3));
    assert_eq!(drops(&bench, DropReason::BufferFull), 1);
    bench.put(COPIED, 3, copied());
    bench.settle();
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (2, 0));
    bench.receive(N6, &to_user());
    bench.settle();
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (1, 1));
    assert!(bench.worker.books().balanced());
}

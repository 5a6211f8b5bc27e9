//! GTP-U in fragments.

use super::drops;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3};

#[test]
fn one_datagram_more_than_a_sender_may_have_is_dropped_until_the_others_are_given_up() {
    let mut bench = Bench::new();
    let first = crate::golden::file("reassembly/in_order")[0].clone();
    for identification in 0..=16u16 {
        let mut frame = first.clone();
        frame[18..20].copy_from_slice(&identification.to_be_bytes());
        frame[24..26].fill(0);
        let checksum = packet::checksum::of(&frame[14..34]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        bench.receive(N3, &frame);
        bench.worker.turn(bench.now_ns);
    }
    let books = bench.worker.books();
    assert_eq!((books.consumed, drops(&bench, DropReason::FragmentsFull)), (16, 1));
    assert!(books.balanced());
    bench.now_ns += 1_000_000_001;
    bench.receive(N3, &first);
    bench.worker.turn(bench.now_ns);
    assert_eq!((bench.worker.books().consumed, drops(&bench, DropReason::FragmentsFull)), (17, 1));
}

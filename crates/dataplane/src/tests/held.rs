//! Packets that wait for the Ethernet address of their next hop.

use super::crew::{address, to_network};
use super::drops;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, rules};

/// From the user of a session to a host of N6.
fn to_host(session: u64, host: u8) -> Vec<u8> {
    let mut inner = vec![0; 28];
    let to = [10, 50, 0, host].into();
    packet::ipv4::Header::new(address(session), to, 17, 8).unwrap().write(&mut inner).unwrap();
    packet::udp::Header::new(1, 53, 0).unwrap().write(&mut inner[20..]).unwrap();
    to_network(session, &inner)
}

/// A host tells its Ethernet address.
fn answer(host: u8) -> Vec<u8> {
    let (ours, theirs) = ([2, 0, 0, 0, 6, 2], [2, 0, 0, 9, 6, host]);
    let arp = [0, 1, 8, 0, 6, 4, 0, 2];
    [&ours[..], &theirs, &[8, 6], &arp, &theirs, &[10, 50, 0, host], &ours, &[10, 50, 0, 2]].concat()
}

/// A user who sends to hosts that are not there has a part of the places, and those of others leave once they can.
#[test]
fn whoever_sends_to_nobody_leaves_room_for_others() {
    let mut config = config();
    config.limits.neighbours = 4_096;
    let mut bench = Bench::over(&config);
    [2, 4].into_iter().for_each(|session| drop(bench.put(session, 1, rules(session))));
    assert_eq!(bench.settle().len(), 2);
    for host in 10..240 {
        (0..3).for_each(|_| bench.receive(N3, &to_host(2, host)));
        bench.worker.turn(bench.now_ns);
    }
    // Eight hosts, two packets each.
    assert_eq!(
        (bench.worker.books().held, drops(&bench, DropReason::NeighbourUnresolved)),
        (16, 3 * 230 - 16)
    );
    (0..2).for_each(|_| bench.receive(N3, &to_host(4, 250)));
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.worker.books().held, 18);
    // Nor does he wait where others do; for the hosts he has asked for he has no more places, but the others have.
    bench.receive(N3, &to_host(4, 251));
    bench.receive(N3, &to_host(2, 251));
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.worker.books().held, 19);
    bench.sent(N6);
    bench.receive(N6, &answer(250));
    bench.worker.turn(bench.now_ns);
    assert_eq!((bench.sent(N6).len(), bench.worker.books().held), (2, 17));
    // What nobody came for is given up, and its places are free.
    bench.now_ns += 4_000_000_000;
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.worker.books().held, 0);
    bench.receive(N3, &to_host(2, 10));
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.worker.books().held, 1);
    assert!(bench.worker.books().balanced());
}

/// As RFC 4861 7.2.2 and Linux do: three questions, a second apart, and then there is nobody.
#[test]
fn what_waits_outlives_a_lost_question_or_a_lost_answer() {
    let mut bench = Bench::over(&config());
    bench.put(2, 1, rules(2));
    assert_eq!(bench.settle().len(), 1);
    for (host, answered_at) in [(10, Some(0)), (20, Some(1)), (30, Some(2)), (40, None)] {
        bench.receive(N3, &to_host(2, host));
        for second in 0..4 {
            (0..10).for_each(|_| {
                bench.worker.turn(bench.now_ns);
                bench.now_ns += 100_000_000;
            });
            let is_waited_for = answered_at.is_none_or(|at| second <= at);
            let asks = is_waited_for && second < 3;
            assert_eq!(bench.sent(N6).len(), usize::from(asks), "for {host} in second {second}");
            if answered_at == Some(second) {
                bench.receive(N6, &answer(host));
                bench.worker.turn(bench.now_ns);
                assert_eq!((bench.sent(N6).len(), bench.worker.books().held), (1, 0));
            }
        }
    }
    assert_eq!((bench.worker.books().held, bench.sent(N3).len()), (0, 1), "the user hears of the last");
    assert!(bench.worker.books().balanced());
}

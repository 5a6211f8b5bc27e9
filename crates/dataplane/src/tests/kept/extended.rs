//! Extended buffering: who cannot be reached for a while has packets kept for longer than others.

use super::*;
use rules::{Extended, Pdr};

const SECOND_NS: u64 = 1_000_000_000;

/// Of a user who sleeps, and whose BAR says this.
fn extended(lasts_s: Option<u32>, packets: Option<u16>) -> rules::Rules {
    let mut rules = asleep();
    let extended = lasts_s.map(|seconds| Extended {
        lasts_s: Some(seconds).filter(|seconds| *seconds > 0),
        ends_ms: 0,
        packets,
    });
    rules.bars = vec![Bar { extended, ..bar() }];
    rules.fars[1].bar = Some(BarId(1));
    rules
}

fn over(bench: &mut Bench, revision: u64, bar: u8) {
    let buffering_over = vec![BarId(bar)];
    let desired = Desired { buffering_over, ..Desired::new(Seid(ASLEEP), revision, extended(None, None)) };
    bench.engine.handle(Command::Put(desired)).unwrap();
}

/// What came before the answer to a report waits with what comes behind it.
#[test]
fn packets_wait_for_as_long_as_the_bar_says_and_leave_in_order() {
    let mut bench = Bench::new();
    bench.put(ASLEEP, 1, extended(None, None));
    bench.receive(N6, &downlink(1));
    bench.settle();
    bench.put(ASLEEP, 2, extended(Some(600), None));
    bench.receive(N6, &downlink(2));
    bench.settle();
    bench.now_ns += 600 * SECOND_NS;
    bench.settle();
    assert_eq!((drops(&bench, DropReason::BufferExpired), bench.worker.books().held), (0, 2));
    bench.meet_neighbours();
    bench.put(ASLEEP, 3, awake());
    bench.receive(N6, &downlink(3));
    bench.settle();
    assert_eq!(ports(&bench.sent(N3)), [1, 2, 3]);
    assert!(bench.worker.books().balanced());
}

#[test]
fn once_it_is_over_what_waited_is_dropped_and_the_next_packet_is_told_of() {
    let mut bench = Bench::new();
    bench.put(ASLEEP, 1, extended(Some(600), None));
    bench.receive(N6, &downlink(1));
    bench.receive(N6, &downlink(2));
    assert_eq!(paged(&bench.settle()), 1);
    over(&mut bench, 2, 2);
    bench.settle();
    assert_eq!((drops(&bench, DropReason::BufferOver), bench.worker.books().held), (0, 2), "another BAR's");
    // They were kept again under rules that keep nothing for longer.
    bench.put(ASLEEP, 3, extended(Some(600), None));
    over(&mut bench, 4, 1);
    bench.settle();
    assert_eq!((drops(&bench, DropReason::BufferOver), bench.worker.books().held), (2, 0));
    bench.receive(N6, &downlink(3));
    assert_eq!(paged(&bench.settle()), 1);
    bench.now_ns += 61 * SECOND_NS;
    bench.settle();
    assert_eq!(drops(&bench, DropReason::BufferExpired), 1, "as long as others");
    assert!(bench.worker.books().balanced());
}

/// What other FARs keep stays, in the order it came.
#[test]
fn what_others_keep_stays() {
    let mut rules = extended(Some(600), None);
    let flow = "permit out 17 from any 54 to any".parse().ok();
    let mut pdr = Pdr { id: PdrId(3), precedence: 1, ..rules.pdrs[1].clone() };
    pdr.pdi.sdf_filters = vec![SdfFilter { flow, ..SdfFilter::default() }];
    let far = rules::Far { id: rules::FarId(9), bar: None, ..rules.fars[1].clone() };
    pdr.far = far.id;
    rules.pdrs.push(pdr);
    rules.fars.push(far);
    let config = Config { limits: Limits { kept_per_session: 4, ..config().limits }, ..config() };
    let mut bench = Bench::over(&config);
    bench.put(ASLEEP, 1, rules.clone());
    for (port, is_other) in [(1, true), (2, false), (3, true), (4, false)] {
        let mut frame = downlink(port);
        frame[35] = if is_other { 54 } else { 53 };
        bench.receive(N6, &frame);
    }
    bench.settle();
    let mut awake = rules;
    awake.bars[0].extended = None;
    awake.fars.iter_mut().for_each(|far| far.apply_action = ApplyAction::Forward);
    let desired = Desired { buffering_over: vec![BarId(1)], ..Desired::new(Seid(ASLEEP), 2, awake) };
    bench.engine.handle(Command::Put(desired)).unwrap();
    bench.settle();
    assert_eq!(ports(&bench.sent(N3)), [1, 3]);
    assert_eq!(drops(&bench, DropReason::BufferOver), 2);
}

/// Nobody is there to say that it is over: packets wait that much longer than others, each by itself.
#[test]
fn without_a_control_plane_engine_it_ends_all_the_same() {
    for (lasts_s, dropped) in [(600, 1), (0, 0)] {
        let mut bench = Bench::new();
        bench.put(ASLEEP, 1, extended(Some(lasts_s), None));
        bench.receive(N6, &downlink(1));
        bench.settle();
        bench.now_ns += 659 * SECOND_NS;
        bench.settle();
        assert_eq!(drops(&bench, DropReason::BufferExpired), 0);
        bench.now_ns += 2 * SECOND_NS;
        bench.settle();
        // 0 stands for ever here.
        assert_eq!(drops(&bench, DropReason::BufferExpired), dropped);
    }
}

#[test]
fn so_many_are_kept_as_are_suggested_for_this_time() {
    let mut rules = extended(Some(600), Some(1));
    rules.bars[0].suggested_packets = Some(2);
    let mut bench = Bench::new();
    bench.put(ASLEEP, 1, rules);
    (1..=3).for_each(|port| bench.receive(N6, &downlink(port)));
    bench.settle();
    assert_eq!((drops(&bench, DropReason::BufferFull), bench.worker.books().held), (2, 1));
}

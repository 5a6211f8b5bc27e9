//! Packets kept for users who sleep.

mod explained;
mod extended;
mod woken;

use super::drops;
use super::rates::uplink;
use crate::config::{Config, Limits};
use crate::counters::DropReason;
use crate::fixture::{ASLEEP, Bench, GNB, GNB6, N3, N6, asleep, config, rules};
use dplink::{Command, Desired, Event, Notice};
use rules::{ApplyAction, Bar, BarId, OuterHeaderCreation, PdrId, Qfi, SdfFilter, Seid, Teid};

/// A frame to the sleeping user, told from others by its IP identification... of which ours have none: by its port.
fn downlink(port: u16) -> Vec<u8> {
    let ip =
        packet::ipv4::Header::new([203, 0, 113, 80].into(), [10, 60, 0, ASLEEP as u8].into(), 17, 8).unwrap();
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.resize(14 + 28, 0);
    ip.write(&mut frame[14..]).unwrap();
    packet::udp::Header::new(53, port, 0).unwrap().write(&mut frame[34..]).unwrap();
    frame
}

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.put(ASLEEP, 1, asleep());
    bench.settle();
    bench
}

fn awake() -> rules::Rules {
    let mut rules = asleep();
    rules.fars[1].apply_action = ApplyAction::Forward;
    rules
}

/// Destination ports of the users' packets in the tunnels.
fn ports(frames: &[Vec<u8>]) -> Vec<u16> {
    let port = |frame: &Vec<u8>| {
        frame.get(frame.len() - 6..frame.len() - 4).map(|p| u16::from_be_bytes([p[0], p[1]]))
    };
    frames.iter().filter_map(port).collect()
}

#[test]
fn packets_wait_and_leave_in_order_and_the_control_plane_is_told_once() {
    let mut bench = bench();
    bench.receive(N6, &downlink(1));
    bench.receive(N6, &downlink(2));
    let data =
        Event::DownlinkData { session: Seid(ASLEEP), pdr: PdrId(2), qfi: None::<Qfi>, traffic_class: 0 };
    assert_eq!(bench.settle(), [Notice::Event(data)]);
    assert!(bench.sent(N3).is_empty());
    assert_eq!(bench.worker.books().held, 2);
    // What comes with the wake-up call does not overtake.
    bench.put(ASLEEP, 2, awake());
    bench.receive(N6, &downlink(3));
    bench.settle();
    assert_eq!(ports(&bench.sent(N3)), [1, 2, 3]);
    assert!(bench.worker.books().balanced());
}

/// By it the control plane finds the QoS flow to page for (TS 23.502 4.2.3.3), though what is kept goes into no tunnel yet.
#[test]
fn the_control_plane_is_told_the_qos_flow_of_what_is_kept_or_dropped() {
    for action in [ApplyAction::Buffer, ApplyAction::Drop] {
        let mut bench = Bench::new();
        let mut rules = asleep();
        rules.fars[1].apply_action = action;
        rules.qers.iter_mut().for_each(|qer| qer.qfi = Qfi::new(9));
        bench.put(ASLEEP, 1, rules);
        bench.settle();
        bench.receive(N6, &downlink(1));
        let told = bench.settle();
        assert!(
            matches!(told[..], [Notice::Event(Event::DownlinkData { qfi, .. })] if qfi == Qfi::new(9)),
            "{told:?}"
        );
    }
}

/// More users sleep than events may wait, and something comes for all of them at once.
#[test]
fn all_who_are_woken_at_once_are_told_of() {
    let limits = Limits { sessions: 200, pdrs: 800, kept: 200, ..config().limits };
    let mut bench = Bench::over(&Config { limits, ..config() });
    let users: Vec<u8> = (10..110).collect();
    for user in &users {
        let mut rules = rules(u64::from(*user));
        let down = rules.fars.iter_mut().find(|far| far.id == rules.pdrs[1].far).unwrap();
        (down.apply_action, down.notify) = (ApplyAction::Buffer, true);
        bench.put(u64::from(*user), 1, rules);
    }
    bench.settle();
    for user in &users {
        bench.receive(N6, &super::rates::downlink(*user, 80));
    }
    let notices = bench.settle();
    let told = |session| {
        let is_it = |notice: &&Notice| matches!(notice, Notice::Event(Event::DownlinkData { session: other, .. }) if *other == session);
        notices.iter().filter(is_it).count()
    };
    assert_eq!(
        users.iter().map(|user| told(Seid(u64::from(*user)))).collect::<Vec<_>>(),
        vec![1; users.len()]
    );
}

/// A later QoS flow may want other paging (TS 29.244 7.5.8.2).
#[test]
fn the_control_plane_is_told_of_each_pdr() {
    let mut bench = Bench::new();
    let mut rules = asleep();
    let mut pdr = rules.pdrs[1].clone();
    let flow = "permit out 17 from any 53 to any".parse().ok();
    (pdr.id, pdr.precedence) = (PdrId(3), 1);
    pdr.pdi.sdf_filters = vec![SdfFilter { flow, ..SdfFilter::default() }];
    rules.pdrs.push(pdr);
    bench.put(ASLEEP, 1, rules);
    bench.settle();
    let mut told = |frame: &[u8]| {
        bench.receive(N6, frame);
        bench.settle()
    };
    let pdr = |notices: Vec<Notice>| match &notices[..] {
        [Notice::Event(Event::DownlinkData { pdr, .. })] => Some(pdr.0),
        _ => None,
    };
    let dns = downlink(1);
    let mut other = dns.clone();
    other[35] = 54;
    let seen = [&other, &dns, &other, &dns].map(|frame| pdr(told(frame)));
    assert_eq!(seen, [Some(2), Some(3), None, None]);
}

/// Of what users send, nobody need hear (TS 29.244 8.2.26).
#[test]
fn packets_from_the_user_wait_in_silence() {
    let mut bench = Bench::new();
    let mut rules = asleep();
    (rules.fars[0].apply_action, rules.fars[0].notify) = (ApplyAction::Buffer, true);
    bench.put(ASLEEP, 1, rules);
    bench.settle();
    bench.receive(N3, &uplink(ASLEEP as u8, 80));
    assert_eq!(bench.settle(), []);
    assert_eq!(bench.worker.books().held, 1);
    bench.receive(N6, &downlink(1));
    assert_eq!(bench.settle().len(), 1);
}

#[test]
fn the_limit_of_a_session_holds() {
    let mut bench = bench();
    (1..=3).for_each(|port| bench.receive(N6, &downlink(port)));
    bench.settle();
    assert_eq!(drops(&bench, DropReason::BufferFull), 1);
    assert!(bench.worker.books().balanced());
}

#[test]
fn what_is_kept_goes_with_its_session_or_when_the_control_plane_says_so() {
    let mut bench = bench();
    bench.receive(N6, &downlink(1));
    bench.settle();
    bench
        .engine
        .handle(Command::Put(Desired { drop_buffered: true, ..Desired::new(Seid(ASLEEP), 2, asleep()) }))
        .unwrap();
    bench.settle();
    assert_eq!(drops(&bench, DropReason::BufferDropped), 1);
    bench.receive(N6, &downlink(2));
    bench.settle();
    bench.engine.handle(Command::Delete { session: Seid(ASLEEP) }).unwrap();
    bench.settle();
    assert_eq!(drops(&bench, DropReason::BufferDropped), 2);
    assert_eq!(bench.worker.books().held, 0);
    assert!(bench.worker.books().balanced());
}

/// A change that asks to drop it, and is refused as another session has the user's address, changes nothing.
#[test]
fn what_is_kept_stays_where_a_change_is_refused() {
    let mut bench = bench();
    let mut others = asleep();
    for pdr in &mut others.pdrs {
        pdr.pdi.ue_ipv4 = pdr.pdi.ue_ipv4.map(|_| [10, 60, 0, 250].into());
        pdr.pdi.f_teid.iter_mut().for_each(|f_teid| f_teid.teid = Teid(0x7777));
    }
    bench.put(250, 1, others.clone());
    bench.receive(N6, &downlink(1));
    bench.settle();
    let desired = Desired { drop_buffered: true, ..Desired::new(Seid(ASLEEP), 2, others) };
    bench.engine.handle(Command::Put(desired)).unwrap();
    let notices = bench.settle();
    assert!(notices.iter().any(|notice| matches!(notice, Notice::Refused { .. })), "{notices:?}");
    assert_eq!((drops(&bench, DropReason::BufferDropped), bench.worker.books().held), (0, 1));
    bench.put(ASLEEP, 3, awake());
    bench.settle();
    assert_eq!(ports(&bench.sent(N3)), [1]);
}

#[test]
fn nothing_is_kept_for_ever() {
    let mut bench = bench();
    bench.receive(N6, &downlink(1));
    bench.settle();
    bench.now_ns += 61_000_000_000;
    bench.settle();
    assert_eq!(drops(&bench, DropReason::BufferExpired), 1);
    assert!(bench.worker.books().balanced());
}

#[test]
fn a_tunnel_over_ipv6_gets_its_end_marker_too() {
    let mut bench = bench();
    let old = OuterHeaderCreation::gtpu(Teid(0x777), GNB6.into());
    let desired = Desired { end_markers: vec![old], ..Desired::new(Seid(ASLEEP), 2, awake()) };
    bench.engine.handle(Command::Put(desired)).unwrap();
    bench.settle();
    let sent = bench.sent(N3);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][62..], [0x30, 254, 0, 0, 0, 0, 7, 0x77]);
    // Over IPv6 there is a checksum, and it is right.
    let ip = packet::ipv6::Packet::parse(&sent[0][14..]).unwrap();
    let pseudo = ip.pseudo_sum(packet::protocol::UDP, ip.payload().len());
    assert_eq!(packet::udp::verify(ip.payload(), pseudo), packet::udp::Checksum::Intact);
}

#[test]
fn a_tunnel_that_ends_gets_one_end_marker() {
    let mut bench = bench();
    let old = OuterHeaderCreation::gtpu(Teid(0x777), GNB.into());
    let desired = Desired { end_markers: vec![old], ..Desired::new(Seid(ASLEEP), 2, awake()) };
    bench.engine.handle(Command::Put(desired.clone())).unwrap();
    bench.settle();
    let sent = bench.sent(N3);
    assert_eq!(sent.len(), 1);
    // GTP-U version 1, End Marker, no payload, the old TEID.
    assert_eq!(sent[0][42..], [0x30, 254, 0, 0, 0, 0, 7, 0x77]);
    bench.engine.handle(Command::Put(desired)).unwrap();
    bench.settle();
    assert!(bench.sent(N3).is_empty());
    assert!(bench.worker.books().balanced());
}

/// Told, and what for.
fn paged(notices: &[Notice]) -> usize {
    notices.iter().filter(|notice| matches!(notice, Notice::Event(Event::DownlinkData { .. }))).count()
}

/// Whose BAR wants no packet kept, or who finds the room taken by others, has to be woken all the same (TS 29.244 8.2.26, NOCP).
#[test]
fn a_user_is_woken_even_where_there_is_no_room_for_its_packet() {
    let mut bench = Bench::new();
    let mut rules = asleep();
    rules.bars = vec![Bar { suggested_packets: Some(0), ..bar() }];
    rules.fars[1].bar = Some(BarId(1));
    bench.put(ASLEEP, 1, rules.clone());
    bench.settle();
    let packet = |bench: &mut Bench| {
        bench.receive(N6, &downlink(1));
        paged(&bench.settle())
    };
    assert_eq!([packet(&mut bench), packet(&mut bench)], [1, 0], "once");
    bench.now_ns += 11_000_000_000;
    assert_eq!([packet(&mut bench), packet(&mut bench)], [1, 0], "nobody came");
    bench.put(ASLEEP, 2, rules);
    bench.now_ns += 200_000_000;
    assert_eq!([packet(&mut bench), packet(&mut bench)], [1, 0], "awake meanwhile");
    assert_eq!((drops(&bench, DropReason::BufferFull), bench.worker.books().held), (6, 0));
}

/// A FAR may drop packets and have its control plane told of them (TS 29.244 8.2.26, NOCP): nothing is left to send on waking.
#[test]
fn a_user_whose_packets_are_dropped_is_told_of_as_asked() {
    for notify in [true, false] {
        let mut bench = Bench::new();
        let mut rules = asleep();
        (rules.fars[1].apply_action, rules.fars[1].notify) = (ApplyAction::Drop, notify);
        bench.put(ASLEEP, 1, rules.clone());
        bench.settle();
        let packet = |bench: &mut Bench| {
            bench.receive(N6, &downlink(1));
            paged(&bench.settle())
        };
        let once = usize::from(notify);
        assert_eq!([packet(&mut bench), packet(&mut bench)], [once, 0]);
        bench.put(ASLEEP, 2, awake());
        bench.settle();
        assert!(bench.sent(N3).is_empty());
        bench.put(ASLEEP, 3, rules);
        bench.now_ns += 200_000_000;
        assert_eq!([packet(&mut bench), packet(&mut bench)], [once, 0], "awake meanwhile");
        assert_eq!((drops(&bench, DropReason::FarDrop), bench.worker.books().held), (4, 0));
        assert!(bench.worker.books().balanced());
    }
}

/// What was kept is dropped once its FAR says so.
#[test]
fn packets_kept_are_dropped_by_a_far_that_drops_and_tells() {
    let mut bench = bench();
    bench.receive(N6, &downlink(1));
    assert_eq!(paged(&bench.settle()), 1);
    let mut rules = asleep();
    rules.fars[1].apply_action = ApplyAction::Drop;
    bench.put(ASLEEP, 2, rules);
    assert_eq!(paged(&bench.settle()), 0, "told just now");
    assert_eq!((drops(&bench, DropReason::FarDrop), bench.worker.books().held), (1, 0));
}

/// All rules lead to one FAR or the other; what another BAR says is not this one's.
#[test]
fn a_far_keeps_as_many_packets_as_its_own_bar_says() {
    for (bar_of_far, held) in [(None, 2), (Some(BarId(1)), 1)] {
        let mut bench = Bench::new();
        let mut rules = asleep();
        rules.bars = vec![Bar { suggested_packets: Some(1), ..bar() }];
        rules.fars[1].bar = bar_of_far;
        bench.put(ASLEEP, 1, rules);
        bench.settle();
        (1..=3).for_each(|port| bench.receive(N6, &downlink(port)));
        bench.settle();
        assert_eq!(bench.worker.books().held, held);
    }
}

fn bar() -> Bar {
    Bar { id: BarId(1), notification_delay_50ms: 0, suggested_packets: None, extended: None }
}

/// The control plane engine may die with what it was told.
#[test]
fn a_resynchronisation_tells_again_of_packets_kept() {
    let mut bench = bench();
    bench.receive(N6, &downlink(1));
    assert_eq!(paged(&bench.settle()), 1);
    bench.put(ASLEEP, 1, asleep());
    assert_eq!(paged(&bench.settle()), 0, "nobody was away");
    bench.engine.handle(Command::ResyncBegin { recovery_time_stamp: 7 }).unwrap();
    bench.engine.handle(Command::Put(Desired::new(Seid(ASLEEP), 1, asleep()))).unwrap();
    bench.engine.handle(Command::ResyncEnd).unwrap();
    assert_eq!(paged(&bench.settle()), 1);
    bench.receive(N6, &downlink(2));
    assert_eq!((paged(&bench.settle()), bench.worker.books().held), (0, 2));
}

//! Rates: what several PDRs, and several sessions, share (TS 29.244 5.4.4).

use super::drops;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, rules};
use dplink::{Command, Notice, UsageCause};
use rules::{
    BitRates, FlowDescription, Gate, PacketRate, PacketRates, Pdr, PdrId, Qer, QerId, Rules, SdfFilter, Seid,
    Urr, UrrId,
};

const MS: u64 = 1_000_000;
/// Bytes of the user's packets here.
const PACKET: usize = 1_000;

/// A frame from the core to a user, from one server or another.
pub(super) fn downlink(session: u8, server: u8) -> Vec<u8> {
    let (from, to) = ([203, 0, 113, server], [10, 60, 0, session]);
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.extend(packet(from, to));
    frame
}

/// A frame from a user to one server or another.
pub(crate) fn uplink(session: u8, server: u8) -> Vec<u8> {
    let inner = packet([10, 60, 0, session], [203, 0, 113, server]);
    let mut frame = vec![2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 3, 1, 8, 0];
    let length = 8 + 8 + inner.len();
    let ip = packet::ipv4::Header::new([10, 30, 0, 1].into(), [10, 30, 0, 2].into(), 17, length).unwrap();
    frame.resize(14 + 28, 0);
    ip.write(&mut frame[14..]).unwrap();
    packet::udp::Header::new(2152, 2152, length - 8).unwrap().write(&mut frame[34..]).unwrap();
    frame.extend([0x30, 255]);
    frame.extend((inner.len() as u16).to_be_bytes());
    frame.extend((0xff + u32::from(session)).to_be_bytes());
    frame.extend(inner);
    frame
}

fn packet(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let ip = packet::ipv4::Header::new(from.into(), to.into(), 17, PACKET - 20).unwrap();
    let mut bytes = vec![0; PACKET];
    ip.write(&mut bytes).unwrap();
    packet::udp::Header::new(53, 53, PACKET - 28).unwrap().write(&mut bytes[20..]).unwrap();
    bytes
}

/// Two PDRs each way, one of them for one server alone; all of them name one QER.
fn shared(session: u64, qer: Qer) -> Rules {
    let mut rules = rules(session);
    let server: ipnet::IpNet = "203.0.113.80/32".parse().unwrap();
    let remote = rules::FlowEnd { addresses: Some(server.into()), ports: vec![] };
    let flow = FlowDescription { remote, ..FlowDescription::default() };
    let one_server = SdfFilter { flow: Some(flow), ..SdfFilter::default() };
    for at in 0..2 {
        let mut pdr: Pdr = rules.pdrs[at].clone();
        (pdr.id, pdr.precedence) = (PdrId(3 + at as u16), 10);
        pdr.pdi.sdf_filters = vec![one_server.clone()];
        rules.pdrs.push(pdr);
    }
    rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(2)].into());
    rules.qers = vec![qer];
    rules
}

fn qer() -> Qer {
    Qer {
        id: QerId(2),
        uplink_gate: Gate::Open,
        downlink_gate: Gate::Open,
        mbr: Some(BitRates { uplink_kbps: 2_000, downlink_kbps: 4_000 }),
        packet_rates: PacketRates::default(),
        correlation: None,
        gbr: None,
        qfi: None,
        reflective: false,
    }
}

fn put(bench: &mut Bench, session: u64, revision: u64, rules: Rules) {
    bench.put(session, revision, rules);
    let notices = bench.settle();
    assert!(matches!(&notices[..], [Notice::Applied { .. }]), "{notices:?}");
}

/// What one rate refuses another notes, too, if it is beyond that: so what is let through within the second behind is the same in
/// whichever order they stand.
#[test]
fn the_order_of_a_pdr_s_rates_makes_no_difference() {
    let with = |id, kbps| Qer {
        id: QerId(id),
        mbr: Some(BitRates { uplink_kbps: kbps, downlink_kbps: kbps }),
        ..qer()
    };
    for order in [[2, 3], [3, 2]] {
        let mut bench = Bench::bare();
        let mut rules = shared(4, qer());
        rules.qers = order.map(|id| with(id, if id == 2 { 8 } else { 64 })).into();
        for pdr in &mut rules.pdrs {
            let is_of_one_server = !pdr.pdi.sdf_filters.is_empty();
            pdr.qers =
                if is_of_one_server { order.map(QerId).to_vec().into() } else { vec![QerId(3)].into() };
        }
        put(&mut bench, 4, 1, rules);
        let mut passes = |after_ms: u64, server| {
            bench.now_ns += after_ms * MS;
            bench.settle();
            bench.meet_neighbours();
            bench.sent(N3);
            bench.receive(N6, &downlink(4, server));
            bench.worker.turn(bench.now_ns);
            bench.sent(N3).iter().any(|frame| frame.len() > PACKET)
        };
        assert!(passes(10_000, 80));
        assert!(!passes(50, 80), "8 kbit/s are a packet a second");
        assert!(
            passes(900, 81) && passes(0, 81),
            "nothing of the last second's worth was used since, {order:?}"
        );
    }
}

/// Packets a second that get through of one a millisecond for each session and server, each way: first from users, then
/// to them.
fn second(bench: &mut Bench, sessions: &[u8]) -> (usize, usize) {
    let (mut up, mut down) = (0, 0);
    for _ in 0..1_000 {
        bench.now_ns += MS;
        for session in sessions {
            for server in [80, 81] {
                bench.receive(N6, &downlink(*session, server));
                bench.receive(N3, &uplink(*session, server));
            }
        }
        bench.worker.turn(bench.now_ns);
        // Neighbours are asked for their Ethernet address, too.
        let users = |frames: Vec<Vec<u8>>| frames.iter().filter(|frame| frame[12..14] == [8, 0]).count();
        up += users(bench.sent(N6));
        down += users(bench.sent(N3));
    }
    (up, down)
}

/// 2 Mbit/s of 1,000 bytes are 250 packets a second; the burst of 10 ms adds 3 or 6 to the first.
#[test]
fn one_qer_of_several_pdrs_is_one_rate_each_way() {
    let mut bench = Bench::new();
    put(&mut bench, 4, 1, shared(4, qer()));
    second(&mut bench, &[4]);
    for _ in 0..3 {
        let (up, down) = second(&mut bench, &[4]);
        assert!((248..=252).contains(&up) && (496..=504).contains(&down), "{up} {down}");
    }
}

#[test]
fn correlated_qers_of_several_sessions_are_one_rate_each_way() {
    let mut bench = Bench::new();
    let correlated = Qer { correlation: Some(7), ..qer() };
    put(&mut bench, 4, 1, shared(4, correlated.clone()));
    let mut other = shared(5, Qer { id: QerId(9), ..correlated.clone() });
    other.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(9)].into());
    put(&mut bench, 5, 2, other.clone());
    second(&mut bench, &[4, 5]);
    for revision in 3..6 {
        let (up, down) = second(&mut bench, &[4, 5]);
        assert!((248..=252).contains(&up) && (496..=504).contains(&down), "{up} {down}");
        // A change of rules grants nobody a burst.
        put(&mut bench, 5, revision, other.clone());
    }
    // By the limits that were put in force last.
    let slower = BitRates { uplink_kbps: 1_000, downlink_kbps: 1_000 };
    put(&mut bench, 4, 2, shared(4, Qer { mbr: Some(slower), ..correlated }));
    second(&mut bench, &[4, 5]);
    let (up, down) = second(&mut bench, &[4, 5]);
    assert!((124..=126).contains(&up) && (124..=126).contains(&down), "{up} {down}");
}

#[test]
fn packets_are_limited_whatever_their_size_and_through_changes() {
    let mut bench = Bench::new();
    let uplink = Some(PacketRate { packets: 10, window_s: 60 });
    let limited = Qer { mbr: None, packet_rates: PacketRates { uplink, downlink: None }, ..qer() };
    put(&mut bench, 4, 1, shared(4, limited.clone()));
    assert_eq!(second(&mut bench, &[4]), (10, 2_000));
    put(&mut bench, 4, 2, shared(4, limited));
    assert_eq!(second(&mut bench, &[4]), (0, 2_000));
    bench.now_ns += 58_000 * MS;
    assert_eq!(second(&mut bench, &[4]).0, 10);
    assert_eq!(drops(&bench, DropReason::RateExceeded), 6_000 - 20);
}

/// A PDR's own rate, and that of the whole session which another PDR has, too: as of a QoS flow and of the session's AMBR.
fn of_two_qers() -> Rules {
    let mut rules = shared(4, qer());
    // Kilobits a second: 1,000 bytes take 10 ms of the flow's, and 8 ms of the session's.
    let rate = |id, kbps| Qer {
        id: QerId(id),
        mbr: Some(BitRates { uplink_kbps: kbps, downlink_kbps: kbps }),
        ..qer()
    };
    rules.qers = vec![rate(1, 800), rate(2, 1_000)];
    let (whole, flow) = rules.pdrs.split_at_mut(2);
    whole.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(2)].into());
    flow.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(1), QerId(2)].into());
    // The first measures before QoS enforcement.
    rules.urrs = [true, false]
        .map(|before_qos| Urr { id: UrrId(1 + u32::from(!before_qos)), before_qos, ..Urr::default() })
        .into();
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1), UrrId(2)].into());
    rules
}

/// Both QERs of a PDR have to admit a packet (TS 29.244 5.4.3), and one that either refuses takes nothing of the other. With
/// 10 ms ahead: when it comes, in ms, from or to which server, 80 (both rates) or 81 (the session's alone), and whether it passes.
const OF_TWO_QERS: [(u64, u8, bool); 11] = [
    // The flow is due at 10, the session at 8.
    (0, 80, true),
    // As far ahead as may be: 20 and 16.
    (0, 80, true),
    // Of the session's alone there is 6 too little, and so there is for the flow.
    (0, 81, false),
    (0, 80, false),
    // The session's is free: 24, the flow's is 20 still.
    (6, 81, true),
    (6, 80, false),
    // The flow would have it, the session does not; nothing is charged.
    (10, 80, false),
    (13, 81, false),
    // 30 and 32.
    (14, 80, true),
    // The session's at 22, not a moment earlier.
    (21, 80, false),
    (22, 80, true),
];

#[test]
fn both_qers_of_a_pdr_admit_a_packet_or_neither_is_charged() {
    for way in [N3, N6] {
        let mut config = crate::fixture::config();
        config.limits.catch_up_ns = 0;
        let mut bench = Bench::over(&config);
        put(&mut bench, 4, 1, of_two_qers());
        let start = bench.now_ns;
        for (step, (ms, server, passes)) in OF_TWO_QERS.into_iter().enumerate() {
            bench.now_ns = start + ms * MS;
            let frame = if way == N3 { uplink(4, server) } else { downlink(4, server) };
            bench.receive(way, &frame);
            bench.worker.turn(bench.now_ns);
            assert_eq!(bench.sent(N3 + N6 - way).len(), usize::from(passes), "step {step}");
        }
        assert_eq!(drops(&bench, DropReason::RateExceeded), 6);
        // What arrived, and what left (TS 29.244 8.2.68, MBQE).
        assert_eq!(bytes(&mut bench), [11_000, 5_000]);
    }
}

/// Of each URR of session 4, both ways.
fn bytes(bench: &mut Bench) -> Vec<u64> {
    let command = Command::QueryUsage { session: Seid(4), urrs: vec![], token: 7, is_reported: true };
    bench.engine.handle(command).unwrap();
    match &bench.settle()[..] {
        [Notice::Usage { cause: UsageCause::Query(7), counts, .. }] => {
            counts.iter().map(|counts| counts.uplink_bytes + counts.downlink_bytes).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn meters_apart_have_a_limit() {
    let mut config = crate::fixture::config();
    config.limits.meters_apart = 1;
    let mut bench = Bench::over(&config);
    let correlated = |number| Qer { correlation: Some(number), ..qer() };
    put(&mut bench, 4, 1, shared(4, correlated(1)));
    put(&mut bench, 5, 1, shared(5, correlated(1)));
    bench.put(6, 1, shared(6, correlated(2)));
    let notices = bench.settle();
    assert!(
        matches!(&notices[..], [Notice::Refused { reason, .. }] if reason.contains("shared meters")),
        "{notices:?}"
    );
    bench.engine.handle(dplink::Command::Delete { session: rules::Seid(4) }).unwrap();
    bench.engine.handle(dplink::Command::Delete { session: rules::Seid(5) }).unwrap();
    bench.settle();
    put(&mut bench, 6, 2, shared(6, correlated(2)));
}

/// Both ways, and of all its PDRs together; who has a limit keeps it, and others get through.
#[test]
fn a_user_whose_rules_have_no_limit_is_held_to_the_nodes_own() {
    let mut config = config();
    config.limits.session_mbr = Some(BitRates { uplink_kbps: 2_000, downlink_kbps: 4_000 });
    let mut bench = Bench::over(&config);
    let mut unlimited = shared(4, qer());
    unlimited.pdrs.iter_mut().for_each(|pdr| pdr.qers.clear());
    unlimited.qers.clear();
    put(&mut bench, 4, 1, unlimited);
    second(&mut bench, &[4]);
    let before = drops(&bench, DropReason::RateExceeded);
    let (up, down) = second(&mut bench, &[4]);
    assert!((248..=252).contains(&up) && (496..=504).contains(&down), "{up} {down}");
    assert_eq!(drops(&bench, DropReason::RateExceeded) - before, (4_000 - up - down) as u64);
    let slow = BitRates { uplink_kbps: 800, downlink_kbps: 800 };
    put(&mut bench, 5, 1, shared(5, Qer { mbr: Some(slow), ..qer() }));
    second(&mut bench, &[4, 5]);
    let (up, down) = second(&mut bench, &[4, 5]);
    assert!((346..=354).contains(&up) && (594..=606).contains(&down), "{up} {down}");
}

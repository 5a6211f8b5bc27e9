//! Rates: what several PDRs, and several sessions, share (TS 29.244 5.4.4).

use super::drops;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, rules};
use dplink::Notice;
use rules::{
    BitRates, FlowDescription, Gate, PacketRate, PacketRates, Pdr, PdrId, Qer, QerId, Rules, SdfFilter,
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
pub(super) fn uplink(session: u8, server: u8) -> Vec<u8> {
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
    let remote = rules::FlowEnd { prefix: Some("203.0.113.80/32".parse().unwrap()), ports: vec![] };
    let flow = FlowDescription { remote, ..FlowDescription::default() };
    let one_server = SdfFilter { flow: Some(flow), ..SdfFilter::default() };
    for at in 0..2 {
        let mut pdr: Pdr = rules.pdrs[at].clone();
        (pdr.id, pdr.precedence) = (PdrId(3 + at as u16), 10);
        pdr.pdi.sdf_filters = vec![one_server.clone()];
        rules.pdrs.push(pdr);
    }
    rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(2)]);
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
    other.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(9)]);
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

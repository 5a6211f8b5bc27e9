//! Online charging: each rating group has a quota of its own, and what has none is never stopped.

use super::drops;
use crate::counters::DropReason;
use crate::fixture::{Bench, METERED, N3, N6, rules};
use rules::{BitRates, Interface, Pdr, PdrId, Qer, QerId, Rules, SdfFilter, Seid, Urr, UrrId, Volume};

/// A frame to the user of [`METERED`] from a server, with 32 bytes in a UDP datagram: 60 bytes of the user's.
fn from_server(server: [u8; 4]) -> Vec<u8> {
    let ip = packet::ipv4::Header::new(server.into(), [10, 60, 0, METERED as u8].into(), 17, 40).unwrap();
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.resize(14 + 60, 0);
    ip.write(&mut frame[14..]).unwrap();
    packet::udp::Header::new(53, 4000, 32).unwrap().write(&mut frame[34..]).unwrap();
    frame
}

const VIDEO: [u8; 4] = [203, 0, 113, 80];
const PORTAL: [u8; 4] = [203, 0, 113, 81];
const OTHERS: [u8; 4] = [198, 51, 100, 1];

fn quota(id: u32, total: u64) -> Urr {
    let volume = Volume { total: Some(total), ..Volume::default() };
    Urr { id: UrrId(id), volume_quota: Some(volume), quota_grant: 1, ..Urr::default() }
}

/// Downlink: video under one rating group, the portal under none, all else under another.
fn rating_groups() -> Rules {
    let mut rules = rules(METERED);
    let is_down = |pdr: &&mut Pdr| pdr.pdi.source_interface == Interface::Core;
    let down = rules.pdrs.iter_mut().find(is_down).unwrap();
    down.urrs = vec![UrrId(1)].into();
    let from = |id, server: [u8; 4], urrs| {
        let [a, b, c, d] = server;
        let flow = format!("permit out udp from {a}.{b}.{c}.{d} to assigned").parse().ok();
        let mut pdr = Pdr { id: PdrId(id), precedence: 1, urrs, ..down.clone() };
        pdr.pdi.sdf_filters = vec![SdfFilter { flow, ..SdfFilter::default() }];
        pdr
    };
    let (video, portal) = (from(11, VIDEO, vec![UrrId(2)].into()), from(12, PORTAL, vec![].into()));
    rules.pdrs.extend([video, portal]);
    rules.urrs = vec![quota(1, 1_000_000), quota(2, 100)];
    rules
}

fn pass(bench: &mut Bench, server: [u8; 4]) -> usize {
    (0..4).for_each(|_| bench.receive(N6, &from_server(server)));
    bench.settle();
    bench.sent(N3).len()
}

/// TS 29.244 5.2.2.2.2: a quota that is used up stops what its URR measures, and nothing else. What a control plane
/// leaves without a quota (a portal to buy more at) is how it restricts a user.
#[test]
fn a_quota_that_is_used_up_stops_its_rating_group_alone() {
    let mut bench = Bench::new();
    let mut rules = rating_groups();
    bench.put(METERED, 1, rules.clone());
    bench.settle();
    assert_eq!([VIDEO, OTHERS, PORTAL].map(|server| pass(&mut bench, server)), [2, 4, 4]);
    assert_eq!([VIDEO, OTHERS, PORTAL].map(|server| pass(&mut bench, server)), [0, 4, 4]);
    rules.urrs[1].quota_grant += 1;
    bench.put(METERED, 2, rules);
    bench.settle();
    assert_eq!([VIDEO, OTHERS].map(|server| pass(&mut bench, server)), [2, 4]);
    assert!(bench.worker.books().balanced());
}

/// The rating groups share a rate, of which the burst is ten packets.
fn under_one_rate() -> Bench {
    let mut bench = Bench::new();
    let mut rules = rating_groups();
    let mbr = Some(BitRates { uplink_kbps: 0, downlink_kbps: 480 });
    rules.qers = vec![Qer { id: QerId(1), mbr, ..rules.qers[0].clone() }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(1)].into());
    bench.put(METERED, 1, rules);
    bench.settle();
    bench
}

/// Packets that a quota stops take nothing of a rate that others share: the portal must be there for who has nothing left.
#[test]
fn what_a_quota_stops_takes_nothing_of_a_rate() {
    let mut bench = under_one_rate();
    let taken = pass(&mut bench, VIDEO);
    bench.now_ns += 1_000_000_000;
    // A second's worth, many times over.
    let stopped: usize = (0..100).map(|_| pass(&mut bench, VIDEO)).sum();
    assert!(taken > 0 && stopped <= 1, "{taken} {stopped}");
    assert_eq!(pass(&mut bench, PORTAL), 4);
}

/// Nor do those that come in one vector with the packet that used the quota up.
#[test]
fn what_a_quota_stops_takes_nothing_of_a_rate_in_the_vector_it_ends_in() {
    let mut bench = under_one_rate();
    (0..20).for_each(|_| bench.receive(N6, &from_server(VIDEO)));
    (0..4).for_each(|_| bench.receive(N6, &from_server(PORTAL)));
    bench.worker.turn(bench.now_ns);
    let stopped = [DropReason::QuotaExhausted, DropReason::RateExceeded].map(|reason| drops(&bench, reason));
    assert_eq!((bench.sent(N3).len(), stopped), (2 + 4, [18, 0]));
}

/// A meter of another kind beside the quota's URR, as charging in this node puts there, sees what passed and no more.
#[test]
fn what_a_quota_stops_is_counted_by_nobody() {
    let mut bench = Bench::new();
    let mut rules = rating_groups();
    rules.urrs.push(Urr { id: UrrId(9), ..Urr::default() });
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs.push(UrrId(9)));
    bench.put(METERED, 1, rules);
    bench.settle();
    pass(&mut bench, VIDEO);
    pass(&mut bench, PORTAL);
    let urrs = vec![UrrId(9)];
    let query = dplink::Command::QueryUsage { session: Seid(METERED), urrs, token: 1, is_reported: false };
    bench.engine.handle(query).unwrap();
    let notices = bench.settle();
    let [dplink::Notice::Usage { counts, .. }] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((counts[0].urr, counts[0].downlink_bytes), (UrrId(9), 60 * (2 + 4)));
}

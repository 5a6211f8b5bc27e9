//! Outer headers of UDP without GTP-U.

use super::{drops, to_user};
use crate::config::Echo;
use crate::counters::DropReason;
use crate::fixture::{Bench, GNB, N3, N6, config, rules};
use dplink::{Command, Notice};
use packet::udp_ip::SOURCE_PORT;
use packet::{ipv4, udp};
use rules::{OuterHeaderCreation, Rules};
use std::net::IpAddr;

const S: u64 = 1_000_000_000;
/// Ethernet, IPv4, UDP.
const FRONT: usize = 14 + 20 + 8;

/// The first session, whose downlink packets go behind a UDP header to an address.
fn behind(address: IpAddr, port: u16) -> Rules {
    let mut rules = rules(1);
    let to = rules.fars[1].forwarding.as_mut().unwrap();
    to.outer_header_creation = Some(OuterHeaderCreation::udp(port, address));
    rules
}

fn bench(rules: Rules) -> Bench {
    let echo = Echo { period_ns: 60 * S, t3_ns: 5 * S, n3: 2 };
    let mut bench = Bench::over(&crate::Config { echo, ..config() });
    bench.put(1, 1, rules);
    bench.settle();
    bench
}

fn long(bytes: usize) -> Vec<u8> {
    let header = ipv4::Header::new([203, 0, 113, 80].into(), [10, 60, 0, 1].into(), 17, bytes - 20);
    let mut frame = to_user(1);
    frame.resize(14 + bytes, 0);
    header.unwrap().fragmentable(7).write(&mut frame[14..]).unwrap();
    frame
}

#[test]
fn a_packet_leaves_behind_udp_one_hop_later() {
    let mut bench = bench(behind(GNB.into(), 5_000));
    bench.receive(N6, &to_user(1));
    bench.worker.turn(bench.now_ns);
    let sent = bench.sent(N3);
    let [frame] = &sent[..] else { panic!("{sent:?}") };
    let outer = ipv4::Packet::parse(&frame[14..]).unwrap();
    let header = udp::Header::parse(outer.payload()).unwrap();
    assert_eq!((outer.source(), outer.destination()), ([10, 30, 0, 2].into(), GNB));
    assert_eq!((header.source(), header.destination()), (SOURCE_PORT, 5_000));
    let inner = ipv4::Packet::parse(&frame[FRONT..]).unwrap();
    assert_eq!((inner.destination(), inner.ttl()), ([10, 60, 0, 1].into(), 63));
    assert!(bench.worker.books().balanced());
}

/// The way takes 1,500 bytes: 28 are those of the two headers, and eight more than into a tunnel of GTP-U pass whole.
#[test]
fn what_fits_is_reckoned_without_gtp_u() {
    let mut bench = bench(behind(GNB.into(), 5_000));
    for (bytes, parts) in [(1_472, vec![1_472]), (1_473, vec![1_468, 25])] {
        bench.receive(N6, &long(bytes));
        bench.worker.turn(bench.now_ns);
        let lengths: Vec<usize> = bench.sent(N3).iter().map(|frame| frame.len() - FRONT).collect();
        assert_eq!(lengths, parts);
    }
}

/// Who takes no GTP-U answers no Echo Requests, and is no peer of GTP-U: neither asked nor told failed nor listed.
#[test]
fn nobody_is_asked_whether_he_is_there() {
    let mut bench = bench(behind(GNB.into(), 5_000));
    assert_eq!(bench.sent(N3), Vec::<Vec<u8>>::new());
    for second in 0..90 {
        bench.now_ns += S;
        assert_eq!(bench.settle(), [], "after {second} s");
    }
    let of_gtpu = |frame: &Vec<u8>| frame[12..14] == [8, 0];
    assert_eq!(bench.sent(N3).into_iter().filter(of_gtpu).count(), 0);
    bench.engine.handle(Command::GetPeers { token: 3 }).unwrap();
    assert_eq!(bench.settle(), [Notice::Peers { token: 3, peers: vec![] }]);
    // As soon as a tunnel of GTP-U leads there, too, it is.
    bench.meet_neighbours();
    bench.put(2, 1, rules(2));
    bench.settle();
    bench.now_ns += S;
    bench.settle();
    assert_eq!(bench.sent(N3).into_iter().filter(of_gtpu).count(), 1);
}

/// What a user sends would be read as a datagram for this node: as GTP-U, with another user's tunnel in it.
#[test]
fn nothing_goes_to_ourselves() {
    let mut bench = bench(behind([10, 30, 0, 2].into(), 2_152));
    bench.receive(N6, &to_user(1));
    bench.worker.turn(bench.now_ns);
    assert_eq!(drops(&bench, DropReason::ToOurselves), 1);
    assert_eq!((bench.sent(N3).len(), bench.worker.books().balanced()), (0, true));
}

#[test]
fn copies_go_behind_udp_too() {
    let mut copied = rules(1);
    let mut to = copied.fars[1].forwarding.unwrap();
    to.outer_header_creation = Some(OuterHeaderCreation::udp(9_999, [10, 30, 0, 1].into()));
    (copied.fars[1].duplicating, copied.fars[1].duplicates) = (true, vec![to]);
    let mut ourselves = to;
    ourselves.outer_header_creation = Some(OuterHeaderCreation::udp(2_152, [10, 30, 0, 2].into()));
    copied.fars[1].duplicates.push(ourselves);
    let mut bench = bench(copied);
    bench.sent(N3);
    bench.receive(N6, &to_user(1));
    bench.worker.turn(bench.now_ns);
    let mut ports: Vec<u16> =
        bench.sent(N3).iter().map(|frame| u16::from_be_bytes([frame[36], frame[37]])).collect();
    ports.sort_unstable();
    assert_eq!((ports, drops(&bench, DropReason::NotCopied)), (vec![2_152, 9_999], 1));
    assert!(bench.worker.books().balanced());
}

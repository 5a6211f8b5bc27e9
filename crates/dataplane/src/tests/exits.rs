//! The usual packet leaves as the one before it did, until something says otherwise.

use super::rates::{downlink, uplink};
use super::to_user;
use crate::counters::DropReason;
use crate::fixture::{Bench, GNB, N3, N6};
use crate::graph::NodeId;
use packet::ethernet::{self, MacAddress};

fn usual(bench: &Bench) -> u64 {
    bench.worker.counters().nodes[NodeId::Verdict as usize].packets
}

fn unusual(bench: &Bench) -> u64 {
    bench.worker.counters().nodes[NodeId::EthernetOutput as usize].packets
}

#[test]
fn packets_leave_by_the_short_way_as_by_the_long_one() {
    let mut bench = Bench::new();
    for (port, out, frame) in [(N6, N3, downlink(1, 80)), (N6, N3, downlink(2, 80)), (N3, N6, uplink(2, 80))]
    {
        bench.sent(out);
        let mut frames = Vec::new();
        for _ in 0..4 {
            bench.receive(port, &frame);
            // Who watches sees the long way.
            let mut hops = Vec::new();
            let watched = frames.is_empty().then_some(&mut hops);
            bench.worker.turn_traced(bench.now_ns, watched);
            frames.extend(bench.sent(out));
        }
        assert_eq!(frames.len(), 4, "{:?}", bench.worker.counters().drops);
        assert!(frames.iter().all(|sent| *sent == frames[0]), "{frames:02x?}");
    }
    assert!(usual(&bench) >= 6 && unusual(&bench) > 0, "{} and {}", usual(&bench), unusual(&bench));
}

#[test]
fn a_station_that_changes_its_ethernet_address_gets_the_next_packet_there() {
    let mut bench = Bench::new();
    for last in [1, 7, 9] {
        let mac = MacAddress([2, 0, 0, 0, 3, last]);
        bench.worker.know(N3 as u8, mac, GNB);
        for _ in 0..3 {
            bench.receive(N6, &to_user(1));
            bench.settle();
            assert_eq!(bench.sent(N3)[0][..6], mac.0);
        }
    }
}

#[test]
fn a_station_is_asked_again_while_packets_flow() {
    let mut bench = Bench::new();
    let mut asked = 0;
    for _ in 0..40 {
        bench.now_ns += 1_000_000_000;
        bench.receive(N6, &to_user(1));
        bench.settle();
        let sent = bench.sent(N3);
        let requests = sent.iter().filter(|frame| frame[12..14] == ethernet::ARP.to_be_bytes()).count();
        assert_eq!(sent.len() - requests, 1, "the packet goes all the same");
        asked += requests;
    }
    assert!((5..=11).contains(&asked), "asked {asked} times in the ten seconds after thirty");
    assert_eq!(super::drops(&bench, DropReason::NeighbourUnresolved), 0);
}

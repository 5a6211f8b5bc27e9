//! Frames between user planes (N9): from tunnel to tunnel, as an uplink classifier and an anchor carry them (TS 23.501
//! 5.6.4.2 and 5.6.10.2).

use super::ethernet::{frame, in_tunnel};
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, N6E, ethernet, with_ethernet};
use packet::gtpu::{self, Message};
use rules::{
    EthernetFilter, EthernetPdi, FTeid, Far, FarId, Interface, MacFilter, MacRange, OuterHeaderCreation, Pdi,
    Pdr, PdrId, Rules, Teid,
};
use std::net::Ipv4Addr;

const SESSION: u64 = 120;
const STATION: [u8; 6] = [2, 0, 0, 0, 10, 1];
const HOST: [u8; 6] = [2, 0, 0, 0, 12, 1];
/// In the network of the classifier itself.
const NEAR: [u8; 6] = [2, 0, 0, 0, 12, 99];
/// The anchor's end of N9, as the classifier is told, and the classifier's.
const ANCHOR: OuterHeaderCreation =
    OuterHeaderCreation::gtpu(Teid(0xff + SESSION as u32), std::net::IpAddr::V4(Ipv4Addr::new(10, 50, 0, 1)));
const BACK: Teid = Teid(0x900);
const N6_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 2);

/// A session whose frames go on to the anchor, and come back from there; but those for [`NEAR`] leave here.
fn classifier() -> Rules {
    let mut rules = ethernet(SESSION);
    for pdr in rules.pdrs.iter_mut().filter(|pdr| pdr.pdi.source_interface == Interface::Core) {
        pdr.pdi.f_teid = Some(FTeid { teid: BACK, address: N6_ADDRESS.into() });
        pdr.outer_header_removal = true;
    }
    rules.fars[0].forwarding.as_mut().unwrap().outer_header_creation = Some(ANCHOR);
    let destination = Some(MacRange::one(NEAR));
    let near =
        EthernetFilter { macs: vec![MacFilter { source: None, destination }], ..EthernetFilter::default() };
    let ethernet = Some(Box::new(EthernetPdi { filters: vec![near] }));
    let up = rules.pdrs[0].clone();
    let pdi = Pdi { ethernet, ..up.pdi.clone() };
    rules.pdrs.push(Pdr { id: PdrId(30), precedence: 20, pdi, far: FarId(9), ..up });
    let mut out = Far { id: FarId(9), ..rules.fars[0].clone() };
    out.forwarding.as_mut().unwrap().outer_header_creation = None;
    rules.fars.push(out);
    rules
}

fn bench(rules: Rules) -> Bench {
    let mut bench = Bench::over(&with_ethernet());
    bench.put(SESSION, 1, rules);
    let notices = bench.settle();
    assert!(matches!(notices[..], [dplink::Notice::Applied { .. }, ..]), "{notices:?}");
    bench
}

fn send(bench: &mut Bench, port: usize, frame: &[u8]) {
    bench.receive(port, frame);
    bench.now_ns += 1_000;
    bench.worker.turn(bench.now_ns);
    assert!(bench.worker.books().balanced(), "{:?}", bench.worker.books());
}

/// What is in the one tunnel packet that was sent: to whom, and with what TEID.
fn taken_out(bench: &mut Bench, port: usize) -> (Ipv4Addr, Teid, Vec<u8>) {
    let [sent] = &bench.sent(port)[..] else {
        panic!("one packet: {:?}", bench.worker.counters().named_drops())
    };
    let to = Ipv4Addr::from(<[u8; 4]>::try_from(&sent[30..34]).unwrap());
    let message = Message::parse(&sent[42..]).unwrap();
    (to, Teid(message.teid), sent[42 + message.header_length..].to_vec())
}

/// A packet of N9 to the classifier's port of the core.
fn back(teid: Teid, frame: &[u8]) -> Vec<u8> {
    let mut g_pdu = vec![0; 8];
    assert_eq!(gtpu::encapsulated_length(None), g_pdu.len());
    g_pdu.extend(frame);
    gtpu::write_g_pdu(&mut g_pdu, teid.0, None, frame.len()).unwrap();
    let mut all = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    all.resize(14 + 20 + 8, 0);
    let ip = packet::ipv4::Header::new([10, 50, 0, 1].into(), N6_ADDRESS, 17, 8 + g_pdu.len()).unwrap();
    ip.write(&mut all[14..]).unwrap();
    packet::udp::Header::new(gtpu::PORT, gtpu::PORT, g_pdu.len()).unwrap().write(&mut all[34..]).unwrap();
    all.extend(g_pdu);
    all
}

/// Up by the classifier and the anchor into the network, and back.
#[test]
fn a_frame_goes_by_two_user_planes_as_it_is_and_its_answer_comes_back() {
    let (mut first, mut anchor) = (bench(classifier()), bench(ethernet(SESSION)));
    let tagged = [&HOST[..], &STATION, &[0x81, 0, 0x20, 5], &[0x88, 0x92], &[7; 42]].concat();
    for question in [frame(STATION, HOST), tagged] {
        send(&mut first, N3, &in_tunnel(SESSION, &question));
        let (to, teid, carried) = taken_out(&mut first, N6);
        assert_eq!((to, teid), (Ipv4Addr::new(10, 50, 0, 1), ANCHOR.teid().unwrap()));
        assert_eq!(carried, question, "not an octet of it is changed");
        send(&mut anchor, N3, &in_tunnel(SESSION, &carried));
        assert_eq!(anchor.sent(N6E), [question]);
        let answer = frame(HOST, STATION);
        send(&mut anchor, N6E, &answer);
        let (_, _, carried) = taken_out(&mut anchor, N3);
        assert_eq!(carried, answer);
        send(&mut first, N6, &back(BACK, &carried));
        let (to, teid, carried) = taken_out(&mut first, N3);
        assert_eq!((to, teid), (crate::fixture::GNB, Teid(0x1ff + SESSION as u32)));
        assert_eq!(carried, answer);
    }
}

/// Filters hold both ways, and decide which of the networks a frame is for.
#[test]
fn a_classifier_parts_frames_by_their_filters() {
    let mut bench = bench(classifier());
    send(&mut bench, N3, &in_tunnel(SESSION, &frame(STATION, NEAR)));
    assert_eq!((bench.sent(N6E).len(), bench.sent(N6).len()), (1, 0));
    send(&mut bench, N3, &in_tunnel(SESSION, &frame(STATION, HOST)));
    assert_eq!((bench.sent(N6E).len(), bench.sent(N6).len()), (0, 1));
    // EtherType 0x88b5 is dropped, from either side.
    let blocked = |from: [u8; 6], to: [u8; 6]| [&to[..], &from, &[0x88, 0xb5], &[7; 46]].concat();
    send(&mut bench, N3, &in_tunnel(SESSION, &blocked(STATION, HOST)));
    send(&mut bench, N6, &back(BACK, &blocked(HOST, STATION)));
    assert_eq!(bench.worker.counters().drops[DropReason::FarDrop as usize], 2);
    assert!(bench.sent(N3).is_empty() && bench.sent(N6).is_empty());
}

/// A tunnel is known at the address of its port alone.
#[test]
fn frames_of_n9_have_to_come_where_their_tunnel_ends() {
    let mut bench = bench(classifier());
    send(&mut bench, N6, &back(Teid(BACK.0 + 1), &frame(HOST, STATION)));
    assert!(bench.sent(N3).is_empty());
    send(&mut bench, N6, &back(BACK, &frame(HOST, STATION)));
    assert_eq!(bench.sent(N3).len(), 1);
}

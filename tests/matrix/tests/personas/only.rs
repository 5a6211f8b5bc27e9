//! What only one of them does.

use crate::bench::{Bench, OTHER_RADIO, RADIO, SERVER, SERVER_PORT, UE};
use crate::packets::assert_same;
use crate::persona::{FREE5GC_QUOTA, OAI, OAI_LATER, UPLINK_CLASSIFIER};
use dataplane::PortConfig;
use matrix::frames::{from_network, g_pdu, packet_of, tunnelled};
use matrix::{N3, N6, UserPlane, node_config, plane_config};
use packet::ethernet::MacAddress;
use packet::tcp::{Made, Segment, flag};
use packet::{FiveTuple, protocol};
use ran::Tunnel;
use ran::smf::{Branch, Change, Event, Input};
use rules::Teid;
use std::net::Ipv4Addr;

/// A network beside the user plane, or behind another anchor, and a server in it.
const NETWORK: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 70, 0, 0), 24);
const NEAR: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 70, 0, 5), 5000);
const ANCHOR: Tunnel = Tunnel { teid: Teid(0x61), address: Ipv4Addr::new(10, 50, 0, 8) };
/// Where its packets come in.
const FROM_ANCHOR: u32 = 0x0020_0001;
const PORTAL: &str = "http://portal.example/welcome";

/// free5GC's uplink classifier: an intermediate UPF, all of whose packets go to an anchor (N9) but those for one network, which
/// go to another anchor, or out there (N6). The filter is written either way round, as its releases do.
#[test]
fn an_uplink_classifier_leads_packets_for_a_network_another_way() {
    for (beyond, is_turned) in [(None, false), (None, true), (Some(ANCHOR), false), (Some(ANCHOR), true)] {
        let mut bench = Bench::up(&UPLINK_CLASSIFIER, None);
        bench.both_ways_pass(RADIO);
        assert!(bench.change(Change::Branch(Branch { network: NETWORK, beyond, is_turned })));
        for _ in 0..3 {
            near_passes(&mut bench, beyond);
            bench.both_ways_pass(RADIO);
        }
        assert!(bench.change(Change::EndBranch));
        let packet = bench.packet_up(NEAR);
        let left = bench.radio_sends(RADIO.address, (bench.uplink(), bench.persona.qfi), &packet);
        assert_same(&left, &packet);
        bench.both_ways_pass(RADIO);
    }
}

/// Up and down by the branch.
fn near_passes(bench: &mut Bench<'_>, beyond: Option<Tunnel>) {
    let up = bench.packet_up(NEAR);
    bench.plane.receive(N3, &g_pdu(N3, RADIO.address, (bench.uplink(), bench.persona.qfi), &up));
    bench.plane.settle();
    let [left] = &bench.plane.sent(N6)[..] else { panic!("one packet") };
    let inner = match beyond {
        Some(anchor) => {
            let left = tunnelled(left);
            assert_eq!((left.to, left.teid), (anchor.address, anchor.teid.0));
            left.inner.unwrap()
        }
        None => packet_of(left),
    };
    assert_same(&[inner], &up);
    let down = bench.packet_down(NEAR);
    let frame = match beyond {
        Some(anchor) => g_pdu(N6, anchor.address, (FROM_ANCHOR, None), &down),
        None => from_network(N6, &down),
    };
    bench.plane.receive(N6, &frame);
    bench.plane.settle();
    let sent = bench.radios();
    bench.is_for(&sent, RADIO, &down);
}

/// free5GC's URRs, which it creates in each modification, and removes in each once they are removed; its PDRs name them all the
/// time.
#[test]
fn urrs_are_created_and_removed_over_and_over() {
    let mut bench = Bench::up(&FREE5GC_QUOTA, Some(1_000_000));
    bench.both_ways_pass(RADIO);
    for radio in [OTHER_RADIO, RADIO] {
        assert!(bench.change(Change::Handover(radio)));
        bench.radios();
        bench.both_ways_pass(radio);
    }
    assert!(bench.change(Change::EndCharging));
    bench.is_billed();
    assert!(!bench.change(Change::EndCharging));
    for radio in [OTHER_RADIO, RADIO] {
        assert!(bench.change(Change::Handover(radio)));
        bench.radios();
        bench.both_ways_pass(radio);
    }
}

/// OAI's BAR, which it makes each time, and its rules for users who sleep.
#[test]
fn a_user_sleeps_again_and_again() {
    for persona in [&OAI, &OAI_LATER] {
        let mut bench = Bench::up(persona, None);
        for _ in 0..3 {
            bench.feed(Input::Sleep(0));
            assert!(bench.saw(&Event::Asleep(0)), "{:?}", bench.events);
            let packet = bench.packet_down((SERVER, SERVER_PORT));
            let sent = bench.network_sends(&packet);
            assert!(bench.saw(&Event::Paged(0)) && bench.saw(&Event::Awake(0)), "{:?}", bench.events);
            bench.is_for(&sent, RADIO, &packet);
            bench.both_ways_pass(RADIO);
        }
    }
}

/// OAI's redirection: a URL in the uplink FAR's forwarding parameters, towards the core.
#[test]
fn requests_of_a_redirected_user_are_answered_with_the_portal() {
    let plane = UserPlane::over(node_config(), plane_config());
    let mut bench = Bench::over(&OAI, plane, |session| session.portal = Some(PORTAL.to_owned())).started();
    let accepted = says(&mut bench, flag::SYN, (5_000, 0), b"");
    assert_eq!(accepted.0, flag::SYN | flag::ACK);
    let next = (5_001, accepted.1 + 1);
    let request = b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n";
    let (_, _, text) = says(&mut bench, flag::ACK | flag::PSH, next, request);
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("HTTP/1.1 302 Found\r\n"), "{text}");
    assert!(text.contains(&format!("\r\nLocation: {PORTAL}\r\n")), "{text}");
    assert!(bench.plane.worker.books().balanced());
}

/// A segment of the user's; the one that comes back: flags, number, payload. No server hears of it.
fn says(
    bench: &mut Bench<'_>,
    flags: u8,
    (sequence, acknowledgement): (u32, u32),
    payload: &[u8],
) -> (u8, u32, Vec<u8>) {
    let address = |address: Ipv4Addr| u128::from(address.to_bits()) << 96;
    let flow = FiveTuple {
        source: address(UE),
        destination: address(SERVER),
        source_port: 41_000,
        destination_port: 80,
        protocol: protocol::TCP,
        version: 4,
        ..FiveTuple::default()
    };
    let mut bytes = [0; 1_500];
    let made = Made { flags, sequence, acknowledgement, timestamps: None, payload };
    let length = made.write(&flow, &mut bytes).unwrap();
    let left = bench.radio_sends(RADIO.address, (bench.uplink(), bench.persona.qfi), &bytes[..length]);
    assert_eq!(left, Vec::<Vec<u8>>::new(), "the server heard of it");
    let [sent] = &bench.radios()[..] else { panic!("one segment") };
    assert_eq!((sent.to, sent.teid), (RADIO.address, RADIO.teid.0));
    let ip = sent.inner.clone().unwrap();
    let found = FiveTuple::parse(&ip).unwrap();
    let segment = Segment::parse(&ip[found.upper..found.total]).unwrap();
    (segment.flags(), segment.sequence(), segment.payload().to_vec())
}

/// OAI's Ethernet PDU session: frames pass as they are, those of the Ethertype that its filters name.
#[test]
fn frames_of_an_ethernet_session_pass_by_its_filters() {
    const STATION: [u8; 6] = [2, 0, 0, 0, 10, 1];
    const HOST: [u8; 6] = [2, 0, 0, 0, 12, 1];
    let mut bench = Bench::over(&OAI, with_ethernet(), |session| session.ethernet = true).started();
    let frame = |from: [u8; 6], to: [u8; 6], ethertype: u16| {
        let packet = matrix::frames::datagram((UE, 9_000), (SERVER, SERVER_PORT), b"in a frame");
        [&to[..], &from, &ethertype.to_be_bytes(), &packet].concat()
    };
    for (ethertype, passes) in [(0x0800, true), (0x88b5, false)] {
        let up = frame(STATION, HOST, ethertype);
        bench.plane.receive(N3, &g_pdu(N3, RADIO.address, (bench.uplink(), bench.persona.qfi), &up));
        bench.plane.settle();
        let expected: Vec<Vec<u8>> = Some(up).filter(|_| passes).into_iter().collect();
        assert_eq!(bench.plane.sent(N6E), expected, "up, {ethertype:x}");
        let down = frame(HOST, STATION, ethertype);
        bench.plane.receive(N6E, &down);
        bench.plane.settle();
        let sent = bench.radios();
        assert_eq!(sent.len(), usize::from(passes), "down, {ethertype:x}");
        for sent in sent {
            assert_eq!((sent.to, sent.teid, sent.inner), (RADIO.address, RADIO.teid.0, Some(down.clone())));
            assert_eq!(sent.flow, bench.flow_of(bench.persona.qfi));
        }
    }
    assert!(bench.plane.worker.books().balanced());
}

/// The port of the Ethernet data network.
const N6E: usize = 2;

fn with_ethernet() -> UserPlane {
    let mut plane = plane_config();
    let n6e = PortConfig {
        name: "n6e".to_owned(),
        device: "net_n6e".to_owned(),
        mac: MacAddress([2, 0, 0, 0, 7, 2]),
        address: "0.0.0.0/32".parse().unwrap(),
        ethernet: true,
        ..plane.ports[N6].clone()
    };
    plane.ports.push(n6e);
    UserPlane::over(node_config(), plane)
}

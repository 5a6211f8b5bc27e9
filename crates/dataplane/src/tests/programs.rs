//! Traffic of real programs, replayed: every flow is billed to the service it is labelled with, as much as was forwarded.
//!
//! The end-to-end test `programs` makes the captures, with `ANCHORLINE_CAPTURES=crates/dpi/golden`. Each service has a server
//! address of its own there, of which no rule knows: the label.

use super::redirect::tunnelled;
use crate::content::ContentRules;
use crate::fixture::{Bench, N3, N6, config, rules};
use dplink::{Command, Notice};
use packet::ethernet::MacAddress;
use packet::{FiveTuple, ethernet, gtpu, ipv4, protocol, udp};
use pcap_file::pcap::PcapReader;
use rules::{ApplicationId, PdrId, Rules, Seid, Urr, UrrId};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

const PROGRAMS: &[u8] = include_bytes!("../../../dpi/golden/programs.pcap");
const CHROMIUM: &[u8] = include_bytes!("../../../dpi/golden/chromium.pcap");

/// The last octet of a service's address, and the condition by which its flows are known.
const SERVICES: [(u8, &str); 10] = [
    (11, "host=http.example"),
    (12, "host=tls12.example"),
    (13, "host=tls13.example"),
    (14, "host=h2.example"),
    (15, "host=h2c.example"),
    (16, "host=h3.example"),
    (17, "layer=dns"),
    (18, "host=page.example"),
    (19, "host=page-h2.example"),
    (20, "host=page-h3.example"),
];
/// Counts what is of no service.
const OTHER: u32 = 1;
const USER: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);

/// Bytes up and down, by URR.
type Ledger = BTreeMap<u32, (u64, u64)>;

fn content() -> ContentRules {
    let line = |(number, what): &(u8, &str)| {
        format!("id={number} precedence={number} rating-group={number} application=service-{number} {what}\n")
    };
    let text: String = SERVICES.iter().map(line).collect();
    ContentRules::new(1, dpi::rule_file::read_lines(&text).unwrap().compile().unwrap(), None).unwrap()
}

/// Session 1, in any QoS flow, with a URR for each service and one for the rest.
fn with_services() -> Rules {
    let mut rules = rules(1);
    let plain = rules.pdrs.clone();
    rules.pdrs.iter_mut().for_each(|pdr| (pdr.precedence, pdr.urrs) = (1_000, vec![UrrId(OTHER)].into()));
    for (number, _) in SERVICES {
        for (pdr, offset) in plain.iter().zip([0, 100]) {
            let mut pdr = pdr.clone();
            (pdr.id, pdr.urrs) = (PdrId(u16::from(number) + offset), vec![UrrId(number.into())].into());
            pdr.pdi.application = ApplicationId::new(&format!("service-{number}"));
            rules.pdrs.push(pdr);
        }
    }
    rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.qfis.clear());
    let ids = SERVICES.iter().map(|(number, _)| u32::from(*number)).chain([OTHER]);
    rules.urrs = ids.map(|id| Urr { id: UrrId(id), ..Urr::default() }).collect();
    rules
}

fn bench() -> Bench {
    let mut config = config();
    (config.limits.inspections, config.limits.flows) = (64, 4_096);
    (config.limits.pdrs, config.limits.neighbours) = (64, 64);
    let mut bench = Bench::over(&config);
    for (number, _) in SERVICES {
        let address = Ipv4Addr::new(10, 50, 0, number);
        bench.worker.know(N6 as u8, MacAddress([2, 0, 0, 0, 6, number]), address);
    }
    bench.put(1, 1, with_services());
    bench.engine.load(content());
    let notices = bench.settle();
    assert!(matches!(notices[..], [Notice::Applied { .. }, Notice::ContentLoaded { .. }]), "{notices:?}");
    bench
}

/// Under which URR a user's packet is to be, by its label: the server's address. Messages of ICMP are of no service.
fn label(packet: &[u8], uplink: bool) -> u32 {
    let tuple = FiveTuple::parse(packet).unwrap().tuple;
    let server = if uplink { tuple.destination_address() } else { tuple.source_address() };
    let IpAddr::V4(server) = server else { panic!("{server}") };
    let [.., number] = server.octets();
    let is_one = SERVICES.iter().any(|(of, _)| *of == number) && tuple.protocol != protocol::ICMP;
    if is_one { number.into() } else { OTHER }
}

/// Adds what left the worker: users' packets, not those that look for neighbours or tell of an error.
fn add_sent(bench: &mut Bench, ledger: &mut Ledger) {
    for frame in bench.sent(N6) {
        let packet = &frame[ethernet::LENGTH..];
        if ipv4::Packet::parse(packet).is_ok_and(|packet| packet.source() == USER) {
            ledger.entry(label(packet, true)).or_default().0 += packet.len() as u64;
        }
    }
    for frame in bench.sent(N3) {
        let message = &frame[ethernet::LENGTH + ipv4::LENGTH + udp::LENGTH..];
        let packet = &message[gtpu::Message::parse(message).unwrap().header_length..];
        ledger.entry(label(packet, false)).or_default().1 += packet.len() as u64;
    }
}

fn billed(bench: &mut Bench) -> Ledger {
    let command = Command::QueryUsage { session: Seid(1), urrs: vec![], token: 7, is_reported: false };
    bench.engine.handle(command).unwrap();
    let told = bench.settle().into_iter().find_map(|notice| match notice {
        Notice::Usage { counts, .. } => Some(counts),
        _ => None,
    });
    let used = told.unwrap().into_iter().filter(|counts| counts.uplink_packets + counts.downlink_packets > 0);
    used.map(|counts| (counts.urr.0, (counts.uplink_bytes, counts.downlink_bytes))).collect()
}

/// What is billed, which is what was forwarded.
fn replay(capture: &[u8]) -> Ledger {
    let mut bench = bench();
    let mut forwarded = Ledger::new();
    let mut reader = PcapReader::new(capture).unwrap();
    while let Some(packet) = reader.next_packet().map(Result::unwrap) {
        let ip = ipv4::Packet::parse(&packet.data[ethernet::LENGTH..]).unwrap();
        let whole = &packet.data[ethernet::LENGTH..][..ip.total_length()];
        if ip.source() == USER {
            bench.receive(N3, &tunnelled(1, whole));
        } else {
            let header = [2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
            bench.receive(N6, &[&header, whole].concat());
        }
        bench.now_ns += 100_000;
        bench.worker.turn(bench.now_ns);
        add_sent(&mut bench, &mut forwarded);
    }
    assert!(bench.worker.books().balanced());
    let billed = billed(&mut bench);
    assert_eq!(billed, forwarded, "URR: bytes up and down");
    billed
}

#[test]
fn programs_are_billed_as_labelled_to_the_byte() {
    let billed: Vec<u32> = replay(PROGRAMS).into_keys().collect();
    assert_eq!(billed, [OTHER, 11, 12, 13, 14, 15, 16, 17]);
}

/// Its ClientHello is of several packets, its pieces out of order, and it greases what it can (RFC 8701).
#[test]
fn chromium_is_billed_as_labelled_to_the_byte() {
    let billed: Vec<u32> = replay(CHROMIUM).into_keys().filter(|urr| *urr != OTHER).collect();
    assert_eq!(billed, [17, 18, 19, 20]);
}

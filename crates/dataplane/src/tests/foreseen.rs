//! What is said beforehand of the first packet of a flow whose session asks for applications.

use super::content::content;
use super::drops;
use super::observe::{explain, question};
use super::redirect::{USER_FIRST, flow, made, tunnelled, up};
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, SERVED, served};
use dplink::{ExplainedApplication, Outcome, Question};
use packet::tcp::flag;
use packet::{FiveTuple, ipv4, protocol, udp};
use rules::PdrId;

/// A port that is blocked, and a host that is.
const RULES: &str = "id=1 precedence=1 rating-group=1 application=blocked port=7015\n\
                     id=2 precedence=2 rating-group=1 application=blocked network=203.0.113.81/32\n";
/// Hosts: one that is blocked, and one that is not.
const BLOCKED: [u8; 4] = [203, 0, 113, 81];
const OTHER: [u8; 4] = [203, 0, 113, 80];
/// The user's port.
const PORT: u16 = 40_000;

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.put(SERVED, 1, served());
    let rules = content(RULES, 1, &bench);
    bench.engine.load(rules);
    bench.settle();
    bench
}

/// Without a payload.
fn first_packet(number: u8, remote: [u8; 4], port: u16) -> Vec<u8> {
    if number == protocol::TCP {
        let flow = FiveTuple {
            source_port: PORT,
            destination: u128::from(u32::from_be_bytes(remote)) << 96,
            destination_port: port,
            ..flow(SERVED)
        };
        return up(SERVED, &flow, &made(flag::SYN, (USER_FIRST - 1, 0), b""));
    }
    let mut packet = vec![0; 28];
    let header = ipv4::Header::new([10, 60, 0, SERVED as u8].into(), remote.into(), number, 8).unwrap();
    header.write(&mut packet).unwrap();
    if number == protocol::UDP {
        udp::Header::new(PORT, port, 0).unwrap().write(&mut packet[20..]).unwrap();
    }
    tunnelled(SERVED, &packet)
}

/// What is decided by addresses, ports and protocol is so from the first packet on; what may say more goes as before it is known.
#[test]
fn an_explanation_goes_by_what_decides_of_a_flows_first_packet() {
    let by_address = |name: Option<&str>| ExplainedApplication::ByAddress(name.map(str::to_owned));
    let blocked = || (by_address(Some("blocked")), PdrId(3));
    let of_none = || (by_address(None), PdrId(1));
    let unknown = || (ExplainedApplication::Unknown, PdrId(1));
    for ((number, remote, port), (application, pdr)) in [
        ((protocol::UDP, OTHER, 7_015), blocked()),
        ((protocol::UDP, OTHER, 7_000), of_none()),
        ((protocol::UDP, BLOCKED, 7_000), blocked()),
        ((protocol::ICMP, BLOCKED, 0), blocked()),
        ((protocol::ICMP, OTHER, 0), of_none()),
        // A lookup, whatever it asks for.
        ((protocol::UDP, BLOCKED, 53), blocked()),
        // QUIC, and a connection, begin with something else.
        ((protocol::UDP, BLOCKED, 443), unknown()),
        ((protocol::TCP, OTHER, 7_015), unknown()),
    ] {
        let mut bench = bench();
        let ports = protocol::has_ports(number).then_some((PORT, port));
        let asked = Question {
            protocol: number,
            ports,
            remote: remote.into(),
            ..question([10, 60, 0, SERVED as u8], false)
        };
        let said = explain(&mut bench, asked.clone());
        let case = format!("protocol {number} to {remote:?}:{port}");
        assert_eq!((said.application.clone(), said.pdr), (Some(application), Some(pdr)), "{case}");
        assert_eq!(explain(&mut bench, asked), said, "{case}: asking changes nothing");
        bench.receive(N3, &first_packet(number, remote, port));
        bench.settle();
        let dropped = Outcome::Dropped { reason: DropReason::FarDrop.name().to_owned() };
        let seen = match (bench.sent(N6).len(), drops(&bench, DropReason::FarDrop)) {
            (1, 0) => Outcome::Sent,
            (0, 1) => dropped,
            other => panic!("{case}: {other:?}"),
        };
        assert_eq!(said.outcome, seen, "{case}");
    }
}

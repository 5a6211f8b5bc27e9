//! What a FAR does besides forwarding it does to the packets of its application, and to no others.

use super::redirect::{SERVER_FIRST, USER_FIRST, bench_with, flow, made, up};
use crate::fixture::{Bench, N3, N6, SERVED, served};
use packet::tcp::flag;
use packet::{FiveTuple, ipv4};
use rules::{ApplyAction, ForwardingParameters, Interface, OuterHeaderCreation, Rules, Teid};

const DSCP: u8 = 46;
/// Ethernet, IPv4, UDP, GTP-U.
const TUNNEL: usize = 14 + 20 + 8 + 8;

/// The application "blocked" is marked on its way up, and copied to a collector.
fn marked_and_copied() -> Rules {
    let mut rules = served();
    let Some(far) = rules.fars.last_mut() else { panic!("the application has a FAR") };
    far.apply_action = ApplyAction::Forward;
    far.forwarding.as_mut().unwrap().dscp = Some(DSCP);
    let collector = OuterHeaderCreation::gtpu(Teid(0x999), [10, 50, 0, 1].into());
    far.duplicating = true;
    far.duplicates = vec![ForwardingParameters {
        instance: rules::Instance::DEFAULT,
        destination_interface: Interface::Core,
        outer_header_creation: Some(collector),
        dscp: None,
        policy: None,
    }];
    rules
}

/// What leaves for the core when the user asks for a host; the marks of plain packets, and how many are in tunnels.
fn ask(bench: &mut Bench, flow: &FiveTuple, host: &str) -> (Vec<u8>, usize) {
    let get = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let (mut marks, mut copies) = (vec![], 0);
    let segments = [
        made(flag::SYN, (USER_FIRST - 1, 0), b""),
        made(flag::ACK | flag::PSH, (USER_FIRST, SERVER_FIRST), get.as_bytes()),
        made(flag::ACK, (USER_FIRST + get.len() as u32, SERVER_FIRST), b""),
    ];
    for segment in &segments {
        bench.receive(N3, &up(SERVED, flow, segment));
        bench.worker.turn(bench.now_ns);
        for frame in bench.sent(N6) {
            let ip = ipv4::Packet::parse(&frame[14..]).unwrap();
            match ip.protocol() {
                packet::protocol::TCP => marks.push(ip.tos() >> 2),
                _ => {
                    let inner = FiveTuple::parse(&frame[TUNNEL..]).unwrap().tuple;
                    assert_eq!((inner.source, inner.destination), (flow.source, flow.destination));
                    copies += 1;
                }
            }
        }
    }
    (marks, copies)
}

#[test]
fn an_application_is_marked_and_copied_and_others_are_not() {
    let mut bench = bench_with(SERVED, marked_and_copied());
    let first = flow(SERVED);
    // The handshake goes before it is known what it is for.
    assert_eq!(ask(&mut bench, &first, "www.blocked.example"), (vec![0, DSCP, DSCP], 2));
    let second = FiveTuple { source_port: first.source_port + 1, ..first };
    assert_eq!(ask(&mut bench, &second, "www.example"), (vec![0, 0, 0], 0));
    assert!(bench.worker.books().balanced());
}

//! Error Indications (TS 29.281 7.3.1): who is heard that says so of a tunnel, and who is told.

use super::spoofing::{LIAR, bench, datagram};
use crate::config::Config;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config};
use dplink::{Command, Event, Notice};
use packet::{ipv4, udp};
use rules::Interface;
use std::net::IpAddr;

/// The frame with an Error Indication to a port of ours: no base station is behind the data network.
fn indication(port: usize, peer: [u8; 4]) -> Vec<u8> {
    let (last, interface) = if port == N3 { (3, 30) } else { (6, 50) };
    let mut frame = vec![2, 0, 0, 0, last, 2, 2, 0, 0, 0, last, 1, 8, 0];
    let mut message = [0; packet::gtpu::TunnelError::LENGTH_MAX];
    let error = packet::gtpu::TunnelError {
        teid: 0x203,
        address: IpAddr::from(peer),
        udp_port: None,
        recovery_time_stamp: None,
    };
    let length = error.write(&mut message).unwrap();
    let mut inner = vec![0; 28];
    ipv4::Header::new([10, interface, 0, 1].into(), [10, interface, 0, 2].into(), 17, 8 + length)
        .unwrap()
        .write(&mut inner)
        .unwrap();
    udp::Header::new(2_152, 2_152, length).unwrap().write(&mut inner[20..]).unwrap();
    frame.extend(inner);
    frame.extend(&message[..length]);
    frame
}

#[test]
fn who_is_no_peer_s_neighbour_takes_no_tunnel_away() {
    let mut bench = bench();
    let mut told = |port: usize, peer| {
        bench.receive(port, &indication(port, peer));
        let notices = bench.settle();
        let events = notices.into_iter().filter_map(|notice| match notice {
            Notice::Event(Event::ErrorIndication { towards, .. }) => Some(towards),
            _ => None,
        });
        events.collect::<Vec<_>>()
    };
    // The base station's, on the wire of N3.
    assert_eq!(told(N3, [10, 30, 0, 1]), [None]);
    assert_eq!(told(N6, [10, 30, 0, 1]), []);
    // Behind the default route of N6, where another gateway may be, and no base station.
    assert_eq!(told(N6, [198, 51, 100, 1]), [Some(Interface::Core)]);
}

/// What comes to a port of the data network and is nobody's does not use up what base stations are told with.
#[test]
fn each_side_has_its_own_error_indications() {
    let mut bench = bench();
    let mut unknown = datagram(LIAR, [10, 60, 0, LIAR as u8], 4_000, b"hello");
    unknown[46..50].copy_from_slice(&0x7777_u32.to_be_bytes());
    let mut beyond = unknown.clone();
    beyond[..14].copy_from_slice(&[2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0]);
    ipv4::Header::new([10, 50, 0, 1].into(), [10, 50, 0, 2].into(), 17, beyond.len() - 34)
        .unwrap()
        .write(&mut beyond[14..])
        .unwrap();
    for _ in 0..4 {
        bench.receive(N6, &beyond);
    }
    bench.settle();
    bench.receive(N3, &unknown);
    bench.settle();
    assert_eq!((bench.sent(N6).len(), bench.sent(N3).len()), (2, 1));
}

/// A data plane that comes back has no sessions until it is told of them, and what queued at its ports meanwhile is of some of those.
#[test]
fn no_tunnel_is_said_to_lead_nowhere_before_it_is_known_which_there_are() {
    let mut bench = Bench::over(&Config { awaits_sessions: true, ..config() });
    let mut answers = |is_known: bool| {
        if is_known {
            bench.engine.handle(Command::ResyncBegin { recovery_time_stamp: 7 }).unwrap();
            bench.engine.handle(Command::ResyncEnd).unwrap();
            bench.settle();
        }
        bench.receive(N3, &datagram(LIAR, [10, 60, 0, LIAR as u8], 4_000, b"hello"));
        bench.settle();
        let dropped = bench.worker.counters().drops[DropReason::NoTunnel as usize];
        (bench.sent(N3).len(), dropped)
    };
    assert_eq!(answers(false), (0, 1));
    assert_eq!(answers(true), (1, 1));
}

//! The bench itself: what the node says reaches the data path and back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

use matrix::frames::{datagram, from_network, g_pdu, packet_of, tunnelled};
use matrix::{N3, N6, US, UserPlane};
use ran::Tunnel;
use ran::config::FTeidMode;
use ran::smf::{Dialect, Event, Input, Output, PduSession, Settings, Smf};
use rules::{Qfi, Teid};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

const SMF: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 9);
const GNB: Tunnel = Tunnel { teid: Teid(7), address: Ipv4Addr::new(10, 30, 0, 1) };
const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);

fn smf() -> Smf {
    let settings = Settings {
        node_id: pfcp::NodeId::Ipv4(SMF),
        address: SMF,
        upf: SocketAddrV4::new(US, pfcp::PORT),
        f_teid: FTeidMode::Choose,
        dialect: Dialect::Plain,
        recovery_time_stamp: 3_900_000_000,
        wait: Duration::from_secs(30),
    };
    let session = PduSession {
        ue: UE,
        ue6: None,
        qfi: Qfi::new(9).unwrap(),
        downlink: GNB,
        beyond: None,
        mbr: None,
        report_after_bytes: None,
        ethernet: false,
        predefined_rules: vec![],
    };
    Smf::new(settings, vec![session])
}

/// Control plane and user plane talk until neither has anything to say.
fn talk(smf: &mut Smf, plane: &mut UserPlane, first: Input<'_>) -> Vec<Event> {
    let (mut events, mut outputs) = (vec![], VecDeque::from(smf.handle(first, plane.now)));
    while let Some(output) = outputs.pop_front() {
        match output {
            Output::Event(event) => events.push(event),
            Output::Send(_, bytes) => {
                let from = SocketAddr::new(SMF.into(), pfcp::PORT);
                for (_, answer) in plane.datagram(from, &bytes) {
                    let from = SocketAddrV4::new(US, pfcp::PORT);
                    outputs.extend(smf.handle(Input::Datagram(from, &answer), plane.now));
                }
            }
        }
    }
    events
}

fn uplink_teid(events: &[Event]) -> u32 {
    let up = events.iter().find_map(|event| match event {
        Event::SessionUp(0, tunnel) => Some(tunnel.teid.0),
        _ => None,
    });
    up.expect("the session is up")
}

/// The user's packets pass, either way.
fn passes(plane: &mut UserPlane, teid: u32) {
    let up = datagram((UE, 40_000), (SERVER, 53), b"question");
    plane.receive(N3, &g_pdu(N3, GNB.address, (teid, Some(9)), &up));
    let down = datagram((SERVER, 53), (UE, 40_000), b"answer");
    plane.receive(N6, &from_network(N6, &down));
    plane.settle();
    let left: Vec<_> = plane.sent(N6).iter().map(|frame| packet_of(frame)).collect();
    assert_eq!((left.len(), &left[0][28..]), (1, &up[28..]));
    let [frame] = &plane.sent(N3)[..] else { panic!("one frame") };
    let got = tunnelled(frame);
    assert_eq!((got.to, got.teid, got.flow), (GNB.address, 7, Some((9, false))));
    assert_eq!(got.inner.unwrap()[28..], down[28..]);
    assert!(plane.worker.books().balanced());
}

#[test]
fn a_session_passes_packets_through_both_processes_lives() {
    let (mut smf, mut plane) = (smf(), UserPlane::new());
    let teid = uplink_teid(&talk(&mut smf, &mut plane, Input::Start));
    passes(&mut plane, teid);
    plane.restart_node();
    passes(&mut plane, teid);
    plane.restart_data_path();
    passes(&mut plane, teid);
    plane.pass(Duration::from_secs(1));
    assert_eq!(plane.node.sessions(), 1);
    assert_eq!(talk(&mut smf, &mut plane, Input::Stop), [Event::SessionDeleted(0), Event::Stopped]);
    let left = (plane.node.sessions(), plane.node.tunnels(), plane.saved.associations.len());
    assert_eq!(left, (0, 0, 0));
}

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

/// A user's session: who made it, the user's address in it, where its downlink leads, and its QoS flow, of 5G.
#[derive(Clone, Copy)]
struct Made {
    by: Ipv4Addr,
    dialect: Dialect,
    ue: Ipv4Addr,
    downlink: Tunnel,
    qfi: Option<u8>,
}

const PLAIN: Made = Made {
    by: Ipv4Addr::new(10, 40, 0, 9),
    dialect: Dialect::Plain,
    ue: Ipv4Addr::new(10, 60, 0, 1),
    downlink: Tunnel { teid: Teid(7), address: Ipv4Addr::new(10, 30, 0, 1) },
    qfi: Some(9),
};
/// Of the same user, by a PGW-C, over an SGW-U.
const OF_4G: Made = Made {
    by: Ipv4Addr::new(10, 40, 0, 8),
    dialect: Dialect::Open5gsPgwC,
    ue: Ipv4Addr::new(10, 60, 0, 2),
    downlink: Tunnel { teid: Teid(8), address: Ipv4Addr::new(10, 30, 0, 3) },
    qfi: None,
};
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);

fn control_plane(made: Made) -> Smf {
    let settings = Settings {
        node_id: pfcp::NodeId::Ipv4(made.by),
        address: made.by,
        upf: SocketAddrV4::new(US, pfcp::PORT),
        f_teid: FTeidMode::Choose,
        n9: None,
        dialect: made.dialect,
        recovery_time_stamp: 3_900_000_000,
        wait: Duration::from_secs(30),
    };
    let session = PduSession {
        ue: made.ue,
        asks_for_address: false,
        ue6: None,
        qfi: Qfi::new(made.qfi.unwrap_or(9)).unwrap(),
        downlink: made.downlink,
        beyond: None,
        portal: None,
        mbr: None,
        report_after_bytes: None,
        ethernet: false,
        predefined_rules: vec![],
    };
    Smf::new(settings, vec![session])
}

/// Control plane and user plane talk until neither has anything to say.
fn talk(smf: &mut Smf, plane: &mut UserPlane, by: Ipv4Addr, first: Input<'_>) -> Vec<Event> {
    let (mut events, mut outputs) = (vec![], VecDeque::from(smf.handle(first, plane.now)));
    while let Some(output) = outputs.pop_front() {
        match output {
            Output::Event(event) => events.push(event),
            Output::Send(_, bytes) => {
                let from = SocketAddr::new(by.into(), pfcp::PORT);
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
fn passes(plane: &mut UserPlane, Made { ue, downlink, qfi, .. }: Made, teid: u32) {
    let up = datagram((ue, 40_000), (SERVER, 53), b"question");
    plane.receive(N3, &g_pdu(N3, downlink.address, (teid, qfi), &up));
    let down = datagram((SERVER, 53), (ue, 40_000), b"answer");
    plane.receive(N6, &from_network(N6, &down));
    plane.settle();
    let left: Vec<_> = plane.sent(N6).iter().map(|frame| packet_of(frame)).collect();
    assert_eq!((left.len(), &left[0][28..]), (1, &up[28..]));
    let [frame] = &plane.sent(N3)[..] else { panic!("one frame") };
    let got = tunnelled(frame);
    let flow = qfi.map(|qfi| (qfi, false));
    assert_eq!((got.to, got.teid, got.flow), (downlink.address, downlink.teid.0, flow));
    assert_eq!(got.inner.unwrap()[28..], down[28..]);
    assert!(plane.worker.books().balanced());
}

#[test]
fn a_session_passes_packets_through_both_processes_lives() {
    let (mut smf, mut plane) = (control_plane(PLAIN), UserPlane::new());
    let teid = uplink_teid(&talk(&mut smf, &mut plane, PLAIN.by, Input::Start));
    passes(&mut plane, PLAIN, teid);
    plane.restart_node();
    passes(&mut plane, PLAIN, teid);
    plane.restart_data_path();
    passes(&mut plane, PLAIN, teid);
    plane.pass(Duration::from_secs(1));
    assert_eq!(plane.node.sessions(), 1);
    let over = talk(&mut smf, &mut plane, PLAIN.by, Input::Stop);
    assert_eq!(over, [Event::SessionDeleted(0), Event::Stopped]);
    let left = (plane.node.sessions(), plane.node.tunnels(), plane.saved.associations.len());
    assert_eq!(left, (0, 0, 0));
}

/// One user plane serves a user who has both at once, by control planes that know nothing of each other.
#[test]
fn a_pdu_session_and_a_pdn_connection_of_one_user_pass_side_by_side() {
    let mut plane = UserPlane::new();
    let of_5g = Made { dialect: Dialect::Open5gs, ..PLAIN };
    let mut smf = control_plane(of_5g);
    let mut pgw_c = control_plane(OF_4G);
    let teid_5g = uplink_teid(&talk(&mut smf, &mut plane, of_5g.by, Input::Start));
    let teid_4g = uplink_teid(&talk(&mut pgw_c, &mut plane, OF_4G.by, Input::Start));
    assert_ne!(teid_5g, teid_4g);
    for _ in 0..3 {
        passes(&mut plane, of_5g, teid_5g);
        passes(&mut plane, OF_4G, teid_4g);
    }
    // The user leaves 5G; 4G goes on.
    talk(&mut smf, &mut plane, of_5g.by, Input::Stop);
    passes(&mut plane, OF_4G, teid_4g);
    assert_eq!(plane.node.sessions(), 1);
    talk(&mut pgw_c, &mut plane, OF_4G.by, Input::Stop);
    assert_eq!((plane.node.sessions(), plane.node.tunnels()), (0, 0));
}

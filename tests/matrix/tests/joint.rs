//! The bench itself: what the node says reaches the data path and back; and several control planes that one node serves at once,
//! for one user.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

use matrix::frames::{datagram, from_network, g_pdu, packet_of, tunnelled};
use matrix::{N3, N3_ADDRESS, N6, N6_ADDRESS, US, UserPlane, node_config, plane_config};
use ran::Tunnel;
use ran::config::FTeidMode;
use ran::smf::{Change, Dialect, Endpoint, Event, Input, Output, PduSession, Settings, Smf};
use rules::{Qfi, Teid};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

/// A user's session: who made it, the user's address in it, where its downlink leads, and its uplink where that is another
/// gateway, and its QoS flow, of 5G.
#[derive(Clone, Copy)]
struct Made {
    by: Ipv4Addr,
    dialect: Dialect,
    ue: Ipv4Addr,
    downlink: Tunnel,
    beyond: Option<Tunnel>,
    qfi: Option<u8>,
    f_teid: FTeidMode,
}

const PLAIN: Made = Made {
    by: Ipv4Addr::new(10, 40, 0, 9),
    dialect: Dialect::Plain,
    ue: Ipv4Addr::new(10, 60, 0, 1),
    downlink: Tunnel { teid: Teid(7), address: Ipv4Addr::new(10, 30, 0, 1) },
    beyond: None,
    qfi: Some(9),
    f_teid: FTeidMode::Choose,
};
/// Of the same user, by a PGW-C, over an SGW-U.
const OF_4G: Made = Made {
    by: Ipv4Addr::new(10, 40, 0, 8),
    dialect: Dialect::Open5gsPgwC,
    ue: Ipv4Addr::new(10, 60, 0, 2),
    downlink: Tunnel { teid: Teid(8), address: Ipv4Addr::new(10, 30, 0, 3) },
    qfi: None,
    ..PLAIN
};
/// The other half of it, by an SGW-C.
const OF_SGW: Made = Made {
    by: Ipv4Addr::new(10, 40, 0, 7),
    dialect: Dialect::Open5gsSgwC,
    downlink: Tunnel { teid: Teid(9), address: Ipv4Addr::new(10, 30, 0, 4) },
    ..OF_4G
};
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);

fn control_plane(made: Made) -> Smf {
    let settings = Settings {
        node_id: pfcp::NodeId::Ipv4(made.by),
        address: made.by,
        upf: SocketAddrV4::new(US, pfcp::PORT),
        f_teid: made.f_teid,
        n9: Some(N6_ADDRESS),
        dialect: made.dialect,
        awaits_setup: false,
        recovery_time_stamp: 3_900_000_000,
        wait: Duration::from_secs(30),
    };
    let session = PduSession {
        ue: made.ue,
        asks_for_address: false,
        ue6: None,
        qfi: Qfi::new(made.qfi.unwrap_or(9)).unwrap(),
        downlink: made.downlink,
        beyond: made.beyond,
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

/// What the user plane has to say by itself is said to a control plane.
fn hear(smf: &mut Smf, plane: &mut UserPlane, by: Ipv4Addr) -> Vec<Event> {
    let told = plane.told();
    let from = SocketAddrV4::new(US, pfcp::PORT);
    told.iter().flat_map(|(_, bytes)| talk(smf, plane, by, Input::Datagram(from, bytes))).collect()
}

fn uplink(events: &[Event]) -> Tunnel {
    let up = events.iter().find_map(|event| match event {
        Event::SessionUp(0, tunnel) => Some(*tunnel),
        _ => None,
    });
    up.unwrap_or_else(|| panic!("the session is not up: {events:?}"))
}

fn uplink_teid(events: &[Event]) -> u32 {
    uplink(events).teid.0
}

/// Where radio and data network are, by wires of the bench and by whose addresses are ours there.
#[derive(Clone, Copy)]
struct Ends {
    wires: (usize, usize),
    radio: usize,
}

const TWO_PORTS: Ends = Ends { wires: (N3, N6), radio: N3 };
/// Both at the port to the data network, the only one.
const ONE_PORT: Ends = Ends { wires: (0, 0), radio: N6 };

/// The user's packets pass, either way.
fn passes(plane: &mut UserPlane, made: Made, teid: u32) {
    passes_between(plane, made, (teid, TWO_PORTS));
}

fn passes_between(plane: &mut UserPlane, made: Made, (teid, ends): (u32, Ends)) {
    goes_up(plane, made, (teid, ends));
    come_down(plane, made, ends);
    plane.settle();
    comes_out(plane, made, ends);
    assert!(plane.worker.books().balanced());
}

fn goes_up(plane: &mut UserPlane, Made { ue, downlink, qfi, .. }: Made, (teid, ends): (u32, Ends)) {
    let up = datagram((ue, 40_000), (SERVER, 53), b"question");
    plane.receive(ends.wires.0, &g_pdu(ends.radio, downlink.address, (teid, qfi), &up));
    plane.settle();
    let left: Vec<_> = plane.sent(ends.wires.1).iter().map(|frame| packet_of(frame)).collect();
    assert_eq!(left.iter().map(|packet| &packet[28..]).collect::<Vec<_>>(), [&up[28..]]);
}

const ANSWER: &[u8] = b"answer";

fn come_down(plane: &mut UserPlane, made: Made, ends: Ends) {
    let down = datagram((SERVER, 53), (made.ue, 40_000), ANSWER);
    plane.receive(ends.wires.1, &from_network(N6, &down));
}

fn comes_out(plane: &mut UserPlane, Made { downlink, qfi, .. }: Made, ends: Ends) {
    let sent = plane.sent(ends.wires.0);
    let [frame] = &sent[..] else { panic!("{} frames", sent.len()) };
    let got = tunnelled(frame);
    let flow = qfi.map(|qfi| (qfi, false));
    assert_eq!((got.to, got.teid, got.flow), (downlink.address, downlink.teid.0, flow));
    assert_eq!(got.inner.unwrap()[28..], *ANSWER);
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

fn plane_of(ends: Ends) -> UserPlane {
    let (mut node, mut plane) = (node_config(), plane_config());
    if ends.radio == N6 {
        node.gtpu.remove(N3);
        plane.ports.remove(N3);
    }
    UserPlane::over(node, plane)
}

/// Sxa and Sxb of one user end in one node (TS 23.401 4.3.15a, "combined SGW/PGW"), and the control planes know nothing of that: each
/// gives its S5 end as the user plane chose it, and no wire leads from the one to the other.
#[test]
fn one_node_is_sgw_u_and_pgw_u_of_one_user() {
    for ends in [TWO_PORTS, ONE_PORT] {
        let mut plane = plane_of(ends);
        let at_enb = |made: Made| match ends.radio {
            N6 => Made { downlink: Tunnel { address: Ipv4Addr::new(10, 50, 0, 4), ..made.downlink }, ..made },
            _ => made,
        };
        // Another SGW-U has the user before.
        let mut pgw_c = control_plane(OF_4G);
        let s5_of_pgw = uplink(&talk(&mut pgw_c, &mut plane, OF_4G.by, Input::Start));
        let of_sgw = at_enb(Made { beyond: Some(s5_of_pgw), ..OF_SGW });
        let mut sgw_c = control_plane(of_sgw);
        let teid = uplink_teid(&talk(&mut sgw_c, &mut plane, of_sgw.by, Input::Start));
        let s5 = sgw_c.endpoint(0, Endpoint::Core).unwrap();
        let relocated = Change::Handover(s5);
        let events = talk(&mut pgw_c, &mut plane, OF_4G.by, Input::Change(0, relocated));
        assert_eq!(events, [Event::Changed(0, relocated)]);
        (0..2).for_each(|wire| drop((wire < plane.wires.len()).then(|| plane.sent(wire))));
        for _ in 0..3 {
            passes_between(&mut plane, of_sgw, (teid, ends));
        }
        sleeps_and_wakes((&mut sgw_c, &mut plane), of_sgw, ends);
        passes_between(&mut plane, of_sgw, (teid, ends));
        // The PGW-C forgets the user; the SGW-C hears that its tunnel leads nowhere.
        talk(&mut pgw_c, &mut plane, OF_4G.by, Input::Stop);
        let up = datagram((of_sgw.ue, 40_000), (SERVER, 53), b"question");
        plane.receive(ends.wires.0, &g_pdu(ends.radio, of_sgw.downlink.address, (teid, None), &up));
        plane.settle();
        let events = hear(&mut sgw_c, &mut plane, of_sgw.by);
        assert_eq!(events, [Event::ErrorIndicationReport(0)]);
        talk(&mut sgw_c, &mut plane, of_sgw.by, Input::Stop);
        assert_eq!((plane.node.sessions(), plane.node.tunnels()), (0, 0));
    }
}

/// The SGW-U keeps what the PGW-U sent it, and the SGW-C has the user paged.
fn sleeps_and_wakes((sgw_c, plane): (&mut Smf, &mut UserPlane), made: Made, ends: Ends) {
    let asleep = talk(sgw_c, plane, made.by, Input::Sleep(0));
    assert_eq!(asleep, [Event::Asleep(0)]);
    come_down(plane, made, ends);
    plane.settle();
    assert_eq!(plane.sent(ends.wires.0).len(), 0);
    assert_eq!(hear(sgw_c, plane, made.by), [Event::Paged(0), Event::Awake(0)]);
    plane.settle();
    comes_out(plane, made, ends);
}

/// The same of an intermediate UPF and its anchor, of one SMF's two N4 (TS 23.501 5.6.4.2): it picks both ends of N9.
#[test]
fn one_node_is_intermediate_upf_and_anchor_of_one_user() {
    let n9 = Tunnel { teid: Teid(0x0010_0001), address: N6_ADDRESS };
    let at = FTeidMode::Explicit;
    let anchored = Made { dialect: Dialect::Free5gcPsa, downlink: n9, f_teid: at(N6_ADDRESS), ..PLAIN };
    let mut plane = UserPlane::new();
    let mut of_anchor = control_plane(anchored);
    let beyond = uplink(&talk(&mut of_anchor, &mut plane, anchored.by, Input::Start));
    assert_eq!(beyond.address, N6_ADDRESS);
    let by = Ipv4Addr::new(10, 40, 0, 6);
    let dialect = Dialect::Free5gcIUpf;
    let between = Made { by, dialect, beyond: Some(beyond), f_teid: at(N3_ADDRESS), ..PLAIN };
    let mut of_i_upf = control_plane(between);
    let teid = uplink_teid(&talk(&mut of_i_upf, &mut plane, by, Input::Start));
    for _ in 0..3 {
        passes(&mut plane, between, teid);
    }
    plane.restart_data_path();
    passes(&mut plane, between, teid);
}

//! Between gateways: an SGW-U, which has tunnels on both sides, at a port each or at one, and what it passes on besides.

use crate::Config;
use crate::fixture::{Bench, GNB, N3, N6, config, rules};
use crate::graph::{Hop, NodeId};
use dplink::{Command, Event, Notice, UsageCounts};
use packet::gtpu::{self, Extension, PduSession, extension_type};
use packet::{ipv4, protocol, udp};
use rules::{Direction, FTeid, Interface, OuterHeaderCreation, Qfi, Rules, Seid, Teid, Urr, UrrId};
use std::net::Ipv4Addr;

/// The PGW-U: beside the router, or beside the eNB.
const PGW_AT: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 50, 0, 1), Ipv4Addr::new(10, 30, 0, 9)];
const PGW_MAC_AT: [[u8; 6]; 2] = [[2, 0, 0, 0, 6, 1], [2, 0, 0, 0, 3, 9]];

/// Tunnels of ours towards the eNB and the PGW-U, and theirs.
const S1: u32 = 0x100;
const S5: u32 = 0x300;
const ENB_TEID: u32 = 0x200;
const PGW_TEID: u32 = 0x500;

const USER: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);

/// An SGW-U and where its S5 is served.
struct Gateway {
    bench: Bench,
    s5: usize,
}

/// The session of one bearer, counted both ways.
fn relay(s5: usize) -> Rules {
    let mut rules = rules(1);
    let ours = if s5 == N3 { Ipv4Addr::new(10, 30, 0, 2) } else { Ipv4Addr::new(10, 50, 0, 2) };
    let peer = PGW_AT[usize::from(s5 == N3)];
    rules.qers.clear();
    rules.urrs = vec![Urr { id: UrrId(1), ..Urr::default() }];
    for pdr in &mut rules.pdrs {
        (pdr.qers, pdr.urrs) = (vec![].into(), vec![UrrId(1)].into());
        (pdr.pdi.ue_ipv4, pdr.pdi.qfis) = (None, vec![]);
    }
    rules.pdrs[1].pdi.f_teid = Some(FTeid { teid: Teid(S5), address: ours.into() });
    rules.pdrs[1].outer_header_removal = true;
    let up = rules.fars[0].forwarding.as_mut().unwrap();
    up.destination_interface = Interface::Core;
    up.outer_header_creation = Some(OuterHeaderCreation::gtpu(Teid(PGW_TEID), peer.into()));
    rules
}

fn gtpu_message(message_type: u8, teid: u32, qfi: Option<u8>, inner: &[u8]) -> Vec<u8> {
    let extension: Vec<u8> = qfi.map_or(vec![], |qfi| vec![0, 0, 0, 0x85, 1, 0x10, qfi, 0]);
    let flags = if qfi.is_some() { 0x34 } else { 0x30 };
    let length = (extension.len() + inner.len()) as u16;
    [&[flags, message_type][..], &length.to_be_bytes(), &teid.to_be_bytes(), &extension, inner].concat()
}

/// The user's packet, one way or the other.
fn users(direction: Direction) -> Vec<u8> {
    let mut inner = vec![0; 28];
    let (from, to, ports) = match direction {
        Direction::Uplink => (USER, SERVER, (40000, 53)),
        Direction::Downlink => (SERVER, USER, (53, 40000)),
    };
    ipv4::Header::new(from, to, protocol::UDP, 8).unwrap().write(&mut inner).unwrap();
    udp::Header::new(ports.0, ports.1, 0).unwrap().write(&mut inner[20..]).unwrap();
    inner
}

/// One of some to the user, each of a flow of its own.
fn numbered(number: u8) -> Vec<u8> {
    let mut inner = users(Direction::Downlink);
    inner[21] = number;
    inner
}

impl Gateway {
    fn new(s5: usize) -> Self {
        let one_arm = Config { ports: vec![config().ports[N3].clone()], routes: vec![], ..config() };
        Self::over(&if s5 == N3 { one_arm } else { config() }, s5)
    }

    fn over(config: &Config, s5: usize) -> Self {
        let mut bench = Bench::over(config);
        bench.worker.know(N3 as u8, packet::ethernet::MacAddress([2, 0, 0, 0, 3, 1]), GNB);
        let is_one_arm = usize::from(s5 == N3);
        let mac = packet::ethernet::MacAddress(PGW_MAC_AT[is_one_arm]);
        bench.worker.know(s5 as u8, mac, PGW_AT[is_one_arm]);
        bench.put(1, 1, relay(s5));
        assert_eq!(bench.settle().len(), 1);
        Self { bench, s5 }
    }

    /// A frame from the eNB or the PGW-U.
    fn frame(&self, direction: Direction, message: &[u8]) -> (usize, Vec<u8>) {
        let is_one_arm = usize::from(self.s5 == N3);
        let (port, mac, from) = match direction {
            Direction::Uplink => (N3, [2, 0, 0, 0, 3, 1], GNB),
            Direction::Downlink => (self.s5, PGW_MAC_AT[is_one_arm], PGW_AT[is_one_arm]),
        };
        let (our_mac, ours) = match port {
            N3 => ([2, 0, 0, 0, 3, 2], Ipv4Addr::new(10, 30, 0, 2)),
            _ => ([2, 0, 0, 0, 6, 2], Ipv4Addr::new(10, 50, 0, 2)),
        };
        let mut frame = [&our_mac[..], &mac, &[8, 0]].concat();
        frame.resize(14 + 28, 0);
        let length = 8 + message.len();
        ipv4::Header::new(from, ours, protocol::UDP, length).unwrap().write(&mut frame[14..]).unwrap();
        udp::Header::new(gtpu::PORT, gtpu::PORT, message.len()).unwrap().write(&mut frame[34..]).unwrap();
        frame.extend(message);
        (port, frame)
    }

    fn g_pdu(&self, direction: Direction, qfi: Option<u8>) -> (usize, Vec<u8>) {
        let teid = if direction == Direction::Uplink { S1 } else { S5 };
        self.frame(direction, &gtpu_message(255, teid, qfi, &users(direction)))
    }

    fn end_marker(&self, direction: Direction, teid: u32) -> (usize, Vec<u8>) {
        self.frame(direction, &gtpu_message(254, teid, None, &[]))
    }

    fn usage(&mut self) -> UsageCounts {
        let command = Command::QueryUsage { session: Seid(1), urrs: vec![], token: 7, is_reported: true };
        self.bench.engine.handle(command).unwrap();
        match &self.bench.settle()[..] {
            [Notice::Usage { counts, .. }] => counts[0],
            other => panic!("{other:?}"),
        }
    }

    /// What leaves, from the GTP-U header on, by port, after all these came in at once; and the nodes they passed.
    fn pass(&mut self, frames: &[(usize, Vec<u8>)]) -> (Vec<(usize, Vec<u8>)>, Vec<NodeId>) {
        let mut hops: Vec<Hop> = Vec::new();
        frames.iter().for_each(|(port, frame)| self.bench.receive(*port, frame));
        self.bench.now_ns += 1_000;
        self.bench.worker.turn_traced(self.bench.now_ns, Some(&mut hops));
        assert!(self.bench.worker.books().balanced());
        let ports = 0..self.bench.wires.len();
        let sent = ports.flat_map(|port| self.bench.sent(port).into_iter().map(move |frame| (port, frame)));
        let sent = sent.map(|(port, frame)| (port, frame[42..].to_vec()));
        (sent.collect(), hops.iter().map(|hop| hop.node).collect())
    }
}

#[test]
fn both_ways_pass_an_sgw_with_one_port_or_two() {
    for s5 in [N3, N6] {
        let mut gateway = Gateway::new(s5);
        for turn in 0..3 {
            let ways = [(Direction::Uplink, s5, PGW_TEID), (Direction::Downlink, N3, ENB_TEID)];
            for (direction, port, teid) in ways {
                let frame = gateway.g_pdu(direction, None);
                let (sent, nodes) = gateway.pass(&[frame]);
                let expected = (port, gtpu_message(255, teid, None, &users(direction)));
                assert_eq!(sent, [expected], "S5 at port {s5}, {direction:?}, {nodes:?}");
                // Known flows go the short way.
                let short = [NodeId::UsualInput, NodeId::Flow, NodeId::Verdict];
                assert_eq!(nodes == short, turn > 0, "S5 at port {s5}, {direction:?}, {nodes:?}");
            }
        }
        let usage = gateway.usage();
        assert_eq!((usage.uplink_packets, usage.downlink_packets), (3, 3), "S5 at port {s5}");
        assert_eq!((usage.uplink_bytes, usage.downlink_bytes), (84, 84), "S5 at port {s5}");
    }
}

/// The eNB's port takes less than the PGW-U's: the tunnel's datagram is split, whatever the user's packet allows, and nobody
/// is told; the packet is counted once, as it is.
#[test]
fn a_packet_too_long_for_its_next_tunnel_goes_in_fragments() {
    let mut config = config();
    config.ports[N3].mtu = 600;
    let mut gateway = Gateway::over(&config, N6);
    let mut inner = vec![7; 1000];
    ipv4::Header::new(SERVER, USER, protocol::UDP, 980).unwrap().write(&mut inner).unwrap();
    udp::Header::new(53, 40000, 972).unwrap().write(&mut inner[20..]).unwrap();
    assert!(ipv4::Packet::parse(&inner).unwrap().dont_fragment());
    let mut names = Vec::new();
    for _ in 0..3 {
        let (port, frame) = gateway.frame(Direction::Downlink, &gtpu_message(255, S5, None, &inner));
        gateway.bench.receive(port, &frame);
        gateway.bench.now_ns += 1_000;
        gateway.bench.worker.turn(gateway.bench.now_ns);
        let sent = gateway.bench.sent(N3);
        let parts: Vec<_> = sent.iter().map(|frame| ipv4::Packet::parse(&frame[14..]).unwrap()).collect();
        let places = parts.iter().map(|part| (part.fragment_offset(), part.more_fragments()));
        assert_eq!(places.collect::<Vec<_>>(), [(0, true), (576, false)]);
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.payload()).copied().collect();
        assert_eq!(whole[8..], gtpu_message(255, ENB_TEID, None, &inner));
        names.extend(parts.iter().map(ipv4::Packet::identification));
    }
    assert!(names[0] == names[1] && names[2] == names[3] && names[4] == names[5], "{names:?}");
    assert!(names[0] != names[2] && names[2] != names[4] && names[0] != names[4], "{names:?}");
    let usage = gateway.usage();
    assert_eq!((usage.downlink_packets, usage.downlink_bytes), (3, 3_000));
    assert_eq!(gateway.bench.sent(N6).len(), 0, "nobody is told");
    // Without memory for all of them nothing leaves, and nothing is counted.
    gateway.bench.wires[N3].0.borrow_mut().buffers = Some(1);
    let frame = gateway.frame(Direction::Downlink, &gtpu_message(255, S5, None, &inner));
    assert_eq!(gateway.pass(&[frame]).0, []);
    assert_eq!(super::drops(&gateway.bench, crate::DropReason::NotSplit), 1);
    assert_eq!(gateway.usage().downlink_packets, 3);
}

#[test]
fn an_end_marker_goes_on_behind_the_packets_before_it_once() {
    for s5 in [N3, N6] {
        let mut gateway = Gateway::new(s5);
        let down = |gateway: &Gateway| gateway.g_pdu(Direction::Downlink, None);
        let end = gateway.end_marker(Direction::Downlink, S5);
        let frames = [down(&gateway), down(&gateway), end, gateway.end_marker(Direction::Downlink, 0x999)];
        for _ in 0..2 {
            let (sent, _) = gateway.pass(&frames);
            let packet = (N3, gtpu_message(255, ENB_TEID, None, &users(Direction::Downlink)));
            let end = (N3, gtpu_message(254, ENB_TEID, None, &[]));
            assert_eq!(sent, [packet.clone(), packet, end], "S5 at port {s5}");
        }
        let frame = gateway.end_marker(Direction::Uplink, S1);
        let (sent, _) = gateway.pass(&[frame]);
        assert_eq!(sent, [(s5, gtpu_message(254, PGW_TEID, None, &[]))]);
    }
}

/// The eNB tells its Ethernet address while its packets wait for it and others come, some before that in one vector and some behind.
#[test]
fn an_end_marker_is_the_last_of_its_tunnel_wherever_the_enb_tells_its_address() {
    let mut config = Config { ports: vec![config().ports[N3].clone()], routes: vec![], ..config() };
    config.limits.held_per_neighbour = 4;
    let (enb, ours) = ([2, 0, 0, 0, 3, 1], [2, 0, 0, 0, 3, 2]);
    let arp = [0, 1, 8, 0, 6, 4, 0, 2];
    let answer = [&ours[..], &enb, &[8, 6], &arp, &enb, &GNB.octets(), &ours, &[10, 30, 0, 2]].concat();
    for (earlier, before) in (0..=4).flat_map(|earlier| (earlier..=4).map(move |before| (earlier, before))) {
        let mut gateway = Gateway::over(&config, N3);
        // It is forgotten.
        gateway.bench.now_ns += 121_000_000_000;
        let mut frames: Vec<Vec<u8>> = (0..3)
            .map(|n| gateway.frame(Direction::Downlink, &gtpu_message(255, S5, None, &numbered(n))).1)
            .collect();
        frames.push(gateway.end_marker(Direction::Downlink, S5).1);
        frames.insert(before, answer.clone());
        for (number, frame) in frames.iter().enumerate() {
            if number == earlier {
                gateway.bench.worker.turn(gateway.bench.now_ns);
            }
            gateway.bench.receive(N3, frame);
        }
        gateway.bench.worker.turn(gateway.bench.now_ns);
        let sent = gateway.bench.sent(N3);
        let of_tunnel = sent.iter().filter(|frame| frame[12..14] == [8, 0]);
        let seen: Vec<(u8, Option<u8>)> =
            of_tunnel.map(|frame| (frame[43], frame.get(71).copied())).collect();
        let expected = [(255, Some(0)), (255, Some(1)), (255, Some(2)), (254, None)];
        assert_eq!(seen, expected, "{earlier} earlier, {before} before the address is told");
        assert!(gateway.bench.worker.books().balanced());
    }
}

/// A target that keeps packets, or leads out of all tunnels, has nobody to tell.
#[test]
fn an_end_marker_ends_where_the_tunnels_do() {
    let mut gateway = Gateway::new(N6);
    let mut plain = relay(N6);
    plain.fars[0].forwarding.as_mut().unwrap().outer_header_creation = None;
    plain.fars[1].apply_action = rules::ApplyAction::Buffer;
    gateway.bench.put(1, 2, plain);
    gateway.bench.settle();
    let frames = [gateway.end_marker(Direction::Uplink, S1), gateway.end_marker(Direction::Downlink, S5)];
    assert_eq!(gateway.pass(&frames).0, []);
    assert_eq!(gateway.bench.worker.books().consumed, 2);
}

#[test]
fn from_tunnel_to_tunnel_a_packet_stays_in_its_qos_flow_unless_a_qer_names_another() {
    let mut gateway = Gateway::new(N6);
    let qfi_of = |sent: Vec<(usize, Vec<u8>)>| (sent[0].1[0], sent[0].1[13], sent[0].1[14]);
    for _ in 0..2 {
        let frame = gateway.g_pdu(Direction::Uplink, Some(5));
        assert_eq!(qfi_of(gateway.pass(&[frame]).0), (0x34, 0x10, 5));
        let frame = gateway.g_pdu(Direction::Downlink, Some(6));
        assert_eq!(qfi_of(gateway.pass(&[frame]).0), (0x34, 0x00, 6));
    }
    let mut named = relay(N6);
    named.qers = rules(1).qers;
    named.qers[0].qfi = Qfi::new(9);
    named.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![named.qers[0].id].into());
    gateway.bench.put(1, 2, named);
    gateway.bench.settle();
    for _ in 0..2 {
        let frame = gateway.g_pdu(Direction::Uplink, Some(5));
        assert_eq!(qfi_of(gateway.pass(&[frame]).0), (0x34, 0x10, 9));
    }
}

/// What an intermediate UPF keeps for a user who sleeps has its QoS flow from the anchor's tunnel.
#[test]
fn the_control_plane_is_told_the_qos_flow_that_the_first_tunnel_names() {
    for named in [Some(6), None] {
        let mut gateway = Gateway::new(N6);
        let mut asleep = relay(N6);
        (asleep.fars[1].apply_action, asleep.fars[1].notify) = (rules::ApplyAction::Buffer, true);
        gateway.bench.put(1, 2, asleep);
        gateway.bench.settle();
        let (port, frame) = gateway.g_pdu(Direction::Downlink, named);
        gateway.bench.receive(port, &frame);
        let told = gateway.bench.settle();
        let expected = named.and_then(Qfi::new);
        assert!(
            matches!(told[..], [Notice::Event(Event::DownlinkData { qfi, .. })] if qfi == expected),
            "{told:?}"
        );
    }
}

/// As indirect forwarding in a handover has them: the source numbers what it has begun to send (TS 29.281 5.2.2.2).
#[test]
fn numbers_of_radio_nodes_go_on_from_tunnel_to_tunnel_beside_packets_without() {
    let mut gateway = Gateway::new(N6);
    let number =
        |octets: &'static [u8; 2]| Extension { kind: extension_type::PDCP_PDU_NUMBER, content: octets };
    let numbered = |octets| {
        let (user, mut message) = (users(Direction::Uplink), vec![0; 64]);
        let container = Extension { kind: extension_type::PDU_SESSION_CONTAINER, content: &[0x10, 5] };
        let extensions = [container, number(octets)];
        let length = gtpu::write_g_pdu_with(&mut message, S1, &extensions, user.len()).unwrap();
        [&message[..length], &user].concat()
    };
    for _ in 0..2 {
        let first = gateway.frame(Direction::Uplink, &numbered(b"ab"));
        let without = gateway.g_pdu(Direction::Uplink, Some(5));
        let second = gateway.frame(Direction::Uplink, &numbered(b"cd"));
        let sent = gateway.pass(&[first, without, second]).0;
        let read = |(_, message): &(usize, Vec<u8>)| {
            let header = gtpu::Message::parse(message).unwrap();
            let all = header.extensions(message).map(Result::unwrap);
            let numbers = all.filter(|extension| extension.kind == extension_type::PDCP_PDU_NUMBER);
            let numbers: Vec<Vec<u8>> = numbers.map(|number| number.content.to_vec()).collect();
            assert_eq!(message[header.header_length..], users(Direction::Uplink));
            (header.pdu_session, numbers)
        };
        let flow = Some(PduSession::uplink(5));
        let expected = [(flow, vec![b"ab".to_vec()]), (flow, vec![]), (flow, vec![b"cd".to_vec()])];
        assert_eq!(sent.iter().map(read).collect::<Vec<_>>(), expected);
    }
}

//! Two sessions of one user in one node, the tunnel between them from us to us: SGW-U and PGW-U, or an intermediate UPF and the
//! PDU session anchor.

use super::crew::Team;
use super::drops;
use crate::Config;
use crate::config::Echo;
use crate::counters::DropReason;
use crate::fixture::{Bench, GNB, N3, N6, config, rules};
use crate::graph::NodeId;
use crate::install::installation;
use crate::steering::Crew;
use dplink::{Command, Desired, Event, Notice, PathState, UsageCounts};
use packet::ethernet::MacAddress;
use packet::{gtpu, ipv4, protocol, udp};
use rules::*;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

const SGW: u64 = 1;
const PGW: u64 = 2;
/// Tunnels of ours: of the SGW-U towards the eNB and the PGW-U, and of the PGW-U; and the eNB's.
const S1: u32 = 0x100;
const S5: u32 = 0x300;
const S5_OF_PGW: u32 = 0x500;
const ENB_TEID: u32 = 0x200;

const N3_IP: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);
const N6_IP: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 2);
/// Beside the router, where there is one port.
const ENB_BESIDE: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 9);
const ENB_MAC: [u8; 6] = [2, 0, 0, 0, 3, 1];
const ROUTER_MAC: [u8; 6] = [2, 0, 0, 0, 6, 1];
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
const URR: UrrId = UrrId(1);

/// Where the node's tunnels end, and where the eNB is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Of S1-U and of the PGW-U's S5-U.
    access: Ipv4Addr,
    /// Of the SGW-U's S5-U.
    core: Ipv4Addr,
    enb: Ipv4Addr,
    /// The ports the radio and the data network are at.
    ports: (usize, usize),
}

const TWO_PORTS: Place = Place { access: N3_IP, core: N6_IP, enb: GNB, ports: (N3, N6) };
const ONE_PORT: Place = Place { access: N6_IP, core: N6_IP, enb: ENB_BESIDE, ports: (0, 0) };

fn config_of(place: Place) -> Config {
    match place.ports {
        (0, 0) => Config { ports: vec![config().ports[N6].clone()], ..config() },
        _ => config(),
    }
}

fn counted(mut rules: Rules) -> Rules {
    rules.qers.clear();
    rules.urrs = vec![Urr { id: URR, ..Urr::default() }];
    for pdr in &mut rules.pdrs {
        (pdr.qers, pdr.urrs, pdr.pdi.qfis) = (vec![].into(), vec![URR].into(), vec![]);
    }
    rules
}

fn f_teid(teid: u32, address: Ipv4Addr) -> Option<FTeid> {
    Some(FTeid { teid: Teid(teid), address: address.into() })
}

fn lead(far: &mut Far, to: Interface, teid: u32, address: Ipv4Addr) {
    let forwarding = far.forwarding.as_mut().unwrap();
    forwarding.destination_interface = to;
    let tunnel = OuterHeaderCreation::gtpu(Teid(teid), address.into());
    forwarding.outer_header_creation = Some(tunnel);
}

/// As an SGW-C says it: of the user it knows tunnels only.
fn sgw(place: Place) -> Rules {
    let mut rules = counted(rules(SGW));
    rules.pdrs.iter_mut().for_each(|pdr| (pdr.pdi.ue_ipv4, pdr.outer_header_removal) = (None, true));
    rules.pdrs[0].pdi.f_teid = f_teid(S1, place.access);
    rules.pdrs[1].pdi.f_teid = f_teid(S5, place.core);
    lead(&mut rules.fars[0], Interface::Core, S5_OF_PGW, place.access);
    lead(&mut rules.fars[1], Interface::Access, ENB_TEID, place.enb);
    rules
}

fn pgw(place: Place) -> Rules {
    let mut rules = counted(rules(SGW));
    rules.pdrs[0].pdi.f_teid = f_teid(S5_OF_PGW, place.access);
    lead(&mut rules.fars[1], Interface::Access, S5, place.core);
    rules
}

fn user(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 60, 0, number)
}

/// A packet between user and server with so many octets in its datagram.
fn packet_of(direction: Direction, (number, octets): (u8, usize)) -> Vec<u8> {
    let (from, to, ports) = match direction {
        Direction::Uplink => (user(number), SERVER, (40_000, 53)),
        Direction::Downlink => (SERVER, user(number), (53, 40_000)),
    };
    let mut bytes = vec![0; 28 + octets];
    ipv4::Header::new(from, to, protocol::UDP, 8 + octets).unwrap().write(&mut bytes).unwrap();
    udp::Header::new(ports.0, ports.1, octets).unwrap().write(&mut bytes[20..]).unwrap();
    bytes
}

fn gtpu_message(message_type: u8, teid: u32, inner: &[u8]) -> Vec<u8> {
    let length = (inner.len() as u16).to_be_bytes();
    [&[0x30, message_type][..], &length, &teid.to_be_bytes(), inner].concat()
}

/// A frame of the eNB.
fn from_enb(place: Place, message: &[u8]) -> Vec<u8> {
    let our_mac = if place.access == N3_IP { [2, 0, 0, 0, 3, 2] } else { [2, 0, 0, 0, 6, 2] };
    let mut frame = [&our_mac[..], &ENB_MAC, &[8, 0]].concat();
    frame.resize(14 + 28, 0);
    let (udp, length) = (udp::Header::new(gtpu::PORT, gtpu::PORT, message.len()), 8 + message.len());
    ipv4::Header::new(place.enb, place.access, protocol::UDP, length)
        .unwrap()
        .write(&mut frame[14..])
        .unwrap();
    udp.unwrap().write(&mut frame[34..]).unwrap();
    frame.extend(message);
    frame
}

fn up(place: Place, teid: u32, inner: &[u8]) -> Vec<u8> {
    from_enb(place, &gtpu_message(255, teid, inner))
}

/// A frame of the router.
fn down(inner: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 6, 2][..], &ROUTER_MAC, &[8, 0], inner].concat()
}

fn bench_of(config: &Config, place: Place) -> Bench {
    let mut bench = Bench::over(config);
    bench.worker.know(place.ports.0 as u8, MacAddress(ENB_MAC), place.enb);
    bench.worker.know(place.ports.1 as u8, MacAddress(ROUTER_MAC), Ipv4Addr::new(10, 50, 0, 1));
    bench.put(SGW, 1, sgw(place));
    bench.put(PGW, 1, pgw(place));
    assert_eq!(bench.settle().len(), 2);
    bench
}

fn bench(place: Place) -> Bench {
    bench_of(&config_of(place), place)
}

/// Frames that left after one came in, without Ethernet headers.
fn pass(bench: &mut Bench, port: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
    bench.receive(port, frame);
    bench.now_ns += 1_000;
    bench.worker.turn(bench.now_ns);
    let books = bench.worker.books();
    assert!(books.balanced(), "{books:?}");
    let ports = 0..bench.wires.len();
    let sent = ports.flat_map(|port| bench.sent(port).into_iter().map(move |frame| (port, frame)));
    sent.map(|(port, frame)| (port, frame[14..].to_vec())).collect()
}

fn usage(bench: &mut Bench, session: u64) -> UsageCounts {
    let command = Command::QueryUsage { session: Seid(session), urrs: vec![], token: 7, is_reported: true };
    bench.engine.handle(command).unwrap();
    match &bench.settle()[..] {
        [Notice::Usage { counts, .. }] => counts[0],
        other => panic!("{other:?}"),
    }
}

/// One router hop later.
fn routed(mut packet: Vec<u8>) -> Vec<u8> {
    ipv4::decrement_ttl(&mut packet).unwrap();
    packet
}

#[test]
fn both_ways_pass_both_sessions_and_are_counted_by_each() {
    for place in [TWO_PORTS, ONE_PORT] {
        let mut bench = bench(place);
        let (asked, told) = (packet_of(Direction::Uplink, (1, 0)), packet_of(Direction::Downlink, (1, 0)));
        let mut classified = 0;
        for turn in 0..4 {
            let sent = pass(&mut bench, place.ports.0, &up(place, S1, &asked));
            assert_eq!(sent, [(place.ports.1, routed(asked.clone()))], "{place:?}, turn {turn}");
            let sent = pass(&mut bench, place.ports.1, &down(&told));
            let [(port, packet)] = &sent[..] else { panic!("{sent:?}, {place:?}") };
            let expected = gtpu_message(255, ENB_TEID, &routed(told.clone()));
            assert_eq!((*port, &packet[28..]), (place.ports.0, &expected[..]), "{place:?}, turn {turn}");
            assert_eq!(packet[16..20], place.enb.octets());
            // Each session remembers its own way of the flow; neither takes the other's.
            let now = bench.worker.counters().nodes[NodeId::Classify as usize].packets;
            assert!(turn == 0 || now == classified, "{place:?}, turn {turn}: classified again");
            classified = now;
        }
        assert_eq!((classified, bench.worker.flows()), (4, 2), "{place:?}");
        for session in [SGW, PGW] {
            let usage = usage(&mut bench, session);
            let packets = (usage.uplink_packets, usage.downlink_packets);
            assert_eq!((packets, usage.uplink_bytes, usage.downlink_bytes), ((4, 4), 112, 112), "{session}");
        }
    }
}

/// An intermediate UPF and the anchor: the QoS flow goes through both.
/// Or what flows were found to be there would be forgotten whenever it does not forward for a while.
#[test]
fn a_session_is_between_tunnels_whatever_it_does_with_packets_now() {
    let is_between = |rules: Rules| {
        let config = config();
        let desired = Desired::new(Seid(1), 1, rules);
        let made = installation((&config.ports, &config.policies), desired, 0).unwrap();
        made.session.is_some_and(|session| session.is_between)
    };
    let dropping = |mut rules: Rules| {
        rules.fars.iter_mut().for_each(|far| far.apply_action = ApplyAction::Drop);
        rules
    };
    assert!(is_between(sgw(TWO_PORTS)));
    assert!(is_between(dropping(sgw(TWO_PORTS))));
    assert!(!is_between(pgw(TWO_PORTS)), "it has a user's address");
    let mut outwards = sgw(TWO_PORTS);
    lead(&mut outwards.fars[0], Interface::Core, S5_OF_PGW, SERVER);
    assert!(!is_between(outwards), "it leads elsewhere");
}

#[test]
fn a_qos_flow_stays_what_it_is() {
    let mut bench = bench(TWO_PORTS);
    let mut anchor = pgw(TWO_PORTS);
    anchor.qers = rules(SGW).qers;
    anchor.pdrs[0].pdi.qfis = Qfi::new(9).into_iter().collect();
    anchor.pdrs[1].qers = vec![anchor.qers[0].id].into();
    bench.put(PGW, 2, anchor);
    bench.settle();
    let (asked, told) = (packet_of(Direction::Uplink, (1, 0)), packet_of(Direction::Downlink, (1, 0)));
    let in_flow = |qfi| {
        let extension = [0, 0, 0, 0x85, 1, 0x10, qfi, 0];
        let length = (extension.len() + asked.len()) as u16;
        let header = [&[0x34, 255][..], &length.to_be_bytes(), &S1.to_be_bytes(), &extension].concat();
        from_enb(TWO_PORTS, &[header, asked.clone()].concat())
    };
    for _ in 0..2 {
        assert_eq!(pass(&mut bench, N3, &in_flow(9)), [(N6, routed(asked.clone()))]);
        assert_eq!(pass(&mut bench, N3, &in_flow(8)), []);
        let sent = pass(&mut bench, N6, &down(&told));
        assert_eq!(sent[0].1[36..44], [0, 0, 0, 0x85, 1, 0, 9, 0]);
    }
    assert_eq!(drops(&bench, DropReason::NoPdr), 2);
}

#[test]
fn the_second_session_polices_what_the_first_forwards() {
    for (shut, direction) in [(PGW, Direction::Uplink), (SGW, Direction::Downlink)] {
        let mut bench = bench(TWO_PORTS);
        let mut closed = if shut == PGW { pgw(TWO_PORTS) } else { sgw(TWO_PORTS) };
        closed.qers = rules(3).qers;
        closed.qers[0].uplink_gate = Gate::Closed;
        closed.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![closed.qers[0].id].into());
        bench.put(shut, 2, closed);
        bench.settle();
        let packet = packet_of(direction, (1, 0));
        let (port, frame) = match direction {
            Direction::Uplink => (N3, up(TWO_PORTS, S1, &packet)),
            Direction::Downlink => (N6, down(&packet)),
        };
        assert_eq!(pass(&mut bench, port, &frame), []);
        assert_eq!(drops(&bench, DropReason::GateClosed), 1, "{direction:?}");
    }
}

#[test]
fn end_markers_pass_both_sessions_behind_the_packets_before_them() {
    let mut bench = bench(TWO_PORTS);
    bench.receive(N6, &down(&packet_of(Direction::Downlink, (1, 0))));
    bench.worker.turn(bench.now_ns);
    // The PGW-U's tunnel moves to another SGW-U: the old one's last packet is the eNB's last packet, too.
    let mut moved = dplink::Desired::new(Seid(PGW), 2, pgw(TWO_PORTS));
    lead(&mut Arc::make_mut(&mut moved.rules).fars[1], Interface::Access, 0x77, GNB);
    moved.end_markers = vec![OuterHeaderCreation::gtpu(Teid(S5), N6_IP.into())];
    bench.engine.handle(Command::Put(moved)).unwrap();
    bench.settle();
    let sent: Vec<Vec<u8>> = bench.sent(N3).into_iter().map(|frame| frame[42..50].to_vec()).collect();
    let enb = ENB_TEID.to_be_bytes();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!((sent[0][1], &sent[0][4..], sent[1][1], &sent[1][4..]), (255, &enb[..], 254, &enb[..]));
    // Up, it ends where the tunnels do.
    let marker = from_enb(TWO_PORTS, &gtpu_message(254, S1, &[]));
    let consumed = bench.worker.books().consumed;
    assert_eq!(pass(&mut bench, N3, &marker), []);
    assert_eq!(bench.worker.books().consumed, consumed + 1);
    assert!(bench.worker.books().balanced());
}

/// What is no tunnel any more is told as any peer would: to who leads packets there, and not on a wire.
#[test]
fn a_tunnel_of_ours_that_is_gone_is_told_to_who_leads_there() {
    let mut bench = bench(TWO_PORTS);
    bench.engine.handle(Command::Delete { session: Seid(PGW) }).unwrap();
    bench.settle();
    let frame = up(TWO_PORTS, S1, &packet_of(Direction::Uplink, (1, 0)));
    let error = |teid, peer: IpAddr| Event::ErrorIndication { teid: Teid(teid), peer, towards: None };
    bench.receive(N3, &frame);
    assert_eq!(bench.settle(), [Notice::Event(error(S5_OF_PGW, N3_IP.into()))]);
    assert_eq!((bench.sent(N3), bench.sent(N6)), (vec![], vec![]));
    assert!(bench.worker.books().balanced());
}

/// Nobody outside says of tunnels between our own sessions that they are gone.
#[test]
fn an_error_indication_from_outside_about_a_tunnel_of_ours_is_not_heard() {
    let mut bench = bench(TWO_PORTS);
    for address in [N3_IP, N6_IP] {
        let elements = [&[16][..], &S5_OF_PGW.to_be_bytes(), &[133, 0, 4], &address.octets()].concat();
        let length = (4 + elements.len() as u16).to_be_bytes();
        let message = [&[0x32, 26][..], &length, &[0; 8], &elements].concat();
        bench.receive(N3, &from_enb(TWO_PORTS, &message));
    }
    assert_eq!(bench.settle(), []);
    assert_eq!(bench.worker.books().consumed, 2);
}

/// Each leads to the other: no packet goes round for ever.
#[test]
fn rules_that_lead_round_are_stopped_by_name() {
    let mut bench = bench(TWO_PORTS);
    let mut round = pgw(TWO_PORTS);
    lead(&mut round.fars[0], Interface::Core, S1, N3_IP);
    bench.put(PGW, 2, round);
    bench.settle();
    for _ in 0..300 {
        bench.receive(N3, &up(TWO_PORTS, S1, &packet_of(Direction::Uplink, (1, 0))));
    }
    bench.settle();
    assert_eq!(drops(&bench, DropReason::Looped), 300);
    assert!(bench.worker.books().balanced());
    assert_eq!((bench.sent(N3), bench.sent(N6)), (vec![], vec![]));
}

#[test]
fn we_do_not_ask_ourselves_whether_we_are_there() {
    let echo = Echo { period_ns: 60_000_000_000, t3_ns: 5_000_000_000, n3: 2 };
    let mut bench = bench_of(&Config { echo, ..config() }, TWO_PORTS);
    let mut asked = vec![];
    for _ in 0..200 {
        bench.now_ns += 1_000_000_000;
        bench.meet_neighbours();
        let told = bench.settle();
        let of_us = |notice: &&Notice| match notice {
            Notice::Event(Event::Path { remote, .. }) => *remote != IpAddr::from(GNB),
            _ => true,
        };
        assert_eq!(told.iter().find(of_us), None);
        let frames = bench.sent(N3).into_iter().chain(bench.sent(N6));
        asked.extend(frames.filter(|frame| frame[12..14] == [8, 0]).map(|frame| frame[30..34].to_vec()));
    }
    assert!(!asked.is_empty() && asked.iter().all(|address| *address == GNB.octets()), "{asked:?}");
    bench.engine.handle(Command::GetPeers { token: 3 }).unwrap();
    let notices = bench.settle();
    let [Notice::Peers { peers, .. }] = &notices[..] else { panic!("{notices:?}") };
    let ours = peers.iter().filter(|peer| peer.address != IpAddr::from(GNB));
    let ours: Vec<_> = ours.map(|peer| (peer.path, peer.tunnels, peer.last_answer_age_ms)).collect();
    assert_eq!(ours, [(PathState::Up, 1, None); 2]);
}

/// What fits is what leaves in the end, by the radio's port; no wire between the two counts.
#[test]
fn who_sends_too_much_hears_what_fits_the_radio() {
    let mut config = config();
    (config.ports[N3].mtu, config.ports[N6].mtu) = (1_436, 1_500);
    let mut bench = bench_of(&config, TWO_PORTS);
    let headers = 20 + 8 + 8;
    for _ in 0..2 {
        let fitting = packet_of(Direction::Downlink, (1, 1_400 - 28));
        let sent = pass(&mut bench, N6, &down(&fitting));
        assert_eq!(
            sent.iter().map(|(port, packet)| (*port, packet.len())).collect::<Vec<_>>(),
            [(N3, 1_400 + headers)]
        );
        let sent = pass(&mut bench, N6, &down(&packet_of(Direction::Downlink, (1, 1_401 - 28))));
        let [(N6, error)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((error[20], error[21], &error[26..28]), (3, 4, &1_400_u16.to_be_bytes()[..]));
    }
}

/// The SGW-U keeps packets for a user who sleeps, and they go on in order, before newer ones.
#[test]
fn the_first_of_two_keeps_packets_that_came_out_of_the_second() {
    let mut bench = bench(TWO_PORTS);
    let mut asleep = sgw(TWO_PORTS);
    (asleep.fars[1].apply_action, asleep.fars[1].notify) = (ApplyAction::Buffer, true);
    bench.put(SGW, 2, asleep);
    bench.settle();
    (1..=2).for_each(|octets| bench.receive(N6, &down(&packet_of(Direction::Downlink, (1, octets)))));
    let told = bench.settle();
    assert!(matches!(told[..], [Notice::Event(Event::DownlinkData { session: Seid(SGW), .. })]), "{told:?}");
    assert_eq!(bench.sent(N3), Vec::<Vec<u8>>::new());
    bench.put(SGW, 3, sgw(TWO_PORTS));
    bench.settle();
    let lengths: Vec<usize> = bench.sent(N3).iter().map(|frame| frame.len() - 14 - 36 - 28).collect();
    assert_eq!(lengths, [1, 2]);
    assert_eq!(usage(&mut bench, SGW).downlink_packets, 2);
    assert!(bench.worker.books().balanced());
}

/// So many users, each with both sessions, whose places are found by chance.
fn of_user(number: u8, mut rules: Rules) -> Rules {
    let more = u32::from(number) - 1;
    for pdr in &mut rules.pdrs {
        pdr.pdi.ue_ipv4 = pdr.pdi.ue_ipv4.map(|_| user(number));
        if let Some(f_teid) = &mut pdr.pdi.f_teid {
            f_teid.teid.0 += more;
        }
    }
    for far in &mut rules.fars {
        if let Some(tunnel) = &mut far.forwarding.as_mut().unwrap().outer_header_creation {
            let teid = tunnel.teid().unwrap().0 + more;
            tunnel.header = OuterHeader::Gtpu(Teid(teid));
        }
    }
    rules
}

#[test]
fn the_second_session_is_found_at_whichever_worker_it_is() {
    const USERS: u8 = 16;
    let mut config = config();
    (config.limits.sessions, config.limits.pdrs) = (64, 256);
    let mut team = Team::over(&config, &Crew::of(3));
    team.meet();
    for number in 1..=USERS {
        team.put(u64::from(number), 1, of_user(number, sgw(TWO_PORTS)));
        team.put(100 + u64::from(number), 1, of_user(number, pgw(TWO_PORTS)));
    }
    assert_eq!(team.settle().len(), 2 * usize::from(USERS));
    let apart =
        (1..=USERS).filter(|number| team.owner((*number).into()) != team.owner(100 + u64::from(*number)));
    assert!(apart.count() > 2, "some users have their sessions at two workers");
    for _ in 0..2 {
        for number in 1..=USERS {
            let teid = S1 + u32::from(number) - 1;
            for worker in 0..3 {
                let asked = packet_of(Direction::Uplink, (number, 0));
                team.receive(worker, N3, &up(TWO_PORTS, teid, &asked));
                team.receive(worker, N6, &down(&packet_of(Direction::Downlink, (number, 0))));
            }
        }
        team.settle();
        let up: Vec<Vec<u8>> = team.sent(N6).concat();
        let down: Vec<Vec<u8>> = team.sent(N3).concat();
        for number in 1..=USERS {
            let teid = (ENB_TEID + u32::from(number) - 1).to_be_bytes();
            let of_user = up.iter().filter(|frame| frame[26..30] == user(number).octets()).count();
            let to_user = down.iter().filter(|frame| frame[46..50] == teid).count();
            assert_eq!((of_user, to_user), (3, 3), "user {number}");
        }
    }
}

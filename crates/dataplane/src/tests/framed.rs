//! Networks behind users.

use super::crew::{Team, from_user};
use super::drops;
use crate::config::{Config, PortConfig};
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, TestPort, config, rules};
use crate::graph::NodeId;
use crate::worker::connect;
use dplink::{Command, Desired, Notice, RefusalCause};
use packet::HeapBuffer;
use packet::ethernet::MacAddress;
use rules::{Instance, Rules, Seid};
use std::net::Ipv4Addr;

const LAN: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 9);

/// A session with networks behind its user.
fn routing(session: u64, routes: &[&str]) -> Rules {
    let mut rules = rules(session);
    for pdr in &mut rules.pdrs {
        pdr.pdi.framed_routes = routes.iter().map(|route| route.parse().unwrap()).collect();
    }
    rules
}

/// A frame from the core.
fn to(address: Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.resize(14 + 28, 0);
    let ip = packet::ipv4::Header::new([203, 0, 113, 80].into(), address, 17, 8).unwrap();
    ip.write(&mut frame[14..]).unwrap();
    frame
}

fn put(bench: &mut Bench, session: u64, revision: u64, rules: Rules) -> Vec<Notice> {
    let told = bench.put(session, revision, rules);
    told.into_iter().chain(bench.settle()).collect()
}

fn applied(notices: &[Notice]) -> bool {
    matches!(notices, [Notice::Applied { .. }])
}

/// The sessions that packets to an address reach, by the tunnels they leave in.
fn reached(bench: &mut Bench, address: Ipv4Addr) -> Vec<u32> {
    bench.receive(N6, &to(address));
    bench.settle();
    bench.sent(N3).iter().map(|frame| session_of(frame)).collect()
}

fn session_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[46], frame[47], frame[48], frame[49]]) - 0x1ff
}

#[test]
fn an_address_leads_to_the_user_who_has_it_or_the_longest_network_around_it() {
    let mut bench = Bench::bare();
    bench.meet_neighbours();
    assert!(applied(&put(&mut bench, 4, 1, routing(4, &["192.168.0.0/16", "10.60.0.0/24"]))));
    assert_eq!(reached(&mut bench, LAN), [4]);
    assert_eq!(reached(&mut bench, Ipv4Addr::new(10, 60, 0, 5)), [4]);
    // What is known of flows gives way to whoever comes nearer, and comes back once that one has gone.
    assert!(applied(&put(&mut bench, 5, 1, routing(5, &["192.168.7.0/24"]))));
    assert_eq!(reached(&mut bench, LAN), [5]);
    assert_eq!(reached(&mut bench, Ipv4Addr::new(10, 60, 0, 5)), [5], "its own address");
    assert_eq!(reached(&mut bench, Ipv4Addr::new(192, 168, 8, 9)), [4]);
    assert!(applied(&put(&mut bench, 6, 1, routing(6, &["192.168.7.9/32"]))));
    assert_eq!(reached(&mut bench, LAN), [6]);
    assert!(applied(&put(&mut bench, 6, 2, rules(6))));
    assert_eq!(reached(&mut bench, LAN), [5]);
    bench.engine.handle(Command::Delete { session: Seid(5) }).unwrap();
    bench.settle();
    assert_eq!(reached(&mut bench, LAN), [4]);
    bench.engine.handle(Command::Delete { session: Seid(4) }).unwrap();
    bench.settle();
    assert!(reached(&mut bench, LAN).is_empty());
    assert_eq!(drops(&bench, DropReason::NoSession), 1);
}

#[test]
fn a_flow_to_a_network_behind_a_user_is_classified_once() {
    let mut bench = Bench::bare();
    bench.meet_neighbours();
    put(&mut bench, 4, 1, routing(4, &["192.168.0.0/16"]));
    (0..3).for_each(|_| assert_eq!(reached(&mut bench, LAN), [4]));
    // Those who come and are not within it change nothing.
    put(&mut bench, 5, 1, routing(5, &["172.16.0.0/12"]));
    assert_eq!(reached(&mut bench, LAN), [4]);
    assert_eq!(bench.worker.counters().nodes[NodeId::Classify as usize].packets, 1);
}

#[test]
fn a_user_sends_from_its_networks_and_no_others() {
    let mut bench = Bench::bare();
    bench.meet_neighbours();
    put(&mut bench, 4, 1, routing(4, &["192.168.0.0/16"]));
    for source in [LAN, Ipv4Addr::new(10, 60, 0, 4), Ipv4Addr::new(172, 16, 0, 1)] {
        bench.receive(N3, &from_user(4, source, 4_000));
        bench.settle();
    }
    assert_eq!(bench.sent(N6).len(), 2);
    assert_eq!(drops(&bench, DropReason::NoPdr), 1);
}

#[test]
fn what_another_session_has_is_refused_and_said_to_be_taken() {
    let mut bench = Bench::bare();
    put(&mut bench, 4, 1, routing(4, &["192.168.0.0/16", "192.168.7.9/32"]));
    for routes in [&["192.168.0.0/16"], &["192.168.7.9/32"], &["10.60.0.4/32"]] {
        let notices = put(&mut bench, 5, 1, routing(5, routes));
        assert!(matches!(notices[..], [Notice::Refused { cause: RefusalCause::Taken, .. }]), "{notices:?}");
    }
    let mut twin = rules(6);
    twin.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv4 = Some(LAN));
    let notices = put(&mut bench, 6, 1, twin);
    assert!(matches!(notices[..], [Notice::Refused { cause: RefusalCause::Taken, .. }]), "{notices:?}");
    // Its own it may have again.
    assert!(applied(&put(&mut bench, 4, 2, routing(4, &["192.168.0.0/16", "10.60.0.4/32"]))));
}

#[test]
fn a_node_has_room_for_so_many_networks_and_no_more() {
    let mut config = config();
    config.limits.framed_routes = 2;
    let mut bench = Bench::over(&config);
    assert!(applied(&put(&mut bench, 4, 1, routing(4, &["192.168.0.0/16"]))));
    let notices = put(&mut bench, 5, 1, routing(5, &["172.16.0.0/16", "172.17.0.0/16"]));
    assert!(matches!(notices[..], [Notice::Refused { cause: RefusalCause::Full, .. }]), "{notices:?}");
    assert!(applied(&put(&mut bench, 4, 2, routing(4, &["172.16.0.0/16", "172.17.0.0/16"]))));
    bench.engine.handle(Command::Delete { session: Seid(4) }).unwrap();
    bench.settle();
    assert!(applied(&put(&mut bench, 5, 2, routing(5, &["192.168.0.0/16", "172.17.0.0/16"]))));
}

#[test]
fn two_network_instances_have_networks_of_one_prefix() {
    let ims = Instance::of("ims");
    let mut config = config();
    let n6 = config.ports[N6].clone();
    let (name, mac) = ("ims".to_owned(), MacAddress([2, 0, 0, 0, 8, 2]));
    let address = "10.80.0.2/24".parse().unwrap();
    config.ports.push(PortConfig { name, mac, address, address6: None, instance: ims, ..n6 });
    let wires = [TestPort::default(), TestPort::default(), TestPort::default()];
    let (mut engine, mut worker) = connect(&config, wires.to_vec(), || 0).unwrap();
    worker.know(N3 as u8, MacAddress([3; 6]), crate::fixture::GNB);
    let mut other = routing(5, &["192.168.0.0/16"]);
    other.pdrs.iter_mut().for_each(|pdr| pdr.pdi.instance = ims);
    for (session, rules) in [(4, routing(4, &["192.168.0.0/16"])), (5, other)] {
        engine.handle(Command::Put(Desired::new(Seid(session), 1, rules))).unwrap();
    }
    worker.turn(1);
    assert_eq!(engine.poll(0).iter().filter(|notice| matches!(notice, Notice::Applied { .. })).count(), 2);
    let mut of_ims = to(LAN);
    of_ims[4] = 8;
    for (port, frame, session) in [(N6, to(LAN), 4), (2, of_ims, 5)] {
        wires[port].0.borrow_mut().to_worker.push_back(HeapBuffer::new(&frame));
        worker.turn(2);
        let sent = std::mem::take(&mut wires[N3].0.borrow_mut().from_worker);
        assert_eq!(sent.iter().map(|frame| session_of(frame)).collect::<Vec<_>>(), [session]);
    }
}

fn team(config: Config) -> Team {
    let mut team = Team::over(&config, &crate::Crew::of(3));
    team.meet();
    team
}

/// The sessions that packets to an address reach, whichever worker gets them.
fn reached_by_all(team: &mut Team, address: Ipv4Addr) -> Vec<u32> {
    (0..3).for_each(|worker| team.receive(worker, N6, &to(address)));
    team.settle();
    team.sent(N3).concat().iter().map(|frame| session_of(frame)).collect()
}

#[test]
fn networks_lead_to_their_owner_whichever_worker_gets_their_packets() {
    let mut team = team(config());
    for session in 4..=16 {
        let route = format!("192.168.0.0/{}", 8 + session);
        team.put(session, 1, routing(session, &[&route, &format!("172.16.{session}.0/24")]));
    }
    assert_eq!(team.settle().len(), 13);
    for session in 4..=16u8 {
        let address = Ipv4Addr::new(172, 16, session, 200);
        assert_eq!(reached_by_all(&mut team, address), [u32::from(session); 3]);
    }
    // The longest there is, among those of all workers.
    for (last, session) in [(1, 16), (128, 16), (255, 16)] {
        assert_eq!(reached_by_all(&mut team, Ipv4Addr::new(192, 168, 0, last)), [session; 3]);
    }
    assert_eq!(reached_by_all(&mut team, Ipv4Addr::new(192, 168, 1, 1)), [15; 3]);
    // As those with longer ones go, the next has it, whoever that is with.
    for session in (5..=16).rev() {
        team.ask(Command::Delete { session: Seid(session) });
        assert_eq!(reached_by_all(&mut team, Ipv4Addr::new(192, 168, 0, 1)), [session as u32 - 1; 3]);
    }
    // And as they come again.
    for session in 5..=16 {
        team.put(session, 2, routing(session, &[&format!("192.168.0.0/{}", 8 + session)]));
        team.settle();
        assert_eq!(reached_by_all(&mut team, Ipv4Addr::new(192, 168, 0, 1)), [session as u32; 3]);
    }
}

#[test]
fn workers_together_have_each_network_once_and_no_more_than_there_may_be() {
    let mut config = config();
    config.limits.framed_routes = 14;
    let mut team = team(config);
    for session in 4..=16 {
        team.put(session, 1, routing(session, &[&format!("172.16.{session}.0/24")]));
    }
    assert_eq!(team.settle().len(), 13);
    assert_eq!(
        team.refused(17, routing(17, &["172.16.4.0/24"])),
        "a framed route belongs to another session"
    );
    assert_eq!(team.refused(17, routing(17, &["10.60.0.5/32"])), "a framed route belongs to another session");
    let full = "the data plane holds as many framed routes as it is configured for";
    assert_eq!(team.refused(17, routing(17, &["10.9.0.0/16", "10.8.0.0/16"])), full);
    team.put(17, 10, routing(17, &["10.9.0.0/16"]));
    assert_eq!(team.settle().len(), 1);
    assert_eq!(reached_by_all(&mut team, Ipv4Addr::new(10, 9, 1, 1)), [17; 3]);
}

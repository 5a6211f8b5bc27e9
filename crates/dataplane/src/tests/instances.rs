//! Networks whose users have the same addresses.

use super::content::used;
use super::crew::{from_user, to_network};
use super::fragments::{BYTES, FIRST, LATER, OF_PORT, REST, by_port, down, up};
use super::to_user;
use crate::config::PortConfig;
use crate::content::ContentRules;
use crate::fixture::{GNB, N3, N6, TestPort, config, rules};
use crate::graph::NodeId;
use crate::worker::{Worker, connect};
use crate::{Config, Engine, Route};
use dplink::{Command, Desired, Notice};
use packet::HeapBuffer;
use packet::ethernet::MacAddress;
use rules::{ApplicationId, Instance, PdrId, Rules, Seid};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// The place of the other network's port.
const IMS: usize = 2;
const ROUTERS: [(usize, Ipv4Addr); 2] =
    [(N6, Ipv4Addr::new(10, 50, 0, 1)), (IMS, Ipv4Addr::new(10, 80, 0, 1))];

fn two_networks() -> Config {
    let mut config = config();
    let n6 = config.ports[N6].clone();
    let (name, mac) = ("ims".to_owned(), MacAddress([2, 0, 0, 0, 8, 2]));
    let (address, instance) = ("10.80.0.2/24".parse().unwrap(), Instance::of("ims"));
    config.ports.push(PortConfig { name, mac, address, address6: None, instance, ..n6 });
    let via = ROUTERS[1].1.into();
    config.routes.push(Route { prefix: "0.0.0.0/0".parse().unwrap(), via, instance: Some(instance) });
    config
}

/// The session, in the other network.
fn in_ims(mut rules: Rules) -> Rules {
    rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.instance = Instance::of("ims"));
    rules.fars[0].forwarding.as_mut().unwrap().instance = Instance::of("ims");
    rules
}

/// The session with the address of session 2, in the other network.
fn twin_of(mut twin: Rules) -> Rules {
    let of_first = rules(2).pdrs.into_iter().map(|pdr| pdr.pdi.ue_ipv4).cycle();
    twin.pdrs.iter_mut().zip(of_first).for_each(|(pdr, address)| pdr.pdi.ue_ipv4 = address);
    in_ims(twin)
}

fn twin() -> Rules {
    twin_of(rules(4))
}

struct Lab {
    engine: Engine,
    worker: Worker<TestPort>,
    wires: [TestPort; 3],
    now_ns: u64,
}

impl Lab {
    fn new() -> Self {
        let wires = [TestPort::default(), TestPort::default(), TestPort::default()];
        let (engine, mut worker) = connect(&two_networks(), wires.to_vec(), || 0).unwrap();
        worker.know(N3 as u8, MacAddress([3; 6]), GNB);
        for (port, router) in ROUTERS {
            worker.know(port as u8, MacAddress([6; 6]), router);
        }
        let mut lab = Self { engine, worker, wires, now_ns: 1 };
        lab.put(1, [(2, rules(2)), (4, twin())]);
        lab
    }

    /// Puts rules of sessions in force.
    fn put(&mut self, revision: u64, sessions: [(u64, Rules); 2]) {
        for (session, rules) in sessions {
            let command = Command::Put(Desired::new(Seid(session), revision, rules));
            assert_eq!(self.engine.handle(command).unwrap(), None);
        }
        let applied =
            |notice: &Notice| matches!(notice, Notice::Applied { revision: of, .. } if *of == revision);
        assert_eq!(self.settle().into_iter().filter(applied).count(), 2);
    }

    fn settle(&mut self) -> Vec<Notice> {
        self.worker.turn(self.now_ns);
        self.engine.poll(0)
    }

    /// Bytes by URR.
    fn used(&mut self, session: u64) -> HashMap<u32, u64> {
        let session = Seid(session);
        let command = Command::QueryUsage { session, urrs: vec![], token: 7, is_reported: false };
        self.engine.handle(command).unwrap();
        let told = self.settle().into_iter().find_map(|notice| match notice {
            Notice::Usage { counts, .. } => Some(used(&counts)),
            _ => None,
        });
        told.unwrap()
    }

    /// What leaves by which port.
    fn pass(&mut self, port: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
        self.wires[port].0.borrow_mut().to_worker.push_back(HeapBuffer::new(frame));
        self.now_ns += 1_000;
        self.worker.turn(self.now_ns);
        assert!(self.worker.books().balanced());
        let sent = |(port, wire): (usize, &TestPort)| {
            let sent = std::mem::take(&mut wire.0.borrow_mut().from_worker);
            sent.into_iter().map(move |frame| (port, frame))
        };
        self.wires.iter().enumerate().flat_map(sent).collect()
    }

    /// Puts a content rule in force, and rules that ask for its application.
    fn serve(&mut self, rule: &str, application: &str) {
        let classifier = dpi::rule_file::read_lines(rule).unwrap().compile().unwrap();
        self.engine.load(ContentRules::new(1, classifier, None).unwrap());
        let served = |mut rules: Rules| {
            let mut served = rules.pdrs[0].clone();
            (served.id, served.precedence) = (PdrId(7), 10);
            served.pdi.application = ApplicationId::new(application);
            rules.pdrs.push(served);
            rules
        };
        self.put(2, [(2, served(rules(2))), (4, served(twin()))]);
    }

    fn classified(&self) -> u64 {
        self.worker.counters().nodes[NodeId::Classify as usize].packets
    }
}

fn of_ims(mut frame: Vec<u8>) -> Vec<u8> {
    frame[4] = 8;
    frame
}

/// Of a frame to the gNB.
fn teid(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[46], frame[47], frame[48], frame[49]])
}

#[test]
fn each_of_two_users_of_one_address_gets_its_own_packets() {
    let mut lab = Lab::new();
    for _ in 0..3 {
        let of = |sent: Vec<(usize, Vec<u8>)>| {
            sent.iter().map(|(port, frame)| (*port, teid(frame))).collect::<Vec<_>>()
        };
        assert_eq!(of(lab.pass(N6, &to_user(2))), [(N3, 0x201)]);
        assert_eq!(of(lab.pass(IMS, &of_ims(to_user(2)))), [(N3, 0x203)]);
    }
    // Each flow was classified once: they do not stand in each other's place.
    assert_eq!(lab.classified(), 2);
}

#[test]
fn what_two_users_of_one_address_send_goes_to_the_network_of_each() {
    let mut lab = Lab::new();
    for _ in 0..3 {
        for (session, port) in [(2, N6), (4, IMS)] {
            let sent = lab.pass(N3, &from_user(session, [10, 60, 0, 2].into(), 4_000));
            assert_eq!(sent.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [port]);
        }
    }
    assert_eq!(lab.classified(), 2);
}

#[test]
fn a_user_who_is_in_one_network_is_not_in_the_other() {
    let mut lab = Lab::new();
    assert_eq!(lab.pass(IMS, &of_ims(to_user(3))), []);
    assert_eq!(lab.worker.counters().drops[crate::DropReason::NoSession as usize], 1);
}

#[test]
fn a_network_that_no_port_is_of_is_refused() {
    let wires = [TestPort::default(), TestPort::default()];
    let (mut engine, _worker) = connect(&config(), wires.to_vec(), || 0).unwrap();
    let told = engine.handle(Command::Put(Desired::new(Seid(4), 1, twin()))).unwrap();
    assert!(matches!(told, Some(Notice::Refused { session: Seid(4), .. })), "{told:?}");
}

/// Its tunnel says whose it is, then as now.
#[test]
fn a_later_fragment_is_of_its_first_ones_ports_though_its_user_has_come_to_another_network() {
    let mut lab = Lab::new();
    lab.put(2, [(2, by_port(2)), (4, rules(4))]);
    let by_which = |sent: Vec<(usize, Vec<u8>)>| sent.iter().map(|(port, _)| *port).collect::<Vec<_>>();
    assert_eq!(by_which(lab.pass(N3, &up(2, 5, FIRST))), [N6]);
    lab.put(3, [(2, in_ims(by_port(2))), (4, rules(4))]);
    assert_eq!(by_which(lab.pass(N3, &up(2, 5, LATER))), [IMS]);
    assert_eq!(lab.used(2), HashMap::from([(OF_PORT, 2 * BYTES), (REST, 0)]));
}

#[test]
fn a_first_fragment_says_nothing_of_those_from_the_other_network() {
    let mut lab = Lab::new();
    lab.put(2, [(2, by_port(2)), (4, twin_of(by_port(4)))]);
    lab.pass(N6, &down(2, 5, FIRST));
    lab.pass(IMS, &of_ims(down(2, 5, LATER)));
    lab.pass(N6, &down(2, 5, LATER));
    assert_eq!(lab.used(2), HashMap::from([(OF_PORT, 2 * BYTES), (REST, 0)]));
    assert_eq!(lab.used(4), HashMap::from([(OF_PORT, 0), (REST, BYTES)]));
}

/// Question 7, for the address of `video.example`, and with an answer, where it has one.
fn dns(answer: Option<[u8; 4]>) -> Vec<u8> {
    let mut message = vec![
        0,
        7,
        if answer.is_some() { 0x80 } else { 0 },
        0,
        0,
        1,
        0,
        u8::from(answer.is_some()),
        0,
        0,
        0,
        0,
    ];
    message.extend(b"\x05video\x07example\x00\x00\x01\x00\x01");
    if let Some(address) = answer {
        message.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x0e\x10\x00\x04");
        message.extend(address);
    }
    message
}

#[test]
fn what_servers_are_called_is_learned_in_each_network_by_itself() {
    let (user, resolver, server) = ([10, 60, 0, 2], [203, 0, 113, 53], [198, 51, 100, 7]);
    let mut lab = Lab::new();
    lab.serve("id=1 precedence=1 rating-group=1 application=video host=video.example", "video");
    lab.pass(N3, &to_network(2, &datagram((user, 4_000), (resolver, 53), &dns(None))));
    let answer = datagram((resolver, 53), (user, 4_000), &dns(Some(server)));
    lab.pass(N6, &[&to_user(2)[..14], &answer].concat());
    assert_eq!(lab.worker.content_counts().names, 1);
    // An echo request says nothing of itself.
    let mut echo = vec![0; 28];
    packet::ipv4::Header::new(user.into(), server.into(), 1, 8).unwrap().write(&mut echo).unwrap();
    echo[20] = 8;
    let detected = |lab: &mut Lab, session| {
        let before = lab.worker.content_counts().detected;
        assert_eq!(lab.pass(N3, &to_network(session, &echo)).len(), 1);
        lab.worker.content_counts().detected - before
    };
    assert_eq!((detected(&mut lab, 2), detected(&mut lab, 4)), (1, 0));
}

fn datagram(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 28];
    let length = 8 + payload.len();
    packet::ipv4::Header::new(from.0.into(), to.0.into(), 17, length).unwrap().write(&mut packet).unwrap();
    packet::udp::Header::new(from.1, to.1, payload.len()).unwrap().write(&mut packet[20..]).unwrap();
    packet.extend_from_slice(payload);
    packet
}

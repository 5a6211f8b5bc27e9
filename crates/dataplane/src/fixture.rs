//! What tests of the data path share: two ports on the heap, three sessions, two neighbours.

mod sessions;
mod wire;

use crate::config::{Config, Echo, Limits, PortConfig, Route};
use crate::content::ContentRules;
use crate::engine::Engine;
use crate::worker::{Worker, connect};
use dplink::{Command, Desired, Notice};
use packet::HeapBuffer;
use packet::ethernet::MacAddress;
use rules::{Instance, Interface, Rules, Seid};
use sessions::chained;
pub(crate) use sessions::{
    ASLEEP, BEHIND_UDP, CHAINED, COPIED, ELSEWHERE, ENRICHED, FRAMES, MARKED, METERED, PORTAL, READDRESSED,
    REDIRECTED, SERVED, SIX, asleep, behind_udp, copied, enriched, ethernet, marked, metered, readdressed,
    redirected, rules, served, six,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
pub(crate) use wire::TestPort;

pub(crate) const N3: usize = 0;
pub(crate) const N6: usize = 1;
/// Of Ethernet.
pub(crate) const N6E: usize = 2;
pub(crate) const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
pub(crate) const GNB6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
const ROUTER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 1);
const N3_ADDRESS6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 2);
const N3_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);

/// A worker, its engine and the wires of its ports.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) worker: Worker<TestPort>,
    pub(crate) wires: Vec<TestPort>,
    pub(crate) now_ns: u64,
}

impl Bench {
    /// Ports and neighbours, no sessions.
    pub(crate) fn bare() -> Self {
        Self::over(&config())
    }

    /// The same of another configuration.
    pub(crate) fn over(config: &Config) -> Self {
        let wires: Vec<TestPort> = config.ports.iter().map(|_| TestPort::default()).collect();
        let (engine, worker) = connect(config, wires.clone(), || 0).unwrap();
        let mut bench = Self { engine, worker, wires, now_ns: 1 };
        bench.meet_neighbours();
        bench
    }

    /// Neighbours say where they are; after a while they are asked again.
    pub(crate) fn meet_neighbours(&mut self) {
        self.meet(N3, [2, 0, 0, 0, 3, 1], GNB);
        self.meet(N6, [2, 0, 0, 0, 6, 1], Ipv4Addr::new(10, 50, 0, 1));
        self.meet(N3, [2, 0, 0, 0, 3, 1], GNB6);
        self.meet(N6, [2, 0, 0, 0, 6, 1], ROUTER6);
    }

    /// With the three sessions of the goldens.
    pub(crate) fn new() -> Self {
        Self::with_sessions(&config())
    }

    fn with_sessions(config: &Config) -> Self {
        let mut bench = Self::over(config);
        for session in 1..=3 {
            bench.put(session, 1, rules(session));
        }
        let notices = bench.settle();
        assert_eq!(notices.len(), 3, "{notices:?}");
        bench
    }

    /// And with the session that is held to a rate and a quota, the one whose user sleeps, the one over IPv6, and the
    /// ones that are copied and marked; the one with a service that is blocked, and content rules that tell it; the one whose
    /// user is sent to a portal, the one whose user is sent to another address, and the one whose requests get a field; two
    /// that carry Ethernet frames; two of one user, chained; and two behind UDP headers.
    pub(crate) fn full() -> Self {
        let mut bench = Self::with_sessions(&with_ethernet());
        for (session, rules) in
            [(METERED, metered()), (ASLEEP, asleep()), (SIX, six()), (COPIED, copied()), (MARKED, marked())]
        {
            bench.put(session, 1, rules);
        }
        bench.put(SERVED, 1, served());
        bench.put(REDIRECTED, 1, redirected());
        bench.put(ENRICHED, 1, enriched(ENRICHED));
        bench.put(READDRESSED, 1, readdressed(READDRESSED));
        BEHIND_UDP.iter().for_each(|session| drop(bench.put(*session, 1, behind_udp(*session))));
        FRAMES.iter().for_each(|session| drop(bench.put(*session, 1, ethernet(*session))));
        CHAINED.iter().for_each(|session| drop(bench.put(*session, 1, chained(*session))));
        let notices = bench.settle();
        assert_eq!(notices.len(), 15, "{notices:?}");
        let rules = "id=1 precedence=1 rating-group=1 application=blocked host=.blocked.example";
        let classifier = dpi::rule_file::read_lines(rules).unwrap().compile().unwrap();
        bench.engine.load(ContentRules::new(1, classifier, None).unwrap());
        bench.settle();
        bench
    }

    /// With the three sessions of the goldens, and ports that give the kernel what is not spoken here.
    pub(crate) fn punting() -> Self {
        Self::with_sessions(&punting())
    }

    /// What the kernel has got, each with its port.
    pub(crate) fn punted(&mut self) -> Vec<(usize, Vec<u8>)> {
        let mut frames = Vec::new();
        if let Some(punts) = self.engine.punts() {
            punts.take(usize::MAX, |port, frame| frames.push((port, frame.to_vec())));
        }
        frames
    }

    pub(crate) fn meet(&mut self, port: usize, mac: [u8; 6], address: impl Into<IpAddr>) {
        self.worker.know(port as u8, MacAddress(mac), address);
    }

    pub(crate) fn put(&mut self, session: u64, revision: u64, rules: Rules) -> Option<Notice> {
        self.engine.handle(Command::Put(Desired::new(Seid(session), revision, rules))).unwrap()
    }

    /// Lets the worker obey and report all there is.
    pub(crate) fn settle(&mut self) -> Vec<Notice> {
        let mut notices = Vec::new();
        for _ in 0..100 {
            self.worker.turn(self.now_ns);
            notices.extend(self.engine.poll(0));
        }
        notices
    }

    pub(crate) fn receive(&mut self, port: usize, frame: &[u8]) {
        self.receive_buffer(port, HeapBuffer::new(frame));
    }

    pub(crate) fn receive_buffer(&mut self, port: usize, buffer: HeapBuffer) {
        self.wires[port].0.borrow_mut().to_worker.push_back(buffer);
    }

    pub(crate) fn sent(&mut self, port: usize) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.wires[port].0.borrow_mut().from_worker)
    }
}

pub(crate) fn config() -> Config {
    let port = |name: &str, interface, mac, address: &str| PortConfig {
        name: name.to_owned(),
        device: format!("net_{name}"),
        interface,
        instance: Instance::DEFAULT,
        mac: MacAddress(mac),
        address: address.parse().unwrap(),
        address6: Some(format!("2001:db8:{}::2/64", name.trim_start_matches('n')).parse().unwrap()),
        mtu: 1500,
        vlan: None,
        mss_clamp: name == "n3",
        ethernet: false,
        punt: None,
    };
    let default = |prefix: &str, via: IpAddr| Route { prefix: prefix.parse().unwrap(), via, instance: None };
    let routes =
        vec![default("0.0.0.0/0", Ipv4Addr::new(10, 50, 0, 1).into()), default("::/0", ROUTER6.into())];
    let limits = Limits {
        sessions: 16,
        ethernet_sessions: 4,
        macs: 8,
        frame_copies_per_s: 4,
        pdrs: 48,
        inspections: 4,
        flows: 64,
        peers: 16,
        kept: 4,
        kept_per_session: 2,
        neighbours: 8,
        held_per_neighbour: 2,
        error_indications_per_s: 2,
        icmp_errors_per_s: 2,
        ..Limits::default()
    };
    Config {
        ports: vec![
            port("n3", Interface::Access, [2, 0, 0, 0, 3, 2], "10.30.0.2/24"),
            port("n6", Interface::Core, [2, 0, 0, 0, 6, 2], "10.50.0.2/24"),
        ],
        routes,
        policies: vec![],
        limits,
        echo: Echo::OFF,
        resolvers: vec![],
        awaits_sessions: false,
        epoch: 1,
        seed: 0,
        lasting: None,
    }
}

/// Both ports give the kernel two packets a second of each kind, one after the other.
pub(crate) fn punting() -> Config {
    let mut config = with_ethernet();
    config.limits.punts_per_s = 2;
    config.ports.iter_mut().take(N6E).for_each(|port| port.punt = Some(format!("{}-host", port.name)));
    config
}

/// With a port of Ethernet besides.
pub(crate) fn with_ethernet() -> Config {
    let mut config = config();
    let (name, mac) = ("n6e".to_owned(), MacAddress([2, 0, 0, 0, 7, 2]));
    let address = "0.0.0.0/32".parse().unwrap();
    let of_n6 = config.ports[N6].clone();
    config.limits.sessions = 20;
    config.ports.push(PortConfig { name, mac, address, address6: None, ethernet: true, ..of_n6 });
    config
}

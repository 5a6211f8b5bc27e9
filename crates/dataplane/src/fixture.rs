//! What tests of the data path share: two ports on the heap, three sessions, two neighbours.

use crate::config::{Config, Echo, Limits, PortConfig, Route};
use crate::content::ContentRules;
use crate::engine::Engine;
use crate::port::Port;
use crate::worker::{Worker, connect};
use dplink::{Command, Desired, Notice};
use packet::ethernet::MacAddress;
use packet::{Buffer, HeapBuffer};
use rules::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

pub(crate) const N3: usize = 0;
pub(crate) const N6: usize = 1;
/// Of Ethernet.
pub(crate) const N6E: usize = 2;
pub(crate) const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
pub(crate) const GNB6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
const ROUTER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 1);
const N3_ADDRESS6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 2);
const N3_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);

/// First byte of a frame that the port says is in pieces: no station's address begins so.
pub(crate) const IN_PIECES: u8 = 0xef;

/// The two ends of a wire.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) to_worker: VecDeque<HeapBuffer>,
    /// In classes, the most urgent first.
    pub(crate) classes: Vec<VecDeque<HeapBuffer>>,
    pub(crate) from_worker: Vec<Vec<u8>>,
    /// Packets the port still takes; `None` takes all.
    pub(crate) room: Option<usize>,
    /// Buffers still to be had; `None` for any number.
    pub(crate) buffers: Option<usize>,
}

#[derive(Clone, Default)]
pub(crate) struct TestPort(pub(crate) Rc<RefCell<Wire>>);

impl Port for TestPort {
    type Buffer = HeapBuffer;

    fn receive(&mut self, into: &mut Vec<HeapBuffer>, limit: usize) -> usize {
        let mut wire = self.0.borrow_mut();
        let count = limit.min(wire.to_worker.len());
        into.extend(wire.to_worker.drain(..count));
        count
    }

    fn classes(&self) -> usize {
        self.0.borrow().classes.len()
    }

    fn receive_class(&mut self, class: usize, into: &mut Vec<HeapBuffer>, limit: usize) -> usize {
        let mut wire = self.0.borrow_mut();
        let Some(queue) = wire.classes.get_mut(class) else { return 0 };
        let count = limit.min(queue.len());
        into.extend(queue.drain(..count));
        count
    }

    fn send(&mut self, from: &mut Vec<HeapBuffer>) -> usize {
        let mut wire = self.0.borrow_mut();
        let count = wire.room.unwrap_or(usize::MAX).min(from.len());
        wire.from_worker.extend(from.drain(..count).map(|buffer| buffer.data().to_vec()));
        count
    }

    fn allocate(&mut self) -> Option<HeapBuffer> {
        let mut wire = self.0.borrow_mut();
        wire.buffers =
            wire.buffers.map(|left| left.checked_sub(1)).map_or(Some(None), |left| left.map(Some))?;
        let mut buffer = HeapBuffer::new(&[0; 2048]);
        buffer.truncate(0)?;
        Some(buffer)
    }

    /// A frame that begins with [`IN_PIECES`] stands for one in several pieces.
    fn is_contiguous(buffer: &HeapBuffer) -> bool {
        buffer.data().first() != Some(&IN_PIECES)
    }
}

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
        self.wires[port].0.borrow_mut().to_worker.push_back(HeapBuffer::new(frame));
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
        limits,
        echo: Echo::OFF,
        resolvers: vec![],
        epoch: 1,
        seed: 0,
    }
}

/// Both ports give the kernel two packets a second of each kind, one after the other.
pub(crate) fn punting() -> Config {
    let mut config = with_ethernet();
    config.limits.punts_per_s = 2;
    config.ports.iter_mut().take(N6E).for_each(|port| port.punt = Some(format!("{}-host", port.name)));
    config
}

/// A session held to a rate up and a quota down.
pub(crate) const METERED: u64 = 40;
/// A session whose user sleeps.
pub(crate) const ASLEEP: u64 = 50;

/// Two sessions that carry Ethernet frames of one network.
pub(crate) const FRAMES: [u64; 2] = [120, 121];

/// As the others, of frames: those of EtherType 0x88b5, from either side, are dropped.
pub(crate) fn ethernet(session: u64) -> Rules {
    let mut rules = rules(session);
    for pdr in &mut rules.pdrs {
        (pdr.pdi.ue_ipv4, pdr.pdi.ethernet) = (None, Some(Box::default()));
    }
    let experimental = EthernetFilter { ethertype: Some(0x88b5), ..EthernetFilter::default() };
    let dropped = rules.pdrs.iter().map(|pdr| {
        let filters = vec![experimental.clone()];
        let pdi = Pdi { ethernet: Some(Box::new(EthernetPdi { filters })), ..pdr.pdi.clone() };
        Pdr { id: PdrId(pdr.id.0 + 10), precedence: 10, pdi, far: FarId(3), ..pdr.clone() }
    });
    let dropped: Vec<Pdr> = dropped.collect();
    rules.pdrs.extend(dropped);
    let far =
        Far { id: FarId(3), apply_action: ApplyAction::Drop, forwarding: None, ..rules.fars[0].clone() };
    rules.fars.push(far);
    rules
}

/// Two sessions of one user, that of an SGW-U and that of a PGW-U.
pub(crate) const CHAINED: [u64; 2] = [130, 131];

/// Uplink packets of the first go into the tunnel of the second, whose downlink packets come back by the address of N6.
fn chained(session: u64) -> Rules {
    let [first, second] = CHAINED;
    let mut rules = rules(session);
    let core = FTeid { teid: Teid(0x381), address: Ipv4Addr::new(10, 50, 0, 2).into() };
    let to = |teid, address| Some(OuterHeaderCreation::gtpu(Teid(teid), address));
    if session == first {
        rules.pdrs.iter_mut().for_each(|pdr| (pdr.pdi.ue_ipv4, pdr.outer_header_removal) = (None, true));
        rules.pdrs[1].pdi.f_teid = Some(core);
        let tunnel = to(0xff + second as u32, N3_ADDRESS.into());
        rules.fars[0].forwarding.as_mut().unwrap().outer_header_creation = tunnel;
    } else {
        let tunnel = to(core.teid.0, core.address);
        rules.fars[1].forwarding.as_mut().unwrap().outer_header_creation = tunnel;
    }
    rules
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

/// A session of an IPv6 user, over IPv6.
pub(crate) const SIX: u64 = 60;

/// The user has a prefix; both tunnels are over IPv6.
pub(crate) fn six() -> Rules {
    let mut rules = rules(SIX);
    for pdr in &mut rules.pdrs {
        (pdr.pdi.ue_ipv4, pdr.pdi.ue_ipv6) = (None, Some("2001:db8:60::/64".parse().unwrap()));
        if let Some(f_teid) = &mut pdr.pdi.f_teid {
            f_teid.address = N3_ADDRESS6.into();
        }
    }
    let forwarding = rules.fars[1].forwarding.as_mut().unwrap();
    forwarding.outer_header_creation.as_mut().unwrap().address = GNB6.into();
    rules
}

/// A session whose packets are copied.
pub(crate) const COPIED: u64 = 70;

/// Uplink packets are copied into a tunnel to a station of the core, downlink packets plainly to the core.
pub(crate) fn copied() -> Rules {
    let mut rules = rules(COPIED);
    let collector = OuterHeaderCreation::gtpu(Teid(0x999), Ipv4Addr::new(10, 50, 0, 1).into());
    let copy = |outer_header_creation, dscp| ForwardingParameters {
        destination_interface: Interface::Core,
        instance: Instance::DEFAULT,
        outer_header_creation,
        dscp,
    };
    (rules.fars[0].duplicating, rules.fars[1].duplicating) = (true, true);
    rules.fars[0].duplicates = vec![copy(Some(collector), None)];
    rules.fars[1].duplicates = vec![copy(None, Some(10))];
    rules
}

/// Sessions whose uplink packets leave behind a UDP header, over IPv4 and over IPv6.
pub(crate) const BEHIND_UDP: [u64; 2] = [140, 141];

/// For port 5000 of a host beyond the router; over IPv6 it is marked.
pub(crate) fn behind_udp(session: u64) -> Rules {
    let mut rules = rules(session);
    let to = rules.fars[0].forwarding.as_mut().unwrap();
    let [ipv4, ipv6]: [IpAddr; 2] = ["203.0.113.99", "2001:db8:ffff::9"].map(|host| host.parse().unwrap());
    let is_ipv6 = session == BEHIND_UDP[1];
    to.outer_header_creation = Some(OuterHeaderCreation::udp(5_000, if is_ipv6 { ipv6 } else { ipv4 }));
    to.dscp = is_ipv6.then_some(46);
    rules
}

/// A session whose packets are marked.
pub(crate) const MARKED: u64 = 80;

/// DSCP 46 up and 34 down, in QoS flow 7, which is reflective.
pub(crate) fn marked() -> Rules {
    let mut rules = rules(MARKED);
    (rules.qers[0].qfi, rules.qers[0].reflective) = (Qfi::new(7), true);
    for (far, dscp) in rules.fars.iter_mut().zip([46, 34]) {
        far.forwarding.as_mut().unwrap().dscp = Some(dscp);
    }
    rules
}

/// A session with a service that is blocked.
pub(crate) const SERVED: u64 = 90;

/// The application "blocked" is, on its way up.
pub(crate) fn served() -> Rules {
    let mut rules = rules(SERVED);
    let mut blocked = Pdr { id: PdrId(3), precedence: 10, far: FarId(3), ..rules.pdrs[0].clone() };
    blocked.pdi.application = ApplicationId::new("blocked");
    let far = Far { id: FarId(3), apply_action: ApplyAction::Drop, ..rules.fars[0].clone() };
    rules.pdrs.push(blocked);
    rules.fars.push(far);
    rules
}

/// A session whose user is sent to a portal.
pub(crate) const REDIRECTED: u64 = 100;
/// Where to.
pub(crate) const PORTAL: &str = "http://portal.example/more";

/// Whatever comes from the user, as control planes say it (TS 29.244 8.2.24, note 4).
pub(crate) fn redirected() -> Rules {
    let mut rules = rules(REDIRECTED);
    rules.fars[0].forwarding.as_mut().unwrap().destination_interface = Interface::Access;
    rules.fars[0].redirect = Redirect::new(PORTAL);
    rules
}

/// A session whose user is connected with another host, and which that is.
pub(crate) const READDRESSED: u64 = 115;
pub(crate) const ELSEWHERE: &str = "203.0.113.99";

/// Whatever comes from the user.
pub(crate) fn readdressed(session: u64) -> Rules {
    let mut rules = rules(session);
    rules.fars[0].redirect = Redirect::new(ELSEWHERE);
    rules
}

/// A session whose requests get a field.
pub(crate) const ENRICHED: u64 = 110;

/// X-MSISDN.
pub(crate) fn enriched(session: u64) -> Rules {
    let mut rules = rules(session);
    rules.fars[0].enrichment = HeaderField::new("X-MSISDN", "491701234567");
    rules
}

/// 8 kbit/s up, and 100 bytes in all.
pub(crate) fn metered() -> Rules {
    let mut rules = rules(METERED);
    rules.qers[0].mbr = Some(BitRates { uplink_kbps: 8, downlink_kbps: 1_000_000 });
    let quota = Volume { total: Some(100), ..Volume::default() };
    rules.urrs = vec![Urr {
        id: UrrId(1),
        methods: Methods { volume: true, ..Methods::default() },
        volume_quota: Some(quota),
        quota_grant: 1,
        ..Urr::default()
    }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    rules
}

/// Downlink packets are kept, and the control plane is told.
pub(crate) fn asleep() -> Rules {
    let mut rules = rules(ASLEEP);
    (rules.fars[1].apply_action, rules.fars[1].notify) = (ApplyAction::Buffer, true);
    rules
}

fn towards(
    destination_interface: Interface,
    outer_header_creation: Option<OuterHeaderCreation>,
) -> Option<ForwardingParameters> {
    let (instance, dscp) = (Instance::DEFAULT, None);
    Some(ForwardingParameters { destination_interface, instance, outer_header_creation, dscp })
}

/// Session 1: 5G with QFI 9. Session 2: 4G, no QFI. Session 3: FAR DROP up, gate closed down.
pub(crate) fn rules(session: u64) -> Rules {
    let number = session as u32;
    let ue = Ipv4Addr::from(0x0a3c_0000 + number);
    let qfi = Qfi::new(9).filter(|_| session == 1);
    let f_teid = FTeid { teid: Teid(0xff + number), address: N3_ADDRESS.into() };
    let pdi = |source_interface, f_teid| Pdi {
        source_interface,
        instance: Instance::DEFAULT,
        f_teid,
        ue_ipv4: Some(ue),
        ue_ipv6: None,
        framed_routes: vec![],
        sdf_filters: vec![],
        application: None,
        ethernet: None,
        qfis: qfi.filter(|_| source_interface == Interface::Access).into_iter().collect(),
    };
    let pdr = |id, pdi: Pdi, far| Pdr {
        id: PdrId(id),
        precedence: 100,
        outer_header_removal: pdi.f_teid.is_some(),
        pdi,
        far: FarId(far),
        qers: vec![QerId(1)].into(),
        urrs: vec![].into(),
    };
    let tunnel = OuterHeaderCreation::gtpu(Teid(0x1ff + number), GNB.into());
    let far = |id, apply_action, forwarding| Far {
        id: FarId(id),
        apply_action,
        notify: false,
        forwarding,
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    };
    let shut = session == 3;
    let up = if shut { ApplyAction::Drop } else { ApplyAction::Forward };
    Rules {
        pdrs: vec![pdr(1, pdi(Interface::Access, Some(f_teid)), 1), pdr(2, pdi(Interface::Core, None), 2)],
        fars: vec![
            far(1, up, towards(Interface::Core, None)),
            far(2, ApplyAction::Forward, towards(Interface::Access, Some(tunnel))),
        ],
        qers: vec![Qer {
            id: QerId(1),
            uplink_gate: Gate::Open,
            downlink_gate: if shut { Gate::Closed } else { Gate::Open },
            qfi,
            mbr: None,
            packet_rates: PacketRates::default(),
            correlation: None,
            gbr: None,
            reflective: false,
        }],
        urrs: vec![],
        bars: vec![],
    }
}

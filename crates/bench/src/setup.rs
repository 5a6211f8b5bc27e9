//! A worker with its sessions, between two replay ports.

use crate::replay::Replay;
use anyhow::{Context, bail};
use dataplane::{Config, Engine, Limits, PortConfig, Route, Worker};
use dpdk::{Eal, EalConfig, Mempool, MempoolConfig};
use dplink::{Command, Desired, Notice};
use indicatif::ProgressBar;
use packet::arp::{self, Operation, Station};
use packet::ethernet::{self, MacAddress};
use rules::{
    ApplyAction, BitRates, FTeid, Far, FarId, ForwardingParameters, Gate, Interface, OuterHeaderCreation, Pdi, Pdr,
    PdrId, Qer, QerId, Qfi, Rules, Seid, Teid, Methods, Urr, UrrId,
};
use std::net::Ipv4Addr;
use traffic::{Endpoints, PROFILES, Packets, Profile, User};

/// Packet memory of a measurement, in MiB.
const MEMORY_MB: u32 = 512;
/// Packets in the pool: far more than are on their way, so that each is a stranger to the caches.
pub(crate) const PACKETS: u32 = 131_071;

pub(crate) const ENDPOINTS: Endpoints = Endpoints {
    n3: (MacAddress([2, 0, 0, 0, 3, 2]), Ipv4Addr::new(10, 30, 0, 2)),
    n6: (MacAddress([2, 0, 0, 0, 6, 2]), Ipv4Addr::new(10, 50, 0, 2)),
    gnb: (MacAddress([2, 0, 0, 0, 3, 1]), Ipv4Addr::new(10, 30, 0, 1)),
    router: (MacAddress([2, 0, 0, 0, 6, 1]), Ipv4Addr::new(10, 50, 0, 1)),
};

/// User number 0 has this address.
const FIRST_USER: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);
/// When everything happens: shortly after the neighbours were met, so that none is asked again.
pub(crate) const NOW_NS: u64 = 1_000_000;

/// The QoS flow of all users.
const QFI: u8 = 9;

/// DPDK, and packets to measure with.
pub(crate) struct Memory {
    pub(crate) eal: &'static Eal,
    pub(crate) pool: Mempool,
}

impl Memory {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let eal = Eal::init(&EalConfig { memory_mb: MEMORY_MB, ..EalConfig::default() })?;
        let pool = Mempool::new(eal, MempoolConfig { capacity: PACKETS, ..MempoolConfig::default() })?;
        Ok(Self { eal, pool })
    }
}

/// The shipped worker, as `anchorline dpe` runs it.
pub(crate) struct Product {
    pub(crate) n3: Replay,
    pub(crate) n6: Replay,
    pub(crate) worker: Worker<Replay>,
    engine: Engine,
}

impl Product {
    /// With `sessions` sessions in force, each with a PDR up and one down, two FARs and a QER.
    pub(crate) fn new(memory: &Memory, sessions: u32) -> anyhow::Result<Self> {
        let (n3, n6) = (Replay::new(&memory.pool), Replay::new(&memory.pool));
        let ports = vec![n3.clone(), n6.clone()];
        let (engine, worker) = dataplane::connect(&config(sessions), ports, dpdk::tsc)?;
        let mut product = Self { n3, n6, worker, engine };
        product.establish(sessions)?;
        product.meet(memory).context("the neighbours could not be met")?;
        Ok(product)
    }

    /// One packet each way makes the worker ask for its neighbours, and they answer.
    fn meet(&mut self, memory: &Memory) -> Option<()> {
        let mut packets = Packets::new(Profile { uplink: 1.0, ..PROFILES[0] }, ENDPOINTS, 0);
        let mut frame = vec![0; 2_048];
        let (length, _) = packets.write(user(0), 0, &mut frame)?;
        self.n3.wire.borrow_mut().inbox.push(memory.pool.packet(frame.get(..length)?)?);
        let mut packets = Packets::new(Profile { uplink: 0.0, ..PROFILES[0] }, ENDPOINTS, 0);
        let (length, _) = packets.write(user(0), 0, &mut frame)?;
        self.n6.wire.borrow_mut().inbox.push(memory.pool.packet(frame.get(..length)?)?);
        self.worker.turn(NOW_NS);
        for (port, us, them) in
            [(&self.n3, ENDPOINTS.n3, ENDPOINTS.gnb), (&self.n6, ENDPOINTS.n6, ENDPOINTS.router)]
        {
            let answer = memory.pool.packet(&arp_reply(us, them)?)?;
            port.wire.borrow_mut().inbox.push(answer);
        }
        self.worker.turn(NOW_NS);
        [&self.n3, &self.n6].into_iter().for_each(|port| port.wire.borrow_mut().outbox.clear());
        (self.worker.books().held == 0).then_some(())
    }

    fn establish(&mut self, sessions: u32) -> anyhow::Result<()> {
        let bar = ProgressBar::new(sessions.into()).with_message("sessions");
        let mut applied = 0;
        for number in 0..sessions {
            let desired = Desired::new(Seid(u64::from(number) + 1), 1, rules(number));
            if let Some(notice) = self.engine.handle(Command::Put(desired))? {
                bail!("session {number} was not taken: {notice:?}");
            }
            if number.is_multiple_of(256) {
                applied += self.settle()?;
                bar.set_position(applied);
            }
        }
        while applied < u64::from(sessions) {
            applied += self.settle()?;
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn settle(&mut self) -> anyhow::Result<u64> {
        for _ in 0..32 {
            self.worker.turn(0);
        }
        let notices = self.engine.poll(0);
        match notices.iter().find(|notice| !matches!(notice, Notice::Applied { .. })) {
            Some(notice) => bail!("a session was not taken: {notice:?}"),
            None => Ok(notices.len() as u64),
        }
    }
}

fn config(sessions: u32) -> Config {
    let port = |name: &str, (mac, address): (MacAddress, Ipv4Addr), interface| {
        let address = ipnet_of(address)?;
        Some(PortConfig {
            name: name.to_owned(),
            device: "replay".to_owned(),
            interface,
            mac,
            address,
            address6: None,
            mtu: 1_500,
        })
    };
    let ports = [port("n3", ENDPOINTS.n3, Interface::Access), port("n6", ENDPOINTS.n6, Interface::Core)];
    let route = Route { prefix: ipnet::Ipv4Net::default().into(), via: ENDPOINTS.router.1.into() };
    Config {
        ports: ports.into_iter().flatten().collect(),
        routes: vec![route],
        limits: Limits {
            sessions: sessions as usize,
            pdrs: 2 * sessions as usize,
            flows: 1 << 21,
            ..Limits::default()
        },
        seed: 1,
    }
}

fn arp_reply(us: (MacAddress, Ipv4Addr), them: (MacAddress, Ipv4Addr)) -> Option<Vec<u8>> {
    let station = |(mac, address)| Station { mac, address };
    let mut frame = vec![0; ethernet::LENGTH + arp::LENGTH];
    ethernet::Header::new(us.0, them.0, ethernet::ARP).write(&mut frame)?;
    let reply = arp::Message::new(Operation::Reply, station(them), station(us));
    reply.write(frame.get_mut(ethernet::LENGTH..)?)?;
    Some(frame)
}

fn ipnet_of(address: Ipv4Addr) -> Option<ipnet::Ipv4Net> {
    ipnet::Ipv4Net::new(address, 24).ok()
}

/// User `number`'s address, tunnel and QoS flow.
pub(crate) fn user(number: u32) -> User {
    let address = Ipv4Addr::from(u32::from(FIRST_USER).wrapping_add(number));
    User { address, teid: number.wrapping_add(1), qfi: QFI }
}

fn rules(number: u32) -> Rules {
    let user = user(number);
    let f_teid = FTeid { teid: Teid(user.teid), address: ENDPOINTS.n3.1.into() };
    let tunnel = OuterHeaderCreation { teid: Teid(user.teid), address: ENDPOINTS.gnb.1.into() };
    let pdr = |id, source_interface, f_teid: Option<FTeid>| Pdr {
        id: PdrId(id),
        precedence: 255,
        pdi: Pdi {
            source_interface,
            f_teid,
            ue_ipv4: Some(user.address),
            ue_ipv6: None,
            qfis: vec![],
            sdf_filters: vec![],
        },
        outer_header_removal: f_teid.is_some(),
        far: FarId(u32::from(id)),
        qers: vec![QerId(1)],
        urrs: vec![UrrId(1)],
    };
    let far = |id, destination_interface, outer_header_creation| Far {
        id: FarId(id),
        apply_action: ApplyAction::Forward,
        forwarding: Some(ForwardingParameters { destination_interface, outer_header_creation, dscp: None }),
        notify: false,
        duplicates: vec![],
        bar: None,
    };
    let qer =
        Qer {
            id: QerId(1),
            uplink_gate: Gate::Open,
            downlink_gate: Gate::Open,
            qfi: Qfi::new(user.qfi),
            mbr: Some(BitRates { uplink_kbps: 1_000_000_000, downlink_kbps: 1_000_000_000 }),
            gbr: None,
            reflective: false,
        };
    let urr = Urr { id: UrrId(1), methods: Methods { volume: true, ..Methods::default() }, ..Urr::default() };
    Rules {
        pdrs: vec![pdr(1, Interface::Access, Some(f_teid)), pdr(2, Interface::Core, None)],
        fars: vec![far(1, Interface::Core, None), far(2, Interface::Access, Some(tunnel))],
        qers: vec![qer],
        urrs: vec![urr],
        bars: vec![],
    }
}

/// The kernel's word on this process' memory, in bytes.
pub(crate) fn resident_bytes() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split(' ').nth(1).context("no resident size")?.parse()?;
    Ok(pages * 4_096)
}

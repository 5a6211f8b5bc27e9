//! The shipped worker with its sessions, as `anchorline dpe` runs it, between two ports of a measurement.

use crate::interrupt;
use crate::machine::resident_bytes;
use crate::nic::Nic;
use crate::replay::Replay;
use crate::report::MemoryUse;
use crate::setup::{ENDPOINTS, N3, N6, config, rules, service_rules, user};
use anyhow::{Context, bail};
use dataplane::{ContentRules, Engine, Port, Worker};
use dpdk::{Eal, EalConfig, Mbuf, Mempool, MempoolConfig};
use dplink::{Command, Desired, Notice};
use indicatif::{ProgressBar, ProgressDrawTarget};
use packet::arp::{self, Operation, Station};
use packet::ethernet::{self, MacAddress};
use rules::{Rules, Seid};
use std::net::Ipv4Addr;
use traffic::{PROFILES, Packets, Profile, catalogue};

/// When everything happens in a measurement without a clock: shortly after the neighbours were met, so that none is
/// asked again.
pub(crate) const NOW_NS: u64 = 1_000_000;

/// Bytes of memory one packet takes in a pool: data room, mbuf and the pool's own header.
const PACKET_BYTES: u64 = 2_048 + 128 + 128 + 64;
/// Memory of DPDK itself, in MiB.
const OVERHEAD_MB: u32 = 64;

/// Cycles of the time stamp counter in a second, as DPDK finds it out; for measurements without packets.
///
/// # Errors
/// DPDK does not start.
pub(crate) fn tsc_hz() -> anyhow::Result<u64> {
    let config =
        EalConfig { memory_mb: OVERHEAD_MB, huge_pages: dpdk::HugePages::Never, ..EalConfig::default() };
    Ok(Eal::init(&config)?.tsc_hz())
}

/// DPDK, and packets to measure with.
pub(crate) struct Memory {
    pub(crate) eal: &'static Eal,
    pub(crate) pools: Vec<Mempool>,
}

impl Memory {
    /// So many pools of so many packets each.
    ///
    /// # Errors
    /// DPDK does not start.
    pub(crate) fn new(pools: usize, packets: u32) -> anyhow::Result<Self> {
        let bytes = pools as u64 * u64::from(packets) * PACKET_BYTES;
        let memory_mb = OVERHEAD_MB + u32::try_from(bytes >> 20).unwrap_or(u32::MAX / 2) + 1;
        let eal = Eal::init(&EalConfig { memory_mb, ..EalConfig::default() })?;
        let pool = || Mempool::new(eal, MempoolConfig { capacity: packets, ..MempoolConfig::default() });
        let pools = (0..pools).map(|_| pool()).collect::<Result<_, _>>()?;
        Ok(Self { eal, pools })
    }

    /// The first pool.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn pool(&self) -> anyhow::Result<&Mempool> {
        self.pools.first().context("no pool was made")
    }
}

/// What the sessions and flows of a profile take each, where this process had so many bytes of memory before there were any.
///
/// # Errors
/// The kernel does not say.
pub(crate) fn memory_use(before: u64, profile: &Profile) -> anyhow::Result<MemoryUse> {
    let grown = resident_bytes("self")?.saturating_sub(before);
    let flows = dataplane::flow_table_bytes(profile.flows as usize) as u64;
    Ok(MemoryUse {
        bytes_per_session: Some(grown.saturating_sub(flows) / u64::from(profile.subscribers.max(1))),
        bytes_per_flow: Some(flows / u64::from(profile.flows.max(1))),
    })
}

/// The sessions of a worker.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    /// Of all workers together.
    pub(crate) sessions: u32,
    /// PDRs of each.
    pub(crate) pdrs: u32,
    /// Flows of all of them together.
    pub(crate) flows: u32,
    /// Whether the PDRs beyond the first two are for services.
    pub(crate) services: bool,
    /// Only those whose packets this card brings to this queue.
    pub(crate) share: Option<(Nic, usize)>,
}

impl Population {
    fn rules(&self, number: u32) -> Rules {
        if self.services { service_rules(number, self.pdrs) } else { rules(number, self.pdrs) }
    }

    fn numbers(&self) -> impl Iterator<Item = u32> {
        let ours = |number: &u32| {
            let address = user(*number).address;
            self.share.as_ref().is_none_or(|(nic, queue)| nic.queue_of_user(address) == *queue)
        };
        (0..self.sessions).filter(ours)
    }
}

/// What is at the far ends of a worker's ports.
pub(crate) trait Outside {
    /// A packet that the worker will receive at a port.
    fn give(&mut self, port: usize, packet: Mbuf);

    /// Throws away what the worker sent.
    fn clear(&mut self);
}

impl Outside for [Replay; 2] {
    fn give(&mut self, port: usize, packet: Mbuf) {
        if let Some(port) = self.get(port) {
            port.wire.borrow_mut().inbox.push(packet);
        }
    }

    fn clear(&mut self) {
        self.iter().for_each(|port| port.wire.borrow_mut().outbox.clear());
    }
}

/// Exchanges with the worker between two rounds.
const HEARD_MAX: usize = 4;

/// The worker, and the engine that controls it.
pub(crate) struct Product<P: Port<Buffer = Mbuf>> {
    pub(crate) worker: Worker<P>,
    engine: Engine,
}

impl<P: Port<Buffer = Mbuf>> Product<P> {
    /// With all sessions in force and its neighbours known.
    ///
    /// # Errors
    /// A session that is not taken; an interruption.
    pub(crate) fn new(
        ports: [P; 2],
        outside: &mut impl Outside,
        pool: &Mempool,
        population: &Population,
    ) -> anyhow::Result<Self> {
        let (engine, worker) = dataplane::connect(&config(population), ports.into(), dpdk::tsc)?;
        let mut product = Self { worker, engine };
        product.put_all(population, (1, 0), |_| ())?;
        product.meet(outside, pool, population).context("the neighbours could not be met")?;
        Ok(product)
    }

    /// One packet each way makes the worker ask for its neighbours, and they answer.
    fn meet(&mut self, outside: &mut impl Outside, pool: &Mempool, population: &Population) -> Option<()> {
        let first = user(population.numbers().next()?);
        let mut frame = vec![0; 2_048];
        for (port, uplink) in [(N3, 1.0), (N6, 0.0)] {
            let mut packets = Packets::new(Profile { uplink, ..PROFILES[0] }, ENDPOINTS, 0);
            let (length, _) = packets.write(first, 0, &mut frame)?;
            outside.give(port, pool.packet(frame.get(..length)?)?);
        }
        self.worker.turn(NOW_NS);
        for port in [N3, N6] {
            outside.give(port, pool.packet(&arp_reply(port)?)?);
        }
        self.worker.turn(NOW_NS);
        outside.clear();
        (self.worker.books().held == 0).then_some(())
    }

    /// The neighbours say again where they are.
    ///
    /// # Errors
    /// There is no packet for that.
    pub(crate) fn meet_again(
        &mut self,
        outside: &mut impl Outside,
        (pool, now_ns): (&Mempool, u64),
    ) -> anyhow::Result<()> {
        for port in [N3, N6] {
            let reply = arp_reply(port).and_then(|frame| pool.packet(&frame));
            outside.give(port, reply.context("there is no packet for an answer")?);
        }
        self.worker.turn(now_ns);
        outside.clear();
        Ok(())
    }

    /// Puts the rules of all sessions in force, as a change makes them, by their revision and the worker's time.
    ///
    /// # Errors
    /// A session that is not taken; an interruption.
    pub(crate) fn put_all(
        &mut self,
        population: &Population,
        (revision, now_ns): (u64, u64),
        change: impl Fn(&mut Rules),
    ) -> anyhow::Result<()> {
        let bar = ProgressBar::new(population.numbers().count() as u64).with_message("sessions");
        // One of several workers speaks for all.
        if population.share.as_ref().is_some_and(|(_, queue)| *queue > 0) {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let (mut applied, mut ordered) = (0, 0u64);
        for number in population.numbers() {
            let mut rules = population.rules(number);
            change(&mut rules);
            let desired = Desired::new(Seid(u64::from(number) + 1), revision, rules);
            if let Some(notice) = self.engine.handle(Command::Put(desired))? {
                bail!("session {number} was not taken: {notice:?}");
            }
            ordered += 1;
            if u64::is_multiple_of(ordered, 256) {
                applied += self.settle(now_ns)?;
                bar.set_position(applied);
            }
        }
        while applied < ordered {
            applied += self.settle(now_ns)?;
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Orders a change of a session: the rate of its QER differs with the revision.
    ///
    /// # Errors
    /// The change is refused.
    pub(crate) fn change(&mut self, number: u32, revision: u64, pdrs: u32) -> anyhow::Result<()> {
        let mut rules = rules(number, pdrs);
        for rate in rules.qers.iter_mut().filter_map(|qer| qer.mbr.as_mut()) {
            rate.downlink_kbps -= revision % 1_000;
        }
        let desired = Desired::new(Seid(u64::from(number) + 1), revision, rules);
        match self.engine.handle(Command::Put(desired))? {
            None => Ok(()),
            Some(notice) => bail!("a change was not taken: {notice:?}"),
        }
    }

    /// Puts the first so many content rules of the catalogue in force.
    ///
    /// # Errors
    /// They are refused.
    pub(crate) fn load(&mut self, rules: u32) -> anyhow::Result<()> {
        let lines = catalogue::applications().take(rules as usize).map(|rule| format!("{rule}\n"));
        let classifier = dpi::rule_file::read_lines(&lines.collect::<String>())?.compile()?;
        let revision = u64::from(rules) + 1;
        let before = self.engine.content();
        self.engine.load(ContentRules::new(revision, classifier, before.as_deref())?);
        self.worker.turn(NOW_NS);
        match self.engine.poll(0).as_slice() {
            [Notice::ContentLoaded { revision: loaded, .. }] if *loaded == revision => Ok(()),
            other => bail!("content rules were not taken: {other:?}"),
        }
    }

    fn settle(&mut self, now_ns: u64) -> anyhow::Result<u64> {
        if interrupt::asked() {
            bail!("interrupted before there was anything to measure");
        }
        for _ in 0..32 {
            self.worker.turn(now_ns);
        }
        self.settled()
    }

    /// Takes what the worker has to tell, as the control side does all the time: what finds no room waits, and has packets looked at.
    pub(crate) fn hear_out(&mut self, now_ns: u64) {
        for _ in 0..HEARD_MAX {
            self.engine.poll(0);
            self.worker.turn(now_ns);
        }
    }

    /// What the worker has put in force since it was last asked.
    ///
    /// # Errors
    /// Anything else it reports.
    pub(crate) fn settled(&mut self) -> anyhow::Result<u64> {
        let notices = self.engine.poll(0);
        match notices.iter().find(|notice| !matches!(notice, Notice::Applied { .. })) {
            Some(notice) => bail!("a session was not taken: {notice:?}"),
            None => Ok(notices.len() as u64),
        }
    }
}

/// The neighbour on a port tells its Ethernet address.
pub(crate) fn arp_reply(port: usize) -> Option<Vec<u8>> {
    let (us, them) = match port {
        N3 => (ENDPOINTS.n3, ENDPOINTS.gnb),
        _ => (ENDPOINTS.n6, ENDPOINTS.router),
    };
    let station = |(mac, address): (MacAddress, Ipv4Addr)| Station { mac, address };
    let mut frame = vec![0; ethernet::LENGTH + arp::LENGTH];
    ethernet::Header::new(us.0, them.0, ethernet::ARP).write(&mut frame)?;
    let reply = arp::Message::new(Operation::Reply, station(them), station(us));
    reply.write(frame.get_mut(ethernet::LENGTH..)?)?;
    Some(frame)
}

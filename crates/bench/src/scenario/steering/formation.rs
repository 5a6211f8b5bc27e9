//! Workers of one engine behind a card, with all sessions in force and their neighbours met.

use crate::dock::{Dock, Ledger};
use crate::interrupt;
use crate::meter::Rack;
use crate::nic::{Hash, Nic};
use crate::plan::Plan;
use crate::product::{NOW_NS, Population, arp_reply};
use crate::setup::{ChosenTunnels, N3, N6, config, rules};
use anyhow::{Context, bail, ensure};
use dataplane::{Crew, Engine, Worker};
use dpdk::Mempool;
use dplink::{Books, Command, Desired, Notice, Spread};
use packet::Buffer;
use rules::Seid;
use std::sync::Arc;

/// Packets of all workers under way at most, where workers hand over: what their rings hold with room to spare.
const WINDOW: usize = 768;
/// Users by whose packets all workers meet the neighbours.
const MEETERS: u32 = 64;

/// How packets get to the workers that own their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The card hashes the users' addresses.
    Inner,
    /// The card hashes TEIDs, which are chosen for that, and on the way down users' addresses.
    Teid,
    /// The card hashes the outermost addresses; workers hand over.
    Outer,
    /// The card has one queue: the first worker receives, and hands over what is not its own.
    OneQueue,
    /// The same, and the first worker does nothing else.
    Distributor,
    /// As inner hash, and the card sorts urgent packets into queues of their own.
    Classes,
}

impl Mode {
    /// In results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Inner => "inner",
            Self::Teid => "teid",
            Self::Outer => "outer",
            Self::OneQueue => "one-queue",
            Self::Distributor => "distributor",
            Self::Classes => "classes",
        }
    }

    const fn hash(self) -> Hash {
        match self {
            Self::Inner | Self::Classes => Hash::Inner,
            Self::Teid => Hash::Teid,
            Self::Outer => Hash::Outer,
            Self::OneQueue | Self::Distributor => Hash::Nothing,
        }
    }

    /// The card brings every packet to its user's worker.
    pub(super) const fn leads(self) -> bool {
        matches!(self, Self::Inner | Self::Teid | Self::Classes)
    }

    fn crew(self, workers: usize) -> Crew {
        let spread = match self {
            Self::Inner | Self::Classes => Spread::InnerHash,
            Self::Teid => Spread::TeidHash,
            Self::Outer => Spread::OuterHash,
            Self::OneQueue | Self::Distributor => Spread::OneQueue,
        };
        Crew {
            workers,
            distributors: usize::from(self == Self::Distributor),
            spread: vec![spread; 2],
            ..Crew::default()
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) mode: Mode,
    pub(super) gnbs: u32,
    pub(super) workers: usize,
}

/// What is before and behind workers.
pub(super) struct Grounds {
    /// By worker, then by port.
    pub(super) docks: Vec<[Dock; 2]>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) nic: Nic,
    /// Where the card goes by them.
    pub(super) tunnels: Option<ChosenTunnels>,
}

impl Grounds {
    pub(super) fn new(case: Case, pool: &Mempool) -> Self {
        let ledger = Arc::new(Ledger::new(case.workers));
        let window = if case.mode.leads() { usize::MAX / 2 } else { WINDOW };
        let dock = |worker| match Dock::new(pool, &ledger, worker, window) {
            dock if case.mode == Mode::Classes => dock.sorted(),
            dock => dock,
        };
        let docks = (0..case.workers).map(|worker| std::array::from_fn(|_| dock(worker))).collect();
        let tunnels = (case.mode == Mode::Teid).then(ChosenTunnels::new);
        Self { docks, ledger, nic: Nic::new(case.mode.hash(), case.workers), tunnels }
    }

    /// As the gNB sends it that was told the TEID the node has chosen.
    fn choose_tunnel(&self, frame: &mut [u8], up: bool) -> anyhow::Result<()> {
        match self.tunnels.as_ref().filter(|_| up) {
            Some(tunnels) => tunnels.move_frame(frame).context("a frame without a tunnel"),
            None => Ok(()),
        }
    }

    /// Lays packets of the stream before the workers the card brings them to.
    pub(super) fn lay(
        &self,
        rack: &mut Rack,
        count: usize,
        mut seen: impl FnMut(usize, &dpdk::Mbuf),
    ) -> anyhow::Result<()> {
        for _ in 0..count {
            let (mut mbuf, up) = rack.next()?;
            let port = if up { N3 } else { N6 };
            seen(port, &mbuf);
            self.choose_tunnel(mbuf.data_mut(), up)?;
            let worker = self.nic.queue(mbuf.data(), up);
            let dock = self.docks.get(worker).and_then(|docks| docks.get(port)).context("no such queue")?;
            dock.quay().inbox.push_back(mbuf);
        }
        Ok(())
    }
}

/// The workers, and all that is around them.
pub(super) struct Formation {
    pub(super) case: Case,
    pub(super) workers: Vec<Worker<Dock>>,
    pub(super) grounds: Grounds,
    /// Every flow has had a packet each way.
    pub(super) has_met: bool,
    engine: Engine,
}

impl Formation {
    /// With the sessions of a plan.
    ///
    /// # Errors
    /// A session that is not taken, neighbours that cannot be met, an interruption.
    pub(super) fn new(case: Case, plan: &Plan, pool: &Mempool) -> anyhow::Result<Self> {
        let Case { mode, workers, .. } = case;
        let population = Population {
            sessions: plan.profile.subscribers,
            pdrs: plan.pdrs,
            flows: plan.profile.flows,
            services: false,
            share: None,
        };
        let grounds = Grounds::new(case, pool);
        let ports = grounds.docks.iter().map(|docks| docks.to_vec()).collect();
        let (engine, workers) =
            dataplane::connect_crew(&config(&population), &mode.crew(workers), ports, dpdk::tsc)?;
        let mut formation = Self { case, workers, grounds, has_met: false, engine };
        formation.establish(&population)?;
        formation.meet(pool, plan)?;
        Ok(formation)
    }

    fn establish(&mut self, population: &Population) -> anyhow::Result<()> {
        let mut applied = 0;
        for number in 0..population.sessions {
            let mut rules = rules(number, population.pdrs);
            if let Some(tunnels) = &self.grounds.tunnels {
                tunnels.move_rules(number, &mut rules);
            }
            let desired = Desired::new(Seid(u64::from(number) + 1), 1, rules);
            if let Some(notice) = self.engine.handle(Command::Put(desired))? {
                bail!("session {number} was not taken: {notice:?}");
            }
            if number % 256 == 0 {
                applied += self.settle()?;
            }
        }
        while applied < population.sessions {
            applied += self.settle()?;
        }
        Ok(())
    }

    fn settle(&mut self) -> anyhow::Result<u32> {
        ensure!(!interrupt::asked(), "interrupted before there was anything to measure");
        for _ in 0..8 {
            self.turn();
        }
        let notices = self.engine.poll(0);
        match notices.iter().find(|notice| !matches!(notice, Notice::Applied { .. })) {
            Some(notice) => bail!("a session was not taken: {notice:?}"),
            None => Ok(notices.len() as u32),
        }
    }

    fn turn(&mut self) -> usize {
        self.workers.iter_mut().map(|worker| worker.turn(NOW_NS)).sum()
    }

    /// Packets of some users, wherever they belong, make every worker ask for its neighbours; one hears the answers.
    fn meet(&mut self, pool: &Mempool, plan: &Plan) -> anyhow::Result<()> {
        let mut packets = traffic::Packets::new(plan.profile, crate::setup::ENDPOINTS, plan.seed);
        let mut frame = vec![0; 2_048];
        for number in 0..MEETERS.min(plan.profile.subscribers) {
            for up in [true, false] {
                let written = packets.write_way(crate::setup::user(number), (number, up), &mut frame);
                let bytes =
                    written.and_then(|length| frame.get_mut(..length)).context("a frame cannot be made")?;
                self.grounds.choose_tunnel(bytes, up)?;
                self.give(if up { N3 } else { N6 }, pool, bytes)?;
            }
            while self.turn() > 0 {}
        }
        for port in [N3, N6] {
            let reply = arp_reply(port).context("an ARP reply cannot be made")?;
            self.give(port, pool, &reply)?;
        }
        for _ in 0..4 {
            self.turn();
        }
        for dock in self.grounds.docks.iter().flatten() {
            dock.quay().outbox.clear();
        }
        let held: u64 = self.books().iter().map(|books| books.held).sum();
        ensure!(held == 0, "{held} packets still wait for their neighbours");
        for (at, worker) in self.workers.iter().enumerate() {
            self.grounds.ledger.level(at, done(worker));
        }
        Ok(())
    }

    /// The first worker receives a frame.
    fn give(&self, port: usize, pool: &Mempool, frame: &[u8]) -> anyhow::Result<()> {
        let packet = pool.packet(frame).context("the pool is empty")?;
        let dock = self.grounds.docks.first().and_then(|docks| docks.get(port)).context("no such port")?;
        dock.quay().inbox.push_back(packet);
        Ok(())
    }

    /// What each worker has counted.
    pub(super) fn books(&self) -> Vec<Books> {
        self.workers.iter().map(Worker::books).collect()
    }
}

/// Packets a worker is done with: what it handed over is another's.
pub(super) fn done(worker: &Worker<Dock>) -> usize {
    let counters = worker.counters();
    let sent: u64 = counters.ports.iter().map(|port| port.sent).sum();
    (sent + counters.drops.iter().sum::<u64>()) as usize
}

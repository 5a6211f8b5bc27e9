//! What a scenario found, with the names it has in JSON. Names are stable: others read them.

mod latency;
mod pfcp;

pub(crate) use latency::{Latency, Load, Waits};
pub(crate) use pfcp::{PfcpCost, PfcpCosts, PfcpGrowth, PfcpRates};

use crate::compared::{Carried, Compared};
use crate::contest::{Runner, Score};
use crate::machine::Machine;
use crate::plan::{Direction, Plan};
use crate::product::Memory;
use crate::sample::ONE_IN;
use crate::scenario::Classification;
use crate::spread::{Spread, rounded};
use dataplane::{Counters, NodeId};
use serde::{Deserialize, Serialize};

/// The result of a scenario, or of one point of a sweep. What was not measured is null.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) scenario: String,
    pub(crate) profile: String,
    pub(crate) direction: Direction,
    pub(crate) workers: u32,
    pub(crate) sessions: u32,
    pub(crate) active: u32,
    pub(crate) flows: u32,
    /// Content rules of a session.
    pub(crate) rules: u32,
    /// PDRs of a session.
    pub(crate) pdrs: u32,
    pub(crate) seed: u64,
    pub(crate) trials: u32,
    /// Of the users' packets.
    pub(crate) mean_bytes: f64,
    pub(crate) mpps_per_core: Option<f64>,
    pub(crate) gbps_per_core: Option<f64>,
    pub(crate) floor_mpps_per_core: Option<f64>,
    pub(crate) bare_mpps_per_core: Option<f64>,
    /// Product over bare loop.
    pub(crate) ratio: Option<f64>,
    /// Share of packets that went in and did not come out.
    pub(crate) loss: Option<f64>,
    pub(crate) cycles_per_packet: Option<f64>,
    pub(crate) spread: Option<Spreads>,
    pub(crate) latency_us: Option<Latency>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) memory: MemoryUse,
    /// Misses of the last-level cache per packet of the product; null where the CPU's counters cannot be had.
    pub(crate) cache_misses_per_packet: Option<f64>,
    /// Share of the time in which the thread that was measured had a CPU; less than 1: other programs had it.
    pub(crate) cpu_share: Option<f64>,
    pub(crate) machine: Machine,
    /// Every packet was accounted for.
    pub(crate) balanced: bool,
    /// Packets that were compared byte by byte; all were right.
    pub(crate) compared: u64,
    /// Stopped before it was done.
    pub(crate) interrupted: bool,
    /// What a reader must know about the figures.
    pub(crate) notes: Vec<String>,
    #[serde(flatten)]
    pub(crate) load: Option<Load>,
    #[serde(flatten)]
    pub(crate) pfcp: Option<PfcpRates>,
    #[serde(flatten)]
    pub(crate) control: Option<Control>,
    #[serde(flatten)]
    pub(crate) services: Option<Services>,
    /// Of `services`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) classification: Option<Classification>,
    #[serde(flatten)]
    pub(crate) steering: Option<Steering>,
    #[serde(flatten)]
    pub(crate) drops: Option<Drops>,
    /// Of `steering`: inner hash with one worker, two, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) over_workers: Vec<Carried>,
    /// Of `steering`: what others published, and what of ours is nearest to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) published: Vec<Compared>,
    /// Of a sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) points: Vec<Report>,
}

/// Medians with least and most, over trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spreads {
    /// Cycles per packet.
    pub(crate) floor: Spread,
    /// Cycles per packet.
    pub(crate) bare: Spread,
    /// Cycles per packet.
    pub(crate) product: Spread,
    /// Product over bare loop.
    pub(crate) ratio: Spread,
}

/// What `control` adds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Control {
    /// Sessions changed in each second the worker ran. (No other scenario may add a key of this name: of two that are
    /// flattened, only the first is read back.)
    pub(crate) changes_per_s: u32,
    /// The rate with these changes over the rate without, by trial.
    pub(crate) ratio_to_quiet: Spread,
    /// How long the worker's turns take without changes, a vector of packets from each port in each; and with changes,
    /// which the worker sees to between two turns: by so much longer a packet may wait. Of the trial whose p99.9 stands in the middle.
    pub(crate) quiet_turn: TurnLengths,
    pub(crate) changed_turn: TurnLengths,
    /// By how much longer p99.9 is with changes, in microseconds, by trial; reports of before it was kept have none.
    #[serde(default)]
    pub(crate) longer_p99_9_us: Option<Spread>,
}

/// How long turns take, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TurnLengths {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p99_9_us: f64,
}

/// What `services` adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Services {
    /// The rate over that of a worker whose sessions know of no services, over the same packets, by trial.
    pub(crate) ratio_to_forward: Spread,
    /// That other worker's rate.
    pub(crate) forward_mpps_per_core: f64,
    /// Its nodes.
    #[serde(default)]
    pub(crate) forward_nodes: Vec<Node>,
    /// Flows the worker found to be of an application, and to be of none, in a second of its time.
    pub(crate) detected_flows_per_s: f64,
    pub(crate) undetected_flows_per_s: f64,
    /// Flows that had to give way to others before it was known, of all.
    pub(crate) displaced_flows: u64,
    /// The same with fewer flows that open; with all rules alone.
    #[serde(default)]
    pub(crate) at_flow_rate: Option<AtFlowRate>,
}

/// Services where hardly more flows open in a second than are asked for, however many packets pass meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AtFlowRate {
    /// New flows in a second of the worker's time.
    pub(crate) flows_per_s: f64,
    /// Of the packets, those that open flows.
    pub(crate) opening_share: f64,
    pub(crate) mpps_per_core: Option<f64>,
    pub(crate) ratio_to_forward: Spread,
}

impl Services {
    /// New flows in a second of the worker's time.
    pub(crate) fn flows_per_s(&self) -> f64 {
        self.detected_flows_per_s + self.undetected_flows_per_s
    }
}

/// What `steering` adds: how packets get to the workers that own their users, and what that costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Steering {
    /// `inner`, `teid`, `outer`, `one-queue` or `distributor`.
    pub(crate) mode: String,
    /// Tunnels come from so many.
    pub(crate) gnbs: u32,
    /// Share of the packets that one worker handed to another.
    pub(crate) handed_share: f64,
    /// Cycles of each worker for each packet of all.
    pub(crate) worker_cycles: Vec<f64>,
    /// Of all workers together, for each packet.
    pub(crate) work_cycles: Option<Spread>,
    /// The rate over that of a card with inner hash, in the same turns.
    pub(crate) ratio_to_inner: Option<Spread>,
    /// Of inner hash: what all workers together carry over what one alone does, in the same turns.
    #[serde(default)]
    pub(crate) times_one: Option<Spread>,
    /// Cycles that handing one packet over adds, of both workers together.
    pub(crate) handoff_cycles: Option<f64>,
    /// The same of a loop that hands over a pointer to the packet and touches no more than its headers: what it takes to
    /// bring it from one core's cache to another's.
    #[serde(default)]
    pub(crate) handoff_floor_cycles: Option<f64>,
    /// The rate that a mode reached alone over that of inner hash, where cores are shared out between distribution and
    /// processing as it is best: computed of what both cost here.
    pub(crate) ratio_shared_out: Option<f64>,
    /// Of a point of latency: a million packets a second, of all workers together.
    pub(crate) offered_mpps: Option<f64>,
    /// Of a point of overload: what became of the packets of each class, the urgent, or the one user's, first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) by_class: Vec<ClassFate>,
}

/// What became of the packets of a class under overload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClassFate {
    /// `urgent`, `one` (user's), or `rest`.
    pub(crate) class: String,
    /// Packets offered.
    pub(crate) packets: u64,
    /// The share of them that found their queue full, or were dropped as too much of one user's.
    pub(crate) loss: f64,
    /// Of the others.
    pub(crate) latency_us: Latency,
}

/// What `drops` adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Drops {
    pub(crate) dropped: Vec<Dropped>,
}

/// Packets that are dropped for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Dropped {
    /// What is wrong with them, or with their users' rules.
    pub(crate) what: String,
    /// As `ctl drops` names it.
    pub(crate) reason: String,
    pub(crate) cycles_per_packet: Spread,
    /// Of the same packets without that, in the same turns.
    pub(crate) forwarded_cycles_per_packet: Spread,
    /// The one over the other: above 1, a packet that is dropped costs more.
    pub(crate) of_forwarded: Spread,
    /// The share of them that was answered instead, or was within its rate.
    pub(crate) answered_share: f64,
}

/// One node of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) packets: u64,
    pub(crate) vectors: u64,
    pub(crate) cycles_per_packet: f64,
    pub(crate) packets_per_vector: f64,
}

/// Memory of the data plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryUse {
    pub(crate) bytes_per_session: Option<u64>,
    pub(crate) bytes_per_flow: Option<u64>,
}

impl Report {
    /// Nothing measured yet.
    pub(crate) fn new(scenario: &str, plan: &Plan, machine: Machine) -> Self {
        let profile = &plan.profile;
        Self {
            scenario: scenario.to_owned(),
            profile: profile.name.to_owned(),
            direction: plan.direction,
            workers: 1,
            sessions: profile.subscribers,
            active: profile.active,
            flows: profile.flows,
            rules: plan.rules,
            pdrs: plan.pdrs,
            seed: plan.seed,
            trials: plan.trials,
            mean_bytes: rounded(profile.mean_bytes()),
            mpps_per_core: None,
            gbps_per_core: None,
            floor_mpps_per_core: None,
            bare_mpps_per_core: None,
            ratio: None,
            loss: None,
            cycles_per_packet: None,
            spread: None,
            latency_us: None,
            nodes: vec![],
            memory: MemoryUse::default(),
            cache_misses_per_packet: None,
            cpu_share: None,
            machine,
            balanced: false,
            compared: 0,
            interrupted: false,
            notes: vec![],
            load: None,
            pfcp: None,
            control: None,
            services: None,
            classification: None,
            steering: None,
            drops: None,
            over_workers: vec![],
            published: vec![],
            points: vec![],
        }
    }

    /// Takes over what a contest found.
    pub(crate) fn score(&mut self, score: &Score, memory: &Memory) {
        let hz = memory.eal.tsc_hz();
        self.compare(score, hz);
        let product = score.spread(Runner::Product, hz).median;
        self.trials = score.times_ns[Runner::Product as usize].len() as u32;
        self.mean_bytes = rounded(score.laid.bytes as f64 / score.laid.packets.max(1) as f64);
        self.set_rate(hz as f64 / product / 1e6);
        self.cycles_per_packet = Some(product);
        // Nodes are timed by a counter that runs on while other programs have the CPU, which meets each of them in
        // proportion to the time it takes.
        let share = score.took.share(hz);
        self.nodes
            .iter_mut()
            .for_each(|node| node.cycles_per_packet = rounded(node.cycles_per_packet * share));
        self.cpu_share = Some(score.cpu_share);
        self.interrupted = score.interrupted;
    }

    /// Takes over the yardsticks, and what the product is beside them; its own rate is another's business.
    pub(crate) fn compare(&mut self, score: &Score, hz: u64) {
        let spread = |runner| score.spread(runner, hz);
        let (floor, bare, product) = (spread(Runner::Floor), spread(Runner::Bare), spread(Runner::Product));
        let ratio = score.ratio();
        let mpps = |cycles: f64| (cycles > 0.0).then(|| rounded(hz as f64 / cycles / 1e6));
        self.floor_mpps_per_core = mpps(floor.median);
        self.bare_mpps_per_core = mpps(bare.median);
        self.ratio = (ratio.median > 0.0).then_some(ratio.median);
        self.spread = self.ratio.map(|_| Spreads { floor, bare, product, ratio });
    }

    /// There is no rate to compare.
    pub(crate) fn has_no_rate(&mut self) {
        (self.mpps_per_core, self.gbps_per_core, self.cycles_per_packet) = (None, None, None);
        (self.ratio, self.spread) = (None, None);
    }

    /// Packets and bits of a second.
    pub(crate) fn set_rate(&mut self, mpps: f64) {
        self.mpps_per_core = Some(rounded(mpps));
        self.gbps_per_core = Some(rounded(mpps * self.mean_bytes * 8.0 / 1e3));
    }

    /// What its file is called: results of one folder that differ in more than a seed must not share one.
    pub(crate) fn name(&self) -> String {
        let forward = format!("forward-{}", self.profile);
        match (self.scenario.as_str(), self.direction) {
            ("forward", Direction::Both) => forward,
            ("forward", Direction::Up) => forward + "-up",
            ("forward", Direction::Down) => forward + "-down",
            (scenario, _) => scenario.to_owned(),
        }
    }

    /// One in how many packets is compared, for readers.
    pub(crate) fn comparison(&self) -> String {
        format!("{} packets, one in {ONE_IN}, were compared byte by byte; all were right", self.compared)
    }
}

/// Nodes that ran between two counts.
pub(crate) fn nodes(after: &Counters, before: &Counters) -> Vec<Node> {
    let node = |(at, id): (usize, &NodeId)| {
        let (after, before) = (after.nodes.get(at)?, before.nodes.get(at)?);
        let (packets, vectors) = (after.packets - before.packets, after.vectors - before.vectors);
        let per = |whole: u64, parts: u64| rounded(whole as f64 / parts.max(1) as f64);
        (packets > 0).then(|| Node {
            name: id.name().to_owned(),
            packets,
            vectors,
            cycles_per_packet: per(after.cycles - before.cycles, packets),
            packets_per_vector: per(packets, vectors),
        })
    };
    NodeId::ALL.iter().enumerate().filter_map(node).collect()
}

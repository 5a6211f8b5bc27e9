//! What a data plane engine has counted. Every counter is cumulative since the engine started.

use rules::Interface;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use steer::ExactState;

/// The books of a worker: every packet is somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Books {
    /// Packets taken from ports.
    pub received: u64,
    /// Packets the engine made itself (ARP requests), or that the kernel had sent by a port.
    pub created: u64,
    /// Packets given to ports.
    pub sent: u64,
    /// Packets dropped, whatever the reason.
    pub dropped: u64,
    /// Packets addressed to the engine itself that reached their end (ARP replies, Error Indications...).
    pub consumed: u64,
    /// Packets given to the kernel, as they are addressed to a port and not spoken here.
    pub punted: u64,
    /// Packets held now, waiting for something.
    pub held: u64,
    /// Packets that other workers handed over.
    pub handed_in: u64,
    /// Packets handed to other workers.
    pub handed_out: u64,
}

impl Books {
    /// `received + created + handed_in = sent + dropped + consumed + punted + held + handed_out`.
    pub const fn balanced(&self) -> bool {
        self.received + self.created + self.handed_in
            == self.sent + self.dropped + self.consumed + self.punted + self.held + self.handed_out
    }
}

/// One node of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatistics {
    /// The node.
    pub name: String,
    /// Times it ran.
    pub vectors: u64,
    /// Packets it handled.
    pub packets: u64,
    /// Time stamp counter cycles it took.
    pub cycles: u64,
}

/// GTP-U paths (TS 29.281 7.2). The first two are levels, not counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStatistics {
    /// Peers that tunnels lead to.
    pub peers: u64,
    /// Of them, those whose path has failed.
    pub failed: u64,
    /// Echo requests sent, repetitions included.
    pub echo_requests: u64,
    /// Answers to them.
    pub echo_responses: u64,
    /// Times a path failed.
    pub failures: u64,
    /// Times a peer was restarted, as its Recovery Time Stamp tells.
    pub restarts: u64,
}

/// What is known of the path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathState {
    /// It has not answered yet, nor been silent for long enough; or nobody is asked.
    Unknown,
    /// It answered what it was asked last.
    Up,
    /// It did not.
    Failed,
    /// No route leads there.
    NoRoute,
}

/// A peer that tunnels lead to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStatistics {
    /// The side it is on.
    pub side: Interface,
    /// Its address.
    pub address: IpAddr,
    /// Ours towards it; `None` where no route leads there.
    pub ours: Option<IpAddr>,
    /// Tunnels that lead to it.
    pub tunnels: u32,
    /// Whether it is there.
    pub path: PathState,
    /// How long its last answer took, in microseconds; `None` before the first.
    pub round_trip_us: Option<u32>,
    /// How long ago that was, in milliseconds.
    pub last_answer_age_ms: Option<u64>,
    /// When it began, in seconds since 1900, as it says itself (TS 29.281 8.8); `None` where it does not.
    pub recovery_time_stamp: Option<u32>,
    /// Its restarts since it is known.
    pub restarts: u32,
    /// Bytes of IP that pass on the way there, as routers have said; `None` where none did.
    pub path_mtu: Option<u16>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatistics {
    /// Sessions it has in force.
    pub sessions: u64,
    /// The share of its time that packets took in the last seconds, in parts of a thousand; 0 where there is one worker.
    pub busy_permille: u16,
    /// Flows it remembers now.
    pub flows: u64,
    /// PDRs that sessions take the room of: more than they have, as room is given out in powers of two.
    pub pdrs: u64,
    /// Of how many PDRs there is room.
    pub pdrs_most: u64,
    /// Paths to its peers.
    pub paths: PathStatistics,
    /// What content rules found out about flows.
    pub content: ContentStatistics,
    /// Where its packets went.
    pub books: Books,
    /// By node, in graph order.
    pub nodes: Vec<NodeStatistics>,
    /// Drops by reason; reasons that never occurred are left out.
    pub drops: Vec<(String, u64)>,
    /// Users that gave way to others last, 16 at most, and how many packets of each were dropped for that: by its IPv4 address, or the
    /// first address of its /64.
    pub gave_way: Vec<(IpAddr, u64)>,
}

/// What content rules found out about flows, since the worker started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentStatistics {
    /// Of the rules in force; 0 without.
    #[serde(with = "crate::hex")]
    pub revision: u64,
    /// Flows that are looked at now.
    pub waiting: u64,
    /// Flows found to be of an application.
    pub detected: u64,
    /// Flows found to be of none.
    pub undetected: u64,
    /// Those of both whose ClientHello has Encrypted ClientHello, or what looks like it (GREASE).
    pub encrypted: u64,
    /// Flows that had to give way to others before it was known.
    pub displaced: u64,
    /// Server addresses that got a name from DNS.
    pub names: u64,
    /// Requests that got a field by header enrichment.
    pub enriched: u64,
    /// Requests that were to get one, and could not.
    pub unenriched: u64,
}

/// Whether packets get through a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortLink {
    /// Its device does not say.
    #[default]
    Unknown,
    /// They do.
    Up,
    /// Its link is down.
    Down,
    /// Its interface in the kernel is gone.
    Gone,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatistics {
    /// Its name in the configuration.
    pub name: String,
    /// The DPDK device behind it.
    pub device: String,
    /// Packets received.
    pub received: u64,
    /// Bytes received, from the Ethernet header on.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes sent, from the Ethernet header on.
    pub sent_bytes: u64,
    /// Packets the device lost before they could be received, where it counts them; not in the books.
    pub missed: u64,
    /// Packets the device took and failed to send, where it counts them; in the books they are sent.
    pub unsent: u64,
    /// Whether packets get through.
    pub link: PortLink,
    /// What it and the kernel have given each other, if they are to.
    pub punting: Option<Punting>,
    /// How its packets get to the workers that own their users.
    pub spread: Spread,
    /// What the device was found to be able to do about that, and what was done.
    pub steering: PortSteering,
    /// Of the packets received, those of each class of [`PortSteering::classes`], in its order.
    pub classes: Vec<u64>,
}

/// What a port and the kernel's interface for it have given each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Punting {
    /// The interface's name.
    pub interface: String,
    /// Packets given to the kernel.
    pub punted: u64,
    /// Packets the kernel had sent by the port.
    pub from_kernel: u64,
    /// Of those given, packets that the interface did not take, as it is down or gone.
    pub refused: u64,
}

/// What a worker does while no packet waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerIdle {
    /// In words, such as "looks on".
    pub does: String,
    /// Why that is not what the configuration wants of it: "not available here, because ...".
    pub lacks: Option<String>,
}

/// What was found out about a port's device at the start, and what was done so that it leads packets to the workers that
/// own their users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSteering {
    /// DPDK's driver.
    pub driver: String,
    /// What the card's firmware calls itself, where the driver says.
    pub firmware: Option<String>,
    /// Receive queues in use.
    pub queues: u32,
    /// Why packets get to their workers in the way they do, as a sentence.
    pub reason: String,
    /// Settings made and flow rules in force, as DPDK's testpmd reads them.
    pub installed: Vec<String>,
    /// What the driver did not take, each with its words.
    pub refused: Vec<String>,
    /// Classes of the configuration, the most urgent first.
    pub classes: Vec<PortClass>,
    /// Where its parts are.
    pub placement: PortPlacement,
    /// Exact rules of sessions that the card's hash leads elsewhere, if it has any of these.
    pub exact: Option<ExactState>,
}

/// The NUMA nodes that a port's parts are on, as the kernel says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortPlacement {
    /// Of its device; `None` of one that is on no node, as in software, or on a machine that tells none.
    pub device: Option<u32>,
    /// Of the packets it receives into, ascending; empty where the kernel does not say.
    pub packets: Vec<u32>,
    /// Of the workers' CPUs, ascending, each once; those of workers that may run anywhere are left out.
    pub workers: Vec<u32>,
    /// What is not on the node it belongs on, each a sentence.
    pub apart: Vec<String>,
}

/// A class of packets of a port, which is served before those behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortClass {
    /// Its name in the configuration.
    pub name: String,
    /// What packets are in it, for people.
    pub packets: String,
    /// The device sorts them out; where not, they are with the rest.
    pub in_force: bool,
}

/// How the packets of a port get to the workers that own their users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// There is one worker.
    #[default]
    OneWorker,
    /// The device brings them there: it hashes the user's address.
    InnerHash,
    /// The device spreads them by something else, over all workers or over those that only distribute; each hands on what
    /// is not its own.
    OuterHash,
    /// The device has one queue: one worker receives them all, and hands on what is not its own.
    OneQueue,
    /// The device brings them there by their tunnels: it hashes TEIDs, which this node chooses for that. Those of control
    /// planes lead anywhere, and who receives their packets hands on what is not its own.
    TeidHash,
}

impl Spread {
    /// For people.
    pub const fn about(self) -> &'static str {
        match self {
            Self::OneWorker => "one worker",
            Self::InnerHash => "inner hash by the device",
            Self::OuterHash => "outer hash, then hand-off",
            Self::OneQueue => "one queue, then hand-off",
            Self::TeidHash => "TEID hash by the device",
        }
    }
}

/// A whole DPE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Since the engine started.
    pub uptime_ms: u64,
    /// Sessions in force.
    pub sessions: u64,
    /// In the order of the configuration.
    pub ports: Vec<PortStatistics>,
    /// One entry a worker.
    pub workers: Vec<WorkerStatistics>,
    /// What each worker does while no packet waits.
    pub idle: Vec<WorkerIdle>,
}

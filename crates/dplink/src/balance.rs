//! How sessions are spread over workers, and why; what is to move, and what has moved.

use rules::{Instance, Seid};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A session, as one may name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// By the user's address, and the network it is of.
    User(IpAddr, Instance),
    /// By its SEID of the user plane.
    Session(Seid),
}

impl Whose {
    /// What is said where there is none, without the network, of which the data plane does not know the name: a sentence for people.
    pub fn not_found(&self) -> String {
        match self {
            Self::User(ue, _) => format!("no session has the address {ue}"),
            Self::Session(session) => format!("there is no session {session}"),
        }
    }
}

/// Where a session is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// The worker, by its number from 0.
    pub worker: u8,
    /// Nothing moves: it is only said whether the session could go.
    pub is_dry: bool,
}

/// What is to be even between workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The share of their time that packets take. What one session costs is not known: it is reckoned as much as others of
    /// its worker.
    #[default]
    Load,
    /// How many sessions they have.
    Sessions,
}

/// What is done without an order so that workers are as busy as each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BalanceMode {
    /// Nothing: each session is at the worker of its user's address.
    #[default]
    Off,
    /// New sessions avoid a worker that is much busier.
    New,
    /// Besides, some sessions leave it where the difference lasts.
    All,
}

impl BalanceMode {
    /// As in the configuration (`dpe.balance`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::New => "new",
            Self::All => "all",
        }
    }
}

/// How sessions and packets are spread over workers now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balancing {
    /// What is done without an order.
    pub mode: BalanceMode,
    /// By how much busier a worker has to be than another for that, in parts of a thousand of its time.
    pub margin_permille: u16,
    /// A device brings packets to the workers of their users' addresses, so that of a session elsewhere each packet is handed
    /// over.
    pub is_led_by_devices: bool,
    /// Seconds in a row for which workers have been unevenly busy, and after how many sessions move (with
    /// [`BalanceMode::All`]).
    pub uneven_s: u32,
    /// See [`Balancing::uneven_s`].
    pub patience_s: u32,
    /// By number.
    pub workers: Vec<WorkerLoad>,
    /// Why new sessions went where they did.
    pub placed: Placements,
    /// Sessions that moved.
    pub moved: u64,
    /// Sessions that were to move and stayed.
    pub stayed: u64,
    /// Sessions that are to move, or on their way.
    pub waiting: u32,
    /// The last of both, the newest first; [`Balancing::MOVES_MAX`] at most.
    pub last: Vec<Move>,
}

impl Balancing {
    /// Moves remembered.
    pub const MOVES_MAX: usize = 64;
}

/// A worker, as far as it matters to where sessions are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLoad {
    /// Sessions that are its own, those on their way there among them.
    pub sessions: u64,
    /// Of how many there is room; 0: it only distributes packets.
    pub room: u64,
    /// The share of its time that packets took in the last seconds, in parts of a thousand; 0 where there is one worker.
    pub busy_permille: u16,
    /// Packets it took from ports and from other workers, a second, in the last seconds; 0 where there is one worker.
    pub packets_per_s: u64,
}

/// Why new sessions went where they did, since the engine started: how many for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placements {
    /// To the worker that the hash of the user's address names.
    pub address: u64,
    /// To the least busy, as that one was much busier.
    pub less_busy: u64,
    /// To the worker of sessions they share a meter with.
    pub meter: u64,
    /// To the one with the fewest sessions, as there was no room at theirs.
    pub no_room: u64,
    /// To the one that has all sessions of Ethernet frames.
    pub frames: u64,
}

/// Who wanted a session to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveCause {
    /// Somebody who named it.
    Asked,
    /// An order to make workers even.
    Evening,
    /// The engine, as a worker had been busier than another for long.
    Balance,
    /// The engine, as the session is to share a meter that another worker has.
    Meter,
}

/// A session that moved, or was to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The session.
    pub session: Seid,
    /// The worker it was at; `None` if it had gone before it was looked at.
    pub from: Option<u8>,
    /// The worker it was to go to.
    pub to: u8,
    /// Who wanted it.
    pub cause: MoveCause,
    /// How long ago it ended, in milliseconds.
    pub age_ms: u64,
    /// Why it stayed, as a sentence; `None`: it moved.
    pub stayed: Option<String>,
}

/// A session that an order to make workers even would have move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The session.
    pub session: Seid,
    /// The worker it is at.
    pub from: u8,
    /// The worker it is to go to.
    pub to: u8,
}

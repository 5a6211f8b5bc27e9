//! What rules are asked for.

use crate::{Family, PERIOD};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Most workers a node has.
const WORKERS_MAX: u16 = 64;
/// Most classes besides the rest.
pub(crate) const CLASSES_MAX: usize = 7;
/// Most sessions steered one by one; cards hold some thousands.
const STEERED_MAX: usize = 4096;

/// Which network a port is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// N3, S1-U: users are inside GTP-U, as source.
    Access,
    /// N6, SGi (and N9 from a PSA): users are the destination.
    Core,
}

/// A class of traffic that gets queues of its own, which are served first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// QoS flow identifiers of the PDU session container (TS 38.415 5.5.3.3), 0 to 63.
    pub qfis: Vec<u8>,
    /// DiffServ code points of packets of the core side, 0 to 63.
    pub dscps: Vec<u8>,
    /// VLAN priorities, 0 to 7; for cards that can do no better.
    pub pcps: Vec<u8>,
}

/// One session led to a queue by an exact rule (flow director).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steered {
    /// Its uplink tunnel.
    pub teid: u32,
    /// Its user's address.
    pub ue: IpAddr,
    /// The queue, which is its worker's.
    pub queue: u16,
}

/// Packets that one exact rule, or a few, tell apart from all others (flow director).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Those in a tunnel, by its TEID; over IPv4.
    Tunnel(u32),
    /// Those outside tunnels to this address.
    Address(IpAddr),
    /// Those outside tunnels to the IPv6 addresses with these first 64 bits.
    Prefix(u64),
}

/// What is to be steered, and over what.
///
/// Worker `w` polls queue `w`, and queue `(k + 1) * workers + w` of class `k` before it: the hash chooses the same worker in
/// every class, so a user's packets meet in one worker whatever their class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The card.
    pub family: Family,
    /// DPDK's number of the port.
    pub port: u16,
    /// Workers, 1 to 64; a power of two if there are classes.
    pub workers: u16,
    /// At most 7, the most urgent first; rules for the rest need none.
    pub classes: Vec<Class>,
    /// After so many entries the workers' table from hash to worker begins again.
    pub period: u16,
    /// Sessions with rules of their own, at most 4096.
    pub steered: Vec<Steered>,
}

/// Why there are no rules for a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Outside 1 to 64.
    #[error("{0} workers: a node has 1 to {WORKERS_MAX}")]
    Workers(u16),
    /// Queue groups are powers of two on every card that has them.
    #[error("{0} workers: with classes they must be a power of two, because groups of queues are")]
    NotPowerOfTwo(u16),
    /// Too many classes.
    #[error("{0} classes are more than the {CLASSES_MAX} allowed")]
    Classes(usize),
    /// A QFI or DSCP above 63 or a priority above 7.
    #[error("{0}: QFI and DSCP are 0 to 63, VLAN priorities 0 to 7")]
    Value(u8),
    /// More than the card has.
    #[error("{wanted} queues are wanted, and {family} has {most}")]
    Queues {
        /// The card.
        family: Family,
        /// Workers times classes.
        wanted: usize,
        /// Of one port.
        most: usize,
    },
    /// Nobody knows whether its rules have an order.
    #[error("sessions cannot be led by rules of their own with the family {0}")]
    Unsteered(Family),
    /// Too many, or to a queue that is no worker's.
    #[error(
        "sessions led by rules of their own: at most {STEERED_MAX}, to queues below the number of workers"
    )]
    Steered,
}

impl Request {
    /// For a card with one queue a worker, without classes, as port 0 of a node whose tables have the usual period.
    pub const fn new(family: Family, workers: u16) -> Self {
        Self { family, port: 0, workers, classes: Vec::new(), period: PERIOD, steered: Vec::new() }
    }

    /// The queues of class `k`, or with `None` of the rest.
    pub(crate) fn queues(&self, class: Option<usize>) -> Vec<u16> {
        let group = class.map_or(0, |class| u16::try_from(class).unwrap_or(0).saturating_add(1));
        let first = group.saturating_mul(self.workers);
        (first..first.saturating_add(self.workers)).collect()
    }

    /// These queues as a rule lists them for a card that fills its table with the list over and over: the list is as long as
    /// the workers' table, unless they agree anyway.
    pub(crate) fn listed(&self, queues: &[u16]) -> Vec<u16> {
        let entries = if queues.len().is_power_of_two() { queues.len() } else { self.period.into() };
        queues.iter().copied().cycle().take(entries).collect()
    }

    /// All queues the port needs.
    pub fn total_queues(&self) -> usize {
        usize::from(self.workers) * (self.classes.len() + 1)
    }

    pub(crate) fn check(&self) -> Result<(), Refused> {
        if !(1..=WORKERS_MAX).contains(&self.workers) {
            return Err(Refused::Workers(self.workers));
        }
        self.check_classes()?;
        let (wanted, most) = (self.total_queues(), most_queues(self.family));
        if wanted > most {
            return Err(Refused::Queues { family: self.family, wanted, most });
        }
        if !self.family.has_rules() && !self.steered.is_empty() {
            return Err(Refused::Unsteered(self.family));
        }
        let astray = self.steered.iter().any(|session| session.queue >= self.workers);
        if astray || self.steered.len() > STEERED_MAX { Err(Refused::Steered) } else { Ok(()) }
    }

    fn check_classes(&self) -> Result<(), Refused> {
        if self.classes.len() > CLASSES_MAX {
            return Err(Refused::Classes(self.classes.len()));
        }
        if !self.classes.is_empty() && !self.workers.is_power_of_two() {
            return Err(Refused::NotPowerOfTwo(self.workers));
        }
        let values = |class: &Class| {
            let six = class.qfis.iter().chain(&class.dscps).copied().find(|value| *value > 63);
            six.or_else(|| class.pcps.iter().copied().find(|value| *value > 7))
        };
        self.classes.iter().find_map(values).map_or(Ok(()), |value| Err(Refused::Value(value)))
    }
}

/// Queues a port can hash over: of an i40e 64 (`I40E_MAX_Q_PER_TC`), of an E810 and its virtual functions 256.
const fn most_queues(family: Family) -> usize {
    match family {
        Family::I40e => 64,
        Family::Ice | Family::Iavf => 256,
        _ => 1024,
    }
}

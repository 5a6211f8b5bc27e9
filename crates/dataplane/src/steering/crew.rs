//! How many workers there are, and what reaches them.

use crate::config::{ConfigError, Limits, PORTS_MAX};
use dplink::Spread;

/// Most workers of an engine.
const WORKERS_MAX: usize = 32;

/// Room besides, where there are few sessions.
const SLACK: usize = 64;

/// What is done so that workers are as busy as each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Nothing: each session is at the worker of its user's address.
    Off,
    /// New sessions go to the least busy worker where theirs is much busier.
    #[default]
    New,
    /// Besides, some sessions move from the busiest worker to the least busy one, as long as the difference lasts.
    All,
}

/// The workers of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crew {
    /// At least one, at most 32.
    pub workers: usize,
    /// Of them, the first so many own no session: they receive, and hand everything to the others.
    pub distributors: usize,
    /// How the packets of each port get to their owners, in the order of the configuration; of ports not named, by
    /// hand-off. [`Spread::InnerHash`] is of devices that hash the inner address as [`Buckets`](super::Buckets) do, with
    /// the same table; their packets are not looked at before their flows are. Those of [`Spread::TeidHash`] are: control
    /// planes may number tunnels, too.
    pub spread: Vec<Spread>,
    /// Whether sessions are where their users' addresses say.
    pub balance: Balance,
    /// After so many entries the table from hash to worker begins again ([`steer::period`]): as cards' tables do, the
    /// shortest of them.
    pub period: u16,
}

impl Default for Crew {
    fn default() -> Self {
        let (spread, balance) = (Vec::new(), Balance::default());
        Self { workers: 1, distributors: 0, spread, balance, period: steer::PERIOD }
    }
}

impl Crew {
    /// So many workers that hand each other what the devices bring to the wrong one.
    pub fn of(workers: usize) -> Self {
        Self { workers, ..Self::default() }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match (1..=WORKERS_MAX).contains(&self.workers) && self.distributors < self.workers {
            true => Ok(()),
            false => Err(ConfigError::Crew(self.workers, self.distributors)),
        }
    }

    /// What each worker holds at most of what all of them together may. Users are not spread evenly, so each has room for
    /// a quarter more than its share; the engine sees to it that together they hold no more than they may.
    pub(crate) fn share(&self, limits: &Limits) -> Limits {
        if self.workers == 1 {
            return *limits;
        }
        let owners = self.workers - self.distributors;
        let part = |all: usize| all.div_ceil(owners);
        let roomy = |all: usize| all.min(part(all) + part(all).div_ceil(4) + SLACK);
        Limits {
            sessions: roomy(limits.sessions),
            pdrs: roomy(limits.pdrs),
            flows: part(limits.flows),
            kept: part(limits.kept),
            error_indications_per_s: limits.error_indications_per_s.div_ceil(self.workers as u32),
            icmp_errors_per_s: limits.icmp_errors_per_s.div_ceil(self.workers as u32),
            ..*limits
        }
    }

    /// How many packets of a port each worker may give the kernel in a second, of so many that the port may: the port's packets come
    /// to one worker, or to all that receive.
    pub(crate) fn punts_per_s(&self, port: usize, all: u32) -> u32 {
        let one = matches!(self.spread.get(port), Some(Spread::OneWorker | Spread::OneQueue));
        let receivers = if self.distributors > 0 { self.distributors } else { self.workers };
        if one { all } else { all.div_ceil(receivers as u32) }
    }

    /// A bit for each port whose packets may be anybody's.
    pub(super) fn mixed_ports(&self) -> u16 {
        !self.ports_of(&[Spread::InnerHash])
    }

    /// A bit for each port whose packets are mostly others', where there are several workers.
    pub(super) fn sorted_ports(&self) -> u16 {
        !self.ports_of(&[Spread::InnerHash, Spread::TeidHash])
    }

    fn ports_of(&self, spreads: &[Spread]) -> u16 {
        let is_of = |port: &usize| self.spread.get(*port).is_some_and(|spread| spreads.contains(spread));
        (0..PORTS_MAX).filter(is_of).fold(0, |bits, port| bits | 1 << port)
    }
}

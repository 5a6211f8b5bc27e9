//! What `pfcp` found.

use super::Latency;
use crate::spread::Spread;
use serde::{Deserialize, Serialize};

/// What `pfcp` adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PfcpRates {
    pub(crate) establishments_per_s: Option<Spread>,
    pub(crate) modifications_per_s: Option<Spread>,
    pub(crate) deletions_per_s: Option<Spread>,
    /// What a thread that answers at once, without having read the request, does in the place of the control plane engine, in turns
    /// with it.
    #[serde(default)]
    pub(crate) bare_per_s: Option<Spread>,
    /// The rate of establishments while sessions became more: a step for each part, in order.
    #[serde(default)]
    pub(crate) growth: Vec<PfcpGrowth>,
    /// Whether more sessions are slower to make, by what they take: CPU time of the control plane engine for an establishment,
    /// over that of a bare answer of the same moments; this of the first third of these over that of the last. Below 1, more
    /// are slower.
    #[serde(default)]
    pub(crate) last_to_first_cpu: Option<f64>,
    /// The same by the clock: the rate of the last third over that of the first, and how fast the machine was then.
    #[serde(default, alias = "last_to_first")]
    pub(crate) last_to_first_wall: Option<f64>,
    #[serde(default)]
    pub(crate) cost: PfcpCosts,
    /// Of both processes.
    pub(crate) bytes_per_session: u64,
    pub(crate) cpe_bytes_per_session: u64,
    pub(crate) dpe_bytes_per_session: u64,
    /// Requests under way at once.
    pub(crate) window: u32,
    /// Requests sent again.
    pub(crate) retransmissions: u64,
    /// Requests refused or never answered.
    pub(crate) failures: u64,
    /// Share of the time in which the client had work to do: near 1, it is the client's rate and not the node's.
    #[serde(default)]
    pub(crate) client_busy: f64,
}

/// Establishments of one part of the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PfcpGrowth {
    /// That were there after it.
    pub(crate) sessions: u32,
    pub(crate) establishments_per_s: f64,
    /// CPU time of the control plane engine for each, in microseconds.
    #[serde(default)]
    pub(crate) cpe_us: Option<f64>,
    /// CPU time of a bare answer, asked for between these establishments, in microseconds; and the rate of those.
    #[serde(default)]
    pub(crate) bare_us: Option<f64>,
    #[serde(default)]
    pub(crate) bare_per_s: Option<f64>,
}

/// What requests of each kind take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PfcpCosts {
    pub(crate) establishment: PfcpCost,
    pub(crate) modification: PfcpCost,
    pub(crate) deletion: PfcpCost,
}

/// One request, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PfcpCost {
    /// CPU time, of all threads of a process, system calls included.
    pub(crate) cpe_us: f64,
    pub(crate) dpe_us: f64,
    /// From a request, as first sent, to its answer. Where many are under way, most of it is waiting for those before it.
    #[serde(default)]
    pub(crate) answer_us: Option<Latency>,
}

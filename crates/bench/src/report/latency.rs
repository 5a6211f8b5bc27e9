//! How long packets, or requests, take.

use crate::spread::{Spread, rounded};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// One way, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    /// Papers that tell one figure tell this one; reports of before it was kept have none.
    #[serde(default)]
    pub(crate) mean: Option<f64>,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl Latency {
    /// Of waits that were counted in units of which so many make a microsecond.
    pub(crate) fn of(waits: &Histogram<u64>, per_us: f64) -> Self {
        let us = |wait: u64| rounded(wait as f64 / per_us);
        let at = |quantile| us(waits.value_at_quantile(quantile));
        let mean = (!waits.is_empty()).then(|| rounded(waits.mean() / per_us));
        Self { mean, p50: at(0.5), p99: at(0.99), p999: at(0.999), max: us(waits.max()) }
    }
}

/// What `latency` adds: how the load was offered, what went wrong with offering it, and how long packets took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Of the zero-loss rate; of the report itself, the load its `latency_us` was measured at.
    pub(crate) load: f64,
    /// In all trials.
    pub(crate) offered_packets: u64,
    pub(crate) zero_loss_mpps: Option<Spread>,
    /// The generator could not send as fast as it should have.
    pub(crate) generator_bound: bool,
    /// How late the generator sent, in microseconds: 99 of 100 packets were not later.
    pub(crate) generator_late_us_p99: f64,
    /// The longest time the generator was not running, in microseconds.
    pub(crate) generator_gap_us: f64,
    /// The longest time the worker was not running, in microseconds.
    pub(crate) worker_gap_us: f64,
    /// Shares of the time in which they were not running.
    pub(crate) generator_away: f64,
    pub(crate) worker_away: f64,
    /// Share of the time in turns of the worker's that something held up, but for less than an absence.
    #[serde(default)]
    pub(crate) worker_held: f64,
    /// Trials that did not count because a thread was not running for too long.
    pub(crate) void_trials: u32,
    #[serde(flatten)]
    pub(crate) waits: Waits,
}

/// How long packets took at a load, besides all of the worker's: of several trials, the one whose p99.9 stands in the middle. Reports of
/// before these were kept have none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Waits {
    /// Of packets that came back while both threads ran and packets were sent in time; `None` where there was hardly any time like that.
    pub(crate) calm_us: Option<Latency>,
    /// p99.9 of these, of all trials.
    pub(crate) calm_p999_us: Option<Spread>,
    /// The share that they are of all packets.
    pub(crate) calm_share: f64,
    /// Of packets that went through a stand-in, which is the bare loop and waits until as much time has passed as the worker takes.
    pub(crate) stand_in_us: Option<Latency>,
    pub(crate) stand_in_calm_us: Option<Latency>,
    pub(crate) stand_in_calm_p999_us: Option<Spread>,
    /// As the worker's, of the stand-in's turns.
    pub(crate) stand_in_held: f64,
}

/// A thread that was away for more of the time than this says nothing of the engine.
const AWAY_MAX: f64 = 0.01;

impl Load {
    /// Latency and rate are those of a busy machine, not of the engine.
    pub(crate) fn is_of_the_machine(&self) -> bool {
        self.worker_away.max(self.generator_away) > AWAY_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_of_all_that_waited() {
        let mut waits = Histogram::<u64>::new_with_bounds(1, 1_000_000, 3).unwrap();
        [200, 200, 200, 1_000].into_iter().for_each(|wait| waits.record(wait).unwrap());
        let latency = Latency::of(&waits, 2.0);
        assert_eq!((latency.p50, latency.mean), (100.0, Some(200.0)));
        let before: Latency =
            serde_json::from_str(r#"{"p50": 1.0, "p99": 2.0, "p999": 3.0, "max": 4.0}"#).unwrap();
        assert_eq!((before.mean, before.max), (None, 4.0), "a report of before is read");
    }
}

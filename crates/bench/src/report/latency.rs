//! How long packets, or requests, take.

use crate::spread::rounded;
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

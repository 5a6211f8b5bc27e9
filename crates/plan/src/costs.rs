//! What a packet costs, read from a report of `anchorline bench steering`.

use crate::Polled;
use serde::{Deserialize, Serialize};

/// Cycles of a turn, beside its packets, where no latency was measured to tell.
const USUAL_TURN: f64 = 500.0;
/// A turn's cycles are looked for below this.
const LONGEST_TURN: f64 = 20_000.0;

/// Measured costs, in cycles of a clock of `hz`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Cycles in a second.
    pub hz: f64,
    /// Of a packet that comes to its user's worker at once.
    pub direct: f64,
    /// Of a packet where it comes in and is handed over.
    pub distribute: f64,
    /// Of a packet that was handed over, where it goes, by a worker that does nothing but distribute.
    pub owner: f64,
    /// The same by a worker that has users of its own.
    pub owner_among_equals: f64,
    /// Of a turn, beside its packets: fitted to the latency of inner hash at the lowest load.
    pub turn: f64,
    /// Mean bytes of users' packets.
    pub bytes: f64,
    /// Users with traffic.
    pub users: f64,
    /// Share of the packets that go up; no report has it, so it is 0.5 until somebody says otherwise.
    pub uplink: f64,
}

/// A report that costs cannot be read from.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is no JSON of a report.
    #[error("it is no report of `anchorline bench`: {0}")]
    Json(#[from] serde_json::Error),
    /// Of another scenario, or without the rows that are needed.
    #[error("it has no row of {0}: a report of `anchorline bench steering` is needed")]
    Row(&'static str),
}

/// The part of a report that matters.
#[derive(Deserialize)]
struct Report {
    active: f64,
    mean_bytes: f64,
    machine: Machine,
    #[serde(default)]
    points: Vec<Point>,
}

#[derive(Deserialize)]
struct Machine {
    clock_mhz: f64,
}

#[derive(Deserialize)]
struct Point {
    mode: Option<String>,
    #[serde(default)]
    gnbs: u32,
    workers: f64,
    #[serde(default)]
    handed_share: f64,
    #[serde(default)]
    worker_cycles: Vec<f64>,
    handoff_cycles: Option<f64>,
    offered_mpps: Option<f64>,
    latency_us: Option<Latency>,
}

#[derive(Deserialize)]
struct Latency {
    p50: f64,
}

impl Costs {
    /// Reads the JSON of a report.
    ///
    /// # Errors
    /// It is none, or none of `steering`.
    pub fn of_report(text: &str) -> Result<Self, Unreadable> {
        let report: Report = serde_json::from_str(text)?;
        let rate = |mode: &str, gnbs: u32, workers: &dyn Fn(f64) -> bool| {
            report.points.iter().find(|point| {
                let is_rate = point.offered_mpps.is_none() && !point.worker_cycles.is_empty();
                is_rate && point.mode.as_deref() == Some(mode) && point.gnbs == gnbs && workers(point.workers)
            })
        };
        let sum = |point: &Point| point.worker_cycles.iter().sum::<f64>();
        let inner = rate("inner", 1, &|workers| workers > 1.0).ok_or(Unreadable::Row("inner hash"))?;
        let direct = sum(inner);
        let distributor = rate("distributor", 1, &|_| true).ok_or(Unreadable::Row("a distributor"))?;
        let distribute = distributor.worker_cycles.first().copied().unwrap_or(direct);
        // What handing over adds, in the quietest trial; it is the owner's but for what the distributor took.
        let owner_of =
            |point: &Point| point.handoff_cycles.map(|added| (direct + added - distribute).max(direct / 2.0));
        let owner = owner_of(distributor).unwrap_or_else(|| sum(distributor) - distribute);
        let equals = rate("outer", 64, &|_| true).filter(|point| point.handed_share > 0.0);
        let mut costs = Self {
            hz: report.machine.clock_mhz * 1e6,
            direct,
            distribute,
            owner,
            owner_among_equals: equals.and_then(owner_of).unwrap_or(owner),
            turn: USUAL_TURN,
            bytes: report.mean_bytes,
            users: report.active.max(1.0),
            uplink: 0.5,
        };
        costs.fit_turn(&report.points);
        Ok(costs)
    }

    /// The turn with which the model says what was measured of inner hash at its lowest load.
    fn fit_turn(&mut self, points: &[Point]) {
        let timed = points
            .iter()
            .filter(|point| point.mode.as_deref() == Some("inner"))
            .filter_map(|point| Some((point.offered_mpps?, point.workers, point.latency_us.as_ref()?.p50)));
        let Some((mpps, workers, p50)) = timed.min_by(|one, other| one.0.total_cmp(&other.0)) else { return };
        let cost = self.direct;
        let rate = mpps * 1e6 / workers / self.hz;
        if rate * cost >= 1.0 {
            return;
        }
        let (mut low, mut high) = (1.0, LONGEST_TURN);
        for _ in 0..30 {
            let turn = f64::midpoint(low, high);
            let modelled = Polled { turn, cost, rate }.sojourn().quantile(0.5);
            match modelled < p50 * self.hz / 1e6 {
                true => low = turn,
                false => high = turn,
            }
        }
        self.turn = low;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"active": 6000, "mean_bytes": 690.0, "machine": {"clock_mhz": 2000}, "points": [
        {"mode": "inner", "gnbs": 1, "workers": 2, "worker_cycles": [80.0, 80.0]},
        {"mode": "inner", "gnbs": 1, "workers": 1, "worker_cycles": [150.0]},
        {"mode": "distributor", "gnbs": 1, "workers": 2, "handed_share": 1.0, "worker_cycles": [60.0, 150.0], "handoff_cycles": 40.0},
        {"mode": "outer", "gnbs": 64, "workers": 2, "handed_share": 0.5, "worker_cycles": [100.0, 100.0], "handoff_cycles": 80.0},
        {"mode": "inner", "gnbs": 1, "workers": 2, "worker_cycles": [80.0, 80.0], "offered_mpps": 5.0, "latency_us": {"p50": 0.9}},
        {"mode": "inner", "gnbs": 1, "workers": 2, "worker_cycles": [80.0, 80.0], "offered_mpps": 2.0, "latency_us": {"p50": 0.6}}]}"#;

    #[test]
    fn costs_are_those_of_the_rows() {
        let costs = Costs::of_report(REPORT).unwrap();
        assert_eq!((costs.hz, costs.direct, costs.distribute), (2e9, 160.0, 60.0));
        assert_eq!((costs.owner, costs.owner_among_equals, costs.users), (140.0, 180.0, 6_000.0));
        // At the lowest load: 1 Mpps of each worker.
        let fitted = Polled { turn: costs.turn, cost: 160.0, rate: 1e6 / 2e9 }.sojourn().quantile(0.5);
        assert!((fitted / 1_200.0 - 1.0).abs() < 0.02, "{fitted} cycles with a turn of {}", costs.turn);
    }

    #[test]
    fn what_is_no_report_of_steering_is_said() {
        let error = |text: &str| Costs::of_report(text).unwrap_err().to_string();
        assert!(error("{").contains("no report of"), "{}", error("{"));
        let other = REPORT.replace("distributor", "teid");
        assert!(error(&other).contains("no row of a distributor"), "{}", error(&other));
    }
}

//! What a packet costs, read from a report of `anchorline bench steering`.

use crate::Polled;
use serde::{Deserialize, Serialize};

/// Cycles of a turn, beside its packets, where no latency was measured to tell.
const USUAL_TURN: f64 = 500.0;
/// A turn's cycles are looked for below this.
const LONGEST_TURN: f64 = 20_000.0;

/// Measured costs, in cycles of a clock of `hz`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Cycles in a second.
    pub hz: f64,
    /// Of a packet that comes to its user's worker at once, where that is the only one at work.
    pub direct: f64,
    /// The same where several are at work at once and have to share caches and memory, by their number, the fewest first.
    pub direct_of_several: Vec<OfSeveral>,
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

/// What was measured of workers that are at work at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfSeveral {
    /// How many.
    pub workers: u32,
    /// Cycles of a packet, of the one of them that has it.
    pub cycles: f64,
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
    profile: Option<String>,
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
    profile: Option<String>,
    mode: Option<String>,
    #[serde(default)]
    gnbs: u32,
    workers: u32,
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

impl Report {
    /// A row of a rate, of the report's own traffic: there are rows of other sizes, too.
    fn rates(&self, mode: &str, gnbs: u32) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| {
            let is_rate = point.offered_mpps.is_none() && !point.worker_cycles.is_empty();
            let is_own = point.profile.is_none() || point.profile == self.profile;
            is_rate && is_own && point.mode.as_deref() == Some(mode) && point.gnbs == gnbs
        })
    }

    fn rate(&self, mode: &str, gnbs: u32) -> Option<&Point> {
        self.rates(mode, gnbs).next()
    }

    /// Inner hash: of one worker, and of several at once.
    fn inner(&self) -> [Vec<OfSeveral>; 2] {
        let of = |point: &Point| OfSeveral { workers: point.workers, cycles: point.sum() };
        let mut all: Vec<OfSeveral> = self.rates("inner", 1).map(of).collect();
        all.sort_by_key(|several| several.workers);
        let (one, several) = all.into_iter().partition(|several| several.workers == 1);
        [one, several]
    }
}

impl Point {
    /// Cycles of all workers together for each packet.
    fn sum(&self) -> f64 {
        self.worker_cycles.iter().sum()
    }
}

impl Costs {
    /// Reads the JSON of a report.
    ///
    /// # Errors
    /// It is none, or none of `steering`.
    pub fn of_report(text: &str) -> Result<Self, Unreadable> {
        let report: Report = serde_json::from_str(text)?;
        let [direct, direct_of_several] = report.inner();
        let direct = direct.first().ok_or(Unreadable::Row("inner hash with one worker"))?.cycles;
        let distributor = report.rate("distributor", 1).ok_or(Unreadable::Row("a distributor"))?;
        let distribute = distributor.worker_cycles.first().copied().unwrap_or(direct);
        // Handing over is compared with inner hash of as many workers, which is what it adds to.
        let beside = direct_of_several.iter().find(|several| several.workers == distributor.workers);
        let beside =
            beside.ok_or(Unreadable::Row("inner hash with as many workers as a distributor"))?.cycles;
        // What handing over adds, in the quietest trial; it is the owner's but for what the distributor took.
        let owner_of =
            |point: &Point| point.handoff_cycles.map(|added| (beside + added - distribute).max(beside / 2.0));
        let owner = owner_of(distributor).unwrap_or_else(|| distributor.sum() - distribute);
        let equals = report.rate("outer", 64).filter(|point| point.handed_share > 0.0);
        let mut costs = Self {
            hz: report.machine.clock_mhz * 1e6,
            direct,
            direct_of_several,
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

    /// Of a packet that comes to its user's worker at once, where so many are at work: as measured of as many, of more where as
    /// many were not measured, and beyond what was measured of the most, since nothing tells what still more would cost.
    pub fn direct_of(&self, workers: u32) -> f64 {
        let several = &self.direct_of_several;
        let nearest = several.iter().find(|several| several.workers >= workers).or(several.last());
        nearest.filter(|_| workers > 1).map_or(self.direct, |several| several.cycles)
    }

    /// The turn with which the model says what was measured of inner hash at its lowest load.
    fn fit_turn(&mut self, points: &[Point]) {
        let timed = points
            .iter()
            .filter(|point| point.mode.as_deref() == Some("inner"))
            .filter_map(|point| Some((point.offered_mpps?, point.workers, point.latency_us.as_ref()?.p50)));
        let Some((mpps, workers, p50)) = timed.min_by(|one, other| one.0.total_cmp(&other.0)) else { return };
        let cost = self.direct_of(workers);
        let rate = mpps * 1e6 / f64::from(workers) / self.hz;
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

    /// Handing over was measured beside two workers, and packets of another size come after those of the report's own.
    const REPORT: &str = r#"{"profile": "zte", "active": 6000, "mean_bytes": 690.0, "machine": {"clock_mhz": 2000}, "points": [
        {"profile": "zte", "mode": "inner", "gnbs": 1, "workers": 4, "worker_cycles": [50.0, 50.0, 50.0, 50.0]},
        {"profile": "zte", "mode": "inner", "gnbs": 1, "workers": 2, "worker_cycles": [80.0, 80.0]},
        {"profile": "zte", "mode": "inner", "gnbs": 1, "workers": 1, "worker_cycles": [150.0]},
        {"mode": "distributor", "gnbs": 1, "workers": 2, "handed_share": 1.0, "worker_cycles": [60.0, 150.0], "handoff_cycles": 40.0},
        {"mode": "outer", "gnbs": 64, "workers": 2, "handed_share": 0.5, "worker_cycles": [100.0, 100.0], "handoff_cycles": 80.0},
        {"mode": "inner", "gnbs": 1, "workers": 2, "worker_cycles": [80.0, 80.0], "offered_mpps": 5.0, "latency_us": {"p50": 0.9}},
        {"mode": "inner", "gnbs": 1, "workers": 2, "worker_cycles": [80.0, 80.0], "offered_mpps": 2.0, "latency_us": {"p50": 0.6}},
        {"profile": "cht-1280", "mode": "inner", "gnbs": 1, "workers": 1, "worker_cycles": [990.0]},
        {"profile": "cht-1280", "mode": "inner", "gnbs": 1, "workers": 3, "worker_cycles": [330.0, 330.0, 330.0]}]}"#;

    #[test]
    fn costs_are_those_of_the_rows() {
        let costs = Costs::of_report(REPORT).unwrap();
        assert_eq!((costs.hz, costs.distribute, costs.users), (2e9, 60.0, 6_000.0));
        assert_eq!((costs.owner, costs.owner_among_equals), (140.0, 180.0));
        // At the lowest load: 1 Mpps of each worker.
        let fitted = Polled { turn: costs.turn, cost: 160.0, rate: 1e6 / 2e9 }.sojourn().quantile(0.5);
        assert!((fitted / 1_200.0 - 1.0).abs() < 0.02, "{fitted} cycles with a turn of {}", costs.turn);
    }

    #[test]
    fn one_workers_cost_is_one_workers_and_several_have_their_own() {
        let costs = Costs::of_report(REPORT).unwrap();
        assert_eq!(costs.direct, 150.0, "no row of several, nor of another size");
        let several = [(2, 160.0), (4, 200.0)].map(|(workers, cycles)| OfSeveral { workers, cycles });
        assert_eq!(costs.direct_of_several, several);
        let by_workers = [1, 2, 3, 4, 5, 128].map(|workers| costs.direct_of(workers));
        assert_eq!(by_workers, [150.0, 160.0, 200.0, 200.0, 200.0, 200.0]);
    }

    #[test]
    fn what_is_no_report_of_steering_is_said() {
        let error = |text: &str| Costs::of_report(text).unwrap_err().to_string();
        assert!(error("{").contains("no report of"), "{}", error("{"));
        let other = REPORT.replace("distributor", "teid");
        assert!(error(&other).contains("no row of a distributor"), "{}", error(&other));
        let no_single = REPORT.replace(r#""workers": 1,"#, r#""workers": 8,"#);
        assert!(error(&no_single).contains("no row of inner hash with one worker"), "{}", error(&no_single));
        let unequal = REPORT.replace(
            r#""distributor", "gnbs": 1, "workers": 2"#,
            r#""distributor", "gnbs": 1, "workers": 3"#,
        );
        assert!(error(&unequal).contains("as many workers as a distributor"), "{}", error(&unequal));
    }
}

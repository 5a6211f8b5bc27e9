//! How long packets take at each load: worker and stand-in have their turns, some of each, and the one in the middle counts.

use super::LONGEST_TRIAL;
use crate::generator::Trial;
use crate::report::{Latency, Load, Report, Waits};
use crate::search::{Bench, Found, STRETCH};
use crate::spread::{Spread, middle, rounded};
use crate::stand_in::StandIn;
use crate::{contest, interrupt};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Loads, as shares of the rate without loss.
const LOADS: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9];
/// Where both threads ran for less of the packets, nothing is said of these alone.
const CALM_MIN: f64 = 0.1;

/// Those who have their turns.
pub(super) struct Loads<'a> {
    pub(super) bench: &'a mut Bench,
    pub(super) stand_in: &'a mut StandIn,
    /// Of each, at each load.
    pub(super) turns: u32,
}

/// What came of the turns at one load.
#[derive(Default)]
struct Turns {
    /// Of all packets, and of those that met both threads running and were sent in time.
    latency: Vec<Latency>,
    calm: Vec<Latency>,
    /// The same two of packets that went through the stand-in.
    other: Vec<Latency>,
    other_calm: Vec<Latency>,
    offered: u64,
    lost: u64,
    received: u64,
    received_calm: u64,
    found: Found,
    /// Of the stand-in's turns, in cycles: how long some were held up, and all took.
    other_held: u64,
    other_cycles: u64,
}

impl Loads<'_> {
    /// A point for each load, in so much time, as parts of a report; and what was found about both threads.
    ///
    /// # Errors
    /// Those of the generator, or a thread is gone.
    pub(super) fn all(self, time: Duration, whole: &Report) -> anyhow::Result<(Vec<Report>, Found)> {
        let Self { bench, stand_in, turns } = self;
        let zero_loss = whole.mpps_per_core.unwrap_or_default();
        let length = time / (LOADS.len() as u32 * turns * 2);
        let bar = contest::progress(time, "latency at shares of it");
        let (mut all, mut points) = (Found::default(), Vec::new());
        for load in LOADS {
            if interrupt::asked() || zero_loss <= 0.0 {
                break;
            }
            let mut taken = Turns::default();
            for _ in 0..turns {
                taken.take((bench, stand_in), zero_loss * 1e6 * load, length.min(LONGEST_TRIAL))?;
                bar.inc(2 * length.as_millis() as u64);
            }
            all = all.and(taken.found);
            points.push(taken.point(load, whole, bench.hz));
        }
        bar.finish_and_clear();
        Ok((points, all))
    }
}

impl Turns {
    /// A turn of the worker's, and one of the stand-in's.
    fn take(
        &mut self,
        (bench, stand_in): (&mut Bench, &mut StandIn),
        pps: f64,
        length: Duration,
    ) -> anyhow::Result<()> {
        bench.found = Found::default();
        let (trial, absent) = bench.trial(pps, length)?;
        bench.station.rest(true);
        let began = dpdk::tsc();
        let (other, seen) = stand_in.trial(&mut bench.generator, pps, length)?;
        self.other_cycles += dpdk::tsc() - began;
        self.other_held += seen.held;
        bench.station.rest(false);
        let generator_bound = trial.stretch > STRETCH;
        let late = trial.lateness.value_at_quantile(0.99);
        self.found = self.found.and(Found { late, generator_bound, ..std::mem::take(&mut bench.found) });
        // A generator that cannot keep up, though nobody took its CPU, measures itself.
        if absent || !generator_bound {
            self.latency.push(latency(&trial.latency, bench.hz));
            self.calm.extend(calm(&trial, bench.hz));
        }
        self.other.push(latency(&other.latency, bench.hz));
        self.other_calm.extend(calm(&other, bench.hz));
        self.offered += trial.offered;
        self.lost += trial.lost();
        self.received += trial.received;
        self.received_calm += trial.calm.len();
        Ok(())
    }

    fn point(self, load: f64, whole: &Report, hz: u64) -> Report {
        let mut point = whole.clone();
        point.has_no_rate();
        point.set_rate(whole.mpps_per_core.unwrap_or_default() * load);
        point.loss = Some(self.lost as f64 / self.offered.max(1) as f64);
        let by = |trial: &Latency| trial.p999;
        point.latency_us = middle(&self.latency, by);
        let waits = Waits {
            calm_us: middle(&self.calm, by),
            calm_p999_us: p999(&self.calm),
            calm_share: share(self.received_calm, self.received),
            stand_in_us: middle(&self.other, by),
            stand_in_calm_us: middle(&self.other_calm, by),
            stand_in_calm_p999_us: p999(&self.other_calm),
            stand_in_held: share(self.other_held, self.other_cycles),
        };
        point.load = Some(Load { waits, ..as_load(load, self.found, hz) });
        point
    }
}

/// What was found, in the units of a report.
pub(super) fn as_load(load: f64, found: Found, hz: u64) -> Load {
    Load {
        load,
        offered_packets: found.offered,
        zero_loss_mpps: None,
        generator_bound: found.generator_bound,
        generator_late_us_p99: us(found.late, hz),
        generator_gap_us: us(found.generator_gap, hz),
        worker_gap_us: us(found.worker_gap, hz),
        generator_away: share(found.generator_away, found.cycles),
        worker_away: share(found.worker_away, found.cycles),
        worker_held: share(found.worker_held, found.cycles),
        void_trials: found.void,
        waits: Waits::default(),
    }
}

fn p999(trials: &[Latency]) -> Option<Spread> {
    Spread::of(&trials.iter().map(|trial| trial.p999).collect::<Vec<f64>>())
}

/// Of packets that came back while both threads ran and were sent in time, where they are enough.
fn calm(trial: &Trial, hz: u64) -> Option<Latency> {
    (share(trial.calm.len(), trial.received) >= CALM_MIN).then(|| latency(&trial.calm, hz))
}

fn share(part: u64, of: u64) -> f64 {
    rounded(part as f64 / of.max(1) as f64)
}

fn us(cycles: u64, hz: u64) -> f64 {
    rounded(cycles as f64 * 1e6 / hz as f64)
}

fn latency(histogram: &Histogram<u64>, hz: u64) -> Latency {
    Latency::of(histogram, hz as f64 / 1e6)
}

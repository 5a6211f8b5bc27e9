//! The highest rate without loss, by halving (RFC 2544 26.1).

use crate::generator::{Generator, Trial};
use crate::interrupt;
use crate::link::{DEPTH, End};
use crate::product::Product;
use crate::station::Station;
use anyhow::bail;
use std::time::Duration;

/// Trials of one search after the first; each halves what is unknown.
const STEPS: u32 = 7;
/// Offered to find out how much comes through at most; more than memory allows.
const FLOOD_PPS: f64 = 100e6;
/// A rate no search is interested in, as a share of the most that came through.
const LOWEST: f64 = 0.1;
/// The search begins this much above the most that came through.
const HIGHEST: f64 = 1.1;
/// How often a trial is repeated that does not count.
const REPEATS: u32 = 4;
/// A generator whose sending takes this much longer than it should is the bottleneck.
pub(crate) const STRETCH: f64 = 1.02;

/// Both threads, and what was found about them so far.
pub(crate) struct Bench {
    pub(crate) generator: Generator,
    pub(crate) station: Station<Product<End>>,
    pub(crate) hz: u64,
    pub(crate) found: Found,
}

/// Of several trials; times in cycles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub(crate) offered: u64,
    /// Trials that do not count.
    pub(crate) void: u32,
    pub(crate) generator_bound: bool,
    /// Longest absences.
    pub(crate) generator_gap: u64,
    pub(crate) worker_gap: u64,
    /// All absences.
    pub(crate) generator_away: u64,
    pub(crate) worker_away: u64,
    pub(crate) worker_held: u64,
    pub(crate) cycles: u64,
    /// How late 99 of 100 packets were at most, in the worst trial that counts.
    pub(crate) late: u64,
}

impl Found {
    /// Of these and of those.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            void: self.void + other.void,
            generator_bound: self.generator_bound || other.generator_bound,
            generator_gap: self.generator_gap.max(other.generator_gap),
            worker_gap: self.worker_gap.max(other.worker_gap),
            generator_away: self.generator_away + other.generator_away,
            worker_away: self.worker_away + other.worker_away,
            worker_held: self.worker_held + other.worker_held,
            cycles: self.cycles + other.cycles,
            late: self.late.max(other.late),
        }
    }
}

impl Bench {
    /// One trial; also whether one of the threads was not running for so long that the ring may have overflown.
    ///
    /// # Errors
    /// Those of the generator, or the worker is gone.
    pub(crate) fn trial(&mut self, pps: f64, length: Duration) -> anyhow::Result<(Trial, bool)> {
        self.station.gaps.take();
        let start = dpdk::tsc();
        let trial = self.generator.trial(pps, length, &self.station.gaps)?;
        if !self.station.is_alive() {
            bail!("the worker stopped");
        }
        let worker = self.station.gaps.take();
        let found = Found {
            offered: trial.offered,
            generator_gap: trial.gaps.longest,
            worker_gap: worker.longest,
            generator_away: trial.gaps.total,
            worker_away: worker.total,
            worker_held: worker.held,
            cycles: dpdk::tsc() - start,
            ..Found::default()
        };
        self.found = self.found.and(found);
        let ring = f64::from(DEPTH) / pps * self.hz as f64;
        let longest = worker.longest.max(trial.gaps.longest);
        Ok((trial, longest as f64 > ring / 2.0))
    }

    /// Whether a rate passes without loss. A trial that failed while a thread was not running says nothing of the
    /// engine: it is repeated, some times.
    fn passes(&mut self, pps: f64, length: Duration) -> anyhow::Result<bool> {
        for _ in 0..REPEATS {
            let (trial, absent) = self.trial(pps, length)?;
            let slow = trial.stretch > STRETCH;
            if trial.lost() == 0 && !slow {
                return Ok(true);
            }
            if !absent || interrupt::asked() {
                self.found.generator_bound |= slow && trial.lost() == 0;
                return Ok(false);
            }
            self.found.void += 1;
        }
        Ok(false)
    }

    /// The highest rate without loss, in packets a second.
    ///
    /// # Errors
    /// Those of a trial.
    pub(crate) fn zero_loss(&mut self, length: Duration) -> anyhow::Result<f64> {
        let (flood, _) = self.trial(FLOOD_PPS, length.min(Duration::from_millis(50)))?;
        let most = flood.received as f64 / (flood.offered as f64 / FLOOD_PPS) / flood.stretch;
        let (mut low, mut high) = (0.0, most * HIGHEST);
        let mut pps = most;
        for _ in 0..STEPS {
            if interrupt::asked() {
                break;
            }
            match self.passes(pps, length)? {
                true => low = pps,
                false => high = pps,
            }
            pps = f64::midpoint(low.max(most * LOWEST), high);
        }
        Ok(low)
    }
}

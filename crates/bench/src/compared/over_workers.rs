//! Workers and queues, one after the other: measured as far as the machine has CPUs, and modelled beyond.

use super::{costs, points};
use crate::report::Report;
use crate::spread::{Spread, rounded};
use ::plan::{PUBLISHED_CORES, Way, scaling};
use serde::{Deserialize, Serialize};

/// More than the papers had.
const BEYOND: [u32; 3] = [8, 16, 32];

/// What so many workers carry together behind inner hash, with a queue for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub(crate) workers: u32,
    /// A million packets a second, of all of them.
    pub(crate) mpps: f64,
    /// Over what one carries alone.
    pub(crate) times_one: f64,
    /// Of the same over trials, where it was measured in turns.
    pub(crate) spread: Option<Spread>,
    /// By the queueing model of `anchorline plan`, from what was measured here: nothing of it was run.
    pub(crate) modelled: bool,
}

/// From one worker on; of a number that was measured, nothing is modelled.
pub(crate) fn over_workers(report: &Report) -> Vec<Carried> {
    let mut all = measured(report);
    let most = all.last().map_or(0, |carried| carried.workers);
    let beyond: Vec<u32> = PUBLISHED_CORES.into_iter().chain(BEYOND).filter(|cores| *cores > most).collect();
    let Some(costs) = costs(report) else { return all };
    for row in scaling(&costs, &beyond, &[]) {
        let inner = row.ways.iter().find(|modelled| modelled.way == Way::InnerHash);
        all.extend(inner.map(|modelled| Carried {
            workers: row.cores,
            mpps: rounded(modelled.mpps),
            times_one: rounded(modelled.times_one),
            spread: None,
            modelled: true,
        }));
    }
    all
}

/// By number of workers.
fn measured(report: &Report) -> Vec<Carried> {
    let total = |point: &Report| Some(point.mpps_per_core? * f64::from(point.workers));
    let own = || points(report, ("inner", &report.profile), false);
    let Some(one) = own().find(|(point, _)| point.workers == 1).and_then(|(point, _)| total(point)) else {
        return vec![];
    };
    let carried = |point: &Report, spread: Option<Spread>| {
        let mpps = total(point)?;
        let times_one = spread.map_or_else(|| rounded(mpps / one), |spread| spread.median);
        Some(Carried { workers: point.workers, mpps: rounded(mpps), times_one, spread, modelled: false })
    };
    let mut all: Vec<Carried> =
        own().filter_map(|(point, steering)| carried(point, steering.times_one)).collect();
    all.sort_by_key(|carried| carried.workers);
    all
}

//! One measurement at several sizes, in turns: a machine that is slower for some minutes is so for all of them.

use super::forward::{Runnable, stage};
use crate::contest::{Field, Score, progress};
use crate::interrupt;
use crate::plan::Plan;
use crate::product::Memory;
use crate::report::Report;
use anyhow::Context;
use std::time::{Duration, Instant};

/// Measures every plan, each with a pool of packets. The report's own figures are those of the last point, and its `points` are all
/// of them.
///
/// # Errors
/// Sessions that are not taken, packets that are missing or wrong; an interruption before there is a point.
pub(crate) fn sweep(memory: &Memory, scenario: &str, plans: &[Plan]) -> anyhow::Result<Report> {
    let mut staged = vec![];
    for (plan, pool) in plans.iter().zip(&memory.pools) {
        staged.push(stage((memory, pool), plan, scenario)?);
    }
    let mut points = vec![];
    for (((report, runnable), plan), pool) in staged.iter_mut().zip(plans).zip(&memory.pools) {
        let ports = runnable.ports.clone();
        let field = Field::new(pool, plan, ports, runnable)?;
        points.push(Point { report, plan, field, score: Score::default() });
    }
    take_turns(&mut points)?;
    let mut reports: Vec<Report> = vec![];
    for point in points {
        reports.extend(point.done(memory)?);
    }
    let last = reports.last().cloned().context("interrupted before there was anything to report")?;
    Ok(Report {
        balanced: reports.iter().all(|point| point.balanced),
        compared: reports.iter().map(|point| point.compared).sum(),
        interrupted: interrupt::asked(),
        points: reports,
        ..last
    })
}

/// One size.
struct Point<'a> {
    report: &'a mut Report,
    plan: &'a Plan,
    field: Field<'a, Runnable>,
    score: Score,
}

/// Warms all of them up, then runs one trial of each, and so on.
fn take_turns(points: &mut [Point<'_>]) -> anyhow::Result<()> {
    let duration: Duration = points.iter().map(|point| point.plan.duration).sum();
    let trials = points.iter().map(|point| point.plan.trials).max().unwrap_or_default();
    let bar = progress(duration, "forward, bare and floor in turns, at every size");
    for point in points.iter_mut() {
        point.field.warm_up()?;
        point.field.product.warm();
    }
    let start = Instant::now();
    for _ in 0..trials {
        for Point { plan, field, score, .. } in points.iter_mut() {
            if interrupt::asked() {
                return Ok(());
            }
            field.trial(plan, score)?;
            bar.set_position(start.elapsed().as_millis() as u64);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

impl Point<'_> {
    /// What came of it, if there was a trial.
    fn done(self, memory: &Memory) -> anyhow::Result<Option<Report>> {
        let Self { report, field, score, .. } = self;
        if score.laid.packets == 0 {
            return Ok(None);
        }
        report.compared = field.sampler.compared();
        field.product.account(report, score.laid.packets)?;
        report.score(&score, memory);
        Ok(Some(report.clone()))
    }
}

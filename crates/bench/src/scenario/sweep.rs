//! One measurement at several sizes.

use super::forward::measure_with;
use crate::interrupt;
use crate::machine;
use crate::plan::Plan;
use crate::product::Memory;
use crate::report::Report;

/// Measures every plan, smallest first: memory that an earlier one gave back is then counted with a later one that
/// takes it again. The report's own figures are those of the last point, and its `points` are all of them.
///
/// # Errors
/// Those of a point.
pub(crate) fn sweep(memory: &Memory, scenario: &str, plans: &[Plan]) -> anyhow::Result<Report> {
    let mut points: Vec<Report> = Vec::new();
    let mut interrupted = false;
    for plan in plans {
        if interrupt::asked() {
            interrupted = true;
            break;
        }
        match measure_with(memory, plan, scenario) {
            Err(_) if interrupt::asked() => interrupted = true,
            result => points.push(result?),
        }
    }
    let last = plans.last().map(|plan| Report::new(scenario, plan, machine::describe(memory.eal.tsc_hz())));
    let mut whole = points.last().cloned().or(last).ok_or_else(|| anyhow::anyhow!("nothing to measure"))?;
    whole.balanced = points.iter().all(|point| point.balanced) && !points.is_empty();
    whole.compared = points.iter().map(|point| point.compared).sum();
    whole.interrupted |= interrupted;
    whole.points = points;
    Ok(whole)
}

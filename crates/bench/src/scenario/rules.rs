//! `rules`: forwarding over the number of PDRs in a session, then over the number of content rules.

use super::forward::PACKETS;
use super::services;
use super::sweep::sweep;
use crate::interrupt;
use crate::plan::Plan;
use crate::product::Memory;
use crate::report::Report;

/// PDRs of the points.
const PDRS: [u32; 6] = [2, 10, 50, 200, 500, 1_000];

/// PDRs of each point without content rules, up to `--pdrs`.
pub(super) fn sizes(plan: &Plan) -> Vec<u32> {
    PDRS.into_iter().filter(|pdrs| *pdrs < plan.pdrs).chain([plan.pdrs]).collect()
}

/// The points up to `--pdrs`, without content rules; then those up to `--rules`, of sessions with PDRs for services.
///
/// # Errors
/// Those of a point.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let has_content = plan.rules > 0;
    let half = plan.for_one_of(if has_content { 2 } else { 1 });
    let sizes = sizes(plan);
    let part = Plan { rules: 0, ..half.for_one_of(sizes.len()) };
    let plans: Vec<Plan> = sizes.into_iter().map(|pdrs| Plan { pdrs, ..part.clone() }).collect();
    let memory = Memory::new(plans.len().max(services::POOLS), PACKETS)?;
    let _thread = memory.eal.register_thread()?;
    let mut report = sweep(&memory, "rules", &plans)?;
    let first = "over PDRs: the one that matches is the last by precedence; all others of its direction are in vain, and lead to \
         the same FAR, QER and URR";
    report.notes.push(first.to_owned());
    if has_content && !interrupt::asked() {
        let plan = services::with_services(&half);
        let points = services::points(&memory, &plan, ("rules", None))?.0;
        report.notes.extend(services::notes(&plan, &points));
        report.compared += points.iter().map(|point| point.compared).sum::<u64>();
        report.points.extend(points);
    }
    report.interrupted = interrupt::asked();
    Ok(report)
}

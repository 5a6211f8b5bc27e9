//! `rules`: forwarding over the number of PDRs in a session.

use super::sweep::sweep;
use crate::plan::Plan;
use crate::report::Report;

/// PDRs of the points.
const PDRS: [u32; 6] = [2, 10, 50, 200, 500, 1_000];

/// The points up to `--pdrs`.
///
/// # Errors
/// Those of a point.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let mut sizes: Vec<u32> = PDRS.into_iter().filter(|pdrs| *pdrs < plan.pdrs).collect();
    sizes.push(plan.pdrs);
    let part = plan.for_one_of(sizes.len());
    let plans: Vec<Plan> = sizes.into_iter().map(|pdrs| Plan { pdrs, ..part.clone() }).collect();
    let mut report = sweep("rules", &plans)?;
    let notes = [
        "the PDR that matches is the last by precedence; all others of its direction are in vain",
        "content rules are measured by `services`",
    ];
    report.notes.extend(notes.map(str::to_owned));
    Ok(report)
}

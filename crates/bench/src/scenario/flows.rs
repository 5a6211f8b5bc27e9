//! `flows`: forwarding over the number of flows, of as many users as ever.

use super::forward::PACKETS;
use super::sweep::sweep;
use crate::plan::Plan;
use crate::product::Memory;
use crate::report::Report;
use traffic::Profile;

/// Flows of the points.
const FLOWS: [u32; 3] = [100_000, 1_000_000, 4_000_000];

/// Of the last point, unless told otherwise.
pub(crate) const SWEEP_FLOWS: u32 = FLOWS[2];

/// Flows of each point, up to `--flows`.
pub(super) fn sizes(plan: &Plan) -> Vec<u32> {
    let Profile { active, flows: most, .. } = plan.profile;
    FLOWS.into_iter().filter(|flows| (active..most).contains(flows)).chain([most]).collect()
}

/// All points.
///
/// # Errors
/// Those of a point.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let sizes = sizes(plan);
    let part = plan.for_one_of(sizes.len());
    let of = |flows| Plan { profile: Profile { flows, ..part.profile }, ..part.clone() };
    let plans: Vec<Plan> = sizes.into_iter().map(of).collect();
    let memory = Memory::new(plans.len(), PACKETS)?;
    let _thread = memory.eal.register_thread()?;
    let mut report = sweep(&memory, "flows", &plans)?;
    report
        .notes
        .push("the table of flows has room for just as many; the yardsticks' has as many lines".to_owned());
    Ok(report)
}

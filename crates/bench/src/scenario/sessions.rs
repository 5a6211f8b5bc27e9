//! `sessions`: forwarding over the number of sessions. All of them are active, or most would stay cold.

use super::forward::PACKETS;
use super::sweep::sweep;
use crate::plan::Plan;
use crate::product::Memory;
use crate::report::Report;

/// Sessions of the points: powers of ten, and the number that published tests used.
const SESSIONS: [u32; 5] = [1_000, 10_000, 100_000, 600_000, 1_000_000];

/// Sessions of each point, up to `--sessions`.
pub(super) fn sizes(plan: &Plan) -> Vec<u32> {
    let most = plan.profile.subscribers;
    SESSIONS.into_iter().filter(|sessions| *sessions < most).chain([most]).collect()
}

/// All points.
///
/// # Errors
/// Those of a point.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let sizes = sizes(plan);
    let part = plan.for_one_of(sizes.len());
    let plans: Vec<Plan> = sizes.into_iter().map(|sessions| part.with_sessions(sessions)).collect();
    let memory = Memory::new(plans.len(), PACKETS)?;
    let _thread = memory.eal.register_thread()?;
    let mut report = sweep(&memory, "sessions", &plans)?;
    report.notes.push("all sessions are active; the yardsticks' tables have as many lines".to_owned());
    Ok(report)
}

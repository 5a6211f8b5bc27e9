//! What a card that hashes inside tunnels gains, by the length of packets: a measurement for each length that others
//! published a gain for, with the sessions and flows of the run.

use super::formation::{Case, Mode};
use super::rounds::Tools;
use super::team::Team;
use super::{Entry, point, trials};
use crate::beside::Beside;
use crate::interrupt;
use crate::plan::Plan;
use crate::report::Report;
use crate::spread::rounded;
use ::plan::PUBLISHED;
use traffic::{PROFILES, Profile};

/// Of the duration, for each length, beyond the rest.
const SHARE: f64 = 0.2;

/// Inner hash and an outer hash of one gNB's tunnels, in turns, for each length but the run's own.
///
/// # Errors
/// Packets that are missing or wrong.
pub(super) fn measure(
    team: &Team<'_>,
    (plan, report): (&Plan, &Report),
    mut entries: Vec<Entry>,
    (tools, beside): (&mut Tools, &mut Beside),
) -> anyhow::Result<Vec<Report>> {
    // The others' sessions are not needed any more.
    entries.retain(|entry| is_compared(entry.formation.case));
    let mut points = Vec::new();
    for profile in lengths(plan) {
        let part = Plan { duration: plan.duration.mul_f64(SHARE), ..plan.clone() };
        entries.iter_mut().for_each(|entry| entry.forget());
        beside.forget();
        tools.rack.set_lengths(profile);
        (tools.bytes, tools.packets) = (0, 0);
        match trials(team, &part, &mut entries, (tools, beside)) {
            Err(_) if interrupt::asked() => break,
            done => done?,
        }
        let mut whole = Report { profile: profile.name.to_owned(), ..report.clone() };
        whole.compare(&beside.score(&[]), team.hz);
        whole.mean_bytes = rounded(tools.bytes as f64 / tools.packets.max(1) as f64);
        points.extend(entries.iter().map(|entry| point(&whole, entry, &entries, (team.hz, beside))));
    }
    tools.rack.set_lengths(&plan.profile);
    Ok(points)
}

fn is_compared(case: Case) -> bool {
    case.workers > 1 && case.gnbs == 1 && matches!(case.mode, Mode::Inner | Mode::Outer)
}

/// Profiles with packets as long as those of published gains.
fn lengths(plan: &Plan) -> impl Iterator<Item = &'static Profile> {
    let own = plan.profile.name;
    let names = PUBLISHED.iter().filter_map(|published| published.profile).filter(move |name| *name != own);
    names.filter_map(|name| PROFILES.iter().find(|profile| profile.name == name))
}

impl Entry {
    /// Measured anew, with sessions and flows as they are.
    fn forget(&mut self) {
        for values in [&mut self.work_ns, &mut self.core_ns, &mut self.bare_ns] {
            values.clear();
        }
        self.worker_ns.clear();
        self.counted = self.formation.workers.last().map(|worker| worker.counters().clone());
    }
}

//! The command line.

use crate::plan::{Direction, FLOWS_MAX, Plan, SESSIONS_MAX, TRIALS_MAX};
use crate::scenario::Scenario;
use crate::setup::PDRS_MIN;
use crate::{interrupt, machine, output};
use anyhow::bail;
use clap::Parser;
use rules::limits;
use std::path::PathBuf;
use std::time::Duration;
use traffic::{PROFILES, Profile, profile};

/// Sessions of the largest point of `sessions`, unless given.
const SWEEP_SESSIONS: u32 = 1_000_000;
/// Sessions of `rules`, unless given: those of 1,000 PDRs each must fit into memory.
const RULES_SESSIONS: u32 = 6_000;

/// Measures the data path in memory: no network card, and yardsticks in the same run.
#[derive(Clone, Debug, Parser)]
#[group(id = "bench")]
pub struct Args {
    /// What to measure.
    scenario: Scenario,
    /// Traffic model: zte, samsung, cht-512, cht-1280, epc-us, epc-us-stress.
    #[arg(long, value_name = "NAME", default_value = "zte")]
    profile: String,
    /// Sessions that exist; those of the profile unless given. Of `sessions`: the most; 1,000,000 unless given.
    #[arg(long, value_name = "N")]
    sessions: Option<u32>,
    /// Sessions that send and receive; those of the profile unless given.
    #[arg(long, value_name = "N")]
    active: Option<u32>,
    /// Flows of all active sessions together; those of the profile unless given.
    #[arg(long, value_name = "N")]
    flows: Option<u32>,
    /// Content rules of a session.
    #[arg(long, value_name = "N", default_value_t = 0)]
    rules: u32,
    /// PDRs of a session; 2 unless given. Of `rules`: the most; 1,000 unless given.
    #[arg(long, value_name = "N")]
    pdrs: Option<u32>,
    /// Which way packets go.
    #[arg(long, value_name = "WAY", default_value = "both")]
    direction: Direction,
    /// How long to measure, in seconds, all trials together.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    duration: f64,
    /// Measurements whose median counts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    trials: u32,
    /// Of everything random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the result as JSON to a file, or to standard output with "-".
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the result and a page with all results found there into this folder.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

impl Args {
    /// Measures and reports.
    ///
    /// # Errors
    /// Parameters that cannot be, or books that do not balance.
    pub fn execute(&self) -> anyhow::Result<()> {
        let plan = self.plan()?;
        plan.check_memory(machine::available_bytes()?)?;
        interrupt::watch()?;
        let report = self.scenario.measure(&plan)?;
        output::give(&report, self.json.as_deref(), self.report.as_deref())
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let profile = self.traffic()?;
        let default_pdrs = if self.scenario == Scenario::Rules { limits::PDRS as u32 } else { PDRS_MIN };
        let pdrs = self.pdrs.unwrap_or(default_pdrs);
        if !(PDRS_MIN..=limits::PDRS as u32).contains(&pdrs) {
            bail!("--pdrs {pdrs}: a session has {PDRS_MIN} to {}", limits::PDRS);
        }
        if self.rules != 0 {
            bail!("--rules {}: the data path has no content rules yet; 0 can be measured", self.rules);
        }
        if !(0.1..=86_400.0).contains(&self.duration) {
            bail!("--duration {}: 0.1 to 86400 seconds can be measured", self.duration);
        }
        if !(1..=TRIALS_MAX).contains(&self.trials) {
            bail!("--trials {}: 1 to {TRIALS_MAX} can be measured", self.trials);
        }
        let duration = Duration::from_secs_f64(self.duration);
        let (direction, trials, seed) = (self.direction, self.trials, self.seed);
        Ok(Plan { profile, direction, pdrs, duration, trials, seed })
    }

    /// The profile as this measurement wants it.
    fn traffic(&self) -> anyhow::Result<Profile> {
        let Some(model) = profile(&self.profile) else {
            let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
            bail!("there is no profile \"{}\"; there are {}", self.profile, names.join(", "));
        };
        let (subscribers, active) = self.subscribers(model);
        let flows = self.flows.unwrap_or(model.flows.max(active));
        if !(1..=SESSIONS_MAX).contains(&subscribers) {
            bail!("--sessions {subscribers}: 1 to {SESSIONS_MAX} can be measured");
        }
        if !(1..=subscribers).contains(&active) {
            bail!("--active {active}: 1 to the number of sessions, {subscribers}, can be active");
        }
        if !(active..=FLOWS_MAX).contains(&flows) {
            bail!("--flows {flows}: one a session, {active}, to {FLOWS_MAX} can be measured");
        }
        let uplink = match self.direction {
            Direction::Up => 1.0,
            Direction::Down => 0.0,
            Direction::Both => model.uplink,
        };
        Ok(Profile { subscribers, active, flows, uplink, ..*model })
    }

    /// Sessions that exist, and those of them that are active.
    fn subscribers(&self, model: &Profile) -> (u32, u32) {
        let default = match self.scenario {
            Scenario::Sessions => SWEEP_SESSIONS,
            Scenario::Rules => RULES_SESSIONS.min(model.subscribers),
            _ => model.subscribers,
        };
        let subscribers = self.sessions.unwrap_or(default);
        let active = match self.scenario {
            Scenario::Sessions => subscribers,
            _ => self.active.unwrap_or(model.active.min(subscribers)),
        };
        (subscribers, active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &[&str]) -> anyhow::Result<Plan> {
        Args::parse_from([&["bench", "forward"], words].concat()).plan()
    }

    #[test]
    fn a_profile_is_taken_as_it_is_unless_told_otherwise() {
        assert_eq!(plan(&[]).unwrap().profile, *profile("zte").unwrap());
        let plan = plan(&["--profile", "samsung", "--sessions", "1000", "--direction", "down"]).unwrap();
        assert_eq!((plan.profile.subscribers, plan.profile.active), (1_000, 1_000));
        assert_eq!(plan.profile.uplink, 0.0);
    }

    #[test]
    fn sweeps_go_as_far_as_told() {
        let plan = |words: &[&str]| Args::parse_from([&["bench"], words].concat()).plan().unwrap();
        assert_eq!(plan(&["rules"]).pdrs, 1_000);
        assert_eq!(plan(&["sessions"]).profile.active, 1_000_000);
        assert_eq!(plan(&["sessions", "--sessions", "5000"]).profile.subscribers, 5_000);
    }

    #[test]
    fn impossible_parameters_name_the_limit() {
        for (words, expected) in [
            (["--profile", "zet"], "there are zte, samsung"),
            (["--sessions", "0"], "1 to 2000000"),
            (["--active", "600001"], "600000, can be active"),
            (["--flows", "17"], "one a session, 6000, to"),
            (["--duration", "0"], "0.1 to 86400 seconds"),
            (["--duration", "nan"], "0.1 to 86400 seconds"),
            (["--trials", "0"], "1 to 100"),
            (["--pdrs", "1"], "2 to 1000"),
            (["--rules", "5"], "no content rules yet"),
        ] {
            let error = plan(&words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

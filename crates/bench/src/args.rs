//! The command line.

use crate::forward;
use anyhow::bail;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use traffic::{PROFILES, Profile, profile};

/// What to measure. More scenarios will follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Users' packets through PDRs and FARs, up and down.
    Forward,
}

/// Measures the data path in memory: no network card, the whole of it on one core.
#[derive(Clone, Debug, Parser)]
#[group(id = "bench")]
pub struct Args {
    /// What to measure.
    scenario: Scenario,
    /// Traffic model: zte, samsung, cht-512, cht-1280, epc-us, epc-us-stress.
    #[arg(long, value_name = "NAME", default_value = "zte")]
    profile: String,
    /// Sessions that exist; those of the profile unless given.
    #[arg(long, value_name = "N")]
    sessions: Option<u32>,
    /// Sessions that send and receive; those of the profile unless given.
    #[arg(long, value_name = "N")]
    active: Option<u32>,
    /// Flows of all active sessions together; those of the profile unless given.
    #[arg(long, value_name = "N")]
    flows: Option<u32>,
    /// How long to measure, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    duration: u64,
    /// Of everything random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the result as JSON to a file, or to standard output with "-".
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A measurement whose parameters make sense.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) profile: Profile,
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
}

/// Most sessions of a measurement.
const SESSIONS_MAX: u32 = 2_000_000;
/// Most flows of a measurement.
const FLOWS_MAX: u32 = 16_000_000;

impl Args {
    /// Measures and reports.
    ///
    /// # Errors
    /// Parameters that cannot be, or books that do not balance.
    pub fn execute(&self) -> anyhow::Result<()> {
        let plan = self.plan()?;
        let result = match self.scenario {
            Scenario::Forward => forward::measure(&plan)?,
        };
        crate::report::give(&result, self.json.as_deref())
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let names = || PROFILES.iter().map(|profile| profile.name).collect::<Vec<_>>().join(", ");
        let Some(model) = profile(&self.profile) else {
            bail!("there is no profile \"{}\"; there are {}", self.profile, names());
        };
        let subscribers = self.sessions.unwrap_or(model.subscribers);
        let active = self.active.unwrap_or(model.active.min(subscribers));
        let flows = self.flows.unwrap_or(model.flows);
        if !(1..=SESSIONS_MAX).contains(&subscribers) {
            bail!("--sessions {subscribers}: 1 to {SESSIONS_MAX} can be measured");
        }
        if !(1..=subscribers).contains(&active) {
            bail!("--active {active}: 1 to the number of sessions, {subscribers}, can be active");
        }
        if !(active..=FLOWS_MAX).contains(&flows) {
            bail!("--flows {flows}: one a session, {active}, to {FLOWS_MAX} can be measured");
        }
        if self.duration == 0 {
            bail!("--duration 0: at least one second is needed");
        }
        let profile = Profile { subscribers, active, flows, ..*model };
        Ok(Plan { profile, duration: Duration::from_secs(self.duration), seed: self.seed })
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
        let plan = plan(&["--profile", "samsung", "--sessions", "1000"]).unwrap();
        assert_eq!((plan.profile.subscribers, plan.profile.active), (1_000, 1_000));
    }

    #[test]
    fn impossible_parameters_name_the_limit() {
        for (words, expected) in [
            (["--profile", "zet"], "there are zte, samsung"),
            (["--sessions", "0"], "1 to 2000000"),
            (["--active", "600001"], "600000, can be active"),
            (["--flows", "17"], "one a session, 6000, to"),
            (["--duration", "0"], "at least one second"),
        ] {
            let error = plan(&words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

//! The command line.

use crate::plan::{Direction, FLOWS_MAX, Plan, SESSIONS_MAX, TRIALS_MAX};
use crate::require::Requirement;
use crate::scenario::{SERVICE_OPENING, SERVICE_PDRS, SWEEP_FLOWS, Scenario};
use crate::setup::PDRS_MIN;
use crate::{interrupt, machine, output, ratchet, record, require};
use anyhow::bail;
use clap::builder::PossibleValue;
use clap::{Parser, ValueEnum};
use rules::limits;
use std::path::{Path, PathBuf};
use std::time::Duration;
use traffic::{PROFILES, Profile, catalogue, profile};

/// Unless given.
const PROFILE: &str = "zte";
const DURATION_S: f64 = 10.0;
const TRIALS: u32 = 5;
/// Sessions of the largest point of `sessions`, unless given.
const SWEEP_SESSIONS: u32 = 1_000_000;
/// Sessions of `rules`, unless given: those of 1,000 PDRs each must fit into memory.
const RULES_SESSIONS: u32 = 6_000;
/// Where a report goes, unless told.
const FOLDER: &str = "bench/report";

/// Measures the data path in memory: no network card, and yardsticks in the same run.
#[derive(Clone, Debug, Parser)]
#[group(id = "bench")]
pub struct Args {
    /// What to measure.
    #[arg(value_name = "SCENARIO")]
    task: Task,
    /// Traffic model: zte (the default), samsung, cht-512, cht-1280, epc-us, epc-us-stress.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Sessions that exist; those of the profile unless given. Of `sessions`: the most; 1,000,000 unless given. Of `pfcp`: all
    /// of them are established, however long it takes; unless given, as many as the time allows.
    #[arg(long, value_name = "N")]
    sessions: Option<u32>,
    /// Sessions that send and receive; those of the profile unless given.
    #[arg(long, value_name = "N")]
    active: Option<u32>,
    /// Flows of all active sessions together; those of the profile unless given.
    #[arg(long, value_name = "N")]
    flows: Option<u32>,
    /// Most content rules, of `services` and `rules`; 50,000 unless given. Of `rules`: 0 measures PDRs alone.
    #[arg(long, value_name = "N")]
    rules: Option<u32>,
    /// PDRs of a session; 2 unless given. Of `rules`: the most; 1,000 unless given. Of `services`: 12 unless given.
    #[arg(long, value_name = "N")]
    pdrs: Option<u32>,
    /// Which way packets go; both unless given.
    #[arg(long, value_name = "WAY")]
    direction: Option<Direction>,
    /// How long to measure, in seconds, all trials together; 10 unless given.
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Measurements whose median counts; 5 unless given.
    #[arg(long, value_name = "N")]
    trials: Option<u32>,
    /// Of everything random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the result as JSON to a file, or to standard output with "-".
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the result, and a page of all results found there, into this folder.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// What must be reached, else it fails: `establishments`, `modifications` and `deletions` a second, `last_to_first_cpu`,
    /// `last_to_first_wall` and the control process's `bytes` a session, at most, of `pfcp`; `ratio` of the others; with commas
    /// between.
    #[arg(long, value_name = "FIGURE=N", value_delimiter = ',')]
    require: Vec<Requirement>,
    /// Of `all`: rougher, in less than a minute.
    #[arg(long)]
    quick: bool,
    /// Of `check`: where the ratios are kept.
    #[arg(long, value_name = "FILE", default_value = "bench/baseline.json")]
    baseline: PathBuf,
    /// Of `check`: keep what is reached now.
    #[arg(long)]
    update: bool,
}

/// What the command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Measures one scenario.
    One(Scenario),
    /// Measures all of them, for a report.
    All,
    /// Compares ratios with those of a baseline.
    Check,
}

impl ValueEnum for Task {
    fn value_variants<'a>() -> &'a [Self] {
        const TASKS: &[Task] = &[
            Task::One(Scenario::Forward),
            Task::One(Scenario::Sessions),
            Task::One(Scenario::Flows),
            Task::One(Scenario::Rules),
            Task::One(Scenario::Latency),
            Task::One(Scenario::Scaling),
            Task::One(Scenario::Steering),
            Task::One(Scenario::Control),
            Task::One(Scenario::Services),
            Task::One(Scenario::Drops),
            Task::One(Scenario::Pfcp),
            Task::All,
            Task::Check,
        ];
        TASKS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::One(scenario) => scenario.to_possible_value(),
            Self::All => Some(PossibleValue::new("all").help("Every scenario, for a report")),
            Self::Check => Some(
                PossibleValue::new("check").help("Whether ratios to the bare loop fell below a baseline"),
            ),
        }
    }
}

impl Args {
    /// Measures and reports.
    ///
    /// # Errors
    /// Parameters that cannot be, or books that do not balance.
    pub fn execute(&self) -> anyhow::Result<()> {
        self.check_task()?;
        interrupt::watch()?;
        match self.task {
            Task::One(scenario) => self.measure(scenario),
            Task::All => {
                record::all(self.report.as_deref().unwrap_or(Path::new(FOLDER)), self.quick, self.seed)
            }
            Task::Check if self.update => ratchet::update(&self.baseline, self.seed),
            Task::Check => ratchet::check(&self.baseline, self.seed),
        }
    }

    /// What was said must matter: to pass over a word would measure something else than was asked for.
    fn check_task(&self) -> anyhow::Result<()> {
        let of_one = [
            ("--profile", self.profile.is_some()),
            ("--sessions", self.sessions.is_some()),
            ("--active", self.active.is_some()),
            ("--flows", self.flows.is_some()),
            ("--rules", self.rules.is_some()),
            ("--pdrs", self.pdrs.is_some()),
            ("--direction", self.direction.is_some()),
            ("--duration", self.duration.is_some()),
            ("--trials", self.trials.is_some()),
            ("--json", self.json.is_some()),
            ("--require", !self.require.is_empty()),
        ];
        let is_one = matches!(self.task, Task::One(_));
        let others = [
            ("--quick", self.quick && self.task != Task::All),
            ("--update", self.update && self.task != Task::Check),
            ("--report", self.report.is_some() && self.task == Task::Check),
        ];
        let of_one = of_one.into_iter().filter(|_| !is_one);
        match of_one.chain(others).find(|(_, given)| *given) {
            Some((name, _)) => bail!("{name} does not apply to this; see --help"),
            None => Ok(()),
        }
    }

    fn measure(&self, scenario: Scenario) -> anyhow::Result<()> {
        let plan = self.plan(scenario)?;
        plan.check_memory(machine::available_bytes()?, scenario.kept(&plan))?;
        let report = scenario.measure(&plan)?;
        output::give(&report, self.json.as_deref(), self.report.as_deref())?;
        require::check(&self.require, &report)
    }

    fn plan(&self, scenario: Scenario) -> anyhow::Result<Plan> {
        let profile = self.traffic(scenario)?;
        let default_pdrs = match scenario {
            Scenario::Rules => limits::PDRS as u32,
            Scenario::Services => SERVICE_PDRS,
            _ => PDRS_MIN,
        };
        let pdrs = self.pdrs.unwrap_or(default_pdrs);
        if !(PDRS_MIN..=limits::PDRS as u32).contains(&pdrs) {
            bail!("--pdrs {pdrs}: a session has {PDRS_MIN} to {}", limits::PDRS);
        }
        let rules = self.content_rules(scenario)?;
        let seconds = self.duration.unwrap_or(DURATION_S);
        if !(0.1..=86_400.0).contains(&seconds) {
            bail!("--duration {seconds}: 0.1 to 86400 seconds can be measured");
        }
        let trials = self.trials.unwrap_or(TRIALS);
        if !(1..=TRIALS_MAX).contains(&trials) {
            bail!("--trials {trials}: 1 to {TRIALS_MAX} can be measured");
        }
        let (duration, direction, seed) = (Duration::from_secs_f64(seconds), self.direction(), self.seed);
        let services = scenario == Scenario::Services;
        let every_session = self.sessions.is_some();
        Ok(Plan { profile, direction, pdrs, rules, every_session, services, duration, trials, seed })
    }

    /// Only `services` and `rules` have any.
    fn content_rules(&self, scenario: Scenario) -> anyhow::Result<u32> {
        match (scenario, self.rules) {
            (Scenario::Services | Scenario::Rules, rules) => {
                let (rules, most) = (rules.unwrap_or(catalogue::APPLICATIONS), catalogue::APPLICATIONS);
                if rules > most {
                    bail!("--rules {rules}: 0 to {most} content rules can be measured");
                }
                Ok(rules)
            }
            (_, Some(rules @ 1..)) => {
                bail!("--rules {rules}: only `services` and `rules` have content rules")
            }
            _ => Ok(0),
        }
    }

    fn direction(&self) -> Direction {
        self.direction.unwrap_or(Direction::Both)
    }

    /// The profile as this measurement wants it.
    fn traffic(&self, scenario: Scenario) -> anyhow::Result<Profile> {
        let name = self.profile.as_deref().unwrap_or(PROFILE);
        let Some(model) = profile(name) else {
            let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
            bail!("there is no profile \"{name}\"; there are {}", names.join(", "));
        };
        let (subscribers, active) = self.subscribers(model, scenario);
        let usual = if scenario == Scenario::Flows { SWEEP_FLOWS } else { model.flows };
        let flows = self.flows.unwrap_or(usual.max(active));
        if !(1..=SESSIONS_MAX).contains(&subscribers) {
            bail!("--sessions {subscribers}: 1 to {SESSIONS_MAX} can be measured");
        }
        if !(1..=subscribers).contains(&active) {
            bail!("--active {active}: 1 to the number of sessions, {subscribers}, can be active");
        }
        if !(active..=FLOWS_MAX).contains(&flows) {
            bail!("--flows {flows}: one a session, {active}, to {FLOWS_MAX} can be measured");
        }
        let uplink = match self.direction() {
            Direction::Up => 1.0,
            Direction::Down => 0.0,
            Direction::Both => model.uplink,
        };
        let opening = if scenario == Scenario::Services { SERVICE_OPENING } else { model.opening };
        Ok(Profile { subscribers, active, flows, uplink, opening, ..*model })
    }

    /// Sessions that exist, and those of them that are active.
    fn subscribers(&self, model: &Profile, scenario: Scenario) -> (u32, u32) {
        let default = match scenario {
            Scenario::Sessions => SWEEP_SESSIONS,
            Scenario::Rules => RULES_SESSIONS.min(model.subscribers),
            _ => model.subscribers,
        };
        let subscribers = self.sessions.unwrap_or(default);
        let active = match scenario {
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
        of(Scenario::Forward, words)
    }

    fn of(scenario: Scenario, words: &[&str]) -> anyhow::Result<Plan> {
        let args = Args::parse_from([&["bench", "forward"], words].concat());
        args.plan(scenario)
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
        assert_eq!(of(Scenario::Rules, &[]).unwrap().pdrs, 1_000);
        assert_eq!(of(Scenario::Sessions, &[]).unwrap().profile.active, 1_000_000);
        assert_eq!(of(Scenario::Sessions, &["--sessions", "5000"]).unwrap().profile.subscribers, 5_000);
    }

    #[test]
    fn every_scenario_has_a_word_and_so_have_the_two_that_are_none() {
        let words: Vec<String> = Task::value_variants()
            .iter()
            .map(|task| task.to_possible_value().unwrap().get_name().to_owned())
            .collect();
        assert_eq!(words[words.len() - 2..], ["all", "check"]);
        let scenarios = Scenario::value_variants().iter().map(|s| s.to_possible_value().unwrap());
        assert_eq!(words[..words.len() - 2], scenarios.map(|s| s.get_name().to_owned()).collect::<Vec<_>>());
    }

    #[test]
    fn what_does_not_apply_is_refused() {
        for words in [
            ["bench", "all", "--profile", "zte"],
            ["bench", "check", "--report", "x"],
            ["bench", "all", "--require", "ratio=0.3"],
            ["bench", "forward", "--quick", "--update"],
        ] {
            let error = Args::parse_from(words).check_task().unwrap_err().to_string();
            assert!(error.contains("does not apply"), "{error}");
        }
        Args::parse_from(["bench", "all", "--quick", "--report", "x"]).check_task().unwrap();
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
            (["--rules", "5"], "only `services` and `rules` have"),
        ] {
            let error = plan(&words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for scenario in [Scenario::Services, Scenario::Rules] {
            let error = of(scenario, &["--rules", "50001"]).unwrap_err().to_string();
            assert!(error.contains("0 to 50000 content rules"), "{error}");
            assert_eq!(of(scenario, &["--rules", "0"]).unwrap().rules, 0);
            assert_eq!(of(scenario, &[]).unwrap().rules, 50_000);
        }
    }

    #[test]
    fn more_than_memory_is_refused_whatever_is_measured() {
        for scenario in Scenario::value_variants() {
            let plan = of(*scenario, &["--sessions", "2000000"]).unwrap();
            let error = plan.check_memory(1 << 30, scenario.kept(&plan)).unwrap_err().to_string();
            assert!(error.contains("1024 MiB are available: at most"), "{scenario:?}: {error}");
        }
    }
}

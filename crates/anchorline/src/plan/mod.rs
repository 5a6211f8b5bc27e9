//! `anchorline plan`: what would be, by models of what was measured. Nothing of it is run.

mod table;

use crate::exit;
use ::plan::{Costs, PUBLISHED, Scaling, scaling};
use anyhow::Context;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Most cores and gNBs the model counts one by one.
const MOST: i64 = 128;

/// What to plan.
#[derive(Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    /// What more cores would carry, and how long packets would be under way: modelled, from a report of `bench steering`.
    Scaling(ScalingArgs),
}

#[derive(clap::Args)]
struct ScalingArgs {
    /// A report that `anchorline bench steering --json FILE` has made, for what a packet costs. The default is in the source tree
    /// alone.
    #[arg(long, value_name = "FILE", default_value = "bench/report/steering.json")]
    report: PathBuf,
    /// Numbers of cores, 1 to 128.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,2,3,4,6,8,12,16,24,32")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST))]
    cores: Vec<u32>,
    /// Numbers of gNBs that tunnels come from, 1 to 128.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,4,64")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST))]
    gnbs: Vec<u32>,
    /// Users with traffic; those of the report, unless said.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    users: Option<u32>,
    /// Print it for programs.
    #[arg(long)]
    json: bool,
}

/// Prints what was asked for.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Question::Scaling(args) = &args.question;
    exit::say(&args.text().map_err(exit::unusable)?)
}

impl ScalingArgs {
    fn costs(&self) -> anyhow::Result<Costs> {
        let path = self.report.display();
        let text = std::fs::read_to_string(&self.report);
        let text = text.with_context(|| {
            format!(
                "{path} cannot be read; make a report with `anchorline bench steering --json FILE` and name it with \
                 --report FILE"
            )
        })?;
        let mut costs = Costs::of_report(&text).with_context(|| format!("{path} is of no use"))?;
        costs.users = self.users.map_or(costs.users, f64::from);
        costs.uplink = uplink(&text).unwrap_or(costs.uplink);
        Ok(costs)
    }

    fn text(&self) -> anyhow::Result<String> {
        let costs = self.costs()?;
        let rows = scaling(&costs, &self.cores, &self.gnbs);
        match self.json {
            true => Ok(serde_json::to_string(&json(&costs, &rows))? + "\n"),
            false => Ok(table::of(&costs, &self.gnbs, &rows)),
        }
    }
}

/// The share of packets that go up, of the traffic that the report was made with.
fn uplink(report: &str) -> Option<f64> {
    let report: serde_json::Value = serde_json::from_str(report).ok()?;
    let name = report.get("profile")?.as_str()?;
    traffic::PROFILES.iter().find(|profile| profile.name == name).map(|profile| profile.uplink)
}

fn json(costs: &Costs, rows: &[Scaling]) -> serde_json::Value {
    serde_json::json!({ "modelled": true, "costs": costs, "scaling": rows, "published": PUBLISHED })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> ScalingArgs {
        let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/report/steering.json");
        let words = ["plan", "scaling", "--report", report].into_iter().chain(line.split_whitespace());
        let Question::Scaling(args) = Args::try_parse_from(words).unwrap().question;
        args
    }

    #[test]
    fn the_committed_report_is_modelled_and_says_so() {
        let text = args("--cores 1,8 --gnbs 1,64").text().unwrap();
        assert!(text.starts_with("MODELLED") && text.contains("1.00, 1.35, 1.60"), "{text}");
        assert!(
            text.contains("150 us, then 74 us") && text.contains("1.97 times") && text.contains("2.07 times"),
            "{text}"
        );
        let json: serde_json::Value =
            serde_json::from_str(&args("--cores 4 --json").text().unwrap()).unwrap();
        assert_eq!((&json["modelled"], &json["scaling"][0]["cores"]), (&true.into(), &4.into()));
        assert!(json["scaling"][0]["ways"][0]["latency"]["p99_us"].as_f64().unwrap() > 0.0);
    }

    #[test]
    fn numbers_are_shown_as_they_are_written() {
        let Question::Scaling(usual) = Args::try_parse_from(["plan", "scaling"]).unwrap().question;
        assert_eq!(usual.cores, [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]);
        assert_eq!(usual.gnbs, [1, 4, 64]);
        let help = Args::try_parse_from(["plan", "scaling", "--help"]).err().unwrap().to_string();
        for shown in ["[default: 1,2,3,4,6,8,12,16,24,32]", "[default: 1,4,64]"] {
            assert!(help.contains(shown), "{help}");
        }
    }

    #[test]
    fn one_core_carries_what_was_measured_of_one_worker() {
        let report: serde_json::Value =
            serde_json::from_str(include_str!("../../../../bench/report/steering.json")).unwrap();
        let points = report["points"].as_array().unwrap();
        let is_one = |point: &&serde_json::Value| point["mode"] == "inner" && point["workers"] == 1;
        let measured = points.iter().find(is_one).unwrap()["mpps_per_core"].as_f64().unwrap();
        let answer = args("--cores 1 --json").text().unwrap();
        let json: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let modelled = json["scaling"][0]["ways"][0]["mpps"].as_f64().unwrap();
        assert!((modelled / measured - 1.0).abs() < 0.01, "{modelled} modelled, {measured} measured");
        let text = args("--cores 1").text().unwrap();
        assert!(
            text.contains("where that is alone, ") && text.contains(" where 2 are at work at once;"),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_report_is_said() {
        let other = ScalingArgs { report: "Cargo.toml".into(), ..args("") };
        assert!(format!("{:#}", other.text().unwrap_err()).contains("no report of"));
        let absent = ScalingArgs { report: "/nowhere".into(), ..args("") };
        let told = format!("{:#}", absent.text().unwrap_err());
        assert!(told.starts_with("/nowhere cannot be read") && told.contains("--report FILE"), "{told}");
        // The command it names is one that is taken.
        let command = told.split('`').nth(1).unwrap().strip_prefix("anchorline ").unwrap();
        assert!(bench::Args::try_parse_from(command.split(' ')).is_ok(), "{command}");
    }
}

//! What a measurement must reach: figures with a bound each, and what is said of those that were missed.

use crate::report::Report;
use crate::spread::Spread;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// A figure of a report that may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Establishments,
    Modifications,
    Deletions,
    LastToFirstCpu,
    LastToFirstWall,
    Bytes,
    Ratio,
}

use Figure::{Bytes, Deletions, Establishments, LastToFirstCpu, LastToFirstWall, Modifications, Ratio};

const FIGURES: [Figure; 7] =
    [Establishments, Modifications, Deletions, LastToFirstCpu, LastToFirstWall, Bytes, Ratio];

impl Figure {
    /// As it is asked for.
    const fn name(self) -> &'static str {
        match self {
            Establishments => "establishments",
            Modifications => "modifications",
            Deletions => "deletions",
            LastToFirstCpu => "last_to_first_cpu",
            LastToFirstWall => "last_to_first_wall",
            Bytes => "bytes",
            Ratio => "ratio",
        }
    }

    /// Of this one, less is better.
    const fn is_cost(self) -> bool {
        matches!(self, Bytes)
    }

    fn of(self, report: &Report) -> Option<f64> {
        let pfcp = report.pfcp.as_ref();
        let median = |spread: Option<Spread>| spread.map(|spread| spread.median);
        match self {
            Establishments => median(pfcp?.establishments_per_s),
            Modifications => median(pfcp?.modifications_per_s),
            Deletions => median(pfcp?.deletions_per_s),
            LastToFirstCpu => pfcp?.last_to_first_cpu,
            LastToFirstWall => pfcp?.last_to_first_wall,
            Bytes => Some(pfcp?.cpe_bytes_per_session as f64),
            Ratio => report.ratio,
        }
    }
}

/// A figure and its bound: the least there must be, or the most there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Requirement {
    figure: Figure,
    bound: f64,
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, bound) = text.split_once('=').ok_or("a figure, =, and a number")?;
        let figure = FIGURES.into_iter().find(|figure| figure.name() == name).ok_or_else(|| {
            let names = FIGURES.map(Figure::name).join(", ");
            format!("there is no figure \"{name}\"; there are {names}")
        })?;
        match bound.parse() {
            Ok(bound) if f64::is_finite(bound) && bound > 0.0 => Ok(Self { figure, bound }),
            _ => Err(format!("\"{bound}\" is no number above 0")),
        }
    }
}

/// One figure that was missed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Missed {
    requirement: Requirement,
    /// Nothing where the measurement does not have it.
    reached: Option<f64>,
}

impl Display for Missed {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Requirement { figure, bound } = self.requirement;
        let asked = if figure.is_cost() { "at most" } else { "at least" };
        match self.reached {
            Some(reached) => write!(out, "{}: {reached}, {asked} {bound} was asked for", figure.name()),
            None => write!(out, "{}: not measured, {asked} {bound} was asked for", figure.name()),
        }
    }
}

fn missed(requirements: &[Requirement], report: &Report) -> Vec<Missed> {
    let all = requirements.iter().map(|requirement| {
        let reached = requirement.figure.of(report);
        Missed { requirement: *requirement, reached }
    });
    all.filter(|Missed { requirement, reached }| {
        let holds = |reached: f64| match requirement.figure.is_cost() {
            true => reached <= requirement.bound,
            false => reached >= requirement.bound,
        };
        !reached.is_some_and(holds)
    })
    .collect()
}

/// Says each figure that was missed, in a line of its own.
///
/// # Errors
/// The names of those there are.
pub(crate) fn check(requirements: &[Requirement], report: &Report) -> anyhow::Result<()> {
    let missed = missed(requirements, report);
    missed.iter().for_each(|missed| eprintln!("{missed}"));
    let names: Vec<_> = missed.iter().map(|missed| missed.requirement.figure.name()).collect();
    anyhow::ensure!(missed.is_empty(), "missed what was required: {}", names.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(text: &str) -> Result<Requirement, String> {
        text.parse()
    }

    fn report() -> Report {
        let mut report: Report = serde_json::from_str(include_str!("../recordings/pfcp.json")).unwrap();
        let pfcp = report.pfcp.as_mut().unwrap();
        pfcp.establishments_per_s = Spread::of(&[29_000.0, 31_000.0, 40_000.0]);
        pfcp.modifications_per_s = Spread::of(&[59_999.0]);
        (pfcp.last_to_first_cpu, pfcp.cpe_bytes_per_session) = (Some(0.9), 1_536);
        report.ratio = None;
        report
    }

    fn told(texts: &[&str], report: &Report) -> Vec<String> {
        let requirements: Vec<_> = texts.iter().map(|text| requirement(text).unwrap()).collect();
        missed(&requirements, report).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_reached_is_not_missed() {
        let texts = ["establishments=31000", "bytes=1536", "last_to_first_cpu=0.9"];
        assert_eq!(told(&texts, &report()), Vec::<String>::new());
    }

    #[test]
    fn each_figure_that_is_missed_is_told_with_its_bound() {
        let mut report = report();
        report.pfcp.as_mut().unwrap().cpe_bytes_per_session = 1_537;
        let texts = ["establishments=31001", "modifications=60000", "last_to_first_cpu=0.901", "bytes=1536"];
        let expected = [
            "establishments: 31000, at least 31001 was asked for",
            "modifications: 59999, at least 60000 was asked for",
            "last_to_first_cpu: 0.9, at least 0.901 was asked for",
            "bytes: 1537, at most 1536 was asked for",
        ];
        assert_eq!(told(&texts, &report), expected);
        let all: Vec<_> = texts.iter().map(|text| requirement(text).unwrap()).collect();
        let error = check(&all, &report).unwrap_err().to_string();
        assert_eq!(
            error,
            "missed what was required: establishments, modifications, last_to_first_cpu, bytes"
        );
    }

    /// What was measured before there was another measure is by the clock, and proves nothing of that.
    #[test]
    fn the_clock_and_the_cpu_are_two_figures() {
        let mut report: serde_json::Value =
            serde_json::from_str(include_str!("../recordings/pfcp.json")).unwrap();
        let figures = report.as_object_mut().unwrap();
        figures.retain(|name, _| !name.starts_with("last_to_first"));
        figures.insert("last_to_first".to_owned(), 0.7.into());
        let report: Report = serde_json::from_value(report).unwrap();
        let expected = [
            "last_to_first_cpu: not measured, at least 0.9 was asked for",
            "last_to_first_wall: 0.7, at least 0.71 was asked for",
        ];
        assert_eq!(told(&["last_to_first_cpu=0.9", "last_to_first_wall=0.71"], &report), expected);
    }

    /// A run that was stopped early, or is too small for two steps of growth, proves nothing.
    #[test]
    fn what_was_not_measured_is_missed() {
        let mut report = report();
        report.pfcp.as_mut().unwrap().last_to_first_cpu = None;
        let expected = [
            "last_to_first_cpu: not measured, at least 0.9 was asked for",
            "ratio: not measured, at least 0.1 was asked for",
        ];
        assert_eq!(told(&["last_to_first_cpu=0.9", "ratio=0.1"], &report), expected);
        report.pfcp = None;
        assert_eq!(told(&["bytes=1536"], &report), ["bytes: not measured, at most 1536 was asked for"]);
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        for (text, expected) in [
            ("bytes", "a figure, =, and a number"),
            ("byte=1", "there is no figure \"byte\"; there are establishments, modifications"),
            ("bytes=", "\"\" is no number above 0"),
            ("bytes=nan", "no number above 0"),
            ("bytes=-1", "no number above 0"),
        ] {
            let error = requirement(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}

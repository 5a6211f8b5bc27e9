//! A ratchet: ratios that were reached once must not be lost unnoticed.

use crate::report::Report;
use crate::spread::{Spread, rounded};
use crate::{contest, interrupt, output, record};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What is watched: a name, and the words that measure it.
const WATCHED: [(&str, &str); 4] = [
    ("forward", "forward --duration 2 --trials 3"),
    ("forward_downlink_heavy", "forward --profile cht-512 --duration 2 --trials 3"),
    ("forward_100k_active", "forward --sessions 100000 --active 100000 --duration 2 --trials 3"),
    ("forward_100_pdrs", "forward --sessions 6000 --pdrs 100 --duration 2 --trials 3"),
];
/// Runs whose median is compared, and runs a baseline and its noise are made of.
const RUNS: usize = 3;
const BASELINE_RUNS: usize = 5;
/// No band is narrower: runs of another hour differ more than those of one.
const BAND_MIN: f64 = 0.05;

/// One ratio that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Mark {
    /// Product over bare loop.
    ratio: f64,
    /// Share of it by which runs of the same code differ.
    band: f64,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Baseline {
    marks: BTreeMap<String, Mark>,
}

/// What came of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fell,
    Held,
    Rose,
}

impl Mark {
    fn of(spread: Spread) -> Self {
        Self { ratio: spread.median, band: rounded(spread.width().max(BAND_MIN)) }
    }

    fn judge(&self, ratio: f64) -> Verdict {
        match ratio / self.ratio {
            change if change < 1.0 - self.band => Verdict::Fell,
            change if change > 1.0 + self.band => Verdict::Rose,
            _ => Verdict::Held,
        }
    }
}

/// Compares this build with the baseline.
///
/// # Errors
/// A ratio fell by more than its band; there is no baseline; a measurement failed.
pub(crate) fn check(baseline: &Path, seed: u64) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(baseline)
        .with_context(|| format!("there is no baseline {}: --update makes one", baseline.display()))?;
    let stored: Baseline =
        serde_json::from_str(&text).with_context(|| format!("{} is no baseline", baseline.display()))?;
    let mut fallen = Vec::new();
    for (name, words) in WATCHED {
        let Some(mark) = stored.marks.get(name) else {
            output::say(&format!("{name}: not in the baseline\n"))?;
            continue;
        };
        let ratio = measure(words, RUNS, seed)?.median;
        let verdict = mark.judge(ratio);
        let (baseline, band) = (mark.ratio, mark.band * 100.0);
        output::say(&format!(
            "{name}: {ratio:.3}, baseline {baseline:.3} with a band of {band:.0} %: {}\n",
            verdict.word()
        ))?;
        if verdict == Verdict::Fell {
            fallen.push(name);
        }
    }
    anyhow::ensure!(fallen.is_empty(), "slower than the baseline: {}", fallen.join(", "));
    Ok(())
}

/// Measures anew what is reached now.
///
/// # Errors
/// A measurement failed, or the file cannot be written.
pub(crate) fn update(baseline: &Path, seed: u64) -> anyhow::Result<()> {
    let mut fresh = Baseline::default();
    for (name, words) in WATCHED {
        let mark = Mark::of(measure(words, BASELINE_RUNS, seed)?);
        output::say(&format!("{name}: {:.3} with a band of {:.0} %\n", mark.ratio, mark.band * 100.0))?;
        fresh.marks.insert(name.to_owned(), mark);
    }
    output::write(baseline, &format!("{}\n", serde_json::to_string_pretty(&fresh)?))
}

/// The ratio in several processes, one after the other.
fn measure(words: &str, runs: usize, seed: u64) -> anyhow::Result<Spread> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("result.json");
    let mut ratios = Vec::new();
    let spinner = contest::spinner(words.to_owned());
    for _ in 0..runs {
        record::child(words, &file, seed)?;
        if interrupt::asked() {
            bail!("interrupted");
        }
        let report: Report = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        ratios.extend(report.ratio);
    }
    spinner.finish_and_clear();
    Spread::of(&ratios).context("no run gave a ratio")
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Fell => "FELL",
            Self::Held => "held",
            Self::Rose => "rose; --update keeps it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fall_beyond_the_band_counts() {
        let mark = Mark { ratio: 0.5, band: 0.1 };
        for (ratio, expected) in
            [(0.44, Verdict::Fell), (0.46, Verdict::Held), (0.54, Verdict::Held), (0.56, Verdict::Rose)]
        {
            assert_eq!(mark.judge(ratio), expected, "{ratio}");
        }
    }

    #[test]
    fn a_band_is_what_runs_differ_by_but_never_nothing() {
        let band = |min, max| Mark::of(Spread { min, median: 0.5, max }).band;
        assert_eq!((band(0.45, 0.55), band(0.5, 0.5)), (0.2, BAND_MIN));
    }
}

//! The page: all results of a folder, beside what others published, for somebody who knows none of them.

mod asked;
mod growth;
mod modelled;
mod plots;
mod published;
mod sections;
mod services;
mod steering;
mod summary;

use crate::output;
use crate::report::Report;
use anyhow::Context;
use plots::{Chart, Series};
use std::path::Path;

/// The page's name in its folder.
const PAGE: &str = "index.md";

/// Results that are in a folder, and measurements that gave none.
pub(crate) struct Results {
    reports: Vec<Report>,
    /// What was measured, and why there is no result.
    refused: Vec<(String, String)>,
}

/// Writes page and plots for the results in a folder.
///
/// # Errors
/// A file that cannot be read or written.
pub(crate) fn write(folder: &Path, refused: Vec<(String, String)>) -> anyhow::Result<()> {
    let results = Results { reports: read(folder)?, refused };
    results.draw(folder)?;
    output::write(&folder.join(PAGE), &results.text())
}

/// Every result in the folder, by file name.
fn read(folder: &Path) -> anyhow::Result<Vec<Report>> {
    let unreadable = || format!("{} cannot be read", folder.display());
    let entries = std::fs::read_dir(folder).with_context(unreadable)?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let one = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path)?;
        serde_json::from_str(&text).with_context(|| format!("{} is no result", path.display()))
    };
    paths.iter().map(one).collect()
}

impl Results {
    /// The result of this name.
    fn of(&self, scenario: &str) -> Option<&Report> {
        self.reports.iter().find(|report| report.scenario == scenario)
    }

    /// All of this name.
    fn all_of<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a Report> {
        self.reports.iter().filter(move |report| report.scenario == scenario)
    }

    /// The forwarding result that stands for the others: both directions of the first profile.
    fn usual(&self) -> Option<&Report> {
        let usual =
            |report: &&Report| report.profile == "zte" && report.direction == crate::plan::Direction::Both;
        self.all_of("forward").find(usual).or_else(|| self.of("forward"))
    }

    fn draw(&self, folder: &Path) -> anyhow::Result<()> {
        if let Some(report) = self.of("sessions") {
            let points: Vec<&Report> = report.points.iter().collect();
            let chart = rate_chart(&points, "Throughput over sessions", "sessions", |point| point.sessions);
            chart.draw(&folder.join("sessions.svg"))?;
        }
        if let Some(report) = self.of("flows") {
            let points: Vec<&Report> = report.points.iter().collect();
            let chart = rate_chart(&points, "Throughput over flows", "flows", |point| point.flows);
            chart.draw(&folder.join("flows.svg"))?;
        }
        if let Some(report) = self.of("rules") {
            let points: Vec<&Report> =
                report.points.iter().filter(|point| point.services.is_none()).collect();
            let chart = rate_chart(&points, "Throughput over PDRs", "PDRs of a session", |point| point.pdrs);
            chart.draw(&folder.join("rules.svg"))?;
        }
        if let Some(points) = self.content_points() {
            content_chart(&points).draw(&folder.join("content.svg"))?;
        }
        if let Some(report) = self.of("latency") {
            latency_chart(report).draw(&folder.join("latency.svg"))?;
        }
        if let Some(report) = self.of("steering") {
            modelled::draw(report, folder)?;
        }
        match self.usual() {
            Some(report) => plots::bars(&folder.join("nodes.svg"), report),
            None => Ok(()),
        }
    }
}

/// Product and bare loop over something that grows.
fn rate_chart(points: &[&Report], title: &'static str, x: &'static str, size: fn(&Report) -> u32) -> Chart {
    let series = vec![
        line(points, size, ("product", |point| point.mpps_per_core)),
        line(points, size, ("bare loop", |point| point.bare_mpps_per_core)),
    ];
    Chart { title, x, y: RATE, log_x: true, log_y: false, series }
}

/// Where no rule is drawn, on an axis that has no zero.
const NO_RULES: u32 = 10;

/// The worker with services, the one without, and the bare loop over content rules.
fn content_chart(points: &[&Report]) -> Chart {
    let size = |point: &Report| point.rules.max(NO_RULES);
    let series = vec![
        line(points, size, ("services", |point| point.mpps_per_core)),
        line(points, size, ("forward", |point| Some(point.services.as_ref()?.forward_mpps_per_core))),
        line(points, size, ("bare loop", |point| point.bare_mpps_per_core)),
    ];
    let (title, x) = ("Throughput over content rules", "content rules (none is drawn at 10)");
    Chart { title, x, y: RATE, log_x: true, log_y: false, series }
}

/// What rates are drawn in.
const RATE: &str = "Mpackets/s, one core, in memory";

/// A name, and what is drawn under it.
type Drawn = (&'static str, fn(&Report) -> Option<f64>);

fn line(points: &[&Report], size: fn(&Report) -> u32, (name, rate): Drawn) -> Series {
    let point = |point: &&Report| Some((f64::from(size(point)), rate(point)?));
    Series { name, points: points.iter().filter_map(point).collect() }
}

fn latency_chart(report: &Report) -> Chart {
    let line = |name, pick: fn(&crate::report::Latency) -> f64| {
        let point =
            |point: &Report| Some((point.load.as_ref()?.load * 100.0, pick(point.latency_us.as_ref()?)));
        Series { name, points: report.points.iter().filter_map(point).collect() }
    };
    let series = vec![
        line("p50", |latency| latency.p50),
        line("p99", |latency| latency.p99),
        line("p99.9", |latency| latency.p999),
        line("most", |latency| latency.max),
    ];
    Chart {
        title: "One-way latency over load",
        x: "percent of the rate without loss",
        y: "microseconds",
        log_x: false,
        log_y: true,
        series,
    }
}

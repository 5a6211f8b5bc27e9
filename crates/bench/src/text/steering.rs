//! The table of `steering`.

use crate::compared::{Carried, Compared};
use crate::report::{Report, Steering};
use crate::spread::Spread;
use std::fmt::Write;

/// A line for each mode, then one for each mode and load.
pub(super) fn table(report: &Report) -> String {
    let points = &report.points;
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let mut text = format!(
        "{:<16} {:>5} {:>8} {:>8} {:>10} {:>7} {:>9} {:>9} {:>7} {:>9} {:>6} {:>10} {:>8} {:>8} {:>8} {:>9}\n",
        "card",
        "gNBs",
        "workers",
        "offered",
        "Mpps/core",
        "ratio",
        "of inner",
        "handed %",
        "work",
        "hand-off",
        "floor",
        "shared out",
        "mean us",
        "p50 us",
        "p99 us",
        "p99.9 us"
    );
    for (point, steering) in points.iter().filter_map(|point| Some((point, point.steering.as_ref()?))) {
        let is_rate = steering.offered_mpps.is_none();
        let of_rate = |value: Option<f64>| value.filter(|_| is_rate);
        let latency = point.latency_us.as_ref();
        let _ = writeln!(
            text,
            "{:<16} {:>5} {:>8} {:>8} {:>10} {:>7} {:>9} {:>9} {:>7} {:>9} {:>6} {:>10} {:>8} {:>8} {:>8} {:>9}  {}",
            card(report, point, steering),
            steering.gnbs,
            point.workers,
            number(steering.offered_mpps, 2),
            number(point.mpps_per_core, 2),
            number(point.ratio, 3),
            number(of_rate(steering.ratio_to_inner.map(|ratio| ratio.median)), 3),
            number(of_rate(Some(steering.handed_share * 100.0)), 0),
            number(of_rate(steering.work_cycles.map(|work| work.median)), 0),
            number(of_rate(steering.handoff_cycles), 0),
            number(of_rate(steering.handoff_floor_cycles), 0),
            number(of_rate(steering.ratio_shared_out), 3),
            number(latency.and_then(|latency| latency.mean), 1),
            number(latency.map(|latency| latency.p50), 1),
            number(latency.map(|latency| latency.p99), 1),
            number(latency.map(|latency| latency.p999), 1),
            point.notes.join("; "),
        );
    }
    // Of most points there is nothing to say.
    text = text.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    text += &by_class(points);
    text += "\nwork: cycles of all workers for each packet; hand-off: what handing one over adds to it; floor: \
            what handing over a bare pointer adds; shared out: what is \
            left of inner hash where cores are shared out as it is best\n";
    text + &over_workers(&report.over_workers) + &published(&report.published)
}

/// The mode, and the traffic where it is not the report's.
fn card(report: &Report, point: &Report, steering: &Steering) -> String {
    match point.profile == report.profile {
        true => steering.mode.clone(),
        false => format!("{}, {}", steering.mode, point.profile),
    }
}

/// A line for each number of workers, and how it is known.
fn over_workers(all: &[Carried]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\ninner hash, a queue for each worker\n{:>8} {:>8} {:>10}\n",
        "workers", "Mpps", "times one"
    );
    for Carried { workers, mpps, times_one, spread, modelled } in all {
        let range =
            spread.map_or(String::new(), |Spread { min, max, .. }| format!(" ({min:.2} to {max:.2})"));
        let how = if *modelled { "MODELLED, not run" } else { "measured" };
        let _ = writeln!(text, "{workers:>8} {mpps:>8.1} {times_one:>10.2}  {how}{range}");
    }
    text
}

/// Others' figures, each with ours.
fn published(all: &[Compared]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text =
        "\npublished by others, who measured with network cards; ours with packets in memory\n".to_owned();
    for Compared { what, published, measured, modelled } in all {
        let _ = writeln!(text, "  {what}: {published}\n    ours: {measured}");
        modelled.iter().for_each(|modelled| _ = writeln!(text, "    MODELLED, not run: {modelled}"));
    }
    text
}

/// Under overload: what became of the urgent packets, and of the others.
fn by_class(points: &[Report]) -> String {
    let mut text = String::new();
    for steering in points.iter().filter_map(|point| point.steering.as_ref()) {
        for fate in &steering.by_class {
            let _ = writeln!(
                text,
                "overload, {:<10} {:>6} packets: {:>5.1} % lost, p50 {:.1} us, p99 {:.1} us",
                steering.mode,
                fate.class,
                fate.loss * 100.0,
                fate.latency_us.p50,
                fate.latency_us.p99,
            );
        }
    }
    text
}

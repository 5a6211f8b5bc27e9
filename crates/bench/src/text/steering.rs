//! The table of `steering`.

use crate::report::Report;
use std::fmt::Write;

/// A line for each mode, then one for each mode and load.
pub(super) fn table(points: &[Report]) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let mut text = format!(
        "{:<12} {:>5} {:>8} {:>8} {:>10} {:>7} {:>9} {:>9} {:>7} {:>9} {:>6} {:>10} {:>8} {:>8}\n",
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
        "p50 us",
        "p99 us"
    );
    for (point, steering) in points.iter().filter_map(|point| Some((point, point.steering.as_ref()?))) {
        let is_rate = steering.offered_mpps.is_none();
        let of_rate = |value: Option<f64>| value.filter(|_| is_rate);
        let latency = point.latency_us.as_ref();
        let _ = writeln!(
            text,
            "{:<12} {:>5} {:>8} {:>8} {:>10} {:>7} {:>9} {:>9} {:>7} {:>9} {:>6} {:>10} {:>8} {:>8}",
            steering.mode,
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
            number(latency.map(|latency| latency.p50), 1),
            number(latency.map(|latency| latency.p99), 1),
        );
    }
    text += &by_class(points);
    text + "\nwork: cycles of all workers for each packet; hand-off: what handing one over adds to it; floor: \
            what handing over a bare pointer adds; shared out: what is \
            left of inner hash where cores are shared out as it is best\n"
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

//! What is asked of the engine beside what was measured, missed or not.

use super::Results;
use crate::report::{Latency, Report, Waits};
use std::fmt::Write;

/// What a figure may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};

/// A figure.
struct Asked {
    /// With the sizes it was measured at.
    what: String,
    bound: Bound,
    unit: &'static str,
    measured: Option<f64>,
    /// What the same machine does there without any logic of ours, and what that is.
    beside: Option<(&'static str, f64)>,
}

/// The load whose latencies are asked for.
const LOAD: f64 = 0.8;

impl Results {
    pub(super) fn asked(&self) -> Option<String> {
        let all = [
            self.usual().map(forwarding),
            self.of("sessions").map(|report| grown(report, ("sessions", |point| point.sessions), 15.0)),
            self.of("flows").map(|report| grown(report, ("flows", |point| point.flows), 25.0)),
            self.of("rules").map(|report| grown(report, ("PDRs a session", |point| point.pdrs), 5.0)),
            self.of("sessions").map(memory),
            self.of("control").map(control),
            self.of("latency").map(latency),
            self.of("services").map(services),
            self.of("steering").map(steering),
            self.of("pfcp").map(pfcp),
        ];
        let figures: Vec<Asked> = all.into_iter().flatten().flatten().collect();
        (!figures.is_empty()).then(|| table(&figures))
    }
}

fn table(figures: &[Asked]) -> String {
    let mut text = "## Asked and measured\n\nWhat is asked is the same wherever it is measured. *Beside it* is what this machine does there without \
any logic of ours. Where the cycles go that are too many stands in the sections below, what was tried against it and what comes next in \
ARCHITECTURE.md.\n\n| figure | asked | measured | | beside it |\n|---|---|---|---|---|\n"
        .to_owned();
    for figure in figures {
        let Asked { what, bound, unit, measured: Some(measured), beside } = figure else { continue };
        let (asked, holds) = match bound {
            AtLeast(least) => (format!("at least {}", short(*least)), measured >= least),
            AtMost(most) => (format!("at most {}", short(*most)), measured <= most),
        };
        let beside =
            beside.map_or_else(String::new, |(name, value)| format!("{name} {}{unit}", short(value)));
        let outcome = if holds { "met" } else { "**missed**" };
        let _ =
            writeln!(text, "| {what} | {asked}{unit} | {}{unit} | {outcome} | {beside} |", short(*measured));
    }
    text + "\n"
}

/// With as many digits as make a difference.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if digits > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn figure(what: impl Into<String>, (bound, unit): (Bound, &'static str), measured: Option<f64>) -> Asked {
    Asked { what: what.into(), bound, unit, measured, beside: None }
}

fn forwarding(report: &Report) -> Vec<Asked> {
    vec![
        figure("forwarding, both ways, a core", (AtLeast(10.0), " Mpps"), report.mpps_per_core),
        figure("of the bare loop's rate", (AtLeast(0.5), ""), report.ratio),
    ]
}

/// From the first point to the last.
fn grown(report: &Report, (of, size): (&str, fn(&Report) -> u32), most: f64) -> Vec<Asked> {
    let points: Vec<&Report> = report.points.iter().filter(|point| point.services.is_none()).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return vec![] };
    let slower = |rate: fn(&Report) -> Option<f64>| Some((1.0 - rate(last)? / rate(first)?) * 100.0);
    let bare = slower(|point| point.bare_mpps_per_core);
    let measured = slower(|point| point.mpps_per_core);
    let beside = bare.map(|bare| ("the bare loop", bare));
    let what = format!("from {} to {} {of}, slower by", size(first), size(last));
    vec![Asked { beside, ..figure(what, (AtMost(most), " %"), measured) }]
}

/// Where most sessions are, as tables of fixed size are counted with them.
fn memory(report: &Report) -> Vec<Asked> {
    let memory = report.points.last().map(|point| point.memory).unwrap_or_default();
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
    vec![
        figure("memory of an idle session", (AtMost(512.0), " B"), bytes(memory.bytes_per_session)),
        figure(
            "memory of a flow (TCP or UDP over IPv4; others twice that)",
            (AtMost(64.0), " B"),
            bytes(memory.bytes_per_flow),
        ),
    ]
}

fn control(report: &Report) -> Vec<Asked> {
    let Some(control) = &report.control else { return vec![] };
    let of_one = control.changed_turn.p99_9_us - control.quiet_turn.p99_9_us;
    let later = control.longer_p99_9_us.map_or(of_one, |longer| longer.median);
    vec![
        figure(
            format!("while {} sessions change a second, of the rate", control.changes_per_s),
            (AtLeast(0.97), ""),
            Some(control.ratio_to_quiet.median),
        ),
        figure("p99.9 of a turn longer by that", (AtMost(20.0), " us"), Some(later)),
    ]
}

/// Of packets that met no absence of the machine's, if there were enough; what all packets took stands there, too.
fn latency(report: &Report) -> Vec<Asked> {
    let is_asked = |point: &&Report| point.load.as_ref().is_some_and(|load| load.load == LOAD);
    let Some(point) = report.points.iter().find(is_asked) else { return vec![] };
    let Some(load) = &point.load else { return vec![] };
    let Waits { calm_us: Some(calm), stand_in_calm_us, calm_share, .. } = &load.waits else { return vec![] };
    let beside = |pick: fn(&Latency) -> f64| {
        stand_in_calm_us.as_ref().map(|us| ("the bare loop at that pace", pick(us)))
    };
    let figure = |name: &str, most, pick: fn(&Latency) -> f64| {
        let all = point
            .latency_us
            .as_ref()
            .map_or_else(String::new, |us| format!("; of all {} us", short(pick(us))));
        let what = format!(
            "one way at {:.0} % of the rate without loss, {name} of the {:.0} % of packets that met both threads running and were sent \
             in time{all}",
            LOAD * 100.0,
            calm_share * 100.0
        );
        Asked { beside: beside(pick), ..figure(what, (AtMost(most), " us"), Some(pick(calm))) }
    };
    vec![figure("p50", 15.0, |us| us.p50), figure("p99.9", 69.0, |us| us.p999)]
}

/// Sizes are measured one after the other, so each is taken beside `forward` in its turns.
fn services(report: &Report) -> Vec<Asked> {
    let points: Vec<&Report> =
        report.points.iter().filter(|point| point.sessions == report.sessions).collect();
    let of_forward = |point: Option<&&Report>| Some(point?.services.as_ref()?.ratio_to_forward.median);
    let slower = of_forward(points.last()).zip(of_forward(points.first()));
    let slower = slower.map(|(last, first)| (1.0 - last / first) * 100.0);
    let ratio = report.services.as_ref().map(|services| services.ratio_to_forward.median);
    let rules = |point: Option<&&Report>| point.map_or(0, |point| point.rules);
    let (least, most) = (rules(points.first()), rules(points.last()));
    let with = format!("with {} content rules", report.rules);
    let grown = format!("from {least} to {most} content rules, slower by (beside `forward`)");
    let fewer = report.services.as_ref().and_then(|services| services.at_flow_rate);
    let mut all = vec![figure(format!("{with}, of the rate without services"), (AtLeast(0.9), ""), ratio)];
    all.extend(fewer.map(|fewer| {
        let what = format!("the same with {:.0} new flows a second", fewer.flows_per_s);
        figure(what, (AtLeast(0.9), ""), Some(fewer.ratio_to_forward.median))
    }));
    all.extend([
        figure(format!("{with}, a core"), (AtLeast(8.0), " Mpps"), report.mpps_per_core),
        figure(grown, (AtMost(3.0), " %"), slower),
    ]);
    for packet in report.classification.iter().flat_map(|found| &found.first_packets) {
        let what = format!("first packet, that tells by {}", packet.by);
        all.push(figure(what, (AtMost(packet.asked_ns.into()), " ns"), Some(packet.ns.median)));
    }
    all
}

/// The best and the worst of the ways without a card's help.
fn steering(report: &Report) -> Vec<Asked> {
    let all = report.points.iter().filter_map(|point| point.steering.as_ref());
    let ways: Vec<_> = all
        .filter_map(|it| Some((it.handoff_cycles?, it.handoff_floor_cycles, it.ratio_shared_out?)))
        .collect();
    let most = ways.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    let least = ways.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let cost = |what, way: Option<&(f64, Option<f64>, f64)>| Asked {
        beside: way.and_then(|way| way.1).map(|floor| ("a bare hand-over", floor)),
        ..figure(what, (AtMost(60.0), " cycles"), way.map(|way| way.0))
    };
    let shares = || ways.iter().map(|way| way.2);
    vec![
        cost("hand-off of a packet, the best way", least),
        cost("hand-off of a packet, the worst way", most),
        figure(
            "shared out, of inner hash, the best way",
            (AtLeast(0.75), ""),
            shares().max_by(f64::total_cmp),
        ),
        figure(
            "shared out, of inner hash, the worst way",
            (AtLeast(0.75), ""),
            shares().min_by(f64::total_cmp),
        ),
    ]
}

fn pfcp(report: &Report) -> Vec<Asked> {
    let last_to_first = report.pfcp.as_ref().and_then(|pfcp| pfcp.last_to_first_cpu);
    let what = format!("the last third of {} sessions, of the first's rate", report.sessions);
    vec![figure(what, (AtLeast(0.9), ""), last_to_first)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_met_up_to_its_bound_and_said_to_be_missed_behind_it() {
        let of = |bound, measured| table(&[figure("it", (bound, " us"), Some(measured))]);
        for (bound, measured, expected) in [
            (AtMost(69.0), 69.0, "| it | at most 69 us | 69 us | met |  |"),
            (AtMost(69.0), 91.52, "| it | at most 69 us | 91.5 us | **missed** |  |"),
            (AtLeast(0.5), 0.434, "| it | at least 0.5 us | 0.434 us | **missed** |  |"),
            (AtLeast(10.0), 18.73, "| it | at least 10 us | 18.7 us | met |  |"),
        ] {
            assert_eq!(of(bound, measured).trim_end().lines().last(), Some(expected));
        }
    }

    #[test]
    fn what_was_not_measured_has_no_line() {
        let nothing = table(&[figure("it", (AtMost(1.0), ""), None)]);
        assert!(nothing.ends_with("|---|---|---|---|---|\n\n"), "{nothing}");
    }
}

//! The page's beginning: what was found, in a line each, and the words that a stranger lacks.

use super::Results;
use super::sections::number;
use crate::report::Report;

/// Behind the first lines.
const WORDS: &str = "\
What is measured is a *user plane*: it stands between the radio and the Internet, takes users' packets out of the tunnels
of base stations (*gNBs*) and puts them into those tunnels on the way back. Each user has a *session*, and each session
rules (3GPP TS 29.244): *PDRs* say which packets are meant, *FARs* where they go, *QERs* how fast they may go, *URRs* what
is counted for the bill. *Content rules* tell by the first packets of a flow which application it is of. *PFCP* is the
protocol in which a control plane states all that.

";

impl Results {
    /// One line for each thing that was measured.
    pub(super) fn summary(&self) -> String {
        let lines = [
            self.usual().map(forwarding),
            self.of("sessions").and_then(|report| grown(&points(report), "sessions", |point| point.sessions)),
            self.of("flows").and_then(|report| grown(&points(report), "flows", |point| point.flows)),
            self.of("rules").and_then(|report| {
                let pdrs: Vec<&Report> =
                    points(report).into_iter().filter(|p| p.services.is_none()).collect();
                grown(&pdrs, "PDRs in a session", |point| point.pdrs)
            }),
            self.content_points().and_then(|points| content(&points)),
            self.of("latency").and_then(latency),
            self.of("scaling").and_then(scaling),
            self.of("pfcp").and_then(pfcp),
        ];
        let lines: Vec<String> = lines.into_iter().flatten().map(|line| format!("* {line}\n")).collect();
        match lines.is_empty() {
            true => WORDS.to_owned(),
            false => format!("## In short\n\n{}\n{WORDS}", lines.concat()),
        }
    }
}

fn points(report: &Report) -> Vec<&Report> {
    report.points.iter().collect()
}

fn forwarding(report: &Report) -> String {
    format!(
        "**Forwarding**: {} Mpps ({} Gb/s) on one core, packets in memory, {} sessions, packets of {:.0} bytes; {} of \
         what a loop without any logic does on the same packets and memory",
        number(report.mpps_per_core, 2),
        number(report.gbps_per_core, 1),
        report.sessions,
        report.mean_bytes,
        number(report.ratio, 3),
    )
}

/// From the first point to the last.
fn grown(points: &[&Report], what: &str, size: fn(&Report) -> u32) -> Option<String> {
    let (first, last) = (points.first()?, points.last()?);
    let change = (last.mpps_per_core? / first.mpps_per_core? - 1.0) * 100.0;
    Some(format!(
        "**From {} to {} {what}**: from {} to {} Mpps ({change:+.1} %), from {} to {} of the loop without logic",
        size(first),
        size(last),
        number(first.mpps_per_core, 2),
        number(last.mpps_per_core, 2),
        number(first.ratio, 3),
        number(last.ratio, 3),
    ))
}

fn content(points: &[&Report]) -> Option<String> {
    let services = |point: &&Report| Some((point.rules, point.services.as_ref()?.ratio_to_forward.median));
    let (first, last) = (points.iter().find_map(services)?, points.iter().rev().find_map(services)?);
    Some(format!(
        "**Knowing what flows are about, and a bill for each service**: {:.3} of the rate without, with {} content rules; \
         {:.3} with {}",
        first.1, first.0, last.1, last.0
    ))
}

fn latency(report: &Report) -> Option<String> {
    let (latency, load) = (report.latency_us?, report.load.as_ref()?);
    let busy =
        if load.is_of_the_machine() { "; the machine was busy with other things meanwhile" } else { "" };
    Some(format!(
        "**Latency** at {:.0} % of the rate without loss: half of the packets within {:.1} us, 99 of 100 within {:.1} us{busy}",
        load.load * 100.0,
        latency.p50,
        latency.p99
    ))
}

fn scaling(report: &Report) -> Option<String> {
    let total = |point: &Report| Some(point.mpps_per_core? * f64::from(point.workers));
    let (first, last) = (report.points.first()?, report.points.last()?);
    let times = total(last)? / total(first)?;
    (last.workers > first.workers)
        .then(|| format!("**{} workers** carry {times:.2} times as much as {}", last.workers, first.workers))
}

fn pfcp(report: &Report) -> Option<String> {
    let rates = report.pfcp.as_ref()?;
    let rate = rates.establishments_per_s?.median;
    Some(format!(
        "**Control plane**: {rate:.0} sessions set up a second, each written to the database before it is answered"
    ))
}

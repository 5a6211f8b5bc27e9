//! The sections over something that grows: sessions, flows, PDRs, workers.

use super::Results;
use super::sections::{notes, number, spread};
use crate::report::Report;
use std::fmt::Write;

/// Why many are slower than few, and what comes next against it.
const NEXT_STEP: &str = "What grows is waiting for memory: `flow` reads the flow's tag and its line and asks for the session's, and each table \
that lies in more pages than the TLB has entries for costs a packet a walk (`anchorline doctor`, memory.translation). The next step is a \
host that gives huge pages; a session already takes one line each way, a flow half a line, and a flow and its tag \
one page.\n\n";

/// Below so many cycles, spread over all packets, a node is none of those that make the difference.
const CYCLES_MIN: f64 = 1.0;

impl Results {
    pub(super) fn sessions(&self) -> Option<String> {
        let report = self.of("sessions")?;
        let head =
            "## Over the number of sessions\n\n![Throughput over sessions](sessions.svg)\n\n".to_owned();
        let (points, size): (Vec<&Report>, fn(&Report) -> u32) =
            (report.points.iter().collect(), |point| point.sessions);
        Some(
            head + &sweep(&points, "sessions", size) + &nodes(&points, ("sessions", size)) + &notes([report]),
        )
    }

    pub(super) fn flows(&self) -> Option<String> {
        let report = self.of("flows")?;
        let head = "## Over the number of flows\n\n![Throughput over flows](flows.svg)\n\n".to_owned();
        let (points, size): (Vec<&Report>, fn(&Report) -> u32) =
            (report.points.iter().collect(), |point| point.flows);
        Some(head + &sweep(&points, "flows", size) + &nodes(&points, ("flows", size)) + &notes([report]))
    }

    pub(super) fn rules(&self) -> Option<String> {
        let report = self.of("rules")?;
        let head = "## Over the number of PDRs in a session\n\n![Throughput over PDRs](rules.svg)\n\n";
        let points: Vec<&Report> = report.points.iter().filter(|point| point.services.is_none()).collect();
        let text = "The PDR that matches a packet is the last by precedence; all others of its direction are in vain, and lead to \
the same FAR, QER and URR.\n\n";
        Some(head.to_owned() + text + &sweep(&points, "PDRs", |point| point.pdrs))
    }

    pub(super) fn scaling(&self) -> Option<String> {
        let report = self.of("scaling")?;
        Some("## Over the number of workers\n\nNothing is shared: each worker has its ports, its sessions and its packets.\n\n".to_owned()
            + &sweep(&report.points.iter().collect::<Vec<_>>(), "workers", |point| point.workers)
            + &notes([report]))
    }
}

fn sweep(points: &[&Report], what: &str, size: fn(&Report) -> u32) -> String {
    let mut text = format!(
        "| {what} | Mpps per core | bare Mpps | ratio | cycles per packet | bytes per session |\n|---|---|---|---|---|---|\n"
    );
    for point in points {
        let bytes = point.memory.bytes_per_session.map_or("-".to_owned(), |bytes| bytes.to_string());
        let _ = writeln!(
            text,
            "| {} | **{}** | {} | {} | {} | {bytes} |",
            size(point),
            number(point.mpps_per_core, 2),
            number(point.bare_mpps_per_core, 2),
            spread(point.spread.map(|spread| spread.ratio), 3),
            spread(point.spread.map(|spread| spread.product), 0),
        );
    }
    text + "\n"
}

/// Where the cycles go at the least and at the most, and what the bare loop takes there.
fn nodes(points: &[&Report], (what, size): (&str, fn(&Report) -> u32)) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let mut text = format!(
        "| cycles of a packet | {} {what} | {} {what} | more |\n|---|---|---|---|\n",
        size(first),
        size(last)
    );
    let mut line = |name: &str, (few, many): (f64, f64)| {
        let _ = writeln!(text, "| {name} | {few:.1} | {many:.1} | {:+.1} |", many - few);
    };
    for node in &last.nodes {
        let cycles = (spread_out(first, &node.name), spread_out(last, &node.name));
        if cycles.1 >= CYCLES_MIN {
            line(&node.name, cycles);
        }
    }
    if let (Some(few), Some(many)) = (first.spread, last.spread) {
        line("all, and the ports", (few.product.median, many.product.median));
        line("bare loop", (few.bare.median, many.bare.median));
    }
    text + "\n" + NEXT_STEP
}

/// The cycles of a node, spread over all packets.
fn spread_out(report: &Report, name: &str) -> f64 {
    let all = report.nodes.iter().map(|node| node.packets).max().unwrap_or_default().max(1) as f64;
    let node = report.nodes.iter().find(|node| node.name == name);
    node.map_or(0.0, |node| node.cycles_per_packet * node.packets as f64 / all)
}

//! The outcome for people.

use crate::outcome::Outcome;
use dplink::{NodeStatistics, Statistics};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The whole table, without a final newline.
pub(crate) fn render(outcome: &Outcome) -> String {
    let rows: Vec<String> =
        summary(outcome).into_iter().map(|(name, value)| format!("{name:<24} {value}")).collect();
    format!("{}\n\n{}\n{}", rows.join("\n"), nodes(&outcome.statistics), drops(&outcome.statistics))
}

fn summary(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let (ping, kill, capture) = (&outcome.ping, &outcome.cpe_kill, &outcome.capture);
    let (tcp, udp) = (&outcome.tcp, &outcome.udp);
    let sum = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
    vec![
        ("sessions", format!("{}, and 0 after their deletion", outcome.sessions)),
        (
            "round trip",
            format!("{:.2} / {:.2} / {:.2} ms (min, mean, max)", ping.min_ms, ping.mean_ms, ping.max_ms),
        ),
        ("pings lost", format!("{} of {}", ping.lost(), ping.sent)),
        ("download", format!("100 MiB at {:.0} Mbit/s, SHA-256 equal", outcome.download.mbit_s())),
        ("TCP up, down", format!("{:.0}, {:.0} Mbit/s", tcp.up.mbit_s, tcp.down.mbit_s)),
        ("TCP sent again", format!("{}, {} segments", tcp.up.retransmits, tcp.down.retransmits)),
        ("UDP up, down", format!("{:.1}, {:.1} Mbit/s", udp.up.mbit_s, udp.down.mbit_s)),
        (
            "held to 10 up, 20 down",
            format!("{:.2}, {:.2} Mbit/s", outcome.contract.up.mbit_s, outcome.contract.down.mbit_s),
        ),
        ("UDP lost", format!("{:.2}, {:.2} %", udp.up.lost_percent, udp.down.lost_percent)),
        (
            "control plane killed",
            format!("pid {}, pid {} after {:.0} ms", kill.old_pid, kill.new_pid, kill.restart_ms),
        ),
        ("  meanwhile", format!("{} of {} pings lost, SHA-256 equal", kill.ping.lost(), kill.ping.sent)),
        ("  sessions", format!("{} before and after", kill.sessions)),
        ("logs, capture", outcome.run_dir.display().to_string()),
        ("captured", format!("{} packets, {} at fault", capture.packets, capture.faults)),
        ("  PFCP, GTP-U", format!("{}, {} messages", sum(&capture.pfcp), sum(&capture.gtp))),
        (
            "  PDU session containers",
            format!("{} up, {} down", capture.uplink_containers, capture.downlink_containers),
        ),
        ("books", books(&outcome.statistics)),
    ]
}

fn books(statistics: &Statistics) -> String {
    let sum = |count: fn(&dplink::Books) -> u64| {
        statistics.workers.iter().map(|worker| count(&worker.books)).sum::<u64>()
    };
    format!(
        "received {} + created {} = sent {} + dropped {} + consumed {} + held {}",
        sum(|books| books.received),
        sum(|books| books.created),
        sum(|books| books.sent),
        sum(|books| books.dropped),
        sum(|books| books.consumed),
        sum(|books| books.held)
    )
}

/// Nodes that saw packets, over all workers, in graph order.
fn nodes(statistics: &Statistics) -> String {
    let mut total: Vec<NodeStatistics> = Vec::new();
    for node in statistics.workers.iter().flat_map(|worker| &worker.nodes) {
        match total.iter_mut().find(|sum| sum.name == node.name) {
            Some(sum) => add(sum, node),
            None => total.push(node.clone()),
        }
    }
    let mut text = format!("{:<24} {:>12} {:>12} {:>14}\n", "node", "packets", "per vector", "cycles/packet");
    for node in total.iter().filter(|node| node.packets > 0) {
        let (per_vector, cycles) = (ratio(node.packets, node.vectors), ratio(node.cycles, node.packets));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<24} {:>12} {per_vector:>12.1} {cycles:>14.0}", node.name, node.packets);
    }
    text
}

fn add(sum: &mut NodeStatistics, node: &NodeStatistics) {
    sum.vectors += node.vectors;
    sum.packets += node.packets;
    sum.cycles += node.cycles;
}

fn ratio(of: u64, to: u64) -> f64 {
    of as f64 / to.max(1) as f64
}

fn drops(statistics: &Statistics) -> String {
    let mut total: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in statistics.workers.iter().flat_map(|worker| &worker.drops) {
        *total.entry(reason).or_default() += count;
    }
    let mut text = format!("{:<24} {:>12}\n", "drop", "packets");
    if total.is_empty() {
        text.push_str("none\n");
    }
    for (reason, count) in total {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{reason:<24} {count:>12}");
    }
    text
}

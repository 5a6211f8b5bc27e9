//! Nodes of the graph, as a table for people.

use dplink::{NodeStatistics, Statistics, WorkerStatistics};
use std::fmt::Write;

/// By node, those that ran: packets, vectors, cycles.
pub(super) fn text(statistics: &Statistics) -> String {
    let mut text = String::new();
    for (number, worker) in statistics.workers.iter().enumerate() {
        let received = worker.books.received;
        let _ = writeln!(
            text,
            "worker {number}: {received} packets received in {:.1} s ({:.0}/s), {} sessions, {} flows\n\
             {:<24} {:>14} {:>12} {:>14} {:>14} {:>7}",
            statistics.uptime_ms as f64 / 1_000.0,
            per(received * 1_000, statistics.uptime_ms),
            worker.sessions,
            worker.flows,
            "node",
            "packets",
            "vectors",
            "packets/vector",
            "cycles/packet",
            "share"
        );
        nodes(worker, &mut text);
    }
    text
}

fn nodes(worker: &WorkerStatistics, text: &mut String) {
    let cycles: u64 = worker.nodes.iter().map(|node| node.cycles).sum();
    for node in worker.nodes.iter().filter(|node| node.vectors > 0) {
        text.push_str(&line(node, cycles));
    }
    let each = per(cycles, packets_of(worker));
    let _ = writeln!(text, "all nodes: {each:.1} cycles for each packet that came");
}

/// That came to a worker: from its ports and from other workers, or that it handed over as they were, which whoever reads them counts.
fn packets_of(worker: &WorkerStatistics) -> u64 {
    let sorted = worker.nodes.iter().find(|node| node.name == "steer").map_or(0, |node| node.packets);
    sorted.max(worker.books.received + worker.books.handed_in)
}

fn line(node: &NodeStatistics, cycles: u64) -> String {
    format!(
        "{:<24} {:>14} {:>12} {:>14.1} {:>14.1} {:>5.1} %\n",
        node.name,
        node.packets,
        node.vectors,
        per(node.packets, node.vectors),
        per(node.cycles, node.packets),
        per(node.cycles * 100, cycles),
    )
}

/// Nothing of nothing is 0.
pub(super) fn per(whole: u64, part: u64) -> f64 {
    if part == 0 { 0.0 } else { whole as f64 / part as f64 }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::statistics;
    use super::*;

    #[test]
    fn cycles_are_divided_by_packets_and_packets_by_vectors() {
        let text = text(&statistics());
        let line = text.lines().find(|line| line.starts_with("classify")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["classify", "10", "4", "2.5", "25.0", "25.0", "%"]);
        assert!(text.contains("100.0 cycles for each packet") && text.contains("(5/s), 2 sessions, 3 flows"));
    }

    #[test]
    fn packets_of_other_workers_are_counted_where_they_are_handled() {
        let mut worker = statistics().workers.remove(0);
        let received = worker.books.received;
        worker.books.handed_in = 2 * received;
        assert_eq!(packets_of(&worker), 3 * received);
        let steer = NodeStatistics { name: "steer".into(), vectors: 1, packets: 5 * received, cycles: 1 };
        worker.nodes.push(steer);
        assert_eq!(packets_of(&worker), 5 * received);
    }

    #[test]
    fn nodes_that_never_ran_are_left_out() {
        assert!(!text(&statistics()).contains("urr"));
    }
}

//! Tables for people.

use dplink::{NodeStatistics, Statistics};
use std::fmt::Write;

/// Sessions, ports and books.
pub(crate) fn status(statistics: &Statistics) -> String {
    let mut text = format!(
        "up for {:.1} s, {} sessions\n\n{:<12} {:>14} {:>16} {:>14} {:>16} {:>10}  device\n",
        statistics.uptime_ms as f64 / 1_000.0,
        statistics.sessions,
        "port",
        "received",
        "bytes",
        "sent",
        "bytes",
        "missed",
    );
    for port in &statistics.ports {
        let _ = writeln!(
            text,
            "{:<12} {:>14} {:>16} {:>14} {:>16} {:>10}  {}",
            port.name,
            port.received,
            port.received_bytes,
            port.sent,
            port.sent_bytes,
            port.missed,
            port.device
        );
    }
    for (number, worker) in statistics.workers.iter().enumerate() {
        let books = &worker.books;
        let verdict = if books.balanced() { "balanced" } else { "NOT BALANCED" };
        let _ = writeln!(
            text,
            "\nworker {number}: received {} + created {} = sent {} + dropped {} + consumed {} + held {} ({verdict})",
            books.received, books.created, books.sent, books.dropped, books.consumed, books.held
        );
    }
    text
}

/// Nodes of the graph.
pub(crate) fn runtime(statistics: &Statistics) -> String {
    let mut text = String::new();
    for (number, worker) in statistics.workers.iter().enumerate() {
        let _ = writeln!(
            text,
            "worker {number}\n{:<24} {:>14} {:>14} {:>16} {:>14}",
            "node", "packets", "vectors", "packets/vector", "cycles/packet"
        );
        worker.nodes.iter().for_each(|node| text.push_str(&node_line(node)));
    }
    text
}

fn node_line(node: &NodeStatistics) -> String {
    let per = |whole: u64, part: u64| if part == 0 { 0.0 } else { whole as f64 / part as f64 };
    format!(
        "{:<24} {:>14} {:>14} {:>16.1} {:>14.1}\n",
        node.name,
        node.packets,
        node.vectors,
        per(node.packets, node.vectors),
        per(node.cycles, node.packets)
    )
}

/// Reasons of drops, the most frequent first.
pub(crate) fn drops(statistics: &Statistics) -> String {
    let mut text = String::new();
    for (number, worker) in statistics.workers.iter().enumerate() {
        let _ = writeln!(text, "worker {number}: {} packets dropped", worker.books.dropped);
        let mut drops = worker.drops.clone();
        drops.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (reason, count) in drops {
            let _ = writeln!(text, "  {reason:<28} {count:>14}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use dplink::{Books, PortStatistics, WorkerStatistics};

    fn statistics() -> Statistics {
        let node = NodeStatistics { name: "classify".to_owned(), vectors: 4, packets: 10, cycles: 250 };
        let port = PortStatistics {
            name: "n3".to_owned(),
            device: "net_null0".to_owned(),
            received: 10,
            received_bytes: 640,
            sent: 0,
            sent_bytes: 0,
            missed: 0,
        };
        let worker = WorkerStatistics {
            books: Books { received: 10, dropped: 10, ..Books::default() },
            nodes: vec![node],
            drops: vec![("no_pdr".to_owned(), 3), ("no_session".to_owned(), 7)],
        };
        Statistics { uptime_ms: 1_500, sessions: 2, ports: vec![port], workers: vec![worker] }
    }

    #[test]
    fn runtime_divides_by_packets_and_vectors() {
        let text = runtime(&statistics());
        assert!(text.contains("2.5           25.0"), "{text}");
    }

    #[test]
    fn drops_stand_in_order_of_their_number() {
        let text = drops(&statistics());
        assert!(text.find("no_session") < text.find("no_pdr"), "{text}");
    }

    #[test]
    fn status_says_whether_the_books_balance() {
        let mut statistics = statistics();
        assert!(status(&statistics).contains("(balanced)"));
        statistics.workers[0].books.sent = 1;
        assert!(status(&statistics).contains("(NOT BALANCED)"));
    }
}

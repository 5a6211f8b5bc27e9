//! Drops by reason, as a table for people.

use super::runtime::per;
use dataplane::DropReason;
use dplink::Statistics;
use std::fmt::Write;

/// By reason, the most frequent first, with what it means.
pub(super) fn text(statistics: &Statistics) -> String {
    let mut text = String::new();
    for (number, worker) in statistics.workers.iter().enumerate() {
        let (dropped, seconds) = (worker.books.dropped, statistics.uptime_ms as f64 / 1_000.0);
        let _ = writeln!(text, "worker {number}: {dropped} packets dropped in {seconds:.1} s");
        if worker.drops.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{:<24} {:>14} {:>12}", "reason", "packets", "packets/s");
        let mut drops = worker.drops.clone();
        drops.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (reason, count) in drops {
            let rate = per(count * 1_000, statistics.uptime_ms);
            let _ = writeln!(text, "{reason:<24} {count:>14} {rate:>12.1}  {}", about(&reason));
        }
    }
    text
}

/// What a reason means; nothing for those of other versions.
pub(super) fn about(reason: &str) -> &'static str {
    DropReason::named(reason).map_or("", DropReason::about)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::statistics;
    use super::*;

    #[test]
    fn reasons_stand_in_order_of_their_number_with_rate_and_meaning() {
        let text = text(&statistics());
        assert!(text.find("no_session") < text.find("no_pdr"), "{text}");
        let line = text.lines().find(|line| line.starts_with("no_session")).unwrap();
        assert!(line.contains(" 7 ") && line.contains(" 3.5  A packet to or from a user"), "{line}");
    }

    #[test]
    fn without_drops_there_is_no_table() {
        let mut statistics = statistics();
        statistics.workers[0].drops.clear();
        assert!(!text(&statistics).contains("reason"));
    }
}

//! Drops by reason, as a table for people.

use super::runtime::per;
use dataplane::DropReason;
use dplink::{Statistics, WorkerStatistics};
use std::fmt::Write;
use std::net::IpAddr;

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
        text.push_str(&gave_way(worker));
    }
    text
}

/// Whose packets `user_share` was, those of most first, as many as give way at once; nothing where nobody did.
fn gave_way(worker: &WorkerStatistics) -> String {
    let mut users = worker.gave_way.clone();
    users.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let all: Vec<String> =
        users.iter().take(8).map(|(user, count)| format!("{} {count}", name(*user))).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!("{} most from: {}\n", DropReason::UserShare.name(), all.join(", ")),
    }
}

/// A user, as `--ue` of other views reads it, but for the length of an IPv6 prefix.
fn name(user: IpAddr) -> String {
    match user {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(prefix) => format!("{prefix}/64"),
    }
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
    fn who_gave_way_most_stands_first() {
        let mut statistics = statistics();
        assert!(!text(&statistics).contains("most from"));
        let user = |address: &str| address.parse::<IpAddr>().unwrap();
        statistics.workers[0].gave_way = vec![(user("10.60.0.5"), 70), (user("2001:db8::"), 300)];
        let text = text(&statistics);
        assert!(text.ends_with("\nuser_share most from: 2001:db8::/64 300, 10.60.0.5 70\n"), "{text}");
        let json = serde_json::to_string(&statistics).unwrap();
        assert!(json.contains(r#""gave_way":[["10.60.0.5",70],["2001:db8::",300]]"#), "{json}");
    }

    #[test]
    fn without_drops_there_is_no_table() {
        let mut statistics = statistics();
        statistics.workers[0].drops.clear();
        assert!(!text(&statistics).contains("reason"));
    }
}

//! Sessions, ports and books, for people.

use dplink::{PortLink, Statistics, WorkerIdle, WorkerStatistics};
use serde::Serialize;
use std::fmt::Write;

/// As programs read it: what the data plane counts, and what people are told besides.
#[derive(Serialize)]
pub(super) struct Told {
    #[serde(flatten)]
    pub(super) statistics: Statistics,
    pub(super) charging: serde_json::Value,
}

/// Sessions, ports and books.
pub(super) fn text(statistics: &Statistics) -> String {
    let mut text = format!(
        "up for {:.1} s, {} sessions, {:.1} % of the room for PDRs in use\n\n{:<12} {:<7} {:>14} {:>16} {:>14} {:>16} {:>10} {:>10}  {:<25} device\n",
        statistics.uptime_ms as f64 / 1_000.0,
        statistics.sessions,
        fullest(&statistics.workers),
        "port",
        "link",
        "received",
        "bytes",
        "sent",
        "bytes",
        "missed",
        "unsent",
        "spread",
    );
    for port in &statistics.ports {
        let _ = writeln!(
            text,
            "{:<12} {:<7} {:>14} {:>16} {:>14} {:>16} {:>10} {:>10}  {:<25} {}",
            port.name,
            link(port.link),
            port.received,
            port.received_bytes,
            port.sent,
            port.sent_bytes,
            port.missed,
            port.unsent,
            port.spread.about(),
            port.device
        );
    }
    for (number, one) in statistics.workers.iter().enumerate() {
        text += &worker((number, one), statistics);
    }
    text
}

/// Whether packets get through a port.
const fn link(link: PortLink) -> &'static str {
    match link {
        PortLink::Unknown => "unknown",
        PortLink::Up => "up",
        PortLink::Down => "DOWN",
        PortLink::Gone => "GONE",
    }
}

/// What a worker has done, by its books, and what it does while it has nothing to do.
fn worker((number, worker): (usize, &WorkerStatistics), of: &Statistics) -> String {
    let books = &worker.books;
    let verdict = if books.balanced() { "balanced" } else { "NOT BALANCED" };
    // With one worker there is nobody to hand anything to.
    let [handed_in, handed_out] = match of.workers.len() {
        1 => [String::new(), String::new()],
        _ => [format!(" + handed in {}", books.handed_in), format!(" + handed out {}", books.handed_out)],
    };
    let punted = match of.ports.iter().any(|port| port.punting.is_some()) {
        true => format!(" + punted {}", books.punted),
        false => String::new(),
    };
    let load = match of.workers.len() {
        1 => String::new(),
        _ => format!(
            "{} sessions, busy {:.1} % of the time; ",
            worker.sessions,
            f64::from(worker.busy_permille) / 10.0
        ),
    };
    let mut text = format!(
        "\nworker {number}: {load}received {} + created {}{} = sent {} + dropped {} + consumed {}{punted} + held {}{} ({verdict})\n",
        books.received,
        books.created,
        handed_in,
        books.sent,
        books.dropped,
        books.consumed,
        books.held,
        handed_out
    );
    text += &content(&worker.content);
    text += &idle(number, &of.idle);
    text
}

/// What a worker does while no packet waits; nothing where nobody has asked for anything but looking on.
fn idle(number: usize, of_workers: &[WorkerIdle]) -> String {
    match of_workers.get(number) {
        None => String::new(),
        Some(WorkerIdle { does, lacks: None }) => format!("while no packet waits it {does}\n"),
        Some(WorkerIdle { does, lacks: Some(why) }) => {
            format!("while no packet waits it {does}; what the configuration wants is {why}\n")
        }
    }
}

/// How much of its room for PDRs the worker uses that uses most of it: it is the first to refuse sessions. In hundredths.
fn fullest(workers: &[WorkerStatistics]) -> f64 {
    let used = |worker: &WorkerStatistics| worker.pdrs as f64 * 100.0 / worker.pdrs_most.max(1) as f64;
    workers.iter().map(used).fold(0.0, f64::max)
}

/// What content rules found out; nothing where there are none.
fn content(content: &dplink::ContentStatistics) -> String {
    let dplink::ContentStatistics {
        revision,
        waiting,
        detected,
        undetected,
        encrypted,
        displaced,
        names,
        enriched,
        unenriched,
    } = *content;
    let requests = match enriched + unenriched {
        0 => String::new(),
        _ => format!("requests: {enriched} got a field, {unenriched} passed as they were\n"),
    };
    if revision == 0 {
        return requests;
    }
    format!(
        "content rules {revision:#018x}: {detected} flows of an application, {undetected} of none, {encrypted} of both with \
         Encrypted ClientHello; {waiting} looked at, {displaced} displaced; {names} servers named by DNS\n{requests}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixture::statistics;
    use super::*;

    #[test]
    fn status_says_whether_the_books_balance() {
        let mut statistics = statistics();
        assert!(text(&statistics).contains("(balanced)"));
        statistics.workers[0].books.sent = 1;
        assert!(text(&statistics).contains("(NOT BALANCED)"));
        assert!(!text(&statistics).contains("handed"));
    }

    #[test]
    fn programs_are_told_what_people_are() {
        let charging = serde_json::json!({ "waiting": 3 });
        let told =
            serde_json::to_value(Told { statistics: statistics(), charging: charging.clone() }).unwrap();
        assert_eq!((&told["sessions"], &told["charging"]), (&serde_json::json!(2), &charging));
        assert_eq!(told["workers"][0]["content"]["revision"], "0x0000000000000000");
        // Who reads no more than what the data plane counts finds it where it is.
        assert_eq!(serde_json::from_value::<Statistics>(told).unwrap(), statistics());
    }

    #[test]
    fn a_revision_of_content_rules_has_more_digits_than_readers_of_json_keep_of_a_number() {
        let mut statistics = statistics();
        statistics.workers[0].content.revision = 0xeeb3_2352_0000_0001;
        let told = serde_json::to_string(&statistics).unwrap();
        assert!(told.contains(r#""content":{"revision":"0xeeb3235200000001","#), "{told}");
        assert!(text(&statistics).contains("content rules 0xeeb3235200000001: "), "{}", text(&statistics));
        assert_eq!(serde_json::from_str::<Statistics>(&told).unwrap(), statistics);
    }

    #[test]
    fn what_an_idle_worker_cannot_do_is_told() {
        let mut statistics = statistics();
        statistics.workers.push(statistics.workers[0].clone());
        assert!(!text(&statistics).contains("while no packet waits"));
        let idle = |does: &str, lacks: Option<&str>| WorkerIdle {
            does: does.to_owned(),
            lacks: lacks.map(str::to_owned),
        };
        statistics.idle = vec![
            idle("waits on its receive queues", None),
            idle("sleeps lightly", Some("not available here, because it rains")),
        ];
        let text = text(&statistics);
        let told: Vec<&str> = text.lines().filter(|line| line.starts_with("while no packet")).collect();
        let expected = [
            "while no packet waits it waits on its receive queues",
            "while no packet waits it sleeps lightly; what the configuration wants is not available here, because it rains",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_the_kernel_got_is_told_where_it_gets_anything() {
        let mut statistics = statistics();
        (statistics.workers[0].books.dropped, statistics.workers[0].books.punted) = (6, 4);
        assert!(!text(&statistics).contains("punted"));
        statistics.ports[0].punting = Some(dplink::Punting::default());
        let text = text(&statistics);
        assert!(text.contains("dropped 6 + consumed 0 + punted 4 + held 0 (balanced)"), "{text}");
    }

    #[test]
    fn the_worker_with_least_room_is_told_of() {
        let mut statistics = statistics();
        statistics.workers.push(statistics.workers[0].clone());
        statistics.workers[1].pdrs = 48;
        assert!(
            text(&statistics).starts_with("up for 2.0 s, 2 sessions, 75.0 % of the room for PDRs in use\n")
        );
    }

    #[test]
    fn several_workers_say_what_they_hand_each_other() {
        let mut statistics = statistics();
        statistics.ports[0].spread = dplink::Spread::OneQueue;
        statistics.workers.push(statistics.workers[0].clone());
        (statistics.workers[0].books.handed_out, statistics.workers[0].books.dropped) = (4, 6);
        let text = text(&statistics);
        assert!(text.contains("one queue, then hand-off"), "{text}");
        assert!(text.contains("worker 1: 2 sessions, busy 12.5 % of the time; received 10"), "{text}");
        assert!(text.contains("dropped 6 + consumed 0 + held 0 + handed out 4 (balanced)"), "{text}");
    }
}

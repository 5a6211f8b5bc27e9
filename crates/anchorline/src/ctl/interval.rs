//! Counts of an interval, rather than since the engine started.

use anyhow::ensure;
use dplink::{Books, NodeStatistics, PortStatistics, Statistics, WorkerStatistics};
use std::path::Path;
use std::time::Duration;

/// Over which time to count.
#[derive(clap::Args)]
pub(super) struct Interval {
    /// Show what happens in the next N seconds; without it, everything since the engine started.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: Option<u64>,
}

impl Interval {
    /// Counts of the interval, whose length then is `uptime_ms`. Levels (sessions, flows, packets held) are those at its
    /// end.
    pub(super) async fn statistics(&self, link: &Path) -> anyhow::Result<Statistics> {
        let first = crate::observer::statistics(link).await?;
        let Some(seconds) = self.seconds else { return Ok(first) };
        let interval = Duration::from_secs(seconds);
        super::progress::during("packets are counted", interval, tokio::time::sleep(interval)).await;
        since(crate::observer::statistics(link).await?, &first)
    }
}

fn since(mut now: Statistics, then: &Statistics) -> anyhow::Result<Statistics> {
    let same = now.workers.len() == then.workers.len() && now.ports.len() == then.ports.len();
    ensure!(same && now.uptime_ms >= then.uptime_ms, "the data plane was started anew meanwhile; ask again");
    now.uptime_ms -= then.uptime_ms;
    now.ports.iter_mut().zip(&then.ports).for_each(|(now, then)| subtract_port(now, then));
    now.workers.iter_mut().zip(&then.workers).for_each(|(now, then)| subtract_worker(now, then));
    Ok(now)
}

fn subtract_port(now: &mut PortStatistics, then: &PortStatistics) {
    subtract(&mut now.received, then.received);
    subtract(&mut now.received_bytes, then.received_bytes);
    subtract(&mut now.sent, then.sent);
    subtract(&mut now.sent_bytes, then.sent_bytes);
    subtract(&mut now.missed, then.missed);
    subtract(&mut now.unsent, then.unsent);
    if let (Some(now), Some(then)) = (&mut now.punting, &then.punting) {
        subtract(&mut now.punted, then.punted);
        subtract(&mut now.from_kernel, then.from_kernel);
        subtract(&mut now.refused, then.refused);
    }
    now.classes.iter_mut().zip(&then.classes).for_each(|(now, then)| subtract(now, *then));
}

fn subtract_worker(now: &mut WorkerStatistics, then: &WorkerStatistics) {
    subtract_books(&mut now.books, &then.books);
    now.nodes.iter_mut().zip(&then.nodes).for_each(|(now, then)| subtract_node(now, then));
    for (reason, count) in &mut now.drops {
        let before = then.drops.iter().find(|(name, _)| name == reason);
        subtract(count, before.map_or(0, |(_, count)| *count));
    }
    now.drops.retain(|(_, count)| *count > 0);
    for (user, count) in &mut now.gave_way {
        let before = then.gave_way.iter().find(|(name, _)| name == user).map_or(0, |(_, count)| *count);
        // Of one that was told no more for a time, the count began anew.
        *count = count.checked_sub(before).unwrap_or(*count);
    }
    now.gave_way.retain(|(_, count)| *count > 0);
}

fn subtract_books(now: &mut Books, then: &Books) {
    subtract(&mut now.received, then.received);
    subtract(&mut now.created, then.created);
    subtract(&mut now.sent, then.sent);
    subtract(&mut now.dropped, then.dropped);
    subtract(&mut now.consumed, then.consumed);
    subtract(&mut now.punted, then.punted);
    subtract(&mut now.handed_in, then.handed_in);
    subtract(&mut now.handed_out, then.handed_out);
}

fn subtract_node(now: &mut NodeStatistics, then: &NodeStatistics) {
    subtract(&mut now.vectors, then.vectors);
    subtract(&mut now.packets, then.packets);
    subtract(&mut now.cycles, then.cycles);
}

const fn subtract(now: &mut u64, then: u64) {
    *now = now.saturating_sub(then);
}

#[cfg(test)]
mod tests {
    use super::super::fixture::statistics;
    use super::*;

    #[test]
    fn counts_are_those_of_the_interval_and_levels_those_of_its_end() {
        let (then, mut now) = (statistics(), statistics());
        now.uptime_ms += 500;
        now.sessions = 9;
        now.ports[0].received += 4;
        now.workers[0].nodes[0].packets += 4;
        now.workers[0].drops[1].1 += 5;
        let interval = since(now, &then).unwrap();
        assert_eq!((interval.uptime_ms, interval.sessions, interval.ports[0].received), (500, 9, 4));
        assert_eq!((interval.workers[0].nodes[0].packets, interval.workers[0].nodes[0].cycles), (4, 0));
        assert_eq!(interval.workers[0].drops, [("no_session".to_owned(), 5)]);
    }

    #[test]
    fn who_gave_way_in_the_interval_is_told_and_nobody_else() {
        let (mut then, mut now) = (statistics(), statistics());
        let user = |number| std::net::IpAddr::from([10, 60, 0, number]);
        then.workers[0].gave_way = vec![(user(1), 5), (user(2), 5), (user(3), 5)];
        now.workers[0].gave_way = vec![(user(1), 5), (user(2), 7), (user(3), 1), (user(4), 6)];
        let told = since(now, &then).unwrap().workers.remove(0).gave_way;
        assert_eq!(told, [(user(2), 2), (user(3), 1), (user(4), 6)]);
    }

    #[test]
    fn an_engine_started_anew_is_noticed() {
        let (then, mut now) = (statistics(), statistics());
        now.uptime_ms = 1;
        assert!(since(now, &then).unwrap_err().to_string().contains("anew"));
    }
}

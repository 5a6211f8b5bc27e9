//! Round trips.

use crate::{Namespace, Process, command};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The outcome of a series of echo requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ping {
    /// Requests sent.
    pub sent: u32,
    /// Answers received.
    pub received: u32,
    /// Shortest round trip.
    pub min_ms: f64,
    /// Mean round trip.
    pub mean_ms: f64,
    /// Longest round trip.
    pub max_ms: f64,
}

impl Ping {
    /// Sends `count` requests, one every `interval`, and waits for them.
    ///
    /// # Errors
    /// Where none is answered, or `ping` cannot run.
    pub fn run(from: &Namespace, to: Ipv4Addr, (count, interval): (u32, Duration)) -> Result<Self> {
        let done = command::run(&mut call(from, to, (count, interval)), limit(count, interval))?;
        Self::parse(&done.stdout).with_context(|| format!("`{}`: {}", done.call, done.stderr.trim()))
    }

    /// Requests without an answer.
    pub fn lost(&self) -> u32 {
        self.sent.saturating_sub(self.received)
    }

    /// # Errors
    /// Where a request was not answered.
    pub fn expect_no_loss(self) -> Result<Self> {
        ensure!(self.lost() == 0, "{} of {} pings were not answered", self.lost(), self.sent);
        Ok(self)
    }

    fn parse(summary: &str) -> Result<Self> {
        let counts =
            summary.lines().find(|line| line.contains("packets transmitted")).context("no ping summary")?;
        let mut numbers = counts.split(' ').filter_map(|word| word.parse::<u32>().ok());
        let (sent, received) = (numbers.next().context("no count")?, numbers.next().context("no count")?);
        let rtt = summary.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
        let rtt = rtt.with_context(|| format!("none of {sent} pings was answered"))?;
        let mut times = rtt.split(['/', ' ']).map_while(|word| word.parse::<f64>().ok());
        let mut time = || times.next().context("no round-trip time");
        Ok(Self { sent, received, min_ms: time()?, mean_ms: time()?, max_ms: time()? })
    }
}

/// A series under way while something else happens.
#[derive(Debug)]
pub struct PingInProgress {
    process: Process,
    limit: Duration,
}

impl PingInProgress {
    /// Starts it; its log goes to `dir`.
    ///
    /// # Errors
    /// Where `ping` cannot be started.
    pub fn start(from: &Namespace, to: Ipv4Addr, series: (u32, Duration), dir: &Path) -> Result<Self> {
        let process = Process::spawn("ping", &mut call(from, to, series), dir)?;
        Ok(Self { process, limit: limit(series.0, series.1) })
    }

    /// Whether it is still sending.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn runs(&mut self) -> Result<bool> {
        self.process.runs()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Where it does not end, or nothing was answered.
    pub fn finish(mut self) -> Result<Ping> {
        self.process.wait_exit(self.limit)?;
        Ping::parse(&self.process.output()?)
    }
}

fn call(from: &Namespace, to: Ipv4Addr, (count, interval): (u32, Duration)) -> Command {
    let mut command = from.command("ping");
    command.args(["-n", "-D", "-O", "-W", "2", "-c", &count.to_string()]);
    command.args(["-i", &interval.as_secs_f64().to_string(), &to.to_string()]);
    command
}

fn limit(count: u32, interval: Duration) -> Duration {
    interval * count * 2 + command::SHORT
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "PING 10.50.0.1 (10.50.0.1) 56(84) bytes of data.\n\n\
        --- 10.50.0.1 ping statistics ---\n\
        20 packets transmitted, 19 received, 5% packet loss, time 950ms\n\
        rtt min/avg/max/mdev = 0.301/0.412/0.977/0.050 ms\n";

    #[test]
    fn a_summary_is_read() {
        let ping = Ping::parse(SUMMARY).unwrap();
        assert_eq!((ping.sent, ping.received, ping.lost()), (20, 19, 1));
        assert_eq!((ping.min_ms, ping.mean_ms, ping.max_ms), (0.301, 0.412, 0.977));
        assert_eq!(ping.expect_no_loss().unwrap_err().to_string(), "1 of 20 pings were not answered");
    }

    #[test]
    fn silence_is_an_error() {
        let silence = "3 packets transmitted, 0 received, 100% packet loss, time 2001ms\n";
        assert_eq!(Ping::parse(silence).unwrap_err().to_string(), "none of 3 pings was answered");
    }
}
